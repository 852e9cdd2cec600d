# ruff: noqa: E741  (l is the papers' letter)
"""Answers at the whiteboard of lesson 6, tasks 6.1, 6.4, 6.5 and 6.8: wrong, hostile, right."""

import math
import sys
import time

import numpy as np
import torch

from wrong_answers.book import hostile, right, stable, wrong

# --- 6.1 ---


@wrong("6.1", "masked-row-gives-nan")
def _(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "masked-row-gives-nan")
def _(x):
    return torch.softmax(torch.from_numpy(x), dim=-1)


@wrong("6.1", "masked-row-gives-nan")
def _(x):
    m = x.max(axis=-1, keepdims=True)
    m[m == -np.inf] = 0
    e = np.exp(x - m)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "masked-row-gives-nan")
def _(x):
    m = np.max(x, axis=-1, keepdims=True)
    lse = m + np.log(np.sum(np.exp(x - m), axis=-1, keepdims=True))
    return np.exp(x - lse)


@wrong("6.1", "masked-row-gets-weights")
def _(x):
    x = np.where(np.isinf(x), -1e9, x)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "masked-row-gets-weights")
def _(x):
    x = np.nan_to_num(x)  # −∞ becomes the lowest number there is
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "masked-row-gets-weights")
def _(x):
    x = torch.from_numpy(x)
    return x.masked_fill(x == -torch.inf, torch.finfo(torch.float32).min).softmax(-1).numpy()


@wrong("6.1", "masked-with-too-small-a-number")
def _(x):
    x = np.where(x == -np.inf, -1e4, x)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "masked-with-too-small-a-number")
def _(x):
    return stable(np.nan_to_num(x, neginf=0))


@wrong("6.1", "overflows")
def _(x):
    e = np.exp(x)
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@wrong("6.1", "overflows")
def _(x):
    e = np.exp(x)
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True))


@wrong("6.1", "overflows-and-0/0")
def _(x):
    return np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True)


@wrong("6.1", "overflows-and-0/0")
def _(x):
    return np.exp(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))


@wrong("6.1", "clipped")
def _(x):
    e = np.exp(np.minimum(x, 700))
    total = e.sum(axis=-1, keepdims=True)
    return np.where(total > 0, e / np.maximum(total, 1e-300), 0)


@wrong("6.1", "clipped")
def _(x):
    e = np.exp(np.clip(x, -500, 500))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "maximum-of-the-whole-array")
def _(x):
    e = np.exp(x - np.max(x))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "maximum-of-the-whole-array")
def _(x):
    top = x.max()
    e = np.exp(x - (top if np.isfinite(top) else 0))
    total = e.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    return e / total


@wrong("6.1", "maximum-starts-at-0")
def _(x):
    m = np.zeros((*x.shape[:-1], 1))
    for k in range(x.shape[-1]):
        m = np.maximum(m, x[..., k : k + 1])
    total = np.exp(x - m).sum(axis=-1, keepdims=True)
    return np.exp(x - m) / np.where(total == 0, 1, total)


@wrong("6.1", "not-the-maximum-subtracted")
def _(x):
    e = np.exp(x - np.mean(x, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "softmax-wrong-axis")
def _(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


@wrong("6.1", "axis-1")
def _(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@wrong("6.1", "softmax-over-all")
def _(x):
    e = np.exp(x - x.max())
    return e / e.sum()


@wrong("6.1", "some-axes-only")
def _(x):
    def one(row):
        return np.exp(row - row.max()) / np.exp(row - row.max()).sum()

    return np.array([np.nan_to_num(one(row)) for row in x])


@wrong("6.1", "keepdims-missing")
def _(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1)


@wrong("6.1", "not-normalised")
def _(x):
    m = x.max(axis=-1, keepdims=True)
    return np.exp(x - np.where(np.isinf(m), 0, m))


@wrong("6.1", "logarithm-of-the-weights")
def _(x):
    z = x - x.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


@wrong("6.1", "exp-forgotten")
def _(x):
    return x / x.sum(axis=-1, keepdims=True)


@wrong("6.1", "sign-reversed")
def _(x):
    e = np.exp(x.max(axis=-1, keepdims=True) - x)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "other-base")
def _(x):
    m = x.max(axis=-1, keepdims=True)
    e = np.exp2(x - np.where(m == -np.inf, 0, m))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@wrong("6.1", "epsilon-in-the-sum")
def _(x):
    m = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(m == -np.inf, 0, m))
    return e / (e.sum(axis=-1, keepdims=True) + 1e-5)


@wrong("6.1", "winner-takes-all")
def _(x):
    best = x == x.max(axis=-1, keepdims=True)
    return best / best.sum(axis=-1, keepdims=True)


@wrong("6.1", "masked-scores-have-weight")
def _(x):
    m = np.where(np.isinf(x), 0, x).max(axis=-1, keepdims=True)
    e = np.where(np.isinf(x), 0.3, np.exp(x - m))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("6.1", "rows-do-not-sum-to-1")
def _(x):
    m = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(m == -np.inf, 0, m))
    return e / (x > -np.inf).sum(axis=-1, keepdims=True).clip(1)


