# ruff: noqa: E741  (l is the papers' letter)
"""Wrong functions for lesson 6's tasks in `board_rows`: what an answer is compared with.

Each differs from the right function, and from every other, on at least one case of its exercise;
tests hold that. Several references with one name are ways to write the same mistake. Where a task
repeats a step of an earlier lesson, so do the mistakes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from helpers.practice import mistakes05
from helpers.practice.exercises import Mistake
from helpers.practice.mistakes01 import (
    _comparable,
    _keepdims,
    _naive,
    _normalised,
    _overflows,
    _softmax,
)
from helpers.practice.mistakes03 import _some_axes_only
from helpers.practice.mistakes05 import _all_rescaled, _step, _wrong_just_where

# --- 6.1 softmax(x), −∞ where a score is masked ---


def _guarded(exps, axis=-1):
    """Exponentials over their sum; zeros stay as they are."""
    total = exps.sum(axis=axis, keepdims=True)
    return exps / np.where(total == 0, 1, total)


def _exps(x, axis=-1):
    largest = x.max(axis=axis, keepdims=True)
    return np.exp(x - np.where(largest == -np.inf, 0, largest))


def _careful(x, axis=-1):
    return _guarded(_exps(x, axis), axis)


def _clean(x, axis=-1):
    """With whatever is nan replaced by 0."""
    return np.nan_to_num(_softmax(x, axis))


def _each(make):
    """The mistake with softmaxes that treat a fully masked row, or large scores, each their way."""
    return tuple(make(soft) for soft in (_careful, _softmax, _naive))


def _filled(x, fill):
    return np.where(x == -np.inf, fill, x)


def _row_by_row(x, soft):
    return np.array([soft(row) for row in x])


def _unmasked(one):
    """Which rows of a case of 6.1 have a score to share."""
    return (one.case.args[0] > -np.inf).any(axis=-1)


def _masked_rows_alone_are_wrong(seen) -> bool:
    """Right in every row with a score, nan or inf in every other one."""

    def fits(one):
        array, rows = one.answer.array, _unmasked(one)
        if one.right:
            return True
        if array is None or array.shape != one.expected.shape:
            return False
        right = np.allclose(array[rows], one.expected[rows], rtol=1e-3, atol=1e-5)
        return right and not rows.all() and not np.isfinite(array[~rows]).any()

    return all(map(fits, seen))


def _stops_at_more_axes(seen) -> bool:
    return all((one.answer.kind == "raised") == (one.case.args[0].ndim > 1) for one in seen)


def _masked_scores_have_weight(seen) -> bool:
    return any(
        (np.abs(one.answer.array[one.case.args[0] == -np.inf]) > 1e-5).any()
        for one in _comparable(seen)
    )


def _rows_do_not_sum_to_1(seen) -> bool:
    return any(
        not np.allclose(one.answer.array.sum(axis=-1), _unmasked(one), atol=5e-3)
        for one in _comparable(seen)
    )


SOFTMAX = (
    Mistake(
        "masked-row-gives-nan",
        "Right but for rows in which every score is masked: their maximum is −∞, and −∞ − (−∞) is "
        "nan (or their sum is 0, and 0/0 is nan). Subtract 0 there, and divide by 1.",
        (_softmax, lambda x: _normalised(_exps(x))),
        _masked_rows_alone_are_wrong,
    ),
    Mistake(
        "masked-row-gets-weights",
        "A row in which every score is masked gets weights; zeros are asked for. (A very low "
        "number in place of −∞ does this: all scores of the row are equally low.)",
        (
            *(lambda x, fill=fill: _softmax(_filled(x, fill)) for fill in (-1e5, -1e6, -1e9)),
            lambda x: np.where(
                (x == -np.inf).all(axis=-1, keepdims=True), 1.0, _softmax(_filled(x, -1e9))
            ),
        ),
    ),
    Mistake(
        "masked-with-too-small-a-number",
        "−∞ is replaced by a number that is not low enough: scores may be as low as −10,000, and "
        "beside those a masked one shows through. Leave −∞ in its place, exp makes 0 of it.",
        (
            *(
                lambda x, fill=fill: _softmax(_filled(x, fill))
                for fill in (0.0, -1.0, -10.0, -100.0, -1000.0, -1e4)
            ),
            *(lambda x, fill=fill: _naive(_filled(x, fill)) for fill in (0.0, -1.0, -10.0, -100.0)),
        ),
    ),
    Mistake(
        "overflows",
        "Right for small scores. For large ones exp overflows, or every exponential of a row is "
        "0: subtract each row's maximum first, which changes no weight.",
        (
            lambda x: _guarded(np.exp(x)),
            lambda x: np.nan_to_num(_naive(x)),
            lambda x: np.nan_to_num(_guarded(np.exp(x))),
        ),
        _overflows,
    ),
    Mistake(
        "overflows-and-0/0",
        "Two things: for large scores exp overflows (or every exponential of a row is 0), so "
        "subtract each row's maximum; and where every score is masked, 0/0 gives nan.",
        (_naive, lambda x: np.exp(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))),
    ),
    Mistake(
        "clipped",
        "The scores are cut off at a limit so that exp does not overflow, and those beyond it all "
        "get the same weight. Subtract the maximum instead.",
        tuple(
            lambda x, high=high, low=low: _guarded(np.exp(np.clip(x, low, high)))
            for high in (20, 50, 80, 88, 100, 500, 700, 709)
            for low in (-high, None)
        ),
    ),
    Mistake(
        "maximum-of-the-whole-array",
        "The maximum of the whole array is subtracted. In a row far below it every exponential is "
        "0, and the row is lost: subtract each row's own (`axis=-1, keepdims=True`).",
        (
            lambda x: _normalised(np.exp(x - x.max())),
            lambda x: _guarded(np.exp(x - x.max())),
            lambda x: _guarded(np.exp(x - max(x.max(), -1e9))),
            lambda x: np.nan_to_num(_normalised(np.exp(x - x.max()))),
        ),
    ),
    Mistake(
        "maximum-starts-at-0",
        "Where a row has no score above 0, 0 is subtracted in place of its maximum. In a row far "
        "below 0 every exponential is then 0, and the row is lost.",
        tuple(
            lambda x, norm=norm: norm(np.exp(x - x.max(axis=-1, keepdims=True, initial=0)))
            for norm in (_normalised, _guarded)
        ),
    ),
    Mistake(
        "not-the-maximum-subtracted",
        "What is subtracted from a row is not its maximum but its mean, or its largest magnitude. "
        "Without masks and with small scores that works as well; only the maximum keeps every "
        "exponent at or below 0 and one of them at 0.",
        (
            *(
                lambda x, norm=norm: norm(np.exp(x - x.mean(axis=-1, keepdims=True)))
                for norm in (_normalised, _guarded)
            ),
            *(
                lambda x, norm=norm: norm(np.exp(x - np.abs(x).max(axis=-1, keepdims=True)))
                for norm in (_normalised, _guarded)
            ),
        ),
    ),
    Mistake(
        "softmax-wrong-axis",
        "The softmax runs over the first axis: each row, along the last one, must sum to 1 (use "
        "`axis=-1`).",
        (
            *_each(lambda soft: lambda x: soft(x, axis=0)),
            lambda x: _clean(x, axis=0),
            lambda x: _exps(x) / _exps(x).sum(axis=0),
        ),
    ),
    Mistake(
        "axis-1",
        "`axis=1` is the last axis only where there are two: a single row has none of that "
        "number, and with three axes it is the middle one. Use `axis=-1`.",
        (
            *_each(lambda soft: lambda x: soft(x, axis=1)),
            lambda x: _clean(x, axis=1),
        ),
    ),
    Mistake(
        "softmax-over-all",
        "The whole array sums to 1: each row must sum to 1 by itself (sum over `axis=-1`).",
        (
            *_each(lambda soft: lambda x: soft(x, axis=None)),
            lambda x: _clean(x, axis=None),
            lambda x: _exps(x) / _exps(x).sum(),
        ),
    ),
    Mistake(
        "some-axes-only",
        "Right for some numbers of axes and wrong for others. Rows lie along the last axis, "
        "whatever comes before it: `axis=-1` with `keepdims=True`, and no loop over rows.",
        _each(lambda soft: lambda x: _row_by_row(x, lambda row: soft(row, axis=None))),
        _some_axes_only,
    ),
    Mistake(
        "stops-at-more-axes",
        "A single row is no trouble, but with more axes the function stops with an error. Python's "
        "own `max` and `sum` are made for one row; NumPy's take `axis=-1` and `keepdims=True`.",
        (),
        _stops_at_more_axes,
    ),
    Mistake(
        "keepdims-missing",
        "Without `keepdims=True` the maximum or the sum has lost the last axis, and NumPy lays it "
        "along the columns instead of down the rows.",
        (
            lambda x: _keepdims(x, False, True),
            lambda x: _keepdims(x, True, False),
            lambda x: _keepdims(x, False, False),
            lambda x: _keepdims(x, True, False, shift=False),
            lambda x: _exps(x) / np.where((t := _exps(x).sum(axis=-1)) == 0, 1, t),
        ),
    ),
    Mistake(
        "not-normalised",
        "These are exponentials, not yet weights: divide each row by its sum.",
        (np.exp, _exps, lambda x: np.exp(x - x.max(axis=-1, keepdims=True))),
    ),
    Mistake(
        "logarithm-of-the-weights",
        "These are the logarithms of the weights: take exp of them.",
        (
            lambda x: (
                (z := x - x.max(axis=-1, keepdims=True))
                - np.log(np.exp(z).sum(axis=-1, keepdims=True))
            ),
            lambda x: np.log(_softmax(x)),
            lambda x: np.log(_careful(x)),
        ),
    ),
    Mistake(
        "exp-forgotten",
        "The scores themselves are divided by their sum: take exp first.",
        (_normalised, _guarded, lambda x: _normalised(x - x.max(axis=-1, keepdims=True))),
    ),
    Mistake(
        "sign-reversed",
        "The smallest score gets the largest weight: the sign in the exponent is reversed.",
        (
            *_each(lambda soft: lambda x: soft(-x)),
            lambda x: _normalised(np.exp(x.max(axis=-1, keepdims=True) - x)),
            lambda x: _careful(np.where(x == -np.inf, x, -x)),
        ),
    ),
    Mistake(
        "other-base",
        "The powers have another base than e (2 or 10): use `np.exp`.",
        tuple(
            lambda x, base=base, soft=soft: soft(x * np.log(base))
            for base in (2, 10)
            for soft in (_careful, _softmax)
        ),
    ),
    Mistake(
        "epsilon-in-the-sum",
        "A number is added to every sum so that it cannot be 0. The rows then sum to less than 1: "
        "replace a sum of 0 alone.",
        tuple(
            lambda x, e=e: (exps := _exps(x)) / (exps.sum(axis=-1, keepdims=True) + e)
            for e in (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
        ),
    ),
    Mistake(
        "winner-takes-all",
        "The largest score gets the whole weight: every score that is not masked has its share.",
        (
            lambda x: np.eye(x.shape[-1])[x.argmax(axis=-1)],
            lambda x: _normalised((x == x.max(axis=-1, keepdims=True)).astype(float)),
        ),
    ),
    Mistake(
        "scores-unchanged",
        "These are still scores: exp and the division by the sum are to come.",
        (lambda x: x, lambda x: x - x.max(axis=-1, keepdims=True)),
    ),
    Mistake(
        "masked-scores-have-weight",
        "A score of −∞ has a weight other than 0.",
        sign=_masked_scores_have_weight,
    ),
    Mistake(
        "rows-do-not-sum-to-1",
        "A row does not sum to 1, or one in which everything is masked does not sum to 0.",
        sign=_rows_do_not_sum_to_1,
    ),
)

# --- 6.4 online_softmax(q, K, V, block) ---


def _root_of_d_k(q, K, V, block):
    return np.sqrt(len(q))


def _in_order(q, K, V, block):
    return [(K[i : i + block], V[i : i + block]) for i in range(0, len(K), block)]


def _over_l(m, l, out):
    return out / l


def _online(step=None, start=-np.inf, divisor=_root_of_d_k, blocks=_in_order, result=_over_l):
    """The right loop with one part exchanged.

    step : a step of exercise 5.1, m, l and o after one more block. start : m before the first one.
    divisor : (all arguments) -> what scores are divided by. blocks : (all arguments) -> the pairs
    of keys and values. result : (m, l, out) -> what is returned.
    """
    step = step or _step()

    def online(q, K, V, block):
        m, l, out = start, 0.0, np.zeros(V.shape[-1])
        for keys, values in blocks(q, K, V, block):
            m, l, *out = step(m, l, np.array(out), keys @ q / divisor(q, K, V, block), values)
        return result(m, np.float64(l), np.array(out))

    return online


def _attention(q, K, V, soft=_softmax, divisor=None):
    return soft(K @ q / (divisor or np.sqrt(len(q)))) @ V


def _unscaled(by):
    """The wrong divisor in the loop, and in a softmax that overflows."""
    return (
        _online(divisor=by),
        lambda q, K, V, block: _attention(q, K, V, _naive, by(q, K, V, block)),
    )


def _alone(q, K, V, block):
    """The output of each block by itself."""
    return np.array([_attention(q, keys, values) for keys, values in _in_order(q, K, V, block)])


def _lengths(q, K, V, block):
    return [len(keys) for keys, _ in _in_order(q, K, V, block)]


def _first_maximum(m, block):
    return block if m == -np.inf else m


def _without_the_rest(q, K, V, block):
    return _in_order(q, K, V, block)[: len(K) // block]


def _padded(q, K, V, block):
    short = -len(K) % block
    return _in_order(
        q,
        np.vstack([K, np.zeros((short, K.shape[1]))]),
        np.vstack([V, np.zeros((short, V.shape[1]))]),
        block,
    )


def _values_from_the_start(q, K, V, block):
    return [(keys, V[: len(keys)]) for keys, _ in _in_order(q, K, V, block)]


def _l_alone_starts_anew(m, l, o, scores, v):
    m, _, *o = _step()(m, l, o, scores, v)
    return [m, np.exp(scores - m).sum(), *o]


def _out_alone_starts_anew(m, l, o, scores, v):
    m, l, *_ = _step()(m, l, o, scores, v)
    return [m, l, *(np.exp(scores - m) @ v)]


def _both_start_anew(m, l, o, scores, v):
    m = max(m, scores.max())
    powers = np.exp(scores - m)
    return [m, powers.sum(), *(powers @ v)]


def _wrong_way(m, m_new):
    return 0.0 if m == -np.inf else np.exp(m_new - m)


def _careful_difference(m, m_new):
    return 0.0 if m == -np.inf else m - m_new


def _all_are_nan(seen) -> bool:
    return all(
        one.answer.array is not None
        and one.answer.array.shape == one.expected.shape
        and not np.isfinite(one.answer.array).any()
        for one in seen
    )


def _wrong_in_short_blocks(seen) -> bool:
    """Right where the block divides the number of keys, and nowhere else."""
    return all(one.right == (len(one.case.args[1]) % one.case.args[3] == 0) for one in seen)


_SAME_IN_5 = {mistake.id: mistake for mistake in mistakes05.UPDATE}


def _as_in_5(id, *references):
    """Lesson 5's mistake, with its sentence, made at every block."""
    return replace(_SAME_IN_5[id], references=references, sign=None)


