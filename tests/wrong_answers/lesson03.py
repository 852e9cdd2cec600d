"""Answers as readers of lesson 3 write them: wrong, hostile, and right in other words."""

import math

import numpy as np

from wrong_answers.book import hostile, right, stable, wrong

# --- 3.1 ---


@wrong("3.1", "multiplied-by-temperature")
def _(x, temperature=1.0):
    return stable(temperature * x)


@wrong("3.1", "multiplied-by-temperature")
def _(x, temperature=1.0):
    e = np.exp(x * temperature)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.1", "temperature-ignored")
def _(x, temperature=1.0):
    m = x.max(axis=-1, keepdims=True)
    e = np.exp(x - m)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.1", "temperature-ignored")
def _(x, temperature=1.0):
    e = np.exp(x - x.max(axis=-1, keepdims=True)) / temperature
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.1", "temperature-ignored")
def _(x, temperature=1.0):
    return stable(x - temperature)


@wrong("3.1", "temperature-after-softmax")
def _(x, temperature=1.0):
    x = x - x.max(axis=-1, keepdims=True)
    return np.exp(x) / (np.exp(x).sum(axis=-1, keepdims=True) * temperature)


@wrong("3.1", "temperature-before-and-after")
def _(x, temperature=1.0):
    return stable(x / temperature) / temperature


@wrong("3.1", "power-of-the-weights")
def _(x, temperature=1.0):
    w = stable(x) ** (1 / temperature)
    return w / w.sum(-1)[..., None]


@wrong("3.1", "root-of-the-temperature")
def _(x, temperature=1.0):
    return stable(x / math.sqrt(temperature))


@wrong("3.1", "divided-by-the-root-of-T")
def _(x, temperature=1.0):
    return stable(x / (temperature * x.shape[-1] ** 0.5))


@wrong("3.1", "only-the-maximum-divided")
def _(x, temperature=1.0):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True) / temperature)
    return e / np.sum(e, axis=-1, keepdims=True)


@wrong("3.1", "maximum-not-divided")
def _(x, temperature=1.0):
    largest = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x / temperature - largest)
    return e / np.sum(e, axis=-1, keepdims=True)


@wrong("3.1", "overflows")
def _(x, temperature=1.0):
    e = np.exp(x / temperature)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.1", "overflows")
def _(x, temperature=1.0):
    def row_of(row):
        if isinstance(row[0], list):
            return [row_of(each) for each in row]
        e = [math.exp(s / temperature) for s in row]
        return [each / sum(e) for each in e]

    return row_of(x.tolist())


@wrong("3.1", "clipped")
def _(x, temperature=1.0):
    e = np.exp(np.clip(x / temperature, -500, 500))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.1", "clipped")
def _(x, temperature=1.0):
    e = np.exp(np.minimum(x / temperature, 700))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.1", "maximum-of-the-whole-array")
def _(x, temperature=1.0):
    z = (x - x.max()) / temperature
    return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)


@wrong("3.1", "softmax-wrong-axis")
def _(x, temperature=1.0):
    return stable(x / temperature, axis=0)


@wrong("3.1", "softmax-wrong-axis")
def _(x, temperature=1.0):
    z = x / temperature
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / sum(e)


@wrong("3.1", "axis-1")
def _(x, temperature=1.0):
    e = np.exp((x - x.max(axis=1, keepdims=True)) / temperature)
    return e / e.sum(axis=1, keepdims=True)


@wrong("3.1", "softmax-over-all")
def _(x, temperature=1.0):
    e = np.exp((x - x.max()) / temperature)
    return e / e.sum()


@wrong("3.1", "some-axes-only")
def _(x, temperature=1.0):
    out = np.zeros(x.shape)
    for i in range(len(x)):
        e = np.exp((x[i] - x[i].max()) / temperature)
        out[i] = e / e.sum()
    return out


@wrong("3.1", "some-axes-only")
def _(x, temperature=1.0):
    if x.ndim == 1:
        return stable(x / temperature)
    return stable(x / temperature, axis=1)