@wrong("6.1", "softmax-twice")
def _(x):
    weights = np.nan_to_num(stable(x))
    return np.nan_to_num(stable(np.where(x == -np.inf, x, weights)))


@wrong("6.1", "changes-its-input")
def _(x):
    m = x.max(axis=-1, keepdims=True)
    x -= np.where(m == -np.inf, 0, m)
    np.exp(x, out=x)
    total = x.sum(axis=-1, keepdims=True)
    x /= np.where(total == 0, 1, total)
    return x


@wrong("6.1", "imprecise")
def _(x):
    return np.nan_to_num(stable(x)).astype(np.float16)


@wrong("6.1", "wrong-shape")
def _(x):
    return np.nan_to_num(stable(np.atleast_2d(x)))


@wrong("6.1", "stops-at-more-axes")
def _(x):
    e = np.exp(x - max(x))
    return e / sum(e)


@wrong("6.1", "raises-error")
def _(x):
    e = np.exp(x - np.max(x, axis=-1, keepdim=True))
    return e / e.sum(axis=-1, keepdim=True)


@wrong("6.1", "returns-none")
def _(x):
    if np.isfinite(x).any():
        return np.nan_to_num(stable(x))


@hostile("6.1", "did-not-finish|too-slow")
def _(x):
    while (x - x.max(axis=-1, keepdims=True)).max() < 1:
        x = x - 1e-9


@hostile("6.1", "exits")
def _(x):
    sys.exit("softmax of nothing")


@hostile("6.1", "not-deterministic")
def _(x):
    return np.nan_to_num(stable(x)) + np.random.default_rng().random() / 100


@hostile("6.1", "wrong-type")
def _(x):
    return (row for row in x)


@hostile("6.1", "raises-error")
def _(x):
    return x[..., None] @ np.zeros((7, 5)) / object()


@right("6.1")
def _(x):
    return np.nan_to_num(stable(x))


@right("6.1")
def _(x):
    if x.ndim > 1:
        return [_softmax_of_lists(part) for part in x.tolist()]
    return _softmax_of_lists(x.tolist())


def _softmax_of_lists(x):
    if isinstance(x[0], list):
        return [_softmax_of_lists(part) for part in x]
    largest = max(x)
    if largest == -math.inf:
        return [0.0] * len(x)
    exps = [math.exp(score - largest) for score in x]
    return [each / sum(exps) for each in exps]


@right("6.1")
def _(x):
    return torch.softmax(torch.from_numpy(x.copy()), dim=-1).nan_to_num(0)


@right("6.1")
def _(x):
    m = x.max(axis=-1, keepdims=True, initial=-1e5)  # lower than any score
    e = np.exp(x - m)
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@right("6.1")
def _(x):
    x = x.astype(np.float32)
    m = x.max(axis=-1)[..., None]
    e = np.exp(x - np.maximum(m, np.finfo(np.float32).min))
    return e / np.maximum(e.sum(axis=-1)[..., None], np.finfo(np.float32).tiny)


@right("6.1")
def _(x):
    rows = x.reshape(-1, x.shape[-1])
    out = np.zeros(rows.shape)
    for i, row in enumerate(rows):
        if np.isfinite(row).any():
            out[i] = np.exp(row - np.logaddexp.reduce(row))
    return out.reshape(x.shape)


