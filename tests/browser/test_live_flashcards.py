"""The flashcards in a real JupyterLab: by key, by click, in two notebooks, over a restart."""

import json
import re

import pytest
from lab import LabPage
from playwright.sync_api import expect

KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"


class Panel:
    """The flashcards of one notebook, as a reader sees them."""

    def __init__(self, lab: LabPage, path: str):
        lab.open(path).run_all()
        self.lab = lab
        self.area = lab.output_of("Flashcards(")
        self.root = self.area.locator(".iv-cards")
        self.front = self.area.locator(".iv-front")
        self.back = self.area.locator(".iv-back")
        self.bar = self.area.locator(".iv-bar")
        expect(self.root).to_have_attribute("role", "group")  # the keyboard listens

    def press(self, key: str):
        self.lab.page.keyboard.press(key)

    def button(self, name: str):
        return self.area.get_by_role("button", name=re.compile(name))

    def click(self, name: str):
        """A click that is no second one of a double click."""
        self.lab.page.wait_for_timeout(500)
        self.button(name).click()

    def done(self, number: int):
        expect(self.area).to_contain_text(f"{number} done in this sitting")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def write(lab_server, folder):
    """Write a notebook with flashcards of one topic; returns its path."""

    def make(name: str) -> str:
        return lab_server.write_notebook(
            f"my-lessons/{name}.ipynb",
            f'import os\nos.environ["ATTENTION_LESSONS_DATA"] = {str(folder)!r}',
            "from helpers.interview.flashcards import Flashcards",
            'Flashcards(topics=["divisors"])',
            "# A cell below",
        )

    return make


def reviews(folder):
    return json.loads((folder / "cards.json").read_text(encoding="utf-8"))["reviews"]


def grades(folder):
    return [each["grade"] for each in reviews(folder) if not each.get("undone")]


def test_by_key_alone(lab, write, folder):
    panel = Panel(lab, write("keys"))
    before = [(cell["type"], cell["source"]) for cell in lab.cells()]
    expect(panel.front).to_contain_text("Scores are divided by")
    expect(panel.front.locator("mjx-container")).to_have_count(2)  # MathJax has set the formulas
    assert not folder.exists()

    panel.area.locator("select").last.focus()
    lab.page.keyboard.press("Shift+Tab")
    lab.page.keyboard.press("Shift+Tab")
    expect(panel.root).to_be_focused()
    place = panel.bar.bounding_box()
    panel.press("3")  # means nothing yet
    panel.press("Space")
    expect(panel.back).to_contain_text("A good answer has")
    expect(panel.button("^3 Good")).to_be_visible()
    assert panel.bar.bounding_box() == place  # nothing has jumped
    panel.press("3")
    panel.done(1)
    expect(panel.back).to_have_count(0)
    expect(panel.front).not_to_contain_text("Scores are divided by")
    expect(panel.area).to_contain_text("Good: that card comes back in 10 min.")
    second = panel.front.inner_text()
    panel.press("Space")
    expect(panel.back).to_be_visible()
    panel.press("1")
    panel.done(2)
    panel.press("u")
    panel.done(1)
    expect(panel.back).to_be_visible()
    expect(panel.front).to_have_text(second, use_inner_text=True)
    panel.press("4")
    panel.done(2)
    panel.press("Enter")
    expect(panel.back).to_be_visible()
    panel.press("2")
    panel.done(3)
    assert grades(folder) == [3, 4, 2]
    assert [each["grade"] for each in reviews(folder)] == [3, 1, 4, 2]
    # No key was JupyterLab's: no cell became a heading, none was added, none deleted.
    assert [(cell["type"], cell["source"]) for cell in lab.cells()] == before
    lab.assert_quiet()


