"""The cheat sheet in a real browser: one sheet of paper, nothing cut off, nobody asked."""

import re
import zipfile
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from helpers.interview import sheet

PAPERS = {"A4": (210, 297), "Letter": (215.9, 279.4)}  # mm
MARGINS = 2 * 11  # mm, left and right, as in the page's @page
MM = 96 / 25.4  # CSS pixels

# Parts whose content is wider than they are, or reaches out of the sheet.
TOO_WIDE = """() => {
  const sheet = document.querySelector('.sheet').getBoundingClientRect();
  return [...document.querySelectorAll('.sheet *:not(svg *)')].filter(part => {
    const box = part.getBoundingClientRect();
    const cut = !part.matches('svg, pre') && part.scrollWidth > part.clientWidth + 1
      && getComputedStyle(part).display !== 'inline';
    return box.right > sheet.right + 1 || box.left < sheet.left - 1 || cut;
  }).map(part => part.tagName + ': ' + part.textContent.slice(0, 40));
}"""


@pytest.fixture
def page(chromium, tmp_path):
    file = sheet.save(tmp_path / "sheet.html")
    tab = chromium.new_page(viewport={"width": 1280, "height": 800})
    tab.said, tab.asked = [], set()
    tab.on("console", lambda message: tab.said.append(message.text))
    tab.on("pageerror", lambda error: tab.said.append(str(error)))
    tab.on("request", lambda request: tab.asked.add(urlsplit(request.url).scheme))
    tab.goto(file.as_uri())
    tab.evaluate("document.fonts.ready")
    yield tab
    tab.close()


@pytest.mark.parametrize("paper", PAPERS)
def test_it_prints_on_one_page(page, paper):
    pdf = page.pdf(format=paper)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_a_longer_sheet_would_take_two(page):
    page.evaluate("document.querySelector('.sheet').append(document.querySelector('pre'))")
    page.evaluate("document.querySelector('.sheet > pre').textContent = 'more\\n'.repeat(40)")
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 2


@pytest.mark.parametrize("paper", PAPERS)
def test_nothing_is_cut_off_on_paper(page, paper):
    width, height = PAPERS[paper]
    page.emulate_media(media="print")
    page.set_viewport_size({"width": int((width - MARGINS) * MM), "height": int(height * MM)})
    assert page.evaluate(TOO_WIDE) == []
    columns = "getComputedStyle(document.querySelector('.sheet-columns')).gridTemplateColumns"
    assert len(page.evaluate(columns).split()) == 2


@pytest.mark.parametrize("width", [1280, 900, 400])
def test_nothing_is_cut_off_on_a_screen(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_asks_nobody_and_has_its_own_letters(page):
    assert page.said == []
    assert page.asked <= {"file", "data"}
    loaded = "[...document.fonts].filter(face => face.status === 'loaded').length"
    assert page.evaluate(loaded) >= 4


def test_both_files_are_made_by_a_button_in_jupyterlab(lab, lab_server):
    path = lab_server.write_notebook(
        "my-lessons/files.ipynb",
        "from helpers.interview.sheet import CheatSheet\n"
        "from helpers.interview.anki import AnkiExport",
        "CheatSheet()",
        "AnkiExport()",
    )
    lab.open(path).run_all()
    folder = lab_server.root / "my-lessons"
    shown = lab.output_of("CheatSheet()")
    expect(shown.locator(".sheet h1")).to_have_text("Scaled dot-product attention")
    button = lab.control("Save as a page to print", within=shown)
    button.focus()
    button.press("Enter")
    expect(shown.get_by_role("status")).to_contain_text("attention-cheat-sheet.html")
    assert (folder / "attention-cheat-sheet.html").read_text(encoding="utf-8") == sheet.page()
    assert lab.page.evaluate(TOO_WIDE) == []

    shown = lab.output_of("AnkiExport()")
    lab.control("Export for Anki", within=shown).click()
    expect(shown.get_by_role("status")).to_contain_text("File → Import")
    assert zipfile.is_zipfile(folder / "attention-interview.apkg")
    lab.assert_quiet()
