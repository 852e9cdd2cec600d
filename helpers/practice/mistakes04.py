"""Lesson 4's wrong functions: what the checker of 4.1 compares an answer with, to name the mistake.

Each differs from the right function, and from every other, on at least one case of its exercise;
tests hold that. Several references with one name are ways to write the same mistake.
"""

from __future__ import annotations

import numpy as np

from helpers.practice.exercises import Mistake

# --- 4.1 head_entropy(weights) ---


def _log(w):
    """ln w, 0 where w is 0."""
    return np.log(np.where(w > 0, w, 1))


def _rows(w):
    """The entropy of each row."""
    return 0 - (w * _log(w)).sum(axis=-1)


def _plain(w):
    """The same as the formula has it: nan where a weight is 0."""
    return -(w * np.log(w)).sum(axis=-1)


def _keys(w):
    return np.arange(1, w.shape[-1] + 1)


def _mean(x, counts=True):
    """The mean over batch and rows of what `counts`; nan, without a warning, where nothing does."""
    counts = np.broadcast_to(counts, x.shape)
    return np.where(counts, x, 0).sum(axis=(0, 2)) / counts.sum(axis=(0, 2))


def _mean_without_nan(x):
    return _mean(x, ~np.isnan(x))


def _averaged(rows, first=1):
    """The mean over batch and rows of entropies (B, H, T), which are divided here."""
    keys = np.arange(1, rows.shape[-1] + 1)
    return _mean(rows[..., first:] / np.log(keys[first:]))


def _normalised(w):
    """Each row's entropy over the largest it can have, the first row left out."""
    return _rows(w)[..., 1:] / np.log(_keys(w)[1:])


def _with_first(w, first):
    """The same with a number for the first row."""
    return np.concatenate([np.full((*w.shape[:2], 1), float(first)), _normalised(w)], axis=-1)


def _past_alone(w):
    """The formula on the keys 0 … i of each row: nan only where one of these has the weight 0."""
    h = [-(w[..., i, : i + 1] * np.log(w[..., i, : i + 1])).sum(-1) for i in range(w.shape[-1])]
    return np.stack(h, axis=-1)


def _with_zeros(w):
    """Whether a key that its row may attend to has the weight 0."""
    T = w.shape[-1]
    return bool((w[..., np.tri(T, dtype=bool)] == 0).any())


def _trips_over_zeros(seen) -> bool:
    """Wrong with zeros among the allowed keys, and there with nan or an error of the logarithm."""

    def trips(one):
        if one.answer.kind == "raised":
            return one.answer.fault.name in ("ValueError", "ZeroDivisionError")
        return one.answer.array is not None and not np.isfinite(one.answer.array).all()

    return all(one.right or (_with_zeros(one.case.args[0]) and trips(one)) for one in seen)


def _counted(w):
    """Entropies over ln(keys with a weight above 0)."""
    keys = (w > 0).sum(axis=-1)
    return _rows(w), keys


def _over_counted(w, alone):
    """Those, with `alone` where only one key has a weight; the first row left out."""
    h, keys = (x[..., 1:] for x in _counted(w))
    return np.where(keys > 1, h / np.log(np.maximum(keys, 2)), alone)


def _epsilons(make, *powers):
    return tuple(lambda w, e=10.0**-power: make(w, e) for power in powers)


