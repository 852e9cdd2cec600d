"""Lesson 3's wrong functions: what its checkers compare an answer with, to name the mistake.

Each differs from the right function, and from every other, on at least one case of its exercise;
tests hold that. Several references with one name are ways to write the same mistake.
"""

from __future__ import annotations

import numpy as np

from helpers.practice.exercises import Mistake
from helpers.practice.mistakes01 import (
    OVERFLOWS,
    _comparable,
    _keepdims,
    _naive,
    _normalised,
    _overflows,
    _softmax,
)


def _each(make):
    """The mistake with a careful softmax and with one that overflows: two references."""
    return tuple(make(soft) for soft in (_softmax, _naive))


# --- 3.1 stable_softmax(x, temperature) ---


def _is_reshaped(one) -> bool:
    """Wrong, but only in the shape."""
    array = one.answer.array
    if one.right or array is None or array.size != one.expected.size:
        return False
    return np.allclose(array.ravel(), one.expected.ravel())


def _some_axes_only(seen) -> bool:
    """Right for some numbers of axes, wrong in every case with others."""
    rights = {}
    for one in seen:
        if one.case.args[0].size > 1:  # with a single score much is right by chance
            rights.setdefault(one.case.args[0].ndim, set()).add(one.right)
    wholly = all(len(each) == 1 for each in rights.values())
    return wholly and {True} in rights.values() and not any(map(_is_reshaped, seen))


def _row_by_row(x):
    return np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in x])


