"""What `multi_head_attention_forward` was asked, and the modules of torch that are made of it.

They get inputs that are not projected yet, so q and k are projected here once more.
"""

from __future__ import annotations

import inspect
import math

import torch
import torch.nn.functional as F

from helpers.monitor.attention import Attention
from helpers.monitor.blocks import RULED_OUT

_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def from_mha(*args, **kwargs) -> list[Attention]:
    """The arguments of multi_head_attention_forward: (T, B, E), or (T, E)."""
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    a = bound.arguments
    return [_projected_heads(a["query"], a["key"], a["query"] is a["key"], a)]


def from_module(
    module, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
    average_attn_weights=True, is_causal=False,
) -> list[Attention]:  # fmt: skip
    """What nn.MultiheadAttention was called with. Nested inputs can only be one and the same."""
    self_attention = query is key
    if query.is_nested:
        lengths = torch.tensor([len(x) for x in query.unbind()], device=query.device)
        query = key = query.to_padded_tensor(0.0)
        key_padding_mask = torch.arange(query.shape[1], device=query.device) >= lengths[:, None]
    if module.batch_first and query.ndim == 3:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    names = ["in_proj_weight", "in_proj_bias", "bias_k", "q_proj_weight", "k_proj_weight"]
    a = {name: getattr(module, name) for name in names} | {
        "num_heads": module.num_heads,
        "use_separate_proj_weight": not module._qkv_same_embed_dim,
        "static_k": None,
        "add_zero_attn": module.add_zero_attn,
        "key_padding_mask": key_padding_mask,
        "need_weights": need_weights,
        "attn_mask": attn_mask,
        "is_causal": is_causal,
    }
    return [_projected_heads(query, key, self_attention, a)]


def from_encoder_layer(
    layer, src, src_mask=None, src_key_padding_mask=None, is_causal=False
) -> list[Attention]:
    """What nn.TransformerEncoderLayer was called with, as the call that its fast path saves."""
    x, norm = src, layer.norm1
    if layer.norm_first:  # not norm(src): a module that is called would be seen
        x = F.layer_norm(src, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    return from_module(layer.self_attn, x, x, x, src_key_padding_mask, False, src_mask)


def _projected_heads(query, key, self_attention, a) -> Attention:
    """(T, B, E), or (T, E), and the arguments of multi_head_attention_forward."""
    padding, H = a["key_padding_mask"], a["num_heads"]
    if query.ndim == 2:
        query, key = query[:, None], key[:, None]
        padding = None if padding is None else padding[None]
    q, k = _queries_and_keys(query, key, a)
    more = k.shape[2] - key.shape[0]  # keys that bias_k and add_zero_attn put behind

    # With the hint alone torch ignores the mask.
    causal = a["is_causal"] and padding is None and not a["need_weights"]
    masks, counted = [], None
    if a["attn_mask"] is not None and not causal:
        mask = _may_attend(a["attn_mask"], more)
        masks.append(mask[None, None] if mask.ndim == 2 else mask.unflatten(0, (-1, H)))
    if padding is not None:
        keys = _may_attend(padding, more)
        masks.append(keys[:, None, None])
        counted = _not_ruled_out(keys[:, : query.shape[0]]) if self_attention else None
    return Attention(q, k, 1 / math.sqrt(q.shape[-1]), masks, 0 if causal else None, counted)


def _queries_and_keys(query, key, a):
    """q (B, H, T_q, D) and k (B, H, T_k, D), keys that the module adds behind the others."""
    H = a["num_heads"]
    q, k = (_split_heads(x.transpose(0, 1), H) for x in _projected(query, key, a))
    if a["static_k"] is not None:
        k = a["static_k"].unflatten(0, (-1, H))
    if a["add_zero_attn"]:
        k = F.pad(k, (0, 0, 0, 1))
    return q, k


def _projected(query, key, a):
    """q (T_q, B, E) and k (T_k, B, E), the learned extra key behind the others."""
    E, bias = query.shape[-1], a["in_proj_bias"]
    if a["use_separate_proj_weight"]:
        W_q, W_k = a["q_proj_weight"], a["k_proj_weight"]
    else:
        W_q, W_k = a["in_proj_weight"][:E], a["in_proj_weight"][E : 2 * E]
    b_q, b_k = (None, None) if bias is None else (bias[:E], bias[E : 2 * E])
    q, k = F.linear(query, W_q, b_q), F.linear(key, W_k, b_k)
    if a["bias_k"] is not None:
        k = torch.cat([k, a["bias_k"].to(k.dtype).expand(-1, k.shape[1], -1)])
    return q, k


def _split_heads(x, H):
    """(B, T, E) -> (B, H, T, E/H)."""
    return x.unflatten(-1, (H, -1)).transpose(1, 2)


def _may_attend(mask, more: int):
    """A mask of nn.MultiheadAttention, where True means ruled out, turned into one where it means
    may attend, with `more` keys at the end that all may attend."""
    if mask.dtype == torch.bool:
        return F.pad(~mask, (0, more), value=True)
    return F.pad(mask, (0, more), value=0.0)


def _not_ruled_out(mask):
    return mask if mask.dtype == torch.bool else mask > RULED_OUT