@wrong("3.1", "some-axes-only")
def _(x, temperature=1.0):
    rows, _ = x.shape
    z = x / temperature
    e = np.exp(z - z.max(axis=1).reshape(rows, 1))
    return e / e.sum(axis=1).reshape(rows, 1)


@wrong("3.1", "keepdims-missing")
def _(x, temperature=1.0):
    z = x / temperature
    e = np.exp(z - z.max(axis=-1))
    return e / e.sum(axis=-1)


@wrong("3.1", "not-normalised")
def _(x, temperature=1.0):
    z = x / temperature
    return np.exp(z - z.max(axis=-1, keepdims=True))


@wrong("3.1", "logarithm-of-the-weights")
def _(x, temperature=1.0):
    z = x / temperature
    return z - np.logaddexp.reduce(z, axis=-1, keepdims=True)


@wrong("3.1", "exp-forgotten")
def _(x, temperature=1.0):
    z = x / temperature
    return z / z.sum(axis=-1, keepdims=True)


@wrong("3.1", "sign-reversed")
def _(x, temperature=1.0):
    return stable(-x / temperature)


@wrong("3.1", "sign-reversed")
def _(x, temperature=1.0):
    e = np.exp((x.max(-1, keepdims=True) - x) / temperature)
    return e / e.sum(-1, keepdims=True)


@wrong("3.1", "other-base")
def _(x, temperature=1.0):
    e = 2 ** ((x - x.max(-1, keepdims=True)) / temperature)
    return e / e.sum(-1, keepdims=True)


@wrong("3.1", "winner-takes-all")
def _(x, temperature=1.0):
    out = np.zeros_like(x)
    np.put_along_axis(out, x.argmax(-1)[..., None], 1, -1)
    return out


