# ruff: noqa: F841, RUF059  (candidates name every axis, and then use some)
"""Answers as candidates write them on lesson 6's whiteboard, about attention (6.2, 6.3, 6.6, 6.7):
wrong, hostile, and right in other words."""

import itertools
import math
import sys
import time

import numpy as np

from wrong_answers.book import hostile, right, stable, wrong

# --- 6.2 attention(q, k, v), (B, H, T, d) ---


@wrong("6.2", "no-scale")
def _(q, k, v):
    return stable(q @ k.swapaxes(-1, -2)) @ v


@wrong("6.2", "no-scale")
def _(q, k, v):
    scores = np.einsum("bhqd,bhkd->bhqk", q, k)
    e = np.exp(scores)
    return np.einsum("bhqk,bhkv->bhqv", e / e.sum(-1, keepdims=True), v)


@wrong("6.2", "divided-by-d_k")
def _(q, k, v):
    B, H, T, d = q.shape
    return stable(q @ k.transpose(0, 1, 3, 2) / d) @ v


@wrong("6.2", "multiplied-by-sqrt-d_k")
def _(q, k, v):
    return stable(q @ k.mT * math.sqrt(q.shape[-1])) @ v


@wrong("6.2", "scaled-by-sqrt-d_v")
def _(q, k, v):
    return stable(q @ k.mT / math.sqrt(v.shape[-1])) @ v


@wrong("6.2", "scaled-by-sqrt-d_model")
def _(q, k, v):
    B, H, T, d = q.shape
    d_model = H * d
    return stable(q @ k.mT / np.sqrt(d_model)) @ v


@wrong("6.2", "scaled-by-sqrt-T")
def _(q, k, v):
    return stable(q @ k.mT / np.sqrt(k.shape[2])) @ v


@wrong("6.2", "scaled-by-an-axis-in-front")
def _(q, k, v):
    d_k = q.shape[1]  # as it would be for a single head
    return stable(q @ k.mT / np.sqrt(d_k)) @ v


@wrong("6.2", "scaled-by-an-axis-in-front")
def _(q, k, v):
    return stable(q @ k.mT / np.sqrt(len(q))) @ v


@wrong("6.2", "scale-hard-coded")
def _(q, k, v):
    return stable(q @ k.mT / 8) @ v


@wrong("6.2", "scaled-after-softmax")
def _(q, k, v):
    weights = stable(q @ k.mT)
    return weights / np.sqrt(q.shape[-1]) @ v


@wrong("6.2", "softmax-over-heads")
def _(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ v


@wrong("6.2", "softmax-over-queries")
def _(q, k, v):
    return stable(q @ k.mT / np.sqrt(q.shape[-1]), axis=2) @ v


@wrong("6.2", "softmax-over-batch")
def _(q, k, v):
    return stable(q @ k.mT / np.sqrt(q.shape[-1]), axis=0) @ v


@wrong("6.2", "softmax-over-all")
def _(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max())
    return e / e.sum() @ v


@wrong("6.2", "no-softmax")
def _(q, k, v):
    return (q @ k.mT / np.sqrt(q.shape[-1])) @ v


@wrong("6.2", "not-normalised")
def _(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    return np.exp(s - s.max(-1, keepdims=True)) @ v


@wrong("6.2", "keys-for-values")
def _(q, k, v):
    return stable(q @ k.mT / np.sqrt(q.shape[-1])) @ k


@wrong("6.2", "weights-returned")
def _(q, k, v):
    return stable(q @ k.mT / np.sqrt(q.shape[-1]))


@wrong("6.2", "scores-returned")
def _(q, k, v):
    return q @ k.mT / np.sqrt(q.shape[-1])


@wrong("6.2", "all-axes-transposed")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1])) @ v


@wrong("6.2", "keys-not-transposed")
def _(q, k, v):
    B, H, T, d = k.shape
    return stable(q @ k.reshape(B, H, d, T) / np.sqrt(d)) @ v


@wrong("6.2", "keys-not-transposed")
def _(q, k, v):
    return stable(q @ k / np.sqrt(q.shape[-1])) @ v


