"""The drill: its problems, its grading of what is typed, and its display."""

import functools
import math
import re
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.practice import Drill, drill, drill_words, grading

SEEDS = st.integers(min_value=0, max_value=399)
make = functools.cache(drill.make)  # most of the time goes into finding problems


def rounded(row, places):
    return [f"{x:.{places}f}" for x in row]


def everything(problem, places):
    return {step: rounded(problem.right[step], places) for step in drill.STEPS}


def is_solved(problem, typed):
    return all(row.is_right for row in grading.grade(problem, typed).values())


# --- Problems ---


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_a_problem_tells_right_from_every_slip_and_slips_from_each_other(seed):
    problem = make(seed)
    for step, slips in problem.slips.items():
        assert len(slips) >= 2
        for slip in slips:
            for row in {tuple(rounded(row, problem.places)) for row in slip.rows}:
                graded = grading.grade(problem, {step: row})[step]
                assert "wrong" in graded.marks, (step, slip.id)
                assert graded.slips == (slip.id,), (step, slip.id, row)


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_right_answers_are_right_however_they_were_rounded(seed):
    problem = make(seed)
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


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_a_problem_is_small_friendly_and_the_same_every_time(seed):
    problem = make(seed)
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
    problems = [make(seed) for seed in range(60)]
    assert len(set(problems)) == 60
    assert {problem.d_k for problem in problems} == {4, 9, 16}
    assert {problem.T for problem in problems} == {2, 3, 4}
    ids = {slip.id for problem in problems for step in drill.STEPS for slip in problem.slips[step]}
    assert {"another-query", "not-normalised", "divided-by-2"} <= ids
    assert {"column-of-K", "row-of-V-for-column", "sign-lost", "column-normalised"} <= ids


def test_the_right_row_is_attention():
    from helpers import attention

    for seed in range(20):
        problem = make(seed)
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
    assert "follows from the step above" in graded["scaled"].sentences[0]


def test_one_entry_can_show_a_slip_and_two_that_fit_are_both_named():
    problem = drill.make(0)
    graded = grading.grade(problem, {"scaled": ["1", "", ""]})
    assert graded["scaled"].slips == ("no-scale", "multiplied-by-sqrt-d_k")[:1]
    every = [slip for slip in problem.slips["scaled"] if abs(slip.rows[0][0] - 1) < 0.005]
    assert [slip.id for slip in every] == ["no-scale"]
    double = drill.make(3)
    assert len(grading.grade(double, {"scores": ["17", "", ""]})["scores"].slips) == 0


def graded(seed, step, *texts):
    return grading.grade(make(seed), {step: texts})[step]


def test_only_what_early_rounding_can_give_is_called_close():
    """Problem 1: unrounded weights give 3.146, those rounded to 2 decimals 3.18."""
    assert graded(1, "output", "", "3.15").marks == ("blank", "right")
    assert graded(1, "output", "", "3.18").marks == ("blank", "right")
    for some_rounded in ("3.16", "3.17"):
        row = graded(1, "output", "", some_rounded)
        assert row.slips == ("rounded-early",)
        assert "close" in row.sentences[0]
    for slip in ("3.12", "3.13", "3.139", "3.19", "3.20"):
        row = graded(1, "output", "", slip)
        assert row.slips == ()
        assert row.sentences == ("✗ output 2: not right yet.",)
    assert graded(0, "weights", "0.22", "", "").sentences == ("✗ weight 1: not right yet.",)
    assert graded(1, "scores", "-2", "", "", "").sentences == ("✗ score 1: not right yet.",)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.data())
def test_rounding_any_of_the_numbers_on_the_way_is_never_called_a_plain_mistake(seed, data):
    problem = make(seed)
    places = problem.places

    def some_rounded(row):
        which = data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row)))
        return np.where(which, np.round(row, places), row)

    exps = some_rounded(np.exp(some_rounded(problem.right["scaled"])))
    row = grading.grade(problem, {"weights": rounded(exps / exps.sum(), places)})["weights"]
    assert "not right yet" not in str(row.sentences)
    output = some_rounded(problem.right["weights"]) @ np.array(problem.v)
    row = grading.grade(problem, {"output": rounded(output, places)})["output"]
    assert "not right yet" not in str(row.sentences)


