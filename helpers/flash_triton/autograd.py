"""The kernels as one function that torch can differentiate."""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable

from helpers.flash_triton import checks, runtime


class FlashAttention(torch.autograd.Function):
    """Keeps Q, K, V, O and lse for the backward pass: nothing whose size is T_q · T_k."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal, scale):
        from helpers.flash_triton import launch

        o, lse = launch.forward(q, k, v, is_causal, scale)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.is_causal, ctx.scale = is_causal, scale
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        from helpers.flash_triton import launch

        q, k, v, o, lse = ctx.saved_tensors
        dq, dk, dv = launch.backward(q, k, v, o, lse, do, ctx.is_causal, ctx.scale)
        return dq, dk, dv, None, None


def flash_attention(query, key, value, is_causal=False, scale=None, enable_gqa=False):
    """softmax(query keyᵀ · scale) value, with no T_q × T_k matrix in memory, on a GPU.

    query (B, H, T_q, D), key and value (B, H, T_k, D): float16, bfloat16 or float32, all alike and
    on one device; 1 ≤ D ≤ 256; T_q and T_k are 1 or longer. Any strides; a tensor is copied only
    if its last axis has another stride than 1.

    is_causal    query i sees keys 0 … i. If lengths differ, both count from the start, as in torch.
    scale        any finite number; None means 1/√D.
    enable_gqa   key and value may have fewer heads, H_kv, each of which serves H/H_kv neighbouring
                 heads of query.

    Returns (B, H, T_q, D), contiguous, in the inputs' dtype. Products are summed in float32, and
    float32 inputs are multiplied as such, not in TF32. Differentiable once. The same inputs give
    the same bits on every run, in the gradients too.

    Without a GPU it runs in Triton's interpreter, which is slow and computes bfloat16 in float32.

    Raises TypeError for anything but tensors of one of these dtypes, flags that are no booleans
    and a scale that is no number; ValueError for shapes or devices that do not fit and a scale
    that is not finite; RuntimeError where the kernels cannot run: `available()` says why.
    Sources: Dao 2023, arXiv:2307.08691 (FlashAttention-2); Ainslie et al. 2023, arXiv:2305.13245
    (grouped heads); PyTorch's documentation of scaled_dot_product_attention.
    """
    scale = checks.arguments(query, key, value, is_causal, scale, enable_gqa)
    runtime.require()
    return FlashAttention.apply(query, key, value, is_causal, scale)
