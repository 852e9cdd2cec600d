"""Lesson 2's wrong functions: what its checkers compare an answer with, to name the mistake.

Each differs from the right function, and from every other, on at least one case of its exercise;
tests hold that. Several references with one name are ways to write the same mistake.
"""

from __future__ import annotations

import numpy as np

from helpers.practice.exercises import Mistake


def _is_rounded(array, expected) -> bool:
    return any(np.allclose(array, np.round(expected, places), atol=1e-12) for places in range(8))


def _is_estimated(seen) -> bool:
    """Near on every input, and not by rounding: measured on random numbers, it seems."""
    wrong = [one for one in seen if not one.right]

    def estimated(one):
        array = one.answer.array
        if array is None or array.shape != one.expected.shape or _is_rounded(array, one.expected):
            return False
        return np.allclose(array, one.expected, rtol=0.3, atol=1e-9)

    return len(wrong) > len(seen) / 2 and all(map(estimated, wrong))


ESTIMATED = Mistake(
    "estimated",
    "The numbers are near on every input and exact on hardly any: is this measured on random "
    "vectors? The exercise asks for the formula.",
    sign=_is_estimated,
)


# --- 2.2 score_spread(d_k, mean, std) ---


def _pooled(d, m, s):
    return d * (s**4 + 2 * s**2 * m**2)


def _within(d, m, s):
    return d * (s**4 + s**2 * m**2)


def _both(change):
    """A change made to both variances."""
    return lambda d, m, s: (change(_pooled, d, m, s), change(_within, d, m, s))


SPREAD = (
    Mistake(
        "sigma-squared",
        "With mean 0 your variance is σ² · d_k, which counts σ once. A product has one factor from "
        "q and one from k: σ² · σ² = σ⁴.",
        (
            lambda d, m, s: (d * (s**2 + 2 * s**2 * m**2), d * (s**2 + s**2 * m**2)),
            lambda d, m, s: (d * (s**2 + 2 * m**2), d * (s**2 + m**2)),
            lambda d, m, s: (d * (s**2 + 2 * s * m**2), d * (s**2 + s * m**2)),
            lambda d, m, s: (d * s**2, d * s**2),
        ),
    ),
    Mistake(
        "mean-ignored",
        "The mean has no part in your result, but it adds to both variances: 2σ²μ² · d_k pooled, "
        "σ²μ² · d_k within a row.",
        (lambda d, m, s: (d * s**4, d * s**4),),
    ),
    Mistake(
        "std-ignored",
        "The standard deviation has no part in your result: this holds for σ = 1 only.",
        (lambda d, m, s: (d * (1 + 2 * m**2), d * (1 + m**2)), lambda d, m, s: (d, d)),
    ),
    Mistake(
        "standard-deviations",
        "These are standard deviations: the exercise asks for variances, without the root.",
        (_both(lambda part, d, m, s: np.sqrt(part(d, m, s))),),
    ),
    Mistake(
        "swapped",
        "Right numbers, wrong order: first the pooled variance, then that within a row (never the "
        "larger of the two).",
        (lambda d, m, s: (_within(d, m, s), _pooled(d, m, s)),),
    ),
    Mistake(
        "pooled-twice",
        "The pooled variance is right, and given for the row as well. Within a row q is fixed, and "
        "what q alone decides is shared by all keys: σ²μ² · d_k is left out.",
        (lambda d, m, s: (_pooled(d, m, s),) * 2,),
    ),
    Mistake(
        "within-row-twice",
        "The variance within a row is right, and given as the pooled one as well. Pooled over rows "
        "it is larger: the rows themselves move up and down, by σ²μ² · d_k.",
        (lambda d, m, s: (_within(d, m, s),) * 2,),
    ),
    Mistake(
        "mean-taken-for-a-shift",
        "The pooled variance is right. Within a row the mean of the keys is a shift, but the mean "
        "of the query is not: it multiplies entries that differ from key to key.",
        (lambda d, m, s: (_pooled(d, m, s), d * s**4),),
    ),
    Mistake(
        "mean-in-keys-only",
        "This would be right if only the keys had the mean μ. The queries have it too.",
        (lambda d, m, s: (_within(d, m, s), d * s**4),),
    ),
    Mistake(
        "mean-square",
        "The square of the mean is still in there: a variance is the mean square minus that. (A "
        "product has the mean μ², the score μ² · d_k.)",
        (
            _both(lambda part, d, m, s: part(d, m, s) + (m**2 * d) ** 2),
            _both(lambda part, d, m, s: part(d, m, s) + m**4 * d),
            lambda d, m, s: (d * (s**2 + m**2) ** 2, _within(d, m, s)),
            lambda d, m, s: (_pooled(d, m, s) + (m**2 * d) ** 2, _within(d, m, s)),
        ),
    ),
    Mistake(
        "mean-added",
        "μ² · d_k is the mean of the score. It is no part of a variance: what the mean adds to "
        "that comes with a factor σ².",
        (
            lambda d, m, s: (d * (s**4 + m**2), d * s**4),
            lambda d, m, s: (d * (s**4 + m**2),) * 2,
            lambda d, m, s: (d * (s**4 + 2 * m**2), d * (s**4 + m**2)),
            _both(lambda part, d, m, s: part(d, m, s) + m**2 * d),
        ),
    ),
    Mistake(
        "mean-not-squared",
        "The mean enters unsquared: a negative mean must widen the scores as a positive one does.",
        (lambda d, m, s: (d * (s**4 + 2 * s**2 * m), d * (s**4 + s**2 * m)),),
    ),
    Mistake(
        "already-divided",
        "The factor d_k is missing: this is one product, or the score divided by √d_k already.",
        (_both(lambda part, d, m, s: part(1, m, s)),),
    ),
    Mistake(
        "d_k-squared",
        "The factor is d_k² instead of d_k. Independent terms add their variances; d_k² would be "
        "the same product counted d_k times.",
        (_both(lambda part, d, m, s: d * part(d, m, s)),),
    ),
    Mistake(
        "root-of-d_k",
        "The factor is √d_k, the growth of the standard deviation: a variance grows like d_k.",
        (_both(lambda part, d, m, s: part(np.sqrt(d), m, s)),),
    ),
    Mistake(
        "d_k-hard-coded",
        "The result is right for d_k = 64 only: take `d_k` from the arguments.",
        (_both(lambda part, d, m, s: part(64, m, s)),),
    ),
    Mistake(
        "one-number-only",
        "This is one of the two variances: return both, `return pooled, within_row`.",
        (_pooled, _within),
    ),
    ESTIMATED,
)


