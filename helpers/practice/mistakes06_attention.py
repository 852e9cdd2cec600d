"""Wrong functions for lesson 6's whiteboard tasks about attention (6.2, 6.3, 6.6): what their
checkers compare an answer with, to name the mistake. (6.7 has a judge, `judges06`.)

Each differs from the right function, and from every other, on at least one case of its exercise;
tests hold that. Several references with one name are ways to write the same mistake.
"""

from __future__ import annotations

import numpy as np

from helpers.practice.exercises import Mistake
from helpers.practice.mistakes01 import OVERFLOWS, _naive, _overflows, _softmax

_SOFTMAXES = (_softmax, _naive)  # a careful one, and one that overflows


def _root(q):
    return np.sqrt(q.shape[-1])


# --- 6.2 attention(q, k, v), (B, H, T, d) ---


def _attend(q, k, v, soft=_softmax, divide=None, axis=-1):
    """Attention with one part exchanged."""
    scores = q @ k.mT
    scaled = scores / _root(q) if divide is None else divide(scores, q, k, v)
    return soft(scaled, axis=axis) @ v


def _dividing(*divides):
    """Attention with other divisors, with either softmax: references."""
    return tuple(
        lambda q, k, v, soft=soft, divide=divide: _attend(q, k, v, soft, divide)
        for divide in divides
        for soft in _SOFTMAXES
    )


def _over(*axes):
    """Attention with the softmax over other axes, with either softmax: references."""
    return tuple(
        lambda q, k, v, soft=soft, axis=axis: _attend(q, k, v, soft, axis=axis)
        for axis in axes
        for soft in _SOFTMAXES
    )


def _finished(finish):
    """The right output, or weights, and something done to it."""
    return tuple(
        lambda q, k, v, soft=soft: finish(_attend(q, k, v, soft), q, k, v) for soft in _SOFTMAXES
    )


def _weights(q, k, soft=_softmax):
    return soft(q @ k.mT / _root(q))


def _swapped(x):
    return x.swapaxes(1, 2)


_NO_SCALE = "The scores are not divided by √d_k."
_BY_D_K = "The scores are divided by d_k instead of √d_k: take the root, `np.sqrt(d_k)`, once."
_MULTIPLIED = "The scores are multiplied by √d_k instead of divided by it."
_BY_D_V = (
    "The scores are divided by √d_v: a dot product q · k sums d_k terms, so it is the root of "
    "`q.shape[-1]`."
)
_BY_D_MODEL = (
    "The scores are divided by √d_model, the width of all heads together. A score of one head sums "
    "d_k products: take the root of `q.shape[-1]`."
)
_BY_T = (
    "The scores are divided by the root of a number of tokens: take the length of one query, "
    "`q.shape[-1]`."
)
_HARD_CODED = "The scores are divided by the same number for every input: take `q.shape[-1]`."
_NOT_NORMALISED = "The exponentials are used as weights: divide each row by its sum first."
_FOR_VALUES = "The keys are mixed instead of the values: the last factor must be `v`."

