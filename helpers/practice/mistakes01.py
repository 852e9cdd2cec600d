"""Lesson 1's wrong functions: what its checkers compare an answer with, to name the mistake.

Each differs from the right function, and from every other, on at least one case of its exercise;
tests hold that. Several references with one name are ways to write the same mistake.
"""

from __future__ import annotations

import numpy as np

from helpers.practice.exercises import Mistake


def _softmax(x, axis=-1):
    exps = np.exp(x - x.max(axis=axis, keepdims=True))
    return exps / exps.sum(axis=axis, keepdims=True)


def _naive(x, axis=-1):
    """Softmax without the maximum subtracted."""
    exps = np.exp(x)
    return exps / exps.sum(axis=axis, keepdims=True)


def _normalised(x):
    return x / x.sum(axis=-1, keepdims=True)


def _sqrt_d(q):
    return np.sqrt(q.shape[-1])


def _overflows(seen) -> bool:
    """Wrong on the large cases alone, and there with nan, inf or an OverflowError."""

    def careless(one):
        if one.answer.kind == "raised":
            return one.answer.fault.name in (
                "OverflowError",
                "FloatingPointError",
                "ZeroDivisionError",
            )
        return one.answer.array is not None and not np.isfinite(one.answer.array).all()

    return all(one.right or (one.case.large and careless(one)) for one in seen)


def _comparable(seen):
    """The wrong answers, if all of them have the right shape and finite numbers; else none."""
    wrong = [one for one in seen if not one.right]

    def comparable(one):
        array = one.answer.array
        return array is not None and array.shape == one.expected.shape and np.isfinite(array).all()

    return wrong if all(map(comparable, wrong)) else []


OVERFLOWS = (
    "Right until the scores get large: then exp overflows (or every exponential of a row is 0) and "
    "nan comes out. Subtract each row's maximum before exp; the weights stay the same."
)


# --- 1.1 scores(q, k) ---

SCORES = (
    Mistake(
        "keys-not-transposed",
        "`q @ k` multiplies rows of q with columns of k, but a key is a row: transpose it, `k.T`.",
        (lambda q, k: q @ k,),
    ),
    Mistake(
        "elementwise-product",
        "`q * k` multiplies entry by entry and sums nothing: a dot product needs `@`.",
        (lambda q, k: q * k,),
    ),
    Mistake(
        "own-key-only",
        "This pairs query i with key i alone. Every query needs every key: a table of T_q × T_k.",
        (
            lambda q, k: (q * k).sum(axis=-1),
            lambda q, k: (q * k).sum(axis=-1, keepdims=True),
            lambda q, k: np.array([a @ b for a, b in zip(q, k, strict=True)]),
            lambda q, k: np.array([a @ b for a, b in zip(q, k, strict=False)]),
            lambda q, k: np.diag(np.diag(q @ k.T)) + 0 * (q @ k.T),
        ),
    ),
    Mistake(
        "already-scaled",
        "These scores are divided by √d_k already; this exercise asks for them raw.",
        (lambda q, k: q @ k.T / _sqrt_d(q),),
    ),
    Mistake(
        "divided-by-d_k",
        "These scores are divided by d_k; this exercise asks for them raw.",
        (lambda q, k: q @ k.T / q.shape[-1],),
    ),
    Mistake(
        "already-weights",
        "These are attention weights: stop before the softmax.",
        (
            lambda q, k: _softmax(q @ k.T / _sqrt_d(q)),
            lambda q, k: _softmax(q @ k.T),
            lambda q, k: _naive(q @ k.T / _sqrt_d(q)),
            lambda q, k: _naive(q @ k.T),
        ),
    ),
    Mistake(
        "transposed-result",
        "Rows and columns are exchanged: entry (i, j) must belong to query i and key j, which "
        "`k @ q.T` turns round.",
        (lambda q, k: k @ q.T,),
    ),
    Mistake(
        "queries-with-queries",
        "This multiplies the queries with themselves, `q @ q.T`: the second factor must be the "
        "keys.",
        (lambda q, k: q @ q.T,),
    ),
    Mistake(
        "keys-with-keys",
        "This multiplies the keys with themselves, `k @ k.T`: the first factor must be the "
        "queries.",
        (lambda q, k: k @ k.T,),
    ),
    Mistake(
        "features-with-features",
        "`q.T @ k` sums over the tokens and gives a table of features: sum over the features "
        "instead.",
        (lambda q, k: q.T @ k, lambda q, k: k.T @ q),
    ),
    Mistake(
        "cosine-similarity",
        "This divides by the lengths of q and k, which gives cosines: take the plain dot product.",
        (
            lambda q, k: (
                (q @ k.T)
                / np.linalg.norm(q, axis=-1)[:, None]
                / np.linalg.norm(k, axis=-1)[None, :]
            ),
        ),
    ),
    Mistake(
        "distance",
        "These are distances between q and k, not their dot products.",
        (
            lambda q, k: np.linalg.norm(q[:, None] - k[None], axis=-1),
            lambda q, k: -np.linalg.norm(q[:, None] - k[None], axis=-1),
            lambda q, k: ((q[:, None] - k[None]) ** 2).sum(axis=-1),
            lambda q, k: -((q[:, None] - k[None]) ** 2).sum(axis=-1),
        ),
    ),
    Mistake(
        "absolute-values",
        "The minus signs are lost: a dot product may be negative.",
        (lambda q, k: np.abs(q @ k.T), lambda q, k: np.abs(q) @ np.abs(k).T),
    ),
    Mistake(
        "not-summed",
        "The products are there, but not summed over the features: the result has an axis too "
        "many.",
        (lambda q, k: q[:, None, :] * k[None, :, :],),
    ),
    Mistake(
        "added-not-multiplied",
        "This adds the entries of q and k instead of multiplying them.",
        (lambda q, k: (q[:, None, :] + k[None, :, :]).sum(axis=-1),),
    ),
)


