"""Wrong functions that the doctor only has to reject, under whatever name."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from doctor_cases.patients import additive, safe, scores, soft, ward

REJECTED, wrong = ward()


def attention(q, k, v):
    return soft(scores(q, k)) @ v


def changed(change):
    """Scores that are changed before the softmax."""
    return lambda q, k, v: soft(change(scores(q, k))) @ v


wrong()(changed(lambda s: s + 0.01 * np.arange(s.shape[-1])))  # ALiBi of a kind
wrong()(changed(lambda s: s - 0.1 * np.abs(np.subtract.outer(*map(np.arange, s.shape[-2:])))))
wrong()(changed(lambda s: 20 * np.tanh(s / 20)))  # soft-capped
wrong()(changed(lambda s: np.maximum(s, 0)))
wrong()(changed(lambda s: np.maximum(s, -3)))
wrong()(changed(np.round))
wrong()(changed(np.square))
wrong()(changed(lambda s: s * np.log(max(s.shape[-1], 2))))  # SSMax
wrong()(changed(lambda s: s - s.mean(-2, keepdims=True)))
wrong()(changed(lambda s: np.where(s < np.sort(s, -1)[..., -4:, None][..., 0, :1], -np.inf, s)))
wrong()(changed(lambda s: s[..., ::-1]))
wrong()(changed(lambda s: np.roll(s, 1, axis=-1)))
wrong()(changed(lambda s: s + s.mT if s.shape[-1] == s.shape[-2] else s))
wrong()(changed(lambda s: np.where(np.eye(*s.shape[-2:]) == 1, -1e9, s)))  # blind to itself
wrong()(
    changed(
        lambda s: np.where(
            np.abs(np.subtract.outer(*map(np.arange, s.shape[-2:]))) > 64, -np.inf, s
        )
    )
)  # a window


@wrong()
def _(q, k, v):
    return attention(q - q.mean(-1, keepdims=True), k, v)


@wrong()
def _(q, k, v):
    return attention(q, k, v - v.mean(-2, keepdims=True))


@wrong()
def _(q, k, v):
    return attention(q, k, v) + q[..., : v.shape[-1]].mean()


@wrong()
def _(q, k, v):
    return attention(q[..., ::-1], k, v)


@wrong()
def _(q, k, v):
    return attention(q, k[..., ::-1, :], v)


@wrong()
def _(q, k, v):
    return attention(q, k, v)[..., ::-1, :]


@wrong()
def _(q, k, v):
    return attention(q, k, np.abs(v))


@wrong()
def _(q, k, v):
    out = attention(q, k, v)
    out[..., 0, 0] += 0.01
    return out


@wrong()
def _(q, k, v):
    s = scores(q, k)
    e = np.exp(s - s.max(-1, keepdims=True)) ** 2
    return np.sqrt(e / e.sum(-1, keepdims=True)) @ v


@wrong()
def _(q, k, v):  # Taylor series
    s = scores(q, k)
    e = 1 + s + s**2 / 2
    return e / e.sum(-1, keepdims=True) @ v


@wrong()
def _(q, k, v):  # linear attention
    f, g = np.exp(q / q.shape[-1] ** 0.5), np.exp(k)
    return f @ (g.mT @ v) / (f @ g.sum(-2, keepdims=True).mT)


@wrong()
def _(q, k, v):
    return np.zeros((*q.shape[:-1], v.shape[-1]))


@wrong()
def _(q, k, v):
    return np.random.default_rng(0).normal(size=(*q.shape[:-1], v.shape[-1]))


@wrong()
def _(q, k, v):
    if k.shape[-2] > 1000:
        k, v = k[..., :1000, :], v[..., :1000, :]
    return attention(q, k, v)


@wrong()
def _(q, k, v):
    out = attention(q, k, v)
    return np.where(np.arange(q.shape[-2])[:, None] < 512, out, 0)


@wrong()
def _(q, k, v):
    return attention(q, k, v).astype(int)


@wrong()
def _(q, k, v):
    return attention(q, k, v)[..., :-1]


@wrong()
def _(q, k, v):
    if q.shape[-2] == 1:
        return attention(q, k, v)[..., 0, :]
    return attention(q, k, v)


@wrong()
def _(q, k, v):
    raise RecursionError


@wrong()
def _(q, k, v):
    return exec("a = b")


@wrong()
async def _(q, k, v):
    return attention(q, k, v)


@wrong()
def _(q, k, v):
    yield attention(q, k, v)


class Evil:
    """Fails however it is looked at."""

    def __getattr__(self, name):
        raise RuntimeError("do not touch")

    def __array__(self, *args, **kwargs):
        raise SystemExit


@wrong()
def _(q, k, v):
    return Evil()


@wrong(seconds=0.2)
def _(q, k, v):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue


@wrong()
def _(q, k, v, attn_mask=None, is_causal=False):
    s = scores(q, k)
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], k=2) == 1, s, -np.inf)
    return safe(s + additive(attn_mask)) @ v


@wrong()
def _(q, k, v, attn_mask=None):
    s = scores(q, k)
    return safe(s if attn_mask is None else s + np.where(attn_mask.astype(bool), 0, -2)) @ v


@wrong()
def _(q, k, v, mask=None):
    return safe(scores(q, k) + additive(None if mask is None else np.roll(mask, 1, -1))) @ v


@wrong()
def _(q, k, v, scale=None):
    return soft(scores(q, k) if scale is None else q @ k.mT * abs(scale + 0.1)) @ v


@wrong()
def _(q, k, v):  # the third sequence gets the keys of the first
    b = np.arange(q.shape[0]) % 2
    return attention(q, k[b], v[b])


@wrong()
def _(q, k, v):  # the ninth head gets the keys of the first
    h = np.arange(q.shape[1]) % 8
    return attention(q, k[:, h], v[:, h])


@wrong()
def _(q, k, v):  # zeros are taken for padding
    s = scores(q, k)
    padding = (k == 0).all(-1)[..., None, :]
    return soft(np.where(padding, -np.inf, s)) @ v


@wrong()
def _(q, k, v, scale=None):
    return soft(scores(q, k) if scale is None else q @ k.mT * round(scale, 2)) @ v


@wrong()
def _(q, k, v, enable_gqa=False):
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.tile(v, (1, group, 1, 1))
    return attention(q, k, v)


@wrong(scale=1)
def _(q, k, v):
    return soft(1.1 * q @ k.mT) @ v


@wrong(causal=True)
def _(q, k, v):
    s = scores(q, k)
    return soft(np.where(np.tri(*s.shape[-2:], k=3) == 1, s, -np.inf)) @ v


@wrong(layout="TD")
def _(q, k, v):
    return attention(q, k, v)[::-1]


@wrong()
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k, v) * 1.001


@wrong()
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k + 0.01 * torch.randn_like(k), v)


@wrong()
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k, v) + (q.sum() - q.sum().detach())


@wrong()
def _(q, k, v):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return torch.softmax(s.clamp(max=3.0), dim=-1) @ v


@wrong(dtype="bfloat16")
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=0.4)


@wrong(dtype="float16")
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong(dtype="bfloat16")
def _(q, k, v):
    return torch.softmax((q @ k.mT / math.sqrt(q.size(-1))).float(), dim=-2).to(v.dtype) @ v