@wrong("3.1", "changes-its-input")
def _(x, temperature=1.0):
    x /= temperature
    x -= x.max(axis=-1, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.1", "hard-coded")
def _(x, temperature=1.0):
    return stable(np.array([2, 1, 0.5]))  # the notebook's scores, not the argument


@wrong("3.1", "imprecise")
def _(x, temperature=1.0):
    return stable(x / temperature).round(3)


@wrong("3.1", "rows-do-not-sum-to-1")
def _(x, temperature=1.0):
    return stable(x / temperature) * 0.9


@wrong("3.1", "wrong-shape")
def _(x, temperature=1.0):
    return np.atleast_2d(stable(x / temperature))


@wrong("3.1", "unknown")
def _(x, temperature=1.0):
    return stable(x / temperature**2)


# --- 3.2 ---


@wrong("3.2", "nan-at-zero")
def _(weights):
    return -np.sum(weights * np.log(weights), axis=-1)


@wrong("3.2", "nan-at-zero")
def _(weights):
    if weights.ndim > 1:
        return [_entropy_of(row) for row in weights]
    return -sum(w * math.log(w) for w in weights)


def _entropy_of(row):
    if row.ndim > 1:
        return [_entropy_of(each) for each in row]
    return -sum(w * math.log(w) for w in row)


@wrong("3.2", "nan-at-zero")
def _(weights):
    return (weights * np.log(1 / weights)).sum(-1)


@wrong("3.2", "row-lost-to-one-zero")
def _(weights):
    h = -(weights * np.log(weights)).sum(-1)
    return np.where(np.isnan(h), 0, h)


@wrong("3.2", "bits")
def _(weights):
    return -(weights * np.log2(np.where(weights == 0, 1, weights))).sum(-1)


@wrong("3.2", "bits")
def _(weights):
    return -np.nansum(weights * np.log2(weights), axis=-1)


@wrong("3.2", "logarithm-to-base-10")
def _(weights):
    return -(weights * np.log10(np.where(weights == 0, 1, weights))).sum(-1)


@wrong("3.2", "sign-reversed")
def _(weights):
    return np.nansum(weights * np.log(weights), axis=-1)


@wrong("3.2", "epsilon-in-the-logarithm")
def _(weights):
    return -(weights * np.log(weights + 1e-3)).sum(-1)


@wrong("3.2", "epsilon-in-the-logarithm")
def _(weights):
    return -(weights * np.log(weights + 1e-8)).sum(-1)


@wrong("3.2", "epsilon-in-the-logarithm")
def _(weights):
    return -(weights * np.log(weights + 0.05)).sum(-1)


@wrong("3.2", "zeros-count")
def _(weights):
    w = np.clip(weights, 1e-3, None)
    return -(w * np.log(w)).sum(-1)


@wrong("3.2", "zeros-count")
def _(weights):
    weights = weights + 1e-6
    return -(weights * np.log(weights)).sum(-1)


@wrong("3.2", "mean-instead-of-sum")
def _(weights):
    return -np.mean(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)


@wrong("3.2", "normalised")
def _(weights):
    h = -np.nansum(weights * np.log(weights), axis=-1)
    return h / np.log(weights.shape[-1])


@wrong("3.2", "weights-left-out")
def _(weights):
    return -np.log(np.where(weights > 0, weights, 1)).sum(-1)


@wrong("3.2", "logarithm-left-out")
def _(weights):
    return 1 - np.square(weights).sum(axis=-1)


@wrong("3.2", "perplexity")
def _(weights):
    return np.exp(-np.nansum(weights * np.log(weights), axis=-1))


@wrong("3.2", "yes-or-no")
def _(weights):
    w = weights
    return -(np.nan_to_num(w * np.log(w)) + np.nan_to_num((1 - w) * np.log(1 - w))).sum(-1)


@wrong("3.2", "softmax-again")
def _(weights):
    p = stable(weights)
    return -(p * np.log(p)).sum(-1)


@wrong("3.2", "not-summed")
def _(weights):
    return -np.nan_to_num(weights * np.log(weights))


@wrong("3.2", "summed-over-all")
def _(weights):
    return -np.nansum(weights * np.log(weights))


@wrong("3.2", "wrong-axis")
def _(weights):
    return -np.nansum(weights * np.log(weights), axis=0)


@wrong("3.2", "axis-1")
def _(weights):
    return -np.nansum(weights * np.log(weights), axis=1)


@wrong("3.2", "axis-kept")
def _(weights):
    return -np.nansum(weights * np.log(weights), axis=-1, keepdims=True)


@wrong("3.2", "some-axes-only")
def _(weights):
    if weights.ndim == 1:
        return -sum(w * math.log(w) for w in weights if w)
    return -np.nansum(weights * np.log(weights), axis=1)


@wrong("3.2", "some-axes-only")
def _(weights):
    return [-sum(w * math.log(w) for w in row if w > 0) for row in weights]


@wrong("3.2", "hard-coded")
def _(weights):
    return 1.5 * math.log(2)


@wrong("3.2", "changes-its-input")
def _(weights):
    weights[weights == 0] = 1
    return -(weights * np.log(weights)).sum(-1)


@wrong("3.2", "imprecise")
def _(weights):
    return np.round(-np.nansum(weights * np.log(weights), axis=-1), 3)


@wrong("3.2", "unknown")
def _(weights):
    return -np.nansum(weights * np.log(weights), axis=-1) * 1.1


# --- 3.3 ---


@wrong("3.3", "diagonal-alone")
def _(p, dz):
    return np.multiply(p, dz)


@wrong("3.3", "each-by-itself")
def _(p, dz):
    return p * dz - p * p * dz


@wrong("3.3", "plain-mean")
def _(p, dz):
    return p * (dz - np.mean(dz, axis=1)[:, None])


@wrong("3.3", "plain-mean")
def _(p, dz):
    return p * (dz - np.mean(dz))


@wrong("3.3", "sum-of-dz")
def _(p, dz):
    return p * dz - p * dz.sum(axis=-1, keepdims=True)


@wrong("3.3", "mean-of-the-products")
def _(p, dz):
    return p * (dz - np.mean(p * dz, axis=-1, keepdims=True))


@wrong("3.3", "dz-left-out")
def _(p, dz):
    return p * dz - p**2


@wrong("3.3", "first-p-left-out")
def _(p, dz):
    return np.array([b - a * (a @ b) for a, b in zip(p, dz)])


@wrong("3.3", "second-p-left-out")
def _(p, dz):
    return np.array([a * b - a @ b for a, b in zip(p, dz)])


@wrong("3.3", "logarithms")
def _(p, dz):
    return dz - np.einsum("nt,nt->n", p, dz)[:, None]


@wrong("3.3", "mean-alone")
def _(p, dz):
    return np.array([np.outer(a, a) @ b for a, b in zip(p, dz)])


@wrong("3.3", "added")
def _(p, dz):
    return np.array([(np.diag(a) + np.outer(a, a)) @ b for a, b in zip(p, dz)])


@wrong("3.3", "sign-reversed")
def _(p, dz):
    return p * (p * dz).sum(-1, keepdims=True) - p * dz


@wrong("3.3", "not-a-derivative")
def _(p, dz):
    e = p * np.exp(dz)
    return e / e.sum(axis=-1, keepdims=True) - p


@wrong("3.3", "new-weights")
def _(p, dz):
    return p + p * dz - p * (p * dz).sum(axis=-1, keepdims=True)


@wrong("3.3", "softmax-again")
def _(p, dz):
    p = stable(p)
    return p * (dz - (p * dz).sum(axis=-1, keepdims=True))


@wrong("3.3", "softmax-of-dz")
def _(p, dz):
    dz = stable(dz)
    return p * (dz - (p * dz).sum(axis=-1, keepdims=True))


@wrong("3.3", "rows-mixed")
def _(p, dz):
    return p * dz - p @ dz.T @ p


@wrong("3.3", "rows-mixed")
def _(p, dz):
    return p * (dz - np.sum(p * dz))


@wrong("3.3", "wrong-axis")
def _(p, dz):
    return p * (dz - np.sum(p * dz, axis=0, keepdims=True))


@wrong("3.3", "keepdims-missing")
def _(p, dz):
    return p * (dz - np.sum(p * dz, axis=1))


@wrong("3.3", "jacobian-returned")
def _(p, dz):
    return np.array([np.diag(row) - np.outer(row, row) for row in p])


@wrong("3.3", "only-the-sum")
def _(p, dz):
    return (p * dz).sum(axis=-1)


@wrong("3.3", "changes-do-not-cancel")
def _(p, dz):
    return p * (dz - 0.5 * (p * dz).sum(axis=-1, keepdims=True))


@wrong("3.3", "changes-its-input")
def _(p, dz):
    dz -= (p * dz).sum(axis=-1, keepdims=True)
    return p * dz


@wrong("3.3", "hard-coded")
def _(p, dz):
    p, dz = np.array([[0.5, 0.25, 0.25]]), np.array([[1.0, 0, 0]])
    return p * (dz - (p * dz).sum(axis=-1, keepdims=True))


@wrong("3.3", "imprecise")
def _(p, dz):
    return np.round(p * (dz - (p * dz).sum(axis=-1, keepdims=True)) * 1.001, 4)


@wrong("3.3", "unknown")
def _(p, dz):
    return 2 * p * (dz - (p * dz).sum(axis=-1, keepdims=True))


# --- 3.4 ---


@wrong("3.4", "no-mask")
def _(scores, allowed):
    return stable(scores)


@wrong("3.4", "mask-inverted")
def _(scores, allowed):
    return np.nan_to_num(stable(np.where(allowed, -np.inf, scores)))


@wrong("3.4", "mask-inverted")
def _(scores, allowed):
    s = scores.copy()
    s[allowed] = -np.inf
    return stable(s)


@wrong("3.4", "mask-inverted")
def _(scores, allowed):
    return stable(np.where(allowed, -1e9, scores))


@wrong("3.4", "masked-with-zero")
def _(scores, allowed):
    return stable(scores * allowed)


@wrong("3.4", "masked-with-zero")
def _(scores, allowed):
    w = stable(np.where(allowed, scores, 0))
    w[~allowed.any(axis=-1)] = 0
    return w


@wrong("3.4", "mask-added")
def _(scores, allowed):
    return stable(scores + allowed)


@wrong("3.4", "masked-after-softmax")
def _(scores, allowed):
    return stable(scores) * allowed


@wrong("3.4", "masked-keys-set-the-maximum")
def _(scores, allowed):
    w = stable(scores) * allowed
    total = w.sum(axis=-1, keepdims=True)
    return np.divide(w, total, out=np.zeros_like(w), where=total > 0)


@wrong("3.4", "masked-keys-set-the-maximum")
def _(scores, allowed):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allowed
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True))


