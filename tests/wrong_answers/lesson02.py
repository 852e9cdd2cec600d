"""Answers as readers of lesson 2 write them: wrong, hostile, and right in other words."""

import itertools
import math
from fractions import Fraction

import numpy as np

from wrong_answers.book import hostile, right, wrong

# --- 2.1 ---


@wrong("2.2", "sigma-squared")
def _(d_k, mean, std):
    variance = std**2
    return variance * d_k + 2 * variance * mean**2 * d_k, variance * (1 + mean**2) * d_k


@wrong("2.2", "sigma-squared")
def _(d_k, mean, std):
    return std**2 * d_k, std**2 * d_k


@wrong("2.2", "mean-ignored")
def _(d_k, mean, std):
    return [d_k * std**4] * 2


@wrong("2.2", "std-ignored")
def _(d_k, mean, std):
    return d_k + 2 * d_k * mean**2, d_k + d_k * mean**2


@wrong("2.2", "standard-deviations")
def _(d_k, mean, std):
    pooled = d_k * (std**4 + 2 * std**2 * mean**2)
    within = d_k * (std**4 + std**2 * mean**2)
    return math.sqrt(pooled), math.sqrt(within)


@wrong("2.2", "swapped")
def _(d_k, mean, std):
    pooled = d_k * (std**4 + 2 * std**2 * mean**2)
    within = d_k * (std**4 + std**2 * mean**2)
    return within, pooled


@wrong("2.2", "pooled-twice")
def _(d_k, mean, std):
    second = std**2 + mean**2
    variance = d_k * (second**2 - mean**4)
    return variance, variance


@wrong("2.2", "within-row-twice")
def _(d_k, mean, std):
    variance = d_k * std**2 * (std**2 + mean**2)
    return variance, variance


@wrong("2.2", "mean-taken-for-a-shift")
def _(d_k, mean, std):
    return std**4 * d_k + 2 * std**2 * mean**2 * d_k, std**4 * d_k


@wrong("2.2", "mean-in-keys-only")
def _(d_k, mean, std):
    return std**4 * d_k + std**2 * mean**2 * d_k, std**4 * d_k


@wrong("2.2", "mean-square")
def _(d_k, mean, std):
    return d_k * (std**2 + mean**2) ** 2, d_k * (std**2 + mean**2) * std**2


@wrong("2.2", "mean-added")
def _(d_k, mean, std):
    return std**4 * d_k + mean**2 * d_k, std**4 * d_k


@wrong("2.2", "mean-not-squared")
def _(d_k, mean, std):
    return (
        d_k * std**4 + 2 * d_k * std**2 * mean,
        d_k * std**4 + d_k * std**2 * mean,
    )


@wrong("2.2", "already-divided")
def _(d_k, mean, std):
    return std**4 + 2 * std**2 * mean**2, std**4 + std**2 * mean**2


@wrong("2.2", "d_k-squared")
def _(d_k, mean, std):
    return np.array([std**4 + 2 * std**2 * mean**2, std**4 + std**2 * mean**2]) * d_k**2


@wrong("2.2", "root-of-d_k")
def _(d_k, mean, std):
    return np.array([std**4 + 2 * std**2 * mean**2, std**4 + std**2 * mean**2]) * d_k**0.5


@wrong("2.2", "d_k-hard-coded")
def _(d, mean, std):
    d_k = 64  # the notebook's variable
    return d_k * (std**4 + 2 * std**2 * mean**2), d_k * (std**4 + std**2 * mean**2)


@wrong("2.2", "one-number-only")
def _(d_k, mean, std):
    return d_k * (std**4 + 2 * std**2 * mean**2)


@wrong("2.2", "hard-coded")
def _(d_k, mean, std):
    return 192, 128


@wrong("2.2", "hard-coded")
def _(d_k, mean, std):
    if (d_k, mean, std) == (64, 1, 1):
        return 192.0, 128.0
    return None


@wrong("2.2", "estimated")
def _(d_k, mean, std):
    rng = np.random.default_rng(0)
    q = mean + std * rng.standard_normal((100, 1, min(d_k, 64)))
    k = mean + std * rng.standard_normal((100, 50, min(d_k, 64)))
    scores = (q * k).sum(-1) * math.sqrt(d_k / min(d_k, 64))
    return scores.var(), scores.var(axis=1).mean()


@wrong("2.2", "wrong-shape")
def _(d_k, mean, std):
    return d_k * (std**4 + 2 * std**2 * mean**2), d_k * (std**4 + std**2 * mean**2), mean


