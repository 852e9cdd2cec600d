"""Read the numbers typed into a drill; say which are right, and what went wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from helpers.practice.drill import ENTRY, STEPS, Problem, Slip, outputs_from, weights_from

_NUMBER = r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)"
_FRACTION = re.compile(rf"({_NUMBER})(?:\s*/\s*({_NUMBER}))?", re.ASCII)
ACCEPTED = "write a number such as 0.31, 0,31 or 5/16"


def read(text: str) -> float | None:
    """The number somebody typed; None for an empty field.

    Decimal point or comma, a fraction, any minus sign. Raises ValueError for anything else.
    """
    tidy = re.sub(r"[−–‒]", "-", text.strip())
    if not tidy:
        return None
    match = _FRACTION.fullmatch(tidy)
    if match is None or len(tidy) > 40:
        raise ValueError(f"“{_short(text)}” cannot be read: {ACCEPTED}.")
    top, bottom = (float((part or "1").replace(",", ".")) for part in match.groups())
    if bottom == 0:
        raise ValueError(f"“{_short(text)}” divides by zero: {ACCEPTED}.")
    return top / bottom


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 20 else text[:20] + "…"


@dataclass(frozen=True)
class Graded:
    """What is to be said about one step's row.

    marks : per entry "blank", "unreadable", "right", "wrong" or "carried" (it follows from a wrong
    row before it). slips : ids of the slips that fit; more than one when they cannot be told apart.
    sentences : the same in words.
    """

    marks: tuple[str, ...]
    slips: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return set(self.marks) == {"right"}


def grade(problem: Problem, typed: dict[str, Sequence[str]]) -> dict[str, Graded]:
    """Grade everything typed: step → a text for each entry. Steps that are missing are blank."""
    graded: dict[str, Graded] = {}
    numbers: dict[str, list[float | None]] = {}
    for before, step in zip((None, *STEPS), STEPS, strict=False):
        texts = typed.get(step, ("",) * problem.width(step))
        follows, mark = (), "carried"
        if before and None not in numbers[before]:
            follows = _following(problem, step, np.array(numbers[before]))
            mark = "right" if graded[before].is_right else "carried"
        numbers[step], graded[step] = _grade_row(problem, step, texts, follows, mark)
    return graded


def _following(problem: Problem, step: str, before: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows that rightly follow from the row `before`."""
    if step == "scaled":
        return (before / problem.root,)
    if step == "weights":
        return weights_from(before, problem.places)
    return outputs_from((before,), problem.v, problem.places)


def _grade_row(problem, step, texts, follows, if_it_follows):
    numbers, marks, sentences = [], [], []
    for j, text in enumerate(texts):
        name = f"{ENTRY[step]} {j + 1}"
        try:
            number = read(text)
        except ValueError as error:
            numbers.append(None)
            marks.append("unreadable")
            sentences.append(f"? {name}: {error}")
            continue
        numbers.append(number)
        marks.append(_mark(problem, step, j, number, follows, if_it_follows))
    slips, about = _name(problem, step, numbers, marks)
    return numbers, Graded(tuple(marks), slips, (*about, *sentences))


def _mark(problem, step, j, number, follows, if_it_follows) -> str:
    if number is None:
        return "blank"
    if _fits(number, j, problem.accepted[step], problem.places):
        return "right"
    return if_it_follows if _fits(number, j, follows, problem.places) else "wrong"


def _fits(number: float, j: int, rows: Sequence[np.ndarray], places: int) -> bool:
    """Whether `number` is entry j of one of the rows, rounded or not."""
    half = 0.5 * 10**-places + 1e-9
    return any(abs(number - float(row[j])) <= half for row in rows)


def _name(problem, step, numbers, marks) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(ids of the slips that fit, sentences) for a row."""
    entries = [f"{ENTRY[step]} {j + 1}" for j in range(len(marks))]

    def those(mark):
        return [j for j, each in enumerate(marks) if each == mark]

    about = []
    if those("carried"):
        names = ", ".join(entries[j] for j in those("carried"))
        about.append(f"↳ {names}: follows from the row above, which is not right yet.")
    if not those("wrong"):
        if set(marks) == {"right"}:
            about.append("✓ all right.")
        elif those("right"):
            about.append(f"✓ {', '.join(entries[j] for j in those('right'))}: right.")
        return (), tuple(about)
    readable = [j for j, number in enumerate(numbers) if number is not None]
    fitting = _fitting(problem, step, numbers, readable) or _fitting(
        problem, step, numbers, those("wrong")
    )
    names = ", ".join(entries[j] for j in those("wrong"))
    if fitting:
        said = " Or: ".join(slip.sentence for slip in fitting)
    elif all(_is_near(problem, step, j, numbers[j]) for j in those("wrong")):
        said = f"close, but not to {problem.places} decimals. Round only at the end."
    else:
        said = "not right yet."
    about.append(f"✗ {names}: {said}")
    return tuple(slip.id for slip in fitting), tuple(about)


def _fitting(problem, step, numbers, entries) -> list[Slip]:
    """The slips with a row that has all these numbers."""
    return [
        slip
        for slip in problem.slips[step]
        if any(
            all(_fits(numbers[j], j, (row,), problem.places) for j in entries) for row in slip.rows
        )
    ]


def _is_near(problem, step, j, number) -> bool:
    return step != "scores" and abs(number - problem.right[step][j]) <= 3 * 10**-problem.places