@pytest.mark.parametrize(
    ("seed", "step", "texts", "slip", "words"),
    [  # problem 7 divides by √9 and asks for 2 decimals
        (7, "scaled", ("1.5", "1", "0.5"), "divided-by-2", "d_k is 9 here, so divide by √9 = 3"),
        (7, "weights", ("0.51", "0.31", "0.19"), "divided-by-2", "divided by 2, which is √4"),
        (7, "output", ("2.39", "1.80", "2.29"), "divided-by-2", "divided by 2, which is √4"),
        (7, "scaled", ("1", "0.7", "0.3"), "too-few-decimals", "2 decimals are asked for"),
        (1, "weights", ("0.2", "", "", ""), "too-few-decimals", "2 decimals are asked for"),
        (7, "scaled", ("", "0,6", ""), "too-few-decimals", "2 decimals are asked for"),
        (1, "output", ("1.73", "3.1"), "too-few-decimals", "2 decimals are asked for"),
        (7, "scaled", ("1", "0.66", ""), "cut-off", "round to 2 decimals"),
        (1, "scores", ("1", "−1", "−1", "0"), "swapped", "check the order"),
        (1, "output", ("3.15", "1.73"), "swapped", "right numbers in the wrong places"),
        (1, "weights", (".43", ".16", ".16", ""), "swapped", "check the order"),
        (1, "weights", ("0.61", "0.61", "1.65", "1"), "not-normalised", "divide each by the sum"),
        (7, "scores", ("-2", "0", "1"), "another-query", "take row 1"),
        (7, "weights", ("0.18", "0.34", "0.48"), "another-query", "take row 1"),
        (7, "output", ("2.31", "2.17", "2.99"), "another-query", "take row 1"),
    ],
)
def test_a_slip_gets_its_name(seed, step, texts, slip, words):
    row = graded(seed, step, *texts)
    assert row.slips == (slip,)
    assert len(row.sentences) == 1
    assert words in row.sentences[0]


def test_too_few_decimals_in_one_entry_say_nothing_about_another():
    row = graded(1, "output", "1.7", "9")
    assert row.slips == ("too-few-decimals",)
    assert row.sentences == (
        "✗ output 1: right as far as it goes, but 2 decimals are asked for.",
        "✗ output 2: not right yet.",
    )
    assert graded(7, "scaled", "1", "2/3", "1/3").is_right  # a fraction has no decimals to count


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.randoms(use_true_random=False))
def test_right_numbers_in_any_other_order_are_called_swapped(seed, draw):
    problem = make(seed)
    for step in drill.STEPS:
        row = rounded(problem.right[step], problem.places)
        shuffled = draw.sample(row, len(row))
        said = grading.grade(problem, {step: shuffled})[step]
        off = np.abs(np.array(row, dtype=float) - np.array(shuffled, dtype=float))
        near = off.max() < 1.5 * 10**-problem.places  # it could as well be rounding
        if not said.is_right and not near:
            assert said.slips == ("swapped",)


@pytest.mark.parametrize(
    ("text", "count"),
    [("2.3", 1), ("−2,33 ", 2), ("2", 0), ("2.", 0), (".5", 1), ("1/3", None), ("0.5/2", None)],
)
def test_decimals_are_counted_as_typed(text, count):
    assert grading.decimals(text) == count


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 60), st.lists(st.text(max_size=6), min_size=16, max_size=16))
def test_grading_survives_whatever_is_typed(seed, texts):
    problem = make(seed)
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
    assert "✓ All 11 numbers are right." in shown.words
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
    assert "0 of 11 numbers are right." in shown.words
    assert "not divided at all: divide by √4 = 2" in shown.words
    assert shown.state["marks"]["scaled"] == ["blank", "wrong", "blank"]
    assert shown.controls["scaled 2"].description == "✗ scaled 2"


