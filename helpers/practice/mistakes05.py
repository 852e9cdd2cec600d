# ruff: noqa: E741  (l is the papers' letter)
"""Lesson 5's wrong functions: what its checkers compare an answer with, to name the mistake.

Each differs from the right function, and from every other, on at least one case of its exercise;
tests hold that. Several references with one name are ways to write the same mistake.
"""

from __future__ import annotations

import math

import numpy as np

from helpers.practice.exercises import Mistake

# --- 5.1 online_update(m, l, o, scores, v) ---


def _step(maximum=max, old=None, new=None, l_old=None, o_old=None, result=None):
    """The right step, with some of its parts exchanged for wrong ones.

    maximum : (m, the block's largest score) -> m_new. old : (m, m_new) -> what both sums are
    multiplied by; l_old, o_old : the same for one of them. new : (scores, m, m_new) -> what the
    block adds for each score. result : (m_new, l_new, o_new, l, factor) -> what is returned.
    """

    def step(m, l, o, scores, v):
        m_new = maximum(m, scores.max())
        factors = (l_old or old or _factor)(m, m_new), (o_old or old or _factor)(m, m_new)
        powers = (new or _powers)(scores, m, m_new)
        l_new = l * factors[0] + powers.sum()
        o_new = o * factors[1] + powers @ v
        return (result or _in_order)(m_new, l_new, o_new, l, factors[0])

    return step


def _factor(m, m_new):
    return np.exp(m - m_new)


def _powers(scores, m, m_new):
    return np.exp(scores - m_new)


def _in_order(m, l, o, *_):
    return [m, l, *o]


def _one(m, m_new):
    return 1.0


def _wrong_way(m, m_new):
    return np.exp(m_new - m)


def _wrong_way_careful(m, m_new):
    return 1.0 if m == -np.inf else np.exp(m_new - m)


def _unshifted(scores, m, m_new):
    return np.exp(scores)


def _own_maximum(scores, m, m_new):
    return np.exp(scores - scores.max())


def _softmax_of_block(scores, m, m_new):
    return _own_maximum(scores, m, m_new) / _own_maximum(scores, m, m_new).sum()


def _powers_over_their_sum(scores, m, m_new):
    return _powers(scores, m, m_new) / _powers(scores, m, m_new).sum()


def _softmax_in_o_alone(weights):
    """The weights of the block sum to 1 in o, but l is right."""

    def step(m, l, o, scores, v):
        m_new = max(m, scores.max())
        o = o * _factor(m, m_new) + weights(scores, m, m_new) @ v
        return [m_new, l * _factor(m, m_new) + _powers(scores, m, m_new).sum(), *o]

    return step


def _all_rescaled(m, l, o, scores, v):
    m_new = max(m, scores.max())
    powers, factor = _powers(scores, m, m_new), _factor(m, m_new)
    return [m_new, (l + powers.sum()) * factor, *((o + powers @ v) * factor)]


def _normalised_before(m, l, o, scores, v):
    """o taken for an output that was divided by l already: FlashAttention's first form."""
    m_new = max(m, scores.max())
    powers, old = _powers(scores, m, m_new), l * _factor(m, m_new)
    l_new = old + powers.sum()
    return [m_new, l_new, *((o * old + powers @ v) / l_new)]


def _values_summed(m, l, o, scores, v):
    m_new = max(m, scores.max())
    l_new = l * _factor(m, m_new) + _powers(scores, m, m_new).sum()
    return [m_new, l_new, *(o * _factor(m, m_new) + v.sum(axis=0))]


def _scores_times_values(m, l, o, scores, v):
    m_new = max(m, scores.max())
    l_new = l * _factor(m, m_new) + _powers(scores, m, m_new).sum()
    return [m_new, l_new, *(o * _factor(m, m_new) + scores @ v)]


def _finite(one) -> bool:
    return one.answer.array is not None and bool(np.isfinite(one.answer.array).all())


def _wrong_just_where(seen, where) -> bool:
    """Wrong in some of the cases of that kind and in no other, and there with nan or inf."""
    failing = [one for one in seen if not one.right]
    return bool(failing) and all(
        where(one.case) and one.answer.kind == "array" and not _finite(one) for one in failing
    )


def _nan_at_first(seen) -> bool:
    return _wrong_just_where(seen, lambda case: case.args[0] == -np.inf)


