"""The drill: its problems, its grading of what is typed, and its display."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.practice import Drill, drill, drill_words, grading

SEEDS = st.integers(min_value=0, max_value=5_000)


def rounded(row, places):
    return [f"{x:.{places}f}" for x in row]


def everything(problem, places):
    return {step: rounded(problem.right[step], places) for step in drill.STEPS}


def is_solved(problem, typed):
    return all(row.is_right for row in grading.grade(problem, typed).values())


# --- Problems ---


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_a_problem_tells_right_from_every_slip_and_slips_from_each_other(seed):
    problem = drill.make(seed)
    for step, slips in problem.slips.items():
        assert len(slips) >= 2
        for slip in slips:
            for row in {tuple(rounded(row, problem.places)) for row in slip.rows}:
                graded = grading.grade(problem, {step: row})[step]
                assert "wrong" in graded.marks, (step, slip.id)
                assert graded.slips == (slip.id,), (step, slip.id, row)


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_right_answers_are_right_however_they_were_rounded(seed):
    problem = drill.make(seed)
    v = np.array(problem.v)
    for places in (problem.places, problem.places + 1, 9):
        assert is_solved(problem, everything(problem, places))
    scaled = np.array(rounded(problem.right["scaled"], problem.places), dtype=float)
    exps = np.round(np.exp(scaled), problem.places)
    weights = rounded(exps / exps.sum(), problem.places)
    typed = everything(problem, problem.places)
    typed["weights"] = weights
    typed["output"] = rounded(np.array(weights, dtype=float) @ v, problem.places)
    assert is_solved(problem, typed)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_a_problem_is_small_friendly_and_the_same_every_time(seed):
    problem = drill.make(seed)
    assert problem == drill.make(seed)
    assert problem.d_k in (4, 9, 16)
    assert problem.root**2 == problem.d_k
    assert 2 <= problem.T <= 4
    assert problem.places in (2, 3)
    for vector in (*problem.q, *problem.k):
        assert 1 <= np.count_nonzero(vector) <= 3
        assert np.abs(vector).max() <= 4
    assert abs(problem.right["weights"].sum() - 1) < 1e-12


def test_problems_vary_and_some_allow_the_rarer_slips():
    problems = [drill.make(seed) for seed in range(60)]
    assert len(set(problems)) == 60
    assert {problem.d_k for problem in problems} == {4, 9, 16}
    assert {problem.T for problem in problems} == {2, 3, 4}
    ids = {slip.id for problem in problems for step in drill.STEPS for slip in problem.slips[step]}
    assert {"column-of-K", "row-of-V-for-column", "sign-lost", "column-normalised"} <= ids


def test_the_right_row_is_attention():
    from helpers import attention

    for seed in range(20):
        problem = drill.make(seed)
        steps = attention.attention_steps(*map(np.array, (problem.q, problem.k, problem.v)))
        for step in drill.STEPS:
            np.testing.assert_allclose(problem.right[step], getattr(steps, step)[problem.row])


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match="whole number"):
        Drill(seed)


# --- Reading ---


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        (" -2 ", -2),
        ("−2", -2),
        ("+0.5", 0.5),
        ("0,5", 0.5),
        (",5", 0.5),
        (".5", 0.5),
        ("2.", 2),
        ("1/2", 0.5),
        ("-1 / 4", -0.25),
        ("1,5/3", 0.5),
        ("", None),
        ("   ", None),
    ],
)
def test_numbers_are_read_as_people_write_them(text, number):
    assert grading.read(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *("abc", "1.2.3", "1/0", "1/2/3", "nan", "inf", "1e5", "1_0", "0x1", "√2", "50%", "1,2,3"),
        *("--", "/", ".", ",", "٣", "<b>1</b>", "1 2", "9" * 400),
    ],
)
def test_anything_else_is_refused_in_words(text):
    with pytest.raises(ValueError, match=r"write a number such as 0\.31, 0,31 or 5/16"):
        grading.read(text)


@given(st.text())
def test_reading_never_fails_otherwise(text):
    try:
        number = grading.read(text)
    except ValueError:
        return
    assert number is None or np.isfinite(number)


# --- Grading ---


def test_each_entry_is_marked_by_itself():
    problem = drill.make(0)  # scores 1, 3, 1
    graded = grading.grade(problem, {"scores": ["1", "x", ""]})
    assert graded["scores"].marks == ("right", "unreadable", "blank")
    assert "? score 2: “x” cannot be read" in graded["scores"].sentences[1]
    assert graded["output"].marks == ("blank", "blank")


def test_a_row_that_follows_from_a_wrong_one_is_not_called_wrong():
    problem = drill.make(0)
    graded = grading.grade(problem, {"scores": ["2", "3", "1"], "scaled": ["1", "1.5", "0.5"]})
    assert graded["scaled"].marks == ("carried", "right", "right")
    assert "follows from the row above" in graded["scaled"].sentences[0]


def test_one_entry_can_show_a_slip_and_two_that_fit_are_both_named():
    problem = drill.make(0)
    graded = grading.grade(problem, {"scaled": ["1", "", ""]})
    assert graded["scaled"].slips == ("no-scale", "multiplied-by-sqrt-d_k")[:1]
    every = [slip for slip in problem.slips["scaled"] if abs(slip.rows[0][0] - 1) < 0.005]
    assert [slip.id for slip in every] == ["no-scale"]
    double = drill.make(3)
    assert len(grading.grade(double, {"scores": ["17", "", ""]})["scores"].slips) == 0


def test_what_is_close_is_called_close():
    problem = drill.make(0)
    graded = grading.grade(problem, {"weights": ["0.22", "", ""]})
    assert "close" in graded["weights"].sentences[0]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 60), st.lists(st.text(max_size=6), min_size=16, max_size=16))
def test_grading_survives_whatever_is_typed(seed, texts):
    problem = drill.make(seed)
    texts = iter(texts)
    typed = {step: [next(texts) for _ in range(problem.width(step))] for step in drill.STEPS}
    for step, row in grading.grade(problem, typed).items():
        assert len(row.marks) == problem.width(step)


# --- The display ---


def fill(shown, typed):
    for step, texts in typed.items():
        for j, text in enumerate(texts, start=1):
            shown.controls[f"{drill.ENTRY[step]} {j}"].value = text


def test_a_drill_is_solved_without_a_browser():
    shown = Drill(0)
    assert shown.problem == Drill(0).problem
    fill(shown, everything(shown.problem, shown.problem.places))
    shown.controls["check"].click()
    assert shown.state["solved"]
    assert "✓ All 11 numbers are right." in shown.words
    assert shown.controls["score 1"].description == "✓ score 1"


def test_check_says_what_is_missing():
    shown = Drill(0)
    shown.controls["score 1"].value = "1"
    shown.controls["check"].click()
    assert "1 of 11 numbers are right. Still empty: score 2, score 3, scaled 1" in shown.words


def test_a_slip_is_named_as_soon_as_it_is_typed():
    shown = Drill(0)
    shown.controls["scaled 2"].value = "3"
    assert "not divided at all: divide by √4 = 2" in shown.words
    assert shown.state["marks"]["scaled"] == ["blank", "wrong", "blank"]
    assert shown.controls["scaled 2"].description == "✗ scaled 2"


def test_nothing_typed_is_lost():
    shown = Drill(4)
    shown.controls["score 1"].value = "what?"
    shown.controls["check"].click()
    assert shown.controls["back"].disabled
    shown.controls["another"].click()
    assert shown.state["seed"] == 5
    assert shown.problem == drill.make(5)
    assert shown.controls["score 1"].value == ""
    shown.controls["score 1"].value = "7"
    shown.controls["back"].click()
    assert shown.state["seed"] == 4
    assert shown.controls["score 1"].value == "what?"
    assert "“what?” cannot be read" in shown.words
    shown.controls["back"].click()
    assert shown.state["seed"] == 4
    shown.controls["another"].click()
    assert shown.controls["score 1"].value == "7"


def test_the_worked_solution_is_shown_on_request_and_hidden_again():
    shown = Drill(0)
    assert "÷ √4" not in shown.words
    shown.controls["solution"].click()
    assert "3 ÷ √4 = 3 ÷ 2 = 1.5" in shown.words
    assert "≈ 0.58" in shown.words
    shown.controls["another"].click()
    assert not shown.state["solution_shown"]
    shown.controls["back"].click()
    assert shown.state["solution_shown"]
    shown.controls["solution"].click()
    assert not shown.state["solution_shown"]


@pytest.mark.parametrize("seed", range(10))
def test_the_worked_arithmetic_is_true(seed):
    """In "2 ÷ √4 = 2 ÷ 2 = 1", neighbours are equal; around "≈" nearly so."""
    checked = 0
    for step, lines in drill_words.worked(drill.make(seed)):
        near = 0.1 if step == "output" else 0.006
        for piece in re.split("[,;:]", "\n".join(lines).replace("\n", ";")):
            parts = re.split("([=≈])", piece)
            for left, sign, right in zip(parts[:-2:2], parts[1::2], parts[2::2], strict=True):
                if "q" in left or "sum" in left:
                    continue
                values = [arithmetic(left), arithmetic(right)]
                tolerance = 1e-9 if sign == "=" else near * max(1, abs(values[0]) / 5)
                assert abs(values[0] - values[1]) <= tolerance, piece
                checked += 1
    assert checked > 8


def arithmetic(text):
    text = text.translate(str.maketrans("−·÷", "-*/")).replace("e^", "2.718281828**")
    return eval(re.sub(r"√(\d+)", r"(\1**0.5)", text))


def test_the_static_form_has_the_problem_and_the_solution_folded():
    shown = Drill(1)
    before, _ = shown._repr_mimebundle_()
    shown.controls["score 1"].value = "5"
    shown.controls["another"].click()
    after, _ = shown._repr_mimebundle_()
    assert before["text/plain"] == after["text/plain"]
    assert before["text/html"] == after["text/html"]
    assert "Attention by hand, problem 1" in before["text/plain"]
    html = before["text/html"]
    assert html.count("<table") == 3
    assert html.index("</table>") < html.index("<details>")
    assert "÷ √4" not in html[: html.index("<details>")]


def test_a_fault_in_a_callback_is_said_in_words(monkeypatch):
    shown = Drill(0)

    def broken(*args):
        raise RuntimeError("out of order")

    monkeypatch.setattr(grading, "grade", broken)
    shown.controls["check"].click()
    assert "Something failed here, and not through you: RuntimeError" in shown._status.value
