"""The short computations: right answers in any spelling, every slip named, over many seeds."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from helpers.interview import markup
from helpers.interview.bank import FOLDER, LESSONS, LEVELS
from helpers.interview.by_hand import KINDS, Problem, grade, make
from helpers.interview.by_hand_kinds import Slip, shown

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
SEEDS = range(60)
every_kind = pytest.mark.parametrize("kind", KINDS)


def two_digits(value):
    """The value rounded to two digits that count, as somebody types it."""
    if value == 0:
        return "0"
    places = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):.{max(0, places)}f}"


def numbers_in(text):
    """Every number in plain text, fractions and thousands too."""
    found = re.findall(r"−?\d[\d,]*(?:\.\d+)?", text)
    return [float(each.rstrip(",").replace(",", "").replace("−", "-")) for each in found]


@every_kind
def test_the_right_answer_is_right_however_it_is_written(kind):
    for seed in SEEDS:
        problem = make(kind, seed)
        fractions = [Fraction(value).limit_denominator(5000) for value in problem.answer]
        spellings = [
            [shown(value) for value in problem.answer],
            [repr(value) for value in problem.answer],
            [repr(value).replace(".", ",") for value in problem.answer],
        ]
        if all(abs(float(f) - value) < 1e-9 for f, value in zip(fractions, problem.answer)):
            spellings.append([f"{f.numerator}/{f.denominator}" for f in fractions])
        if problem.tolerance:
            spellings.append([two_digits(value) for value in problem.answer])
        for typed in spellings:
            graded = grade(problem, typed)
            assert graded.is_right, (seed, typed, problem.answer, graded)
            assert len(graded.sentences) == 1


@every_kind
def test_every_slip_is_named(kind):
    for seed in SEEDS:
        problem = make(kind, seed)
        for slip in problem.slips:
            for typed in ([shown(x) for x in slip.values], [two_digits(x) for x in slip.values]):
                if not problem.tolerance and typed != [shown(x) for x in slip.values]:
                    continue
                graded = grade(problem, typed)
                assert not graded.is_right, (seed, slip)
                said = " ".join(graded.sentences)
                assert slip.sentence in said, (seed, slip, said)
                assert "Or:" not in said, (seed, slip, said)


@every_kind
def test_numbers_are_finite_and_the_worked_solution_ends_in_them(kind):
    for seed in SEEDS:
        problem = make(kind, seed)
        for row in (problem.answer, *(slip.values for slip in problem.slips)):
            assert len(row) == len(problem.labels)
            assert all(math.isfinite(value) for value in row)
        last = numbers_in(markup.plain(problem.worked[-1]))
        for value in problem.answer:
            assert any(abs(number - value) <= 1e-3 * abs(value) for number in last), (seed, last)


@every_kind
def test_what_it_says_can_be_shown(kind):
    for seed in SEEDS:
        problem = make(kind, seed)
        sentences = [slip.sentence for slip in problem.slips]
        assert len(set(sentences)) == len(sentences) >= 3
        for text in (problem.prompt, *problem.worked, *sentences):
            plain = markup.plain(text)
            assert "  " not in plain
            assert not re.search(r"[$\\{}]|nan|inf\b(?!\b, if|,| does)|None", plain), plain
            assert not re.search(r"\+ −|\.\d{6}|Fraction|(?<!e)\b1 times", plain), plain
        assert len(problem.worked) >= 2
        assert problem.level == KINDS[kind] in LEVELS
        assert 1 <= problem.minutes <= 3


@every_kind
def test_seeds_vary_and_repeat(kind):
    assert make(kind, 5) == make(kind, 5)
    assert len({make(kind, seed).prompt for seed in SEEDS}) >= 12


@every_kind
def test_it_is_taught_where_it_says(kind):
    problem = make(kind, 0)
    notebook = json.loads((NOTEBOOKS / LESSONS[problem.lesson]).read_text(encoding="utf-8"))
    text = "\n".join(
        "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
    )
    assert problem.section in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    assert list(FOLDER.glob(f"[0-9][0-9]_{problem.topic}.toml"))


def test_there_are_enough_kinds_of_every_level():
    assert len(KINDS) >= 14
    for level in LEVELS:
        assert sum(its == level for its in KINDS.values()) >= 4


# --- Grading ---


def a_problem(answer, slips=(), tolerance=0.01):
    labels = tuple(f"number {i}" for i in range(1, len(answer) + 1))
    return Problem(
        "made-up", 0, "screen", 1, "…", tuple(answer), labels, "", tolerance, tuple(slips),
        ("…",), "1", "Recap", "by_hand",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "typed", "right"),
    [
        (0.3125, "5/16", True), (0.3125, "0,3125", True), (0.3125, " .31 ", True),
        (0.3125, "0.3", False), (0.3125, "0.32", False), (-2.0, "−2", True), (-2.0, "2", False),
        (1024.0, "1,024", True), (1024.0, "1024", True), (1024.0, "1000", True),
        (1024.0, "1.024", False), (1.024, "1,024", True), (20480.0, "20,480.0", True),
        (1048576.0, "1,048,576", True), (1048576.0, "1,048,57", None), (0.0, "0", True),
        (0.0, "0.001", False), (1.0, "1.05", False), (1.0, "1.1", False), (1.0, "0.995", True),
    ],
)  # fmt: skip
def test_one_number(value, typed, right):
    assert grade(a_problem([value]), [typed]).right == (right,)


def test_counts_must_be_exact():
    assert grade(a_problem([136.0], tolerance=0), ["136"]).is_right
    assert grade(a_problem([136.0], tolerance=0), ["137"]).right == (False,)
    assert grade(a_problem([1036.0], tolerance=0), ["1,036"]).is_right


def test_what_is_blank_or_unreadable_is_neither():
    graded = grade(a_problem([1, 2, 3]), ["1", "", "two"])
    assert graded.right == (True, None, None)
    assert not graded.is_right
    assert graded.sentences[0] == "✓ number 1: right."
    assert "number 3" in graded.sentences[1]
    assert "“two”" in graded.sentences[1]
    assert grade(a_problem([1, 2]), ["", ""]).sentences == ()


def test_a_slip_must_explain_all_that_was_typed():
    slip = Slip((2.0, 4.0), "doubled.")
    problem = a_problem([1, 2], [slip])
    assert grade(problem, ["2", "4"]).sentences == ("✗ number 1, number 2: doubled.",)
    assert grade(problem, ["2", ""]).sentences == ("✗ number 1: doubled.",)
    assert grade(problem, ["2", "5"]).sentences == ("✗ number 1, number 2: not right yet.",)
    assert grade(problem, ["1", "9"]).sentences == (
        "✓ number 1: right.",
        "✗ number 2: not right yet.",
    )


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"'algebra'.*scaled-score"):
        make("algebra", 1)
    with pytest.raises(TypeError, match=r"seed is 1\.5"):
        make("scaled-score", 1.5)
    with pytest.raises(ValueError, match="asks for 1 numbers"):
        grade(make("scaled-score", 1), ["1", "2"])
    with pytest.raises(ValueError, match="not '12'"):
        grade(make("output-row", 1), "12")


# --- Some answers, worked out here once more ---


def test_tiles_are_counted_as_a_mask_has_them():
    from helpers.attention import causal_mask
    from helpers.interview.by_hand_kinds import _tiles

    for T, block_q, block_k in ((24, 4, 4), (24, 8, 4), (32, 16, 4), (12, 12, 4)):
        seen = causal_mask(T, T).reshape(T // block_q, block_q, T // block_k, block_k)
        some, every = seen.any(axis=(1, 3)), seen.all(axis=(1, 3))
        assert _tiles(T, block_q, block_k) == (some.sum(), (some & ~every).sum())


def test_a_score_at_the_limit_shown_is_finite_in_float16():
    for seed in range(300):
        problem = make("float16-overflow", seed)
        d_k = int(re.search(r"d_k = (\d+)", problem.prompt)[1])
        entry = int(re.search(r"entry of k is (\d+)", problem.prompt)[1])
        *lines, last = [numbers_in(markup.plain(line)) for line in problem.worked]
        limits = [line[-1] for line in lines]
        assert last == limits
        for terms, a in zip((d_k, math.isqrt(d_k)), limits, strict=True):
            assert terms * entry * a <= 65_504 + 1e-6, (seed, a)
            with np.errstate(over="ignore"):
                assert np.isinf(np.float16(terms * entry * a * 1.002)), (seed, a)


def test_known_answers():
    from helpers.interview import by_hand_kinds as kinds

    class Chosen:
        """In place of random.Random: hands out what it was given."""

        def __init__(self, *choices):
            self.choices = list(choices)

        def choice(self, options):
            return self.choices.pop(0)

        sample = randint = randrange = lambda self, *_: self.choices.pop(0)

    llama = kinds._kv_cache_bytes(Chosen(32, 128, 8, 4, 8))  # Llama 3 8B at 8,192 tokens
    assert llama.answer == (1.0,)
    wall = kinds._score_matrix_bytes(Chosen(32, 8))
    assert wall.answer[0] * 2**20 == 4_294_967_296  # lesson 5's table
    moved = kinds._bytes_moved(Chosen(1, 64, 128))
    assert moved.answer == (8.5, 2.25)  # lesson 5's figure
    init = kinds._initial_score_std(Chosen(64, 1024, "1/50"))
    assert init.answer == pytest.approx((3.277, 0.410), abs=5e-4)  # lesson 2's table
    mean = kinds._entries_with_a_mean(Chosen(64, 1, 1))
    assert mean.answer == (192.0, 128.0)  # lesson 2's table
    scores = kinds._flops_of_scores(Chosen(12, 64, 2))
    assert scores.answer == pytest.approx((6.144,))
    ring = kinds._ring_bytes(Chosen(4, 8, 8, 64))
    assert ring.answer[0] * 2**20 == 3 * 2 * 8 * 2048 * 64 * 2