@wrong("6.2", "heads-and-tokens-swapped")
def _(q, k, v):
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))  # "(B, T, H, d) to (B, H, T, d)"
    return (stable(q @ k.mT / np.sqrt(q.shape[-1])) @ v).transpose(0, 2, 1, 3)


@wrong("6.2", "heads-merged")
def _(q, k, v):
    B, H, T, d = q.shape
    out = stable(q @ k.mT / np.sqrt(d)) @ v
    return out.transpose(0, 2, 1, 3).reshape(B, T, -1)


@wrong("6.2", "heads-and-tokens-exchanged")
def _(q, k, v):
    return np.einsum("bhqk,bhkv->bqhv", stable(q @ k.mT / np.sqrt(q.shape[-1])), v)


@wrong("6.2", "overflows")
def _(q, k, v):
    e = np.exp(q @ k.mT / np.sqrt(q.shape[-1]))
    return e / e.sum(axis=-1, keepdims=True) @ v


@wrong("6.2", "maximum-of-the-whole-table")
def _(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max())
    return e / e.sum(axis=-1, keepdims=True) @ v


@wrong("6.2", "changes-its-input")
def _(q, k, v):
    q /= np.sqrt(q.shape[-1])
    return stable(q @ k.mT) @ v


@wrong("6.2", "keepdims-missing")
def _(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1))
    return e / e.sum(axis=-1) @ v


@wrong("6.2", "causal-unasked")
def _(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    return stable(np.where(np.tri(*s.shape[-2:]), s, -np.inf)) @ v


@wrong("6.2", "winner-takes-all")
def _(q, k, v):
    s = q @ k.mT
    return np.eye(s.shape[-1])[s.argmax(axis=-1)] @ v


@wrong("6.2", "unknown")
def _(q, k, v):
    return stable(np.tanh(q @ k.mT / np.sqrt(q.shape[-1]))) @ v


@wrong("6.2", "imprecise")
def _(q, k, v):
    return np.round(stable(q @ k.mT / np.sqrt(q.shape[-1])) @ v, 3)


# --- 6.3 causal_attention(q, k, v), the queries are the last ones ---


def scaled(q, k):
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


def lower_right(q, k, more=0):
    T_q, T_k = q.shape[-2], k.shape[-2]
    return np.tril(np.ones((T_q, T_k), dtype=bool), k=T_k - T_q + more)


@wrong("6.3", "no-mask")
def _(q, k, v):
    return stable(scaled(q, k)) @ v


@wrong("6.3", "aligned-upper-left")
def _(q, k, v):
    s = scaled(q, k)
    return stable(np.where(np.tril(np.ones_like(s)), s, -np.inf)) @ v


@wrong("6.3", "aligned-upper-left")
def _(q, k, v):
    T_q, T_k = q.shape[1], k.shape[1]
    future = np.arange(T_k)[None, :] > np.arange(T_q)[:, None]
    s = scaled(q, k)
    s[:, future] = -1e9
    return stable(s) @ v


@wrong("6.3", "offset-reversed")
def _(q, k, v):
    T_q, T_k = q.shape[1], k.shape[1]
    mask = np.tril(np.ones((T_q, T_k), dtype=bool), k=T_q - T_k)
    return stable(np.where(mask, scaled(q, k), -np.inf)) @ v


@wrong("6.3", "cache-hidden")
def _(q, k, v):
    T_q, T_k = q.shape[1], k.shape[1]
    mask = np.concatenate([np.zeros((T_q, T_k - T_q)), np.tri(T_q)], axis=1)
    return stable(np.where(mask == 1, scaled(q, k), -np.inf)) @ v


@wrong("6.3", "mask-inverted")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), -np.inf, scaled(q, k))) @ v


@wrong("6.3", "mask-inverted")
def _(q, k, v):
    s = scaled(q, k)
    s[:, np.tri(*s.shape[1:], dtype=bool)] = -np.inf
    return np.nan_to_num(stable(s)) @ v


@wrong("6.3", "own-key-masked")
def _(q, k, v):
    return stable(np.where(lower_right(q, k, -1), scaled(q, k), -np.inf)) @ v