SOFTMAX = (
    Mistake(
        "multiplied-by-temperature",
        "The scores are multiplied by the temperature. A high temperature must make the weights "
        "more alike: divide by it.",
        _each(lambda soft: lambda x, t: soft(x * t)),
    ),
    Mistake(
        "temperature-ignored",
        "The temperature changes nothing in your result. Divide the scores by it, before exp; "
        "subtracting it from every score, or dividing every exponential by it, cancels.",
        _each(lambda soft: lambda x, t: soft(x)),
    ),
    Mistake(
        "temperature-after-softmax",
        "The weights are divided by the temperature, so their rows no longer sum to 1: divide the "
        "scores, before exp.",
        _each(lambda soft: lambda x, t: soft(x) / t),
    ),
    Mistake(
        "temperature-before-and-after",
        "The division by the temperature is made twice, before and after the softmax: divide the "
        "scores only.",
        _each(lambda soft: lambda x, t: soft(x / t) / t),
    ),
    Mistake(
        "power-of-the-weights",
        "The temperature is applied to the finished weights, as the power 1/temperature. On paper "
        "that is the same, but a weight that has become 0 stays 0 at any temperature: divide the "
        "scores.",
        (lambda x, t: _normalised(_softmax(x) ** (1 / t)),),
    ),
    Mistake(
        "root-of-the-temperature",
        "The scores are divided by the root of the temperature: divide by the temperature itself "
        "(which, in attention, is √d_k already).",
        _each(lambda soft: lambda x, t: soft(x / np.sqrt(t))),
    ),
    Mistake(
        "divided-by-the-root-of-T",
        "The scores are also divided by the root of the number of scores: the temperature is all "
        "that is asked for.",
        _each(lambda soft: lambda x, t: soft(x / t / np.sqrt(x.shape[-1]))),
    ),
    Mistake(
        "only-the-maximum-divided",
        "In `x - largest / temperature` only the maximum is divided, and subtracting a number "
        "from a whole row changes no weight. Write `(x - largest) / temperature`.",
        (lambda x, t: _normalised(np.exp(x - x.max(axis=-1, keepdims=True) / t)),),
    ),
    Mistake(
        "maximum-not-divided",
        "The maximum of the undivided scores is subtracted from the divided ones. It is not their "
        "maximum: with large scores exp still overflows, or all exponentials of a row are 0. "
        "Divide first, then take the maximum.",
        (lambda x, t: _normalised(np.exp(x / t - x.max(axis=-1, keepdims=True))),),
    ),
    Mistake("overflows", OVERFLOWS, (lambda x, t: _naive(x / t),), _overflows),
    Mistake(
        "clipped",
        "The exponents are cut off at a limit so that exp does not overflow, and scores beyond it "
        "all get the same weight. Subtract the maximum instead, which changes no weight.",
        tuple(
            lambda x, t, low=low, high=high: _naive(np.clip(x / t, low, high))
            for high in (20, 50, 80, 88, 100, 500, 700, 709)
            for low in (-high, None)
        ),
    ),
    Mistake(
        "maximum-of-the-whole-array",
        "The maximum of the whole array is subtracted. In a row far below it every exponential is "
        "0, and 0/0 is nan: subtract each row's own maximum (`axis=-1, keepdims=True`).",
        (lambda x, t: _normalised(np.exp(x / t - (x / t).max())),),
    ),
    Mistake(
        "softmax-wrong-axis",
        "The softmax runs over the first axis: each row, along the last axis, must sum to 1 (use "
        "`axis=-1`).",
        (
            *_each(lambda soft: lambda x, t: soft(x / t, axis=0)),
            lambda x, t: (e := np.exp((x - x.max(axis=-1, keepdims=True)) / t)) / e.sum(axis=0),
        ),
    ),
    Mistake(
        "axis-1",
        "`axis=1` is the last axis only where there are two: a single row has none of that "
        "number, and with three axes it is the middle one. Use `axis=-1`.",
        _each(lambda soft: lambda x, t: soft(x / t, axis=1)),
    ),
    Mistake(
        "softmax-over-all",
        "The whole array sums to 1: each row must sum to 1 by itself (sum over `axis=-1`).",
        (
            *_each(lambda soft: lambda x, t: soft(x / t, axis=None)),
            lambda x, t: (e := np.exp((x - x.max(axis=-1, keepdims=True)) / t)) / e.sum(),
        ),
    ),
    Mistake(
        "some-axes-only",
        "Right for some numbers of axes and wrong for others. Rows lie along the last axis, "
        "whatever comes before it: `axis=-1` with `keepdims=True`, and no loop over rows.",
        (lambda x, t: _row_by_row(x / t),),
        _some_axes_only,
    ),
    Mistake(
        "keepdims-missing",
        "Without `keepdims=True` the maximum or the sum has lost the last axis, and NumPy lays it "
        "along the columns instead of down the rows.",
        (
            lambda x, t: _keepdims(x / t, False, True),
            lambda x, t: _keepdims(x / t, True, False),
            lambda x, t: _keepdims(x / t, False, False),
            lambda x, t: _keepdims(x / t, True, False, shift=False),
        ),
    ),
    Mistake(
        "not-normalised",
        "These are exponentials, not yet weights: divide each row by its sum.",
        (
            lambda x, t: np.exp(x / t),
            lambda x, t: np.exp((x - x.max(axis=-1, keepdims=True)) / t),
            lambda x, t: np.exp((x - x.max()) / t),
        ),
    ),
    Mistake(
        "logarithm-of-the-weights",
        "These are the logarithms of the weights: take exp of them.",
        (
            lambda x, t: (
                (z := (x - x.max(axis=-1, keepdims=True)) / t)
                - np.log(np.exp(z).sum(axis=-1, keepdims=True))
            ),
            lambda x, t: np.log(_softmax(x / t)),
            lambda x, t: np.log(_naive(x / t)),
        ),
    ),
    Mistake(
        "exp-forgotten",
        "The scores themselves are divided by their sum: take exp first, which makes them "
        "positive.",
        (
            lambda x, t: _normalised(x / t),
            lambda x, t: _normalised(x / t - (x / t).max(axis=-1, keepdims=True)),
        ),
    ),
    Mistake(
        "sign-reversed",
        "The smallest score gets the largest weight: the sign in the exponent is reversed.",
        (
            *_each(lambda soft: lambda x, t: soft(-x / t)),
            lambda x, t: _normalised(np.exp((x.max(axis=-1, keepdims=True) - x) / t)),
        ),
    ),
    Mistake(
        "other-base",
        "The powers have another base than e (2 or 10): use `np.exp`.",
        tuple(lambda x, t, base=base: _softmax(x / t * np.log(base)) for base in (2, 10))
        + tuple(lambda x, t, base=base: _normalised(base ** (x / t)) for base in (2.0, 10.0)),
    ),
    Mistake(
        "winner-takes-all",
        "The largest score gets the whole weight. That is the limit of temperature 0; any other "
        "temperature gives every key a share.",
        (
            lambda x, t: np.eye(x.shape[-1])[x.argmax(axis=-1)],
            lambda x, t: _normalised((x == x.max(axis=-1, keepdims=True)).astype(float)),
        ),
    ),
    Mistake(
        "scores-unchanged",
        "These are still scores: exp and the division by the sum are to come.",
        (lambda x, t: x, lambda x, t: x / t, lambda x, t: x - x.max(axis=-1, keepdims=True)),
    ),
    Mistake(
        "rows-do-not-sum-to-1",
        "The rows of your result do not sum to 1.",
        sign=lambda seen: any(
            not np.allclose(one.answer.array.sum(axis=-1), 1, atol=5e-3)
            for one in _comparable(seen)
        ),
    ),
)