def test_a_row_gets_a_red_edge_for_what_is_wrong_only():
    shown = Drill(0)
    note = shown._sheet.notes["scaled"]
    for text, edge in (("0.5", ""), ("x", "abh-no"), ("1", "abh-no"), ("1/2", "")):
        shown.controls["scaled 1"].value = text
        assert re.findall("abh-(?:yes|no)\\b", note.value) == ([edge] if edge else [])
    for j, text in enumerate(("0.5", "1.5", "0.5"), start=1):
        shown.controls[f"scaled {j}"].value = text
    assert "abh-yes" in note.value


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
    assert "4.482 ÷ 7.780 ≈ 0.576 ≈ 0.58" in shown.words
    shown.controls["another"].click()
    assert not shown.state["solution_shown"]
    shown.controls["back"].click()
    assert shown.state["solution_shown"]
    shown.controls["solution"].click()
    assert not shown.state["solution_shown"]


def test_the_task_says_what_one_needs():
    words = Drill(1).words
    assert "Work out row 4 with pencil and a calculator for eˣ" in words
    assert "with 2 decimals where they do not end sooner" in words


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_the_worked_arithmetic_is_true_as_printed(first):
    """Beside = numbers are equal; ≈ stands before its left side rounded, and only if it was."""
    for seed in range(first, first + 50):
        problem = make(seed)
        worked = dict(drill_words.worked(problem))
        ends = {step: [check_line(line) for line in worked[step]] for step in drill.STEPS}
        assert numbers_at(ends["scores"], 1) == list(problem.right["scores"])
        assert all(len(lines) >= 2 for lines in ends.values())
        # The last number of each line is the answer, rounded as asked.
        for step, skipped in (("scaled", 0), ("weights", 2), ("output", 0)):
            answers = [float(end) for end in ends[step][skipped:] if end is not None]
            answers = np.round(answers, problem.places)
            assert list(answers) == list(np.round(problem.right[step], problem.places)), seed


def numbers_at(ends, left_out):
    assert all(end is None for end in ends[len(ends) - left_out :])
    return [float(end) for end in ends[: len(ends) - left_out]]


def check_line(line):
    """The last number of a line whose every = and ≈ is true; None for a remark in brackets."""
    if line.startswith("("):
        return None
    for piece in re.sub("^[^:=≈]*:", "", line).split(", "):
        parts = re.split("([=≈])", piece)
        for left, sign, right in zip(parts[:-2:2], parts[1::2], parts[2::2], strict=True):
            if left.startswith("q"):
                continue
            value, result = arithmetic(left), arithmetic(right)
            assert (value == result) == (sign == "="), line
            if sign == "≈":
                text = right.strip().replace("−", "-")
                precise = Decimal(value.numerator) / Decimal(value.denominator)
                assert precise.quantize(Decimal(text), ROUND_HALF_EVEN) == Decimal(text), line
        assert len(parts) > 1, line
    return result


def arithmetic(text):
    """The exact value of "0.157·4 + (−1)·2", "2 ÷ √9" or, to 16 digits, "e^(2/3)"."""
    power = re.fullmatch(r"\s*e\^\(([−\d./]+)\)\s*", text)
    if power:
        exponent = Fraction(power[1].replace("−", "-"))
        return Fraction(math.exp(exponent))
    text = re.sub(r"√(\d+)", lambda found: str(math.isqrt(int(found[1]))), text)
    text = re.sub(r"\d+(?:\.\d+)?", r"Fraction('\g<0>')", text)
    return eval(text.translate(str.maketrans("−·÷", "-*/")), {"Fraction": Fraction})


def test_the_worked_solution_says_what_rounded_weights_give():
    told = 0
    for seed in range(60):
        problem = make(seed)
        *_, remark = dict(drill_words.worked(problem))["output"]
        early = np.round(problem.right["weights"], problem.places) @ np.array(problem.v)
        differs = rounded(early, problem.places) != rounded(problem.right["output"], problem.places)
        assert remark.startswith("(right too") == differs
        if differs:
            told += 1
            texts = re.findall(r"= ([\d.]+)", remark)
            assert texts == rounded(early, problem.places)
            assert grading.grade(problem, {"output": texts})["output"].is_right
    assert told > 10


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
