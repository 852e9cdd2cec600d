"""Lesson 6 as a reader meets it: a round by keyboard alone, and every other panel touched once."""

import json
import re

import pytest
from playwright.sync_api import expect

from helpers.interview.bank import bank
from helpers.interview.debug import cases

LESSON = "my-lessons/06_interview_room.ipynb"


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def room(lab, lab_server, data):
    """A notebook with the cells that a test names, its progress in a folder of its own."""

    def open_with(*sources):
        before = f"import os\nos.environ['ATTENTION_LESSONS_DATA'] = {str(data)!r}"
        path = lab_server.write_notebook(
            "my-lessons/room.ipynb", f"{before}\nfrom helpers import interview", *sources
        )
        lab.open(path).run_all()
        return lab

    return open_with


MOCK = 'interview.MockInterview("onsite", 10, seed=1)'


def rounds_in(data):
    files = sorted((data / "rounds").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def planned(data, *steps):
    """A round that has these steps, to be gone on with."""
    round = {
        "format": 1,
        "started": "2026-01-01T12:00:00+00:00",
        "level": "onsite",
        "minutes": 10,
        "steps": [{"kind": kind, "ref": ref, "minutes": 2.0} for kind, ref in steps],
        "entries": [],
        "finished": False,
        "owner": "",
    }
    (data / "rounds").mkdir(parents=True)
    (data / "rounds" / "20260101T120000-test.json").write_text(json.dumps(round))


def test_a_round_by_keyboard_alone(room, data):
    question = bank()["why-not-d-k"]
    point = next(each.point for each in question.follow_ups if each.ask) + 1
    planned(data, ("question", question.id), ("by-hand", "scaled-score:1"),
            ("kernel", cases()[0].id), ("code", "6.8"))  # fmt: skip
    lab = room(MOCK)
    keys = lab.page.keyboard
    area = lab.output_of("interview.MockInterview")
    title, panel = area.locator(".abh-title").first, area.locator(".abh-panel")
    area.get_by_role("button", name="Go on with it").focus()
    keys.press("Enter")
    expect(title).to_contain_text("Question · step 1")
    expect(panel).to_be_focused()
    expect(area.get_by_role("timer")).to_contain_text(re.compile(r"9:\d\d left|10:00 left"))

    keys.press("t")
    field = area.locator("textarea").first
    expect(field).to_be_focused()
    keys.type("root d_k, and b for below")  # "b" adds a cell everywhere else in JupyterLab
    keys.press("Escape")
    expect(panel).to_be_focused()
    keys.press(" ")
    expect(area).to_contain_text("Tick what your answer had")
    keys.press(str(point))
    expect(area.get_by_role("checkbox").nth(point - 1)).to_be_checked()
    keys.press("n")

    expect(title).to_contain_text("Follow-up · step 2")
    expect(area).to_contain_text("Your answer had: “")
    keys.press(" ")
    keys.press("3")
    expect(area).to_contain_text("Noted: had it")
    keys.press("p")
    expect(area.get_by_role("timer")).to_contain_text("paused")
    expect(area).to_contain_text("The question is covered")
    keys.press("p")
    expect(area).to_contain_text("Your answer had: “")
    keys.press("n")

    expect(title).to_contain_text("By hand · step 3")
    number = area.get_by_role("textbox").first
    expect(number).to_be_focused()  # what is to be filled in comes first
    keys.type("12345")
    keys.press("Enter")
    expect(area).to_contain_text("✗")
    keys.press("Escape")
    keys.press("s")
    keys.press("s")

    expect(title).to_contain_text("Read a kernel · step 4")
    keys.press(" ")
    for letter in "abcd":
        keys.press(letter)
        expect(
            area.get_by_role("button", name=re.compile(f"^[✓✗] {letter.upper()}"))
        ).to_be_visible()
    expect(area).to_contain_text("What the doctor says")
    keys.press("n")

    expect(title).to_contain_text("Whiteboard · step 5")
    code = area.locator(".iv-code textarea")
    expect(code).to_be_focused()
    keys.press("Control+End")
    keys.type("if True:")
    keys.press("Enter")  # keeps the indentation, one step deeper
    keys.type("return weights - weights")
    assert "    if True:\n        return weights - weights" in code.input_value()
    keys.press("Control+Enter")
    expect(area).to_contain_text("✗ not yet")
    keys.press("Escape")
    keys.press("n")

    expect(title).to_have_text("Report")
    expect(area).to_contain_text("Read next, the weakest first")
    (kept,) = rounds_in(data)
    assert kept["finished"]
    assert kept["entries"][0]["answer"]["written"] == "root d_k, and b for below"
    assert kept["entries"][2]["skipped"]
    assert "return weights - weights" in kept["entries"][4]["answer"]["code"]
    keys.press("n")
    expect(area).to_contain_text("Your rounds")
    assert [cell["type"] for cell in lab.cells()] == ["code"] * 2
    lab.assert_quiet()


def test_a_round_goes_on_after_the_kernel_was_restarted(room, data):
    lab = room(MOCK)
    area = lab.output_of("interview.MockInterview")
    area.get_by_role("button", name="Start").click()
    area.locator("textarea").first.fill("half an answer")
    expect(area.locator("textarea").first).to_have_value("half an answer")
    lab.page.wait_for_function("() => true")
    lab.wait_until_idle()
    lab.server.shut_down_kernels()  # as a crash would
    lab.open("my-lessons/room.ipynb").run_all()
    area = lab.output_of("interview.MockInterview")
    expect(area).to_contain_text("A round is not finished: onsite, 10 minutes")
    area.get_by_role("button", name="Go on with it").click()
    expect(area.locator("textarea").first).to_have_value("half an answer")
    assert len(rounds_in(data)) == 1
    lab.assert_quiet()


def test_a_panel_whose_kernel_is_gone_says_so(room):
    lab = room(MOCK)
    area = lab.output_of("interview.MockInterview")
    area.get_by_role("button", name="Start").click()
    field = area.locator("textarea").first
    field.fill("before")
    lab.wait_until_idle()
    lab.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    expect(area.get_by_role("alert")).to_contain_text("The kernel has stopped", timeout=30_000)
    expect(field).not_to_be_editable()
    expect(field).to_have_value("before")
    expect(area.get_by_role("timer")).to_contain_text("stopped")


def test_the_code_field_can_be_left_by_keyboard(room, data):
    planned(data, ("code", "6.8"))
    lab = room(MOCK)
    area = lab.output_of("interview.MockInterview")
    area.get_by_role("button", name="Go on with it").click()
    code = area.locator(".iv-code textarea")
    expect(code).to_be_focused()
    assert "softmax_backward" in code.get_attribute("aria-label")
    before = code.input_value()
    lab.page.keyboard.press("Tab")
    expect(code).not_to_have_value(before)  # four spaces
    lab.page.keyboard.press("Escape")
    run = area.get_by_role("button", name="Run the checker")
    for _ in range(5):
        lab.page.keyboard.press("Tab")
        if run.evaluate("button => button === document.activeElement"):
            break
    expect(run).to_be_focused()
    lab.assert_quiet()


def test_a_round_by_mouse(room):
    lab = room(MOCK)
    area = lab.output_of("interview.MockInterview")
    area.get_by_role("button", name="screen").click()
    area.get_by_role("button", name="45 minutes").click()
    area.get_by_role("button", name="Start").click()
    expect(area.get_by_role("timer")).to_contain_text(re.compile("4[45]:"))
    area.get_by_role("button", name="Next", exact=True).click()
    expect(area).to_contain_text("tick yours first, or skip")
    area.get_by_role("button", name="Show what a good answer has").click()
    area.get_by_role("checkbox").nth(1).check()
    expect(area).to_contain_text("1 of ")
    area.get_by_role("button", name="Next", exact=True).click()
    expect(area.locator(".abh-title").first).to_contain_text("step 2")
    area.get_by_role("button", name="Pause").click()
    area.get_by_role("button", name="Go on").click()
    area.get_by_role("button", name="Skip").click()
    expect(area.locator(".abh-title").first).to_contain_text("step 3")
    area.get_by_role("button", name="End the round").click()
    area.get_by_role("button", name="Really end it").click()
    expect(area).to_contain_text("not reached")
    area.get_by_role("button", name="Another round").click()
    expect(area.get_by_role("button", name="Start")).to_be_visible()
    lab.assert_quiet()


def test_the_other_panels(room):
    lab = room('interview.Ask("why-not-d-k")', "interview.Library()", "interview.ByHand()",
               "interview.DebugThis()")  # fmt: skip
    area = lab.output_of("interview.Ask")
    area.get_by_role("button", name="Start a minute").click()
    expect(area.get_by_role("timer")).to_contain_text(re.compile("0:5[0-9] left|1:00 left"))
    area.get_by_role("button", name="Show what a good answer has").click()
    expect(area.locator("mjx-container").first).to_be_visible()  # formulas are set

    area = lab.output_of("interview.Library")
    expect(area.get_by_role("status").first).to_contain_text("questions")
    area.get_by_label("Words").fill("bfloat16")
    expect(area.get_by_role("status").first).to_contain_text("all topics searched")
    area.locator("summary").first.click()
    expect(area).to_contain_text("A good answer has")
    area.get_by_label("Words").fill("")
    area.get_by_label("Topic").select_option(label="The variance argument")
    area.get_by_label("Level").select_option(label="expert")
    expect(area.locator("summary").first).to_contain_text("expert")
    expect(area.get_by_role("status").first).not_to_contain_text("all topics searched")

    area = lab.output_of("interview.ByHand")
    area.get_by_role("button", name="Show the solution").click()
    expect(area).to_contain_text("Worked out")
    area.get_by_role("button", name="Next").click()
    expect(area).to_contain_text("By hand · 2 of")
    area.get_by_role("button", name="Back").click()
    expect(area).to_contain_text("Worked out")

    area = lab.output_of("interview.DebugThis")
    area.get_by_role("button", name="Show four diagnoses").click()
    for letter in "ABCD":
        area.get_by_role("button", name=re.compile(f"^{letter} ")).click()
    expect(area).to_contain_text("What the doctor says")
    lab.assert_quiet()


def test_the_lesson_runs_untouched(lab, lab_server):
    cells = lab.open(LESSON).run_all()
    assert all(cell["outputs"] for cell in cells[2:] if cell["type"] == "code")
    lab.assert_quiet()