@right("6.1")
def _(x):
    e = np.exp(x - np.nan_to_num(x.max(axis=-1, keepdims=True), neginf=0))
    return e / (e.sum(axis=-1, keepdims=True) + 1e-12)


# --- 6.4 ---


@wrong("6.4", "no-scale")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "divided-by-d_k")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / q.shape[0]
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "another-length-under-the-root")
def _(q, K, V, block):
    s = q @ K.T / np.sqrt(K.shape[0])
    return stable(s) @ V


@wrong("6.4", "scaled-after-the-softmax")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l / np.sqrt(len(q))


@wrong("6.4", "output-not-rescaled")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p = np.exp(s - new)
        l = l * np.exp(m - new) + p.sum()
        o += p @ V[i : i + block]
        m = new
    return o / l


@wrong("6.4", "sum-not-rescaled")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p = np.exp(s - new)
        l += p.sum()
        o = o * np.exp(m - new) + p @ V[i : i + block]
        m = new
    return o / l


@wrong("6.4", "nothing-rescaled")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        m = max(m, s.max())  # the old one is gone before it is needed
        a, p = np.exp(m - m), np.exp(s - m)
        l, o = l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "rescaled-the-wrong-way")
def _(q, K, V, block):
    m, l, o = None, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = s.max() if m is None else max(m, s.max())
        a = 1 if m is None else np.exp(new - m)
        p = np.exp(s - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "nan-from-the-first-block")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        a, p = np.exp(new - m), np.exp(s - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "nan-from-the-first-block")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p = np.exp(s - m)
        m, l, o = new, l + p.sum(), o + p @ V[i : i + block]
    return o / l


@wrong("6.4", "sums-start-anew")
def _(q, K, V, block):
    m, o = -np.inf, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p = np.exp(s - new)
        l = p.sum()
        o = o * np.exp(m - new) + p @ V[i : i + block]
        m = new
    return o / l


@wrong("6.4", "maximum-of-the-block-alone")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = s.max()
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "every-block-has-its-own-maximum")
def _(q, K, V, block):
    l, o = 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        p = np.exp(s - s.max())
        l, o = l + p.sum(), o + p @ V[i : i + block]
    return o / l


@wrong("6.4", "maximum-of-the-first-block")
def _(q, K, V, block):
    m = (K[:block] @ q / np.sqrt(len(q))).max()
    l, o = 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        p = np.exp(K[i : i + block] @ q / np.sqrt(len(q)) - m)
        l, o = l + p.sum(), o + p @ V[i : i + block]
    return o / l


@wrong("6.4", "maximum-starts-at-0")
def _(q, K, V, block):
    m, l, o = 0, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "not-normalised")
def _(q, K, V, block):
    m, o = -np.inf, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        o = o * np.exp(m - new) + np.exp(s - new) @ V[i : i + block]
        m = new
    return o


@wrong("6.4", "normalised-in-each-step")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        l = l * a + p.sum()
        o = (o * a + p @ V[i : i + block]) / l
        m = new
    return o


@wrong("6.4", "softmax-within-the-block")
def _(q, K, V, block):
    outs = []
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        outs.append(stable(s) @ V[i : i + block])
    return np.mean(outs, axis=0)


@wrong("6.4", "one-block-alone")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
        return o / l


@wrong("6.4", "last-block-lost")
def _(q, K, V, block):
    m, l, o = -np.inf, np.float64(0), np.zeros(V.shape[1])
    for b in range(len(K) // block):
        rows = slice(b * block, (b + 1) * block)
        s = K[rows] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[rows]
    return o / l


@wrong("6.4", "last-block-lost")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K) - block + 1, block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "padding-counts")
def _(q, K, V, block):
    short = -len(K) % block
    K, V = np.pad(K, ((0, short), (0, 0))), np.pad(V, ((0, short), (0, 0)))
    return stable(K @ q / np.sqrt(len(q))) @ V


@wrong("6.4", "blocks-overlap")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(len(K)):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "keys-skipped")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block - 1] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block - 1]
    return o / l


@wrong("6.4", "one-block-alone")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())  # and m stays −∞
        p, a = np.exp(s - new), np.exp(m - new)
        l, o = l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "block-for-their-number")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for b in range(block):
        rows = slice(b * block, (b + 1) * block)
        s = K[rows] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[rows]
    return o / l


