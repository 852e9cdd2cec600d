"""Sick in the scale, the softmax, or what meets what. NumPy."""

import math

import numpy as np

from doctor_cases.patients import scores, soft, ward

DISEASED, sick = ward()

# --- The scale ---


@sick("no-scale")
def _(q, k, v):
    return soft(q @ k.mT) @ v


@sick("no-scale")  # and it overflows as well
def _(q, k, v):
    e = np.exp(np.einsum("bhid,bhjd->bhij", q, k))
    return e / e.sum(-1, keepdims=True) @ v


@sick("no-scale", layout="TD")
def _(q, k, v):
    return soft(q @ k.T) @ v


@sick("no-scale", causal=True)
def _(q, k, v):
    s = np.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), q @ k.mT, -np.inf)
    return soft(s) @ v


@sick("scale-unasked", scale=1)
def _(q, k, v):
    return soft(scores(q, k)) @ v


@sick("divided-by-d_k|scale-twice")
def _(q, k, v):
    return soft(q @ k.mT / q.shape[-1]) @ v


@sick("divided-by-d_k|scale-twice")
def _(q, k, v):
    q = q / np.sqrt(q.shape[-1])
    return soft(q @ k.mT / np.sqrt(q.shape[-1])) @ v


@sick("scale-twice", scale="1/d_k")
def _(q, k, v):
    return soft(q @ k.mT / q.shape[-1] ** 2) @ v


@sick("divided-by-d_k", scale=0.5)
def _(q, k, v):
    return soft(q @ k.mT / q.shape[-1]) @ v


@sick("scale-half-applied")
def _(q, k, v):
    return soft((q * q.shape[-1] ** -0.25) @ k.mT) @ v


@sick("scale-by-d_model")
def _(q, k, v):
    d_model = q.shape[1] * q.shape[-1]
    return soft(q @ k.mT / math.sqrt(d_model)) @ v


@sick("scale-by-d_model", layout="BTHD")
def _(q, k, v):
    d_model = q.shape[2] * q.shape[3]
    s = np.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(d_model)
    return np.einsum("bhij,bjhd->bihd", soft(s), v)


@sick("scale-by-heads")
def _(q, k, v):
    return soft(q @ k.mT / np.sqrt(q.shape[1])) @ v


@sick("scale-multiplied")
def _(q, k, v):
    return soft(q @ k.mT * np.sqrt(q.shape[-1])) @ v


@sick("scale-by-d_v")
def _(q, k, v):
    return soft(q @ k.mT / np.sqrt(v.shape[-1])) @ v


@sick("scale-by-length")
def _(q, k, v):
    return soft(q @ k.mT / np.sqrt(k.shape[-2])) @ v


@sick("scale-by-length")
def _(q, k, v):
    return soft(q @ k.mT / np.sqrt(q.shape[-2])) @ v


@sick("scale-truncated")
def _(q, k, v):
    return soft(q @ k.mT / int(q.shape[-1] ** 0.5)) @ v


