"""The function under examination: called on a case under the watchdog, its answer read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from helpers import watchdog
from helpers.doctor import hands
from helpers.doctor.cases import Case
from helpers.doctor.conventions import Conventions, arrange, arrange_mask, restore
from helpers.doctor.interface import Manner
from helpers.doctor.precision import coarser, name_of
from helpers.doctor.reference import Truth

_SECONDS, _SECONDS_DEVICE = 2.0, 60.0  # for one call; a GPU kernel is compiled at its first
_CALLS = 10  # all calls together may take as long as this many that just finish
_MOST_ENTRIES = 3_000_000  # a larger result is judged by its shape alone


@dataclass(frozen=True)
class Answer:
    """One call's result.

    kind : "array" (numbers of the right shape), "shape" (numbers of another shape), "other"
    (something else, told by `words`), "raised" (told by `fault`), "unfinished".
    array : the numbers as float64, as (B, H, T_q, d_v) where the shape is right. precision : the
    coarser of the dtypes that went in and came out. handed : the one that went in. changed : inputs
    that the call modified. raw : the object itself. ended : as the watchdog says it.
    """

    kind: str
    array: np.ndarray | None = None
    shape: tuple[int, ...] = ()
    precision: str = "float32"
    handed: str = "float32"
    words: str = ""
    fault: watchdog.Fault | None = None
    ended: str = "returned"
    changed: tuple[str, ...] = ()
    raw: object = None


@dataclass(frozen=True, eq=False)
class Seen:
    """An answer beside the truth."""

    truth: Truth
    answer: Answer
    wrong_ways: dict = field(default_factory=dict, repr=False)  # what references give for the case

    @property
    def case(self) -> Case:
        return self.truth.case

    @cached_property
    def error(self) -> float:
        """Largest deviation from the right answer; inf where there is nothing to compare."""
        if self.answer.kind != "array":
            return np.inf
        return largest_error(self.answer.array, self.truth.output, self.truth.judged)

    @property
    def bound(self) -> float:
        return self.truth.bound(self.answer.precision)

    @property
    def right(self) -> bool:
        # What rounding may do in any case is quickly known, and mostly enough.
        return self.error <= self.truth.floor(self.answer.precision) or self.error <= self.bound

    @property
    def plainness(self) -> tuple[int, int]:
        """Small for inputs that tell most at least cost: few axes of length 1, or of one length
        where they could have two, and few entries."""
        case = self.case
        d_v = case.v.shape[-1]
        alike = (case.T_q == case.T_k) + (case.q.shape[-1] == d_v)
        return (*case.q.shape, case.T_k, d_v).count(1) + alike, case.entries


def largest_error(a: np.ndarray, b: np.ndarray, rows: np.ndarray) -> float:
    """max|a − b| over the rows; nan beside nan and inf beside the same inf count as equal."""
    if a.shape != b.shape:
        return np.inf
    a, b = a[rows], b[rows]
    with np.errstate(all="ignore"):
        difference = np.abs(a - b)
        largest = difference.max(initial=0)
    if not np.isfinite(largest):
        difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        largest = difference.max(initial=0)
    return np.inf if np.isnan(largest) else float(largest)


@dataclass
class Patient:
    """A function, how it is called, and what it is handed."""

    fn: Callable
    manner: Manner
    conventions: Conventions
    hands: hands.NumPyHands | hands.TorchHands
    started: float = field(default_factory=time.monotonic)
    place: int | str | None = None  # where in a returned tuple the output stands

    @property
    def seconds(self) -> float:
        default = _SECONDS if self.conventions.device in (None, "cpu") else _SECONDS_DEVICE
        return self.conventions.seconds or default

    def _run(self, call: Callable[[], object]) -> watchdog.Outcome:
        left = _CALLS * self.seconds - (time.monotonic() - self.started)
        if left <= 0:
            return watchdog.Outcome("too slow")
        outcome = watchdog.run(call, min(self.seconds, left))
        if not outcome.in_time and left < self.seconds:
            return watchdog.Outcome("too slow")
        return outcome

    def arguments(self, case: Case) -> tuple[dict[str, object], dict[str, object]]:
        """(q, k and v by these letters; the other arguments by their names), newly made."""
        layout = self.conventions.layout
        qkv = {}
        for name, x in (("q", case.q), ("k", case.k), ("v", case.v)):
            qkv[name] = self.hands.floats(arrange(x, layout))
            if case.strided:
                qkv[name] = self.hands.strided(qkv[name], sliced=name == "k")
        manner, others = self.manner, dict(self.manner.needed)
        if manner.needs_scale:
            others[manner.scale] = case.scale
        if case.mask is not None:
            others[manner.mask] = self._mask(case.mask)
        if case.asks_causal or (self.conventions.causal and manner.causal):
            others[manner.causal] = True
        elif manner.causal_default:
            others[manner.causal] = False
        if case.asks_scale:
            others[manner.scale] = case.scale
        if case.asks_gqa:
            others[manner.gqa] = True
        return qkv, others

    def _mask(self, mask: np.ndarray):
        mask = arrange_mask(mask, self.conventions.layout)
        if mask.dtype != bool:
            return self.hands.floats(mask)
        mask = mask if self.conventions.mask_true_means == "attend" else ~mask
        numbers = self.manner.mask_numbers
        return self.hands.floats(mask * 1.0) if numbers else self.hands.booleans(mask)

    def apply(self, qkv: dict[str, object], others: dict[str, object]) -> object:
        """The call itself."""
        if self.manner.qkv is None:
            return self.fn(*qkv.values(), **others)
        return self.fn(**dict(zip(self.manner.qkv, qkv.values(), strict=True)), **others)

    def answer(self, truth: Truth) -> Seen:
        """Call the function on a case and read what comes back."""
        qkv, others = self.arguments(truth.case)
        handed = {**qkv, **{n: x for n, x in others.items() if hands.is_array(x)}}
        before = {name: hands.numbers_of(x)[0].copy() for name, x in handed.items()}
        expected = arrange(truth.output, self.conventions.layout).shape

        def call():
            return self._read(self.apply(qkv, others), expected)

        outcome = self._run(call)
        if outcome.ended == "raised":
            parts = {"kind": "raised", "fault": outcome.fault}
        elif outcome.ended != "returned":
            parts = {"kind": "unfinished"}
        else:
            parts = outcome.value
        changed = ()
        if outcome.in_time:
            changed = tuple(
                n for n, x in handed.items() if not _same(hands.numbers_of(x)[0], before[n])
            )
        more = {"ended": outcome.ended, "changed": changed, "handed": self.hands.precision}
        return Seen(truth, Answer(**parts, **more))

    def _read(self, value: object, expected: tuple[int, ...]) -> dict:
        """`value` as fields of an Answer. Runs under the watchdog: reading may run their code."""
        output = self.pick(value, expected)
        try:
            if hasattr(output, "shape") and np.prod(output.shape) > _MOST_ENTRIES:
                return {"kind": "shape", "shape": tuple(output.shape)}
            array, dtype = hands.numbers_of(output)
        except hands.NotNumbers as error:
            return {"kind": "other", "words": str(error)}
        precision = coarser(self.hands.precision, dtype or self.hands.precision)
        known = {"precision": precision, "shape": array.shape, "raw": output}
        if array.shape != expected:
            return {"kind": "shape", "array": array, **known}
        return {"kind": "array", "array": restore(array, self.conventions.layout), **known}

    def pick(self, value: object, expected: tuple[int, ...]) -> object:
        """The output, where the function returns more: (output, weights), AttentionSteps, …"""
        if not isinstance(value, tuple | list) or not any(map(hands.is_array, value)):
            return value
        if isinstance(value, list) and len({np.shape(x) for x in value}) == 1:
            return value  # rows of one array
        if self.place is None:
            fits = [i for i, x in enumerate(value) if tuple(getattr(x, "shape", ())) == expected]
            self.place = "output" if hasattr(value, "output") else fits[0] if fits else 0
        if self.place == "output":
            return value.output
        return value[min(self.place, len(value) - 1)]

    def read_again(self, seen: Seen) -> np.ndarray | None:
        """The numbers that an earlier result holds now."""
        try:
            return restore(hands.numbers_of(seen.answer.raw)[0], self.conventions.layout)
        except Exception:  # whatever the object has become
            return None

    def gradients(self, truth: Truth, manner: str, *, of_mask: bool = False) -> watchdog.Outcome:
        """((dq, dk, dv), dtype of the output): (B, H, T, D) arrays, None for one that is missing;
        None in place of the pair if nothing flows back at all. For torch. of_mask : a fourth, that
        of the float mask."""
        qkv, others = self.arguments(truth.case)
        inputs = [x.requires_grad_() for x in qkv.values()]
        if of_mask:
            inputs.append(others[self.manner.mask].requires_grad_())
        layout = self.conventions.layout
        expected = arrange(truth.output, layout).shape
        above = arrange(truth.grad_output, layout)

        def call():
            output = self.pick(self.apply(qkv, others), expected)
            found = self.hands.differentiate(output, inputs, above, manner)
            if found is None:
                return None
            arrays = [None if g is None else hands.numbers_of(g)[0] for g in found]
            gradients = [None if g is None else restore(g, layout) for g in arrays[:3]]
            for g in arrays[3:]:  # as the mask is, whose layout leaves out axes of length 1
                gradients.append(None if g is None else g.reshape(truth.case.bias.shape))
            return tuple(gradients), name_of(output.dtype)

        return self._run(call)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=True)