@wrong("6.3", "off-by-one")
def _(q, k, v):
    return stable(np.where(lower_right(q, k, 1), scaled(q, k), -np.inf)) @ v


@wrong("6.3", "off-by-one")
def _(q, k, v):
    s = scaled(q, k)
    T_q, T_k = s.shape[1:]
    for i in range(T_q):
        s[:, i, T_k - T_q + i + 2 :] = -np.inf
    return stable(s) @ v


@wrong("6.3", "masked-with-zero")
def _(q, k, v):
    return stable(scaled(q, k) * lower_right(q, k)) @ v


@wrong("6.3", "masked-after-softmax")
def _(q, k, v):
    return (stable(scaled(q, k)) * lower_right(q, k)) @ v


@wrong("6.3", "renormalised-after-softmax")
def _(q, k, v):
    w = stable(scaled(q, k)) * lower_right(q, k)
    return w / w.sum(axis=-1, keepdims=True) @ v


@wrong("6.3", "masked-with-too-small-a-number")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), scaled(q, k), -1000)) @ v


@wrong("6.3", "all-nan")
def _(q, k, v):
    return stable(scaled(q, k) + (1 - lower_right(q, k)) * -np.inf) @ v


@wrong("6.3", "no-scale")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), q @ k.mT, -np.inf)) @ v


@wrong("6.3", "divided-by-d_k")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), q @ k.mT / q.shape[-1], -np.inf)) @ v


@wrong("6.3", "scaled-by-sqrt-d_model")
def _(q, k, v):
    H, _, d = q.shape
    return stable(np.where(lower_right(q, k), q @ k.mT / np.sqrt(H * d), -np.inf)) @ v


@wrong("6.3", "scaled-by-sqrt-T")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), q @ k.mT / np.sqrt(k.shape[1]), -np.inf)) @ v


@wrong("6.3", "softmax-wrong-axis")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), scaled(q, k), -np.inf), axis=0) @ v


@wrong("6.3", "keys-for-values")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), scaled(q, k), -np.inf)) @ k


@wrong("6.3", "overflows")
def _(q, k, v):
    e = np.exp(scaled(q, k)) * lower_right(q, k)
    return e / e.sum(axis=-1, keepdims=True) @ v


@wrong("6.3", "right-on-squares-alone")
def _(q, k, v):
    T = q.shape[1]
    return stable(np.where(np.tri(T, dtype=bool), scaled(q, k), -np.inf)) @ v


@wrong("6.3", "right-on-squares-alone")
def _(q, k, v):
    H, T, d = k.shape
    return stable(np.where(np.tri(T, dtype=bool), scaled(q, k), -np.inf)) @ v


@wrong("6.3", "changes-its-input")
def _(q, k, v):
    k *= q.shape[-1] ** -0.5
    return stable(np.where(lower_right(q, k), q @ k.mT, -np.inf)) @ v


@wrong("6.3", "all-axes-transposed")
def _(q, k, v):
    d = q.shape[-1]
    return stable(np.where(lower_right(q, k), q @ k.T / np.sqrt(d), -np.inf)) @ v


@wrong("6.3", "needs-two-axes")
def _(q, k, v):
    s = q @ k.transpose(1, 0) / np.sqrt(q.shape[-1])
    return stable(np.where(lower_right(q, k), s, -np.inf)) @ v


@wrong("6.3", "softmax-twice")
def _(q, k, v):
    return stable(stable(np.where(lower_right(q, k), scaled(q, k), -np.inf))) @ v


# --- 6.6 grouped_query_attention(x, w_q, w_k, w_v, w_o, heads, kv_heads) ---