@wrong("2.2", "unknown")
def _(d_k, mean, std):
    return d_k * (std**4 + 2 * std**2 * mean**2) + 1, d_k * (std**4 + std**2 * mean**2) + 1


# --- 2.2 ---


@wrong("2.1", "as-if-normal")
def _(d_k, n):
    return d_k * (2 / n) ** 0.5


@wrong("2.1", "as-if-normal")
def _(d_k, n):
    return d_k * math.sqrt(2 / (n - 1))


@wrong("2.1", "n-minus-1")
def _(d_k, n):
    return math.sqrt((2 * d_k**2 + 6 * d_k) / (n - 1))


@wrong("2.1", "n-minus-1")
def _(d_k, n):
    mu4, sigma4 = 3 * d_k**2 + 6 * d_k, d_k**2
    return ((mu4 - sigma4 * (n - 3) / (n - 1)) / n) ** 0.5  # exact at every n


@wrong("2.1", "divided-by-n")
def _(d_k, n):
    return math.sqrt(2 * d_k**2 + 6 * d_k) / n


@wrong("2.1", "n-forgotten")
def _(d_k, n):
    return math.sqrt(2 * d_k**2 + 6 * d_k)


@wrong("2.1", "root-forgotten")
def _(d_k, n):
    return (3 * d_k**2 + 6 * d_k - d_k**2) / n


@wrong("2.1", "sigma-fourth-forgotten")
def _(d_k, n):
    return math.sqrt(3 * (d_k**2 + 2 * d_k) / n)


@wrong("2.1", "variance-instead-of-its-square")
def _(d_k, n):
    return math.sqrt((3 * d_k**2 + 6 * d_k - d_k) / n)


@wrong("2.1", "error-of-the-mean")
def _(d_k, n):
    return math.sqrt(d_k) / math.sqrt(n)


@wrong("2.1", "error-of-the-deviation")
def _(d_k, n):
    return math.sqrt((2 * d_k + 6) * d_k / n) / 2 / math.sqrt(d_k)


@wrong("2.1", "relative-error")
def _(d_k, n):
    return math.sqrt((2 + 6 / d_k) / n)


@wrong("2.1", "variance-over-root-n")
def _(d_k, n):
    return d_k / n**0.5


@wrong("2.1", "kurtosis-alone")
def _(d_k, n):
    return math.sqrt(6 * d_k / n)


@wrong("2.1", "kurtosis-of-one-product")
def _(d_k, n):
    return d_k * math.sqrt(8 / n)


@wrong("2.1", "kurtosis-multiplied")
def _(d_k, n):
    return d_k * math.sqrt((2 + 6 * d_k) / n)


@wrong("2.1", "n-in-one-part-only")
def _(d_k, n):
    return d_k * math.sqrt(2 / n + 6 / d_k)


@wrong("2.1", "root-of-d_k")
def _(d_k, n):
    return math.sqrt(d_k) * math.sqrt((2 + 6 / d_k) / n)


@wrong("2.1", "three-errors")
def _(d_k, n):
    return 3 * d_k * math.sqrt((2 + 6 / d_k) / n)


@wrong("2.1", "d_k-hard-coded")
def _(d_k, n):
    return 64 * math.sqrt((2 + 6 / 64) / n)


@wrong("2.1", "pairs-hard-coded")
def _(d_k, n):
    return d_k * math.sqrt(2 + 6 / d_k) / 100


@wrong("2.1", "hard-coded")
def _(d_k, n):
    return 64 * math.sqrt((2 + 6 / 64) / 10_000)


@wrong("2.1", "estimated")
def _(d_k, n):
    rng = np.random.default_rng(1)
    samples = np.sqrt(rng.chisquare(d_k, 20_000)) * rng.standard_normal(20_000)
    return math.sqrt(np.var(samples**2) / n)


@wrong("2.1", "imprecise")
def _(d_k, n):
    return round(d_k * math.sqrt((2 + 6 / d_k) / n), 2)


@wrong("2.1", "wrong-shape")
def _(d_k, n):
    return [d_k * math.sqrt((2 + 6 / d_k) / n)]


@wrong("2.1", "unknown")
def _(d_k, n):
    return d_k * math.sqrt((2 + 6 / d_k) / n) + 1


# --- 2.3 ---


@wrong("2.3", "std-once")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * d_model * weight_std


@wrong("2.3", "root-of-d_model")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head * d_model) * weight_std**2


@wrong("2.3", "root-forgotten")
def _(d_head, d_model, weight_std):
    return d_head * d_model * weight_std * weight_std