ONLINE = (
    Mistake(
        "no-scale",
        "The scores are not divided by √d_k.",
        _unscaled(lambda q, K, V, block: 1.0),
    ),
    Mistake(
        "divided-by-d_k",
        "The scores are divided by d_k instead of √d_k (or by √d_k twice, which is the same).",
        _unscaled(lambda q, K, V, block: len(q)),
    ),
    Mistake(
        "multiplied-by-root-d_k",
        "The scores are multiplied by √d_k: divide by it.",
        _unscaled(lambda q, K, V, block: len(q) ** -0.5),
    ),
    Mistake(
        "another-length-under-the-root",
        "The scores are divided by the root of another length: d_k is that of the query, not "
        "d_v, not the number of keys, not the length of a block.",
        (
            _online(divisor=lambda q, K, V, block: np.sqrt(V.shape[-1])),
            _online(divisor=lambda q, K, V, block: np.sqrt(len(K))),
            _online(divisor=lambda q, K, V, block: np.sqrt(block)),
        ),
    ),
    Mistake(
        "scaled-after-the-softmax",
        "The output is divided by √d_k, the scores are not: divide them, before exp.",
        (lambda q, K, V, block: _attention(q, K, V, divisor=1.0) / np.sqrt(len(q)),),
    ),
    _as_in_5("output-not-rescaled", _online(_step(o_old=lambda m, m_new: 1.0))),
    _as_in_5("sum-not-rescaled", _online(_step(l_old=lambda m, m_new: 1.0))),
    _as_in_5("nothing-rescaled", _online(_step(old=lambda m, m_new: 1.0))),
    _as_in_5(
        "rescaled-the-wrong-way",
        _online(_step(old=_wrong_way)),
    ),
    _as_in_5("rescaled-without-exp", _online(_step(old=_careful_difference))),
    _as_in_5(
        "block-rescaled-too",
        _online(_all_rescaled),
        _online(lambda m, *rest: _step()(m, *rest) if m == -np.inf else _all_rescaled(m, *rest)),
    ),
    Mistake(
        "sums-start-anew",
        "What the earlier blocks summed up is lost to l, or to the output: both go on from block "
        "to block, each times exp(m_old − m_new).",
        (
            _online(_l_alone_starts_anew),
            _online(_out_alone_starts_anew),
        ),
    ),
    Mistake(
        "maximum-of-the-block-alone",
        "m is the largest score of this block alone. Where an earlier block had a far larger one, "
        "exp(m_old − m_new) overflows: take the larger one of the two.",
        (_online(_step(maximum=lambda m, block: block)),),
    ),
    Mistake(
        "every-block-has-its-own-maximum",
        "Each block's exponentials refer to its own largest score, and so cannot be added to the "
        "other blocks': subtract the running maximum, and rescale what was summed before.",
        (
            _online(_step(new=lambda scores, m, m_new: np.exp(scores - scores.max()))),
            _online(
                _step(
                    old=lambda m, m_new: 1.0,
                    new=lambda scores, m, m_new: np.exp(scores - scores.max()),
                )
            ),
        ),
    ),
    Mistake(
        "maximum-of-the-first-block",
        "The maximum stays that of the first block. On paper any number will do, but a later score "
        "far above it makes exp overflow: keep the largest so far, and rescale.",
        (_online(_step(maximum=_first_maximum)),),
    ),
    Mistake(
        "maximum-starts-at-0",
        "The running maximum starts at 0. Where every score is far below that, all exponentials "
        "are 0 and the output is 0/0: start from −∞.",
        (_online(start=0.0),),
    ),
    Mistake(
        "maximum-not-subtracted",
        "The block's exponentials are exp(score), without − m_new: they do not refer to the same "
        "maximum as the rescaled sums.",
        (_online(_step(new=lambda scores, m, m_new: np.exp(scores))),),
    ),
    Mistake(
        "nan-from-the-first-block",
        "Every result is nan or inf. Look at the first block, where m = −∞ and l = 0: "
        "exp(m_old − m_new) is 0 there and does no harm, but exp(m_new − m_old) and "
        "exp(score − m_old) are ∞, and 0 · ∞, ∞/∞ and 0/0 are nan.",
        (lambda q, K, V, block: np.full(V.shape[-1], np.nan),),
        _all_are_nan,
    ),
    Mistake(
        "not-normalised",
        "The output is not divided by the sum l, after the last block.",
        (_online(result=lambda m, l, out: out),),
    ),
    Mistake(
        "normalised-in-each-step",
        "The output is divided by l at every block, and the next block is then added to what is "
        "no sum any more. Divide once, after the last block.",
        (
            _online(_step(result=lambda m, l, o, *_: [m, l, *(o / l)])),
            _online(_step(result=lambda m, l, o, *_: [m, l, *(o / l)]), result=lambda m, l, o: o),
        ),
    ),
    Mistake(
        "softmax-within-the-block",
        "Each block has a softmax of its own, and its outputs are added or averaged: a block with "
        "small scores then counts as much as one with large ones.",
        (
            lambda *args: _alone(*args).mean(axis=0),
            lambda *args: _alone(*args).sum(axis=0),
            lambda *args: np.average(_alone(*args), axis=0, weights=_lengths(*args)),
            _online(
                _step(new=lambda scores, m, m_new: _softmax(scores)), result=lambda m, l, out: out
            ),
        ),
    ),
    Mistake(
        "one-block-alone",
        "The result is that of the first block, or of the last one, by itself. Is a `return` "
        "inside the loop, are the sums set back to 0 there, or does m stay at −∞, so that "
        "exp(m − m_new) is 0 at every block?",
        (
            lambda *args: _alone(*args)[0],
            lambda *args: _alone(*args)[-1],
            _online(_both_start_anew),
        ),
    ),
    Mistake(
        "last-block-lost",
        "The number of blocks is rounded down: where `block` does not divide the number of keys, "
        "the last, shorter block is missing.",
        (_online(blocks=_without_the_rest),),
    ),
    Mistake(
        "wrong-in-short-blocks",
        "Right where `block` divides the number of keys, and nowhere else: the last block may be "
        "shorter. A slice past the end is so by itself, `reshape` refuses.",
        (),
        _wrong_in_short_blocks,
    ),
    Mistake(
        "padding-counts",
        "The last block is filled up with zeros, and they count as keys: a score of 0 has the "
        "exponential 1, or exp(−m). Take a shorter block, or give them −∞.",
        (_online(blocks=_padded),),
    ),
    Mistake(
        "blocks-overlap",
        "Some keys are taken more than once. A block begins where the last one ended: "
        "`range(0, len(K), block)`, and `K[start : start + block]`.",
        (
            _online(
                blocks=lambda q, K, V, block: [
                    (K[i : i + block], V[i : i + block]) for i in range(len(K))
                ]
            ),
            _online(
                blocks=lambda q, K, V, block: [
                    (K[i : i + block + 1], V[i : i + block + 1]) for i in range(0, len(K), block)
                ]
            ),
        ),
    ),
    Mistake(
        "keys-skipped",
        "Some keys are never taken: the first block begins at 0, and a block is "
        "`K[start : start + block]`, `block` keys and not one fewer.",
        (
            _online(
                blocks=lambda q, K, V, block: [
                    (K[i : i + block - 1], V[i : i + block - 1]) for i in range(0, len(K), block)
                ]
            ),
            _online(blocks=lambda *args: _in_order(*args)[1:]),
            _online(blocks=lambda *args: _in_order(*args)[:-1]),
        ),
    ),
    Mistake(
        "block-for-their-number",
        "`block` is taken for the number of blocks. It is how many keys a block has; of blocks "
        "there are ⌈T_k / block⌉.",
        (
            _online(
                blocks=lambda q, K, V, block: [
                    (K[i * block : (i + 1) * block], V[i * block : (i + 1) * block])
                    for i in range(block)
                ]
            ),
        ),
    ),
    Mistake(
        "values-of-the-first-block",
        "Every block is multiplied with the first rows of V: slice V like K.",
        (_online(blocks=_values_from_the_start),),
    ),
    Mistake(
        "values-not-weighted",
        "The rows of V are added, or averaged, without their exponentials.",
        (
            _online(
                lambda m, l, o, scores, v: [
                    *(new := _step()(m, l, o, scores, v))[:2],
                    *(o * np.exp(m - new[0]) + v.sum(axis=0)),
                ]
            ),
            lambda q, K, V, block: V.mean(axis=0),
        ),
    ),
    Mistake(
        "statistics-returned-too",
        "The running maximum or the sum comes back as well: return the output alone, d_v numbers.",
        (
            _online(result=lambda m, l, out: [m, l, *(out / l)]),
            _online(result=lambda m, l, out: [m, l, *out]),
            _online(result=lambda m, l, out: [*(out / l), m + np.log(l)]),
            _online(result=lambda m, l, out: [*(out / l), m, l]),
            _online(result=lambda m, l, out: m),
            _online(result=lambda m, l, out: l),
            _online(result=lambda m, l, out: m + np.log(l)),
        ),
    ),
    Mistake(
        "extra-axis",
        "The numbers are right, but stand in an array of two axes: one query has one output, of "
        "the shape (d_v,).",
        (
            lambda q, K, V, block: _attention(q, K, V)[None],
            lambda q, K, V, block: _attention(q, K, V)[:, None],
        ),
    ),
    Mistake(
        "weights-returned",
        "These are the weights of the keys. Multiply each with its row of V and sum.",
        (lambda q, K, V, block: _softmax(K @ q / np.sqrt(len(q))),),
    ),
    Mistake(
        "sign-reversed",
        "The smallest score gets the largest weight: the sign in the exponent is reversed.",
        (lambda q, K, V, block: _attention(-q, K, V),),
    ),
    Mistake(
        "overflows",
        "Right for small scores. For large ones exp overflows, or all exponentials are 0: subtract "
        "the running maximum inside exp, and bring the old sums to it.",
        (lambda q, K, V, block: _attention(q, K, V, _naive),),
        _overflows,
    ),
)