def layer(
    x, w_q, w_k, w_v, w_o, heads, kv_heads, *, scale=None, times=None, softmax=stable, join=None
):
    """A right layer, of which an answer exchanges one part."""
    T, d_head = len(x), w_q.shape[1] // heads
    q = (x @ w_q).reshape(T, heads, d_head).transpose(1, 0, 2)
    k = (x @ w_k).reshape(T, kv_heads, d_head).transpose(1, 0, 2)
    v = (x @ w_v).reshape(T, kv_heads, d_head).transpose(1, 0, 2)
    repeat = times or (lambda a, n: np.repeat(a, n, axis=0))
    k, v = repeat(k, heads // kv_heads), repeat(v, heads // kv_heads)
    out = softmax(q @ k.mT * (d_head**-0.5 if scale is None else scale)) @ v
    return join(out) if join else out.transpose(1, 0, 2).reshape(T, -1) @ w_o


@wrong("6.6", "heads-tiled")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    times = lambda a, n: np.concatenate([a] * n)  # noqa: E731
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, times=times)


@wrong("6.6", "heads-tiled")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, d = len(x), w_q.shape[1] // heads
    out = []
    for h in range(heads):
        g = h % kv_heads
        q = (x @ w_q)[:, h * d : (h + 1) * d]
        k, v = ((x @ w)[:, g * d : (g + 1) * d] for w in (w_k, w_v))
        out.append(stable(q @ k.T / np.sqrt(d)) @ v)
    return np.hstack(out) @ w_o


@wrong("6.6", "heads-tiled")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, d, group = len(x), w_q.shape[1] // heads, heads // kv_heads
    q = (x @ w_q).reshape(T, group, kv_heads, d).transpose(1, 2, 0, 3)
    k, v = ((x @ w).reshape(T, kv_heads, d).transpose(1, 0, 2) for w in (w_k, w_v))
    out = stable(q @ k.mT / np.sqrt(d)) @ v
    return out.transpose(2, 0, 1, 3).reshape(T, -1) @ w_o


@wrong("6.6", "keys-and-values-repeated-differently")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, d, n = len(x), w_q.shape[1] // heads, heads // kv_heads
    q = (x @ w_q).reshape(T, heads, d).swapaxes(0, 1)
    k = np.repeat((x @ w_k).reshape(T, kv_heads, d).swapaxes(0, 1), n, axis=0)
    v = np.tile((x @ w_v).reshape(T, kv_heads, d).swapaxes(0, 1), (n, 1, 1))
    return (stable(q @ k.mT / d**0.5) @ v).swapaxes(0, 1).reshape(T, -1) @ w_o


@wrong("6.6", "columns-repeated")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, d, n = len(x), w_q.shape[1] // heads, heads // kv_heads
    q = (x @ w_q).reshape(T, heads, d).swapaxes(0, 1)
    k, v = (np.repeat(x @ w, n, axis=1).reshape(T, heads, d).swapaxes(0, 1) for w in (w_k, w_v))
    return (stable(q @ k.mT / d**0.5) @ v).swapaxes(0, 1).reshape(T, -1) @ w_o


@wrong("6.6", "first-kv-head-for-all")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    times = lambda a, n: np.broadcast_to(a[:1], (heads, *a.shape[1:]))  # noqa: E731
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, times=times)


@wrong("6.6", "no-scale")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, scale=1)


@wrong("6.6", "divided-by-d_head")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, scale=heads / w_q.shape[1])


@wrong("6.6", "scaled-by-sqrt-d_model")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, scale=x.shape[1] ** -0.5)


@wrong("6.6", "scaled-by-sqrt-d_model")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, scale=w_q.shape[1] ** -0.5)


@wrong("6.6", "scaled-by-sqrt-heads")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, scale=heads**-0.5)


@wrong("6.6", "heads-mixed-by-reshape")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, n = len(x), heads // kv_heads
    q = (x @ w_q).reshape(heads, T, -1)
    k = np.repeat((x @ w_k).reshape(kv_heads, T, -1), n, axis=0)
    v = np.repeat((x @ w_v).reshape(kv_heads, T, -1), n, axis=0)
    out = stable(q @ k.mT / np.sqrt(q.shape[-1])) @ v
    return out.reshape(T, -1) @ w_o


@wrong("6.6", "heads-mixed-by-reshape")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, n = len(x), heads // kv_heads
    q = (x @ w_q).reshape(heads, T, -1)
    k = np.repeat((x @ w_k).reshape(kv_heads, T, -1), n, axis=0)
    v = np.repeat((x @ w_v).reshape(kv_heads, T, -1), n, axis=0)
    out = stable(q @ k.mT / np.sqrt(q.shape[-1])) @ v
    return out.swapaxes(0, 1).reshape(T, -1) @ w_o