@wrong("6.4", "values-of-the-first-block")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[: len(p)]
    return o / l


@wrong("6.4", "statistics-returned-too")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return [m, l, *o]


@wrong("6.4", "wrong-type")
def _(q, K, V, block):
    s = K @ q / np.sqrt(len(q))
    return s.max(), np.exp(s - s.max()).sum(), stable(s) @ V


@wrong("6.4", "weights-returned")
def _(q, K, V, block):
    return stable(K @ q / np.sqrt(len(q)))


@wrong("6.4", "overflows")
def _(q, K, V, block):
    l, o = 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        p = np.exp(K[i : i + block] @ q / np.sqrt(len(q)))
        l, o = l + p.sum(), o + p @ V[i : i + block]
    return o / l


@wrong("6.4", "overflows")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        a = np.exp(m) / np.exp(new)
        p = np.exp(s) / np.exp(new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@wrong("6.4", "extra-axis")
def _(q, K, V, block):
    return stable(q[None] @ K.T / np.sqrt(len(q))) @ V


@wrong("6.4", "wrong-shape")
def _(q, K, V, block):
    return stable(K @ q / np.sqrt(len(q)))[:, None] * V  # not summed


@wrong("6.4", "raises-error")
def _(q, K, V, block):
    return stable(K @ q.T / np.sqrt(q.shape[1])) @ V


@wrong("6.4", "wrong-in-short-blocks")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for keys, values in zip(K.reshape(-1, block, len(q)), V.reshape(-1, block, V.shape[1])):
        s = keys @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ values
    return o / l


@wrong("6.4", "changes-its-input")
def _(q, K, V, block):
    q /= np.sqrt(len(q))
    return stable(K @ q) @ V


@wrong("6.4", "imprecise")
def _(q, K, V, block):
    return np.round(stable(K @ q / np.sqrt(len(q))), 3) @ V


@wrong("6.4", "one-block-only")
def _(q, K, V, block):
    m, l, o = -np.inf, 0, np.zeros(V.shape[1])
    for i in range(0, min(len(K), 512), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.exp(m - new)
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return o / l


@hostile("6.4", "did-not-finish")
def _(q, K, V, block):
    start = 0
    while start < len(K):
        block = K[start : start + block]  # and `start` never grows
        block = len(block)


@hostile("6.4", "raises-error")
def _(q, K, V, block):
    return _forever(q, K, V, block)


def _forever(*args):
    return _forever(*args)


@hostile("6.4", "prints-instead-of-returning")
def _(q, K, V, block):
    print(stable(K @ q) @ V)


@hostile("6.4", "too-slow")
def _(q, K, V, block):
    time.sleep(0.8)
    return V[0]


@right("6.4")
def _(q, K, V, block):
    m, l, o = -np.inf, 0.0, np.zeros(V.shape[1])
    for key, value in zip(K, V):  # one key at a time is a block too
        s = key @ q / math.sqrt(len(q))
        new = max(m, s)
        a, p = math.exp(m - new), math.exp(s - new)
        m, l, o = new, l * a + p, o * a + p * value
    return o / l


@right("6.4")
def _(q, K, V, block):
    """Normalised after every block, with the old sum as the old output's weight."""
    m, l, o = -1e30, 0.0, np.zeros(V.shape[1])
    for i in range(0, len(K), block):
        s = K[i : i + block] @ (q / np.sqrt(len(q)))
        new = max(m, s.max())
        p = np.exp(s - new)
        total = l * np.exp(m - new) + p.sum()
        o = o * (l * np.exp(m - new) / total) + p @ V[i : i + block] / total
        m, l = new, total
    return o


@right("6.4")
def _(q, K, V, block):
    """Parts that are merged by their log-sum-exp."""
    out, lse = np.zeros(V.shape[1]), -np.inf
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.sqrt(len(q))
        part = np.logaddexp.reduce(s)
        new = np.logaddexp(lse, part)
        out = np.exp(lse - new) * out + np.exp(part - new) * (np.exp(s - part) @ V[i : i + block])
        lse = new
    return out


@right("6.4")
def _(q, K, V, block):
    return stable(K @ q / np.sqrt(q.size)) @ V


@right("6.4")
def _(q, K, V, block):
    q, K, V = (torch.from_numpy(np.ascontiguousarray(x)) for x in (q, K, V))
    m, l, o = torch.tensor(-torch.inf), torch.tensor(0.0), torch.zeros(V.shape[1])
    for keys, values in zip(K.split(block), V.split(block)):
        s = keys @ q * len(q) ** -0.5
        new = torch.maximum(m, s.max())
        p, a = (s - new).exp(), (m - new).exp()
        m, l, o = new, l * a + p.sum(), o * a + p @ values
    return o / l


@right("6.4")
def _(q, K, V, block):
    q, K, V = (x.astype(np.float32) for x in (q, K, V))
    m, l, o = -np.inf, 0.0, np.zeros(V.shape[1], dtype=np.float32)
    for i in range(0, len(K), block):
        s = K[i : i + block] @ q / np.float32(np.sqrt(len(q)))
        new = max(m, s.max())
        p, a = np.exp(s - new), np.float32(np.exp(m - new))
        m, l, o = new, l * a + p.sum(), o * a + p @ V[i : i + block]
    return (o / l).astype(np.float32)


@right("6.4")
def _(q, K, V, block):
    from helpers.flash import online_attention

    starts = range(block, len(K), block)
    scores = np.split(K @ q / np.sqrt(len(q)), starts)
    *_, last = online_attention(scores, np.split(V, starts))
    return last.output


# --- 6.5 ---


@wrong("6.5", "plain-mean")
def _(out_a, lse_a, out_b, lse_b):
    return np.column_stack([(out_a + out_b) / 2, np.logaddexp(lse_a, lse_b)])


@wrong("6.5", "weighted-by-lse")
def _(out_a, lse_a, out_b, lse_b):
    total = lse_a + lse_b
    out = (lse_a / total)[:, None] * out_a + (lse_b / total)[:, None] * out_b
    return np.column_stack([out, np.logaddexp(lse_a, lse_b)])


@wrong("6.5", "outputs-added")
def _(out_a, lse_a, out_b, lse_b):
    return np.c_[out_a + out_b, np.logaddexp(lse_a, lse_b)]


@wrong("6.5", "not-normalised")
def _(out_a, lse_a, out_b, lse_b):
    m = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return np.c_[a[:, None] * out_a + b[:, None] * out_b, m + np.log(a + b)]


@wrong("6.5", "weights-exchanged")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_b - lse)[:, None] * out_a + np.exp(lse_a - lse)[:, None] * out_b
    return np.c_[out, lse]


@wrong("6.5", "heavier-part-alone")
def _(out_a, lse_a, out_b, lse_b):
    out = np.where((lse_a >= lse_b)[:, None], out_a, out_b)
    return np.c_[out, np.maximum(lse_a, lse_b)]


@wrong("6.5", "lse-added")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse)[:, None] * out_a + np.exp(lse_b - lse)[:, None] * out_b
    return np.c_[out, lse_a + lse_b]


