"""From answers to a name: comparison with the catalogue's references, then signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from helpers.doctor.catalogue import Disease
from helpers.doctor.patient import Seen, largest_error
from helpers.doctor.precision import is_half

_CLOSE, _CLOSE_HALF = 2e-3, 6e-2  # how near a reference counts as the same, relative to its size
_JUMPS = 0.02  # share of rows that may differ
_TELLING = 3  # times that, a reference must differ from the right result


def tolerance(seen: Seen, reference: np.ndarray) -> float:
    finite = np.abs(reference[np.isfinite(reference)])
    close = _CLOSE_HALF if is_half(seen.answer.precision) else _CLOSE
    return close * max(1.0, float(finite.max(initial=0)))


def agreeing(seen: Sequence[Seen], diseases: Iterable[Disease]) -> list[Disease]:
    """The diseases that explain every answer."""
    return [d for d in diseases if any(_agrees(reference, seen) for reference in d.references)]


def _agrees(reference, seen: Sequence[Seen]) -> bool:
    """Whether the answers are what `reference` gives, wrong numbers at least once.

    Where it raises, any wrong answer will do: there are many ways to fail.
    """
    telling = False
    for one in seen:
        theirs = result(reference, one)
        if theirs is None:
            if one.right:
                return False
        elif not _is(one, theirs):
            return False
        else:
            telling = telling or (not one.right and _tells(one, theirs))
    return telling


def explains(reference, one: Seen) -> bool:
    """Whether one wrong answer is what `reference` gives."""
    return _agrees(reference, [one])


def _tells(one: Seen, theirs: np.ndarray) -> bool:
    """Whether the mistake makes a difference that rounding cannot make."""
    off = largest_error(theirs, one.truth.output, one.truth.judged)
    return off > _TELLING * tolerance(one, theirs)


def result(reference, one: Seen) -> np.ndarray | None:
    """What a wrong function gives, None if it raises or returns another shape."""
    if reference not in one.wrong_ways:
        one.wrong_ways[reference] = _result(reference, one)
    return one.wrong_ways[reference]


def _result(reference, one: Seen) -> np.ndarray | None:
    with np.errstate(all="ignore"):
        try:
            theirs = np.asarray(reference(one.case))
        except Exception:  # wrong functions may fail in any way
            return None
    return theirs if theirs.shape == one.truth.output.shape else None


def _is(one: Seen, theirs: np.ndarray) -> bool:
    if one.answer.kind != "array":
        return False
    close = tolerance(one, theirs)
    if largest_error(one.answer.array, theirs, one.truth.judged) <= close:
        return True
    # A mistake that jumps (//, argmax) falls on the other side once in many rows.
    with np.errstate(all="ignore"):
        off = ~(np.abs(one.answer.array - theirs).max(axis=-1) <= close) & one.truth.judged
    return bool(off.sum() <= _JUMPS * one.truth.judged.sum())


def errors_against(one: Seen, diseases: Iterable[Disease]) -> dict[str, float]:
    """Identifier -> largest error on this input against the nearest of its references."""
    errors = {}
    if one.answer.kind != "array":
        return errors
    for disease in diseases:
        found = [result(reference, one) for reference in disease.references]
        distances = [
            largest_error(one.answer.array, theirs, one.truth.judged)
            for theirs in found
            if theirs is not None
        ]
        if distances:
            errors[disease.id] = min(distances)
    return errors