@wrong("6.6", "output-mixed-by-reshape")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    join = lambda out: out.reshape(len(x), -1) @ w_o  # noqa: E731
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, join=join)


@wrong("6.6", "heads-interleaved")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    n = heads // kv_heads
    out = []
    for h in range(heads):
        q = (x @ w_q)[:, h::heads]
        k, v = ((x @ w)[:, h // n :: kv_heads] for w in (w_k, w_v))
        out.append(stable(q @ k.T / np.sqrt(q.shape[1])) @ v)
    return np.concatenate(out, axis=1) @ w_o


@wrong("6.6", "heads-joined-in-another-order")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    join = lambda out: np.stack(list(out), axis=-1).reshape(len(x), -1) @ w_o  # noqa: E731
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, join=join)


@wrong("6.6", "heads-joined-in-another-order")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    join = lambda out: np.hstack(out[::-1]) @ w_o  # noqa: E731
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, join=join)


@wrong("6.6", "heads-not-joined")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, join=lambda out: out.mean(axis=0))


@wrong("6.6", "w_o-forgotten")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, join=np.hstack)


@wrong("6.6", "w_o-forgotten")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, join=lambda out: out)


@wrong("6.6", "w_o-transposed")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o.T, heads, kv_heads)


@wrong("6.6", "one-wide-head")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return stable(q @ k.T / np.sqrt(w_q.shape[1] // heads)) @ v @ w_o


@wrong("6.6", "causal-unasked")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    softmax = lambda s: stable(s + np.triu(np.full(s.shape[1:], -np.inf), 1))  # noqa: E731
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, softmax=softmax)


@wrong("6.6", "softmax-wrong-axis")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, softmax=lambda s: stable(s, axis=0))


@wrong("6.6", "no-softmax")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, softmax=lambda s: s)


@wrong("6.6", "not-normalised")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, softmax=np.exp)


@wrong("6.6", "keys-for-values")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_k, w_o, heads, kv_heads)


@wrong("6.6", "keys-and-values-exchanged")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_v, w_k, w_o, heads, kv_heads)


@wrong("6.6", "overflows")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    softmax = lambda s: np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)  # noqa: E731
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, softmax=softmax)


@wrong("6.6", "raises-error")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, d_head = len(x), x.shape[1] // heads  # d_model / heads, which it need not be
    q = (x @ w_q).reshape(T, heads, d_head).swapaxes(0, 1)
    k, v = ((x @ w).reshape(T, kv_heads, d_head).swapaxes(0, 1) for w in (w_k, w_v))
    k, v = (np.repeat(each, heads // kv_heads, axis=0) for each in (k, v))
    return (stable(q @ k.mT / d_head**0.5) @ v).swapaxes(0, 1).reshape(T, -1) @ w_o


@wrong("6.6", "raises-error")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, times=lambda a, n: a)


@wrong("6.6", "changes-its-input")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    w_q /= np.sqrt(w_q.shape[1] // heads)
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads, scale=1)


# --- 6.7 decode_step(x, w_q, w_k, w_v, k_cache, v_cache) ---


def grown(x, w_k, w_v, k_cache, v_cache):
    return np.vstack([k_cache, x @ w_k]), np.vstack([v_cache, x @ w_v])


def one_query(q, k, v, divisor=None):
    return stable(k @ q / np.sqrt(len(q) if divisor is None else divisor)) @ v


@wrong("6.7", "new-token-not-seen")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    out = one_query(x @ w_q, k_cache, v_cache)  # before the new row is there
    return out, *grown(x, w_k, w_v, k_cache, v_cache)


@wrong("6.7", "new-token-not-seen")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    out = np.zeros(w_v.shape[1])
    if len(k_cache):
        out = one_query(x @ w_q, k_cache, v_cache)
    return out, *grown(x, w_k, w_v, k_cache, v_cache)


@wrong("6.7", "new-token-not-seen")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    if len(k_cache) == 0:
        return v[0], k, v
    return one_query(x @ w_q, k[:-1], v[:-1]), k, v


@wrong("6.7", "first-key-only")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    q = (x @ w_q)[None]
    s = np.where(np.tri(1, len(k)), q @ k.T / np.sqrt(len(q[0])), -np.inf)
    return (stable(s) @ v)[0], k, v


@wrong("6.7", "newest-key-only")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k[-1:], v[-1:]), k, v


