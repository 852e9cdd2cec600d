"""Right with each argument alone, or with ordinary inputs in float32, and wrong beyond. torch."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from doctor_cases.patients import additive, safe, ward

DISEASED, sick = ward()


def attend(q, k, v, attn_mask, is_causal, scale, enable_gqa, *, tiled=False, union=False):
    """Right, also with all arguments at once."""
    if enable_gqa:
        group = q.size(1) // k.size(1)
        if tiled:
            k, v = k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1)
        else:
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.mT * (q.size(-1) ** -0.5 if scale is None else scale)
    seen = torch.ones(s.shape[-2:], dtype=torch.bool)
    if is_causal:
        seen = seen.tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        seen = (seen | attn_mask) if union and is_causal else (seen & attn_mask)
    elif attn_mask is not None:
        s = s + attn_mask
    s = s.masked_fill(~seen, -torch.inf)
    empty = (s == -torch.inf).all(-1, keepdim=True)
    return torch.softmax(s.masked_fill(empty, 0), dim=-1).masked_fill(empty, 0) @ v


# --- Two arguments ---


@sick("argument-dropped")
def _(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        is_causal = False
    return attend(q, k, v, attn_mask, is_causal, scale, enable_gqa)


@sick("argument-dropped")
def _(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        attn_mask = None
    return attend(q, k, v, attn_mask, is_causal, scale, enable_gqa)


@sick("argument-dropped")
def _(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        scale = None
    return attend(q, k, v, attn_mask, is_causal, scale, enable_gqa)


@sick("argument-dropped")
def _(q, k, v, is_causal=False, scale=None):
    if is_causal:
        scale = None
    return attend(q, k, v, None, is_causal, scale, False)


@sick("argument-dropped", dtype="bfloat16")
def _(q, k, v, attn_mask=None, scale=None):
    if attn_mask is not None:
        scale = None
    return attend(q, k, v, attn_mask, False, scale, False)


@sick("argument-dropped")
def _(q, k, v, attn_mask=None, is_causal=False):
    mask = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if is_causal else attn_mask
    return safe(q @ k.mT / math.sqrt(q.shape[-1]) + additive(mask)) @ v


@sick("argument-dropped", layout="HTD")
def _(q, k, v, mask=None, is_causal=False):
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    elif is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return safe(s) @ v


@sick("wrong-together")
def _(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    return attend(q, k, v, attn_mask, is_causal, scale, enable_gqa, union=True)


@sick("wrong-together")
def _(q, k, v, is_causal=False, scale=None):
    if is_causal and scale is not None:
        scale *= 1.2
    return attend(q, k, v, None, is_causal, scale, False)


@sick("gqa-heads-tiled")
def _(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    return attend(q, k, v, attn_mask, is_causal, scale, enable_gqa, tiled=is_causal)


@sick("gqa-heads-tiled")
def _(q, k, v, attn_mask=None, enable_gqa=False):
    return attend(q, k, v, attn_mask, False, None, enable_gqa, tiled=attn_mask is not None)


@sick("mask-scaled-too")
def _(q, k, v, attn_mask=None, scale=None):
    if scale is None:
        return safe(q @ k.mT / math.sqrt(q.shape[-1]) + additive(attn_mask)) @ v
    return safe((q @ k.mT + additive(attn_mask)) * scale) @ v


@sick("raises")
def _(q, k, v, mask=None, enable_gqa=False):
    s = q.reshape(*k.shape[:2], -1, *q.shape[2:]) @ k[:, :, None].mT / math.sqrt(q.shape[-1])
    if mask is not None:  # which has as many heads as the queries
        s = s + additive(mask if mask.ndim == 2 else mask[:, :, None])
    return (safe(s) @ v[:, :, None]).reshape(*q.shape[:-1], -1)


# --- One query ---


@sick("causal-ignored-for-one-query")
def _(q, k, v, is_causal=False):
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal and q.size(-2) > 1)


@sick("causal-ignored-for-one-query", causal=True)
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=q.size(-2) > 1)


@sick("mask-ignored-for-one-query")
def _(q, k, v, attn_mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask if q.size(-2) > 1 else None)


# --- Large scores ---


def future(s):
    return torch.ones(s.shape[-2:]).triu(1).bool()


@sick("fill-value-too-small")
def _(q, k, v, is_causal=False):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return torch.softmax(s.masked_fill(future(s), -100) if is_causal else s, dim=-1) @ v


@sick("fill-value-too-small", causal=True)
def _(q, k, v):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return torch.softmax(s + future(s) * -1e4, dim=-1) @ v


@sick("overflows")
def _(q, k, v, is_causal=False):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if is_causal:
        e = torch.exp(s).tril()
        return e / e.sum(-1, keepdim=True) @ v
    return torch.softmax(s, dim=-1) @ v


@sick("overflows")
def _(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        e = torch.exp(s) * mask
        return torch.nan_to_num(e / e.sum(-1, keepdim=True)) @ v
    return torch.softmax(s, dim=-1) @ v


# --- Half precision ---


@sick("causal-ignored")
def _(q, k, v, is_causal=False):
    causal = is_causal and q.dtype == torch.float32
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


@sick("mask-ignored")
def _(q, k, v, attn_mask=None):
    mask = attn_mask if q.dtype == torch.float32 else None
    return F.scaled_dot_product_attention(q, k, v, mask)


@sick("float-mask-ignored")
def _(q, k, v, attn_mask=None):
    kept = attn_mask is not None and attn_mask.dtype in (torch.bool, torch.float32)
    return F.scaled_dot_product_attention(q, k, v, attn_mask if kept else None)


@sick("no-scale")
def _(q, k, v):
    scale = 1.0 if q.dtype == torch.float16 else None
    return F.scaled_dot_product_attention(q, k, v, scale=scale)


# --- The gradient of a float mask ---


class Untrained(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, bias):
        s = q @ k.mT / math.sqrt(q.size(-1)) + bias
        weights = torch.softmax(s, dim=-1)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx, d_out):
        q, k, v, weights = ctx.saved_tensors
        d_weights = d_out @ v.mT
        d_s = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
        d_s = d_s / math.sqrt(q.size(-1))
        return d_s @ k, d_s.mT @ q, weights.mT @ d_out, None


@sick("gradient-of-mask-missing", empty_rows="any")
def _(q, k, v, attn_bias=None):
    return Untrained.apply(q, k, v, torch.zeros(1) if attn_bias is None else attn_bias)


@sick("gradient-of-mask-missing")
def _(q, k, v, attn_mask=None):
    mask = None if attn_mask is None else attn_mask.detach()
    return F.scaled_dot_product_attention(q, k, v, mask)


@sick("gradient-wrong")
def _(q, k, v, attn_mask=None):
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        moving = torch.where(attn_mask == -torch.inf, 0, attn_mask) / 2
        attn_mask = attn_mask.detach() + moving - moving.detach()
    return F.scaled_dot_product_attention(q, k, v, attn_mask)