# --- 2.1 variance_error(d_k, n) ---


def _error(d, n):
    return d * np.sqrt((2 + 6 / d) / n)


ERROR = (
    Mistake(
        "as-if-normal",
        "d_k · √(2/n) is the error for normally distributed values. Scores have heavier tails: "
        "their fourth moment is 3d_k² + 6d_k, not 3d_k², which matters at small d_k.",
        (lambda d, n: d * np.sqrt(2 / n), lambda d, n: d * np.sqrt(2 / (n - 1))),
    ),
    Mistake(
        "n-minus-1",
        "Only the n is off: you use n − 1, in a part or in all of it, which is finer than the "
        "exercise asks for and the same for many pairs. Divide everything by n.",
        (
            lambda d, n: _error(d, n - 1),
            lambda d, n: d * np.sqrt(2 / (n - 1) + 6 / (d * n)),
        ),
    ),
    Mistake(
        "divided-by-n",
        "The root of n is missing: the variance of an average falls like 1/n, so its standard "
        "error falls like 1/√n.",
        (lambda d, n: d * np.sqrt(2 + 6 / d) / n, lambda d, n: d * np.sqrt(2) / n),
    ),
    Mistake(
        "n-forgotten",
        "The number of pairs has no part in your result: four times as many pairs halve the error.",
        (lambda d, n: d * np.sqrt(2 + 6 / d), lambda d, n: d * np.sqrt(2)),
    ),
    Mistake(
        "root-forgotten",
        "This is the square of the standard error, (μ₄ − σ⁴)/n: take its root.",
        (lambda d, n: _error(d, n) ** 2,),
    ),
    Mistake(
        "sigma-fourth-forgotten",
        "The square of the variance, σ⁴ = d_k², is not subtracted from the fourth moment.",
        (lambda d, n: np.sqrt((3 * d**2 + 6 * d) / n), lambda d, n: np.sqrt(3 * d**2 / n)),
    ),
    Mistake(
        "variance-instead-of-its-square",
        "What is subtracted from the fourth moment is d_k, the variance itself: σ⁴ is its square, "
        "d_k².",
        (lambda d, n: np.sqrt((3 * d**2 + 6 * d - d) / n),),
    ),
    Mistake(
        "error-of-the-mean",
        "√(d_k/n) is the standard error of the mean of the scores. The exercise asks for that of "
        "their variance.",
        (lambda d, n: np.sqrt(d / n),),
    ),
    Mistake(
        "error-of-the-deviation",
        "This is the standard error of the measured standard deviation, 2√d_k times smaller than "
        "that of the variance.",
        (lambda d, n: _error(d, n) / (2 * np.sqrt(d)),),
    ),
    Mistake(
        "relative-error",
        "This is the error as a share of the variance: multiply by d_k.",
        (lambda d, n: _error(d, n) / d,),
    ),
    Mistake(
        "variance-over-root-n",
        "d_k/√n divides the variance itself by √n. How much the squares of the scores scatter, "
        "√(μ₄ − σ⁴), must stand above √n.",
        (lambda d, n: d / np.sqrt(n),),
    ),
    Mistake(
        "kurtosis-alone",
        "Only the excess kurtosis 6/d_k is there: the 2 of the normal distribution comes first.",
        (lambda d, n: d * np.sqrt(6 / d / n),),
    ),
    Mistake(
        "kurtosis-of-one-product",
        "6 is the excess kurtosis of one product qᵢkᵢ. In a sum of d_k of them it falls to 6/d_k.",
        (lambda d, n: d * np.sqrt((2 + 6) / n),),
    ),
    Mistake(
        "kurtosis-multiplied",
        "The excess kurtosis falls as d_k grows: 6/d_k, not 6 · d_k.",
        (lambda d, n: d * np.sqrt((2 + 6 * d) / n),),
    ),
    Mistake(
        "n-in-one-part-only",
        "Only the 2 is divided by n: the part with the kurtosis falls with the number of pairs "
        "too.",
        (lambda d, n: d * np.sqrt(2 / n + 6 / d),),
    ),
    Mistake(
        "root-of-d_k",
        "The factor in front is √d_k instead of d_k: the error of a variance is proportional to "
        "that variance.",
        (lambda d, n: np.sqrt(d) * np.sqrt((2 + 6 / d) / n),),
    ),
    Mistake(
        "three-errors",
        "These are three standard errors: the exercise asks for one.",
        (lambda d, n: 3 * _error(d, n),),
    ),
    Mistake(
        "d_k-hard-coded",
        "The result is right for d_k = 64 only: take `d_k` from the arguments.",
        (lambda d, n: _error(64, n),),
    ),
    Mistake(
        "pairs-hard-coded",
        "The result is right for 10,000 pairs only: take `n` from the arguments.",
        (lambda d, n: _error(d, 10_000),),
    ),
    ESTIMATED,
)


