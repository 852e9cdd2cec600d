"""What a reader's function gave back, whatever it was, in a form that can be compared."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from helpers import watchdog

Argument = np.ndarray | int | float  # what an exercise hands to a function

_MOST_ENTRIES = 100_000  # a result larger than this is judged by its shape alone
_TOLERANCE = (1e-6, 1e-9)  # relative, absolute
_TOLERANCE_FLOAT32 = (1e-3, 1e-5)  # large scores lose digits in the exponential


@dataclass(frozen=True)
class Answer:
    """One call's result.

    kind : "array" (real numbers), "none", "other" (something else, told by `words`), "raised"
        (told by `fault`), "unfinished" (it ran out of time).
    array : the numbers as float64; None where there are too many to look at.
    itemsize : bytes in one number as it came: 4 for float32.
    changed : names of the inputs that the call modified.
    printed : the start of what it printed.
    warned : what NumPy would have warned of, such as "divide by zero".
    """

    kind: str
    array: np.ndarray | None = None
    shape: tuple[int, ...] = ()
    itemsize: int = 8
    words: str = ""
    fault: watchdog.Fault | None = None
    ended: str = "returned"
    changed: tuple[str, ...] = ()
    printed: str = ""
    warned: tuple[str, ...] = ()


def copies(args: Sequence[Argument]) -> list[Argument]:
    """The arguments for one call: arrays copied, as a function may modify them."""
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


def answer(fn: Callable, args: Sequence[Argument], names: Sequence[str], seconds: float) -> Answer:
    """Call `fn` on copies of `args` under the watchdog and read what comes back."""
    given = copies(args)
    warned = set()

    def call():
        with np.errstate(
            divide="call", over="call", invalid="call", call=lambda kind, _: warned.add(kind)
        ):
            return read(fn(*given))

    outcome = watchdog.run(call, seconds)
    if outcome.ended == "raised":
        parts = {"kind": "raised", "fault": outcome.fault}
    elif outcome.in_time:
        parts = outcome.value
    else:
        parts = {"kind": "unfinished"}
    return Answer(
        **parts,
        ended=outcome.ended,
        changed=changed(names, args, given),
        printed=outcome.printed,
        warned=tuple(sorted(warned)),
    )


def changed(names: Sequence[str], before, after) -> tuple[str, ...]:
    """Names of the arguments that a call modified."""
    return tuple(
        name
        for name, old, new in zip(names, before, after, strict=True)
        if np.shape(old) != np.shape(new) or not np.array_equal(old, new, equal_nan=True)
    )


def read(value: object) -> dict:
    """`value` as the fields of an Answer. Runs under the watchdog: reading may run their code."""
    if value is None:
        return {"kind": "none"}
    if hasattr(value, "close") and hasattr(value, "cr_await"):
        value.close()  # else Python complains later that it was never awaited
    if not isinstance(value, np.ndarray | list | tuple | numbers.Number) and not hasattr(
        value, "__array__"
    ):
        return {"kind": "other", "words": f"an object of type {type(value).__name__}"}
    try:
        array = np.asarray(value)
    except ValueError:
        return {"kind": "other", "words": "a list whose rows differ in length"}
    if array.size > _MOST_ENTRIES:
        return {"kind": "array", "shape": array.shape}
    itemsize = array.dtype.itemsize
    if array.dtype.kind == "c":
        return {"kind": "other", "words": "an array of complex numbers"}
    if array.dtype.kind == "O":
        try:
            array, itemsize = array.astype(np.float64), 8
        except (TypeError, ValueError):
            return {"kind": "other", "words": "an array of objects that are not numbers"}
    if array.dtype.kind not in "fiub":
        return {
            "kind": "other",
            "words": f"an array of type {array.dtype.name.rstrip('0123456789')}",
        }
    if array.dtype.kind != "f":
        itemsize = 8
    return {
        "kind": "array",
        "array": np.array(array, dtype=np.float64),
        "shape": array.shape,
        "itemsize": itemsize,
    }


def close(actual: Answer, expected: np.ndarray) -> np.ndarray | None:
    """Where the answer's entries are right; None when it has no entries of that shape.

    float32 may be coarser than float64; float16 may not: it cannot tell right from wrong.
    """
    if actual.array is None or actual.shape != expected.shape:
        return None
    rtol, atol = _TOLERANCE_FLOAT32 if actual.itemsize == 4 else _TOLERANCE
    return np.isclose(actual.array, expected, rtol=rtol, atol=atol, equal_nan=True)


def right(actual: Answer, expected: np.ndarray) -> bool:
    """Whether the answer is the expected array."""
    where = close(actual, expected)
    return where is not None and bool(where.all())


def same(a: Answer, b: Answer) -> bool:
    """Whether two answers to the same input agree (both may have failed)."""
    if a.kind != b.kind or a.shape != b.shape or a.words != b.words:
        return False
    if a.array is None or b.array is None:
        return True
    coarse, fine = sorted((a, b), key=lambda each: each.itemsize)
    return right(coarse, fine.array)