ATTENTION = (
    Mistake("no-scale", _NO_SCALE, _dividing(lambda s, q, k, v: s)),
    Mistake("divided-by-d_k", _BY_D_K, _dividing(lambda s, q, k, v: s / q.shape[-1])),
    Mistake("multiplied-by-sqrt-d_k", _MULTIPLIED, _dividing(lambda s, q, k, v: s * _root(q))),
    Mistake("scaled-by-sqrt-d_v", _BY_D_V, _dividing(lambda s, q, k, v: s / _root(v))),
    Mistake(
        "scaled-by-sqrt-d_model",
        _BY_D_MODEL,
        _dividing(lambda s, q, k, v: s / np.sqrt(q.shape[1] * q.shape[-1])),
    ),
    Mistake(
        "scaled-by-sqrt-T",
        _BY_T,
        _dividing(
            lambda s, q, k, v: s / np.sqrt(q.shape[-2]), lambda s, q, k, v: s / np.sqrt(k.shape[-2])
        ),
    ),
    Mistake(
        "scaled-by-an-axis-in-front",
        "The scores are divided by the root of the batch size or of the number of heads. d_k is "
        "the last axis, `q.shape[-1]`.",
        _dividing(
            lambda s, q, k, v: s / np.sqrt(q.shape[0]), lambda s, q, k, v: s / np.sqrt(q.shape[1])
        ),
    ),
    Mistake(
        "scale-hard-coded",
        _HARD_CODED,
        _dividing(*(lambda s, q, k, v, number=number: s / number for number in (2, 8))),
    ),
    Mistake(
        "scaled-after-softmax",
        "The division by √d_k comes after the softmax, so the weights no longer sum to 1: divide "
        "the scores, before it.",
        tuple(lambda q, k, v, soft=soft: soft(q @ k.mT) @ v / _root(q) for soft in _SOFTMAXES),
    ),
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries: each query's weights over the keys must sum to 1 "
        "(`axis=-1`).",
        _over(-2),
    ),
    Mistake(
        "softmax-over-heads",
        "The softmax runs over axis 1, the heads. The keys are the last axis of the scores "
        "(`axis=-1`); with `axis=1` this works for (T_q, T_k) alone.",
        _over(1),
    ),
    Mistake(
        "softmax-over-batch",
        "The softmax runs over axis 0, the batch: it must run over the keys (`axis=-1`).",
        _over(0),
    ),
    Mistake(
        "softmax-over-all",
        "The softmax runs over a whole table, or over all of them together: each row must sum to 1 "
        "by itself (`axis=-1`).",
        _over(None, (-2, -1)),
    ),
    Mistake(
        "no-softmax",
        "The scores are used as weights: the softmax is missing.",
        (lambda q, k, v: q @ k.mT / _root(q) @ v, lambda q, k, v: q @ k.mT @ v),
    ),
    Mistake(
        "not-normalised",
        _NOT_NORMALISED,
        (
            lambda q, k, v: np.exp(q @ k.mT / _root(q)) @ v,
            lambda q, k, v: np.exp((s := q @ k.mT / _root(q)) - s.max(-1, keepdims=True)) @ v,
        ),
    ),
    Mistake(
        "keys-for-values",
        _FOR_VALUES,
        tuple(lambda q, k, v, soft=soft: _weights(q, k, soft) @ k for soft in _SOFTMAXES),
    ),
    Mistake(
        "weights-returned",
        "These are the weights: multiply them with `v`.",
        tuple(lambda q, k, v, soft=soft: _weights(q, k, soft) for soft in _SOFTMAXES),
    ),
    Mistake(
        "scores-returned",
        "These are the scores: the softmax and the values are still to come.",
        (lambda q, k, v: q @ k.mT / _root(q), lambda q, k, v: q @ k.mT),
    ),
    Mistake(
        "all-axes-transposed",
        "`k.T` turns the order of all four axes round. Exchange the last two: "
        "`k.swapaxes(-1, -2)`, or `k.mT`.",
        tuple(lambda q, k, v, soft=soft: soft(q @ k.T / _root(q)) @ v for soft in _SOFTMAXES),
    ),
    Mistake(
        "keys-not-transposed",
        "A key is a row, and the product needs it as a column: exchange the last two axes of k, "
        "`k.swapaxes(-1, -2)`. (`reshape` does not: it keeps the numbers in their old order.)",
        tuple(
            lambda q, k, v, soft=soft, turn=turn: soft(q @ turn(k) / _root(q)) @ v
            for turn in (lambda k: k, lambda k: k.reshape(k.mT.shape))
            for soft in _SOFTMAXES
        ),
    ),
    Mistake(
        "heads-and-tokens-swapped",
        "The axes are taken for (B, T, H, d): heads attend to heads where tokens should attend to "
        "tokens. Here they are (B, H, T, d) already.",
        tuple(
            lambda q, k, v, soft=soft: _swapped(
                _attend(_swapped(q), _swapped(k), _swapped(v), soft)
            )
            for soft in _SOFTMAXES
        ),
    ),
    Mistake(
        "heads-merged",
        "The heads are joined into one axis. This is done after attention, in the layer around it: "
        "return (B, H, T_q, d_v).",
        _finished(lambda out, q, k, v: _swapped(out).reshape(len(q), q.shape[2], -1))
        + _finished(lambda out, q, k, v: out.reshape(len(q), q.shape[2], -1)),
    ),
    Mistake(
        "heads-and-tokens-exchanged",
        "The numbers are right, but the result has the axes (B, T_q, H, d_v): (B, H, T_q, d_v) is "
        "asked for.",
        _finished(lambda out, q, k, v: _swapped(out)),
    ),
    Mistake(
        "keepdims-missing",
        "Without `keepdims=True` the maximum or the sum of the rows has the shape (B, H, T_q), and "
        "NumPy lays it along the wrong axes of (B, H, T_q, T_k), where it fits at all.",
        tuple(
            lambda q, k, v, kept=kept: _without_keepdims(q @ k.mT / _root(q), *kept) @ v
            for kept in ((False, True), (True, False), (False, False), (None, False))
        ),
    ),
    Mistake("overflows", OVERFLOWS, (lambda q, k, v: _attend(q, k, v, _naive),), _overflows),
    Mistake(
        "maximum-of-the-whole-table",
        "One maximum is subtracted for many rows. In a row far below it every exponential is 0, "
        "and 0/0 is nan: subtract each row's own (`axis=-1, keepdims=True`).",
        tuple(
            lambda q, k, v, axis=axis: (
                _by_sum(np.exp((s := q @ k.mT / _root(q)) - s.max(axis, keepdims=True))) @ v
            )
            for axis in (None, (-2, -1))
        ),
    ),
)


