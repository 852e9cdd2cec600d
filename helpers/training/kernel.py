"""The attention kernel of the team in our story. Do not use it: lesson 4 is about what it lacks."""

from __future__ import annotations

import torch


def team_attention(query, key, value, is_causal: bool = False, block: int = 64):
    """softmax(Q Kᵀ) V over blocks of keys, so that no (T_q, T_k) matrix is ever whole in memory.

    query (B, H, T_q, D), key (B, H, T_k, D), value (B, H, T_k, D_v) -> (B, H, T_q, D_v).
    is_causal : query i sees the keys 0 … i. The running maximum and sum are those of the online
    softmax (Milakov and Gimelshein 2018, arXiv:1805.02867; lesson 5 derives it).
    """
    T_q, T_k = query.size(-2), key.size(-2)
    largest = query.new_full((*query.shape[:-1], 1), -torch.inf)  # (B, H, T_q, 1)
    total = torch.zeros_like(largest)
    output = query.new_zeros((*query.shape[:-1], value.size(-1)))  # (B, H, T_q, D_v)
    for start in range(0, T_k, block):
        keys = slice(start, start + block)
        scores = query @ key[..., keys, :].transpose(-2, -1)  # (B, H, T_q, block)
        if is_causal:
            past = torch.arange(T_q)[:, None] >= torch.arange(T_k)[None, keys]
            scores = scores.masked_fill(~past.to(scores.device), -torch.inf)
        new_largest = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        weights = torch.exp(scores - new_largest)
        shrink = torch.exp(largest - new_largest)  # what was summed up so far, brought in line
        total = total * shrink + weights.sum(dim=-1, keepdim=True)
        output = output * shrink + weights @ value[..., keys, :]
        largest = new_largest
    return output / total