# --- 1.2 softmax(scores) ---


def _keepdims(x, max_keeps, sum_keeps, shift=True):
    exps = np.exp(x - x.max(axis=-1, keepdims=max_keeps)) if shift else np.exp(x)
    return exps / exps.sum(axis=-1, keepdims=sum_keeps)


def _rows_do_not_sum_to_1(seen):
    return any(
        not np.allclose(one.answer.array.sum(axis=-1), 1, atol=1e-3) for one in _comparable(seen)
    )


SOFTMAX = (
    Mistake(
        "softmax-wrong-axis",
        "The columns of your result sum to 1, not the rows: the softmax runs over the wrong axis "
        "(use `axis=-1`).",
        (
            lambda x: _softmax(x, axis=0),
            lambda x: _naive(x, axis=0),
            lambda x: (e := np.exp(x - x.max(axis=-1, keepdims=True))) / e.sum(axis=0),
            lambda x: (e := np.exp(x - x.max())) / e.sum(axis=0),
        ),
    ),
    Mistake(
        "softmax-over-all",
        "The whole table sums to 1: each row must sum to 1 by itself (sum over `axis=-1`).",
        (
            lambda x: _softmax(x, axis=None),
            lambda x: np.exp(x) / np.exp(x).sum(),
            lambda x: (e := np.exp(x - x.max(axis=-1, keepdims=True))) / e.sum(),
        ),
    ),
    Mistake("overflows", OVERFLOWS, (_naive,), _overflows),
    Mistake(
        "maximum-of-the-whole-table",
        "The maximum of the whole table is subtracted. In a row far below it every exponential is "
        "0, and 0/0 is nan: subtract each row's own maximum (`axis=-1, keepdims=True`).",
        (lambda x: _normalised(np.exp(x - x.max())),),
    ),
    Mistake(
        "maximum-of-the-columns",
        "Each column's maximum is subtracted, each row's sum divided by: within a row the scores "
        "are then shifted by different amounts, which changes the weights. Use `axis=-1` for both.",
        (lambda x: _normalised(np.exp(x - x.max(axis=0))),),
    ),
    Mistake(
        "keepdims-missing",
        "Without `keepdims=True` the maximum or the sum of each row has the shape (T_q,), and "
        "NumPy lays it along the columns instead of down the rows.",
        (
            lambda x: _keepdims(x, False, True),
            lambda x: _keepdims(x, True, False),
            lambda x: _keepdims(x, False, False),
            lambda x: _keepdims(x, True, False, shift=False),
        ),
    ),
    Mistake(
        "scores-unchanged",
        "These are the scores as they came in: exp and the division by the sum are still to come.",
        (lambda x: x,),
    ),
    Mistake(
        "not-normalised",
        "These are exponentials, not yet weights: divide each row by its sum.",
        (
            lambda x: np.exp(x),
            lambda x: np.exp(x - x.max(axis=-1, keepdims=True)),
            lambda x: np.exp(x - x.max()),
        ),
    ),
    Mistake(
        "divided-by-the-maximum",
        "The exponentials are divided by the largest of them: divide by their sum.",
        (lambda x: (e := np.exp(x)) / e.max(axis=-1, keepdims=True),),
    ),
    Mistake(
        "exp-forgotten",
        "The scores themselves are divided by their sum: take exp first, which makes them "
        "positive.",
        (
            _normalised,
            lambda x: _normalised(x - x.max(axis=-1, keepdims=True)),
            lambda x: _normalised(x - x.min(axis=-1, keepdims=True)),
        ),
    ),
    Mistake(
        "absolute-values",
        "The sign of the scores is lost: a negative score must get a small weight.",
        (
            lambda x: _normalised(np.abs(x)),
            lambda x: _softmax(np.abs(x)),
            lambda x: _naive(np.abs(x)),
        ),
    ),
    Mistake(
        "squares",
        "The scores are squared instead of exponentiated, so −2 counts like 2.",
        (lambda x: _normalised(x**2),),
    ),
    Mistake(
        "other-base",
        "The powers have another base than e (2 or 10): use `np.exp`.",
        (
            lambda x: _softmax(x * np.log(2)),
            lambda x: _softmax(x * np.log(10)),
            lambda x: _normalised(np.exp2(x)),
            lambda x: _normalised(np.power(10.0, x)),
        ),
    ),
    Mistake(
        "logarithm-of-the-weights",
        "These are the logarithms of the weights: take exp of them.",
        (
            lambda x: (
                x
                - x.max(axis=-1, keepdims=True)
                - np.log(np.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True))
            ),
            lambda x: np.log(_naive(x)),
            lambda x: np.log(_softmax(x)),
        ),
    ),
    Mistake(
        "sigmoid",
        "This squashes each score by itself (a sigmoid): the weights of a row must compete and "
        "sum to 1.",
        (lambda x: 1 / (1 + np.exp(-x)),),
    ),
    Mistake(
        "winner-takes-all",
        "The largest score gets the whole weight: softmax gives every key a share.",
        (
            lambda x: np.eye(x.shape[-1])[x.argmax(axis=-1)],
            lambda x: _normalised((x == x.max(axis=-1, keepdims=True)).astype(float)),
            lambda x: (x == x.max(axis=-1, keepdims=True)).astype(float),
        ),
    ),
    Mistake(
        "sign-reversed",
        "The smallest score gets the largest weight: the sign in the exponent is reversed.",
        (
            lambda x: _softmax(-x),
            lambda x: _naive(-x),
            lambda x: _normalised(np.exp(x.max(axis=-1, keepdims=True) - x)),
        ),
    ),
    Mistake(
        "divided-by-the-largest-score",
        "The scores are divided by their maximum, which changes the weights: subtract it.",
        (lambda x: _naive(x / x.max(axis=-1, keepdims=True)), lambda x: _naive(x / x.max())),
    ),
    Mistake(
        "scaled-again",
        "The scores are divided by √T_k or T_k: the division by √d_k came before, and d_k cannot "
        "be seen here.",
        (lambda x: _softmax(x / np.sqrt(x.shape[-1])), lambda x: _softmax(x / x.shape[-1])),
    ),
    Mistake(
        "rows-do-not-sum-to-1",
        "The rows of your result do not sum to 1.",
        sign=_rows_do_not_sum_to_1,
    ),
)


