"""Checks at the door of `flash_attention`: what came, the rule that it breaks, what to do."""

from __future__ import annotations

import math
import numbers

import torch

from helpers.flash_triton.config import LARGEST_HEAD

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def arguments(query, key, value, is_causal, scale, enable_gqa) -> float:
    """Raises TypeError or ValueError for what the kernels cannot take. Returns the scale."""
    flag("is_causal", is_causal)
    flag("enable_gqa", enable_gqa)
    tensors(query, key, value)
    shapes(query, key, value)
    heads(query.shape[1], key.shape[1], enable_gqa)
    return 1 / math.sqrt(query.shape[-1]) if scale is None else number("scale", scale)


def flag(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}. Pass True or False.")


def number(name, value) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}. Pass a number, or None for 1/√d_head.")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}, but must be finite. Pass None for 1/√d_head.")
    return float(value)


def tensors(query, key, value):
    """Three tensors of one dtype on one device, both of which the kernels know."""
    named = {"query": query, "key": key, "value": value}
    for name, x in named.items():
        if not isinstance(x, torch.Tensor):
            raise TypeError(
                f"{name} is of type {type(x).__name__}. Pass a torch.Tensor: torch.as_tensor(...)."
            )
        if x.layout != torch.strided:
            raise TypeError(f"{name} has layout {x.layout}. Pass a dense tensor: x.to_dense().")
        if x.dtype not in DTYPES:
            raise TypeError(
                f"{name} has dtype {x.dtype}, but the kernels take float16, bfloat16 and float32. "
                "Convert all three with .to(torch.float32), for example."
            )
    for what in ("dtype", "device"):
        seen = {name: getattr(x, what) for name, x in named.items()}
        if len(set(seen.values())) > 1:
            listed = ", ".join(f"{name} {it}" for name, it in seen.items())
            raise (TypeError if what == "dtype" else ValueError)(
                f"The inputs differ in {what}: {listed}. Convert them to one with .to(...)."
            )


def shapes(query, key, value):
    """(B, H, T_q, D), (B, H_kv, T_k, D) twice, nothing empty, D not too large."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != 4:
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, but must have the four axes (B, H, T, D). "
                "Put a missing one in front with x[None]."
            )
        if 0 in x.shape:
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, but each axis must be 1 or longer: with "
                "nothing to attend there is nothing to compute. Leave such a call out."
            )
    if key.shape != value.shape:
        raise ValueError(
            f"key has shape {tuple(key.shape)} and value {tuple(value.shape)}, but the kernels "
            "need them alike, the head size too. Pad the smaller with zeros in the last axis "
            "(F.pad), with the scale of the unpadded query, or use F.scaled_dot_product_attention."
        )
    for axis, what in ((0, "batch size"), (3, "head size")):
        if query.shape[axis] != key.shape[axis]:
            raise ValueError(
                f"query has {what} {query.shape[axis]}, key and value {key.shape[axis]} (shapes "
                f"{tuple(query.shape)} and {tuple(key.shape)}): make them equal."
            )
    if query.shape[3] > LARGEST_HEAD:
        raise ValueError(
            f"The head size is {query.shape[3]}, but at most {LARGEST_HEAD} fits into a GPU's "
            "shared memory. Use more and smaller heads, or F.scaled_dot_product_attention."
        )


def heads(H, H_kv, enable_gqa):
    """As many heads everywhere, or with enable_gqa H a multiple of H_kv."""
    if H_kv == H:
        return
    if not enable_gqa:
        raise ValueError(
            f"query has {H} heads, key and value have {H_kv}. Make them equal, or pass "
            "enable_gqa=True if several heads of query are to share one of key and value."
        )
    if H % H_kv:
        raise ValueError(
            f"query has {H} heads, which {H_kv} heads of key and value cannot share equally: with "
            "enable_gqa=True the first number must be a multiple of the second."
        )