@wrong("6.7", "first-key-not-seen")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    start = min(1, len(k_cache))
    return one_query(x @ w_q, k[start:], v[start:]), k, v


@wrong("6.7", "no-scale")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return stable(k @ (x @ w_q)) @ v, k, v


@wrong("6.7", "divided-by-d_k")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return stable(k @ (x @ w_q) / k.shape[1]) @ v, k, v


@wrong("6.7", "scaled-by-sqrt-d_model")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v, len(x)), k, v


@wrong("6.7", "scaled-by-sqrt-T")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v, len(k)), k, v


@wrong("6.7", "no-softmax")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return k @ (x @ w_q) / k.shape[1] ** 0.5 @ v, k, v


@wrong("6.7", "not-normalised")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return np.exp(k @ (x @ w_q) / k.shape[1] ** 0.5) @ v, k, v


@wrong("6.7", "keys-for-values")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, k), k, v


@wrong("6.7", "key-as-query")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_k, k, v), k, v


@wrong("6.7", "overflows")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    e = np.exp(k @ (x @ w_q) / k.shape[1] ** 0.5)
    return e @ v / e.sum(), k, v


@wrong("6.7", "cache-not-extended")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k_cache, v_cache


@wrong("6.7", "new-row-first")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = np.vstack([x @ w_k, k_cache]), np.vstack([x @ w_v, v_cache])
    return one_query(x @ w_q, k, v), k, v


@wrong("6.7", "order-reversed")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = (np.flip(each, axis=0) for each in grown(x, w_k, w_v, k_cache, v_cache))
    return one_query(x @ w_q, k, v), k, v


@wrong("6.7", "oldest-row-dropped")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache[1:], v_cache[1:])
    return one_query(x @ w_q, k, v), k, v


@wrong("6.7", "new-row-only")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k[-1:], v[-1:]


@wrong("6.7", "fails-on-an-empty-cache")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    q, k_new, v_new = x @ w_q, x @ w_k, x @ w_v
    s, own = k_cache @ q / np.sqrt(len(q)), k_new @ q / np.sqrt(len(q))
    m = max(s.max(), own)  # of nothing, if the cache is empty
    e, e_own = np.exp(s - m), np.exp(own - m)
    out = (e @ v_cache + e_own * v_new) / (e.sum() + e_own)
    return out, np.vstack([k_cache, k_new]), np.vstack([v_cache, v_new])


@wrong("6.7", "x-in-the-cache")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = np.vstack([k_cache, x]), np.vstack([v_cache, x])
    return one_query(x @ w_q, k, v), k, v


@wrong("6.7", "key-and-value-exchanged")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_v, w_k, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k, v


@wrong("6.7", "query-not-projected")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x, k, v), k, v


@wrong("6.7", "key-in-both")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_k, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k, v


@wrong("6.7", "query-in-the-cache")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_q, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k, v


@wrong("6.7", "scaled-keys-in-the-cache")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k / np.sqrt(w_k.shape[1]), w_v, k_cache, v_cache)
    return stable(k @ (x @ w_q)) @ v, k, v


@wrong("6.7", "another-order")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return k, v, one_query(x @ w_q, k, v)


@wrong("6.7", "caches-exchanged")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), v, k


@wrong("6.7", "caches-not-returned")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return one_query(x @ w_q, *grown(x, w_k, w_v, k_cache, v_cache))


@wrong("6.7", "wrong-shape")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    q = (x @ w_q)[None]
    return stable(q @ k.T / np.sqrt(q.shape[-1])) @ v, k, v  # (1, d_v)


@wrong("6.7", "wrong-shape")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k.ravel(), v.ravel()


