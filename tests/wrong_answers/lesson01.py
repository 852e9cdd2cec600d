"""Answers as readers of lesson 1 write them: wrong, hostile, and right in other words."""

import itertools
import math
import random
import sys
import time

import numpy as np

from wrong_answers.book import hostile, right, stable, wrong

# --- 1.1 ---


@wrong("1.1", "keys-not-transposed")
def _(q, k):
    return np.dot(q, k)


@wrong("1.1", "keys-not-transposed")
def _(q, k):
    return np.einsum("id,dj->ij", q, k)


@wrong("1.1", "elementwise-product")
def _(q, k):
    return np.multiply(q, k)


@wrong("1.1", "own-key-only")
def _(q, k):
    return np.array([np.dot(a, b) for a, b in zip(q, k, strict=True)])


@wrong("1.1", "already-scaled")
def _(q, k):
    d_k = q.shape[-1]
    return (q / d_k**0.5) @ k.T


@wrong("1.1", "divided-by-d_k")
def _(q, k):
    return np.array([[np.mean(a * b) for b in k] for a in q])


@wrong("1.1", "already-weights")
def _(q, k):
    return stable(q @ k.T / math.sqrt(q.shape[1]))


@wrong("1.1", "transposed-result")
def _(q, k):
    return np.einsum("id,jd->ji", q, k)


@wrong("1.1", "queries-with-queries")
def _(q, k):
    return q @ q.T


@wrong("1.1", "keys-with-keys")
def _(q, k):
    return np.inner(k, k)


@wrong("1.1", "features-with-features")
def _(q, k):
    return q.T @ k


@wrong("1.1", "cosine-similarity")
def _(q, k):
    with np.errstate(all="ignore"):
        q = q / np.linalg.norm(q, axis=1, keepdims=True)
        k = k / np.linalg.norm(k, axis=1, keepdims=True)
    return q @ k.T


@wrong("1.1", "distance")
def _(q, k):
    return -((q[:, None, :] - k[None, :, :]) ** 2).sum(-1)


@wrong("1.1", "absolute-values")
def _(q, k):
    return np.abs(q @ k.T)


@wrong("1.1", "not-summed")
def _(q, k):
    return q[:, None] * k


@wrong("1.1", "added-not-multiplied")
def _(q, k):
    return [[sum(x + y for x, y in zip(a, b, strict=True)) for b in k] for a in q]


@wrong("1.1", "hard-coded")
def _(q, k):
    return np.array([[2, 0, 1], [0, 2, 1], [2, 1, 2]])


@wrong("1.1", "hard-coded")
def _(q, k):
    Q = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]])
    K = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
    return Q @ K.T  # the notebook's variables, not the arguments


@wrong("1.1", "hard-coded")
def _(q, k):
    if q.shape == (3, 4) and q[0].tolist() == [1, 0, 1, 0]:
        return np.array([[2, 0, 1], [0, 2, 1], [2, 1, 2]])
    return None


@wrong("1.1", "hard-coded-sizes")
def _(q, k):
    return np.array(
        [[sum(q[i][c] * k[j][c] for c in range(4)) for j in range(3)] for i in range(3)]
    )


@wrong("1.1", "wrong-shape")
def _(q, k):
    return (q @ k.T).ravel()


@wrong("1.1", "wrong-shape")
def _(q, k):
    return (q @ k.T)[None]


@wrong("1.1", "unknown")
def _(q, k):
    return q @ k.T + 1


# --- 1.2 ---


@wrong("1.2", "softmax-wrong-axis")
def _(scores):
    e = np.exp(scores - scores.max(0))
    return e / e.sum(0)


@wrong("1.2", "softmax-wrong-axis")
def _(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=0, keepdims=True)


@wrong("1.2", "softmax-over-all")
def _(scores):
    e = np.exp(scores - np.max(scores))
    return e / np.sum(e)