# --- 3.2 entropy(weights) ---


def _log(w):
    """ln w, 0 where w is 0."""
    return np.log(np.where(w > 0, w, 1))


def _entropy(w, axis=-1, **kwargs):
    return 0 - (w * _log(w)).sum(axis=axis, **kwargs)


def _plain(w):
    """The entropy as the formula has it: nan where a weight is 0."""
    return -(w * np.log(w)).sum(axis=-1)


def _with_zeros(one) -> bool:
    return bool((one.case.args[0] == 0).any())


def _trips_over_zeros(seen) -> bool:
    """Wrong where there are zeros, and there with nan or an error of the logarithm."""

    def trips(one):
        if one.answer.kind == "raised":
            return one.answer.fault.name in ("ValueError", "ZeroDivisionError")
        return one.answer.array is not None and not np.isfinite(one.answer.array).all()

    return all(one.right or (_with_zeros(one) and trips(one)) for one in seen)


def _rows(one):
    """(weights of a row, its entropy as answered) for each row."""
    weights = one.case.args[0]
    return zip(weights.reshape(-1, weights.shape[-1]), one.answer.array.ravel())


def _epsilon_in_the_logarithm(seen) -> bool:
    """The answers are −Σ w ln(w + ε), with the ε that the entropy of a certain row gives away."""
    rows = [(row, h) for one in _comparable(seen) for row, h in _rows(one)]
    certain = [h for row, h in rows if row.max() == 1]
    if not certain or not 0 < -certain[0] < 1:
        return False
    epsilon = np.expm1(-certain[0])  # the answer was −ln(1 + ε)

    def fits(row, h):
        return np.isclose(h, -(row * np.log(row + epsilon)).sum(), atol=1e-7)

    return all(fits(row, h) for row, h in rows)


def _epsilons(make, *powers):
    return tuple(lambda w, e=10.0**-power: make(w, e) for power in powers)