def _overflows(seen) -> bool:
    return _wrong_just_where(seen, lambda case: case.large)


UPDATE = (
    Mistake(
        "output-not-rescaled",
        "The sum l is rescaled and the output o is not. Both hold exponentials that refer to the "
        "old m: multiply o by exp(m_old − m_new) too.",
        (_step(o_old=_one),),
    ),
    Mistake(
        "sum-not-rescaled",
        "The output o is rescaled and the sum l is not. Both hold exponentials that refer to the "
        "old m: multiply l by exp(m_old − m_new) too.",
        (_step(l_old=_one),),
    ),
    Mistake(
        "nothing-rescaled",
        "The old sums are kept as they are. They hold exponentials that refer to the old m: where "
        "m has grown, multiply l and o by exp(m_old − m_new).",
        (_step(old=_one),),
    ),
    Mistake(
        "rescaled-the-wrong-way",
        "The factor is the wrong way round, exp(m_new − m_old). When the maximum grows, what was "
        "summed before must count less: exp(m_old − m_new) is 1 at most.",
        (
            _step(old=_wrong_way),
            _step(old=_wrong_way_careful),
            _step(old=lambda m, m_new: 0.0 if m == -np.inf else np.exp(m_new - m)),
        ),
    ),
    Mistake(
        "rescaled-without-exp",
        "The old sums are multiplied by m_old − m_new, or by the ratio of the two, without exp. "
        "Between exp(score − m_old) and exp(score − m_new) lies the factor exp(m_old − m_new).",
        (
            _step(old=lambda m, m_new: m - m_new),
            _step(old=lambda m, m_new: m_new - m),
            _step(old=lambda m, m_new: m / m_new),
            _step(old=lambda m, m_new: m_new / m),
        ),
    ),
    Mistake(
        "old-sums-forgotten",
        "What was summed before this block has no part in your l and o: keep it, times "
        "exp(m_old − m_new).",
        (_step(old=lambda m, m_new: 0.0),),
    ),
    Mistake(
        "block-rescaled-too",
        "The block's own exponentials are rescaled as well, but they refer to the new m already. "
        "Multiply the old sums alone, then add the block.",
        (_all_rescaled,),
    ),
    Mistake(
        "maximum-of-the-block-alone",
        "m is the largest score of this block alone. Where an earlier score was larger, "
        "exp(m_old − m_new) is more than 1 and can overflow: take the larger one of the two.",
        (
            _step(maximum=lambda m, block: block),
            _step(maximum=lambda m, block: block, old=_one),
        ),
    ),
    Mistake(
        "maximum-not-updated",
        "m comes back as it went in. It must be the largest score of all so far, this block's too.",
        (
            _step(maximum=lambda m, block: m),
            lambda m, l, o, scores, v: [m, *_step()(m, l, o, scores, v)[1:]],
        ),
    ),
    Mistake(
        "smaller-maximum",
        "m is the smaller one of the old maximum and the block's: take the larger, so that no "
        "exponential is more than 1.",
        (_step(maximum=min),),
    ),
    Mistake(
        "maximum-not-subtracted",
        "The block's exponentials are exp(score), without − m_new: they do not refer to the same "
        "maximum as the old sums, and large scores overflow.",
        (_step(new=_unshifted), _step(old=_one, new=_unshifted)),
    ),
    Mistake(
        "block-has-its-own-maximum",
        "The block's exponentials refer to its own largest score, the old sums to the larger one "
        "of both. Subtract m_new from the scores too.",
        (_step(new=_own_maximum), _step(old=_one, new=_own_maximum)),
    ),
    Mistake(
        "old-maximum-subtracted",
        "The old m is subtracted from the block's scores, not the new one: at the first block that "
        "is −∞, and where the maximum grows exp may overflow.",
        (
            _step(new=lambda scores, m, m_new: np.exp(scores - m)),
            _step(old=_one, new=lambda scores, m, m_new: np.exp(scores - m)),
        ),
    ),
    Mistake(
        "softmax-within-the-block",
        "The block's weights are divided by their own sum before they are added: blocks with large "
        "and with small scores then count alike. Divide once, after the last block.",
        tuple(
            make(weights)
            for weights in (_softmax_of_block, _powers_over_their_sum)
            for make in (lambda weights: _step(new=weights), _softmax_in_o_alone)
        ),
    ),
    Mistake(
        "normalised-in-each-step",
        "o is divided by l in this step. Here o is the sum itself and is divided once, after the "
        "last block: the next step would rescale and add to a sum that is none any more.",
        (
            _step(result=lambda m, l, o, *_: [m, l, *(o / l)]),
            _normalised_before,
        ),
    ),
    Mistake(
        "values-not-weighted",
        "The rows of V are added to o without their exponentials: each counts exp(score − m_new).",
        (_values_summed,),
    ),
    Mistake(
        "scores-as-weights",
        "The rows of V are weighted by their scores: each counts exp(score − m_new).",
        (_scores_times_values,),
    ),
    Mistake(
        "order-of-the-results",
        "The numbers are right, but not in the order asked for: `[m, l, *o]`.",
        (
            _step(result=lambda m, l, o, *_: [l, m, *o]),
            _step(result=lambda m, l, o, *_: [*o, m, l]),
            _step(result=lambda m, l, o, *_: [*o, l, m]),
        ),
    ),
    Mistake(
        "output-alone",
        "Only o comes back, but the next block needs m and l as well: return `[m, l, *o]`.",
        (_step(result=lambda m, l, o, *_: o),),
    ),
    Mistake(
        "nan-at-the-first-block",
        "Right once something has been summed, nan or inf at the first block, where m = −∞ and "
        "l = 0. exp(−∞ − m_new) is 0 and does no harm; 0/0, 0 · ∞ and −∞ − (−∞) are nan.",
        (),
        _nan_at_first,
    ),
    Mistake(
        "overflows",
        "Right for small scores, nan or inf near 1,000 or −1,000: exp(score) or exp(m) by itself "
        "leaves the range of floating-point numbers. Subtract m_new in the exponent.",
        (
            lambda m, l, o, scores, v: [
                max(m, scores.max()),
                (l * np.exp(m) + np.exp(scores).sum()) / np.exp(max(m, scores.max())),
                *((o * np.exp(m) + np.exp(scores) @ v) / np.exp(max(m, scores.max()))),
            ],
        ),
        _overflows,
    ),
)