@wrong("3.4", "masked-keys-set-the-maximum-and-0/0")
def _(scores, allowed):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allowed
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.4", "masked-row-gives-nan")
def _(scores, allowed):
    return stable(np.where(allowed, scores, -np.inf))


@wrong("3.4", "masked-row-gives-nan")
def _(scores, allowed):
    s = scores.copy()
    s[~allowed] = -np.inf
    out = stable(s)
    out[np.isnan(out)] = np.inf
    return out


@wrong("3.4", "masked-row-gets-weights")
def _(scores, allowed):
    return stable(np.where(allowed, scores, -1e9))


@wrong("3.4", "masked-row-gets-weights")
def _(scores, allowed):
    return stable(np.where(allowed, scores, np.finfo(scores.dtype).min))


@wrong("3.4", "masked-row-gets-weights")
def _(scores, allowed):
    return stable(scores + (1 - allowed) * -1e9)


@wrong("3.4", "masked-row-gets-weights")
def _(scores, allowed):
    w = stable(np.where(allowed, scores, -np.inf))
    return np.where(np.isnan(w), 1 / scores.shape[-1], w)


@wrong("3.4", "masked-row-gets-weights")
def _(scores, allowed):
    return np.array(
        [stable(np.where(a, s, -np.inf) if a.any() else s) for s, a in zip(scores, allowed)]
    )


