"""Causality, masks, rows that see nothing. NumPy."""

import numpy as np

from doctor_cases.patients import additive, safe, scores, soft, ward

DISEASED, sick = ward()


def lower(s, diagonal=0):
    return np.tri(*s.shape[-2:], diagonal, dtype=bool)


@sick("causal-ignored")
def _(q, k, v, is_causal=False):
    return soft(scores(q, k)) @ v


@sick("causal-ignored", causal=True)
def _(q, k, v):
    return soft(scores(q, k)) @ v


@sick("causal-leaks-one")
def _(q, k, v, is_causal=False):
    s = scores(q, k)
    if is_causal:
        s = np.where(np.triu(np.ones(s.shape[-2:]), 2) == 1, -np.inf, s)
    return soft(s) @ v


@sick("causal-leaks-one", causal=True, layout="BTD")
def _(q, k, v):
    s = scores(q, k)
    return soft(np.where(lower(s, 1), s, -np.inf)) @ v


@sick("causal-leaks-one", causal=True, causal_alignment="lower_right")
def _(q, k, v):
    s = scores(q, k)
    return safe(np.where(lower(s, s.shape[-1] - s.shape[-2] + 1), s, -np.inf)) @ v


@sick("causal-excludes-itself")
def _(q, k, v, causal=False):
    s = scores(q, k)
    return soft(np.where(lower(s, -1), s, -1e9) if causal else s) @ v


@sick("causal-excludes-itself", causal=True)
def _(q, k, v):
    s = scores(q, k)
    return soft(np.where(lower(s, -1), s, -np.inf)) @ v


@sick("causal-inverted")
def _(q, k, v, is_causal=False):
    s = scores(q, k)
    return soft(np.where(lower(s), -np.inf, s) if is_causal else s) @ v


@sick("causal-wrong-alignment")
def _(q, k, v, is_causal=False):
    s = scores(q, k)
    return safe(np.where(lower(s, s.shape[-1] - s.shape[-2]), s, -np.inf) if is_causal else s) @ v


@sick("causal-wrong-alignment", causal_alignment="lower_right")
def _(q, k, v, is_causal=False):
    s = scores(q, k)
    return safe(np.where(lower(s), s, -np.inf) if is_causal else s) @ v


@sick("causal-leaks-within-blocks")
def _(q, k, v, is_causal=False):
    s = scores(q, k)
    i, j = np.indices(s.shape[-2:])
    return soft(np.where(j // 32 <= i // 32, s, -np.inf) if is_causal else s) @ v


@sick("causal-after-softmax")
def _(q, k, v, is_causal=False):
    weights = soft(scores(q, k))
    return (np.tril(weights) if is_causal else weights) @ v


@sick("causal-scores-zeroed")
def _(q, k, v, is_causal=False):
    s = scores(q, k)
    return soft(np.tril(s) if is_causal else s) @ v


@sick("mask-ignored")
def _(q, k, v, mask=None):
    return soft(scores(q, k)) @ v


@sick("mask-ignored")
def _(q, k, v, attn_mask=None):
    return soft(scores(q, k)) @ v


@sick("mask-inverted")
def _(q, k, v, mask=None):
    s = scores(q, k)
    return safe(s if mask is None else np.where(mask, -np.inf, s)) @ v


@sick("mask-inverted", mask_true_means="masked")
def _(q, k, v, attn_mask=None):
    return safe(scores(q, k) + additive(attn_mask)) @ v


@sick("mask-inverted", causal=True)
def _(q, k, v, mask=None):
    s = scores(q, k)
    s = np.where(lower(s), s, -np.inf)
    return safe(s if mask is None else np.where(mask, -np.inf, s)) @ v


@sick("mask-after-softmax")
def _(q, k, v, mask=None):
    weights = soft(scores(q, k))
    return (weights if mask is None else weights * mask) @ v


@sick("masked-scores-zeroed")
def _(q, k, v, mask=None):
    s = scores(q, k)
    return soft(s if mask is None else s * mask) @ v


@sick("boolean-mask-added")
def _(q, k, v, attn_mask=None):
    return safe(scores(q, k) + (0 if attn_mask is None else attn_mask)) @ v


@sick("first-mask-for-all")
def _(q, k, v, mask=None):
    if mask is not None and mask.ndim == 4:
        mask = mask[0, 0]
    return safe(scores(q, k) + additive(mask)) @ v


@sick("some-masks-refused")
def _(q, k, v, mask=None):
    if mask is not None and mask.ndim < 4:
        raise ValueError("mask must have four axes")
    return safe(scores(q, k) + additive(mask)) @ v


@sick("float-mask-ignored")
def _(q, k, v, attn_mask=None):
    boolean = attn_mask is not None and attn_mask.dtype == bool
    return safe(scores(q, k) + (additive(attn_mask) if boolean else 0)) @ v


@sick("mask-scaled-too")
def _(q, k, v, attn_mask=None):
    return safe((q @ k.mT + additive(attn_mask)) / np.sqrt(q.shape[-1])) @ v


@sick("float-mask-unscaled-scores")
def _(q, k, v, attn_mask=None):
    if attn_mask is not None and attn_mask.dtype != bool:
        return safe(q @ k.mT + attn_mask) @ v
    return safe(scores(q, k) + additive(attn_mask)) @ v


@sick("float-mask-read-as-boolean")
def _(q, k, v, attn_mask=None):
    s = scores(q, k)
    return safe(s if attn_mask is None else np.where(attn_mask.astype(bool), s, -np.inf)) @ v


@sick("float-mask-subtracted")
def _(q, k, v, attn_bias=None):
    return soft(scores(q, k) - (0 if attn_bias is None else attn_bias)) @ v


@sick("float-mask-after-softmax")
def _(q, k, v, attn_bias=None):
    return (soft(scores(q, k)) + (0 if attn_bias is None else attn_bias)) @ v


@sick("fill-value-too-small")
def _(q, k, v, mask=None):
    s = scores(q, k)
    s = s if mask is None else np.where(mask, s, -1e4)
    return soft(s) * (1 if mask is None else mask.any(-1, keepdims=True)) @ v


@sick("nan-on-fully-masked-row")
def _(q, k, v, attn_mask=None):
    return soft(scores(q, k) + additive(attn_mask)) @ v


@sick("nan-on-fully-masked-row", causal=True, causal_alignment="lower_right")
def _(q, k, v):
    s = scores(q, k)
    return soft(np.where(lower(s, s.shape[-1] - s.shape[-2]), s, -np.inf)) @ v


@sick("attends-on-fully-masked-row")
def _(q, k, v, mask=None):
    s = scores(q, k)
    return soft(s if mask is None else np.where(mask, s, -1e9)) @ v