@wrong("1.2", "overflows")
def _(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


@wrong("1.2", "overflows")
def _(scores):
    rows = []
    for row in scores:
        e = [math.exp(x) for x in row]
        rows.append([x / sum(e) for x in e])
    return rows


@wrong("1.2", "maximum-of-the-whole-table")
def _(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum(axis=-1, keepdims=True)


@wrong("1.2", "maximum-of-the-columns")
def _(scores):
    e = np.exp(scores - scores.max(axis=0))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("1.2", "keepdims-missing")
def _(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1)


@wrong("1.2", "keepdims-missing")
def _(scores):
    e = np.exp(scores)
    return e / np.sum(e, axis=1)


@wrong("1.2", "not-normalised")
def _(scores):
    return np.exp(scores)


@wrong("1.2", "divided-by-the-maximum")
def _(scores):
    e = np.exp(scores)
    return e / e.max(axis=1, keepdims=True)


@wrong("1.2", "exp-forgotten")
def _(scores):
    return scores / scores.sum(axis=-1, keepdims=True)


@wrong("1.2", "absolute-values")
def _(scores):
    return abs(scores) / abs(scores).sum(axis=-1, keepdims=True)


@wrong("1.2", "squares")
def _(scores):
    s = scores**2
    return s / s.sum(axis=-1, keepdims=True)


@wrong("1.2", "other-base")
def _(scores):
    e = 2.0 ** (scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("1.2", "logarithm-of-the-weights")
def _(scores):
    s = scores - scores.max(axis=-1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=-1, keepdims=True))


@wrong("1.2", "sigmoid")
def _(scores):
    return 1 / (1 + np.exp(-scores))


@wrong("1.2", "winner-takes-all")
def _(scores):
    out = np.zeros_like(scores)
    out[np.arange(len(scores)), scores.argmax(axis=-1)] = 1
    return out


@wrong("1.2", "sign-reversed")
def _(scores):
    return stable(-scores)


@wrong("1.2", "scaled-again")
def _(scores):
    return stable(scores / np.sqrt(scores.shape[-1]))


@wrong("1.2", "changes-its-input")
def _(scores):
    scores -= scores.max(axis=-1, keepdims=True)
    e = np.exp(scores)
    return e / e.sum(axis=-1, keepdims=True)


@wrong("1.2", "rows-do-not-sum-to-1")
def _(scores):
    return stable(scores) + 0.1


@wrong("1.2", "imprecise")
def _(scores):
    return np.round(stable(scores), 3)


@wrong("1.2", "transposed-result")
def _(scores):
    return stable(scores).T


@wrong("1.2", "unknown")
def _(scores):
    return stable(scores * 0.9)


# --- 1.3 ---


@wrong("1.3", "no-scale")
def _(q, k, v):
    return stable(q @ k.T) @ v


@wrong("1.3", "no-scale")
def _(q, k, v):
    e = np.exp(q @ k.T)
    return e / e.sum(axis=-1, keepdims=True) @ v


@wrong("1.3", "divided-by-d_k")
def _(q, k, v):
    return stable(q @ k.T / q.shape[-1]) @ v


@wrong("1.3", "divided-by-d_k")
def _(q, k, v):
    d_k = q.shape[-1]
    q = q / np.sqrt(d_k)
    return stable(q @ k.T / np.sqrt(d_k)) @ v


@wrong("1.3", "multiplied-by-sqrt-d_k")
def _(q, k, v):
    return stable(q @ k.T * np.sqrt(k.shape[1])) @ v


@wrong("1.3", "scaled-by-sqrt-d_v")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(v.shape[-1])) @ v


@wrong("1.3", "scaled-by-sqrt-T")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(k.shape[0])) @ v


@wrong("1.3", "scaled-by-sqrt-T")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(len(q))) @ v


@wrong("1.3", "scale-hard-coded")
def _(q, k, v):
    return stable(q @ k.T / 2) @ v


@wrong("1.3", "scale-hard-coded")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(4)) @ v


@wrong("1.3", "floor-division")
def _(q, k, v):
    return stable(q @ k.T // np.sqrt(q.shape[-1])) @ v


@wrong("1.3", "scaled-after-softmax")
def _(q, k, v):
    weights = stable(q @ k.T) / np.sqrt(q.shape[-1])
    return weights @ v


@wrong("1.3", "scale-before-and-after")
def _(q, k, v):
    d = np.sqrt(q.shape[-1])
    return stable(q @ k.T / d) / d @ v


@wrong("1.3", "softmax-wrong-axis")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1]), axis=0) @ v


@wrong("1.3", "softmax-over-all")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1]), axis=None) @ v


@wrong("1.3", "no-softmax")
def _(q, k, v):
    return q @ k.T / np.sqrt(q.shape[-1]) @ v