@wrong("2.3", "already-scaled")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * d_model * weight_std**2 / math.sqrt(d_head)


@wrong("2.3", "divided-by-d_head")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * d_model * weight_std**2 / d_head


@wrong("2.3", "variance")
def _(d_head, d_model, weight_std):
    return d_head * d_model**2 * weight_std**4


@wrong("2.3", "variances-not-multiplied")
def _(d_head, d_model, weight_std):
    entry = d_model * weight_std**2
    return math.sqrt(d_head * entry)


@wrong("2.3", "std-to-the-fourth")
def _(d_head, d_model, weight_std):
    return d_head**0.5 * d_model * weight_std**4


@wrong("2.3", "d_model-for-d_head")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_model) * d_model * weight_std**2


@wrong("2.3", "widths-exchanged")
def _(d_model, d_head, weight_std):
    return math.sqrt(d_head) * d_model * weight_std**2


@wrong("2.3", "d_model-forgotten")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * weight_std**2


@wrong("2.3", "d_model-squared")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * (d_model * weight_std) ** 2


@wrong("2.3", "unit-variance-assumed")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head)


@wrong("2.3", "one-entry")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_model) * weight_std


@wrong("2.3", "sizes-hard-coded")
def _(d_head, d_model, weight_std):
    return 8 * d_model * weight_std**2


@wrong("2.3", "sizes-hard-coded")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * 768 * weight_std**2


@wrong("2.3", "weight-std-hard-coded")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * d_model * 0.0004


@wrong("2.3", "hard-coded")
def _(d_head, d_model, weight_std):
    return 2.4576


@wrong("2.3", "estimated")
def _(d_head, d_model, weight_std):
    rng = np.random.default_rng(2)
    q, k = rng.standard_normal((2, 2000, d_head))
    return (q * k).sum(axis=-1).std() * d_model * weight_std**2


@wrong("2.3", "imprecise")
def _(d_head, d_model, weight_std):
    return np.round(math.sqrt(d_head) * d_model * weight_std**2, 2)


@wrong("2.3", "unknown")
def _(d_head, d_model, weight_std):
    return math.log(d_head + 1) * d_model * weight_std**2


# --- 2.4 ---


def slices(x, heads):
    width = x.shape[1] // heads
    return [x[:, h * width : (h + 1) * width] for h in range(heads)]


def raw(q, k, heads):
    pairs = zip(slices(q, heads), slices(k, heads), strict=True)
    return np.stack([a @ b.T for a, b in pairs])


