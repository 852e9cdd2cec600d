"""Heads, tokens and sequences mixed up; grouped heads; a given scale. NumPy."""

import numpy as np

from doctor_cases.patients import scores, soft, ward

DISEASED, sick = ward()


def attention(q, k, v):
    return soft(scores(q, k)) @ v


@sick("heads-mixed-in-the-inputs")
def _(q, k, v):
    def split(x):
        B, H, T, d = x.shape
        return x.reshape(B, T, H, d).transpose(0, 2, 1, 3)

    return attention(split(q), split(k), split(v))


@sick("heads-mixed-in-the-inputs", layout="BTHD")
def _(q, k, v):
    def split(x):
        B, T, H, d = x.shape
        return x.reshape(B, H, T, d)

    return attention(split(q), split(k), split(v)).transpose(0, 2, 1, 3)


@sick("heads-mixed-in-the-inputs", layout="BTHD")
def _(q, k, v):
    def split(x):
        B, T, H, d = x.shape
        return x.reshape(B, H, T, d)

    return attention(split(q), split(k), split(v)).reshape(*q.shape[:3], v.shape[-1])


@sick("heads-mixed-in-the-output", layout="BTHD")
def _(q, k, v):
    out = attention(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)))
    return out.reshape(*q.shape[:3], v.shape[-1])


@sick("heads-mixed-in-the-output")
def _(q, k, v):
    out = attention(q, k, v)
    return out.transpose(0, 2, 1, 3).reshape(out.shape)


@sick("heads-and-tokens-swapped")
def _(q, k, v):
    s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhij,bjhd->bihd", soft(s), v)


@sick("heads-and-tokens-swapped", layout="BTHD")
def _(q, k, v):
    return attention(q, k, v)


@sick("attends-across-heads")
def _(q, k, v):
    flat = (x.reshape(len(x), -1, x.shape[-1]) for x in (q, k, v))
    return attention(*flat).reshape(*q.shape[:3], v.shape[-1])


@sick("attends-across-the-batch", layout="BTD")
def _(q, k, v):
    out = attention(*(x.reshape(-1, x.shape[-1]) for x in (q, k, v)))
    return out.reshape(*q.shape[:2], v.shape[-1])


@sick("first-head-for-all")
def _(q, k, v):
    return attention(q, k[:, :1], v[:, :1])


@sick("first-head-for-all", layout="HTD")
def _(q, k, v):
    return np.stack([attention(q[h], k[0], v[h]) for h in range(len(q))])


@sick("first-sequence-for-all")
def _(q, k, v):
    return attention(q, k[:1], v[:1])


@sick("output-layout")
def _(q, k, v):
    return attention(q, k, v).transpose(0, 2, 1, 3)


@sick("output-layout")
def _(q, k, v):
    out = attention(q, k, v).transpose(0, 2, 1, 3)
    return out.reshape(*out.shape[:2], -1)


@sick("axes-squeezed")
def _(q, k, v):
    return attention(q, k, v).squeeze()


# --- Grouped heads ---


@sick("gqa-heads-tiled")
def _(q, k, v, enable_gqa=False):
    times = (1, q.shape[1] // k.shape[1], 1, 1)
    return attention(q, np.tile(k, times), np.tile(v, times))


@sick("gqa-heads-tiled", layout="BTHD")
def _(q, k, v, enable_gqa=False):
    times = (1, 1, q.shape[2] // k.shape[2], 1)
    k, v = np.tile(k, times), np.tile(v, times)
    return attention(*(x.transpose(0, 2, 1, 3) for x in (q, k, v))).transpose(0, 2, 1, 3)


@sick("gqa-first-head-for-all")
def _(query, key, value, enable_gqa=False):
    return attention(query, *((x[:, :1] if enable_gqa else x) for x in (key, value)))


@sick("gqa-fails")
def _(q, k, v, enable_gqa=False):
    return attention(q, k, v)


# --- A given scale ---


@sick("scale-argument-ignored")
def _(q, k, v, scale=None):
    return attention(q, k, v)


@sick("scale-argument-on-top")
def _(q, k, v, scale=1.0):
    return soft(scores(q, k) * scale) @ v


@sick("scale-argument-on-top")
def _(q, k, v, softmax_scale=None):
    return soft(scores(q, k) * (1 if softmax_scale is None else softmax_scale)) @ v


@sick("scale-argument-divides")
def _(q, k, v, scale=None):
    return soft(q @ k.mT / (np.sqrt(q.shape[-1]) if scale is None else scale)) @ v


@sick("scale-argument-twice")
def _(q, k, v, scale=None):
    given = q.shape[-1] ** -0.25 if scale is None else scale
    return soft((q * given) @ (k * given).mT) @ v


@sick("scale-zero-ignored")
def _(q, k, v, sm_scale=None):
    return soft(q @ k.mT * (sm_scale or q.shape[-1] ** -0.5)) @ v