def _by_sum(x):
    return x / x.sum(axis=-1, keepdims=True)


def _without_keepdims(x, of_maximum, of_sum):
    """A softmax; of_maximum None subtracts none."""
    exps = np.exp(x) if of_maximum is None else np.exp(x - x.max(axis=-1, keepdims=of_maximum))
    return exps / exps.sum(axis=-1, keepdims=of_sum)


# --- 6.3 causal_attention(q, k, v), the queries are the last T_q of T_k positions ---


def _lower(T_q, T_k, more=0):
    """Who sees whom if query i is token T_k − T_q + i, and sees `more` keys beyond its own."""
    return np.tri(T_q, T_k, T_k - T_q + more, dtype=bool)


def _causal(q, k, v, soft=_softmax, divide=None, allowed=_lower, fill=-np.inf, axis=-1):
    """Causal attention with one part exchanged."""
    scores = q @ k.mT
    scaled = scores / _root(q) if divide is None else divide(scores, q, k, v)
    return soft(np.where(allowed(*scaled.shape[-2:]), scaled, fill), axis=axis) @ v


def _with(**parts):
    """The variant with either softmax: two references."""
    return tuple(lambda q, k, v, soft=soft: _causal(q, k, v, soft, **parts) for soft in _SOFTMAXES)


def _seeing(*masks):
    """Causal attention with another mask, with either softmax, nan left or made zeros."""
    plain = tuple(reference for mask in masks for reference in _with(allowed=mask))
    zeroed = tuple(lambda *qkv, one=one: np.nan_to_num(one(*qkv)) for one in plain[::2])
    return plain + zeroed


def _after(q, k, v, soft=_softmax, renormalise=False):
    """Causal attention with the future's weights removed after the softmax."""
    weights = _weights(q, k, soft)
    weights = np.where(_lower(*weights.shape[-2:]), weights, 0)
    return (_by_sum(weights) if renormalise else weights) @ v


def _right_on_squares_alone(seen) -> bool:
    """Right where there are as many queries as keys, and nowhere else but with a single query."""
    square = [one for one in seen if _lengths(one)[0] == _lengths(one)[1]]
    several = [one for one in seen if one not in square and _lengths(one)[0] > 1]
    return all(one.right for one in square) and not any(one.right for one in several)


def _lengths(one) -> tuple[int, int]:
    q, k, _ = one.case.args
    return q.shape[-2], k.shape[-2]