ENTROPY = (
    Mistake(
        "nan-at-zero",
        "Right until a weight is 0: then ln 0 is −∞ (or an error), and 0 · (−∞) is nan. Take the "
        "logarithm of something harmless there: `np.where(weights > 0, weights, 1)`.",
        (_plain, lambda w: (w * np.log(1 / w)).sum(axis=-1)),
        _trips_over_zeros,
    ),
    Mistake(
        "row-lost-to-one-zero",
        "A row that holds a weight of 0 becomes 0 as a whole: nan is replaced after the sum, when "
        "it has swallowed the rest of the row. Only the term with the weight 0 adds nothing.",
        (lambda w: np.nan_to_num(_plain(w)),),
    ),
    Mistake(
        "bits",
        "This is the entropy in bits, with the logarithm to base 2: nats need `np.log`.",
        (lambda w: _entropy(w) / np.log(2), lambda w: -(w * np.log2(w)).sum(axis=-1)),
    ),
    Mistake(
        "logarithm-to-base-10",
        "The logarithm is that to base 10: nats need the natural one, `np.log`.",
        (lambda w: _entropy(w) / np.log(10), lambda w: -(w * np.log10(w)).sum(axis=-1)),
    ),
    Mistake(
        "sign-reversed",
        "The sign is missing: ln w is never above 0, so −Σ w · ln w is never below.",
        (lambda w: -_entropy(w), lambda w: -_plain(w)),
    ),
    Mistake(
        "epsilon-in-the-logarithm",
        "A number is added to the weights inside the logarithm. It keeps ln 0 away but falsifies "
        "every other term too: a certain row then has an entropy below 0. Replace the zeros alone.",
        (
            *_epsilons(lambda w, e: -(w * np.log(w + e)).sum(axis=-1), *range(1, 9)),
            lambda w: -(w * np.log1p(w)).sum(axis=-1),
        ),
        _epsilon_in_the_logarithm,
    ),
    Mistake(
        "zeros-count",
        "Weights of 0 are raised to a small number and then counted as if they were there: leave "
        "the factor in front of the logarithm as it is, 0.",
        (
            *_epsilons(lambda w, e: _plain(np.maximum(w, e)), *range(2, 11)),
            *_epsilons(lambda w, e: _plain(w + e), *range(2, 11)),
        ),
    ),
    Mistake(
        "mean-instead-of-sum",
        "The terms are averaged, which divides by the number of keys: sum them. The weights are "
        "the average already.",
        (
            lambda w: -(w * _log(w)).mean(axis=-1),
            lambda w: -(w * np.log(w)).mean(axis=-1),
            lambda w: -_log(w).mean(axis=-1),
        ),
    ),
    Mistake(
        "normalised",
        "This is the entropy divided by its largest value, ln T: leave that division out.",
        (
            lambda w: _entropy(w) / np.log(w.shape[-1]),
            lambda w: _entropy(w) / np.log(max(w.shape[-1], 2)),
        ),
    ),
    Mistake(
        "weights-left-out",
        "This sums −ln w without the factor w in front: a rare key would count the most.",
        (lambda w: -_log(w).sum(axis=-1), lambda w: -np.log(w).sum(axis=-1)),
    ),
    Mistake(
        "logarithm-left-out",
        "There is no logarithm in this: Σ w is 1, and 1 − Σ w² is another measure (Gini's).",
        (
            lambda w: 1 - (w**2).sum(axis=-1),
            lambda w: -(w**2).sum(axis=-1),
            lambda w: (w**2).sum(axis=-1),
            lambda w: w.sum(axis=-1),
        ),
    ),
    Mistake(
        "perplexity",
        "This is e to the power of the entropy, the number of keys among which the row seems to "
        "choose: leave the exponential out.",
        (lambda w: np.exp(_entropy(w)), lambda w: np.exp(_plain(w))),
    ),
    Mistake(
        "yes-or-no",
        "Every weight is taken for a choice of its own between w and 1 − w. A row is one choice "
        "among T keys: −Σ w · ln w is all.",
        (lambda w: (-w * _log(w) - (1 - w) * _log(1 - w)).sum(axis=-1),),
    ),
    Mistake(
        "softmax-again",
        "The weights go through a softmax as if they were scores: they sum to 1 already.",
        (lambda w: _entropy(_softmax(w)),),
    ),
    Mistake(
        "not-summed",
        "These are the terms −w · ln w: sum them along each row.",
        (lambda w: -w * _log(w), lambda w: -w * np.log(w)),
    ),
    Mistake(
        "summed-over-all",
        "This is one number for the whole array: each row has an entropy of its own (sum over "
        "`axis=-1`).",
        (lambda w: _entropy(w, axis=None), lambda w: -(w * np.log(w)).sum()),
    ),
    Mistake(
        "wrong-axis",
        "The sum runs over the first axis. A row lies along the last one: `axis=-1`.",
        (lambda w: _entropy(w, axis=0), lambda w: -(w * np.log(w)).sum(axis=0)),
    ),
    Mistake(
        "axis-1",
        "`axis=1` is the last axis only where there are two: a single row has none of that "
        "number, and with three axes it is the middle one. Use `axis=-1`.",
        (lambda w: _entropy(w, axis=1), lambda w: -(w * np.log(w)).sum(axis=1)),
    ),
    Mistake(
        "axis-kept",
        "The result still has the last axis, with length 1: leave `keepdims=True` out.",
        (
            lambda w: _entropy(w, keepdims=True),
            lambda w: -(w * np.log(w)).sum(axis=-1, keepdims=True),
        ),
    ),
    Mistake(
        "some-axes-only",
        "Right for some numbers of axes and wrong for others: sum over `axis=-1`, whatever comes "
        "before it.",
        sign=_some_axes_only,
    ),
)