@wrong("1.3", "not-normalised")
def _(q, k, v):
    return np.exp(q @ k.T / np.sqrt(q.shape[-1])) @ v


@wrong("1.3", "keys-for-values")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1])) @ k


@wrong("1.3", "values-transposed")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1])) @ v.T


@wrong("1.3", "weights-transposed")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1])).T @ v


@wrong("1.3", "weights-returned")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1]))


@wrong("1.3", "scores-returned")
def _(q, k, v):
    return q @ k.T / np.sqrt(q.shape[-1])


@wrong("1.3", "keys-not-transposed")
def _(q, k, v):
    return stable(q @ k / np.sqrt(q.shape[-1])) @ v


@wrong("1.3", "queries-and-keys-swapped")
def _(q, k, v):
    return stable(k @ q.T / np.sqrt(q.shape[-1])) @ v


@wrong("1.3", "queries-with-queries")
def _(q, k, v):
    return stable(q @ q.T / np.sqrt(q.shape[-1])) @ v


@wrong("1.3", "mean-of-the-values")
def _(q, k, v):
    return np.tile(v.mean(axis=0), (len(q), 1))


@wrong("1.3", "winner-takes-all")
def _(q, k, v):
    return np.array([v[np.argmax([a @ b for b in k])] for a in q])


@wrong("1.3", "overflows")
def _(q, k, v):
    e = np.exp(q @ k.T / np.sqrt(q.shape[-1]))
    return (e @ v) / e.sum(axis=-1, keepdims=True)


@wrong("1.3", "maximum-of-the-whole-table")
def _(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max())
    return e / e.sum(axis=-1, keepdims=True) @ v


@wrong("1.3", "changes-its-input")
def _(q, k, v):
    q /= np.sqrt(q.shape[-1])
    return stable(q @ k.T) @ v


@wrong("1.3", "hard-coded")
def _(q, k, v):
    return np.array([[0.81373, 0.49352], [0.49352, 0.81373], [0.76726, 0.61637]]) * 0 + stable(
        np.array([[2, 0, 1], [0, 2, 1], [2, 1, 2]]) / 2
    ) @ np.array([[1, 0], [0, 1], [1, 1]])


@wrong("1.3", "output-leaves-the-values")
def _(q, k, v):
    return stable(q @ k.T / np.sqrt(q.shape[-1])) @ v * 3


@wrong("1.3", "wrong-scale")
def _(q, k, v):
    return stable(q @ k.T / np.log2(q.shape[-1] + 1)) @ v


@wrong("1.3", "unknown")
def _(q, k, v):
    return stable(np.sin(q @ k.T / np.sqrt(q.shape[-1]))) @ v


# --- 1.4 ---


def scaled(q, k):
    return q @ k.T / np.sqrt(q.shape[-1])


@wrong("1.4", "no-mask")
def _(q, k, v):
    return stable(scaled(q, k)) @ v


@wrong("1.4", "mask-inverted")
def _(q, k, v):
    mask = np.triu(np.ones((len(q), len(q))))
    return stable(np.where(mask == 1, scaled(q, k), -np.inf)) @ v


@wrong("1.4", "mask-inverted")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q)), dtype=bool))
    s = scaled(q, k)
    s[mask] = -np.inf
    return stable(s) @ v


@wrong("1.4", "diagonal-masked")
def _(q, k, v):
    s = scaled(q, k)
    s[np.triu_indices(len(q))] = -np.inf
    return stable(s) @ v


@wrong("1.4", "off-by-one")
def _(q, k, v):
    s = scaled(q, k)
    for i in range(len(q)):
        s[i, i + 2 :] = -np.inf
    return stable(s) @ v


@wrong("1.4", "masked-with-zero")
def _(q, k, v):
    return stable(np.tril(scaled(q, k))) @ v


@wrong("1.4", "masked-after-softmax")
def _(q, k, v):
    return np.tril(stable(scaled(q, k))) @ v


@wrong("1.4", "renormalised-after-softmax")
def _(q, k, v):
    w = np.tril(stable(scaled(q, k)))
    return w / w.sum(axis=-1, keepdims=True) @ v


@wrong("1.4", "all-nan")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(scaled(q, k) + (1 - mask) * -np.inf) @ v