# --- 6.5 merge(out_a, lse_a, out_b, lse_b), for many queries ---


def _query_by_query(merge):
    """A merge for one query, made for many."""

    def rows(out_a, lse_a, out_b, lse_b):
        return np.array([merge(*query) for query in zip(out_a, lse_a, out_b, lse_b)])

    return rows


def _both_lse(lse_a, lse_b):
    return np.logaddexp(lse_a, lse_b)


def _shares(lse_a, lse_b):
    lse = _both_lse(lse_a, lse_b)
    return np.exp(lse_a - lse), np.exp(lse_b - lse)


def _merged(out_a, lse_a, out_b, lse_b):
    a, b = _shares(lse_a, lse_b)
    out = a[:, None] * out_a + b[:, None] * out_b
    return np.column_stack([out, _both_lse(lse_a, lse_b)])


def _along_columns(out_a, lse_a, out_b, lse_b):
    a, b = _shares(lse_a, lse_b)
    return np.column_stack([a * out_a + b * out_b, _both_lse(lse_a, lse_b)])


def _one_maximum(largest):
    """Every query's lse minus a number that all of them share."""

    def merge(out_a, lse_a, out_b, lse_b):
        m = largest(lse_a, lse_b)
        a, b = np.exp(lse_a - m), np.exp(lse_b - m)
        out = (a[:, None] * out_a + b[:, None] * out_b) / (a + b)[:, None]
        return np.column_stack([out, m + np.log(a + b)])

    return merge


