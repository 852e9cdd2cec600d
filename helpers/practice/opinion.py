"""A second opinion on a reader's attention function: that of `helpers.doctor`.

The doctor is asked twice. Where an answer is wrong and agrees with none of the exercise's own
mistakes, it may know a name. And where all cases of an exercise come out right, it tries longer
inputs, wider heads, large scores, views that are not contiguous.

What counts against an answer that is right on the exercise's cases? Only a call of the reader's own
function, with arguments as the exercise describes them, whose result differs from the solution's by
more than float32 rounds, or that changed its arguments. So every call that the doctor makes is
written down, and judged here again. What the exercise does not ask for is never handed out: no
mask, scale or causality as an extra argument, no more axes, no half precision. Nor does it count
that a function is slow, that its recursion goes too deep, that memory runs out: that is due to the
doctor's haste and the size of its inputs.

This is affordable: 0.05 to 0.5 seconds, once a check, for some twenty calls on arrays of at most a
thousand rows; not for stubs, nor where the exercise knows the mistake. Calls run under the watchdog
like all others. A slow function is cut short, and then the exercise's cases decide alone. The
doctor's modules are imported when it is first asked: that takes longer than all cases together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers.practice import answers
from helpers.practice.answers import Answer, Argument
from helpers.watchdog import Fault

_CALLS = 10  # the doctor lets all calls together take as long as this many that just finish
_LARGE = 20  # a number this large is worth a word
_FORGIVEN = ("RecursionError", "MemoryError", "_ArrayMemoryError")

# Names that tell less than what an exercise says by itself of such a result: it knows the line of
# an error, the shape that was asked for, and how exact a result must be. The last two speak of axes
# that these exercises do not have.
_TELL_NOTHING = {
    "unknown", "raises", "wrong-shape", "wrong-type", "wrong-arguments", "returns-nothing",
    "not-finite", "imprecise", "low-precision", "low-precision-accumulation", "did-not-finish",
    "too-slow", "exits", "asks-for-input", "softmax-over-heads", "softmax-over-batch",
}  # fmt: skip


@dataclass(frozen=True)
class Referral:
    """How an exercise hands an answer to the doctor.

    attention : makes an attention function of the reader's, which it calls with arguments as the
        exercise describes them. conventions : what `helpers.doctor.examine` must know about it.
    """

    attention: Callable[[Callable], Callable]
    conventions: dict[str, object]


@dataclass(frozen=True)
class Call:
    """One call of the reader's function. view : an argument was not contiguous in memory."""

    args: tuple[Argument, ...]
    answer: Answer
    view: bool

    @property
    def forgiven(self) -> bool:
        return self.answer.kind == "raised" and self.answer.fault.name in _FORGIVEN

    def described(self, names: tuple[str, ...]) -> str:
        """The arguments in words: they are too many random numbers to be looked at."""
        parts = [
            f"`{name}` {'×'.join(map(str, arg.shape))}"
            if isinstance(arg, np.ndarray)
            else f"`{name}` = {arg}"
            for name, arg in zip(names, self.args, strict=True)
        ]
        largest = max(float(np.abs(arg).max(initial=0)) for arg in map(np.asarray, self.args))
        parts += [f"numbers up to {largest:.0f}"] if largest > _LARGE else []
        parts += ["not contiguous in memory"] if self.view else []
        return f"one of the doctor's: {', '.join(parts)}"


@dataclass(frozen=True)
class Opinion:
    """What the doctor says.

    name : the disease, "" where nothing is wrong or no name tells anything. words : what it is,
    and what to do. compared : the name comes from comparison with wrong functions, not from signs.
    calls : those of the reader's function that ended in time.
    """

    sound: bool
    name: str
    words: str
    compared: bool
    calls: tuple[Call, ...]

    @property
    def explains(self) -> bool:
        """Whether the name can be why an exercise's own cases, all of them contiguous and with new
        arrays for every call, come out wrong."""
        return bool(self.name) and not {"changes-its-input", "needs-contiguous"}.intersection(
            self.name.split("|")
        )


def ask(referral: Referral, fn: Callable, names: tuple[str, ...], seconds: float) -> Opinion:
    """Have `fn` examined; all its calls together may take so many seconds."""
    from helpers.doctor import CATALOGUE, examine

    witness = _Witness(fn, names)
    found = examine(
        referral.attention(witness),
        **referral.conventions,
        framework="numpy",
        dtype="float64",
        gradients=False,
        seconds=seconds / _CALLS,
    )
    ids = () if found.sound else found.name.split("|")
    telling = ids and not _TELL_NOTHING.intersection(ids)
    return Opinion(
        sound=found.sound,
        name=found.name if telling else "",
        words=" ".join(filter(None, (found.sentence, _for_readers(found.fix)))) if telling else "",
        compared=all(CATALOGUE[id].references for id in ids),
        calls=tuple(witness.calls),
    )


class _Witness:
    """The reader's function, called by the doctor; keeps what it was asked and what it answered."""

    def __init__(self, fn: Callable, names: tuple[str, ...]):
        self.fn, self.names = fn, names
        self.calls: list[Call] = []

    def __call__(self, *args: Argument) -> object:
        before = tuple(answers.copies(args))
        view = not all(arg.flags.c_contiguous for arg in args if isinstance(arg, np.ndarray))
        try:
            value = self.fn(*args)
            parts = answers.read(value)
        except Exception as error:
            self._note(before, args, view, {"kind": "raised", "fault": Fault.of(error)})
            raise
        self._note(before, args, view, parts)
        array = parts.get("array")
        if array is None:
            return value
        return array.astype(np.float32) if parts["itemsize"] == 4 else array.copy()

    def _note(self, before, args, view, parts):
        changed = answers.changed(self.names, before, args)
        self.calls.append(Call(before, Answer(**parts, changed=changed), view))


def _for_readers(fix: str) -> str:
    """Advice without what it says to somebody who calls the doctor and may tell it conventions."""
    sentences = re.split(r"(?<=\.) (?=[A-Z])", fix)
    return " ".join(s for s in sentences if not re.search(r"\bsay (so|it|which)\b|…$", s))