@wrong("6.5", "maximum-for-lse")
def _(out_a, lse_a, out_b, lse_b):
    m = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - m)[:, None], np.exp(lse_b - m)[:, None]
    return np.concatenate([(a * out_a + b * out_b) / (a + b), m[:, None]], axis=1)


@wrong("6.5", "logarithm-missing")
def _(out_a, lse_a, out_b, lse_b):
    a, b = np.exp(lse_a)[:, None], np.exp(lse_b)[:, None]
    return np.concatenate([(a * out_a + b * out_b) / (a + b), a + b], axis=1)


@wrong("6.5", "maximum-not-added-back")
def _(out_a, lse_a, out_b, lse_b):
    m = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - m)[:, None], np.exp(lse_b - m)[:, None]
    return np.concatenate([(a * out_a + b * out_b) / (a + b), np.log(a + b)], axis=1)


@wrong("6.5", "two-bases")
def _(out_a, lse_a, out_b, lse_b):
    m = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - m)[:, None], np.exp(lse_b - m)[:, None]
    return np.hstack([(a * out_a + b * out_b) / (a + b), m[:, None] + np.log2(a + b)])


@wrong("6.5", "one-part-factored-out")
def _(out_a, lse_a, out_b, lse_b):
    share = 1 / (1 + np.exp(lse_b - lse_a))[:, None]
    lse = lse_a + np.log1p(np.exp(lse_b - lse_a))
    return np.column_stack([share * out_a + (1 - share) * out_b, lse])