@wrong("6.7", "wrong-cache")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k + 1, v


@wrong("6.7", "imprecise")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return np.round(one_query(x @ w_q, k, v), 3), k, v


@wrong("6.7", "unknown")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return 2 * one_query(x @ w_q, k, v), k, v


@wrong("6.7", "changes-its-input")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    out = one_query(x @ w_q, k, v)
    k_cache *= 0
    return out, k, v


@wrong("6.7", "raises-error")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k_cache.append(x @ w_k)
    v_cache.append(x @ w_v)
    return one_query(x @ w_q, k_cache, v_cache), k_cache, v_cache


@wrong("6.7", "returns-none")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    if len(k_cache):
        k, v = grown(x, w_k, w_v, k_cache, v_cache)
        return one_query(x @ w_q, k, v), k, v
    return None


# --- Hostile ones ---


@hostile("6.2", "did-not-finish")
def _(q, k, v):
    while True:
        pass


@hostile("6.6", "exits")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    sys.exit(1)


@hostile("6.6", "wrong-arguments")
def _(x, w_q, w_k, w_v, w_o, heads):
    return x


@hostile("6.6", "not-deterministic")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    out = layer(x, w_q, w_k, w_v, w_o, heads, kv_heads)
    return out * (np.random.default_rng().random(out.shape) > 0.1)  # dropout


@hostile("6.7", "did-not-finish")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    while True:
        pass


@hostile("6.7", "exits")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    sys.exit(0)


@hostile("6.7", "asks-for-input")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return input("Which token? ")


@hostile("6.7", "too-slow")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    time.sleep(0.9)
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k, v


@hostile("6.7", "prints-instead-of-returning")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    print(x @ w_q)


@hostile("6.7", "wrong-type")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return {"out": x, "k_cache": k_cache, "v_cache": v_cache}


@hostile("6.7", "wrong-type")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return x @ w_q, (k_cache, v_cache)


@hostile("6.7", "wrong-type")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return "out", k_cache, v_cache


@hostile("6.7", "wrong-type")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return None, k_cache, v_cache


@hostile("6.7", "wrong-type")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return x @ w_q + 1j, k_cache, v_cache


@hostile("6.7", "wrong-type")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    yield x


@hostile("6.7", "wrong-type")
async def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return x


@hostile("6.7", "wrong-type")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    return np.broadcast_to(1.0, (10**7, 10**7))


@hostile("6.7", "wrong-shape")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    huge = np.broadcast_to(1.0, (10**7, 10**7))
    return huge, huge, huge


@hostile("6.7", "raises-error")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    class Trap:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("not an array after all")

    return Trap(), k_cache, v_cache


_steps = itertools.count()


@hostile("6.7", "not-deterministic")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v) + next(_steps), k, v


_mine = {"k": [], "v": []}


@hostile("6.7", "not-deterministic")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    if _mine["k"] and len(_mine["k"][0]) != w_k.shape[1]:
        _mine["k"], _mine["v"] = [], []
    _mine["k"].append(x @ w_k)
    _mine["v"].append(np.resize(x @ w_v, w_v.shape[1]))
    k = np.array(_mine["k"])
    v = np.array([np.resize(row, w_v.shape[1]) for row in _mine["v"]])
    return one_query(x @ w_q, k, v), k, v


# --- Right, in other words ---


@right("6.2")
def _(q, k, v):
    s = np.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[3])
    s -= np.max(s, axis=3, keepdims=True)
    p = np.exp(s)
    return np.einsum("bhqk,bhkv->bhqv", p / p.sum(3, keepdims=True), v)


@right("6.2")
def _(q, k, v):
    B, H, T, d = q.shape
    q, k, v = (x.reshape(B * H, *x.shape[2:]) for x in (q, k, v))
    return (stable(q @ k.transpose(0, 2, 1) / d**0.5) @ v).reshape(B, H, T, -1)


@right("6.2")
def _(q, k, v):
    return [
        [stable(a @ b.T / np.sqrt(a.shape[1])) @ c for a, b, c in zip(*heads, strict=True)]
        for heads in zip(q, k, v, strict=True)
    ]


