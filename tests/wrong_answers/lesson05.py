# ruff: noqa: E741  (l is the papers' letter)
"""Answers as readers of lesson 5 write them: wrong, hostile, and right in other words."""

import math
import sys
import time

import numpy as np
import torch

from wrong_answers.book import hostile, right, wrong

# --- 5.1 ---


@wrong("5.1", "output-not-rescaled")
def _(m, l, o, scores, v):
    new = max(m, np.max(scores))
    p = np.exp(scores - new)
    return [new, l * np.exp(m - new) + p.sum(), *(o + p @ v)]


@wrong("5.1", "output-not-rescaled")
def _(m, l, o, scores, v):
    new = max(m, *scores)
    l = l * math.exp(m - new)
    for score, row in zip(scores, v):
        l += math.exp(score - new)
        o = o + math.exp(score - new) * row
    return np.array([new, l, *o])


@wrong("5.1", "sum-not-rescaled")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p = np.exp(scores - new)
    return np.concatenate([[new, l + p.sum()], np.exp(m - new) * o + p @ v])


@wrong("5.1", "nothing-rescaled")
def _(m, l, o, scores, v):
    m = max(m, scores.max())
    p = np.exp(scores - m)
    return [m, l + p.sum(), *(o + p @ v)]


@wrong("5.1", "nothing-rescaled")
def _(m, l, o, scores, v):
    m = max(m, scores.max())
    correction = np.exp(m - m)  # m is the new one already
    p = np.exp(scores - m)
    return [m, l * correction + p.sum(), *(o * correction + p @ v)]


@wrong("5.1", "rescaled-the-wrong-way")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    alpha, p = np.exp(new - m), np.exp(scores - new)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "rescaled-the-wrong-way")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    alpha = 1 if l == 0 else np.exp(new - m)
    p = np.exp(scores - new)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "rescaled-the-wrong-way")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p = np.exp(scores - new)
    if m > -math.inf:
        l, o = l / np.exp(m - new), o / np.exp(m - new)
    return [new, l + p.sum(), *(o + p @ v)]


@wrong("5.1", "rescaled-without-exp")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p = np.exp(scores - new)
    return [new, l * (m - new) + p.sum(), *(o * (m - new) + p @ v)]


@wrong("5.1", "old-sums-forgotten")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p = np.exp(scores - new)
    return [new, p.sum(), *(p @ v)]


@wrong("5.1", "block-rescaled-too")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p = np.exp(scores - new)
    l, o = l + p.sum(), o + p @ v
    return [new, l * np.exp(m - new), *(o * np.exp(m - new))]


@wrong("5.1", "maximum-of-the-block-alone")
def _(m, l, o, scores, v):
    new = scores.max()
    p = np.exp(scores - new)
    return [new, l * np.exp(m - new) + p.sum(), *(o * np.exp(m - new) + p @ v)]


@wrong("5.1", "maximum-not-updated")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    return [m, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "smaller-maximum")
def _(m, l, o, scores, v):
    new = np.minimum(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "maximum-not-subtracted")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores), np.exp(m - new)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "maximum-not-subtracted")
def _(m, l, o, scores, v):
    return [max(m, scores.max()), l + np.exp(scores).sum(), *(o + np.exp(scores) @ v)]


@wrong("5.1", "block-has-its-own-maximum")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - scores.max()), np.exp(m - new)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "old-maximum-subtracted")
def _(m, l, o, scores, v):
    p = np.exp(scores - m)
    new = max(m, scores.max())
    alpha = np.exp(m - new)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "softmax-within-the-block")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    weights = p / p.sum()
    return [new, l * alpha + p.sum(), *(o * alpha + weights @ v)]


@wrong("5.1", "normalised-in-each-step")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    l = l * alpha + p.sum()
    return [new, l, *((o * alpha + p @ v) / l)]


@wrong("5.1", "normalised-in-each-step")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p = np.exp(scores - new)
    total = l * np.exp(m - new) + p.sum()
    o = o * (l * np.exp(m - new) / total) + (p / total) @ v
    return [new, total, *o]


@wrong("5.1", "values-not-weighted")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    return [new, l * alpha + p.sum(), *(o * alpha + np.ones(len(p)) @ v)]


@wrong("5.1", "scores-as-weights")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    alpha = np.exp(m - new)
    return [new, l * alpha + np.exp(scores - new).sum(), *(o * alpha + scores @ v)]