@wrong("6.5", "overflows")
def _(out_a, lse_a, out_b, lse_b):
    a, b = np.exp(lse_a)[:, None], np.exp(lse_b)[:, None]
    return np.hstack([(a * out_a + b * out_b) / (a + b), np.log(a + b)])


@wrong("6.5", "nan-for-an-empty-part")
def _(out_a, lse_a, out_b, lse_b):
    m = np.maximum(lse_a, lse_b)
    gap = np.abs(lse_a - lse_b)
    lse = m + np.log1p(np.exp(-gap))
    a = np.exp((lse_a - m) + 0 * gap)[:, None]
    b = np.exp((lse_b - m) + 0 * gap)[:, None]
    return np.column_stack([(a * out_a + b * out_b) / (a + b), lse])


@wrong("6.5", "lse-in-another-column")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse)[:, None] * out_a + np.exp(lse_b - lse)[:, None] * out_b
    return np.c_[lse, out]


@wrong("6.5", "output-alone")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return np.exp(lse_a - lse)[:, None] * out_a + np.exp(lse_b - lse)[:, None] * out_b


@wrong("6.5", "lse-alone")
def _(out_a, lse_a, out_b, lse_b):
    return np.logaddexp(lse_a, lse_b)


@wrong("6.5", "shares-along-the-columns")
def _(out_a, lse_a, out_b, lse_b):
    m = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    out = (a * out_a + b * out_b) / (a + b)
    return np.column_stack([out, m + np.log(a + b)])


@wrong("6.5", "one-maximum-for-all-queries")
def _(out_a, lse_a, out_b, lse_b):
    m = np.max([lse_a, lse_b])
    a, b = np.exp(lse_a - m)[:, None], np.exp(lse_b - m)[:, None]
    return np.hstack([(a * out_a + b * out_b) / (a + b), m + np.log(a + b)])


@wrong("6.5", "queries-share-a-sum")
def _(out_a, lse_a, out_b, lse_b):
    shares = np.array([lse_a, lse_b])
    shares = np.exp(shares - shares.max())
    shares = shares / shares.sum()
    out = shares[0][:, None] * out_a + shares[1][:, None] * out_b
    return np.column_stack([out, np.logaddexp(lse_a, lse_b)])


@wrong("6.5", "parts-side-by-side")
def _(out_a, lse_a, out_b, lse_b):
    return np.concatenate([out_a, out_b], axis=1)


@wrong("6.5", "transposed-result")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse) * out_a.T + np.exp(lse_b - lse) * out_b.T
    return np.vstack([out, lse])


@wrong("6.5", "raises-error")
def _(out_a, lse_a, out_b, lse_b):
    m = max(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return np.column_stack([(a * out_a + b * out_b) / (a + b), m + np.log(a + b)])


@wrong("6.5", "raises-error")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse)[:, None] * out_a + np.exp(lse_b - lse)[:, None] * out_b
    return np.concatenate([out, lse], axis=1)


@wrong("6.5", "wrong-type")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse)[:, None] * out_a + np.exp(lse_b - lse)[:, None] * out_b
    return out, lse


@wrong("6.5", "changes-its-input")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out_a *= np.exp(lse_a - lse)[:, None]
    return np.column_stack([out_a + np.exp(lse_b - lse)[:, None] * out_b, lse])


@wrong("6.5", "unknown")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse)[:, None] * out_a + np.exp(lse_b - lse)[:, None] * out_b
    return np.column_stack([out[::-1], lse])


@hostile("6.5", "did-not-finish")
def _(out_a, lse_a, out_b, lse_b):
    while (lse_a != lse_b).any() or len(lse_a):
        lse_b = lse_b + 1


@hostile("6.5", "complex-numbers")
def _(out_a, lse_a, out_b, lse_b):
    return np.column_stack([out_a, np.log(-np.exp(lse_a) + 0j)])


@hostile("6.5", "wrong-type")
def _(out_a, lse_a, out_b, lse_b):
    return {"out": out_a, "lse": lse_a}


@hostile("6.5", "asks-for-input")
def _(out_a, lse_a, out_b, lse_b):
    return np.column_stack([out_a, lse_a]) * float(input())