@sick("scores-floored")
def _(q, k, v):
    return soft(q @ k.mT // np.sqrt(q.shape[-1])) @ v


@sick("scale-after-softmax")
def _(q, k, v):
    return soft(q @ k.mT) @ v / np.sqrt(q.shape[-1])


@sick("scale-before-and-after")
def _(q, k, v):
    return soft(scores(q, k)) @ v / np.sqrt(q.shape[-1])


@sick("scale-hard-coded")
def _(q, k, v):
    return soft(q @ k.mT / 8) @ v


@sick("scale-hard-coded", layout="BTD")
def _(q, k, v):
    return soft(q @ k.mT * 0.7) @ v


@sick("wrong-scale")
def _(q, k, v):
    return soft(q @ k.mT / q.shape[-1] ** 0.7) @ v


@sick("wrong-scale")
def _(q, k, v):
    return soft(1.3 * scores(q, k)) @ v


# --- The softmax ---


@sick("softmax-over-queries")
def _(q, k, v):
    return soft(scores(q, k), axis=-2) @ v


@sick("softmax-over-heads")
def _(q, k, v):
    return soft(scores(q, k), axis=1) @ v


@sick("softmax-over-batch")
def _(q, k, v):
    return soft(scores(q, k), axis=0) @ v


@sick("softmax-over-everything")
def _(q, k, v):
    e = np.exp(scores(q, k))
    return e / e.sum(axis=(-1, -2), keepdims=True) @ v


@sick("softmax-over-everything")
def _(q, k, v):
    e = np.exp(scores(q, k))
    return e / e.sum() @ v


@sick("exp2-without-log2e")
def _(q, k, v):
    s = scores(q, k)
    e = np.exp2(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@sick("softmax-twice")
def _(q, k, v):
    return soft(soft(scores(q, k))) @ v


@sick("not-normalised")
def _(q, k, v):
    return np.exp(scores(q, k)) @ v


@sick("not-normalised")
def _(q, k, v):
    s = scores(q, k)
    return np.exp(s - s.max(-1, keepdims=True)) @ v


@sick("softmax-plus-one")
def _(q, k, v):
    e = np.exp(scores(q, k))
    return e / (1 + e.sum(-1, keepdims=True)) @ v


@sick("softmax-plus-one")
def _(q, k, v):
    s = scores(q, k)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / (1 + e.sum(-1, keepdims=True)) @ v


@sick("no-softmax")
def _(q, k, v):
    return scores(q, k) @ v


@sick("sigmoid")
def _(q, k, v):
    return 1 / (1 + np.exp(-scores(q, k))) @ v


@sick("winner-takes-all")
def _(q, k, v):
    best = scores(q, k).argmax(-1)
    return np.take_along_axis(v, best[..., None], axis=-2)


@sick("sign-reversed")
def _(q, k, v):
    s = scores(q, k)
    e = np.exp(s.min(-1, keepdims=True) - s)
    return e / e.sum(-1, keepdims=True) @ v


@sick("absolute-scores")
def _(q, k, v):
    return soft(np.abs(scores(q, k))) @ v


@sick("maximum-of-the-columns")
def _(q, k, v):
    s = scores(q, k)
    e = np.exp(s - s.max(-2, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@sick("logarithm-of-the-weights")
def _(q, k, v):
    s = scores(q, k)
    return (s - np.log(np.exp(s).sum(-1, keepdims=True))) @ v


@sick("weights-do-not-sum-to-1")
def _(q, k, v):
    e = np.exp(scores(q, k))
    return e / (e.sum(-1, keepdims=True) + 0.1) @ v


@sick("weights-do-not-sum-to-1")
def _(q, k, v):
    return soft(scores(q, k)) @ v * 1.01


# --- What meets what ---


@sick("queries-and-keys-swapped")
def _(q, k, v):
    return soft(k @ q.mT / np.sqrt(q.shape[-1])) @ v


@sick("weights-transposed")
def _(q, k, v):
    return soft(scores(q, k)).mT @ v


@sick("queries-with-queries")
def _(q, k, v):
    return soft(scores(q, q)) @ v


@sick("keys-with-keys")
def _(q, k, v):
    return soft(scores(k, k)) @ v


@sick("keys-as-values")
def _(q, k, v):
    return soft(scores(q, k)) @ k


@sick("values-as-keys")
def _(q, k, v):
    return soft(scores(q, v)) @ v


@sick("cosine-scores")
def _(q, k, v):
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    return soft(q @ k.mT) @ v


@sick("features-dropped")
def _(q, k, v):
    s = sum(q[..., :, None, i] * k[..., None, :, i] for i in range(q.shape[-1] // 4 * 4))
    return soft(s / np.sqrt(q.shape[-1])) @ v


@sick("features-dropped")
def _(q, k, v):
    return soft(q[..., :64] @ k[..., :64].mT / np.sqrt(q.shape[-1])) @ v


@sick("wrong-above-64-features")
def _(q, k, v):
    out = soft(scores(q, k)) @ v
    out[..., 64:] = 0
    return out


@sick("last-key-dropped")
def _(q, k, v):
    return soft(scores(q, k[..., :-1, :])) @ v[..., :-1, :]


@sick("last-key-dropped", layout="TD")
def _(q, k, v):
    out = np.zeros((len(q), v.shape[-1]))
    for i in range(len(q)):
        e = [math.exp(q[i] @ k[j] / math.sqrt(len(q[i]))) for j in range(len(k) - 1)]
        out[i] = sum(w * v[j] for j, w in enumerate(e)) / sum(e)
    return out


@sick("first-key-dropped")
def _(q, k, v):
    return soft(scores(q, k[..., 1:, :])) @ v[..., 1:, :]


@sick("last-query-dropped")
def _(q, k, v):
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for i in range(q.shape[-2] - 1):
        out[..., i, :] = (soft(scores(q[..., i : i + 1, :], k)) @ v)[..., 0, :]
    return out


@sick("mean-of-the-values")
def _(q, k, v):
    return soft(0 * scores(q, k)) @ v


@sick("causal-unasked")
def _(q, k, v):
    s = scores(q, k)
    return soft(np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)) @ v


# --- Floating point ---


@sick("overflows")
def _(q, k, v):
    e = np.exp(scores(q, k))
    return e / e.sum(-1, keepdims=True) @ v


@sick("overflows")
def _(q, k, v):
    e = np.exp(scores(q, k))
    return np.nan_to_num(e / (e.sum(-1, keepdims=True) + 1e-12)) @ v


@sick("overflows", layout="TD")
def _(q, k, v):
    rows = []
    for query in q.tolist():
        e = [
            math.exp(sum(map(float.__mul__, query, key)) / len(query) ** 0.5) for key in k.tolist()
        ]
        rows.append([sum(w * x for w, x in zip(e, column)) / sum(e) for column in v.T.tolist()])
    return np.array(rows)


@sick("maximum-of-everything")
def _(q, k, v):
    s = scores(q, k)
    e = np.exp(s - s.max())
    return e / e.sum(-1, keepdims=True) @ v


@sick("scores-clipped")
def _(q, k, v):
    return soft(np.clip(scores(q, k), -80, 80)) @ v


@sick("wrong-on-large-scores")
def _(q, k, v):
    s = scores(q, k)
    return soft(np.where(np.abs(s) > 100, np.sign(s) * 10 * np.log(np.abs(s) + 1), s)) @ v


@sick("low-precision")
def _(q, k, v):
    q, k, v = (x.astype(np.float16) for x in (q, k, v))
    return (soft(scores(q, k)).astype(np.float16) @ v).astype(np.float32)


@sick("low-precision")
def _(q, k, v):
    return soft(scores(q, k).astype(np.float16)).astype(np.float32) @ v


@sick("low-precision-accumulation")
def _(q, k, v):
    weights, out = soft(scores(q, k)), np.zeros((*q.shape[:-1], v.shape[-1]), np.float16)
    for j in range(k.shape[-2]):
        out = (out + weights[..., j, None] * v[..., j, None, :]).astype(np.float16)
    return out.astype(np.float32)


@sick("imprecise")
def _(q, k, v):
    return soft(scores(q, k)) @ v + 1e-4


@sick("imprecise")
def _(q, k, v):
    return np.round(soft(scores(q, k)), 5) @ v


# --- Functions that do not get that far, or do more than they should ---


@sick("needs-equal-lengths")
def _(q, k, v):
    assert q.shape[-2] == k.shape[-2]
    return soft(scores(q, k)) @ v


@sick("needs-equal-widths")
def _(q, k, v):
    out = np.zeros_like(q)
    out += soft(scores(q, k)) @ v
    return out


@sick("needs-one-head")
def _(q, k, v):
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    out[0, 0] = soft(scores(q[0, 0], k[0, 0])) @ v[0, 0]
    return out


@sick("needs-two-axes")
def _(q, k, v):
    return soft(q @ k.T / np.sqrt(q.shape[-1])) @ v


@sick("needs-two-axes")  # with another disease
def _(q, k, v):
    return soft(q @ k.T) @ v


@sick("wrong-arguments")
def _(x):
    return x


@sick("wrong-arguments")
def _(q, k, v, temperature):
    return soft(scores(q, k) / temperature) @ v


@sick("raises")
def _(q, k, v):
    raise ValueError("no")


@sick("raises")
def _(q, k, v):
    raise NotImplementedError


@sick("did-not-finish", seconds=0.2)
def _(q, k, v):
    while True:
        pass


@sick("exits")
def _(q, k, v):
    raise SystemExit(0)


@sick("asks-for-input")
def _(q, k, v):
    return float(input("scale? ")) * q


@sick("returns-nothing")
def _(q, k, v):
    soft(scores(q, k)) @ v


@sick("wrong-type")
def _(q, k, v):
    return "attention"


@sick("wrong-type")
def _(q, k, v):
    return (soft(scores(q, k)) @ v).astype(complex)


@sick("wrong-shape")
def _(q, k, v):
    return soft(scores(q, k))


@sick("wrong-shape")
def _(q, k, v):
    return (soft(scores(q, k)) @ v).sum(-1)


@sick("not-finite")
def _(q, k, v):
    return np.log(-np.abs(soft(scores(q, k)) @ v) - 1)


@sick("unknown")
def _(q, k, v):
    return soft(np.tanh(scores(q, k))) @ v


@sick("changes-its-input")
def _(q, k, v):
    q /= np.sqrt(q.shape[-1])
    return soft(q @ k.mT) @ v


@sick("changes-its-input")
def _(q, k, v):
    out = soft(scores(q, k)) @ v
    v[...] = 0
    return out


@sick("dropout-active")
def _(q, k, v):
    weights = soft(scores(q, k))
    return weights * (np.random.default_rng().random(weights.shape) > 0.3) / 0.7 @ v


@sick("dropout-active")  # the same entries every time
def _(q, k, v):
    weights = soft(scores(q, k))
    return weights * (np.random.default_rng(1).random(weights.shape) > 0.5) / 0.5 @ v


@sick("not-deterministic")
def _(q, k, v):
    return soft(scores(q, k)) @ v + 0.1 * np.random.default_rng().normal()


class Remembers:
    """Keeps the result for each shape."""

    def __init__(self):
        self.cache = {}

    def __call__(self, q, k, v):
        if q.shape not in self.cache:
            self.cache[q.shape] = soft(scores(q, k)) @ v
        return self.cache[q.shape].copy()


class GrowsTired:
    """Right the first three times that a shape comes, then no longer."""

    def __init__(self):
        self.calls = {}

    def __call__(self, q, k, v):
        self.calls[q.shape] = self.calls.get(q.shape, 0) + 1
        return soft(scores(q, k)) @ v * (1 if self.calls[q.shape] < 4 else 0.5)


class SameMemory:
    """Writes each result of a shape into the same array."""

    def __init__(self):
        self.memory = {}

    def __call__(self, q, k, v):
        shape = (*q.shape[:-1], v.shape[-1])
        out = self.memory.setdefault(shape, np.empty(shape))
        out[...] = soft(scores(q, k)) @ v
        return out


sick("depends-on-earlier-calls")(Remembers)
sick("depends-on-earlier-calls")(GrowsTired)
sick("reuses-its-output")(SameMemory)


@sick("needs-contiguous")
def _(q, k, v):
    q, k, v = (np.ndarray(x.shape, x.dtype, x.base if x.base is not None else x) for x in (q, k, v))
    return soft(scores(q, k)) @ v


@sick("needs-contiguous")
def _(q, k, v):
    if not all(x.flags.c_contiguous for x in (q, k, v)):
        raise ValueError("contiguous arrays, please")
    return soft(scores(q, k)) @ v