@wrong("5.1", "order-of-the-results")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    return [*(o * alpha + p @ v), new, l * alpha + p.sum()]


@wrong("5.1", "output-alone")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    return o * alpha + p @ v


@wrong("5.1", "nan-at-the-first-block")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, old = np.exp(scores - new), l * np.exp(m - new)
    return [new, old + p.sum(), *(o / np.float64(l) * old + p @ v)]


@wrong("5.1", "overflows")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p = np.exp(scores) / np.exp(new)
    alpha = np.exp(m) / np.exp(new)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@wrong("5.1", "wrong-type")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    return new, l * alpha + p.sum(), o * alpha + p @ v


@wrong("5.1", "changes-its-input")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    o *= alpha
    o += p @ v
    return [new, l * alpha + p.sum(), *o]


@wrong("5.1", "imprecise")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp(m - new)
    return np.round([new, l * alpha + p.sum(), *(o * alpha + p @ v)], 3)


@wrong("5.1", "raises-error")
def _(m, l, o, scores, v):
    return [m.max(), l + scores @ o, *v]


@wrong("5.1", "unknown")
def _(m, l, o, scores, v):
    new = max(m, scores.max())
    p, alpha = np.exp(scores - new), np.exp((m - new) / 2)
    return [new, l * alpha + p.sum(), *(o * alpha + p @ v)]


@hostile("5.1", "did-not-finish")
def _(m, l, o, scores, v):
    while m < math.inf:
        m = min(m + 1, 1e3)


@hostile("5.1", "exits")
def _(m, l, o, scores, v):
    sys.exit(int(l))


@hostile("5.1", "prints-instead-of-returning")
def _(m, l, o, scores, v):
    print(max(m, scores.max()))


@hostile("5.1", "not-deterministic")
def _(m, l, o, scores, v):
    return [m, l + np.random.default_rng().random(), *o]


@hostile("5.1", "wrong-type")
def _(m, l, o, scores, v):
    return {"m": m, "l": l, "o": o}


@hostile("5.1", "asks-for-input")
def _(m, l, o, scores, v):
    return [float(input("m? ")), l, *o]


@hostile("5.1", "raises-error")
def _(m, l, o, scores, v):
    raise RecursionError(repr(o) * 3)


@right("5.1")
def _(m, l, o, scores, v):
    everything = np.append(scores, m)
    new = everything.max()
    p = np.exp(everything - new)
    rows = np.vstack([v, o / max(l, 1)])
    weights = p * np.append(np.ones(len(scores)), l)
    rows[-1] = o
    return [new, weights.sum(), *(p @ rows)]


@right("5.1")
def _(m, l, o, scores, v):
    for score, row in zip(scores.tolist(), v):
        new = max(m, score)
        if new == -math.inf:
            continue
        alpha, p = math.exp(m - new), math.exp(score - new)
        m, l, o = new, l * alpha + p, o * alpha + p * row
    return m, l, *o.tolist()


@right("5.1")
def _(m, l, o, scores, v):
    s, v, o = (torch.from_numpy(x) for x in (scores, v, o))
    new = torch.maximum(s.max(), torch.tensor(m, dtype=s.dtype))
    p, alpha = (s - new).exp(), torch.exp(m - new)
    return torch.cat([new[None], (l * alpha + p.sum())[None], o * alpha + p @ v])


@right("5.1")
def _(m, l, o, scores, v):
    if scores.max() <= m:
        p = np.exp(scores - m)
        return np.r_[m, l + p.sum(), o + (p[:, None] * v).sum(axis=0)]
    new = scores.max()
    alpha = 0 if l == 0 else np.exp(m) / np.exp(new) if abs(new) + abs(m) < 700 else np.exp(m - new)
    p = np.exp(scores - new)
    return np.r_[new, alpha * l + p.sum(), alpha * o + np.einsum("n,nd->d", p, v)]


@right("5.1")
def _(m, l, o, scores, v):
    old = o.astype(np.float32), scores.astype(np.float32), v.astype(np.float32)
    new = np.float32(max(m, scores.max()))
    alpha, p = np.exp(np.float32(m) - new), np.exp(old[1] - new)
    return np.array([new, np.float32(l) * alpha + p.sum(), *(old[0] * alpha + p @ old[2])])


