"""Fixtures for tests in a real browser; `lab` is the one that tests ask for."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from lab import QUIET, LabPage, LabServer, find_browser

from helpers import workshop


def lacking(what):
    """Skip on a reader's machine; on a build machine a test that cannot run must not look fine."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what}, and CI is set: browser tests must run here", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory):
    """JupyterLab on a copy of the lessons: `notebooks` and the reader's `my-lessons`."""
    root = tmp_path_factory.mktemp("repository")
    lessons = workshop.ROOT / "notebooks"
    (root / "notebooks").mkdir()
    (root / workshop.READERS_FOLDER).mkdir()
    for lesson in lessons.glob("*.ipynb"):
        shutil.copy(lesson, root / "notebooks")
    if any((root / "notebooks").iterdir()):
        workshop.copy_lessons(root)
    server = LabServer(root, tmp_path_factory.mktemp("jupyter"))
    server.start()
    yield server
    server.stop()


# One for each file: while it runs, asyncio counts as busy, which other files' tests may mind.
@pytest.fixture(scope="module")
def chromium():
    path = find_browser()
    if path is None:
        lacking("no Chromium or Chrome on this machine")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("the package playwright is not installed")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def lab(chromium, lab_server):
    """A LabPage at the size of a small laptop: `lab.open("my-lessons/….ipynb").run_all()`."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    yield LabPage(lab_server, context.new_page())
    context.close()
    lab_server.shut_down_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    page = item.funcargs.get("lab") if hasattr(item, "funcargs") else None
    if report.failed and call.when == "call" and page is not None:
        folder = Path(tempfile.mkdtemp(prefix="lab-failure-"))
        try:
            page.save_evidence(folder)
        except Exception as error:  # the failure itself matters more
            report.sections.append(("evidence is incomplete", str(error)))
        report.sections.append(("screenshot and console", str(folder)))
    return report