@wrong("1.4", "masked-with-too-small-a-number")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(np.where(mask, scaled(q, k), -100)) @ v


@wrong("1.4", "no-scale")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(np.where(mask, q @ k.T, -1e9)) @ v


@wrong("1.4", "divided-by-d_k")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(np.where(mask, q @ k.T / k.shape[-1], -np.inf)) @ v


@wrong("1.4", "multiplied-by-sqrt-d_k")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(np.where(mask, q @ k.T * k.shape[-1] ** 0.5, -np.inf)) @ v


@wrong("1.4", "scale-hard-coded")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(np.where(mask, q @ k.T / 2, -np.inf)) @ v


@wrong("1.4", "softmax-wrong-axis")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(np.where(mask, scaled(q, k), -np.inf), axis=0) @ v


@wrong("1.4", "keys-for-values")
def _(q, k, v):
    mask = np.tril(np.ones((len(q), len(q))))
    return stable(np.where(mask, scaled(q, k), -np.inf)) @ k


@wrong("1.4", "running-mean")
def _(q, k, v):
    return np.array([v[: i + 1].mean(axis=0) for i in range(len(v))])


@wrong("1.4", "overflows")
def _(q, k, v):
    e = np.exp(scaled(q, k)) * np.tril(np.ones((len(q), len(q))))
    return e / e.sum(axis=-1, keepdims=True) @ v


@wrong("1.4", "first-row-is-not-v0")
def _(q, k, v):
    return stable(np.tril(q @ k.T)) @ v


@wrong("1.4", "changes-its-input")
def _(q, k, v):
    q *= 1 / np.sqrt(q.shape[-1])
    return stable(np.where(np.tri(len(q)), q @ k.T, -np.inf)) @ v


# --- Hostile ones, whatever the exercise ---


@hostile("1.1", "did-not-finish")
def _(q, k):
    while True:
        pass


@hostile("1.3", "did-not-finish")
def _(q, k, v):
    while True:
        try:  # noqa: SIM105 (as readers write it)
            sum(range(100))
        except BaseException:
            pass


@hostile("1.2", "exits")
def _(scores):
    sys.exit(0)


@hostile("1.2", "exits")
def _(scores):
    raise KeyboardInterrupt


@hostile("1.1", "wrong-type")
def _(q, k):
    return "q times k"


@hostile("1.1", "wrong-type")
def _(q, k):
    return [["a", "b"], ["c", "d"]]


@hostile("1.1", "wrong-type")
def _(q, k):
    return {"scores": q @ k.T}


@hostile("1.1", "wrong-type")
def _(q, k):
    return [[1.0], [1.0, 2.0]]


@hostile("1.1", "wrong-type")
def _(q, k):
    yield q @ k.T


@hostile("1.1", "wrong-type")
async def _(q, k):
    return q @ k.T


@hostile("1.1", "wrong-type")
def _(q, k):
    return np.array([[object()]])


@hostile("1.1", "complex-numbers")
def _(q, k):
    return (q @ k.T) * (1 + 0j)


@hostile("1.2", "not-deterministic")
def _(scores):
    return stable(scores + np.random.normal(size=scores.shape))  # noqa: NPY002


_calls = itertools.count()


@hostile("1.2", "not-deterministic")
def _(scores):
    return stable(scores) if next(_calls) == 0 else scores * 0


@hostile("1.2", "not-deterministic")
def _(scores):
    if random.random() < 0.5:
        return None
    return stable(scores)


@hostile("1.2", "scores-unchanged")
def _(scores):
    return scores


@hostile("1.1", "wrong-shape")
def _(q, k):
    return q


@hostile("1.1", "wrong-shape")
def _(q, k):
    return float((q @ k.T).sum())


@hostile("1.1", "wrong-shape")
def _(q, k):
    return np.zeros((400, 400))


@hostile("1.1", "wrong-shape")
def _(q, k):
    return np.broadcast_to(1.0, (10**7, 10**7))


@hostile("1.1", "wrong-shape")
def _(q, k):
    return np.empty((0, 3))


@hostile("1.2", "not-finite|rows-do-not-sum-to-1")
def _(scores):
    return scores * np.nan


@hostile("1.2", "not-finite|rows-do-not-sum-to-1")
def _(scores):
    return np.full(scores.shape, np.inf)


