"""An attention in blocks of scores that fit into a cache, and what its masks do in each."""

from __future__ import annotations

import torch

from helpers.monitor.attention import Attention

SCORES_AT_ONCE = 2**18  # numbers in one block of scores on a CPU: 1 MiB, what a cache holds
SCORES_AT_ONCE_ELSEWHERE = 2**24  # and on a GPU, which wants few large blocks: 64 MiB
RULED_OUT = -1e4  # added to a score, this or less rules a key out: e^-10000 is 0 in every dtype


def blocks(attention: Attention):
    """Slices of batch, heads, queries and keys that make at most SCORES_AT_ONCE scores each (but
    one query with all its keys at least), without the keys that are still to come."""
    B, H, T_q, _ = attention.shape
    batch, heads, queries = _block_size(attention)
    for t in range(0, T_q, queries):
        end = min(t + queries, T_q)
        keys = slice(0, _keys_before(attention, end))
        for b in range(0, B if keys.stop else 0, batch):
            for h in range(0, H, heads):
                yield slice(b, b + batch), slice(h, h + heads), slice(t, end), keys


def _block_size(attention: Attention) -> tuple[int, int, int]:
    """Batch entries, heads and queries of one block."""
    B, H, T_q, T_k = attention.shape
    on_cpu = attention.q.device.type == "cpu"
    most = (SCORES_AT_ONCE if on_cpu else SCORES_AT_ONCE_ELSEWHERE) // max(T_k, 1)
    # Causal: the fewer queries in a block, the fewer keys that none of them sees.
    wanted = T_q if attention.diagonal is None else max(64, T_q // 8)
    queries = max(1, min(T_q, most, wanted))
    heads = max(1, min(H, most // queries))
    return max(1, min(B, most // (queries * H))), heads, queries


def _keys_before(attention: Attention, query: int) -> int:
    """How many keys the queries before number `query` see between them."""
    T_k = attention.shape[3]
    if attention.diagonal is None:
        return T_k
    return max(0, min(T_k, query + attention.diagonal))


def allowed_and_bias(attention: Attention, block):
    """What the masks do in a block: keys that may be attended (None: all), numbers to add."""
    allowed, bias = _past(attention, block), None
    for mask in attention.masks:
        part = mask[tuple(s if n > 1 else slice(None) for s, n in zip(block, mask.shape))]
        if part.dtype != torch.bool:
            bias = part if bias is None else bias + part
            part = part > RULED_OUT
        allowed = part if allowed is None else allowed & part
    return allowed, bias


def _past(attention: Attention, block):
    """The keys that a causal attention lets the queries of a block see; None without one."""
    if attention.diagonal is None:
        return None
    queries, keys = (torch.arange(s.start, s.stop, device=attention.q.device) for s in block[2:])
    return keys <= queries[:, None] + attention.diagonal
