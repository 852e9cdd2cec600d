"""Lesson 6's whiteboard tasks about attention, 6.2, 6.3, 6.6 and 6.7: statements, hints, solutions.
(The wrong functions that the checkers know are in `mistakes06_attention`, the judge of 6.7 in
`judges06`, the other four tasks in `board_rows`.)

A solution stands alone: on a whiteboard nobody hands you a softmax.
"""

from __future__ import annotations

import math
import random

import numpy as np

from helpers.practice import judges06 as judges
from helpers.practice import mistakes06_attention as mistakes
from helpers.practice.exercises import Case, Exercise
from helpers.practice.lesson01 import K, Q, V
from helpers.practice.opinion import Referral
from helpers.practice.trials import Trial

__all__ = ["EXERCISES"]


# --- Solutions, shown to the reader as they stand here. ---


def attention(q, k, v):
    scaled = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])  # (B, H, T_q, T_k)
    exps = np.exp(scaled - scaled.max(axis=-1, keepdims=True))  # exponents ≤ 0: no overflow
    weights = exps / exps.sum(axis=-1, keepdims=True)  # each row sums to 1
    return weights @ v  # (B, H, T_q, d_v)


def causal_attention(q, k, v):
    T_q, T_k = q.shape[-2], k.shape[-2]
    scaled = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])  # (H, T_q, T_k)
    position = np.arange(T_k - T_q, T_k)[:, None]  # of each query among the keys
    masked = np.where(np.arange(T_k) <= position, scaled, -np.inf)  # exp(−∞) = 0
    exps = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True) @ v  # (H, T_q, d_v)


