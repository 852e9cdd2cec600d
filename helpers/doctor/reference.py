"""The right answer, in float64, and how far a right function may be from it.

The rule is that of flash-attention's own tests (Dao-AILab/flash-attention, test_flash_attn.py):
max|out − ref| ≤ 2 · max|plain − ref|, where plain is ordinary attention carried out in the dtype
in question, and ref the exact result; 3 instead of 2 for gradients. A floor is needed where plain
is exact by luck.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from helpers.doctor.cases import Case
from helpers.doctor.precision import EPS, is_half, rounded

_KEEP = object()
_WORSE = 2.0  # than plain attention
_WORSE_GRADIENT = 3.0
_FLOOR = 32.0  # in units of eps · max(1, max|ref|)
_FLOOR_HALF = 2.0
_PER_SCORE = 4.0  # as much again for each unit of the largest score: its last digit is worth that
_PER_KEY = 1 / 16  # as much again for each key, for sums that are made one key after the other


def softmax(s, axis=-1):
    """exp over its sum; a row of -inf gives zeros."""
    largest = s.max(axis=axis, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(largest), largest, 0))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def through_log_sum(s):
    """The same from the logarithm of the sum, as fused kernels keep it for the backward pass:
    where scores are large, that number holds few digits behind the point."""
    largest = s.max(axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)
    total = np.exp(s - largest).sum(axis=-1, keepdims=True)
    log_sum = largest + np.log(np.where(total == 0, 1, total))
    return np.exp(s - log_sum)


def repeated(x, H):
    """(B, H_kv, T, D) -> (B, H, T, D), neighbours alike."""
    return x if x.shape[1] in (1, H) else np.repeat(x, H // x.shape[1], axis=1)


def masked(s, allowed, bias):
    """Scaled scores with what is added to them, -inf where a key may not be seen."""
    if bias is not None:
        s = s + bias
    return s if allowed is None else np.where(allowed, s, -np.inf)


def attend(
    case: Case, *, q=None, k=None, v=None, scale=None, allowed=_KEEP, bias=_KEEP, soft=softmax
):
    """Attention on a case, or what it becomes with one thing changed. (B, H, T_q, d_v)."""
    q = case.q if q is None else q
    k = repeated(case.k if k is None else k, q.shape[1])
    v = repeated(case.v if v is None else v, q.shape[1])
    allowed = case.allowed if allowed is _KEEP else allowed
    bias = case.bias if bias is _KEEP else bias
    scaled = q @ k.mT * (case.scale if scale is None else scale)
    return soft(masked(scaled, allowed, bias)) @ v


@lru_cache(maxsize=64)
def right(case: Case) -> np.ndarray:
    """The right output. Not to be modified."""
    return attend(case)


def backward(case: Case, grad_output, rounding=lambda x: x, soft=softmax):
    """(dq, dk, dv) from the gradient at the output; `rounding` is applied to each step.

    Source: Dao et al. 2022, arXiv:2205.14135, appendix B.2.
    """
    r = rounding
    H_kv = case.k.shape[1]
    q, k, weights, d_scores = _scores_backward(case, grad_output, r, soft)
    dq = r(case.scale * (d_scores @ k))
    dk = case.scale * (d_scores.mT @ q)
    dv = weights.mT @ r(grad_output)
    return dq, r(per_group(dk, H_kv)), r(per_group(dv, H_kv))


def mask_gradient(case: Case, grad_output, rounding=lambda x: x, soft=softmax):
    """The gradient at a float mask: that of the scores, summed where the mask was broadcast."""
    d_scores = _scores_backward(case, grad_output, rounding, soft)[-1]
    shape = (1,) * (4 - case.bias.ndim) + case.bias.shape
    axes = tuple(axis for axis in range(4) if shape[axis] != d_scores.shape[axis])
    return rounding(d_scores.sum(axis=axes, keepdims=True).reshape(case.bias.shape))


def _scores_backward(case, grad_output, r, soft):
    """What the backward pass is made of: q, k, weights, dS."""
    H = case.q.shape[1]
    q, d_out = r(case.q), r(grad_output)
    k, v = (repeated(r(x), H) for x in (case.k, case.v))
    weights = r(soft(masked(r(q @ k.mT * case.scale), case.allowed, case.bias)))
    d_weights = r(d_out @ v.mT)
    row = (weights * d_weights).sum(axis=-1, keepdims=True)
    return q, k, weights, r(weights * (d_weights - row))


def per_group(x, H_kv):
    """Summed over the heads of queries that share a head of keys."""
    B, H = x.shape[:2]
    return x.reshape(B, H_kv, H // H_kv, *x.shape[2:]).sum(axis=2)


class Truth:
    """The right answer to a case, and how far from it a right function may be."""

    def __init__(self, case: Case, grad_output: np.ndarray | None = None, *, of_mask: bool = False):
        self.case, self.grad_output, self._of_mask = case, grad_output, of_mask
        self._bounds: dict[str, float] = {}
        self._gradient_bounds: dict[str, tuple[float, ...]] = {}

    @cached_property
    def output(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            return right(self.case)

    @cached_property
    def gradients(self) -> tuple[np.ndarray, ...]:
        """(dq, dk, dv), and the gradient at the float mask where that is asked for."""
        with np.errstate(all="ignore"):
            return self._backward()

    def _backward(self, *how) -> tuple[np.ndarray, ...]:
        found = backward(self.case, self.grad_output, *how)
        more = (mask_gradient(self.case, self.grad_output, *how),) if self._of_mask else ()
        return (*found, *more)

    @cached_property
    def judged(self) -> np.ndarray:
        """Rows that are compared: boolean (B, H, T_q). A row that may attend to no key only where
        the case is about such rows."""
        empty = np.broadcast_to(self.case.empty_rows(), self.case.q.shape[:3])
        return np.ones_like(empty) if self.case.group == "empty" else ~empty

    def bound(self, precision: str) -> float:
        """Largest error that a right function computed in `precision` may make."""
        if precision not in self._bounds:
            with np.errstate(all="ignore"):
                ways = [
                    np.abs(out - self.output)[self.judged] for out in _plain(self.case, precision)
                ]
            error = max(float(np.nan_to_num(way).max(initial=0)) for way in ways)
            self._bounds[precision] = _WORSE * error + self.floor(precision)
        return self._bounds[precision]

    def floor(self, precision: str) -> float:
        """A part of `bound` that takes no attention in `precision` to know."""
        return self._floor(precision, self.output)

    def _floor(self, precision: str, exact: np.ndarray, size: float = 1.0) -> float:
        """What rounding alone may do where plain attention happens to be exact."""
        size = max(1.0, size, float(np.abs(exact).max(initial=0)))
        if is_half(precision):
            return _FLOOR_HALF * EPS[precision] * size
        units = _FLOOR + _PER_SCORE * self.largest_score + _PER_KEY * self.case.T_k
        return units * EPS[precision] * size

    @cached_property
    def largest_score(self) -> float:
        """Largest magnitude of a scaled score."""
        k = repeated(self.case.k, self.case.q.shape[1])
        return float(np.abs(self.case.q @ k.mT).max(initial=0) * abs(self.case.scale))

    def gradient_bounds(self, precision: str) -> tuple[float, ...]:
        """The same for the gradients."""
        if precision not in self._gradient_bounds:
            work = np.float64 if precision == "float64" else np.float32

            def rounding(x):
                return rounded(x.astype(work), precision)

            above, scale = np.abs(self.grad_output).max(), abs(self.case.scale)
            sizes = [scale * np.abs(x).max() * above for x in (self.case.k, self.case.q)]
            sizes += [above, above * np.abs(self.case.v).max()]
            with np.errstate(all="ignore"):
                ways = [self._backward(rounding, soft) for soft in (softmax, through_log_sum)]
            self._gradient_bounds[precision] = tuple(
                _WORSE_GRADIENT * _most(ways, exact, place) + self._floor(precision, exact, size)
                for place, (exact, size) in enumerate(zip(self.gradients, sizes))
            )
        return self._gradient_bounds[precision]


def _most(ways, exact: np.ndarray, place: int) -> float:
    """The largest error of one gradient over ways to compute it."""
    return max(float(np.abs(way[place] - exact).max(initial=0)) for way in ways)


def _plain(case: Case, precision: str):
    """Ordinary attention, each step rounded to `precision`: the usual ways to write it."""
    work = np.float64 if precision == "float64" else np.float32

    def r(x):
        return rounded(x.astype(work), precision)

    H, scale = case.q.shape[1], work(case.scale)
    root = work(np.sqrt(abs(case.scale)))
    q, k, v = r(case.q), repeated(r(case.k), H), repeated(r(case.v), H)
    ways = [
        r(r(q @ k.mT) * scale),
        r(r(q * scale) @ k.mT),
        r(r(q * root) @ r(k * root * np.sign(scale)).mT),
    ]
    bias = None if case.bias is None else r(case.bias)
    for scaled in ways:
        s = masked(scaled, case.allowed, bias)
        s = s if bias is None else r(s)
        yield r(r(softmax(s)) @ v)
        if not is_half(precision):
            yield through_log_sum(s) @ v
