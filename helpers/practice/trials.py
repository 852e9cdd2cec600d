"""Trials: exercises whose answers no table of right results can judge. Each brings a judge.

A judge calls the reader's function through a `Desk`, which keeps the time and survives whatever the
function does. It raises `Wrong` at the first thing to be said against the answer, `Untouched` where
there is none yet, and returns what to say in praise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers import watchdog
from helpers.practice import answers, exercises
from helpers.practice.task import Task
from helpers.practice.verdict import Verdict

_SECONDS = 5.0  # for all calls of one trial; the watchdog may add one


class Wrong(Exception):
    """What is wrong. mistake, sentence, remarks : as a Verdict has them."""

    def __init__(self, mistake: str, sentence: str, *remarks: str):
        super().__init__(mistake)
        self.mistake, self.sentence, self.remarks = mistake, sentence, remarks


class Untouched(Exception):
    """The function is still a stub."""


@dataclass(frozen=True)
class Trial(Task):
    """A function for the reader to write, and who judges it.

    judge : Desk -> sentences, the first of them the message of a verdict that passed.
    """

    judge: Callable[[Desk], tuple[str, ...]]

    def __post_init__(self):
        super().__post_init__()
        if not self.hints:
            raise ValueError(f"trial {self.id} needs a hint.")


@dataclass(frozen=True)
class Reply:
    """One call of the reader's function.

    value : what came back, as it was read. fault : what it raised. changed : names of the
    arguments that it modified. printed : the start of what it printed.
    """

    value: object = None
    fault: watchdog.Fault | None = None
    changed: tuple[str, ...] = ()
    printed: str = ""


class Desk:
    """Where a judge calls the reader's function."""

    def __init__(self, trial: Trial, fn: Callable):
        self.trial, self._fn = trial, fn
        self._end = None  # the clock starts with the first call: a judge may import torch first

    def call(self, *args, read: Callable[[object], object]) -> Reply:
        """Call the function on copies of `args`.

        read : makes plain data of what comes back. It runs under the watchdog, since looking at
        an object may run its code. Raises Wrong when time is up, or when the function ends the
        program or asks for input.
        """
        if self._end is None:
            self._end = time.monotonic() + _SECONDS
        left = self._end - time.monotonic()
        if left <= 0:
            raise _too_slow()
        given = answers.copies(args)
        outcome = watchdog.run(lambda: read(self._fn(*given)), min(watchdog.SECONDS, left))
        if not outcome.in_time:
            raise _unfinished(outcome, cut_short=left < watchdog.SECONDS)
        if outcome.fault and outcome.fault.name in exercises.REFUSED:
            raise Wrong(*exercises.REFUSED[outcome.fault.name])
        arrays = [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]
        changed = answers.changed(
            [self.trial.names[i] for i in arrays],
            [args[i] for i in arrays],
            [given[i] for i in arrays],
        )
        return Reply(outcome.value, outcome.fault, changed, outcome.printed)


def check(trial: Trial, fn: Callable) -> Verdict:
    """Have `fn` judged: in six seconds at most, whatever it does."""
    if misfit := exercises.not_to_be_called(trial, fn):
        return misfit
    try:
        sentence, *remarks = trial.judge(Desk(trial, fn))
    except Untouched:
        return exercises.task(trial)
    except Wrong as wrong:
        return Verdict(
            trial.heading, False, True, wrong.mistake, wrong.sentence, remarks=wrong.remarks
        )
    return Verdict(trial.heading, True, True, None, sentence, remarks=tuple(remarks))


def _too_slow() -> Wrong:
    return Wrong(
        "too-slow",
        f"The checker had to give up after {_SECONDS:.0f} seconds. Is there a `sleep`, or far more "
        "work than is needed?",
    )


def _unfinished(outcome: watchdog.Outcome, cut_short: bool) -> Wrong:
    if cut_short and outcome.ended == "stopped":
        return _too_slow()
    sentence = (
        f"The function did not finish within {watchdog.SECONDS:.0f} seconds. Is there a loop that "
        "never ends, or far more work than is needed?"
    )
    left_behind = outcome.ended == "left behind"
    return Wrong("did-not-finish", sentence, *[exercises.LEFT_BEHIND] * left_behind)


# --- What several judges say. ---


def nothing_came(reply: Reply) -> Exception:
    """What to raise for a function that returned None, and nothing else, whenever it was called."""
    if reply.printed.strip():
        return Wrong(*exercises.PRINTS)
    return Untouched()


def stopped(fault: watchdog.Fault, when: str = "") -> Exception:
    """What to raise for a function that raised, `when`: where and how often, in words."""
    if fault.name == "NotImplementedError":
        return Untouched()
    return Wrong("raises-error", f"The function stops{when} with {fault}.")


def kind(value: object) -> str:
    """What an object is, in words. Runs under the watchdog, like all that looks at it."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, str):
        return f"the string {str.__str__(value)[:40]!r}"
    if type(value) is bool:
        return f"`{value}`"
    if isinstance(value, int | float):
        return f"the number {float(value):.6g}"
    return f"an object of type {type(value).__name__}"