# --- 2.3 initial_score_std(d_head, d_model, weight_std) ---

INITIAL = (
    Mistake(
        "std-once",
        "The standard deviation of the weights enters once, but a score has a weight of W_Q and a "
        "weight of W_K in every term: `weight_std` squared.",
        (lambda h, d, w: np.sqrt(h) * d * w,),
    ),
    Mistake(
        "root-of-d_model",
        "√d_model in place of d_model: an entry of q contributes a factor √d_model, and so does an "
        "entry of k.",
        (lambda h, d, w: np.sqrt(h) * np.sqrt(d) * w**2,),
    ),
    Mistake(
        "root-forgotten",
        "d_head enters without its root: the variances of d_head terms add up, and the standard "
        "deviation is the root of the sum.",
        (lambda h, d, w: h * d * w**2,),
    ),
    Mistake(
        "already-scaled",
        "This is the standard deviation after the division by √d_head. The exercise asks for the "
        "unscaled score.",
        (lambda h, d, w: d * w**2,),
    ),
    Mistake(
        "divided-by-d_head",
        "This is the standard deviation after a division by d_head. The exercise asks for the "
        "unscaled score.",
        (lambda h, d, w: d * w**2 / np.sqrt(h),),
    ),
    Mistake(
        "variance",
        "This is the variance of the score: take its root.",
        (lambda h, d, w: h * (d * w**2) ** 2,),
    ),
    Mistake(
        "variances-not-multiplied",
        "The variance of an entry of q is there, but a product has an entry of k too: its variance "
        "is the product of both, (d_model · `weight_std`²)².",
        (lambda h, d, w: np.sqrt(h * d * w**2),),
    ),
    Mistake(
        "std-to-the-fourth",
        "`weight_std` to the fourth power belongs into the variance. In the standard deviation it "
        "is squared.",
        (lambda h, d, w: np.sqrt(h) * d * w**4, lambda h, d, w: np.sqrt(h) * d**2 * w**4),
    ),
    Mistake(
        "d_model-for-d_head",
        "The dot product runs over d_head entries, not over d_model: √d_head.",
        (lambda h, d, w: np.sqrt(d) * d * w**2,),
    ),
    Mistake(
        "widths-exchanged",
        "d_head and d_model have changed places: an entry of q sums d_model terms, the score "
        "d_head of them.",
        (lambda h, d, w: np.sqrt(d) * h * w**2,),
    ),
    Mistake(
        "d_model-forgotten",
        "d_model has no part in your result, but every entry of q and k is a sum of d_model terms.",
        (lambda h, d, w: np.sqrt(h) * w**2,),
    ),
    Mistake(
        "d_model-squared",
        "d_model enters squared: the variance of the score has (d_model)², its standard deviation "
        "d_model.",
        (lambda h, d, w: np.sqrt(h) * d**2 * w**2,),
    ),
    Mistake(
        "unit-variance-assumed",
        "√d_head is right for q and k with variance 1. Here they have the variance d_model · "
        "`weight_std`².",
        (lambda h, d, w: np.sqrt(h),),
    ),
    Mistake(
        "one-entry",
        "This is the spread of one entry of q, not of the dot product of q and k.",
        (lambda h, d, w: np.sqrt(d) * w,),
    ),
    Mistake(
        "sizes-hard-coded",
        "One of the widths is fixed at 64 or 768: take `d_head` and `d_model` from the arguments.",
        (
            lambda h, d, w: np.sqrt(64) * d * w**2,
            lambda h, d, w: np.sqrt(h) * 768 * w**2,
            lambda h, d, w: np.sqrt(64) * 768 * w**2,
        ),
    ),
    Mistake(
        "weight-std-hard-coded",
        "The result is right for a `weight_std` of 0.02 only: take it from the arguments.",
        (lambda h, d, w: np.sqrt(h) * d * 0.02**2,),
    ),
    ESTIMATED,
)