@wrong("3.4", "masked-row-gets-weights")
def _(scores, allowed):
    return stable(np.where(allowed, scores, -1e4))


@wrong("3.4", "masked-row-gets-weight-1")
def _(scores, allowed):
    return np.nan_to_num(stable(np.where(allowed, scores, -np.inf)), nan=1.0)


@wrong("3.4", "masked-with-too-small-a-number")
def _(scores, allowed):
    return stable(np.where(allowed, scores, -100))


@wrong("3.4", "all-nan")
def _(scores, allowed):
    return stable(scores + ~allowed * -np.inf)


@wrong("3.4", "overflows")
def _(scores, allowed):
    e = np.where(allowed, np.exp(scores), 0)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@wrong("3.4", "overflows")
def _(scores, allowed):
    rows = []
    for row, may in zip(scores.tolist(), allowed):
        e = [math.exp(s) if a else 0.0 for s, a in zip(row, may)]
        rows.append([each / sum(e) if any(may) else 0.0 for each in e])
    return rows


@wrong("3.4", "overflows-and-0/0")
def _(scores, allowed):
    e = np.where(allowed, np.exp(scores), 0)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.4", "maximum-of-the-whole-table")
def _(scores, allowed):
    s = np.where(allowed, scores, -np.inf)
    e = np.exp(s - s.max())
    return e / e.sum(axis=-1, keepdims=True)


@wrong("3.4", "softmax-wrong-axis")
def _(scores, allowed):
    return stable(np.where(allowed, scores, -np.inf), axis=0)


@wrong("3.4", "softmax-over-all")
def _(scores, allowed):
    s = np.where(allowed, scores, -np.inf)
    e = np.exp(s - s.max())
    return e / e.sum()