def _all_queries_together(lse_of_each):
    """Shares that sum to 1 over all queries."""

    def merge(out_a, lse_a, out_b, lse_b):
        largest = max(lse_a.max(), lse_b.max())
        a, b = np.exp(lse_a - largest), np.exp(lse_b - largest)
        out = (a[:, None] * out_a + b[:, None] * out_b) / (a + b).sum()
        total = np.full(len(a), largest + np.log((a + b).sum()))
        return np.column_stack([out, _both_lse(lse_a, lse_b) if lse_of_each else total])

    return merge


def _nan_for_empty(seen) -> bool:
    def has_an_empty_part(case):
        return bool(np.isinf(case.args[1]).any() or np.isinf(case.args[3]).any())

    return _wrong_just_where(seen, has_an_empty_part)


_LEFT_OUT = {"order-of-the-results", "output-alone"}  # the results have another form here
_OTHERWISE = {
    "nan-for-an-empty-part": {"sign": _nan_for_empty},
    "overflows": {
        "sentence": "Right for small numbers, nan or inf near 10,000 or −10,000: exp(lse) leaves "
        "the range of floating-point numbers. Subtract each query's larger lse from both first."
    },
}

MERGE = (
    *(
        replace(
            mistake,
            references=tuple(map(_query_by_query, mistake.references)),
            **_OTHERWISE.get(mistake.id, {}),
        )
        for mistake in mistakes05.MERGE
        if mistake.id not in _LEFT_OUT
    ),
    Mistake(
        "lse-in-another-column",
        "The numbers are right, but the lse must be the last column, after the output.",
        (lambda *args: np.roll(_merged(*args), 1, axis=1),),
    ),
    Mistake(
        "output-alone",
        "Only the output comes back. Without the lse it could not be merged with a third part: it "
        "is asked for as one more column.",
        (lambda *args: _merged(*args)[:, :-1],),
    ),
    Mistake(
        "lse-alone",
        "Only the lse comes back: the merged output is asked for, with the lse as one more column.",
        (
            lambda *args: _merged(*args)[:, -1],
            lambda *args: _merged(*args)[:, -1:],
        ),
    ),
    Mistake(
        "shares-along-the-columns",
        "The shares have the shape (T,), and NumPy lays them along the columns of the output "
        "(T, d_v): it fails, or is wrong where T and d_v happen to be equal. `a[:, None]` scales "
        "rows.",
        (_along_columns,),
    ),
    Mistake(
        "one-maximum-for-all-queries",
        "One maximum is subtracted from every query's lse. Where a query's own are far below it, "
        "both exponentials are 0, and 0/0 is nan: `np.maximum(lse_a, lse_b)` takes the larger one "
        "of each pair.",
        (_one_maximum(lambda lse_a, lse_b: max(lse_a.max(), lse_b.max())),),
    ),
    Mistake(
        "maximum-of-one-part",
        "The largest lse of one part is subtracted from both. Where the other part's is far "
        "larger, exp overflows; take the larger one of each query's two.",
        (
            _one_maximum(lambda lse_a, lse_b: lse_a.max()),
            _one_maximum(lambda lse_a, lse_b: lse_b.max()),
        ),
    ),
    Mistake(
        "queries-share-a-sum",
        "The exponentials are divided by their sum over all queries. Each query has its own two "
        "parts, whose shares sum to 1.",
        (_all_queries_together(lse_of_each=True), _all_queries_together(lse_of_each=False)),
    ),
    Mistake(
        "parts-side-by-side",
        "The two outputs stand side by side, or one below the other. They are partial results for "
        "the same queries: each row is a weighted mean of the two.",
        (
            lambda out_a, lse_a, out_b, lse_b: np.column_stack(
                [out_a, out_b, _both_lse(lse_a, lse_b)]
            ),
            lambda out_a, lse_a, out_b, lse_b: np.column_stack([out_a, lse_a, out_b, lse_b]),
            lambda out_a, lse_a, out_b, lse_b: np.vstack(
                [np.column_stack([out_a, lse_a]), np.column_stack([out_b, lse_b])]
            ),
            lambda out_a, lse_a, out_b, lse_b: np.concatenate([out_a, out_b], axis=1),
            lambda out_a, lse_a, out_b, lse_b: np.concatenate([out_a, out_b], axis=0),
        ),
    ),
)