def test_by_click(lab, write, folder):
    panel = Panel(lab, write("clicks"))
    expect(panel.button("^Undo")).to_be_disabled()
    panel.button("^Show the answer").click()
    expect(panel.back).to_contain_text("What weak answers say")
    panel.click("^4 Easy")
    panel.done(1)
    # The clicked button is gone, and the keys are still the panel's.
    expect(panel.root).to_be_focused()
    panel.press("Space")
    expect(panel.back).to_be_visible()
    panel.click("^1 Again")
    panel.done(2)
    panel.button("^Undo").click()
    panel.done(1)
    panel.click("^2 Hard")
    panel.done(2)
    assert grades(folder) == [4, 2]

    level = panel.area.get_by_label("Level")
    level.select_option("expert")
    expect(panel.area.locator(".iv-head")).to_contain_text("expert")
    panel.press("Space")  # the list has given the keys back
    expect(panel.back).to_be_visible()
    level.focus()
    panel.press("1")  # in the list it grades nothing
    panel.press("Escape")
    expect(panel.root).to_be_focused()
    panel.done(2)
    panel.button("^Undo").focus()
    panel.front.click()  # anywhere on the card
    expect(panel.root).to_be_focused()
    panel.press("3")
    panel.done(3)

    panel.press("Space")
    panel.area.get_by_role("link").click()
    lab.page.wait_for_function(
        "() => /0[1-5]_.*ipynb/.test(window.jupyterapp.shell.currentWidget?.context?.path ?? '')"
    )
    lab.assert_quiet()


def test_a_double_click_grades_nothing(lab, write, folder):
    panel = Panel(lab, write("double"))
    # Where the first click was, as soon as the answer is there: a grade.
    panel.root.evaluate(
        """(root) => {
          const grade = root.querySelector(".iv-grade-2");
          const look = () => {
            if (grade.offsetParent === null || grade.disabled) return requestAnimationFrame(look);
            grade.click();
            root.dataset.twice = "yes";
          };
          look();
        }"""
    )
    panel.button("^Show the answer").click()
    expect(panel.root).to_have_attribute("data-twice", "yes")
    expect(panel.back).to_be_visible()
    panel.click("^4 Easy")
    panel.done(1)
    assert grades(folder) == [4]
    lab.assert_quiet()


def test_the_next_question_is_in_view_after_a_long_answer(lab, write):
    panel = Panel(lab, write("scrolls"))
    panel.root.focus()
    panel.press("Space")
    panel.area.get_by_role("link").scroll_into_view_if_needed()
    panel.press("4")
    panel.done(1)
    expect(panel.front).to_be_in_viewport(ratio=1)
    expect(panel.button("^Show the answer")).to_be_in_viewport(ratio=1)


def test_two_notebooks_at_once(lab, lab_server, write, folder):
    one = Panel(lab, write("one"))
    two = Panel(LabPage(lab_server, lab.page.context.new_page()), write("two"))
    for panel, key in ((one, "3"), (two, "4"), (one, "1"), (two, "2")):
        panel.lab.page.bring_to_front()
        panel.root.focus()
        panel.press("Space")
        expect(panel.back).to_be_visible()
        panel.press(key)
        expect(panel.back).to_have_count(0)
    one.done(2)
    two.done(2)
    log = reviews(folder)
    assert [each["grade"] for each in log] == [3, 4, 1, 2]
    # Both began with the same card; after that, each knew what the other had graded.
    assert log[0]["card"] == log[1]["card"]
    two.lab.assert_quiet()
    lab.assert_quiet()


def test_a_restart_of_the_kernel_keeps_progress(lab, write, folder):
    panel = Panel(lab, write("restart"))
    panel.root.focus()
    panel.press("Space")
    expect(panel.back).to_be_visible()
    panel.press("4")
    panel.done(1)
    following = panel.front.inner_text()
    lab.page.evaluate(f"async () => {{ await {KERNEL}.restart(); }}")
    lab.wait_until_idle()
    lab.run_all()
    panel.done(0)
    expect(panel.front).to_have_text(following, use_inner_text=True)
    assert grades(folder) == [4]


def test_a_grade_that_cannot_be_saved(lab, write, folder):
    panel = Panel(lab, write("jammed"))
    folder.write_text("a file where the folder should be")
    panel.root.focus()
    panel.press("Space")
    expect(panel.back).to_be_visible()
    panel.press("3")
    panel.done(1)
    expect(panel.area).to_contain_text("Not saved yet, and kept here: 1 grade.")
    panel.button("^Try again").click()
    expect(panel.area).to_contain_text("Not saved yet")
    folder.unlink()
    panel.button("^Try again").click()
    expect(panel.area).to_contain_text("Everything is saved now.")
    expect(panel.area).not_to_contain_text("Not saved yet")
    assert grades(folder) == [3]
    lab.assert_quiet()