ENTROPY = (
    Mistake(
        "nan-at-zero",
        "Where a weight is 0, ln 0 is −∞, and 0 · (−∞) is nan. Take the logarithm of something "
        "harmless there: `np.where(weights > 0, weights, 1)`.",
        (
            lambda w: _averaged(_plain(w)),
            lambda w: _averaged(_past_alone(w)),
            lambda w: _averaged((w * np.log(1 / w)).sum(axis=-1)),
        ),
        _trips_over_zeros,
    ),
    Mistake(
        "row-lost-to-one-zero",
        "A row that holds a weight of 0 counts as 0: nan is replaced after the sum, when it has "
        "swallowed the rest of the row. Only the term with the weight 0 adds nothing.",
        (
            lambda w: _averaged(np.nan_to_num(_plain(w))),
            lambda w: _averaged(np.nan_to_num(_past_alone(w))),
        ),
    ),
    Mistake(
        "rows-with-zeros-left-out",
        "Rows that hold a weight of 0 are left out of the mean, since their sums are nan: replace "
        "the zeros inside the logarithm, and every row counts.",
        (
            lambda w: _mean_without_nan(_plain(w)[..., 1:] / np.log(_keys(w)[1:])),
            lambda w: _mean_without_nan(_past_alone(w)[..., 1:] / np.log(_keys(w)[1:])),
        ),
    ),
    Mistake(
        "epsilon-in-the-logarithm",
        "A number is added to the weights inside the logarithm. It keeps ln 0 away but falsifies "
        "every other term too: a certain row then has an entropy below 0. Replace the zeros alone.",
        _epsilons(lambda w, e: _averaged(-(w * np.log(w + e)).sum(axis=-1)), *range(1, 10)),
    ),
    Mistake(
        "zeros-count",
        "Weights of 0 are raised to a small number and then counted as if they were there: leave "
        "the factor in front of the logarithm as it is, 0.",
        (
            *_epsilons(lambda w, e: _averaged(_plain(np.maximum(w, e))), *range(2, 11)),
            *_epsilons(lambda w, e: _averaged(_plain(w + e)), *range(2, 11)),
        ),
    ),
    Mistake(
        "divided-by-ln-T",
        "Every row is divided by ln T, which is the largest entropy of the last row alone. Row i "
        "may attend to i + 1 keys, so divide it by ln(i + 1).",
        (
            lambda w: _rows(w)[..., 1:].mean(axis=(0, 2)) / np.log(w.shape[-1]),
            lambda w: _rows(w).mean(axis=(0, 2)) / np.log(w.shape[-1]),
        ),
    ),
    Mistake(
        "first-row-is-nan",
        "The first row has one key: its entropy 0, divided by ln 1 = 0, is nan, and so is then "
        "every mean. Leave that row out.",
        (lambda w: _averaged(_rows(w), first=0), lambda w: _averaged(_plain(w), first=0)),
    ),
    Mistake(
        "first-row-counted",
        "The first row counts in the mean. It has one key and nothing to decide: average over the "
        "T − 1 other rows.",
        (
            lambda w: _with_first(w, 0).mean(axis=(0, 2)),
            lambda w: _with_first(w, 1).mean(axis=(0, 2)),
        ),
    ),
    Mistake(
        "two-rows-left-out",
        "Two rows are left out of the mean. Only the first one has a single key; the second may "
        "attend to two.",
        (lambda w: _averaged(_rows(w), first=2), lambda w: np.nan_to_num(_averaged(_rows(w), 2))),
    ),
    Mistake(
        "one-key-too-few",
        "Row i is divided by ln i. Rows are counted from 0, so it may attend to i + 1 keys.",
        (
            lambda w: (_rows(w)[..., 1:] / np.log(_keys(w)[:-1])).mean(axis=(0, 2)),
            lambda w: _mean(_rows(w)[..., 2:] / np.log(_keys(w)[1:-1])),
        ),
    ),
    Mistake(
        "one-key-too-many",
        "Row i is divided by ln(i + 2). It may attend to the keys 0 … i, which are i + 1.",
        (
            lambda w: (_rows(w)[..., 1:] / np.log(_keys(w)[1:] + 1)).mean(axis=(0, 2)),
            lambda w: (_rows(w) / np.log(_keys(w) + 1)).mean(axis=(0, 2)),
        ),
    ),
    Mistake(
        "only-keys-with-weight-counted",
        "Each row is divided by the logarithm of how many keys have a weight above 0. What counts "
        "is how many it may attend to, i + 1: not to look at a key is a decision too.",
        (
            lambda w: _over_counted(w, 0).mean(axis=(0, 2)),
            lambda w: _mean_without_nan(_over_counted(w, np.nan)),
            lambda w: _over_counted(w, np.nan).mean(axis=(0, 2)),
        ),
    ),
    Mistake(
        "two-bases",
        "The entropy and the largest entropy are taken with logarithms to different bases. In "
        "their ratio any base will do, if it is the same in both.",
        (
            lambda w: _normalised(w).mean(axis=(0, 2)) / np.log(2),
            lambda w: _normalised(w).mean(axis=(0, 2)) * np.log(2),
            lambda w: _normalised(w).mean(axis=(0, 2)) / np.log(10),
            lambda w: _normalised(w).mean(axis=(0, 2)) * np.log(10),
        ),
    ),
    Mistake(
        "not-normalised",
        "These are mean entropies that are not divided by anything: divide each row's by its "
        "largest value, ln(i + 1).",
        (
            lambda w: _rows(w)[..., 1:].mean(axis=(0, 2)),
            lambda w: _rows(w).mean(axis=(0, 2)),
            lambda w: _rows(w)[..., 1:].mean(axis=(0, 2)) / np.log(2),
            lambda w: _rows(w).mean(axis=(0, 2)) / np.log(2),
        ),
    ),
    Mistake(
        "divided-by-the-number-of-keys",
        "Each row's entropy is divided by its number of keys. The largest entropy of n keys is "
        "ln n, not n.",
        (
            lambda w: (_rows(w) / _keys(w))[..., 1:].mean(axis=(0, 2)),
            lambda w: (_rows(w) / _keys(w)).mean(axis=(0, 2)),
        ),
    ),
    Mistake(
        "ratio-of-means",
        "The mean entropy is divided by the mean of the largest entropies. Divide row by row, then "
        "average, so that every row counts alike.",
        (
            lambda w: _rows(w)[..., 1:].mean(axis=(0, 2)) / np.log(_keys(w)[1:]).mean(),
            lambda w: _rows(w).mean(axis=(0, 2)) / np.log(_keys(w)).mean(),
        ),
    ),
    Mistake(
        "entropy-of-the-mean",
        "The weights are averaged before their entropy is taken. Rows that are each decided for "
        "another key then look undecided: take the entropy of each row, and average those.",
        (
            lambda w: _normalised(w.mean(axis=0, keepdims=True)).mean(axis=(0, 2)),
            lambda w: _rows(w.mean(axis=(0, 2))) / np.log(w.shape[-1]),
            lambda w: _rows(w[:, :, 1:].mean(axis=(0, 2))) / np.log(w.shape[-1]),
            lambda w: (_rows(w.mean(axis=2)) / np.log(w.shape[-1])).mean(axis=0),
            lambda w: (_rows(w[:, :, 1:].mean(axis=2)) / np.log(w.shape[-1])).mean(axis=0),
        ),
    ),
    Mistake(
        "averaged-over-heads",
        "This is one number: the heads are averaged too. Heads differ, which is why each is to "
        "have a number of its own (`.mean(axis=(0, 2))`).",
        (
            lambda w: _normalised(w).mean(),
            lambda w: np.full(w.shape[1], _normalised(w).mean()),
        ),
    ),
    Mistake(
        "averaged-over-heads-for-each-example",
        "This has one number for each example of the batch: batch and heads are exchanged. The "
        "heads are axis 1, so average over the axes 0 and 2.",
        (lambda w: _normalised(w).mean(axis=(1, 2)),),
    ),
    Mistake(
        "batch-not-averaged",
        "Each example of the batch still has numbers of its own: average over axis 0 too.",
        (lambda w: _normalised(w).mean(axis=2), lambda w: _normalised(w)),
    ),
    Mistake(
        "rows-not-averaged",
        "Each row still has a number of its own: average over the rows too.",
        (lambda w: _normalised(w).mean(axis=0), lambda w: _with_first(w, 0).mean(axis=0)),
    ),
    Mistake(
        "first-example-only",
        "Only the first example of the batch is looked at: average over all of them.",
        (lambda w: _normalised(w)[0].mean(axis=-1), lambda w: _normalised(w)[:1].mean(axis=2)),
    ),
    Mistake(
        "last-row-only",
        "Only the last row of each table is looked at: average over all rows but the first.",
        (lambda w: _normalised(w)[..., -1].mean(axis=0),),
    ),
    Mistake(
        "sum-instead-of-mean",
        "The entropies are summed over rows or examples, so the result grows with their number: "
        "take the mean.",
        (
            lambda w: _normalised(w).sum(axis=(0, 2)),
            lambda w: _normalised(w).sum(axis=2).mean(axis=0),
            lambda w: _normalised(w).mean(axis=2).sum(axis=0),
        ),
    ),
    Mistake(
        "median",
        "This is the median, not the mean.",
        (lambda w: np.median(_normalised(w), axis=(0, 2)),),
    ),
    Mistake(
        "wrong-axis",
        "The entropy is that of the columns, what all queries give to one key. A row is a query's "
        "weights, along the last axis: sum over `axis=-1`.",
        (
            lambda w: _averaged(_rows(w.mT)),
            lambda w: (_rows(w.mT)[..., :-1] / np.log(_keys(w)[1:])).mean(axis=(0, 2)),
            lambda w: (_rows(w.mT)[..., :-1] / np.log(_keys(w)[:0:-1])).mean(axis=(0, 2)),
        ),
    ),
    Mistake(
        "terms-averaged",
        "The terms of a row are averaged over the keys, which divides by T once more: sum them. "
        "The weights are the average already.",
        (lambda w: _averaged(_rows(w) / w.shape[-1]),),
    ),
    Mistake(
        "sign-reversed",
        "The sign is missing: ln w is never above 0, so −Σ w · ln w is never below.",
        (lambda w: -_averaged(_rows(w)),),
    ),
    Mistake(
        "decidedness",
        "This is 1 minus what is asked for: 1 should be a head that looks at all keys alike.",
        (lambda w: 1 - _averaged(_rows(w)),),
    ),
    Mistake(
        "perplexity",
        "This has e to the power of the entropy in it, the number of keys among which a row seems "
        "to choose: leave the exponential out.",
        (
            lambda w: (np.exp(_rows(w)) / _keys(w))[..., 1:].mean(axis=(0, 2)),
            lambda w: (np.exp(_rows(w)) / _keys(w)).mean(axis=(0, 2)),
            lambda w: np.exp(_rows(w))[..., 1:].mean(axis=(0, 2)),
        ),
    ),
    Mistake(
        "largest-weight",
        "This is the mean of the largest weight of a row. It says how decided a head is, but it is "
        "not the entropy.",
        (
            lambda w: w.max(axis=-1)[..., 1:].mean(axis=(0, 2)),
            lambda w: w.max(axis=-1).mean(axis=(0, 2)),
        ),
    ),
    Mistake(
        "axes-kept",
        "The axes that were averaged over are still there, with length 1: leave `keepdims=True` "
        "out.",
        (
            lambda w: _normalised(w).mean(axis=(0, 2), keepdims=True),
            lambda w: _normalised(w).mean(axis=(0, 2))[None],
            lambda w: _normalised(w).mean(axis=(0, 2))[:, None],
        ),
    ),
)