# --- 3.3 softmax_jvp(p, dz) ---


def _mean(p, dz):
    return (p * dz).sum(axis=-1, keepdims=True)


def _jacobian(p):
    return p[:, :, None] * (np.eye(p.shape[-1]) - p[:, None, :])


def _changes_do_not_cancel(seen) -> bool:
    return any(
        not np.allclose(one.answer.array.sum(axis=-1), 0, atol=1e-3) for one in _comparable(seen)
    )


JVP = (
    Mistake(
        "diagonal-alone",
        "p · dz is the part of diag(p). The other part, p pᵀ dz, is not subtracted: when one "
        "weight grows, the others must shrink.",
        (lambda p, dz: p * dz,),
    ),
    Mistake(
        "each-by-itself",
        "p · (1 − p) · dz uses the Jacobian's diagonal alone, as if each weight depended on its "
        "own score only (a sigmoid). Off the diagonal it has −p_i · p_j.",
        (lambda p, dz: p * (1 - p) * dz,),
    ),
    Mistake(
        "plain-mean",
        "The plain mean of dz is subtracted. It must be weighted by p: the sum of p · dz.",
        (
            lambda p, dz: p * (dz - dz.mean(axis=-1, keepdims=True)),
            lambda p, dz: p * (dz - dz.mean()),
        ),
    ),
    Mistake(
        "sum-of-dz",
        "The plain sum of dz is subtracted. Each change must be weighted: the sum of p · dz.",
        (lambda p, dz: p * (dz - dz.sum(axis=-1, keepdims=True)),),
    ),
    Mistake(
        "mean-of-the-products",
        "`(p * dz).mean()` divides by the number of keys, but the weights sum to 1 already: take "
        "the sum of p · dz.",
        (lambda p, dz: p * (dz - (p * dz).mean(axis=-1, keepdims=True)),),
    ),
    Mistake(
        "dz-left-out",
        "In the second term dz is missing: p pᵀ dz is p times the sum of p · dz, while p · p does "
        "not depend on the change at all.",
        (
            lambda p, dz: p * dz - p * p,
            lambda p, dz: p * dz - p * (p * p).sum(axis=-1, keepdims=True),
            lambda p, dz: p * (dz - 1),
        ),
    ),
    Mistake(
        "first-p-left-out",
        "In the first term p is missing: diag(p) dz is p · dz.",
        (lambda p, dz: dz - p * _mean(p, dz),),
    ),
    Mistake(
        "second-p-left-out",
        "The sum of p · dz is subtracted from every entry. p pᵀ dz is p times that sum: each entry "
        "loses its share of it.",
        (lambda p, dz: p * dz - _mean(p, dz),),
    ),
    Mistake(
        "logarithms",
        "dz − Σ p · dz is how the logarithms of the weights change. The weights themselves have "
        "the factor p in front.",
        (lambda p, dz: dz - _mean(p, dz),),
    ),
    Mistake(
        "mean-alone",
        "This is p pᵀ dz. It is to be subtracted from diag(p) dz, which is p · dz.",
        (lambda p, dz: p * _mean(p, dz), lambda p, dz: -p * _mean(p, dz)),
    ),
    Mistake(
        "added",
        "The two terms are added: the Jacobian is diag(p) minus p pᵀ.",
        (lambda p, dz: p * (dz + _mean(p, dz)),),
    ),
    Mistake(
        "sign-reversed",
        "The sign is reversed: a score that grows makes its own weight grow. p · (dz − mean), not "
        "p · (mean − dz).",
        (lambda p, dz: p * (_mean(p, dz) - dz),),
    ),
    Mistake(
        "not-a-derivative",
        "This is what the weights really do when the scores move by dz. To first order it is the "
        "same, but asked for is the derivative, which is linear in dz.",
        (
            lambda p, dz: _normalised(p * np.exp(dz)) - p,
            lambda p, dz: _softmax(np.log(p) + dz) - p,
        ),
    ),
    Mistake(
        "new-weights",
        "This is p plus the change: return the change alone.",
        (lambda p, dz: p + p * (dz - _mean(p, dz)),),
    ),
    Mistake(
        "softmax-again",
        "`p` goes through a softmax here: it holds weights already.",
        (lambda p, dz: (s := _softmax(p)) * (dz - _mean(s, dz)),),
    ),
    Mistake(
        "softmax-of-dz",
        "`dz` goes through a softmax here. It is a change of the scores, not scores: the result "
        "must be linear in it.",
        (lambda p, dz: p * ((s := _softmax(dz)) - _mean(p, s)), lambda p, dz: _softmax(dz) - p),
    ),
    Mistake(
        "rows-mixed",
        "Sums over several rows are formed: `p @ dz.T` has every row meet every other, `p.T @ dz` "
        "and a sum without `axis` add them up. Each row has a sum of p · dz of its own.",
        (
            lambda p, dz: p * dz - (p @ dz.T) @ p,
            lambda p, dz: p * dz - p @ (p.T @ dz),
            lambda p, dz: p * (dz - (p * dz).sum()),
        ),
    ),
    Mistake(
        "wrong-axis",
        "The sum of p · dz runs down the columns, over the queries: use `axis=-1`.",
        (lambda p, dz: p * (dz - (p * dz).sum(axis=0)),),
    ),
    Mistake(
        "keepdims-missing",
        "Without `keepdims=True` the sums have the shape (n,), and NumPy lays them along the "
        "columns instead of down the rows.",
        (lambda p, dz: p * (dz - (p * dz).sum(axis=-1)),),
    ),
    Mistake(
        "jacobian-returned",
        "This is the matrix diag(p) − p pᵀ itself: multiply it with dz (or better, never build "
        "it).",
        (lambda p, dz: _jacobian(p),),
    ),
    Mistake(
        "only-the-sum",
        "This is the sum of p · dz, one number a row. It is still to be subtracted from dz, and "
        "the result multiplied by p.",
        (lambda p, dz: _mean(p, dz), lambda p, dz: (p * dz).sum(axis=-1)),
    ),
    Mistake(
        "changes-do-not-cancel",
        "The weights of a row sum to 1 before and after, so their changes must sum to 0. Yours do "
        "not.",
        sign=_changes_do_not_cancel,
    ),
)


