"""Names for what agrees with no reference, from where and how the answers are wrong.

Each sign takes everything seen in the plain group and returns an identifier, or "".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from helpers.doctor.catalogue.blocks import USUAL
from helpers.doctor.naming import tolerance
from helpers.doctor.patient import Seen
from helpers.doctor.precision import EPS, is_half

SHORT = 50  # keys, few enough for a sum in half precision


def wrong(seen: Sequence[Seen]) -> list[Seen]:
    return [one for one in seen if not one.right]


def _arrays(seen: Sequence[Seen]) -> bool:
    """Whether all wrong answers have the right shape and finite numbers."""
    return all(
        one.answer.kind == "array" and np.isfinite(one.answer.array).all() for one in wrong(seen)
    )


# --- One way to fail for all ---


def failed(seen: Sequence[Seen]) -> str:
    """Functions that bring no numbers back."""
    bad = wrong(seen)
    for one in bad:
        answer = one.answer
        if answer.ended == "too slow":
            return "too-slow"
        if answer.kind == "unfinished":
            return "did-not-finish"
        if answer.kind == "raised" and answer.fault.name in ("SystemExit", "KeyboardInterrupt"):
            return "exits"
        if answer.kind == "raised" and answer.fault.name == "NoInput":
            return "asks-for-input"
    kinds = {one.answer.kind for one in bad}
    if kinds == {"other"}:
        nothing = all(one.answer.words == "None" for one in bad)
        return "returns-nothing" if nothing else "wrong-type"
    if kinds == {"raised"} and len(bad) == len(seen):
        return "raises"
    return ""


def shape(seen: Sequence[Seen]) -> str:
    """Results of another shape."""
    bad = wrong(seen)
    if {one.answer.kind for one in bad} != {"shape"}:
        return ""
    if all(_squeezed(one) for one in bad):
        return "axes-squeezed"
    return "output-layout" if all(_rearranged(one) for one in bad) else "wrong-shape"


def _squeezed(one: Seen) -> bool:
    answer, right = one.answer.array, one.truth.output
    if answer is None or answer.ndim >= right.ndim or answer.size != right.size:
        return False
    if np.squeeze(answer).shape != np.squeeze(right).shape:
        return False
    return bool(np.abs(np.squeeze(answer) - np.squeeze(right)).max() <= tolerance(one, right))


def _rearranged(one: Seen) -> bool:
    answer, right = one.answer.array, one.truth.output
    if answer is None or answer.size != right.size:
        return False
    for order in itertools.permutations(range(4)):
        turned = right.transpose(order)
        if np.abs(answer.ravel() - turned.ravel()).max() <= tolerance(one, right):
            return True
    return False


# --- What the weights show ---


def dropout(seen: Sequence[Seen]) -> str:
    """Weights that are 0, or the right ones times one factor above 1."""
    shown = [one for one in seen if one.case.shows_weights and one.answer.kind == "array"]
    found = [_dropped(one.answer.array, one.truth.output) for one in shown]
    return "dropout-active" if found and all(found) else ""


def _dropped(weights: np.ndarray, right: np.ndarray) -> bool:
    real = right > 1e-4  # where causality does not make it 0 anyway
    zero = real & (weights == 0)
    kept = real & ~zero
    if not zero.any() or not kept.any():
        return False
    factors = weights[kept] / right[kept]
    return bool(factors.min() > 1.001 and np.ptp(factors) < 0.02 * factors.min())


def effective_scale(one: Seen) -> float | None:
    """c if the weights are proportional to exp(c · score), None if they are no such thing."""
    case, weights = one.case, one.answer.array
    if not case.shows_weights or one.answer.kind != "array" or case.asks_gqa:
        return None
    allowed = np.ones(weights.shape, dtype=bool)
    if case.allowed is not None:
        allowed = allowed & case.allowed
    if not (np.isfinite(weights).all() and (weights[allowed] > 1e-30).all()):
        return None
    scores = case.q @ case.k.mT
    logs = np.log(np.where(allowed, weights, 1))
    count = allowed.sum(axis=-1, keepdims=True)
    s, w = (
        np.where(allowed, x - np.where(allowed, x, 0).sum(axis=-1, keepdims=True) / count, 0)
        for x in (scores, logs)
    )
    scale = float((s * w).sum() / (s * s).sum())
    off = np.abs(w - scale * s).max()
    sums = np.where(allowed, weights, 0).sum(axis=-1)
    normalised = np.abs(sums - 1).max() < (0.05 if is_half(one.answer.precision) else 1e-3)
    close = 0.2 if is_half(one.answer.precision) else 1e-2
    return scale if normalised and off < close * max(1.0, np.abs(w).max()) else None


def scale(seen: Sequence[Seen]) -> str:
    """Right but for a factor of the scores."""
    shown = [one for one in seen if one.case.shows_weights]
    found = [effective_scale(one) for one in shown]
    if not found or None in found:
        return ""
    if all(abs(c - one.case.scale) < 0.01 * abs(one.case.scale) for c, one in zip(found, shown)):
        return ""
    same = max(found) - min(found) < 1e-3 * abs(max(found, key=abs))
    widths = {one.case.q.shape[-1] for one in shown}
    return "scale-hard-coded" if same and len(widths) > 1 else "wrong-scale"


# --- How large the errors are ---


def precision(seen: Sequence[Seen]) -> str:
    """Errors that rounding would explain, in a dtype that holds more."""
    bad = wrong(seen)
    if not _arrays(seen):
        return ""
    short = [one for one in seen if one.case.T_k <= SHORT]
    if any(is_half(one.answer.precision) for one in bad):
        long_alone = all(one.case.T_k > SHORT for one in bad)
        return "low-precision-accumulation" if long_alone else ""
    if sum(not one.right for one in short) < len(short) / 2:
        return ""
    for half in ("float16", "bfloat16"):
        if all(one.error <= one.truth.bound(half) for one in short):
            visible = any(one.error > 0.25 * EPS[half] * _size(one) for one in short)
            if all(one.error <= one.truth.bound(half) for one in bad):
                return "low-precision" if visible else ""
            return "low-precision-accumulation"
    return ""


def _size(one: Seen) -> float:
    return float(np.abs(one.truth.output).max(initial=0))


def imprecise(seen: Sequence[Seen]) -> str:
    """Small errors of another kind."""
    small = all(one.error <= 0.01 for one in wrong(seen))
    return "imprecise" if _arrays(seen) and small else ""


def row_factors(seen: Sequence[Seen]) -> str:
    """Rows that are the right ones times a number."""
    if not _arrays(seen) or any(is_half(one.answer.precision) for one in wrong(seen)):
        return ""
    return "weights-do-not-sum-to-1" if all(_proportional(one) for one in wrong(seen)) else ""


def _proportional(one: Seen) -> bool:
    answer, right = one.answer.array, one.truth.output
    if right.shape[-1] == 1:
        return True
    factor = (answer * right).sum(axis=-1, keepdims=True) / (right * right).sum(-1, keepdims=True)
    off = np.abs(answer - factor * right)[one.truth.judged].max()
    close = off <= 2 * one.bound * max(1.0, float(np.abs(factor).max()))
    return bool(close and factor[one.truth.judged].min() > 0.05)


# --- Where the errors are ---


def _feature(id: str, *tests: Callable[[Seen], bool]):
    """The sign that exactly the inputs with one of the features go wrong."""

    def sign(seen: Sequence[Seen]) -> str:
        bad = [not one.right for one in seen]
        if all(bad):
            return ""
        return id if any([test(one) for one in seen] == bad for test in tests) else ""

    return sign


def _several(one: Seen) -> tuple[bool, bool]:
    return one.case.q.shape[0] > 1, one.case.q.shape[1] > 1


equal_lengths = _feature("needs-equal-lengths", lambda one: one.case.T_q != one.case.T_k)
equal_widths = _feature(
    "needs-equal-widths", lambda one: one.case.q.shape[-1] != one.case.v.shape[-1]
)
one_head = _feature(
    "needs-one-head",
    lambda one: any(_several(one)),
    lambda one: _several(one)[0],
    lambda one: _several(one)[1],
)
many_features = _feature(
    "wrong-above-64-features",
    lambda one: max(one.case.q.shape[-1], one.case.v.shape[-1]) > 64,
)
whole_blocks = _feature(
    "wrong-unless-whole-blocks",
    *(lambda one, b=b: one.case.T_k % b > 0 or one.case.T_q % b > 0 for b in USUAL),
    *(lambda one, b=b: one.case.T_k % b > 0 for b in USUAL),
    *(lambda one, b=b: one.case.T_q % b > 0 for b in USUAL),
)


def _split(seen: Sequence[Seen], length: Callable[[Seen], int]) -> str:
    """ "below" if the wrong inputs are the short ones, "above" if they are the long ones."""
    bad = [length(one) for one in seen if not one.right]
    good = [length(one) for one in seen if one.right]
    if len(set(bad)) < 2 or len(set(good)) < 2 or max(good) < 2 or max(bad) < 2:
        return ""  # a single key or query is right by luck
    return "below" if max(bad) < min(good) else "above" if min(bad) > max(good) else ""


def short_or_long(seen: Sequence[Seen]) -> str:
    """Wrong below, or above, a certain length."""
    lengths = (
        lambda one: min(one.case.T_q, one.case.T_k),
        lambda one: one.case.T_k,
        lambda one: one.case.T_q,
        lambda one: max(one.case.T_q, one.case.T_k),
    )
    found = [_split(seen, length) for length in lengths]
    if "below" in found:
        return "wrong-below-one-block"
    return "wrong-with-many-keys" if "above" in found else ""


def unwritten_queries(seen: Sequence[Seen]) -> str:
    """Exactly the rows after the last whole block are wrong."""
    if any(one.answer.kind != "array" for one in seen) or not wrong(seen):
        return ""
    rows = [_wrong_rows(one) for one in seen]
    for size in USUAL:
        expected = [np.arange(one.case.T_q) >= one.case.T_q // size * size for one in seen]
        if all(map(np.array_equal, rows, expected)):
            return "queries-after-last-whole-block-unwritten"
    return ""


def _wrong_rows(one: Seen) -> np.ndarray:
    with np.errstate(all="ignore"):
        off = np.abs(one.answer.array - one.truth.output).max(axis=-1)
    return (~(off <= one.bound) & one.truth.judged).any(axis=(0, 1))


def raises(seen: Sequence[Seen]) -> str:
    return "raises" if any(one.answer.kind == "raised" for one in wrong(seen)) else ""


def not_finite(seen: Sequence[Seen]) -> str:
    bad = wrong(seen)
    numbers = all(one.answer.kind == "array" for one in bad)
    return "not-finite" if numbers and not any(
        np.isfinite(one.answer.array).all() for one in bad
    ) else ""  # fmt: skip


# In this order: what says most comes first.
PLAIN = (
    failed, shape, dropout, scale, unwritten_queries, equal_lengths, equal_widths, one_head,
    many_features, whole_blocks, row_factors, precision, imprecise, short_or_long, raises,
    not_finite,
)  # fmt: skip


OF_ROUNDING = ("low-precision", "low-precision-accumulation")


def first(seen: Sequence[Seen], without: Sequence[str] = ()) -> str:
    """The first sign that is seen, "unknown" if there is none."""
    found = (sign(seen) for sign in PLAIN)
    return next((id for id in found if id and id not in without), "unknown")