# --- 6.8 softmax_backward(weights, grad_weights) ---


def _mean(p, g, axis=-1, keepdims=True):
    return (p * g).sum(axis=axis, keepdims=keepdims)


def _right(p, g):
    return p * (g - _mean(p, g))


def _jacobian(p):
    return p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :])


def _rows_do_not_cancel(seen) -> bool:
    return any(
        not np.allclose(one.answer.array.sum(axis=-1), 0, atol=1e-2) for one in _comparable(seen)
    )


SOFTMAX_BACKWARD = (
    Mistake(
        "diagonal-alone",
        "p · g is what the term with δ gives. The other term, p · Σ p g, is not subtracted: a "
        "score that grows takes weight from all the others.",
        (lambda p, g: p * g,),
    ),
    Mistake(
        "each-by-itself",
        "p · (1 − p) · g takes the Jacobian's diagonal alone, as if each weight depended on its "
        "own score only (a sigmoid). Off the diagonal it has −p_i · p_j.",
        (lambda p, g: p * (1 - p) * g,),
    ),
    Mistake(
        "plain-mean",
        "The plain mean of the gradient is subtracted. It must be weighted: Σ p · g.",
        (
            lambda p, g: p * (g - g.mean(axis=-1, keepdims=True)),
            lambda p, g: p * (g - g.mean()),
        ),
    ),
    Mistake(
        "plain-sum",
        "The plain sum of the gradient is subtracted. It must be weighted: Σ p · g.",
        (lambda p, g: p * (g - g.sum(axis=-1, keepdims=True)),),
    ),
    Mistake(
        "mean-of-the-products",
        "`(p * g).mean()` divides by the number of keys, but the weights sum to 1 already: take "
        "the sum of p · g.",
        (lambda p, g: p * (g - (p * g).mean(axis=-1, keepdims=True)),),
    ),
    Mistake(
        "g-left-out",
        "In the second term the gradient is missing: it is p · Σ p g. Sums of p alone, or of p², "
        "do not depend on the loss.",
        (
            lambda p, g: p * g - p * p,
            lambda p, g: p * g - p * (p * p).sum(axis=-1, keepdims=True),
            lambda p, g: p * (g - 1),
            lambda p, g: p * (g - p.sum(axis=-1, keepdims=True)),
        ),
    ),
    Mistake(
        "first-p-left-out",
        "In the first term p is missing: it is p · g.",
        (lambda p, g: g - p * _mean(p, g),),
    ),
    Mistake(
        "second-p-left-out",
        "Σ p · g is subtracted from every entry alike. Each loses its share of it, p · Σ p g.",
        (lambda p, g: p * g - _mean(p, g),),
    ),
    Mistake(
        "outer-p-left-out",
        "The factor p in front is missing: the result is p · (g − Σ p g).",
        (lambda p, g: g - _mean(p, g),),
    ),
    Mistake(
        "log-softmax",
        "g − p · Σ g is the backward of log-softmax. Here the gradient arrives at the weights "
        "themselves: p · (g − Σ p g).",
        (lambda p, g: g - p * g.sum(axis=-1, keepdims=True),),
    ),
    Mistake(
        "cross-entropy",
        "p − y is the gradient of the cross-entropy with the softmax inside it, where y is the "
        "target. Here any gradient may arrive: p · (g − Σ p g).",
        (lambda p, g: p - g,),
    ),
    Mistake(
        "second-term-alone",
        "This is p · Σ p g. It is to be subtracted from p · g.",
        (lambda p, g: p * _mean(p, g), lambda p, g: -p * _mean(p, g)),
    ),
    Mistake(
        "added",
        "The two terms are added: the Jacobian is diag(p) minus p pᵀ.",
        (lambda p, g: p * (g + _mean(p, g)),),
    ),
    Mistake(
        "sign-reversed",
        "The sign is reversed: p · (g − Σ p g), not p · (Σ p g − g).",
        (lambda p, g: -_right(p, g),),
    ),
    Mistake(
        "softmax-again",
        "`weights` goes through a softmax here: it holds weights already.",
        (lambda p, g: _right(_softmax(p), g),),
    ),
    Mistake(
        "scaled",
        "The result is multiplied by 1/√T_k or 1/T_k. The scale of attention has its own backward, "
        "and nothing is averaged here.",
        (
            lambda p, g: _right(p, g) / np.sqrt(p.shape[-1]),
            lambda p, g: _right(p, g) / p.shape[-1],
        ),
    ),
    Mistake(
        "rows-mixed",
        "The sum of p · g runs over several rows. Each row has one of its own: `axis=-1`, and no "
        "product of whole tables such as `p @ g.T`.",
        (
            lambda p, g: p * (g - (p * g).sum()),
            lambda p, g: p * g - (p @ g.mT) @ p,
            lambda p, g: p * g - p @ (p.mT @ g),
            lambda p, g: p * g - (p @ g.T) @ p,
            lambda p, g: p * g - p @ (p.T @ g),
        ),
    ),
    Mistake(
        "wrong-axis",
        "The sum of p · g runs along the first axis: use `axis=-1`.",
        (lambda p, g: p * (g - _mean(p, g, axis=0)),),
    ),
    Mistake(
        "axis-1",
        "`axis=1` is the last axis only where there are two: a single row has none of that "
        "number, and with three axes it is the middle one. Use `axis=-1`.",
        (lambda p, g: p * (g - _mean(p, g, axis=1)),),
    ),
    Mistake(
        "keepdims-missing",
        "Without `keepdims=True` the sums have lost the last axis, and NumPy lays them along the "
        "columns instead of down the rows.",
        (lambda p, g: p * (g - _mean(p, g, keepdims=False)),),
    ),
    Mistake(
        "jacobian-returned",
        "This is the Jacobian diag(p) − p pᵀ itself: multiply it with g (or better, never build "
        "it).",
        (lambda p, g: _jacobian(p),),
    ),
    Mistake(
        "only-the-sum",
        "This is Σ p · g, one number a row. Subtract it from g and multiply by p.",
        (_mean, lambda p, g: (p * g).sum(axis=-1)),
    ),
    Mistake(
        "some-axes-only",
        "Right for some numbers of axes and wrong for others: sum over `axis=-1`, whatever comes "
        "before it.",
        (),
        _some_axes_only,
    ),
    Mistake(
        "rows-do-not-cancel",
        "The weights of a row sum to 1 whatever the scores, so a row of the gradient must sum to "
        "0. Yours does not.",
        sign=_rows_do_not_cancel,
    ),
)