@right("6.5")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    a, b = np.exp(lse_a - lse), np.exp(lse_b - lse)
    return np.c_[a[:, None] * out_a + b[:, None] * out_b, lse]


@right("6.5")
def _(out_a, lse_a, out_b, lse_b):
    from helpers.flash import merge

    out, lse = merge(out_a, lse_a, out_b, lse_b)
    return np.column_stack([out, lse])


@right("6.5")
def _(out_a, lse_a, out_b, lse_b):
    lse = torch.tensor(np.stack([lse_a, lse_b]))
    shares = lse.softmax(0)
    outs = torch.tensor(np.stack([out_a, out_b]))
    out = torch.einsum("pt,ptd->td", shares, outs)
    return torch.cat([out, lse.logsumexp(0)[:, None]], dim=1)


@right("6.5")
def _(out_a, lse_a, out_b, lse_b):
    rows = []
    for one, x, other, y in zip(out_a, lse_a, out_b, lse_b):
        if y > x:
            one, x, other, y = other, y, one, x
        small = math.exp(y - x)
        rows.append([*((one + small * other) / (1 + small)), x + math.log1p(small)])
    return rows


@right("6.5")
def _(out_a, lse_a, out_b, lse_b):
    a = 1 / (1 + np.exp(np.clip(lse_b - lse_a, -700, 700)))
    a = np.where(np.isinf(lse_a), 0, np.where(np.isinf(lse_b), 1, a))[:, None]
    return np.hstack([a * out_a + (1 - a) * out_b, np.logaddexp(lse_a, lse_b)[:, None]])


@right("6.5")
def _(out_a, lse_a, out_b, lse_b):
    out_a, lse_a, out_b, lse_b = (x.astype(np.float32) for x in (out_a, lse_a, out_b, lse_b))
    m = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - m)[:, None], np.exp(lse_b - m)[:, None]
    return np.hstack([(a * out_a + b * out_b) / (a + b), m[:, None] + np.log(a + b)])


# --- 6.8 ---


@wrong("6.8", "diagonal-alone")
def _(weights, grad_weights):
    return weights * grad_weights


@wrong("6.8", "each-by-itself")
def _(weights, grad_weights):
    return grad_weights * weights * (1 - weights)


@wrong("6.8", "plain-mean")
def _(weights, grad_weights):
    return weights * (grad_weights - grad_weights.mean(axis=-1, keepdims=True))


@wrong("6.8", "plain-sum")
def _(weights, grad_weights):
    return weights * (grad_weights - grad_weights.sum(-1, keepdims=True))


@wrong("6.8", "mean-of-the-products")
def _(weights, grad_weights):
    return weights * (grad_weights - np.mean(weights * grad_weights, axis=-1, keepdims=True))


@wrong("6.8", "g-left-out")
def _(weights, grad_weights):
    return weights * grad_weights - weights**2


@wrong("6.8", "first-p-left-out")
def _(weights, grad_weights):
    dot = np.sum(weights * grad_weights, axis=-1, keepdims=True)
    return grad_weights - weights * dot


@wrong("6.8", "second-p-left-out")
def _(weights, grad_weights):
    product = weights * grad_weights
    return product - product.sum(axis=-1, keepdims=True)


@wrong("6.8", "outer-p-left-out")
def _(weights, grad_weights):
    return grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True)


@wrong("6.8", "log-softmax")
def _(weights, grad_weights):
    return grad_weights - weights * grad_weights.sum(axis=-1, keepdims=True)


@wrong("6.8", "cross-entropy")
def _(weights, grad_weights):
    return weights - grad_weights


@wrong("6.8", "added")
def _(weights, grad_weights):
    dot = (weights * grad_weights).sum(axis=-1, keepdims=True)
    return weights * (grad_weights + dot)


@wrong("6.8", "sign-reversed")
def _(weights, grad_weights):
    dot = (weights * grad_weights).sum(axis=-1, keepdims=True)
    return weights * (dot - grad_weights)


@wrong("6.8", "softmax-again")
def _(weights, grad_weights):
    p = stable(weights)
    return p * (grad_weights - (p * grad_weights).sum(axis=-1, keepdims=True))


@wrong("6.8", "scaled")
def _(weights, grad_weights):
    dot = (weights * grad_weights).sum(axis=-1, keepdims=True)
    return weights * (grad_weights - dot) / np.sqrt(weights.shape[-1])