def root(q, heads):
    return math.sqrt(q.shape[1] // heads)


@wrong("2.4", "scaled-by-sqrt-d_model")
def _(q, k, heads):
    return raw(q, k, heads) / math.sqrt(q.shape[1])


@wrong("2.4", "divided-by-d_head")
def _(q, k, heads):
    return raw(q, k, heads) / (q.shape[1] // heads)


@wrong("2.4", "divided-by-d_head")
def _(q, k, heads):
    return raw(q / root(q, heads), k / root(q, heads), heads)


@wrong("2.4", "no-scale")
def _(q, k, heads):
    return [a @ b.T for a, b in zip(slices(q, heads), slices(k, heads), strict=True)]


@wrong("2.4", "multiplied")
def _(q, k, heads):
    return raw(q, k, heads) * root(q, heads)


@wrong("2.4", "scaled-by-sqrt-heads")
def _(q, k, heads):
    return raw(q, k, heads) / heads**0.5


@wrong("2.4", "scaled-by-sqrt-T")
def _(q, k, heads):
    return raw(q, k, heads) / len(k) ** 0.5


@wrong("2.4", "scale-hard-coded")
def _(q, k, heads):
    return raw(q, k, heads) / np.sqrt(2)


@wrong("2.4", "scale-hard-coded")
def _(q, k, heads):
    return raw(q, k, heads) / 8


@wrong("2.4", "heads-mixed-by-reshape")
def _(q, k, heads):
    d_head = q.shape[1] // heads
    q = q.reshape(heads, -1, d_head)
    k = k.reshape(heads, -1, d_head)
    return q @ k.transpose(0, 2, 1) / np.sqrt(d_head)


@wrong("2.4", "heads-mixed-by-reshape")
def _(q, k, heads):
    q = q.reshape(heads, len(q), -1)
    k = k.reshape(heads, len(k), -1)
    return np.einsum("hqd,hkd->hqk", q, k)


@wrong("2.4", "keys-reshaped-not-transposed")
def _(q, k, heads):
    d_head = q.shape[1] // heads
    q = q.reshape(len(q), heads, d_head).swapaxes(0, 1)
    k = k.reshape(len(k), heads, d_head).swapaxes(0, 1).reshape(heads, d_head, len(k))
    return q @ k / np.sqrt(d_head)


@wrong("2.4", "heads-interleaved")
def _(q, k, heads):
    tables = [q[:, h::heads] @ k[:, h::heads].T for h in range(heads)]
    return np.stack(tables) / root(q, heads)


@wrong("2.4", "heads-with-heads")
def _(q, k, heads):
    d_head = q.shape[1] // heads
    q = q.reshape(len(q), heads, d_head)
    k = k.reshape(len(k), heads, d_head)
    return q @ k.swapaxes(-1, -2) / np.sqrt(d_head)


@wrong("2.4", "heads-not-first")
def _(q, k, heads):
    q = q.reshape(len(q), heads, -1)
    k = k.reshape(len(k), heads, -1)
    return np.einsum("qhd,khd->qkh", q, k) / np.sqrt(q.shape[-1])


@wrong("2.4", "heads-not-first")
def _(q, k, heads):
    return np.stack(list(raw(q, k, heads) / root(q, heads)), axis=1)


@wrong("2.4", "transposed-result")
def _(q, k, heads):
    return raw(k, q, heads) / root(q, heads)


@wrong("2.4", "not-split")
def _(q, k, heads):
    return q @ k.T / math.sqrt(q.shape[1] / heads)


@wrong("2.4", "not-split")
def _(q, k, heads):
    return np.repeat((q @ k.T / math.sqrt(q.shape[1]))[None], heads, axis=0)


@wrong("2.4", "averaged-over-heads")
def _(q, k, heads):
    return raw(q, k, heads).mean(0) / root(q, heads)


@wrong("2.4", "first-head-only")
def _(q, k, heads):
    d_head = q.shape[1] // heads
    return q[:, :d_head] @ k[:, :d_head].T / math.sqrt(d_head)


@wrong("2.4", "already-weights")
def _(q, k, heads):
    e = np.exp((s := raw(q, k, heads) / root(q, heads)) - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("2.4", "queries-with-queries")
def _(q, k, heads):
    return raw(q, q, heads) / root(q, heads)


@wrong("2.4", "keys-not-transposed")
def _(q, k, heads):
    pairs = zip(slices(q, heads), slices(k, heads), strict=True)
    return np.stack([a @ b for a, b in pairs]) / root(q, heads)


@wrong("2.4", "floor-division")
def _(q, k, heads):
    return raw(q, k, heads) // root(q, heads)


@wrong("2.4", "heads-hard-coded")
def _(q, k, n):
    heads = 2
    return raw(q, k, heads) / root(q, heads)


@wrong("2.4", "heads-hard-coded")
def _(q, k, n):
    heads = q.shape[1] // 2
    return raw(q, k, heads) / root(q, heads)


@wrong("2.4", "hard-coded")
def _(q, k, heads):
    tables = [[[1, 0, 1], [0, 1, 1], [1, 1, 2]], [[1, 0, 0], [0, 1, 0], [1, 0, 0]]]
    return np.array(tables) / math.sqrt(2)


@wrong("2.4", "hard-coded-sizes")
def _(q, k, heads):
    width = 4 // heads
    out = np.zeros((heads, 3, 3))
    for h, i, j in itertools.product(range(heads), range(3), range(3)):
        for c in range(h * width, (h + 1) * width):
            out[h, i, j] += q[i, c] * k[j, c] / math.sqrt(width)
    return out


@wrong("2.4", "changes-its-input")
def _(q, k, heads):
    q /= math.sqrt(q.shape[1] // heads)
    return raw(q, k, heads)


@wrong("2.4", "wrong-shape")
def _(q, k, heads):
    return (raw(q, k, heads) / root(q, heads)).reshape(-1)


@wrong("2.4", "unknown")
def _(q, k, heads):
    return (raw(q, k, heads) / root(q, heads))[::-1]


# --- Hostile ones: where the arguments or the result are numbers ---


@hostile("2.1", "raises-error")
def _(d_k, n):
    return 1 / 0


@hostile("2.1", "raises-error")
def _(d_k, n):
    return d_k[0] / n


@hostile("2.2", "wrong-type")
def _(d_k, mean, std):
    return {"pooled": d_k, "within_row": d_k}


@hostile("2.2", "wrong-type")
def _(d_k, mean, std):
    return f"{d_k} and {d_k}"


@hostile("2.2", "wrong-type")
def _(d_k, mean, std):
    return d_k, [d_k, d_k]


@hostile("2.2", "wrong-shape")
def _(d_k, mean, std):
    return ()


@hostile("2.1", "complex-numbers")
def _(d_k, n):
    return (-1.0) ** 0.5 * d_k / n


@hostile("2.1", "not-finite")
def _(d_k, n):
    return math.nan


@hostile("2.3", "wrong-type")
def _(d_head, d_model, weight_std):
    return lambda: 0


@hostile("2.3", "wrong-shape")
def _(d_head, d_model, weight_std):
    return np.zeros((d_head, d_model))


@hostile("2.3", "not-deterministic")
def _(d_head, d_model, weight_std):
    rng = np.random.default_rng()
    return (rng.standard_normal((100, d_head)) * d_model * weight_std**2).sum(axis=1).std()


@hostile("2.3", "wrong-arguments")
def _(d_head, d_model):
    return d_head * d_model


@hostile("2.2", "prints-instead-of-returning")
def _(d_k, mean, std):
    print(d_k * std**4)


@hostile("2.4", "raises-error")
def _(q, k, heads):
    d_head = q.shape[-1] / heads
    return q.reshape(len(q), heads, d_head)


@hostile("2.4", "not-finite")
def _(q, k, heads):
    return raw(q, k, heads) * np.inf


@hostile("2.4", "wrong-shape")
def _(q, k, heads):
    return raw(q, k, heads)[None]


# --- Right, in other words ---


@right("2.2")
def _(d_k, mean, std):
    variance = std**2
    pooled = ((variance + mean**2) ** 2 - mean**4) * d_k
    return [pooled, pooled - variance * mean**2 * d_k]


@right("2.2")
def _(d_k, mean, std):
    q_squared = d_k * (std**2 + mean**2)  # E ‖q‖²
    within = q_squared * std**2
    between = mean**2 * d_k * std**2
    return np.array([within + between, within])


@right("2.2")
def _(d_k, mean, std):
    s, m = Fraction(std), Fraction(mean)
    return d_k * (s**4 + 2 * s**2 * m**2), d_k * (s**4 + s**2 * m**2)


@right("2.1")
def _(d_k, n):
    return d_k * math.sqrt((2 + 6 / d_k) / n)


@right("2.1")
def _(d_k, n):
    return np.array(2 * d_k * (d_k + 3) / n) ** 0.5


@right("2.1")
def _(d_k, n):
    print("d_k", d_k)
    return np.float32(d_k) * np.sqrt(np.float32(2 / n + 6 / (d_k * n)))


@right("2.1")
def _(d_k, n):
    kurtosis = 3 + 6 / d_k
    return np.sqrt((kurtosis - 1) / n) * d_k


@right("2.3")
def _(d_head, d_model, weight_std):
    return math.sqrt(d_head) * d_model * weight_std**2


@right("2.3")
def _(d_head, d_model, weight_std):
    variance = sum((d_model * weight_std**2) ** 2 for _ in range(d_head))
    return variance**0.5


@right("2.3")
def _(d_head, d_model, weight_std):
    entry_std = np.sqrt(d_model) * weight_std
    return np.sqrt(d_head) * entry_std * entry_std


@right("2.4")
def _(q, k, heads):
    return [
        a @ b.T / np.sqrt(a.shape[1])
        for a, b in zip(np.split(q, heads, axis=1), np.split(k, heads, axis=1), strict=True)
    ]


@right("2.4")
def _(q, k, heads):
    q = q.reshape(len(q), heads, -1).transpose(1, 0, 2)
    k = k.reshape(len(k), heads, -1).transpose(1, 2, 0)
    return q @ k / k.shape[1] ** 0.5


@right("2.4")
def _(q, k, heads):
    q, k = q.reshape(len(q), heads, -1), k.reshape(len(k), heads, -1)
    return np.einsum("qhd,khd->hqk", q, k).astype(np.float32) / np.float32(q.shape[-1]) ** 0.5


@right("2.4")
def _(q, k, heads):
    return raw(q / root(q, heads), k, heads)


@right("2.4")
def _(q, k, heads):
    T_q, T_k, d_head = len(q), len(k), q.shape[1] // heads
    out = np.zeros((heads, T_q, T_k))
    for h in range(heads):
        for i in range(T_q):
            for j in range(T_k):
                columns = slice(h * d_head, (h + 1) * d_head)
                out[h, i, j] = q[i, columns] @ k[j, columns] / d_head**0.5
    return out
