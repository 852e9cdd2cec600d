"""The statistics of one call: of each row of scores first, then of each head."""

from __future__ import annotations

import torch

from helpers.monitor.attention import Attention
from helpers.monitor.blocks import allowed_and_bias, blocks


def statistics(attentions: list[Attention], weights=None) -> torch.Tensor:
    """(H, 7) on the inputs' device: those of `_head_statistics`, then q_rms and k_rms.

    Fills `weights` (B, H, T_q, T_k) if given.
    """
    rows = [_row_statistics(a, weights).transpose(1, 2).flatten(2) for a in attentions]
    rms = [_rms([getattr(a, name) for a in attentions]) for name in ("q", "k")]
    return torch.cat([_head_statistics(torch.cat(rows, -1)), torch.stack(rms, -1)], -1)


def _row_statistics(attention: Attention, weights) -> torch.Tensor:
    """(5, B, H, T_q): keys, mean and squared deviations of scores, entropy over its largest value,
    largest weight."""
    dtype = torch.promote_types(attention.q.dtype, torch.float32)
    rows = torch.zeros(5, *attention.shape[:3], dtype=dtype, device=attention.q.device)
    for block in blocks(attention):
        b, h, t, keys = block
        q, k = attention.q[b, h, t].to(dtype), attention.k[b, h, keys].to(dtype)
        scores = (q @ k.mT).mul_(attention.scale)
        found, exps, total = _block_statistics(scores, *allowed_and_bias(attention, block))
        rows[:, b, h, t] = found
        if weights is not None:
            weights[block] = (exps / total[..., None]).to(weights)
    if attention.counted is not None:
        rows[0] *= attention.counted[:, None, :]
    return rows


def _block_statistics(scores, allowed, bias):
    """(5, b, h, t): the rows of `_row_statistics` for one block; e^s and its sums. Overwrites
    `scores`, what q kᵀ · scale gave."""
    blocked = None if allowed is None else ~allowed
    n = torch.full_like(scores[..., 0], scores.shape[-1])
    if allowed is not None:
        n = allowed.expand(scores.shape).sum(-1, dtype=scores.dtype)
    seen = scores if bias is None else scores + bias
    largest = _largest_subtracted(scores, blocked)
    mean, squares = _spread(scores, n)
    if bias is not None:
        _largest_subtracted(seen, blocked)
    exps = seen.exp()
    if blocked is not None:
        exps.masked_fill_(blocked, 0)
    total = exps.sum(-1)
    entropy = total.log() - seen.mul_(exps).sum(-1) / total  # ln Σe^s − Σ w s, as the largest s = 0
    share = (entropy / n.log()).clamp_(0, 1)
    return torch.stack([n, mean + largest, squares, share, 1 / total]), exps, total


def _largest_subtracted(scores, blocked):
    """The largest score of each row; in place, it becomes 0, and so does what is `blocked`."""
    if blocked is not None:
        scores.masked_fill_(blocked, -torch.inf)
    largest = scores.amax(-1, keepdim=True)
    scores -= largest
    if blocked is not None:
        scores.masked_fill_(blocked, 0)
    return largest[..., 0]


def _spread(shifted, n):
    """Mean of each row of scores that are 0 where they do not count, and the sum of the squared
    deviations from it. The largest being 0, the mean is small and little is lost in subtracting."""
    mean = shifted.sum(-1) / n
    squares = torch.linalg.vector_norm(shifted, dim=-1).square()
    return mean, (squares - n * mean.square()).clamp_(min=0)


def _head_statistics(rows: torch.Tensor) -> torch.Tensor:
    """(5, H, R) of all rows of a call -> (H, 5): rows that count, and the means of AttentionRow."""
    counts = rows[0] >= 2
    n, mean, squares, entropy, largest = rows.where(counts, 0).to(_exact(rows))
    count, scores = counts.sum(-1), n.sum(-1)
    overall = (n * mean).sum(-1) / scores
    apart = (n * (mean - overall[:, None]).square()).sum(-1)
    within = (squares / (n - 1)).where(counts, 0).sum(-1) / count
    pooled = (squares.sum(-1) + apart) / (scores - 1)
    means = entropy.sum(-1) / count, largest.sum(-1) / count
    return torch.stack([count, *means, within.sqrt(), pooled.sqrt()], dim=-1)


def _rms(parts: list[torch.Tensor]) -> torch.Tensor:
    """(B, H, T, D) each -> (H,), over all other axes."""
    squares = sum(part.float().square().sum((0, 2, 3)).to(_exact(part)) for part in parts)
    return (squares / sum(part[:, 0].numel() for part in parts)).sqrt()


def _exact(x: torch.Tensor) -> torch.dtype:
    """What to add many numbers up in; Apple's GPUs have no float64."""
    return torch.float32 if x.device.type == "mps" else torch.float64