# --- 3.4 masked_softmax(scores, allowed) ---


def _guarded(x):
    """Rows over their sums; a row of zeros stays as it is."""
    total = x.sum(axis=-1, keepdims=True)
    return x / np.where(total == 0, 1, total)


def _filled(s, a, fill=-np.inf):
    return np.where(a, s, fill)


def _exps(s, a):
    """The exponentials of masked softmax as they should be."""
    masked = _filled(s, a)
    largest = masked.max(axis=-1, keepdims=True)
    return np.exp(masked - np.where(largest == -np.inf, 0, largest))


def _right(s, a):
    return _guarded(_exps(s, a))


def _else(a, weights, instead):
    """`weights` in rows with an allowed key, `instead` in the others."""
    return np.where(a.any(axis=-1, keepdims=True), weights, instead)


def _masked_rows_alone_are_wrong(seen) -> bool:
    """Right in every row with an allowed key, nan or inf in every other one."""

    def fits(one):
        if one.right:
            return True
        array, rows = one.answer.array, one.case.args[1].any(axis=-1)
        if array is None or array.shape != one.expected.shape:
            return False
        masked = array[~rows]
        return (
            np.allclose(array[rows], one.expected[rows], rtol=1e-3, atol=1e-5)
            and masked.size > 0
            and not np.isfinite(masked).any()
        )

    return all(map(fits, seen))


def _masked_keys_have_weight(seen) -> bool:
    return any(
        (np.abs(one.answer.array[~one.case.args[1]]) > 1e-5).any() for one in _comparable(seen)
    )