# --- 5.2 merge(out_a, lse_a, out_b, lse_b) ---


def _weighed(lse_a, lse_b):
    """The share of each part: right, without overflow."""
    largest = max(lse_a, lse_b)
    a, b = np.exp(lse_a - largest), np.exp(lse_b - largest)
    return a / (a + b), b / (a + b)


def _lse(lse_a, lse_b):
    return np.logaddexp(lse_a, lse_b)


def _merge(shares=_weighed, lse=_lse):
    """The right merge, with its shares or its lse exchanged for wrong ones."""

    def merge(out_a, lse_a, out_b, lse_b):
        a, b = shares(lse_a, lse_b)
        return [*(a * out_a + b * out_b), lse(lse_a, lse_b)]

    return merge


def _raw(lse_a, lse_b):
    return np.exp(lse_a), np.exp(lse_b)


def _relative(lse_a, lse_b):
    return np.exp(lse_a - max(lse_a, lse_b)), np.exp(lse_b - max(lse_a, lse_b))


def _over_their_sum(x, y):
    return x / (x + y), y / (x + y)


def _naive_shares(lse_a, lse_b):
    return _over_their_sum(*_raw(lse_a, lse_b))


def _naive_lse(lse_a, lse_b):
    return np.log(np.exp(lse_a) + np.exp(lse_b))


def _halves(lse_a, lse_b):
    return 0.5, 0.5


def _both(share):
    """The mistake in the shares, with a careful lse and with one that overflows."""
    return _merge(share), _merge(share, _naive_lse)


def _log1p(x, y):
    return x + np.log1p(np.exp(y - x))


def _empty_part(case) -> bool:
    return -np.inf in (case.args[1], case.args[3])


def _nan_for_empty(seen) -> bool:
    return _wrong_just_where(seen, _empty_part)