@wrong("3.4", "own-mask")
def _(scores, allowed):
    return stable(np.where(np.tril(np.ones(scores.shape)) > 0, scores, -np.inf))


@wrong("3.4", "not-normalised")
def _(scores, allowed):
    return np.exp(scores) * allowed


@wrong("3.4", "epsilon-in-the-sum")
def _(scores, allowed):
    s = np.where(allowed, scores, -np.inf)
    m = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(m), m, 0))
    return e / (e.sum(axis=-1, keepdims=True) + 1e-3)


@wrong("3.4", "masked-scores-returned")
def _(scores, allowed):
    return np.where(allowed, scores, -np.inf)


@wrong("3.4", "masked-keys-have-weight")
def _(scores, allowed):
    w = np.nan_to_num(stable(np.where(allowed, scores, -np.inf)))
    return np.where(allowed, w, 0.01)


@wrong("3.4", "rows-do-not-sum-to-1")
def _(scores, allowed):
    return np.nan_to_num(stable(np.where(allowed, scores, -np.inf))) * 0.99


@wrong("3.4", "changes-its-input")
def _(scores, allowed):
    scores[~allowed] = -np.inf
    return np.nan_to_num(stable(scores))


@wrong("3.4", "hard-coded")
def _(scores, allowed):
    return stable(np.array([[2, 1, -np.inf]]))


@wrong("3.4", "imprecise")
def _(scores, allowed):
    return np.nan_to_num(stable(np.where(allowed, scores, -np.inf))).astype(np.float16)


# --- Hostile ones ---


@hostile("3.1", "did-not-finish")
def _(x, temperature=1.0):
    while temperature:
        x = x / temperature


@hostile("3.1", "raises-error")
def _(x, temperature=1.0):
    return _(x, temperature)[...] + unknown_name  # noqa: F821


@hostile("3.1", "wrong-arguments")
def _(x):
    return stable(x)


@hostile("3.1", "scores-unchanged")
def _(x, temperature=1.0):
    return x


@hostile("3.1", "changes-its-input")
def _(x, temperature=1.0):
    result = stable(x / temperature)
    x.shape = (-1,)
    x[0] = 7
    return result


@hostile("3.2", "wrong-shape")
def _(weights):
    return np.zeros((*weights.shape, 3))


@hostile("3.2", "wrong-shape")
def _(weights):
    return np.empty((0,))


@hostile("3.2", "not-finite")
def _(weights):
    return np.full(weights.shape[:-1], -np.inf)


@hostile("3.2", "wrong-type")
def _(weights):
    return [str(w) for w in weights]


@hostile("3.2", "not-deterministic")
def _(weights):
    return np.random.random(weights.shape[:-1])  # noqa: NPY002


@hostile("3.3", "prints-instead-of-returning")
def _(p, dz):
    print(p * dz)


@hostile("3.3", "complex-numbers")
def _(p, dz):
    return p * (dz - (p * dz).sum(axis=-1, keepdims=True)) + 0j


@hostile("3.4", "unknown")
def _(scores, allowed):
    if scores[allowed]:
        return scores
    return allowed


@hostile("3.4", "unknown|rows-do-not-sum-to-1|masked-keys-have-weight")
def _(scores, allowed):
    return allowed


@hostile("3.4", "returns-none")
def _(scores, allowed):
    if allowed.all():
        return stable(scores)


# --- Right, in other words ---


@right("3.1")
def _(x, temperature=1.0):
    e = np.exp((x - x.max(axis=-1, keepdims=True)) / temperature)
    return e / e.sum(axis=-1, keepdims=True)


@right("3.1")
def _(x, temperature=1.0):
    z = x * (1 / temperature)
    return np.exp(z - np.logaddexp.reduce(z, axis=-1, keepdims=True))