# --- 2.4 scaled_head_scores(q, k, heads) ---


def _split(x, heads):
    """(T, d_model) -> (heads, T, d_head), as it should be."""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def _interleaved(x, heads):
    return x.reshape(len(x), -1, heads).transpose(2, 0, 1)


def _blocks(x, heads):
    """Reshape alone: the rows of a head are pieces of several tokens."""
    return x.reshape(heads, len(x), -1)


def _raw(q, k, heads, split_q=_split, split_k=_split):
    return split_q(q, heads) @ split_k(k, heads).mT


def _root(q, heads):
    return np.sqrt(q.shape[-1] // heads)


def _scores(q, k, heads, **parts):
    return _raw(q, k, heads, **parts) / _root(q, heads)


def _softmax(x):
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def _unsplit(q, k, heads, divisor):
    return q @ k.T / divisor(q, heads)


_WHOLE = (_root, lambda q, heads: np.sqrt(q.shape[-1]), lambda q, heads: 1)

HEADS = (
    Mistake(
        "scaled-by-sqrt-d_model",
        "The divisor is √d_model. A head's dot product sums d_head = d_model/heads products: "
        "divide by √d_head.",
        (lambda q, k, n: _raw(q, k, n) / np.sqrt(q.shape[-1]),),
    ),
    Mistake(
        "divided-by-d_head",
        "The divisor is d_head: its root is needed, once.",
        (lambda q, k, n: _scores(q, k, n) / _root(q, n),),
    ),
    Mistake(
        "no-scale",
        "These are the raw scores of each head: divide them by √d_head.",
        (_raw,),
    ),
    Mistake(
        "multiplied",
        "The scores are multiplied by √d_head instead of divided by it.",
        (lambda q, k, n: _raw(q, k, n) * _root(q, n),),
    ),
    Mistake(
        "scaled-by-sqrt-heads",
        "The divisor is the root of the number of heads: take the number of features in one head.",
        (lambda q, k, n: _raw(q, k, n) / np.sqrt(n),),
    ),
    Mistake(
        "scaled-by-sqrt-T",
        "The divisor is the root of the number of tokens: take the number of features in one head.",
        (
            lambda q, k, n: _raw(q, k, n) / np.sqrt(len(q)),
            lambda q, k, n: _raw(q, k, n) / np.sqrt(len(k)),
        ),
    ),
    Mistake(
        "scale-hard-coded",
        "The divisor is the same number for every input: compute d_head = d_model/heads.",
        (
            lambda q, k, n: _raw(q, k, n) / np.sqrt(2),
            lambda q, k, n: _raw(q, k, n) / 2,
            lambda q, k, n: _raw(q, k, n) / 8,
        ),
    ),
    Mistake(
        "heads-mixed-by-reshape",
        "`reshape(heads, T, d_head)` reads on past the end of a head into the next one, so tokens "
        "and heads are mixed. Cut each row first, `reshape(T, heads, d_head)`, then swap the axes.",
        tuple(
            lambda q, k, n, parts=parts, root=root: _raw(q, k, n, **parts) / root(q, n)
            for parts in (
                {"split_q": _blocks, "split_k": _blocks},
                {"split_q": _blocks},
                {"split_k": _blocks},
            )
            for root in _WHOLE
        ),
    ),
    Mistake(
        "keys-reshaped-not-transposed",
        "The keys of a head are brought to (d_head, T_k) by `reshape`, which keeps the numbers in "
        "their old order. Exchange the axes: `.swapaxes(1, 2)`.",
        (
            lambda q, k, n: _split(q, n) @ k.reshape(n, -1, len(k)) / _root(q, n),
            lambda q, k, n: _split(q, n) @ _split(k, n).reshape(n, -1, len(k)) / _root(q, n),
        ),
    ),
    Mistake(
        "heads-interleaved",
        "Head h gets every heads-th column, h, h + heads, …: it owns neighbouring ones, "
        "h · d_head to (h + 1) · d_head.",
        tuple(
            lambda q, k, n, root=root: (
                _raw(q, k, n, split_q=_interleaved, split_k=_interleaved) / root(q, n)
            )
            for root in _WHOLE
        ),
    ),
    Mistake(
        "heads-with-heads",
        "The axis of the heads does not come first, so `@` multiplies the heads of one token with "
        "each other: swap the axes of `(T, heads, d_head)` before.",
        (
            lambda q, k, n: q.reshape(len(q), n, -1) @ k.reshape(len(k), n, -1).mT / _root(q, n),
            lambda q, k, n: q.reshape(len(q), n, -1) @ k.reshape(len(k), n, -1).mT,
        ),
    ),
    Mistake(
        "heads-not-first",
        "The numbers are right, but the axes are in another order: the result must have the shape "
        "(heads, T_q, T_k).",
        (
            lambda q, k, n: _scores(q, k, n).transpose(1, 2, 0),
            lambda q, k, n: _scores(q, k, n).transpose(1, 0, 2),
        ),
    ),
    Mistake(
        "transposed-result",
        "Rows and columns are exchanged: in each head, entry (i, j) belongs to query i and key j.",
        (lambda q, k, n: _scores(q, k, n).mT,),
    ),
    Mistake(
        "not-split",
        "This is one table over all features, as if there were a single head: each head sums over "
        "its own columns only.",
        tuple(
            lambda q, k, n, divisor=divisor, shape=shape: shape(_unsplit(q, k, n, divisor), n)
            for divisor in _WHOLE
            for shape in (lambda s, n: s, lambda s, n: np.stack([s] * n))
        ),
    ),
    Mistake(
        "averaged-over-heads",
        "The heads are averaged. Each keeps a table of its own.",
        (lambda q, k, n: _scores(q, k, n).mean(axis=0),),
    ),
    Mistake(
        "first-head-only",
        "Only the first head's columns are used.",
        (
            lambda q, k, n: _scores(q, k, n)[0],
            lambda q, k, n: np.stack([_scores(q, k, n)[0]] * n),
        ),
    ),
    Mistake(
        "already-weights",
        "These are attention weights: stop before the softmax.",
        (lambda q, k, n: _softmax(_scores(q, k, n)),),
    ),
    Mistake(
        "queries-with-queries",
        "The queries are multiplied with themselves: the second factor must be the keys.",
        (lambda q, k, n: _scores(q, q, n),),
    ),
    Mistake(
        "keys-not-transposed",
        "`q @ k` of each head multiplies rows of q with columns of k, but a key is a row: exchange "
        "the last two axes of k.",
        (lambda q, k, n: _split(q, n) @ _split(k, n) / _root(q, n),),
    ),
    Mistake(
        "floor-division",
        "`//` drops what is behind the decimal point: divide the scores with `/`.",
        (lambda q, k, n: _raw(q, k, n) // _root(q, n),),
    ),
    Mistake(
        "heads-hard-coded",
        "The number of heads, or their width, is fixed at 2: take the argument `heads`, and "
        "d_head = d_model/heads.",
        (lambda q, k, n: _scores(q, k, 2), lambda q, k, n: _scores(q, k, q.shape[-1] // 2)),
    ),
)