MERGE = (
    Mistake(
        "plain-mean",
        "The two outputs are averaged as if each part weighed the same. A part weighs the sum of "
        "its exponentials, exp(lse).",
        (*_both(_halves), _merge(_halves, lambda x, y: (x + y) / 2)),
    ),
    Mistake(
        "weighted-by-lse",
        "The outputs are weighted by lse itself, which may be negative. A part weighs exp(lse), "
        "the "
        "sum of its exponentials.",
        (
            *_both(_over_their_sum),
            _merge(_over_their_sum, lambda x, y: x + y),
            *_both(lambda x, y: (x, y)),
        ),
    ),
    Mistake(
        "outputs-added",
        "The two outputs are added as they are: each was divided by its own sum already. Weight "
        "them by their shares, which sum to 1.",
        (*_both(lambda x, y: (1.0, 1.0)), _merge(lambda x, y: (1.0, 1.0), lambda x, y: x + y)),
    ),
    Mistake(
        "not-normalised",
        "The outputs are weighted by exponentials whose sum is not 1. Divide by that sum.",
        (
            *_both(_raw),
            *_both(_relative),
            _merge(_relative, lambda x, y: max(x, y)),
        ),
    ),
    Mistake(
        "weights-exchanged",
        "Each output gets the weight of the other part.",
        (
            *_both(lambda x, y: _weighed(y, x)),
            _merge(lambda x, y: _weighed(-x, -y)),
        ),
    ),
    Mistake(
        "heavier-part-alone",
        "Only the part with the larger lse counts. The other one has its share too, exp(lse − the "
        "new lse).",
        tuple(
            _merge(lambda x, y: (float(x >= y), float(x < y)), lse)
            for lse in (_lse, lambda x, y: max(x, y))
        ),
    ),
    Mistake(
        "lse-added",
        "The two lse are added, which multiplies the sums of exponentials. Add the sums: "
        "ln(exp(lse_a) + exp(lse_b)).",
        (
            _merge(lse=lambda x, y: x + y),
            _merge(lambda x, y: (np.exp(x - (x + y)), np.exp(y - (x + y))), lambda x, y: x + y),
            _merge(_naive_shares, lambda x, y: x + y),
        ),
    ),
    Mistake(
        "lse-averaged",
        "The lse of the whole is not the mean of the two, and never below the larger one: it is "
        "ln(exp(lse_a) + exp(lse_b)).",
        (_merge(lse=lambda x, y: (x + y) / 2), _merge(_naive_shares, lambda x, y: (x + y) / 2)),
    ),
    Mistake(
        "maximum-for-lse",
        "The larger lse is returned. The other part adds to the sum as well: "
        "largest + ln(exp(lse_a − largest) + exp(lse_b − largest)).",
        (_merge(lse=max), _merge(_naive_shares, max)),
    ),
    Mistake(
        "lse-of-one-part",
        "The lse of one of the two parts is returned, not that of both.",
        (_merge(lse=lambda x, y: x), _merge(lse=lambda x, y: y)),
    ),
    Mistake(
        "logarithm-missing",
        "The last number is a sum of exponentials, not its logarithm.",
        (
            _merge(lse=lambda x, y: np.exp(x) + np.exp(y)),
            _merge(_naive_shares, lambda x, y: np.exp(x) + np.exp(y)),
            _merge(lse=lambda x, y: sum(_relative(x, y))),
            _merge(lse=lambda x, y: max(x, y) + sum(_relative(x, y))),
        ),
    ),
    Mistake(
        "maximum-not-added-back",
        "The larger lse is subtracted before exp and never added back: the new lse is largest + "
        "ln(…).",
        (
            _merge(lse=lambda x, y: np.log(sum(_relative(x, y)))),
            _merge(lse=lambda x, y: np.log(sum(_relative(x, y))) - max(x, y)),
        ),
    ),
    Mistake(
        "two-bases",
        "exp and log2, or 2^x and ln, are mixed. Kernels do compute in base 2, but then in both "
        "places, and with scores to match.",
        (
            _merge(lse=np.logaddexp2),
            _merge(lse=lambda x, y: max(x, y) + np.log2(sum(_relative(x, y)))),
            _merge(lse=lambda x, y: np.log2(np.exp(x) + np.exp(y))),
            _merge(
                lambda x, y: _over_their_sum(np.exp2(x - max(x, y)), np.exp2(y - max(x, y))),
                np.logaddexp2,
            ),
            _merge(lambda x, y: _over_their_sum(np.exp2(x - max(x, y)), np.exp2(y - max(x, y)))),
        ),
    ),
    Mistake(
        "one-part-factored-out",
        "exp(lse_b − lse_a) overflows where the other part is far heavier, and is exp(∞) where the "
        "first is empty. Subtract the larger of the two from both.",
        tuple(
            _merge(shares, lse)
            for shares in (
                _weighed,
                lambda x, y: (1 / (1 + np.exp(y - x)), 1 / (1 + np.exp(x - y))),
                lambda x, y: (1 / (1 + np.exp(y - x)), np.exp(y - x) / (1 + np.exp(y - x))),
                lambda x, y: (np.exp(x - _log1p(x, y)), np.exp(y - _log1p(x, y))),
            )
            for lse in (_log1p, lambda x, y: _log1p(y, x))
        ),
    ),
    Mistake(
        "order-of-the-results",
        "The numbers are right, but not in the order asked for: `[*out, lse]`.",
        (lambda *args: [_merge()(*args)[-1], *_merge()(*args)[:-1]],),
    ),
    Mistake(
        "output-alone",
        "Only the output comes back. Without the lse it could not be merged with a third part: "
        "return `[*out, lse]`.",
        (lambda *args: _merge()(*args)[:-1],),
    ),
    Mistake(
        "nan-for-an-empty-part",
        "Right where both parts hold keys, nan or inf where one has lse = −∞. Its weight is "
        "exp(−∞) = 0, which does no harm; −∞ − (−∞) and 0 · ∞ are nan.",
        (),
        _nan_for_empty,
    ),
    Mistake(
        "overflows",
        "Right for small numbers, nan or inf near 1,000 or −1,000: exp(lse) leaves the range of "
        "floating-point numbers. Subtract the larger lse from both first.",
        (
            _merge(_naive_shares, _naive_lse),
            _merge(_naive_shares),
            _merge(lse=_naive_lse),
            _merge(
                lambda x, y: (np.exp(x - _naive_lse(x, y)), np.exp(y - _naive_lse(x, y))),
                _naive_lse,
            ),
        ),
        _overflows,
    ),
)