@hostile("1.1", "unknown")
def _(q, k):
    for i in range(5000):
        print("line", i)
    return np.zeros((len(q), len(k)))


@hostile("1.1", "prints-instead-of-returning")
def _(q, k):
    print(q @ k.T)


@hostile("1.1", "asks-for-input")
def _(q, k):
    return float(input("What is q times k? "))


@hostile("1.1", "wrong-arguments")
def _(q):
    return q @ q.T


@hostile("1.1", "wrong-arguments")
def _(q, k, v):
    return q @ k.T


@hostile("1.1", "raises-error")
def _(q, k):
    return _(q, k) + scores_that_do_not_exist  # noqa: F821


@hostile("1.1", "raises-error")
def _recursive(q, k):
    return _recursive(q, k)


@hostile("1.1", "raises-error")
def _(q, k):
    return np.ones(10**15)


@hostile("1.1", "raises-error")
def _(q, k):
    class Rude(Exception):
        def __str__(self):
            raise ValueError("no")

    raise Rude


@hostile("1.1", "returns-none")
def _(q, k):
    if len(q) > 2:
        return None
    return q @ k.T


@hostile("1.1", "raises-error")
def _(q, k):
    class Trap:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("not an array after all")

    return Trap()


@hostile("1.1", "changes-its-input")
def _(q, k):
    result = q @ k.T
    q.shape = q.shape[::-1]
    return result


@hostile("1.1", "too-slow")
def _(q, k):
    time.sleep(0.9)
    return q @ k.T


# --- Right, in other words ---


@right("1.1")
def _(q, k):
    return [[sum(x * y for x, y in zip(a, b, strict=True)) for b in k] for a in q]


@right("1.1")
def _(q, k):
    return np.einsum("qd,kd->qk", q, k)


@right("1.1")
def _(q, k):
    return (q.astype(np.float32) @ k.astype(np.float32).T).astype(np.float32)


@right("1.1")
def _(q, k):
    return (k @ q.T).T


@right("1.1")
def _(q, k):
    print("working …")
    return np.matrix(q) @ np.matrix(k).T


@right("1.1")
def _(q, k):
    return (q @ k.T).astype(object)


@right("1.2")
def _(scores):
    out = []
    for row in scores.tolist():
        e = [math.exp(x - max(row)) for x in row]
        out.append([x / sum(e) for x in e])
    return out


@right("1.2")
def _(scores):
    return 1 / np.exp(scores[:, None, :] - scores[:, :, None]).sum(axis=-1)


@right("1.2")
def _(scores):
    scores = scores.astype(np.float32)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@right("1.2")
def _(scores):
    log_sum = np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    return np.exp(scores - log_sum)


@right("1.2")
def _(scores):
    scores = np.array(scores)
    scores -= scores.max(axis=1)[:, np.newaxis]
    return (np.exp(scores).T / np.exp(scores).sum(axis=1)).T


@right("1.3")
def _(q, k, v):
    return stable(q @ k.T / q.shape[-1] ** 0.5) @ v


@right("1.3")
def _(q, k, v):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    return stable(np.einsum("qd,kd->qk", q, k) * k.shape[1] ** -0.5) @ v


@right("1.3")
def _(q, k, v):
    out = np.zeros((len(q), v.shape[1]))
    for i, query in enumerate(q):
        weights = stable(np.array([query @ key for key in k]) / math.sqrt(len(query)))
        for w, value in zip(weights, v, strict=True):
            out[i] += w * value
    return out


@right("1.3")
def _(q, k, v):
    d = k.shape[-1] ** 0.25
    return stable((q / d) @ (k / d).T) @ v


@right("1.4")
def _(q, k, v):
    return stable(scaled(q, k) + np.triu(np.full((len(q), len(q)), -np.inf), 1)) @ v


@right("1.4")
def _(q, k, v):
    return stable(np.where(np.tri(len(q)), scaled(q, k), -1e9)) @ v


@right("1.4")
def _(q, k, v):
    return np.array(
        [(stable(scaled(q[i : i + 1], k[: i + 1])) @ v[: i + 1])[0] for i in range(len(q))]
    )


@right("1.4")
def _(q, k, v):
    s = scaled(q, k)
    s[np.triu_indices(len(q), 1)] = -np.inf
    return stable(s.astype(np.float32)) @ v.astype(np.float32)