@right("6.2")
def _(q, k, v):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    return stable(q * np.float32(q.shape[-1] ** -0.5) @ k.mT) @ v


@right("6.2")
def _(q, k, v):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    lse = s.max(-1, keepdims=True)
    lse = lse + np.log(np.exp(s - lse).sum(-1, keepdims=True))
    return np.exp(s - lse) @ v


@right("6.3")
def _(q, k, v):
    return stable(np.where(lower_right(q, k), scaled(q, k), -np.inf)) @ v


@right("6.3")
def _(q, k, v):
    out = np.zeros((*q.shape[:2], v.shape[2]))
    for h, i in np.ndindex(*q.shape[:2]):
        end = k.shape[1] - q.shape[1] + i + 1
        out[h, i] = stable(k[h, :end] @ q[h, i] / math.sqrt(q.shape[2])) @ v[h, :end]
    return out


@right("6.3")
def _(q, k, v):
    H, T_q, d = q.shape
    T_k = k.shape[1]
    square = np.triu(np.full((T_k, T_k), -np.inf), 1)  # of all tokens, and of it the last rows
    return stable(np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(d) + square[T_k - T_q :]) @ v


@right("6.3")
def _(q, k, v):
    s = scaled(q, k).astype(np.float32)
    hidden = np.arange(k.shape[1]) - np.arange(q.shape[1])[:, None] > k.shape[1] - q.shape[1]
    s[:, hidden] = -np.inf
    return stable(s) @ v.astype(np.float32)


@right("6.6")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    return layer(x, w_q, w_k, w_v, w_o, heads, kv_heads)


@right("6.6")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    d, n = w_q.shape[1] // heads, heads // kv_heads
    out = 0
    for h in range(heads):
        mine, shared = slice(h * d, (h + 1) * d), slice(h // n * d, (h // n + 1) * d)
        q, k, v = x @ w_q[:, mine], x @ w_k[:, shared], x @ w_v[:, shared]
        out = out + stable(q @ k.T / np.sqrt(d)) @ v @ w_o[mine]  # a sum over heads
    return out


@right("6.6")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    T, d, n = len(x), w_q.shape[1] // heads, heads // kv_heads
    q = (x @ w_q).reshape(T, kv_heads, n, d)
    k, v = ((x @ w).reshape(T, kv_heads, d) for w in (w_k, w_v))
    weights = stable(np.einsum("qgnd,kgd->gnqk", q, k) / d**0.5)  # never repeated
    return np.einsum("gnqk,kgd->qgnd", weights, v).reshape(T, heads * d) @ w_o


@right("6.6")
def _(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    arrays = (a.astype(np.float32) for a in (x, w_q, w_k, w_v, w_o))
    return layer(*arrays, heads, kv_heads)


@right("6.7")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    k, v = grown(x, w_k, w_v, k_cache, v_cache)
    return one_query(x @ w_q, k, v), k, v


@right("6.7")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    q, k, v = x @ w_q, [*k_cache, x @ w_k], [*v_cache, x @ w_v]
    scores = [float(np.dot(q, each)) / len(q) ** 0.5 for each in k]
    powers = [math.exp(s - max(scores)) for s in scores]
    return [sum(p * each for p, each in zip(powers, v, strict=True)) / sum(powers), k, v]


@right("6.7")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    x, w_q, w_k, w_v, k, v = (a.astype(np.float32) for a in (x, w_q, w_k, w_v, k_cache, v_cache))
    k, v = np.append(k, [x @ w_k], axis=0), np.append(v, [x @ w_v], axis=0)
    return one_query(x @ w_q, k, v), k, v


@right("6.7")
def _(x, w_q, w_k, w_v, k_cache, v_cache):
    T = len(k_cache)
    k, v = np.empty((T + 1, w_k.shape[1])), np.empty((T + 1, w_v.shape[1]))
    k[:T], v[:T], k[T], v[T] = k_cache, v_cache, x @ w_k, x @ w_v
    q = (x @ w_q)[None]
    return (stable(q @ k.T / math.sqrt(q.shape[1])) @ v)[0], k, v