def _rows_do_not_sum_to_1(seen) -> bool:
    return any(
        not np.allclose(one.answer.array.sum(axis=-1), one.case.args[1].any(axis=-1), atol=5e-3)
        for one in _comparable(seen)
    )


MASKED = (
    Mistake(
        "no-mask",
        "The mask is not used: a masked key has weight too.",
        _each(lambda soft: lambda s, a: soft(s)),
    ),
    Mistake(
        "mask-inverted",
        "The mask is upside down: True means that a key may be attended to, and you hide those. "
        "Swap the two cases, or write `~allowed`.",
        (
            lambda s, a: _right(s, ~a),
            lambda s, a: _softmax(_filled(s, ~a)),
            lambda s, a: _naive(_filled(s, ~a)),
            lambda s, a: _softmax(_filled(s, ~a, -1e9)),
            lambda s, a: _softmax(s) * ~a,
            lambda s, a: _softmax(s + a * -1e9),
        ),
    ),
    Mistake(
        "masked-with-zero",
        "Masked scores are set to 0, and exp(0) = 1 still has weight: set them to −∞ (`-np.inf`).",
        (
            *_each(lambda soft: lambda s, a: soft(_filled(s, a, 0.0))),
            lambda s, a: _else(a, _softmax(s * a), 0),
        ),
    ),
    Mistake(
        "mask-added",
        "The mask is added to the scores as numbers, which raises an allowed score by 1. It must "
        "choose: `np.where(allowed, scores, -np.inf)`.",
        _each(lambda soft: lambda s, a: soft(s + a)),
    ),
    Mistake(
        "masked-after-softmax",
        "The weights are set to 0 after the softmax, so the rows no longer sum to 1, and what was "
        "masked still decides how much is left for the others: mask the scores before it.",
        _each(lambda soft: lambda s, a: np.where(a, soft(s), 0)),
    ),
    Mistake(
        "masked-keys-set-the-maximum",
        "Right until a masked score lies far above the allowed ones: the masking comes after exp, "
        "so a masked key still sets the maximum, every allowed exponential becomes 0, and "
        "the row is lost. Mask before the maximum is taken.",
        (lambda s, a: _guarded(_softmax(s) * a),),
    ),
    Mistake(
        "masked-keys-set-the-maximum-and-0/0",
        "The masking comes after exp. Where every key is masked, 0/0 gives nan; and a masked score "
        "far above the allowed ones still sets the maximum, makes all their exponentials 0, and "
        "the row is nan as well. Mask before the maximum is taken, and guard the division.",
        (lambda s, a: _normalised(_softmax(s) * a),),
    ),
    Mistake(
        "masked-row-gives-nan",
        "Right but for rows in which every key is masked: their maximum is −∞, and −∞ − (−∞) is "
        "nan (or their sum is 0, and 0/0 is nan). Subtract 0 there, and divide by 1.",
        (
            lambda s, a: _softmax(_filled(s, a)),
            lambda s, a: _normalised(_right(s, a)),
        ),
        _masked_rows_alone_are_wrong,
    ),
    Mistake(
        "masked-row-gets-weights",
        "A row with every key masked gets weights; zeros are asked for. (A number such as −1e9 in "
        "place of −∞ does this: it lowers all scores of the row alike, and the softmax sees no "
        "difference.) Use `-np.inf`, and treat such a row by itself.",
        (
            *(
                lambda s, a, fill=fill: _softmax(_filled(s, a, fill))
                for fill in (-1e4, -65504.0, -1e5, -1e6, -1e9)
            ),
            *(
                lambda s, a, fill=fill: _softmax(s + fill * ~a)
                for fill in (-1e4, -65504.0, -1e5, -1e6, -1e9)
            ),
            lambda s, a: _else(a, _right(s, a), _softmax(s)),
        ),
    ),
    Mistake(
        "masked-row-gets-weight-1",
        "In a row with every key masked one key (or each of them) gets the weight 1: zeros are "
        "asked for.",
        (
            lambda s, a: _else(a, _right(s, a), 1),
            lambda s, a: _else(a, _right(s, a), np.arange(s.shape[-1]) == 0),
        ),
    ),
    Mistake(
        "masked-with-too-small-a-number",
        "Masked scores get a number that is low but not low enough (such as −10 or −1000): with "
        "large scores the masked keys still show through. Use `-np.inf`.",
        (
            *(
                lambda s, a, fill=fill: _softmax(_filled(s, a, fill))
                for fill in (-1.0, -10.0, -100.0, -1000.0)
            ),
            *(lambda s, a, fill=fill: _softmax(s + fill * ~a) for fill in (-10.0, -100.0, -1000.0)),
        ),
    ),
    Mistake(
        "all-nan",
        "The mask, as zeros and ones, is multiplied by `-np.inf`: 0 · (−∞) is nan, also where "
        "nothing is masked. Use `np.where(allowed, scores, -np.inf)`.",
        (lambda s, a: np.full(s.shape, np.nan),),
    ),
    Mistake(
        "overflows",
        OVERFLOWS,
        (
            lambda s, a: _guarded(np.exp(_filled(s, a))),
            lambda s, a: np.nan_to_num(_naive(_filled(s, a))),
        ),
        _overflows,
    ),
    Mistake(
        "overflows-and-0/0",
        "Two things: with large scores exp overflows (or every exponential of a row is 0), so "
        "subtract each row's maximum; and where every key is masked, 0/0 gives nan.",
        (lambda s, a: _naive(_filled(s, a)), lambda s, a: _normalised(np.exp(s) * a)),
    ),
    Mistake(
        "maximum-of-the-whole-table",
        "The maximum of the whole table is subtracted. In a row far below it every exponential is "
        "0, and the row is lost: subtract each row's own maximum.",
        (
            lambda s, a: _guarded(np.exp((m := _filled(s, a)) - max(m.max(), -1e9))),
            lambda s, a: _normalised(np.exp((m := _filled(s, a)) - m.max())),
        ),
    ),
    Mistake(
        "softmax-wrong-axis",
        "The softmax runs over the queries: each query's weights over the keys must sum to 1 (use "
        "`axis=-1`).",
        (
            lambda s, a: _right(s.T, a.T).T,
            *_each(lambda soft: lambda s, a: soft(_filled(s, a), axis=0)),
        ),
    ),
    Mistake(
        "softmax-over-all",
        "The weights of the whole table sum to 1: each row must sum to 1 by itself.",
        (
            *_each(lambda soft: lambda s, a: soft(_filled(s, a), axis=None)),
            lambda s, a: np.nan_to_num(_softmax(_filled(s, a), axis=None)),
        ),
    ),
    Mistake(
        "own-mask",
        "This masks what lies above the diagonal, whatever `allowed` says: use the argument.",
        _each(lambda soft: lambda s, a: soft(_filled(s, np.tri(*s.shape, dtype=bool)))),
    ),
    Mistake(
        "not-normalised",
        "These are exponentials, not yet weights: divide each row by its sum.",
        (
            lambda s, a: np.exp(_filled(s, a)),
            lambda s, a: np.exp(s) * a,
            lambda s, a: np.where(a, np.exp(s - s.max(axis=-1, keepdims=True)), 0),
            _exps,
        ),
    ),
    Mistake(
        "epsilon-in-the-sum",
        "A number is added to every sum so that it cannot be 0. The rows then sum to less than 1: "
        "replace a sum of 0 alone.",
        tuple(
            lambda s, a, e=e: (x := _exps(s, a)) / (x.sum(axis=-1, keepdims=True) + e)
            for e in (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
        ),
    ),
    Mistake(
        "masked-scores-returned",
        "These are the masked scores: the softmax is still to come.",
        (_filled, lambda s, a: s * a),
    ),
    Mistake(
        "masked-keys-have-weight",
        "A key that is masked has a weight other than 0.",
        sign=_masked_keys_have_weight,
    ),
    Mistake(
        "rows-do-not-sum-to-1",
        "A row with an allowed key does not sum to 1, or one without any does not sum to 0.",
        sign=_rows_do_not_sum_to_1,
    ),
)
