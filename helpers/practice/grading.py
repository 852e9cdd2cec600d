"""Read the numbers typed into a drill; say which are right, and what went wrong with the others."""

from __future__ import annotations

import math
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


def decimals(text: str) -> int | None:
    """How many decimals somebody typed; None where that says nothing: a fraction, no number."""
    match = re.fullmatch(r"[^/.,]*(?:[.,](\d*))?", text.strip(), re.ASCII)
    return None if match is None else len(match.group(1) or "")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 20 else text[:20] + "…"


@dataclass(frozen=True)
class Graded:
    """What is to be said about one step's row.

    marks : per entry "blank", "unreadable", "right", "wrong" or "carried" (it follows from a wrong
    row before it). slips : ids of the slips that fit; more than one when they cannot be told apart,
    or when they explain different entries.
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


def _following(problem: Problem, step: str, before: np.ndarray) -> Sequence[np.ndarray]:
    """The rows that rightly follow from the row `before`."""
    if step == "scaled":
        return (before / problem.root,)
    if step == "weights":
        return weights_from(before, problem.places)
    return outputs_from(before[None], problem.v, problem.places)


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
    slips, about = _name(problem, step, texts, numbers, marks)
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


def _name(problem, step, texts, numbers, marks) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(ids of the slips that fit, sentences) for a row."""

    def those(mark):
        return [j for j, each in enumerate(marks) if each == mark]

    def names(entries):
        return ", ".join(f"{ENTRY[step]} {j + 1}" for j in entries)

    about = []
    if those("carried"):
        about.append(
            f"↳ {names(those('carried'))}: follows from the step above, which is not right yet."
        )
    if not those("wrong"):
        if set(marks) == {"right"}:
            about.append("✓ all right.")
        elif those("right"):
            about.append(f"✓ {names(those('right'))}: right.")
        return (), tuple(about)
    slips: list[str] = []
    for entries, found in _explained(problem, step, texts, numbers, those("wrong")):
        slips += [slip.id for slip in found]
        said = " Or: ".join(slip.sentence for slip in found) or "not right yet."
        about.append(f"✗ {names(entries)}: {said}")
    return tuple(slips), tuple(about)


def _explained(problem, step, texts, numbers, wrong) -> list[tuple[list[int], list[Slip]]]:
    """The wrong entries, in groups, each with the slips that explain it."""
    readable = [j for j, number in enumerate(numbers) if number is not None]
    all_typed = _swapped(problem, step, numbers, wrong) + _fitting(problem, step, numbers, readable)
    shorts = [j for j in wrong if _is_short(problem, step, j, numbers[j], decimals(texts[j]))]
    if shorts == wrong:
        also = all_typed if len(readable) > 1 else []  # one short number fits too much
        return [(wrong, [_too_few(problem), *also])]
    if all_typed:
        return [(wrong, all_typed)]
    others = [j for j in wrong if j not in shorts]
    found = _fitting(problem, step, numbers, others) or _rounding(problem, step, numbers, others)
    return [(shorts, [_too_few(problem)]), (others, found)] if shorts else [(others, found)]


def _fitting(problem, step, numbers, entries) -> list[Slip]:
    """The slips with a row that has all these numbers."""
    return [
        slip
        for slip in problem.slips[step]
        if any(
            all(_fits(numbers[j], j, (row,), problem.places) for j in entries) for row in slip.rows
        )
    ]


def _swapped(problem, step, numbers, entries) -> list[Slip]:
    """The slip of right numbers in each other's places."""
    typed = sorted(numbers[j] for j in entries)
    for row in problem.accepted[step] if len(entries) > 1 else ():
        right = np.sort(row[entries])
        if all(_fits(number, i, (right,), problem.places) for i, number in enumerate(typed)):
            return [Slip("swapped", "right numbers in the wrong places: check the order.", ())]
    return []


def _too_few(problem) -> Slip:
    sentence = f"right as far as it goes, but {problem.places} decimals are asked for."
    return Slip("too-few-decimals", sentence, ())


def _is_short(problem, step, j, number, typed) -> bool:
    """Whether the right number, rounded or cut off to the decimals `typed`, too few, is this."""
    return typed in range(1, problem.places) and (
        any(abs(number - row[j]) <= 0.5 * 10**-typed + 1e-9 for row in problem.accepted[step])
        or _is_cut(problem, step, j, number, typed)
    )


def _is_cut(problem, step, j, number, places) -> bool:
    cut = math.trunc(problem.right[step][j] * 10**places) / 10**places
    return abs(number - cut) < 1e-9


def _rounding(problem, step, numbers, entries) -> list[Slip]:
    """What went wrong in rounding, if nothing else did."""
    places = problem.places
    if step == "scores":
        return []
    if all(_is_cut(problem, step, j, numbers[j], places) for j in entries):
        return [Slip("cut-off", f"cut off, not rounded: round to {places} decimals.", ())]
    rows = problem.half_rounded.get(step, ())
    if all(_fits(numbers[j], j, rows, places) for j in entries):
        sentence = (
            f"close. It comes out when some numbers on the way are rounded to {places} decimals "
            "and others are not: round only at the end."
        )
        return [Slip("rounded-early", sentence, ())]
    return []
