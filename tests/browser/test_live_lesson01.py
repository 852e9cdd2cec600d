"""Lesson 1 as a reader meets it: JupyterLab in a real browser, everything touched once."""

import re

import pytest
from playwright.sync_api import expect

LESSON = "my-lessons/01_three_tokens_by_hand.ipynb"


@pytest.fixture
def lesson(lab):
    lab.open(LESSON).run_all()
    return lab


def test_the_explorer_is_edited_stepped_and_refuses_nonsense(lesson):
    area = lesson.output_of("AttentionByHand()")
    picture, said = area.locator(".ex-picture svg"), area.locator(".ex-said")
    expect(said).to_contain_text("output 0.767, 0.616")
    expect(picture).to_contain_text("0.384·1 + 0.233·0 + 0.384·1")

    # As the hint says: click, type, Enter. The click selects what is there.
    entry = area.get_by_label("Q, row sat, column 4")
    entry.click()
    lesson.page.keyboard.type("7")
    lesson.page.keyboard.press("Escape")
    assert entry.input_value() == "0"
    lesson.page.keyboard.type("2")
    lesson.page.keyboard.press("Enter")
    expect(said).to_contain_text("scores 2, 3, 2")
    expect(picture.locator("text", has_text="0.452").first).to_be_visible()

    entry.fill("many")
    entry.press("Enter")
    expect(area.get_by_role("alert")).to_contain_text("“many” is not a number")
    expect(said).to_contain_text("scores 2, 3, 2")  # the last good picture stays
    assert entry.input_value() == "many"

    # A second bad entry: only its note floats, the first one is told under the picture.
    other = area.get_by_label("V, row the, column 1")
    other.fill("10")
    other.press("Enter")
    expect(area.get_by_role("alert")).to_have_count(1)
    expect(area.get_by_role("alert")).to_contain_text("10 is outside −9 … 9")
    expect(area).to_contain_text("Q, row sat, column 4: “many” is not a number")

    area.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("output 0.767, 0.616")
    expect(area.get_by_role("alert")).to_have_count(0)

    back, forward = (area.get_by_role("button", name=name) for name in ("◀ Back", "Next ▶"))
    for step in (3, 2, 1):
        back.click()
        expect(said).to_contain_text(f"Step {step} of 4")
    expect(picture).to_contain_text("1·1 + 1·0 + 1·1 + 0·0 = 2")
    expect(picture).not_to_contain_text("0.384")
    expect(back).to_be_disabled()
    forward.click()
    expect(picture).to_contain_text("1 ÷ √4 = 0.5")
    lesson.assert_quiet()


def test_the_explorer_works_by_keyboard_alone(lesson):
    area = lesson.output_of("AttentionByHand()")
    said, cells = area.locator(".ex-said"), len(lesson.cells())
    slider = lesson.control("Step", "slider", within=area)
    slider.focus()
    slider.press("ArrowLeft")
    expect(said).to_contain_text("Step 3 of 4")
    slider.press("b")  # "insert a cell below" everywhere else in JupyterLab
    for name, words in (("no scale", "left undivided"), ("the", "Row the"), ("+ token", ", ")):
        button = area.get_by_role("button", name=name, exact=True)
        button.focus()
        button.press("Space")
        expect(said).to_contain_text(words)
        if name != "+ token":
            expect(button).to_have_attribute("aria-pressed", "true")
    expect(said).to_contain_text("weights 0.534, 0.072, 0.197, 0.197")
    slider.focus()
    slider.press("ArrowRight")
    expect(said).to_contain_text("Step 4 of 4")
    assert len(lesson.cells()) == cells
    lesson.assert_quiet()


@pytest.mark.parametrize("zoom", [1.0, 2.0])
def test_entries_lie_on_their_cells_at_any_zoom(lesson, zoom):
    lesson.page.set_viewport_size({"width": round(1280 / zoom), "height": round(800 / zoom)})
    area = lesson.output_of("AttentionByHand()")
    shown = area.locator(".ex-picture svg").bounding_box()
    assert 620 <= shown["width"] <= 950  # never so small that its numbers cannot be read
    scale = shown["width"] / 950
    entry = area.get_by_label("K, row cat, column 2").bounding_box()
    assert entry["width"] == pytest.approx(40 * scale, abs=1)
    # The number that the picture itself draws there has the same middle.
    drawn = area.locator(".ex-picture svg text", has_text=re.compile("^1$"))
    middles = [
        (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for box in (drawn.nth(i).bounding_box() for i in range(drawn.count()))
    ]
    middle = entry["x"] + entry["width"] / 2, entry["y"] + entry["height"] / 2
    assert any(abs(middle[0] - x) < 3 and abs(middle[1] - y) < 4 for x, y in middles)


def test_questions_exercises_and_drill(lesson):
    area = lesson.output_of('predict("1.1")')
    area.get_by_role("button", name=re.compile("the and sat equally")).click()
    expect(area.get_by_role("status")).to_contain_text("✓")

    quiz = lesson.output_of('quiz("1")')
    for right in ("(2, 8, 10, 10)", "Each row."):
        quiz.get_by_role("button", name=re.compile(re.escape(right))).first.click()
    expect(quiz).to_contain_text(re.compile("2 (of|right|/)"))

    hint = lesson.output_of('hint("1.3")')
    expect(hint).not_to_contain_text("is the length of one query")
    for number in (1, 2):
        hint.get_by_role("button", name=f"Show hint {number} of 4").click()
    expect(hint).to_contain_text("is the length of one query")
    lesson.assert_quiet()


def test_the_readers_copy_hides_what_is_to_be_predicted(lab):
    lab.open(LESSON)
    cells = [cell for cell in lab.cells() if cell["type"] == "code"]
    hidden = [cell for cell in cells if not cell["outputs"]]
    assert any(cell["source"].startswith("AttentionByHand(step=1)") for cell in hidden)
    assert any(cell["source"].startswith("AttentionByHand()") for cell in cells if cell["outputs"])
    # Before it runs, the explorer of section 6 is there as a picture.
    expect(lab.output_of("AttentionByHand()").locator("img")).to_be_visible()
    lab.assert_quiet()