CAUSAL = (
    Mistake(
        "no-mask",
        "This is attention without a mask: every query sees the keys after its own too.",
        tuple(lambda q, k, v, soft=soft: _attend(q, k, v, soft) for soft in _SOFTMAXES),
    ),
    Mistake(
        "aligned-upper-left",
        "Query i sees the keys 0 … i, as if it were token i: with a single query and a full cache "
        "that is key 0 alone. The queries are the last tokens, so query i is token T_k − T_q + i.",
        _with(allowed=np.tri),
    ),
    Mistake(
        "offset-reversed",
        "The diagonal is moved by T_q − T_k, the wrong way: query i is token T_k − T_q + i, which "
        "is `np.tri(T_q, T_k, k=T_k - T_q)`.",
        _seeing(lambda T_q, T_k: np.tri(T_q, T_k, T_q - T_k)),
    ),
    Mistake(
        "cache-hidden",
        "Each query sees the last T_q keys up to its own, and none of the keys before them: those "
        "are its past and open to every query.",
        _with(allowed=lambda T_q, T_k: _lower(T_q, T_k) & (np.arange(T_k) >= T_k - T_q)),
    ),
    Mistake(
        "mask-inverted",
        "The mask is upside down: it hides the past and shows the future. Query i may see the keys "
        "0 … T_k − T_q + i.",
        _seeing(
            lambda T_q, T_k: ~_lower(T_q, T_k),
            lambda T_q, T_k: ~_lower(T_q, T_k, -1),
            lambda T_q, T_k: ~np.tri(T_q, T_k, dtype=bool),
            lambda T_q, T_k: ~np.tri(T_q, T_k, -1, dtype=bool),
        ),
    ),
    Mistake(
        "own-key-masked",
        "No query sees its own key: its position T_k − T_q + i is the last that it may see.",
        _seeing(lambda T_q, T_k: _lower(T_q, T_k, -1)),
    ),
    Mistake(
        "off-by-one",
        "The future leaks: each query sees the key after its own. T_k − T_q + i is the last key "
        "that query i may see.",
        _with(allowed=lambda T_q, T_k: _lower(T_q, T_k, 1)),
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
        tuple(lambda q, k, v, soft=soft: _after(q, k, v, soft) for soft in _SOFTMAXES),
    ),
    Mistake(
        "renormalised-after-softmax",
        "Masked after the softmax and divided by the rest: right until a masked score is far "
        "larger than all allowed ones, whose weights have then become 0, and 0/0 is nan. Mask "
        "before.",
        (lambda q, k, v: _after(q, k, v, renormalise=True),),
    ),
    Mistake(
        "masked-with-too-small-a-number",
        "Masked scores get a number that is low but not low enough (such as −10 or −100): with "
        "large scores the future still shows through. Use `-np.inf`.",
        tuple(
            lambda q, k, v, fill=fill, how=how: (
                _softmax(how(s := q @ k.mT / _root(q), _lower(*s.shape[-2:]), fill)) @ v
            )
            for fill in (-1.0, -10.0, -100.0, -1000.0)
            for how in (
                lambda s, allowed, fill: np.where(allowed, s, fill),
                lambda s, allowed, fill: s + np.where(allowed, 0, fill),
            )
        ),
    ),
    Mistake(
        "all-nan",
        "Every entry is nan. If a mask of zeros and ones is multiplied by `-np.inf`, that is why: "
        "0 · (−∞) is nan. Use `np.where(may_attend, scaled, -np.inf)`.",
        (lambda q, k, v: np.full((*q.shape[:-1], v.shape[-1]), np.nan),),
    ),
    Mistake("no-scale", _NO_SCALE, _with(divide=lambda s, q, k, v: s)),
    Mistake("divided-by-d_k", _BY_D_K, _with(divide=lambda s, q, k, v: s / q.shape[-1])),
    Mistake("multiplied-by-sqrt-d_k", _MULTIPLIED, _with(divide=lambda s, q, k, v: s * _root(q))),
    Mistake("scaled-by-sqrt-d_v", _BY_D_V, _with(divide=lambda s, q, k, v: s / _root(v))),
    Mistake(
        "scaled-by-sqrt-d_model",
        _BY_D_MODEL,
        _with(divide=lambda s, q, k, v: s / np.sqrt(len(q) * q.shape[-1])),
    ),
    Mistake(
        "scaled-by-sqrt-T",
        _BY_T,
        _with(divide=lambda s, q, k, v: s / np.sqrt(k.shape[-2]))
        + _with(divide=lambda s, q, k, v: s / np.sqrt(q.shape[-2])),
    ),
    Mistake(
        "scale-hard-coded",
        _HARD_CODED,
        _with(divide=lambda s, q, k, v: s / 2) + _with(divide=lambda s, q, k, v: s / 8),
    ),
    Mistake(
        "softmax-wrong-axis",
        "The softmax does not run over the keys: each query's weights over the keys must sum to 1 "
        "(`axis=-1`).",
        _with(axis=-2) + _with(axis=0),
    ),
    Mistake(
        "keys-for-values",
        _FOR_VALUES,
        tuple(lambda q, k, v, soft=soft: _causal(q, k, k, soft) for soft in _SOFTMAXES),
    ),
    Mistake(
        "all-axes-transposed",
        "`k.T` turns the order of all three axes round. Exchange the last two: "
        "`k.swapaxes(-1, -2)`, or `k.mT`.",
        tuple(
            lambda q, k, v, soft=soft: (
                soft(np.where(_lower(q.shape[1], k.shape[1]), q @ k.T / _root(q), -np.inf)) @ v
            )
            for soft in _SOFTMAXES
        ),
    ),
    Mistake("overflows", OVERFLOWS, (lambda q, k, v: _causal(q, k, v, _naive),), _overflows),
    Mistake(
        "right-on-squares-alone",
        "Right where there are as many queries as keys, and wrong elsewhere: the mask must have "
        "T_q rows and T_k columns, and query i is token T_k − T_q + i.",
        sign=_right_on_squares_alone,
    ),
)


