"""What the arguments of `scaled_dot_product_attention` mean."""

from __future__ import annotations

import math

import torch
from torch.nn.attention.bias import CausalBias, CausalVariant

from helpers.monitor.attention import Attention, CannotSee


def from_sdpa(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
) -> list[Attention]:
    """One attention, or one for each part of nested tensors. Dropout acts after the weights."""
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else float(scale)
    if not query.is_nested:
        return [_one(query, key, attn_mask, is_causal, scale, enable_gqa)]
    if attn_mask is not None:
        raise CannotSee("a mask over nested tensors")
    pairs = zip(query.unbind(), key.unbind())
    return [_one(q[None], k[None], None, is_causal, scale, enable_gqa) for q, k in pairs]


def _one(q, k, mask, is_causal, scale, enable_gqa) -> Attention:
    if enable_gqa:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)  # heads 0 0 1 1
    diagonal = 0 if is_causal else None
    if isinstance(mask, CausalBias):
        late = mask.seq_len_kv - mask.seq_len_q
        diagonal = late if mask.variant == CausalVariant.LOWER_RIGHT else 0
        mask = None
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    q, k = (_four_axes(x.expand(*lead, *x.shape[-2:]), lead, enable_gqa) for x in (q, k))
    masks = [] if mask is None else [_four_axes(mask, lead, enable_gqa)]
    return Attention(q, k, scale, masks, diagonal)


def _four_axes(x, lead, heads):
    """To (B, H, rows, columns). With three axes the first is the batch, unless it holds `heads`."""
    x = x[(None,) * (len(lead) + 2 - x.ndim)]
    if len(lead) < 2:
        return x[None, None] if not lead else x[None] if heads else x[:, None]
    if x.shape[:-3].numel() > 1:
        x = x.expand(*lead[:-1], *x.shape[-3:])
    return x.flatten(0, -4) if x.ndim > 4 else x