@right("3.1")
def _(x, temperature=1.0):
    def soften(row):
        if isinstance(row[0], list):
            return [soften(each) for each in row]
        e = [math.exp((s - max(row)) / temperature) for s in row]
        return [each / sum(e) for each in e]

    return soften(x.tolist())


@right("3.1")
def _(x, temperature=1.0):
    z = (x / temperature).astype(np.float32)
    e = np.exp(z - z.max(-1)[..., None])
    return e / e.sum(-1)[..., None]


@right("3.1")
def _(x, temperature=1.0):
    flat = x.reshape(-1, x.shape[-1])
    return np.stack([stable(row / temperature) for row in flat]).reshape(x.shape)


@right("3.1")
def _(x, temperature=1.0):
    z = x / temperature
    return 1 / np.exp(np.clip(z[..., None, :] - z[..., :, None], None, 700)).sum(axis=-1)


@right("3.2")
def _(weights):
    with np.errstate(all="ignore"):
        return -np.nansum(weights * np.log(weights), axis=-1)


@right("3.2")
def _(weights):
    return -np.where(weights > 0, weights * np.log(weights), 0).sum(axis=-1)


@right("3.2")
def _(weights):
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -np.einsum("...t,...t->...", weights, logs)


@right("3.2")
def _(weights):
    return -(weights * np.log(weights + 1e-12)).sum(axis=-1)


@right("3.2")
def _(weights):
    w = np.clip(weights, 1e-12, 1)
    return -(w * np.log(w)).sum(axis=-1)


@right("3.2")
def _(weights):
    return -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=-1)


@right("3.2")
def _(weights):
    w = weights.astype(np.float32)
    return -(w * np.log(np.where(w == 0, 1, w))).sum(axis=-1)


@right("3.2")
def _(weights):
    def of(row):
        if row.ndim > 1:
            return [of(each) for each in row]
        return sum(-w * math.log(w) for w in row if w > 0)

    return of(weights)


@right("3.3")
def _(p, dz):
    return p * dz - p * np.einsum("nt,nt->n", p, dz)[:, np.newaxis]


@right("3.3")
def _(p, dz):
    return np.array([(np.diag(a) - np.outer(a, a)) @ b for a, b in zip(p, dz)])


@right("3.3")
def _(p, dz):
    J = p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :]
    return (J @ dz[:, :, None])[:, :, 0]


@right("3.3")
def _(p, dz):
    p, dz = p.astype(np.float32), dz.astype(np.float32)
    return p * (dz - np.sum(p * dz, axis=1, keepdims=True))


@right("3.3")
def _(p, dz):
    return [
        [w * (x - sum(u * y for u, y in zip(a, b))) for w, x in zip(a, b)] for a, b in zip(p, dz)
    ]


@right("3.3")
def _(p, dz):
    change = p * dz
    return change - p * change.sum(1).reshape(-1, 1)


@right("3.4")
def _(scores, allowed):
    return np.nan_to_num(stable(np.where(allowed, scores, -np.inf)))


@right("3.4")
def _(scores, allowed):
    return stable(np.where(allowed, scores, -1e9)) * allowed


@right("3.4")
def _(scores, allowed):
    out = np.zeros_like(scores)
    for i, (row, may) in enumerate(zip(scores, allowed)):
        if may.any():
            out[i, may] = stable(row[may])
    return out


@right("3.4")
def _(scores, allowed):
    s = np.where(allowed, scores, -np.inf).astype(np.float32)
    m = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(m), m, 0))
    return e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-30)


@right("3.4")
def _(scores, allowed):
    s = scores + np.where(allowed, 0, -np.inf)
    m = np.maximum(s.max(axis=-1, keepdims=True), np.finfo(float).min)
    e = np.exp(s - m)
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@right("3.4")
def _(scores, allowed):
    largest = np.max(scores, axis=-1, keepdims=True, where=allowed, initial=-1e300)
    e = np.exp(np.minimum(scores - largest, 0)) * allowed
    return e / (e.sum(axis=-1, keepdims=True) + 1e-12)
