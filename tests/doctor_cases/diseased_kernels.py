"""Blocks of queries and keys, and the online softmax gone wrong. NumPy."""

import numpy as np

from doctor_cases.patients import scores, soft, ward

DISEASED, sick = ward()


def online(q, k, v, block=64, keep_acc=None, keep_sum=None):
    """An online softmax over blocks of keys; keep_… say what becomes of the old numbers."""
    keep = lambda old, m_old, m: old * np.exp(m_old - m)  # noqa: E731
    keep_acc, keep_sum = keep_acc or keep, keep_sum or keep
    T = k.shape[-2]
    m = np.full((*q.shape[:-1], 1), -1e30)
    total, acc = np.zeros_like(m), np.zeros((*q.shape[:-1], v.shape[-1]))
    for start in range(0, T, block):
        s = scores(q, k[..., start : start + block, :])
        new = np.maximum(m, s.max(-1, keepdims=True))
        p = np.exp(s - new)
        acc = keep_acc(acc, m, new) + p @ v[..., start : start + block, :]
        total = keep_sum(total, m, new) + p.sum(-1, keepdims=True)
        m = new
    return acc / total


def unchanged(old, m_old, m):
    return old


def inverse(old, m_old, m):
    return old * np.exp(np.minimum(m - m_old, 80)) if old.any() else old


@sick("accumulator-not-rescaled")
def _(q, k, v):
    return online(q, k, v, 64, keep_acc=unchanged)


@sick("accumulator-not-rescaled")
def _(q, k, v):
    return online(q, k, v, 1, keep_acc=unchanged)


@sick("normaliser-not-rescaled")
def _(q, k, v):
    return online(q, k, v, 32, keep_sum=unchanged)


@sick("normaliser-not-rescaled")
def _(q, k, v):
    return online(q, k, v, 512, keep_sum=unchanged)


@sick("nothing-rescaled")
def _(q, k, v):
    return online(q, k, v, 16, unchanged, unchanged)


@sick("rescaled-inversely")
def _(q, k, v):
    return online(q, k, v, 128, inverse, inverse)


@sick("wrong-with-many-keys")  # a block size of its own
def _(q, k, v):
    return online(q, k, v, 50, keep_acc=unchanged)


@sick("blocks-averaged")
def _(q, k, v):
    parts = [
        soft(scores(q, k[..., i : i + 64, :])) @ v[..., i : i + 64, :]
        for i in range(0, k.shape[-2], 64)
    ]
    return sum(parts) / len(parts)


@sick("one-block-only")
def _(q, k, v):
    return soft(scores(q, k[..., :128, :])) @ v[..., :128, :]


@sick("one-block-only")
def _(q, k, v):
    for i in range(0, k.shape[-2], 32):
        out = soft(scores(q, k[..., i : i + 32, :])) @ v[..., i : i + 32, :]
    return out


@sick("keys-after-last-whole-block-dropped")
def _(q, k, v):
    keys = k.shape[-2] // 16 * 16
    return soft(scores(q, k[..., :keys, :])) @ v[..., :keys, :]


@sick("padding-takes-weight")
def _(q, k, v):
    pad = ((0, 0), (0, 0), (0, -k.shape[-2] % 64), (0, 0))
    return soft(scores(q, np.pad(k, pad))) @ np.pad(v, pad)


@sick("queries-after-last-whole-block-unwritten")
def _(q, k, v):
    out = np.full((*q.shape[:-1], v.shape[-1]), 0.5)
    for i in range(0, q.shape[-2] // 32 * 32, 32):
        out[..., i : i + 32, :] = soft(scores(q[..., i : i + 32, :], k)) @ v
    return out


@sick("wrong-unless-whole-blocks")
def _(q, k, v):
    if q.shape[-2] % 64 or k.shape[-2] % 64:
        raise AssertionError("N_CTX must be divisible by 64")
    return soft(scores(q, k)) @ v


@sick("wrong-below-one-block")
def _(q, k, v):
    if min(q.shape[-2], k.shape[-2]) < 32:
        return np.zeros((*q.shape[:-1], v.shape[-1]))
    return soft(scores(q, k)) @ v


@sick("wrong-below-one-block")
def _(q, k, v):
    if k.shape[-2] < 16:
        raise ValueError("at least one block")
    return soft(scores(q, k)) @ v