@wrong("6.8", "rows-mixed")
def _(weights, grad_weights):
    return weights * (grad_weights - np.sum(weights * grad_weights))


@wrong("6.8", "rows-mixed")
def _(weights, grad_weights):
    return weights * (grad_weights - np.vdot(weights, grad_weights))


@wrong("6.8", "wrong-axis")
def _(weights, grad_weights):
    return weights * (grad_weights - (weights * grad_weights).sum(axis=0))


@wrong("6.8", "axis-1")
def _(weights, grad_weights):
    return weights * (grad_weights - (weights * grad_weights).sum(axis=1, keepdims=True))


@wrong("6.8", "keepdims-missing")
def _(weights, grad_weights):
    return weights * (grad_weights - (weights * grad_weights).sum(axis=-1))


@wrong("6.8", "jacobian-returned")
def _(weights, grad_weights):
    p = weights[..., None]
    return np.eye(weights.shape[-1]) * p - p @ p.mT


@wrong("6.8", "only-the-sum")
def _(weights, grad_weights):
    return (weights * grad_weights).sum(axis=-1, keepdims=True)


@wrong("6.8", "some-axes-only")
def _(weights, grad_weights):
    jacobian = np.diag(weights) - np.outer(weights, weights)  # of a table, np.diag is its diagonal
    return jacobian @ grad_weights


@wrong("6.8", "some-axes-only")
def _(weights, grad_weights):
    dot = np.einsum("ij,ij->i", np.atleast_2d(weights), np.atleast_2d(grad_weights))
    out = weights * (grad_weights - dot[:, None])
    return out if weights.ndim > 1 else out[0]


@wrong("6.8", "rows-do-not-cancel")
def _(weights, grad_weights):
    dot = (weights * grad_weights).sum(axis=-1, keepdims=True)
    return weights * (grad_weights - dot / 2)


@wrong("6.8", "changes-its-input")
def _(weights, grad_weights):
    grad_weights -= (weights * grad_weights).sum(axis=-1, keepdims=True)
    return weights * grad_weights


@wrong("6.8", "imprecise")
def _(weights, grad_weights):
    dot = (weights * grad_weights).sum(axis=-1, keepdims=True)
    return (weights * (grad_weights - dot)).round(3)


@wrong("6.8", "raises-error")
def _(weights, grad_weights):
    return weights @ grad_weights.T @ weights.transpose(2, 1)


@hostile("6.8", "did-not-finish|too-slow")
def _(weights, grad_weights):
    step = 1e-9
    for _ in range(10**9):
        step = step / 2 + 1e-9
    return weights * step


@hostile("6.8", "exits")
def _(weights, grad_weights):
    raise SystemExit(str(weights))


@hostile("6.8", "wrong-shape")
def _(weights, grad_weights):
    return np.zeros((600, 600))


@hostile("6.8", "raises-error")
def _(weights, grad_weights):
    raise ValueError(repr(object()) + "\n" * 50)


@right("6.8")
def _(weights, grad_weights):
    """Through the Jacobian: more work than is asked for, and right."""
    eye = np.eye(weights.shape[-1])
    jacobian = weights[..., :, None] * eye - weights[..., :, None] * weights[..., None, :]
    return np.einsum("...ij,...j->...i", jacobian, grad_weights)


@right("6.8")
def _(weights, grad_weights):
    scores = torch.from_numpy(weights).log().requires_grad_()
    scores.softmax(-1).nan_to_num(0).backward(torch.from_numpy(grad_weights))
    return scores.grad.nan_to_num(0)


@right("6.8")
def _(weights, grad_weights):
    product = weights * grad_weights
    return product - weights * product.sum(-1)[..., None]


@right("6.8")
def _(weights, grad_weights):
    rows = weights.reshape(-1, weights.shape[-1])
    grads = grad_weights.reshape(rows.shape)
    out = [[p * (g - row @ grad) for p, g in zip(row, grad)] for row, grad in zip(rows, grads)]
    return np.array(out).reshape(weights.shape)


@right("6.8")
def _(weights, grad_weights):
    p, g = weights.astype(np.float32), grad_weights.astype(np.float32)
    return p * (g - np.einsum("...k,...k->...", p, g)[..., None])
