"""The harness itself: a notebook with a slider, in the JupyterLab that readers get."""

import re

import pytest
from playwright.sync_api import expect

SLIDER = """
slider = widgets.IntSlider(value=3, max=9, description="d_k")
words = widgets.HTML()
def say(change):
    words.value = f"d_k is {slider.value}, its square {slider.value ** 2}"
slider.observe(say, "value")
widgets.VBox([slider, words, widgets.Button(description="Go")])
"""


@pytest.fixture
def small(lab_server):
    path = "my-lessons/small.ipynb"
    return lab_server.write_notebook(path, "import ipywidgets as widgets", SLIDER, "print('end')")


def test_a_slider_is_driven_by_keyboard(lab, small):
    cells = lab.open(small).run_all()
    assert [cell["count"] for cell in cells] == [1, 2, 3]
    handle = lab.widget("d_k").get_by_role("slider")
    handle.focus()
    for expected in ("d_k is 4, its square 16", "d_k is 5, its square 25"):
        handle.press("ArrowRight")
        expect(lab.output(2)).to_contain_text(expected)
    expect(lab.control("Go")).to_be_visible()
    expect(lab.output(3)).to_have_text("end")
    lab.assert_quiet()


def test_all_cells_of_a_long_notebook_are_on_the_page(lab, lab_server):
    sources = [f"print('line\\n' * 20, {number})" for number in range(1, 41)]
    lab.open(lab_server.write_notebook("my-lessons/long.ipynb", "# Long", *sources)).run_all()
    for number in (40, 1):
        expect(lab.output(number)).to_contain_text(re.compile(rf"{number}\s*$"))


def test_the_theme_can_be_dark(lab, small):
    background = "getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor"
    lab.open(small, theme="dark")
    assert int(re.search(r"\d+", lab.page.evaluate(background))[0]) < 64
    lab.set_theme("light")
    assert lab.page.evaluate(background) == "rgb(255, 255, 255)"


def test_jupyterlab_asks_nobody_and_asks_nothing(lab, lab_server, small):
    asked = []
    lab.page.on("request", lambda request: asked.append(request.url))
    lab.open(small)
    lab.page.evaluate("jupyterapp.restored")
    assert lab.page.locator(".Toastify__toast").count() == 0, "no question about news"
    assert not [url for url in asked if re.search(r"/lab/api/(news|update)", url)]
    lab.assert_quiet()
    plugin = "@jupyterlab/apputils-extension:notification"
    settings = lab_server.ask(f"/lab/api/settings/{plugin}")["schema"]["properties"]
    assert settings["fetchNews"]["default"] == "false"
    assert settings["checkForUpdates"]["default"] is False


def test_what_goes_wrong_is_seen(lab, lab_server):
    lab.open(lab_server.write_notebook("my-lessons/wrong.ipynb", "1 / 0", "print('after')"))
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        lab.run_all()
    lab.page.evaluate("fetch('http://elsewhere.invalid/x').catch(() => null)")
    assert lab.foreign_hosts == {"elsewhere.invalid"}
    assert lab.errors