# --- 5.2 ---


@wrong("5.2", "plain-mean")
def _(out_a, lse_a, out_b, lse_b):
    return [*((out_a + out_b) / 2), np.logaddexp(lse_a, lse_b)]


@wrong("5.2", "plain-mean")
def _(out_a, lse_a, out_b, lse_b):
    return np.append(np.mean([out_a, out_b], axis=0), (lse_a + lse_b) / 2)


@wrong("5.2", "weighted-by-lse")
def _(out_a, lse_a, out_b, lse_b):
    total = np.float64(lse_a + lse_b)
    return [*(lse_a / total * out_a + lse_b / total * out_b), np.logaddexp(lse_a, lse_b)]


@wrong("5.2", "outputs-added")
def _(out_a, lse_a, out_b, lse_b):
    return [*(out_a + out_b), np.logaddexp(lse_a, lse_b)]


@wrong("5.2", "not-normalised")
def _(out_a, lse_a, out_b, lse_b):
    m = max(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return [*(a * out_a + b * out_b), m + np.log(a + b)]


@wrong("5.2", "not-normalised")
def _(out_a, lse_a, out_b, lse_b):
    a, b = np.exp(lse_a), np.exp(lse_b)
    return [*(a * out_a + b * out_b), np.log(a + b)]


@wrong("5.2", "weights-exchanged")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return [*(np.exp(lse_b - lse) * out_a + np.exp(lse_a - lse) * out_b), lse]


@wrong("5.2", "heavier-part-alone")
def _(out_a, lse_a, out_b, lse_b):
    return [*out_a, lse_a] if lse_a >= lse_b else [*out_b, lse_b]


@wrong("5.2", "lse-added")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return [*(np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b), lse_a + lse_b]


@wrong("5.2", "lse-added")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.float64(lse_a + lse_b)
    return [*(np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b), lse]


@wrong("5.2", "lse-averaged")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b
    return [*out, np.mean([lse_a, lse_b])]


@wrong("5.2", "maximum-for-lse")
def _(out_a, lse_a, out_b, lse_b):
    m = max(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return [*((a * out_a + b * out_b) / (a + b)), m]


@wrong("5.2", "lse-of-one-part")
def _(out_a, lse_a, out_b, lse_b):
    m = max(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return [*((a * out_a + b * out_b) / (a + b)), lse_b]


@wrong("5.2", "logarithm-missing")
def _(out_a, lse_a, out_b, lse_b):
    a, b = np.exp(lse_a), np.exp(lse_b)
    return [*((a * out_a + b * out_b) / (a + b)), a + b]


@wrong("5.2", "maximum-not-added-back")
def _(out_a, lse_a, out_b, lse_b):
    m = max(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return [*((a * out_a + b * out_b) / (a + b)), np.log(a + b)]


@wrong("5.2", "two-bases")
def _(out_a, lse_a, out_b, lse_b):
    m = max(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return [*((a * out_a + b * out_b) / (a + b)), m + np.log2(a + b)]


@wrong("5.2", "one-part-factored-out")
def _(out_a, lse_a, out_b, lse_b):
    share = 1 / (1 + np.exp(lse_b - lse_a))
    return [*(share * out_a + (1 - share) * out_b), lse_a + np.log(1 + np.exp(lse_b - lse_a))]


@wrong("5.2", "order-of-the-results")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return [lse, *(np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b)]


@wrong("5.2", "output-alone")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b


@wrong("5.2", "overflows")
def _(out_a, lse_a, out_b, lse_b):
    a, b = np.exp(lse_a), np.exp(lse_b)
    return [*((a * out_a + b * out_b) / (a + b)), np.log(a + b)]


@wrong("5.2", "overflows")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.log(np.exp(lse_a) + np.exp(lse_b))
    return [*(out_a * np.exp(lse_a - lse) + out_b * np.exp(lse_b - lse)), lse]


@wrong("5.2", "nan-for-an-empty-part")
def _(out_a, lse_a, out_b, lse_b):
    m = max(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    out = (a * out_a + b * out_b) / (a + b)
    return [*out, m + np.log(a + b) + 0 * (lse_a + lse_b)]


@wrong("5.2", "wrong-type")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b, lse


@wrong("5.2", "changes-its-input")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out_a *= np.exp(lse_a - lse)
    out_a += out_b * np.exp(lse_b - lse)
    return [*out_a, lse]


@wrong("5.2", "hard-coded")
def _(out_a, lse_a, out_b, lse_b):
    share = 1 / (1 + math.exp(-1))
    return [share, 1 - share, 2 + math.log(1 + math.exp(-1))]


@wrong("5.2", "imprecise")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    out = np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b
    return np.append(out, lse).round(4)


@wrong("5.2", "raises-error")
def _(out_a, lse_a, out_b, lse_b):
    return [*out_a, *out_b, *lse_a]


@hostile("5.2", "did-not-finish")
def _(out_a, lse_a, out_b, lse_b):
    while True:
        pass


@hostile("5.2", "exits")
def _(out_a, lse_a, out_b, lse_b):
    raise KeyboardInterrupt


@hostile("5.2", "prints-instead-of-returning")
def _(out_a, lse_a, out_b, lse_b):
    print(np.logaddexp(lse_a, lse_b))


@hostile("5.2", "not-deterministic")
def _(out_a, lse_a, out_b, lse_b):
    return [*(out_a + np.random.default_rng().random()), lse_a]


@hostile("5.2", "complex-numbers")
def _(out_a, lse_a, out_b, lse_b):
    return [*(out_a + 1j), lse_a]


@hostile("5.2", "wrong-shape")
def _(out_a, lse_a, out_b, lse_b):
    return np.zeros((500, 500))


@right("5.2")
def _(out_a, lse_a, out_b, lse_b):
    lse = np.logaddexp(lse_a, lse_b)
    return [*(np.exp(lse_a - lse) * out_a + np.exp(lse_b - lse) * out_b), lse]


@right("5.2")
def _(out_a, lse_a, out_b, lse_b):
    from helpers.flash import merge

    out, lse = merge(out_a, lse_a, out_b, lse_b)
    return np.append(out, lse)


@right("5.2")
def _(out_a, lse_a, out_b, lse_b):
    lse = torch.tensor([lse_a, lse_b], dtype=torch.float64)
    out = lse.softmax(0) @ torch.tensor(np.stack([out_a, out_b]))
    return torch.cat([out, torch.logsumexp(lse, 0, keepdim=True)])


@right("5.2")
def _(out_a, lse_a, out_b, lse_b):
    if lse_b > lse_a:
        out_a, lse_a, out_b, lse_b = out_b, lse_b, out_a, lse_a
    small = math.exp(lse_b - lse_a)
    return [*(out_a + small / (1 + small) * (out_b - out_a)), lse_a + math.log1p(small)]


@right("5.2")
def _(out_a, lse_a, out_b, lse_b):
    if lse_a == -np.inf:
        return [*out_b, lse_b]
    if lse_b == -np.inf:
        return [*out_a, lse_a]
    m = (lse_a + lse_b) / 2
    if abs(lse_a - m) > 300:
        return [*out_a, lse_a] if lse_a > lse_b else [*out_b, lse_b]
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    return [*(out_a * a / (a + b) + out_b * b / (a + b)), m + np.log(a + b)]


# --- 5.3 ---


def plain(T, d):
    return 2 * (4 * T * T + 4 * T * d)


def tiled(T, d, block_q):
    return 2 * (2 * T * d + T // block_q * 2 * T * d)


@wrong("5.3", "numbers-not-bytes")
def _(T, d, block_q):
    return 4 * T**2 + 4 * T * d, 2 * T * d + 2 * T * d * T / block_q


@wrong("5.3", "four-bytes-a-number")
def _(T, d, block_q):
    return 4 * (4 * T**2 + 4 * T * d), 4 * (2 * T * d + 2 * T * d * (T / block_q))


@wrong("5.3", "keys-without-values")
def _(T, d, block_q):
    return plain(T, d), 2 * (2 * T * d + T // block_q * T * d)


@wrong("5.3", "queries-or-output-forgotten")
def _(T, d, block_q):
    reads = T * d + T // block_q * 2 * T * d
    return plain(T, d), 2 * reads


@wrong("5.3", "queries-and-output-forgotten")
def _(T, d, block_q):
    return plain(T, d), 2 * (T // block_q) * 2 * T * d


@wrong("5.3", "queries-and-output-forgotten")
def _(T, d, block_q):
    bytes_ = 0
    for _ in range(block_q, T, block_q):
        bytes_ += 2 * 2 * T * d
    return plain(T, d), bytes_ + 4 * T * d


@wrong("5.3", "keys-read-once")
def _(T, d, block_q):
    return plain(T, d), 2 * 4 * T * d


@wrong("5.3", "keys-read-once")
def _(T, d, block_q):
    blocks = T // block_q
    return plain(T, d), 2 * blocks * 4 * block_q * d


@wrong("5.3", "everything-in-each-pass")
def _(T, d, block_q):
    return plain(T, d), 2 * (T // block_q) * 4 * T * d


@wrong("5.3", "loops-exchanged")
def _(T, d, block_q):
    blocks = T // block_q
    return plain(T, d), 2 * (2 * T * d + blocks * (T * d + 2 * T * d))


@wrong("5.3", "once-per-query")
def _(T, d, block_q):
    return plain(T, d), 2 * (2 * T * d + T * 2 * T * d)


@wrong("5.3", "block-size-for-their-number")
def _(T, d, block_q):
    return plain(T, d), 2 * (2 * T * d + block_q * 2 * T * d)


@wrong("5.3", "one-block-too-many")
def _(T, d, block_q):
    return plain(T, d), 2 * (2 * T * d + (T // block_q + 1) * 2 * T * d)


@wrong("5.3", "tiled-stores-the-scores")
def _(T, d, block_q):
    return plain(T, d), tiled(T, d, block_q) + 2 * 4 * T * T


@wrong("5.3", "tiled-stores-the-scores")
def _(T, d, block_q):
    return plain(T, d), tiled(T, d, block_q) + 2 * T * T


@wrong("5.3", "a-row-is-one-number")
def _(T, d, block_q):
    return 2 * (4 * T * T + 4 * T), 2 * (2 * T + T // block_q * 2 * T)


@wrong("5.3", "matrices-moved-too-seldom")
def _(T, d, block_q):
    return 2 * (2 * T * T + 4 * T * d), tiled(T, d, block_q)


@wrong("5.3", "matrices-forgotten")
def _(T, d, block_q):
    return 2 * 4 * T * d, tiled(T, d, block_q)


@wrong("5.3", "plain-without-its-rows")
def _(T, d, block_q):
    return 2 * 4 * T * T, tiled(T, d, block_q)


@wrong("5.3", "matrices-have-d-layers")
def _(T, d, block_q):
    return 2 * (4 * T * T * d + 4 * T * d), tiled(T, d, block_q)


@wrong("5.3", "order-of-the-results")
def _(T, d, block_q):
    return np.array([tiled(T, d, block_q), plain(T, d)])


@wrong("5.3", "ratio-returned")
def _(T, d, block_q):
    return plain(T, d) / tiled(T, d, block_q)


@wrong("5.3", "one-of-the-two")
def _(T, d, block_q):
    return tiled(T, d, block_q)


@wrong("5.3", "hard-coded")
def _(T, d, block_q):
    return plain(8192, 128), tiled(8192, 128, 128)


@wrong("5.3", "wrong-type")
def _(T, d, block_q):
    return f"{plain(T, d) / 1e9} GB", f"{tiled(T, d, block_q) / 1e9} GB"


@wrong("5.3", "raises-error")
def _(T, d, block_q):
    return sum(2 * d for _ in T), tiled(T, d, block_q)


@wrong("5.3", "unknown")
def _(T, d, block_q):
    return plain(T, d) + 8, tiled(T, d, block_q) + T  # the lse


@hostile("5.3", "did-not-finish|too-slow")
def _(T, d, block_q):
    total = 0
    for _ in iter(int, 1):
        total += 1
    return total, total


@hostile("5.3", "exits")
def _(T, d, block_q):
    exit(T)


@hostile("5.3", "prints-instead-of-returning")
def _(T, d, block_q):
    print(plain(T, d), tiled(T, d, block_q))


@hostile("5.3", "asks-for-input")
def _(T, d, block_q):
    return plain(T, d), int(input())


@hostile("5.3", "wrong-type")
def _(T, d, block_q):
    return (x for x in (plain(T, d), tiled(T, d, block_q)))


@hostile("5.3", "too-slow|did-not-finish")
def _(T, d, block_q):
    time.sleep(0.9)
    return plain(T, d), tiled(T, d, block_q)


@right("5.3")
def _(T, d, block_q):
    rows, matrix = 2 * T * d, 2 * T * T
    first, second, third = 2 * rows + matrix, matrix + matrix, matrix + rows + rows
    return [first + second + third, 2 * rows * (1 + T / block_q)]


@right("5.3")
def _(T, d, block_q):
    moved = 0
    for _ in range(0, T, block_q):
        moved += 2 * block_q * d  # Q
        moved += 2 * 2 * T * d  # K, V
        moved += 2 * block_q * d  # O
    return np.array([8 * T * (T + d), moved])


@right("5.3")
def _(T, d, block_q):
    from helpers.flash import TilePlan, memory_traffic

    plan = TilePlan(T, d, block_q, 16)
    ours = memory_traffic(T, d, fast_memory=8 * d).plain
    return ours, sum(plan.moved(plan.tiles)) - 2 * T  # the lse


@right("5.3")
def _(T, d, block_q):
    return torch.tensor([8.0 * T * T + 8 * T * d, 4 * T * d * (T // block_q + 1)]).double()


# --- 5.4 ---


def grid(T, block_q, block_k, kind):
    """A tile at a time, without a fault, for answers whose fault lies in `kind`."""
    return np.array(
        [
            [
                kind(q, min(q + block_q, T) - 1, k, min(k + block_k, T) - 1)
                for k in range(0, T, block_k)
            ]
            for q in range(0, T, block_q)
        ]
    )


def sound(q_0, q_1, k_0, k_1):
    return 0 if k_0 > q_1 else 2 if k_1 <= q_0 else 1


@wrong("5.4", "block-numbers-compared")
def _(T, block_q, block_k):
    n, m = -(-T // block_q), -(-T // block_k)
    return np.tri(n, m) + np.tri(n, m, -1)


@wrong("5.4", "judged-by-the-first-query")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 0 if c > a else 2 if d <= a else 1)


@wrong("5.4", "whole-for-the-last-query")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 0 if c > b else 2 if d <= b else 1)


@wrong("5.4", "whole-by-its-first-key")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 0 if c > b else 2 if c <= a else 1)


@wrong("5.4", "a-tile-too-many-skipped")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 2 if d <= a else 0 if c >= b else 1)


@wrong("5.4", "an-empty-tile-computed")
def _(T, block_q, block_k):
    out = np.ones((-(-T // block_q), -(-T // block_k)))
    for i, j in np.ndindex(out.shape):
        start, stop = i * block_q, min(T, (i + 1) * block_q)
        if j * block_k > stop:  # stop is no query of the block
            out[i, j] = 0
        elif min(T, (j + 1) * block_k) - 1 <= start:
            out[i, j] = 2
    return out


@wrong("5.4", "a-whole-tile-masked")
def _(T, block_q, block_k):
    out = np.ones((-(-T // block_q), -(-T // block_k)))
    for i, j in np.ndindex(out.shape):
        if j * block_k >= min(T, (i + 1) * block_q):
            out[i, j] = 0
        elif min(T, (j + 1) * block_k) <= i * block_q:
            out[i, j] = 2
    return out


@wrong("5.4", "future-leaks-by-one")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 0 if c > b else 2 if d - 1 <= a else 1)


@wrong("5.4", "own-key-hidden")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 0 if c >= b else 2 if d < a else 1)


@wrong("5.4", "diagonal-judged-by-corners")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 2 if c < a else 1 if c == a else 0)


@wrong("5.4", "partial-blocks-masked")
def _(T, block_q, block_k):
    def kind(a, b, c, d):
        short = b - a + 1 < block_q or d - c + 1 < block_k
        return 0 if c > b else 2 if d <= a and not short else 1

    return grid(T, block_q, block_k, kind)


@wrong("5.4", "missing-keys-counted")
def _(T, block_q, block_k):
    out = np.zeros((math.ceil(T / block_q), math.ceil(T / block_k)), dtype=int)
    for i, j in np.ndindex(out.shape):
        if (j + 1) * block_k - 1 <= i * block_q:
            out[i, j] = 2
        elif j * block_k <= (i + 1) * block_q - 1:
            out[i, j] = 1
    return out


@wrong("5.4", "last-block-lost")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, sound)[: T // block_q, : T // block_k]


@wrong("5.4", "one-block-too-many")
def _(T, block_q, block_k):
    out = np.zeros((T // block_q + 1, T // block_k + 1))
    for i, j in np.ndindex(out.shape):
        out[i, j] = sound(i * block_q, (i + 1) * block_q - 1, j * block_k, (j + 1) * block_k - 1)
    return out


@wrong("5.4", "block-sizes-exchanged")
def _(T, block_q, block_k):
    return grid(T, block_k, block_q, sound)


@wrong("5.4", "transposed-result")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, sound).T


@wrong("5.4", "past-and-future-exchanged")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 0 if d < a else 2 if c >= b else 1)


@wrong("5.4", "numbers-exchanged")
def _(T, block_q, block_k):
    return 2 - grid(T, block_q, block_k, sound)


@wrong("5.4", "no-tile-is-whole")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: c <= b)


@wrong("5.4", "no-tile-is-masked")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 2 * (c <= b))


@wrong("5.4", "no-tile-is-skipped")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 2 if d <= a else 1)


@wrong("5.4", "pairs-counted")
def _(T, block_q, block_k):
    mask = np.tri(T, dtype=int)
    return np.array(
        [
            [mask[q : q + block_q, k : k + block_k].sum() for k in range(0, T, block_k)]
            for q in range(0, T, block_q)
        ]
    )


@wrong("5.4", "a-mask-of-single-pairs")
def _(T, block_q, block_k):
    return np.tri(T, dtype=bool)


@wrong("5.4", "wrong-type")
def _(T, block_q, block_k):
    return np.array(["skip", "mask", "whole"])[grid(T, block_q, block_k, sound)]


@wrong("5.4", "raises-error")
def _(T, block_q, block_k):
    return np.zeros((T / block_q, T / block_k))


@wrong("5.4", "unknown")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, lambda a, b, c, d: 0 if c > b else 2 if d <= a - 3 else 1)


@hostile("5.4", "did-not-finish")
def _(T, block_q, block_k):
    i = 0
    while i * block_q < T or i >= 0:
        i += 1


@hostile("5.4", "exits")
def _(T, block_q, block_k):
    sys.exit("done")


@hostile("5.4", "prints-instead-of-returning")
def _(T, block_q, block_k):
    print(grid(T, block_q, block_k, sound))


@hostile("5.4", "wrong-shape")
def _(T, block_q, block_k):
    return np.zeros((1000, 1000), dtype=np.int8)


@hostile("5.4", "wrong-type")
def _(T, block_q, block_k):
    return [[0] * i for i in range(T + 1)]


@hostile("5.4", "raises-error")
def _(T, block_q, block_k):
    raise BaseExceptionGroup("odd", [KeyError(1)])


@right("5.4")
def _(T, block_q, block_k):
    mask = np.tri(T, dtype=bool)
    rows = []
    for q in range(0, T, block_q):
        tiles = (mask[q : q + block_q, k : k + block_k] for k in range(0, T, block_k))
        rows.append([int(tile.any()) + int(tile.all()) for tile in tiles])
    return rows


@right("5.4")
def _(T, block_q, block_k):
    q, k = np.arange(0, T, block_q)[:, None], np.arange(0, T, block_k)
    q_stop, k_stop = np.minimum(q + block_q, T), np.minimum(k + block_k, T)
    return (k < q_stop).astype(np.int8) + (k_stop <= q + 1)


@right("5.4")
def _(T, block_q, block_k):
    i, j = torch.arange(T), torch.arange(T)
    seen = (j <= i[:, None]).double()
    any_, all_ = [], []
    for rows in seen.split(block_q):
        tiles = rows.split(block_k, dim=1)
        any_.append(torch.stack([tile.max() for tile in tiles]))
        all_.append(torch.stack([tile.min() for tile in tiles]))
    return torch.stack(any_) + torch.stack(all_)


@right("5.4")
def _(T, block_q, block_k):
    from helpers.flash import TilePlan

    plan = TilePlan(T, 1, block_q, block_k, is_causal=True)
    out = np.zeros((plan.rows, plan.columns))
    for number in range(1, plan.tiles + 1):
        i, j = plan.tile(number)
        out[i, j] = 2 if plan.keys(j)[1] - 1 <= plan.queries(i)[0] else 1
    return out


@right("5.4")
def _(T, block_q, block_k):
    return grid(T, block_q, block_k, sound).astype(float).tolist()
