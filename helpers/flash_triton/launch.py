"""From tensors to running kernels: allocate the results, choose block sizes, start the programs."""

from __future__ import annotations

import contextlib

import torch

from helpers.flash_triton import config, kernels, runtime


def forward(q, k, v, is_causal, scale):
    """O (B, H, T_q, D) and lse (B, H, T_q), float32: ln Σ exp(score) of each query."""
    if runs_as_float32(q):
        o, lse = forward(q.float(), k.float(), v.float(), is_causal, scale)
        return o.to(q.dtype), lse
    q, k, v = (readable(x) for x in (q, k, v))
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    blocks = blocks_for(q, backward=False)
    with on_device(q):
        kernels.forward_kernel[programs(q, blocks.own)](
            *(heads(x) for x in (q, k, v, o)), lse,
            *sizes(q, k), scale, is_causal, *widths(q), blocks.own, blocks.walk,
            num_warps=blocks.num_warps, num_stages=blocks.num_stages,
        )  # fmt: skip
    return o, lse


def backward(q, k, v, o, lse, do, is_causal, scale):
    """dQ, dK and dV, in the shapes and dtype of q, k and v."""
    if runs_as_float32(q):
        exact = (x.float() for x in (q, k, v, o))
        gradients = backward(*exact, lse, do.float(), is_causal, scale)
        return tuple(x.to(q.dtype) for x in gradients)
    q, k, v, do = (readable(x) for x in (q, k, v, do))
    delta = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    blocks = blocks_for(q, backward=True)
    speed = {"num_warps": blocks.num_warps, "num_stages": blocks.num_stages}
    Q, K, V, O, dO, dQ, dK, dV = (heads(x) for x in (q, k, v, o, do, dq, dk, dv))  # noqa: E741
    rest = (*sizes(q, k), scale, is_causal, *widths(q))
    with on_device(q):
        kernels.delta_kernel[programs(q, blocks.own)](
            O, dO, delta, q.shape[1], q.shape[2], *widths(q), blocks.own
        )
        # Own keys and walk over queries, then own queries and walk over keys.
        kernels.dk_dv_kernel[programs(k, blocks.own)](
            Q, K, V, dO, dK, dV, lse, delta, *rest, BLOCK_Q=blocks.walk, BLOCK_K=blocks.own, **speed
        )
        kernels.dq_kernel[programs(q, blocks.own)](
            Q, K, V, dO, dQ, lse, delta, *rest, BLOCK_Q=blocks.own, BLOCK_K=blocks.walk, **speed
        )
    return dq, dk, dv


# --- What a kernel is told -----------------------------------------------------------------------


def programs(x, block):
    """How many programs share out the rows of x, as a grid. One axis: the others end at 65,535."""
    B, H, T, _ = x.shape
    return (B * H * -(-T // block),)


def heads(x):
    """A (B, H, T, D) tensor with its strides."""
    return kernels.Heads(x, *x.stride()[:3])


def sizes(q, k):
    """H, group, T_q, T_k: as many heads of q as `group` share one of k and v."""
    return q.shape[1], q.shape[1] // k.shape[1], q.shape[2], k.shape[2]


def widths(q):
    """D and the side of its tile, BLOCK_D: a power of two, and at least 16 for tl.dot."""
    return q.shape[3], config.tile_side(q.shape[3])


def readable(x):
    """x, copied only if the numbers of a row are not neighbours in memory, or if its rows are so
    far apart that a tile of them cannot be addressed in 32 bits."""
    return x if x.stride(3) == 1 and x.stride(2) < 2**23 else x.contiguous()


# --- Where it runs -------------------------------------------------------------------------------


def blocks_for(q, backward):
    """The block sizes for the device that q is on. Raises ValueError if q is in the wrong place."""
    if runtime.interpreted():
        return config.INTERPRETER
    if not q.is_cuda:
        raise ValueError(
            f"The inputs are on {q.device}, but Triton compiles for a GPU here. Move them with "
            '.to("cuda"), or set TRITON_INTERPRET=1 before Python starts to use its interpreter.'
        )
    capability = torch.cuda.get_device_capability(q.device)
    return config.block_sizes(capability, q.shape[3], q.dtype, backward)


def on_device(q):
    """Triton starts kernels on the current device, which need not be that of q."""
    return torch.cuda.device(q.device) if q.is_cuda else contextlib.nullcontext()


def runs_as_float32(q):
    """Triton's interpreter takes bfloat16 numbers for integers when it multiplies them."""
    return q.dtype == torch.bfloat16 and runtime.interpreted()