# --- 5.3 bytes_moved(T, d, block_q) ---


def _plain(T, d, matrices=4, rows=4):
    return 2 * (matrices * T * T + rows * T * d)


def _tiled(T, d, block_q, once=2, passing=2, passes=None):
    """once : of Q, K, V, O, how many move once. passing : how many move in each pass."""
    passes = T // block_q if passes is None else passes
    return 2 * (once * T * d + passes * passing * T * d)


def _tiled_as(make):
    """A mistake in the tiled half alone."""
    return lambda T, d, block_q: (_plain(T, d), make(T, d, block_q))


def _plain_as(make):
    """A mistake in the plain half alone."""
    return lambda T, d, block_q: (make(T, d), _tiled(T, d, block_q))


def _times(factor_plain, factor_tiled):
    return lambda T, d, b: (factor_plain * _plain(T, d), factor_tiled * _tiled(T, d, b))


BYTES = (
    Mistake(
        "numbers-not-bytes",
        "Numbers are counted, not bytes: each takes 2 bytes.",
        (_times(0.5, 0.5), _times(0.5, 1), _times(1, 0.5)),
    ),
    Mistake(
        "four-bytes-a-number",
        "The result is twice as large as it should be: a number takes 2 bytes here, as in float16.",
        (_times(2, 2), _times(2, 1), _times(1, 2)),
    ),
    Mistake(
        "keys-without-values",
        "In each pass one of K and V is missing: both are read past every block of queries.",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, passing=1)),),
    ),
    Mistake(
        "queries-or-output-forgotten",
        "Of Q and O one is missing in the tiled count: each row of Q is read once and each row of "
        "O written once, T · d numbers each.",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, once=1)),),
    ),
    Mistake(
        "queries-and-output-forgotten",
        "The tiled count is short of 2 T d numbers: Q is read and O is written, once each. Or is "
        "it a pass of K and V, which the first block of queries needs too?",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, once=0)),),
    ),
    Mistake(
        "keys-read-once",
        "Keys and values are counted once. Fast memory does not hold them: each block of queries "
        "has them read anew, T / block_q times in all.",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, passes=1)),),
    ),
    Mistake(
        "everything-in-each-pass",
        "Q and O are counted in each pass. A block of queries is read once and stays until its "
        "output is written: over all blocks Q and O move once.",
        (
            _tiled_as(lambda T, d, b: _tiled(T, d, b, once=0, passing=4)),
            _tiled_as(lambda T, d, b: _tiled(T, d, b, once=0, passing=3)),
            _tiled_as(lambda T, d, b: _tiled(T, d, b, once=1, passing=3)),
        ),
    ),
    Mistake(
        "loops-exchanged",
        "That is the other order of the loops: K and V once, and for each block of keys Q is read "
        "and O is read and written again. Here the queries stay.",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, once=2, passing=3)),),
    ),
    Mistake(
        "once-per-query",
        "K and V are read once for every query. A block of queries shares them: T / block_q times, "
        "not T times.",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, passes=T)),),
    ),
    Mistake(
        "block-size-for-their-number",
        "K and V are read block_q times. block_q is how many queries a block has; of blocks there "
        "are T / block_q.",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, passes=b)),),
    ),
    Mistake(
        "one-block-too-many",
        "One pass of K and V too many: T is a multiple of block_q, so there are T / block_q blocks "
        "and no part of one.",
        (_tiled_as(lambda T, d, b: _tiled(T, d, b, passes=T // b + 1)),),
    ),
    Mistake(
        "tiled-stores-the-scores",
        "The tiled count has a term with T² that is not divided by block_q: scores and weights. "
        "Tiled, they are made in fast memory and never leave it.",
        tuple(
            _tiled_as(lambda T, d, b, n=n: _tiled(T, d, b) + 2 * n * T * T) for n in (0.5, 1, 2, 4)
        ),
    ),
    Mistake(
        "a-row-is-one-number",
        "The factor d is missing: a row of Q, K, V or O has d numbers.",
        (
            lambda T, d, b: (_plain(T, 1), _tiled(T, 1, b)),
            _tiled_as(lambda T, d, b: _tiled(T, 1, b)),
            _plain_as(lambda T, d: _plain(T, 1)),
        ),
    ),
    Mistake(
        "matrices-moved-too-seldom",
        "The T² term of the plain count is too small: S is written and read, and P is written and "
        "read. That is 4 T² numbers.",
        tuple(_plain_as(lambda T, d, n=n: _plain(T, d, matrices=n)) for n in (1, 2, 3)),
    ),
    Mistake(
        "matrices-forgotten",
        "The plain count has no T² term, but plain attention writes the scores and the weights to "
        "main memory and reads them back.",
        (_plain_as(lambda T, d: _plain(T, d, matrices=0)),),
    ),
    Mistake(
        "plain-without-its-rows",
        "The plain count is short of rows: Q, K and V are read and O is written, T · d numbers "
        "each.",
        tuple(_plain_as(lambda T, d, n=n: _plain(T, d, rows=n)) for n in (0, 1, 2, 3)),
    ),
    Mistake(
        "matrices-have-d-layers",
        "The T² term of the plain count has a factor d: a score is one number, whatever the d of "
        "the rows it was made from.",
        tuple(_plain_as(lambda T, d, n=n: 2 * (n * T * T * d + 4 * T * d)) for n in (1, 2, 3, 4)),
    ),
    Mistake(
        "order-of-the-results",
        "The two numbers are right, but in the wrong order: `(plain, tiled)`.",
        (lambda T, d, b: (_tiled(T, d, b), _plain(T, d)),),
    ),
    Mistake(
        "ratio-returned",
        "The ratio of the two is returned: return both, `(plain, tiled)`.",
        (
            lambda T, d, b: _plain(T, d) / _tiled(T, d, b),
            lambda T, d, b: _tiled(T, d, b) / _plain(T, d),
        ),
    ),
    Mistake(
        "one-of-the-two",
        "One of the two counts is returned: return both, `(plain, tiled)`.",
        (lambda T, d, b: _tiled(T, d, b), lambda T, d, b: _plain(T, d)),
    ),
)

# --- 5.4 causal_tiles(T, block_q, block_k) ---


def _grid(kind, rows=math.ceil, end=lambda stop, T: min(stop, T), exchanged=False):
    """kind : (first query, last query, first key, last key, T) -> 0, 1 or 2.

    rows : how a number of blocks is rounded. end : (where a block would end, T) -> where it does.
    """

    def tiles(T, block_q, block_k):
        if exchanged:
            block_q, block_k = block_k, block_q
        found = np.zeros((rows(T / block_q), rows(T / block_k)))
        for i, j in np.ndindex(found.shape):
            q, k = i * block_q, j * block_k
            found[i, j] = kind(q, end(q + block_q, T) - 1, k, end(k + block_k, T) - 1, T)
        return found

    return tiles


def _kind(q_0, q_1, k_0, k_1, T):
    return 2 if k_1 <= q_0 else 1 if k_0 <= q_1 else 0


def _by_index(T, block_q, block_k):
    i, j = np.ogrid[: math.ceil(T / block_q), : math.ceil(T / block_k)]
    return np.where(j < i, 2, np.where(j == i, 1, 0))


def _without_end(stop, T):
    return stop


def _recoded(*codes):
    """The right kinds under other numbers."""
    return _grid(lambda *tile: codes[_kind(*tile)])


def _masked_where_short(T, block_q, block_k, keys):
    """A mask wherever anything is seen by a short block of queries, or of a short one of keys."""
    tiles = _grid(_kind)(T, block_q, block_k)
    if T % block_q:
        tiles[-1] = np.minimum(tiles[-1], 1)
    if keys and T % block_k:
        tiles[:, -1] = np.minimum(tiles[:, -1], 1)
    return tiles


def _pairs(T, block_q, block_k, share=False):
    """How many pairs of each tile are seen."""
    seen = np.tri(T)
    rows, columns = range(0, T, block_q), range(0, T, block_k)
    parts = [[seen[q : q + block_q, k : k + block_k] for k in columns] for q in rows]
    return [[part.mean() if share else part.sum() for part in row] for row in parts]


def _mask_of_pairs(seen) -> bool:
    """The T × T mask, whatever the blocks; of a large one only the shape is known."""
    for one in seen:
        T = one.case.args[0]
        if one.answer.shape != (T, T):
            return False
        if one.answer.array is not None and not (one.answer.array == np.tri(T)).all():
            return False
    return True


TILES = (
    Mistake(
        "block-numbers-compared",
        "The number of the query block is compared with that of the key block. That fits only "
        "where both kinds of blocks are equally long, and longer than 1: compare the queries and "
        "keys in them.",
        (_by_index,),
    ),
    Mistake(
        "judged-by-the-first-query",
        "A tile is skipped if its first query sees nothing of it. The later ones of the block see "
        "more: ask the last.",
        (_grid(lambda q, q_1, k, k_1, T: 2 if k_1 <= q else 1 if k <= q else 0),),
    ),
    Mistake(
        "whole-for-the-last-query",
        "A tile is called whole if its last query sees every key. The first one of the block sees "
        "least: ask that one.",
        (_grid(lambda q, q_1, k, k_1, T: 2 if k_1 <= q_1 else 1 if k <= q_1 else 0),),
    ),
    Mistake(
        "whole-by-its-first-key",
        "A tile is called whole if its first key is seen. The keys after it may not be: the last "
        "key of the tile decides.",
        (
            _grid(lambda q, q_1, k, k_1, T: 2 if k <= q else 1 if k <= q_1 else 0),
            _grid(lambda q, q_1, k, k_1, T: 2 if k < q else 1 if k <= q_1 else 0),
        ),
    ),
    Mistake(
        "a-tile-too-many-skipped",
        "A tile of which just one pair is seen is skipped: query i sees key i as well, so a tile "
        "is skipped only if its first key comes after its last query.",
        (
            _grid(lambda q, q_1, k, k_1, T: 2 if k_1 <= q else 1 if k < q_1 else 0),
            _grid(lambda q, q_1, k, k_1, T: 0 if k >= q_1 else 2 if k_1 <= q else 1),
        ),
    ),
    Mistake(
        "an-empty-tile-computed",
        "A tile whose first key comes right after its last query is not skipped. Does a block end "
        "before (i + 1) · block_q, or on it?",
        (_grid(lambda q, q_1, k, k_1, T: 2 if k_1 <= q else 1 if k <= q_1 + 1 else 0),),
    ),
    Mistake(
        "a-whole-tile-masked",
        "A tile whose last key is its first query's own gets a mask, although nothing in it is "
        "hidden: query i sees key i.",
        (_grid(lambda q, q_1, k, k_1, T: 2 if k_1 < q else 1 if k <= q_1 else 0),),
    ),
    Mistake(
        "future-leaks-by-one",
        "A tile in which the first query does not see the last key is called whole: without a mask "
        "a query would see the key after it.",
        (
            _grid(lambda q, q_1, k, k_1, T: 2 if k_1 <= q + 1 else 1 if k <= q_1 else 0),
            _grid(lambda q, q_1, k, k_1, T: 0 if k > q_1 else 2 if k_1 <= q + 1 else 1),
        ),
    ),
    Mistake(
        "own-key-hidden",
        "The key of a query's own position counts as hidden: query i sees the keys 0 … i, its own "
        "too.",
        (_grid(lambda q, q_1, k, k_1, T: 2 if k_1 < q else 1 if k < q_1 else 0),),
    ),
    Mistake(
        "diagonal-judged-by-corners",
        "What a tile needs is read off one of its corners. It takes two: whether its last query "
        "sees its first key, and whether its first query sees its last key.",
        (
            _grid(lambda q, q_1, k, k_1, T: 2 if k < q else 1 if k == q else 0),
            _grid(lambda q, q_1, k, k_1, T: 2 if k_1 < q_1 else 1 if k_1 == q_1 else 0),
        ),
    ),
    Mistake(
        "partial-blocks-masked",
        "Blocks that are shorter than the others get a mask, or are taken for causal ones. The "
        "queries and keys that are missing there hide nothing.",
        (
            lambda T, b, c: _masked_where_short(T, b, c, keys=False),
            lambda T, b, c: _masked_where_short(T, b, c, keys=True),
        ),
    ),
    Mistake(
        "missing-keys-counted",
        "The last block is taken to be as long as the others: keys that are not there count as "
        "hidden. It ends at T, min((j + 1) · block_k, T).",
        (_grid(_kind, end=_without_end),),
    ),
    Mistake(
        "last-block-lost",
        "The number of blocks is rounded down: where T is no multiple, the last, shorter block is "
        "missing. Round up.",
        (_grid(_kind, rows=math.floor),),
    ),
    Mistake(
        "one-block-too-many",
        "There is a block beyond the end: T // block + 1 is one too many where T is a multiple. "
        "Use `math.ceil(T / block)`.",
        tuple(
            _grid(_kind, rows=lambda x: math.floor(x) + 1, end=end)
            for end in (_without_end, lambda stop, T: min(stop, T))
        ),
    ),
    Mistake(
        "block-sizes-exchanged",
        "block_q and block_k have changed places: rows are blocks of queries.",
        (_grid(_kind, exchanged=True),),
    ),
    Mistake(
        "past-and-future-exchanged",
        "The keys before a query are hidden and those after it are seen. Query i sees the keys "
        "0 … i.",
        (_grid(lambda q, q_1, k, k_1, T: 2 if k >= q_1 else 1 if k_1 >= q else 0),),
    ),
    Mistake(
        "numbers-exchanged",
        "The tiles are told apart rightly but have the wrong numbers: 0 is skip, 1 needs the mask, "
        "2 is whole.",
        tuple(
            _recoded(*codes)
            for codes in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (1, 2, 3))
        ),
    ),
    Mistake(
        "no-tile-is-whole",
        "No tile is called whole (2): where every query sees every key, the mask costs time and "
        "changes nothing.",
        (_recoded(0, 1, 1),),
    ),
    Mistake(
        "no-tile-is-masked",
        "No tile gets a mask (1): where a query sees only some of the keys, without one it would "
        "see them all.",
        (_recoded(0, 2, 2),),
    ),
    Mistake(
        "no-tile-is-skipped",
        "No tile is skipped (0): of those in which every key comes after every query nothing is "
        "needed, which saves nearly half of the work.",
        (_recoded(1, 1, 2), _recoded(2, 1, 2)),
    ),
    Mistake(
        "pairs-counted",
        "What comes back is how many pairs of each tile are seen, or which share of them: make "
        "0, 1 and 2 of it.",
        (_pairs, lambda T, b, c: _pairs(T, b, c, share=True)),
    ),
    Mistake(
        "a-mask-of-single-pairs",
        "That is the T × T mask of single queries and keys: return one number for each tile.",
        (),
        _mask_of_pairs,
    ),
)