# --- 1.3 attention(q, k, v) ---


def _output_leaves_v(seen):
    """Some output entry lies outside the range of its column of v."""
    return any(
        (one.answer.array > one.case.args[2].max(axis=0) + 1e-3).any()
        or (one.answer.array < one.case.args[2].min(axis=0) - 1e-3).any()
        for one in _comparable(seen)
    )


def _both(divide, mix=lambda weights, v: weights @ v):
    """The mistake with a careful softmax and with one that overflows: two references."""
    return tuple(
        lambda q, k, v, soft=soft: mix(soft(divide(q @ k.T, q, k, v)), v)
        for soft in (_softmax, _naive)
    )


_NO_SCALE = "The scores are not divided by √d_k."
_BY_D_K = (
    "The scores are divided by d_k instead of √d_k (or by √d_k twice, which is the same): use "
    "`np.sqrt(d_k)`, once."
)
_MULTIPLIED = "The scores are multiplied by √d_k instead of divided by it."
_HARD_CODED = (
    "The scores are divided by 2, which is √d_k only for d_k = 4: take d_k from `q.shape[-1]`."
)
_WRONG_AXIS = (
    "The softmax runs over the queries: each query's weights over the keys must sum to 1 "
    "(use `axis=-1`)."
)

# What the doctor knows in words as good is not here.
ATTENTION = (
    Mistake("no-scale", _NO_SCALE, _both(lambda s, q, k, v: s)),
    Mistake("divided-by-d_k", _BY_D_K, _both(lambda s, q, k, v: s / q.shape[-1])),
    Mistake("multiplied-by-sqrt-d_k", _MULTIPLIED, _both(lambda s, q, k, v: s * _sqrt_d(q))),
    Mistake(
        "scaled-by-sqrt-d_v",
        "The scores are divided by √d_v: a dot product q · k sums d_k terms, so use √d_k, with "
        "d_k = `q.shape[-1]`.",
        _both(lambda s, q, k, v: s / np.sqrt(v.shape[-1])),
    ),
    Mistake(
        "scaled-by-sqrt-T",
        "The scores are divided by the root of the number of tokens: use the length of one query, "
        "`q.shape[-1]`.",
        _both(lambda s, q, k, v: s / np.sqrt(len(k)))
        + _both(lambda s, q, k, v: s / np.sqrt(len(q))),
    ),
    Mistake(
        "scale-hard-coded",
        _HARD_CODED,
        _both(lambda s, q, k, v: s / 2),
    ),
    Mistake(
        "floor-division",
        "`//` drops what is behind the decimal point: divide with `/`.",
        _both(lambda s, q, k, v: s // _sqrt_d(q)),
    ),
    Mistake(
        "scaled-after-softmax",
        "The division by √d_k comes after the softmax, so the weights no longer sum to 1: divide "
        "the scores, before it.",
        tuple(
            lambda q, k, v, soft=soft: soft(q @ k.T) @ v / _sqrt_d(q) for soft in (_softmax, _naive)
        ),
    ),
    Mistake(
        "softmax-wrong-axis",
        _WRONG_AXIS,
        tuple(
            lambda q, k, v, soft=soft: soft(q @ k.T / _sqrt_d(q), axis=0) @ v
            for soft in (_softmax, _naive)
        ),
    ),
    Mistake(
        "softmax-over-all",
        "The weights of the whole table sum to 1: each row must sum to 1 by itself.",
        (
            lambda q, k, v: _softmax(q @ k.T / _sqrt_d(q), axis=None) @ v,
            lambda q, k, v: _naive(q @ k.T / _sqrt_d(q), axis=(0, 1)) @ v,
        ),
    ),
    Mistake(
        "no-softmax",
        "The scores are used as weights: the softmax is missing.",
        (lambda q, k, v: q @ k.T / _sqrt_d(q) @ v, lambda q, k, v: q @ k.T @ v),
    ),
    Mistake(
        "not-normalised",
        "The exponentials are used as weights: divide each row by its sum first.",
        (
            lambda q, k, v: np.exp(q @ k.T / _sqrt_d(q)) @ v,
            lambda q, k, v: np.exp((s := q @ k.T / _sqrt_d(q)) - s.max(axis=-1, keepdims=True)) @ v,
        ),
    ),
    Mistake(
        "keys-for-values",
        "The keys are mixed instead of the values: the last factor must be `v`.",
        (
            lambda q, k, v: _softmax(q @ k.T / _sqrt_d(q)) @ k,
            lambda q, k, v: _naive(q @ k.T / _sqrt_d(q)) @ k,
        ),
    ),
    Mistake(
        "values-transposed",
        "`v` is transposed: weights (T_q, T_k) @ v (T_k, d_v) fits as it is.",
        (
            lambda q, k, v: _softmax(q @ k.T / _sqrt_d(q)) @ v.T,
            lambda q, k, v: _naive(q @ k.T / _sqrt_d(q)) @ v.T,
        ),
    ),
    Mistake(
        "weights-returned",
        "These are the weights: multiply them with `v`.",
        _both(lambda s, q, k, v: s / _sqrt_d(q), lambda weights, v: weights),
    ),
    Mistake(
        "scores-returned",
        "These are the scores: the softmax and the values are still to come.",
        (lambda q, k, v: q @ k.T / _sqrt_d(q), lambda q, k, v: q @ k.T),
    ),
    Mistake(
        "keys-not-transposed",
        "`q @ k` multiplies rows of q with columns of k, but a key is a row: transpose it, `k.T`.",
        tuple(
            lambda q, k, v, soft=soft: soft(q @ k / _sqrt_d(q)) @ v for soft in (_softmax, _naive)
        ),
    ),
    Mistake(
        "overflows", OVERFLOWS, (lambda q, k, v: _naive(q @ k.T / _sqrt_d(q)) @ v,), _overflows
    ),
    Mistake(
        "maximum-of-the-whole-table",
        "The maximum of the whole table is subtracted before exp. In a row far below it every "
        "exponential is 0, and 0/0 is nan: subtract each row's own maximum.",
        (lambda q, k, v: _normalised(np.exp((s := q @ k.T / _sqrt_d(q)) - s.max())) @ v,),
    ),
    Mistake(
        "output-leaves-the-values",
        "Some entry of the output lies outside its column of `v`. A weighted mean cannot do that, "
        "so these weights are negative or do not sum to 1.",
        sign=_output_leaves_v,
    ),
)


# --- 1.4 causal_attention(q, k, v) ---


def _lower(table, diagonal=0):
    return np.tril(np.ones(table.shape, dtype=bool), diagonal)


def _causal(q, k, v, soft=_softmax, divide=None, allowed=None, fill=-np.inf, axis=-1):
    """Causal attention with one part exchanged."""
    scores = q @ k.T
    scaled = scores / _sqrt_d(q) if divide is None else divide(scores)
    masked = np.where(_lower(scaled) if allowed is None else allowed(scaled), scaled, fill)
    return soft(masked, axis=axis) @ v


def _with(**parts):
    """The variant with a careful softmax and with one that overflows: two references."""
    return tuple(
        lambda q, k, v, soft=soft: _causal(q, k, v, soft, **parts) for soft in (_softmax, _naive)
    )


def _after(q, k, v, soft=_softmax, normalise=False):
    """Causal attention with the future's weights removed after the softmax."""
    weights = np.tril(soft(q @ k.T / _sqrt_d(q)))
    return (_normalised(weights) if normalise else weights) @ v


def _first_row_is_not_v0(seen):
    return any(
        not np.allclose(one.answer.array[0], one.case.args[2][0], atol=1e-3)
        for one in _comparable(seen)
    )


CAUSAL = (
    Mistake(
        "no-mask",
        "This is attention without a mask: every query sees the future too.",
        tuple(
            lambda q, k, v, soft=soft: soft(q @ k.T / _sqrt_d(q)) @ v for soft in (_softmax, _naive)
        ),
    ),
    Mistake(
        "mask-inverted",
        "The mask is upside down: query i sees the keys from i on. It may see keys 0 … i: "
        "`np.tril`, not `np.triu`, or swap the two cases in `np.where`.",
        _with(allowed=lambda s: _lower(s).T) + _with(allowed=lambda s: ~_lower(s)),
    ),
    Mistake(
        "diagonal-masked",
        "The diagonal is masked as well: query i must see key i, and the first query is left with "
        "nothing (nan).",
        (
            *_with(allowed=lambda s: _lower(s, -1)),
            lambda q, k, v: np.nan_to_num(_causal(q, k, v, allowed=lambda s: _lower(s, -1))),
        ),
    ),
    Mistake(
        "off-by-one",
        "The future leaks: query i sees key i + 1. The diagonal is the last key it may see.",
        _with(allowed=lambda s: _lower(s, 1)),
    ),
    Mistake(
        "masked-with-zero",
        "Masked scores are set to 0, and exp(0) = 1 still has weight: set them to −∞ (`-np.inf`).",
        _with(fill=0.0),
    ),
    Mistake(
        "masked-after-softmax",
        "The weights are set to 0 after the softmax, so the rows no longer sum to 1: mask the "
        "scores before it.",
        tuple(lambda q, k, v, soft=soft: _after(q, k, v, soft) for soft in (_softmax, _naive)),
    ),
    Mistake(
        "renormalised-after-softmax",
        "Masked after the softmax and divided by the rest: right until a masked score is far "
        "larger than all allowed ones, whose weights have then become 0, and 0/0 is nan. Mask "
        "before.",
        (lambda q, k, v: _after(q, k, v, normalise=True),),
    ),
    Mistake(
        "all-nan",
        "Every entry is nan. If a mask of zeros and ones is multiplied by `-np.inf`, that is why: "
        "0 · (−∞) is nan. Use `np.where(may_attend, scaled, -np.inf)`.",
        (lambda q, k, v: np.full((len(q), v.shape[-1]), np.nan),),
    ),
    Mistake(
        "masked-with-too-small-a-number",
        "Masked scores get a number that is low but not low enough (such as −10 or −100): with "
        "large scores the future still shows through. Use `-np.inf`.",
        tuple(
            lambda q, k, v, fill=fill, how=how: _softmax(how(q @ k.T / _sqrt_d(q), fill)) @ v
            for fill in (-1.0, -10.0, -100.0, -1000.0)
            for how in (
                lambda s, fill: np.where(_lower(s), s, fill),
                lambda s, fill: s + np.where(_lower(s), 0, fill),
            )
        ),
    ),
    Mistake("no-scale", _NO_SCALE, _with(divide=lambda s: s)),
    Mistake(
        "divided-by-d_k",
        _BY_D_K,
        tuple(
            lambda q, k, v, soft=soft: _causal(q, k, v, soft, divide=lambda s: s / q.shape[-1])
            for soft in (_softmax, _naive)
        ),
    ),
    Mistake(
        "multiplied-by-sqrt-d_k",
        _MULTIPLIED,
        tuple(
            lambda q, k, v, soft=soft: _causal(q, k, v, soft, divide=lambda s: s * _sqrt_d(q))
            for soft in (_softmax, _naive)
        ),
    ),
    Mistake("scale-hard-coded", _HARD_CODED, _with(divide=lambda s: s / 2)),
    Mistake("softmax-wrong-axis", _WRONG_AXIS, _with(axis=0)),
    Mistake(
        "keys-for-values",
        "The keys are mixed instead of the values: the last factor must be `v`.",
        (lambda q, k, v: _causal(q, k, k), lambda q, k, v: _causal(q, k, k, _naive)),
    ),
    Mistake(
        "running-mean",
        "Each query gets the plain mean of the values so far: the weights must depend on the "
        "scores.",
        (lambda q, k, v: np.cumsum(v, axis=0) / np.arange(1, len(v) + 1)[:, None],),
    ),
    Mistake("overflows", OVERFLOWS, (lambda q, k, v: _causal(q, k, v, _naive),), _overflows),
    Mistake(
        "first-row-is-not-v0",
        "The first query may see the first key alone, so row 0 of the output must be row 0 of `v`, "
        "and yours is not: does the mask keep the diagonal and nothing above it?",
        sign=_first_row_is_not_v0,
    ),
)