# --- 6.6 grouped_query_attention(x, w_q, w_k, w_v, w_o, heads, kv_heads) ---


def _split(rows, count):
    """(T, count · d_head) -> (count, T, d_head), as it should be."""
    return rows.reshape(len(rows), count, -1).swapaxes(0, 1)


def _blocks(rows, count):
    """The same by `reshape` alone, which mixes tokens and heads."""
    return rows.reshape(count, len(rows), -1)


def _interleaved(rows, count):
    """Head h gets the columns h, h + count, …"""
    return rows.reshape(len(rows), -1, count).transpose(2, 0, 1)


def _joined(out):
    """(heads, T, d_head) -> (T, heads · d_head), as it should be."""
    return out.swapaxes(0, 1).reshape(out.shape[1], -1)


def _repeated(x, times):
    return np.repeat(x, times, axis=0)


def _tiled(x, times):
    return np.tile(x, (times, 1, 1))


def _grouped(
    x, w_q, w_k, w_v, w_o, heads, kv_heads, *,
    soft=_softmax, divide=None, split=_split, split_kv=None, join=_joined, project=None,
    repeat_k=_repeated, repeat_v=None, axis=-1, allowed=None,
):  # fmt: skip
    """Grouped-query attention with one part exchanged."""
    split_kv, repeat_v = split_kv or split, repeat_v or repeat_k
    q = split(x @ w_q, heads)
    k, v = split_kv(x @ w_k, kv_heads), split_kv(x @ w_v, kv_heads)
    k, v = repeat_k(k, heads // kv_heads), repeat_v(v, heads // kv_heads)
    scores = q @ k.mT
    scaled = scores / _root(q) if divide is None else divide(scores, x, q, k)
    scaled = scaled if allowed is None else np.where(allowed(len(x)), scaled, -np.inf)
    out = join(soft(scaled, axis=axis) @ v)
    return out @ w_o if project is None else project(out, w_o)


def _gqa(**parts):
    """The variant with either softmax: two references."""
    return tuple(
        lambda *args, soft=soft: _grouped(*args, soft=soft, **parts) for soft in _SOFTMAXES
    )


def _one_wide_head(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    """No split into heads at all: fits where there are no groups."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return _softmax(q @ k.T / _root(q)) @ v @ w_o


def _one_wide_head_narrow_scale(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return _softmax(q @ k.T / np.sqrt(q.shape[-1] // heads)) @ v @ w_o


def _without_scores(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    v = _repeated(_split(x @ w_v, kv_heads), heads // kv_heads)
    return _joined(np.broadcast_to(v.mean(axis=1, keepdims=True), v.shape)) @ w_o


def _exchanged(*order):
    """The arguments in another order."""
    return tuple(
        lambda *args, soft=soft: _grouped(*(args[i] for i in order), *args[5:], soft=soft)
        for soft in _SOFTMAXES
    )


def _first(x, times):
    return np.repeat(x[:1], len(x) * times, axis=0)


def _repeat_columns(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    w_k, w_v = (np.repeat(w, heads // kv_heads, axis=-1) for w in (w_k, w_v))
    return _grouped(x, w_q, w_k, w_v, w_o, heads, heads)


GROUPED = (
    Mistake(
        "heads-tiled",
        "The KV heads are repeated in the order 0 1 0 1 (`np.tile`). Neighbouring query heads "
        "share one: 0 0 1 1 (`np.repeat`).",
        _gqa(repeat_k=_tiled),
    ),
    Mistake(
        "keys-and-values-repeated-differently",
        "Keys and values are repeated in different orders, so some query heads weigh the keys of "
        "one KV head and mix the values of another. Both need 0 0 1 1 (`np.repeat`).",
        _gqa(repeat_k=_tiled, repeat_v=_repeated) + _gqa(repeat_k=_repeated, repeat_v=_tiled),
    ),
    Mistake(
        "columns-repeated",
        "`np.repeat` runs over columns, so each feature of a KV head is repeated, and a head gets "
        "a few features several times. Split into heads first, then repeat the axis of the heads.",
        (_repeat_columns,),
    ),
    Mistake(
        "first-kv-head-for-all",
        "All query heads use the first KV head: each group of heads/kv_heads neighbouring query "
        "heads has its own.",
        _gqa(repeat_k=_first),
    ),
    Mistake("no-scale", "The scores are not divided by √d_head.", _gqa(divide=lambda s, *_: s)),
    Mistake(
        "divided-by-d_head",
        "The scores are divided by d_head instead of √d_head: take the root, once.",
        _gqa(divide=lambda s, x, q, k: s / q.shape[-1]),
    ),
    Mistake(
        "multiplied-by-sqrt-d_head",
        "The scores are multiplied by √d_head instead of divided by it.",
        _gqa(divide=lambda s, x, q, k: s * _root(q)),
    ),
    Mistake(
        "scaled-by-sqrt-d_model",
        "The scores are divided by the root of a width of the whole layer (d_model, or all heads "
        "together). A score of one head sums d_head products: √d_head.",
        _gqa(divide=lambda s, x, q, k: s / _root(x))
        + _gqa(divide=lambda s, x, q, k: s / np.sqrt(len(q) * q.shape[-1])),
    ),
    Mistake(
        "scaled-by-sqrt-heads",
        "The scores are divided by the root of the number of heads: take d_head, the number of "
        "features in one head.",
        _gqa(divide=lambda s, x, q, k: s / np.sqrt(len(q))),
    ),
    Mistake(
        "scale-hard-coded",
        "The scores are divided by the same number for every input: d_head is the width of w_q "
        "over `heads`.",
        _gqa(divide=lambda s, *_: s / 8) + _gqa(divide=lambda s, *_: s / 2),
    ),
    Mistake(
        "heads-mixed-by-reshape",
        "`reshape(heads, T, d_head)` reads on past the end of a head into the next one, so tokens "
        "and heads are mixed. Cut each row first, `reshape(T, heads, d_head)`, then swap the axes.",
        _gqa(split=_blocks)
        + _gqa(split=_blocks, join=lambda out: out.reshape(out.shape[1], -1))
        + _gqa(split_kv=_blocks)
        + _gqa(split=_blocks, split_kv=_split),
    ),
    Mistake(
        "output-mixed-by-reshape",
        "Each head is right, but (heads, T, d_head) is joined by `reshape` alone, so a row gets "
        "several tokens of one head. Swap the axes first: (T, heads, d_head), then reshape.",
        _gqa(join=lambda out: out.reshape(out.shape[1], -1)),
    ),
    Mistake(
        "heads-interleaved",
        "Head h gets the columns h, h + heads, …: it owns d_head neighbouring ones, h · d_head to "
        "(h + 1) · d_head.",
        _gqa(split=_interleaved)
        + _gqa(
            split=_interleaved, join=lambda out: out.transpose(1, 2, 0).reshape(len(out[0]), -1)
        ),
    ),
    Mistake(
        "heads-joined-in-another-order",
        "Each head is right, but they are not joined head by head: the columns h · d_head to "
        "(h + 1) · d_head belong to head h, as w_o expects it.",
        _gqa(join=lambda out: out.transpose(1, 2, 0).reshape(out.shape[1], -1))
        + _gqa(join=lambda out: _joined(out[::-1])),
    ),
    Mistake(
        "heads-not-joined",
        "The heads are averaged or added up: they stand side by side, (T, heads · d_head), and w_o "
        "mixes them.",
        _gqa(join=lambda out: out.mean(axis=0), project=lambda out, w_o: out)
        + _gqa(join=lambda out: out.sum(axis=0), project=lambda out, w_o: out)
        + _gqa(join=lambda out: np.tile(out.mean(axis=0), len(out)))
        + _gqa(join=lambda out: np.tile(out.sum(axis=0), len(out))),
    ),
    Mistake(
        "w_o-forgotten",
        "The last step is missing: the heads, side by side, are multiplied by `w_o`.",
        _gqa(project=lambda out, w_o: out)
        + _gqa(join=lambda out: out, project=lambda out, w_o: out)
        + _gqa(join=lambda out: out.swapaxes(0, 1), project=lambda out, w_o: out),
    ),
    Mistake(
        "w_o-transposed",
        "`w_o` is transposed: (T, heads · d_head) @ (heads · d_head, d_model) fits as it is.",
        _gqa(project=lambda out, w_o: out @ w_o.T),
    ),
    Mistake(
        "one-wide-head",
        "There is one table of weights over all features: each head needs its own, from its own "
        "d_head columns.",
        (_one_wide_head, _one_wide_head_narrow_scale),
    ),
    Mistake(
        "causal-unasked",
        "A causal mask hides later tokens: none is asked for here.",
        _gqa(allowed=lambda T: np.tri(T, dtype=bool)),
    ),
    Mistake(
        "softmax-wrong-axis",
        "The softmax runs over the queries or the heads: each query's weights over the keys must "
        "sum to 1 (`axis=-1`).",
        _gqa(axis=1) + _gqa(axis=0),
    ),
    Mistake(
        "no-softmax",
        "The scores are used as weights: the softmax is missing.",
        (lambda *args: _grouped(*args, soft=lambda x, axis: x),),
    ),
    Mistake(
        "not-normalised",
        _NOT_NORMALISED,
        (
            lambda *args: _grouped(*args, soft=lambda x, axis: np.exp(x)),
            lambda *args: _grouped(
                *args, soft=lambda x, axis: np.exp(x - x.max(axis, keepdims=True))
            ),
        ),
    ),
    Mistake(
        "keys-for-values",
        "The keys are mixed instead of the values: `w_v` has no part in the result.",
        _exchanged(0, 1, 2, 2, 4),
    ),
    Mistake(
        "keys-and-values-exchanged",
        "`w_k` makes the values and `w_v` the keys: it is the other way round.",
        _exchanged(0, 1, 3, 2, 4),
    ),
    Mistake(
        "mean-of-the-values",
        "Every token gets the plain mean of the values: the weights must depend on the scores.",
        (_without_scores,),
    ),
    Mistake("overflows", OVERFLOWS, (lambda *args: _grouped(*args, soft=_naive),), _overflows),
)