def grouped_query_attention(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, d_head = len(x), w_q.shape[1] // heads

    def split(rows, count):
        return rows.reshape(T, count, d_head).swapaxes(0, 1)  # (count, T, d_head)

    q = split(x @ w_q, heads)
    group = heads // kv_heads  # query heads that share a KV head: 0 0 1 1, not 0 1 0 1
    k = np.repeat(split(x @ w_k, kv_heads), group, axis=0)
    v = np.repeat(split(x @ w_v, kv_heads), group, axis=0)
    scaled = q @ k.swapaxes(1, 2) / np.sqrt(d_head)  # (heads, T, T)
    exps = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    out = exps / exps.sum(axis=-1, keepdims=True) @ v  # (heads, T, d_head)
    return out.swapaxes(0, 1).reshape(T, heads * d_head) @ w_o  # side by side, then mixed


def decode_step(x, w_q, w_k, w_v, k_cache, v_cache):
    q = x @ w_q  # (d_k,)
    k_cache = np.concatenate([k_cache, (x @ w_k)[None]])  # (T + 1, d_k), a new array
    v_cache = np.concatenate([v_cache, (x @ w_v)[None]])
    scaled = k_cache @ q / np.sqrt(len(q))  # (T + 1,): the token sees itself and all before it
    exps = np.exp(scaled - scaled.max())
    return exps @ v_cache / exps.sum(), k_cache, v_cache


# --- Inputs: multiples of powers of ½, so exact in float32 too. ---


def _some(seed: int, *shapes: tuple[int, ...], step: float = 0.5) -> tuple[np.ndarray, ...]:
    """Arrays of multiples of `step` from −4·step to 4·step; the same on every machine."""
    draw = random.Random(seed)
    return tuple(
        np.array([draw.randrange(-4, 5) * step for _ in range(math.prod(shape))]).reshape(shape)
        for shape in shapes
    )


def _qkv(front: tuple[int, ...], T_q: int, T_k: int, d_k: int, d_v: int, step: float = 0.5):
    seed = sum(front) + 7 * T_q + 5 * T_k + 3 * d_k + d_v
    q, k = _some(seed, (*front, T_q, d_k), (*front, T_k, d_k), step=step)
    return q, k, *_some(seed + 1, (*front, T_k, d_v))


def _layer(T: int, d_model: int, heads: int, kv_heads: int, d_head: int, step: float = 0.25):
    shapes = [(d_model, n * d_head) for n in (heads, kv_heads, kv_heads)]
    seed = T + 3 * d_model + 5 * heads + 7 * kv_heads + 11 * d_head
    (x,) = _some(seed, (T, d_model), step=0.5)
    w_q, w_k = _some(seed + 1, *shapes[:2], step=step)
    w_v, w_o = _some(seed + 2, shapes[2], (heads * d_head, d_model), step=0.25)
    return x, w_q, w_k, w_v, w_o, heads, kv_heads


# --- What the doctor examines. ---


def _of_the_last_queries(causal_attention):
    """The doctor also tries more queries than keys, where 6.3 promises as many or fewer. Those
    before the first key see nothing and get zeros."""

    def attention(q, k, v):  # (H, T, d)
        T_q, T_k = q.shape[1], k.shape[1]
        if T_q <= T_k:
            return causal_attention(q, k, v)
        out = causal_attention(np.ascontiguousarray(q[:, -T_k:]), k, v)
        return np.concatenate([np.zeros((len(q), T_q - T_k, v.shape[-1])), out], axis=1)

    return attention


def _of_a_layer(grouped_query_attention):
    """Any q, k, v as those of a layer: row t of x picks row t of each matrix, w_o changes nothing.
    There are as many tokens as keys, so more queries than that come in several turns."""

    def attention(q, k, v):  # (H, T, d), v as wide as q and k
        heads, T, d = k.shape
        width = max(T, heads * d) + 3  # no √d_model that is also the root of a length

        def matrix(rows):  # (H, at most T, d) -> (d_model, H · d)
            flat = rows.swapaxes(0, 1).reshape(rows.shape[1], heads * d)
            return np.concatenate([flat, np.zeros((width - len(flat), heads * d))])

        x, w_o = np.eye(T, width), np.eye(heads * d, width)
        done = []
        for start in range(0, q.shape[1], T):
            some = q[:, start : start + T]
            out = grouped_query_attention(x, matrix(some), matrix(k), matrix(v), w_o, heads, heads)
            out = np.asarray(out)[:, : heads * d].reshape(T, heads, d).swapaxes(0, 1)
            done.append(out[:, : some.shape[1]])
        return np.concatenate(done, axis=1)

    return attention


ATTENTION = Exercise(
    id="6.2",
    title="Attention",
    minutes=4,
    difficulty="easy",
    statement=(
        "Return softmax(q kᵀ / √d_k) v for every head of every sequence, in NumPy, without a mask. "
        "Scores may be as large as several thousand."
    ),
    signature=(
        "attention(q, k, v): q (B, H, T_q, d_k), k (B, H, T_k, d_k), v (B, H, T_k, d_v) -> "
        "(B, H, T_q, d_v)"
    ),
    hints=(
        "Say the shapes first: scores (B, H, T_q, T_k), then the output (B, H, T_q, d_v). `@` "
        "works on the last two axes and leaves those in front alone.",
        "`k.T` would turn all four axes round. `k.swapaxes(-1, -2)` is (B, H, d_k, T_k).",
        "The keys are the last axis of the scores: the largest and the sum are both taken with "
        "`axis=-1, keepdims=True`.",
        "Divide by `np.sqrt(q.shape[-1])`, subtract each row's maximum, exp, divide by each row's "
        "sum, `@ v`.",
    ),
    solution=attention,
    cases=(
        Case("one head, 1 query, 2 keys", _qkv((1, 1), 1, 2, 2, 1)),
        Case("one head, 2 queries, 2 keys", _qkv((1, 1), 2, 2, 2, 3)),
        Case("two heads, 1 query, 3 keys", _qkv((1, 2), 1, 3, 2, 1)),
        Case("two sequences, 2 queries, 3 keys", _qkv((2, 1), 2, 3, 3, 2)),
        Case("all sizes equal", _qkv((2, 2), 2, 2, 2, 2)),
        Case(
            "lesson 1's three tokens", (Q[None, None], K[None, None], V[None, None]), example=True
        ),
        Case("the example's sizes, other numbers", _qkv((1, 1), 3, 3, 4, 2)),
        Case("two heads, as many queries as keys", _qkv((1, 2), 3, 3, 4, 2)),
        Case("more queries than keys", _qkv((2, 3), 5, 2, 3, 4)),
        Case("as many queries as heads", _qkv((2, 3), 3, 4, 5, 2)),
        Case("as many keys as features", _qkv((2, 2), 3, 4, 4, 4)),
        Case("three sequences, d_k = 16", _qkv((3, 2), 4, 6, 16, 5)),
        Case("large scores", _qkv((2, 2), 2, 3, 4, 2, step=16.0), large=True),
    ),
    mistakes=mistakes.ATTENTION,
    doctor=Referral(lambda attention: attention, {"layout": "BHTD"}),
)

# Scaled scores of −2546 (query 0 with keys 0 and 1, which it may see) and +2546 (with key 2).
_FAR_FUTURE = (
    np.array([[[60.0, 0], [60, 0]]]),
    np.array([[[-60.0, 0], [-60, 0], [60, 0]]]),
    np.array([[[1.0, 0, 2], [2, 4, 1], [3, 1, 0]]]),
)

CAUSAL = Exercise(
    id="6.3",
    title="Causal attention against a cache",
    minutes=7,
    difficulty="medium",
    statement=(
        "There are keys and values of T_k tokens, and queries of the last T_q of them, T_q ≤ T_k: "
        "query i is token T_k − T_q + i. No token sees a later one. Return softmax(q kᵀ / √d_k) v "
        "under this mask, for every head. Scores may be as large as several thousand."
    ),
    signature=(
        "causal_attention(q, k, v): q (H, T_q, d_k), k (H, T_k, d_k), v (H, T_k, d_v) -> "
        "(H, T_q, d_v)"
    ),
    hints=(
        "Draw the mask for T_q = 2 and T_k = 5. How many keys does the last query see, how many "
        "the one before it?",
        "All T_k keys and T_k − 1: a triangle at the lower right. Query i sees the keys "
        "0 … T_k − T_q + i.",
        "`np.tri(T_q, T_k, k=T_k - T_q, dtype=bool)` is that mask, and so is "
        "`np.arange(T_k) <= np.arange(T_k - T_q, T_k)[:, None]`.",
        "Before the softmax: `np.where(mask, scaled, -np.inf)`. Then each row's maximum, exp, sum, "
        "as ever.",
    ),
    solution=causal_attention,
    cases=(
        Case("a single token", _qkv((1,), 1, 1, 2, 1)),
        Case("1 query, 2 keys", _qkv((1,), 1, 2, 2, 1)),
        Case("2 queries, 2 keys", _qkv((1,), 2, 2, 2, 1)),
        Case("2 queries, 3 keys", _qkv((1,), 2, 3, 2, 2)),
        Case("2 queries, 4 keys", _qkv((1,), 2, 4, 2, 1)),
        Case("lesson 1's three tokens", (Q[None], K[None], V[None]), example=True),
        Case("the example's sizes, other numbers", _qkv((1,), 3, 3, 4, 2)),
        Case("all sizes equal", _qkv((3,), 3, 3, 3, 3)),
        Case("two heads, 1 query, 5 keys", _qkv((2,), 1, 5, 3, 2)),
        Case("two heads, 3 queries, 5 keys", _qkv((2,), 3, 5, 5, 2)),
        Case("three heads, 4 queries, 6 keys, d_k = 16", _qkv((3,), 4, 6, 16, 5)),
        Case("two heads, 6 queries, 6 keys", _qkv((2,), 6, 6, 9, 4)),
        Case("two heads, 2 queries, 9 keys", _qkv((2,), 2, 9, 4, 3)),
        Case("large scores", _qkv((2,), 2, 4, 4, 2, step=16.0), large=True),
        Case("a future score far above all others", _FAR_FUTURE, large=True),
    ),
    mistakes=mistakes.CAUSAL,
    doctor=Referral(
        _of_the_last_queries,
        {"layout": "HTD", "causal": True, "causal_alignment": "lower_right"},
    ),
)

GROUPED = Exercise(
    id="6.6",
    title="Multi-head attention with grouped queries",
    minutes=10,
    difficulty="hard",
    statement=(
        "A whole layer, without a mask, biases or a batch. Project x to `heads` query heads and "
        "`kv_heads` heads of keys and of values, all d_head wide; head h owns the columns "
        "h · d_head to (h + 1) · d_head of its projection. Each group of heads / kv_heads "
        "neighbouring query heads shares one KV head: with 4 and 2, query heads 0 and 1 use KV "
        "head 0. Scale by 1/√d_head, put the heads side by side in order, and multiply by `w_o`. "
        "Scores may be as large as several thousand."
    ),
    signature=(
        "grouped_query_attention(x, w_q, w_k, w_v, w_o, heads, kv_heads): x (T, d_model), w_q "
        "(d_model, heads · d_head), w_k and w_v (d_model, kv_heads · d_head), w_o (heads · d_head, "
        "d_model) -> (T, d_model)"
    ),
    hints=(
        "d_head is the width of w_q over `heads`; it need not be d_model / heads. Write the shape "
        "after every step beside it.",
        "(T, heads · d_head) is cut into heads by `.reshape(T, heads, d_head)`, and only then are "
        "the axes swapped, to (heads, T, d_head). `reshape(heads, T, d_head)` would mix tokens.",
        "`np.repeat(k, heads // kv_heads, axis=0)` on (kv_heads, T, d_head) gives the KV heads "
        "0 0 1 1. `np.tile` would give 0 1 0 1.",
        "Back: (heads, T, d_head), `.swapaxes(0, 1)`, `.reshape(T, heads * d_head)`, `@ w_o`.",
    ),
    solution=grouped_query_attention,
    cases=(
        Case("1 token, 2 heads of 1, 1 KV head", _layer(1, 2, 2, 1, 1)),
        Case("2 tokens, a single head", _layer(2, 2, 1, 1, 2)),
        Case("2 tokens, 2 heads, 1 KV head", _layer(2, 2, 2, 1, 1)),
        Case("2 tokens, 2 heads, 2 KV heads", _layer(2, 4, 2, 2, 2)),
        Case("3 tokens, 2 heads, 1 KV head", _layer(3, 4, 2, 1, 2)),
        Case("2 tokens, 4 heads of 1, 2 KV heads", _layer(2, 4, 4, 2, 1)),
        Case("3 tokens, 4 heads, 2 KV heads", _layer(3, 8, 4, 2, 2), example=True),
        Case("the same sizes, other numbers", _layer(3, 8, 4, 2, 2, step=0.5)),
        Case("heads wider than d_model / heads", _layer(3, 4, 4, 2, 3)),
        Case("as many tokens as heads", _layer(4, 6, 4, 2, 3)),
        Case("6 heads, 3 KV heads", _layer(3, 6, 6, 3, 2)),
        Case("6 heads, 2 KV heads", _layer(5, 5, 6, 2, 2)),
        Case("4 heads, 4 KV heads", _layer(5, 8, 4, 4, 2)),
        Case("heads of 9", _layer(4, 6, 2, 1, 9)),
        Case("large scores", _layer(3, 4, 4, 2, 2, step=8.0), large=True),
    ),
    mistakes=mistakes.GROUPED,
    doctor=Referral(_of_a_layer, {"layout": "HTD", "d_k": 12, "d_v": 12}),
)

DECODE = Trial(
    id="6.7",
    title="One step with a KV cache",
    minutes=7,
    difficulty="medium",
    statement=(
        "A model writes token by token, here in one head. `x` is the newest token; the caches hold "
        "the keys and values of the T tokens before it, oldest first, and T may be 0. Return three "
        "arrays: the output of attention for this token, which sees itself and every token before "
        "it, and both caches with its row at the end. Scale by 1/√d_k. The caches that come in "
        "must stay as they are. Scores may be as large as several thousand."
    ),
    signature=(
        "decode_step(x, w_q, w_k, w_v, k_cache, v_cache): x (d_model,), w_q and w_k "
        "(d_model, d_k), w_v (d_model, d_v), k_cache (T, d_k), v_cache (T, d_v) -> out (d_v,), "
        "k_cache (T + 1, d_k), v_cache (T + 1, d_v)"
    ),
    hints=(
        "Which of the three projections of x must be kept for later tokens, and which is used now "
        "and never again?",
        "Put key and value into the caches first: a token attends to itself too, and with T = 0 to "
        "nothing else.",
        "`np.concatenate([k_cache, (x @ w_k)[None]])` makes a new array of (T + 1, d_k).",
        "One query needs no mask: `k_cache @ q / np.sqrt(len(q))` is (T + 1,), its softmax times "
        "`v_cache` the output.",
    ),
    solution=decode_step,
    judge=judges.decode_step,
)

EXERCISES = (ATTENTION, CAUSAL, GROUPED, DECODE)
