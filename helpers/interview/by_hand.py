"""Short computations that an interviewer asks for: one to three minutes, paper, no calculator.

    problem = make("softmax-weights", seed=4)
    print(problem.prompt)
    grade(problem, ["1/2", "0.33", "0,17"])

Every kind of problem has its generator in `helpers.interview.by_hand_kinds`. Numbers are chosen so
that exponentials come as logarithms of small whole numbers and roots come out, and so that the
usual slips give other numbers than the right way and than each other: then a wrong number names
its slip.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from helpers.interview.by_hand_kinds import GENERATORS, Slip
from helpers.practice.grading import read

KINDS = {id: kind.level for id, kind in GENERATORS.items()}  # id -> level

_TRIES = 2000
_APART = 0.11  # two numbers closer than this, relatively, may be the same when rounded


@dataclass(frozen=True)
class Problem:
    """Something to work out.

    id : its kind, one of KINDS. prompt, worked : text with formulas as `helpers.interview.markup`
    has it. answer : the numbers to type, labels : what each of them is, unit : of all of them, or
    "". tolerance : how far off, relatively, a number may be; besides, it may be rounded to two
    significant digits. With 0 it must be exact. level, lesson, section, topic : as in the bank.
    """

    id: str
    seed: int
    level: str
    minutes: int
    prompt: str
    answer: tuple[float, ...]
    labels: tuple[str, ...]
    unit: str
    tolerance: float
    slips: tuple[Slip, ...]
    worked: tuple[str, ...]
    lesson: str
    section: str
    topic: str


@dataclass(frozen=True)
class Graded:
    """What is to be said about the numbers typed.

    right : for each, True or False, None where nothing (or nothing readable) was typed.
    sentences : the same in words, slips named.
    """

    right: tuple[bool | None, ...]
    sentences: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return all(self.right)


def make(kind: str, seed: int) -> Problem:
    """The problem of that kind with that seed, always the same. Raises ValueError, TypeError."""
    if kind not in GENERATORS:
        raise ValueError(f"no kind of problem is called {kind!r}; there are: {', '.join(KINDS)}.")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed is {seed!r}, but must be a whole number.")
    made = GENERATORS[kind]
    rng = random.Random(f"{kind} {seed}")
    for _ in range(_TRIES):
        draft = made.build(rng)
        rows = [draft.answer, *(slip.values for slip in draft.slips)]
        if all(
            _apart(one, other, made.tolerance) for i, one in enumerate(rows) for other in rows[:i]
        ):
            return Problem(
                kind, seed, made.level, made.minutes, draft.prompt, draft.answer, made.labels,
                made.unit, made.tolerance, draft.slips, draft.worked, made.lesson, made.section,
                made.topic,
            )  # fmt: skip
    raise RuntimeError(f"{kind}: no numbers found whose slips can be told apart.")


def grade(problem: Problem, typed: Sequence[str]) -> Graded:
    """Grade one text for each number of the answer; "" for one that is left open.

    Numbers are written as in lesson 1's drill: 0.31, 0,31 or 5/16; also 1,024 for a thousand and
    more. Raises ValueError if there are more or fewer texts than numbers.
    """
    if isinstance(typed, str) or len(typed) != len(problem.answer):
        raise ValueError(
            f"{problem.id} asks for {len(problem.answer)} numbers ({', '.join(problem.labels)}); "
            f"pass a list of as many texts, not {typed!r}."
        )
    readings, said = [], []
    for label, text in zip(problem.labels, typed):
        try:
            readings.append(_readings(text))
        except ValueError as error:
            readings.append(())
            said.append(f"? {label}: {error}")
    right = tuple(
        any(_fits(number, value, problem.tolerance) for number in numbers) if numbers else None
        for numbers, value in zip(readings, problem.answer)
    )
    return Graded(right, (*_sentences(problem, readings, right), *said))


def _sentences(problem: Problem, readings, right) -> list[str]:
    if all(right):
        return ["✓ right." if len(right) == 1 else "✓ all right."]
    said = [f"✓ {label}: right." for label, mark in zip(problem.labels, right) if mark]
    wrong = [label for label, mark in zip(problem.labels, right) if mark is False]
    if wrong:
        slips = " Or: ".join(slip.sentence for slip in _explaining(problem, readings))
        said.append(f"✗ {', '.join(wrong)}: {slips or 'not right yet.'}")
    return said


def _explaining(problem: Problem, readings) -> list[Slip]:
    """The slips that give every number that was typed."""

    def give(slip, count):
        return all(
            any(_fits(number, value, problem.tolerance) for number in numbers[:count])
            for numbers, value in zip(readings, slip.values)
            if numbers
        )

    # What may be a thousand and more is first taken to be that.
    for count in (1, 2):
        if found := [slip for slip in problem.slips if give(slip, count)]:
            return found
    return []


def _readings(text: str) -> tuple[float, ...]:
    """What the text may mean: 1,024 is a thousand and more, or a little over one."""
    thousands = re.fullmatch(r"\s*([-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?)\s*", text, re.ASCII)
    numbers = []
    if thousands:
        numbers.append(float(thousands[1].replace(",", "").replace("−", "-")))
    if not thousands or (text.count(",") == 1 and "." not in text):
        number = read(text)
        numbers += [] if number is None else [number]
    return tuple(numbers)


def _fits(number: float, value: float, tolerance: float) -> bool:
    """Whether a typed number is that value, or that value rounded to two digits."""
    off = abs(number - value)
    if tolerance == 0 or value == 0:
        return off <= 1e-9 * max(1, abs(value))
    if off <= tolerance * abs(value):
        return True
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    is_rounded = abs(number / unit - round(number / unit)) < 1e-6
    return is_rounded and off <= 0.5 * unit * (1 + 1e-9)


def _apart(one: Sequence[float], other: Sequence[float], tolerance: float) -> bool:
    """Whether two rows of numbers can be told apart however they are rounded."""
    if tolerance == 0:
        return tuple(one) != tuple(other)
    return any(abs(a - b) > _APART * max(abs(a), abs(b)) for a, b in zip(one, other))
