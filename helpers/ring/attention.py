"""What one rank of the ring does."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.distributed as dist

from helpers import _inputs as check

FULL, MASKED, SKIPPED = "full", "masked", "skipped"


class RingShard(NamedTuple):
    """What a rank has after the ring.

    output : (B, H, T/P, D_v), attention of this rank's queries over all T keys, in q's dtype.
    lse : (B, H, T/P), ln Σ e^{score} over all keys the query may see.
    bytes_sent : of the tensors handed to `isend`, keys and values only.
    kinds : what was done with the block at each of the P steps: "full", "masked" or "skipped".
    """

    output: torch.Tensor
    lse: torch.Tensor
    bytes_sent: int
    kinds: tuple[str, ...]


def block_kinds(processes: int, is_causal: bool) -> tuple[tuple[str, ...], ...]:
    """What each rank does at each step: kinds[rank][step], no units.

    At step s, rank r holds the keys of rank (r − s) mod P. Rank r's queries come after those of
    all ranks before it, so with is_causal the block is

        its own (step 0)          "masked"   half of it: query i sees keys 0 … i
        from a rank before        "full"     every query sees every key
        from a rank after         "skipped"  nobody sees anything: passed on, not computed with

    and rank r computes r + 1 blocks: the first rank waits while the last one works at each step.
    (Striped Attention, arXiv:2311.09431, deals out the tokens so that all have the same to do.)

    Raises TypeError or ValueError if processes is not a whole number of 1 or more, or is_causal
    not a flag.
    """
    if check.count("processes", processes) < 1:
        raise ValueError("processes is 0, but a ring needs at least one. Pass 1 or more.")
    is_causal = check.flag("is_causal", is_causal)
    return tuple(
        tuple(_kind(rank, (rank - step) % processes, is_causal) for step in range(processes))
        for rank in range(processes)
    )


def _kind(rank: int, source: int, is_causal: bool) -> str:
    if not is_causal or source < rank:
        return FULL
    return MASKED if source == rank else SKIPPED


def predicted_bytes(
    processes: int, T: int, heads: int, d: int, bytes_per_number: int = 4, batch: int = 1
) -> int:
    """Bytes that each rank sends in the forward pass.

    A shard of K is batch · heads · T/P · d numbers, V's is as large: together 2 shards. A block
    must reach P − 1 other ranks, one hop at a time, and at each step every rank sends one block:

        (P − 1) · 2 · batch · heads · (T/P) · d · bytes_per_number

    It is the same with a causal mask, although the ranks at the front throw away most of what
    arrives. It grows with T as the sequence does, not as the T × T scores: computing a block takes
    time ∝ (T/P)² and sending it ∝ T/P, so with shards long enough the sending is hidden.
    """
    return (processes - 1) * 2 * batch * heads * (T // processes) * d * bytes_per_number


@torch.no_grad()
def ring_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False,
    scale: float | None = None,
) -> RingShard:  # fmt: skip
    """Attention over a sequence of which each rank holds T/P rows. Called by every rank at once.

    q, k, v : (B, H, T/P, D), floating point, the same shape and dtype on each rank; rank r holds
    rows r·T/P … (r+1)·T/P − 1. They lie where the backend of `torch.distributed` can send from:
    gloo on the CPU, NCCL on the GPU. is_causal : query i sees keys 0 … i of the whole sequence.
    scale : None means 1/√D.

    Scores, sums and the merge are in float32 or better; keys and values travel in their own dtype.
    Forward only: gradients would have to travel round the ring as well.

    Raises TypeError and ValueError for inputs that do not fit, also when the shards of two ranks
    differ (on every rank alike), and RuntimeError where `torch.distributed` has not been started.
    Source: Liu, Zaharia, Abbeel 2023, arXiv:2310.01889, algorithm 1.
    """
    is_causal = check.flag("is_causal", is_causal)
    _require_fit(q, k, v)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else check.scale(scale)
    if not (dist.is_available() and dist.is_initialized()):
        raise RuntimeError(
            "torch.distributed is not running here, so there are no other ranks. Call "
            "dist.init_process_group first, or run_ring, which starts the ranks itself."
        )
    rank, P = dist.get_rank(), dist.get_world_size()
    _require_same_on_all_ranks(k, P)

    kinds = block_kinds(P, is_causal)[rank]
    kv = torch.stack((k, v))  # (2, B, H, T/P, D): one message instead of two
    q_wide = q.to(torch.promote_types(q.dtype, torch.float32))
    output = lse = None
    bytes_sent = 0
    for step, kind in enumerate(kinds):
        if step < P - 1:  # the block sets out before it is computed with
            transfers, arriving = _pass_on(kv, rank, P)
            bytes_sent += kv.nbytes
        if kind != SKIPPED:
            part = _attention_and_lse(q_wide, kv[0], kv[1], scale, kind == MASKED)
            output, lse = part if output is None else _merge(output, lse, *part)
        if step < P - 1:
            for transfer in transfers:
                transfer.wait()
            kv = arriving
    return RingShard(output.to(q.dtype), lse, bytes_sent, kinds)


def _pass_on(kv: torch.Tensor, rank: int, P: int):
    """Sends kv to the next rank; the transfers, and the tensor that the last rank's is put into."""
    arriving = torch.empty_like(kv)
    transfers = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, kv, (rank + 1) % P),
            dist.P2POp(dist.irecv, arriving, (rank - 1) % P),
        ]
    )
    return transfers, arriving


def _attention_and_lse(q, k, v, scale: float, masked: bool):
    """Attention of q over one block, (B, H, T/P, D), and its lse, (B, H, T/P)."""
    scores = q @ k.to(q.dtype).mT * scale
    if masked:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(ahead, -math.inf)
    lse = scores.logsumexp(dim=-1)
    return (scores - lse[..., None]).exp() @ v.to(q.dtype), lse


def _merge(out_a, lse_a, out_b, lse_b):
    """`helpers.flash.merge` in torch: each part weighs e^{lse}. No part here is without a key."""
    lse = torch.logaddexp(lse_a, lse_b)
    share_a, share_b = ((part - lse).exp()[..., None] for part in (lse_a, lse_b))
    return share_a * out_a + share_b * out_b, lse


def _require_fit(q, k, v) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}, but must be a torch tensor.")
        if not x.is_floating_point():
            raise TypeError(
                f"{name} has dtype {x.dtype}, but must hold floats. Pass {name}.float()."
            )
        if x.requires_grad:
            raise ValueError(
                f"{name} requires a gradient, but this ring is forward only: gradients would have "
                f"to travel too. Pass {name}.detach()."
            )
        if x.dim() != 4 or 0 in x.shape:
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, but must be (B, H, T/P, D), none of them 0."
            )
    if len({x.dtype for x in (q, k, v)}) > 1 or len({x.device for x in (q, k, v)}) > 1:
        raise TypeError(
            f"q, k and v are {q.dtype} on {q.device}, {k.dtype} on {k.device} and {v.dtype} on "
            f"{v.device}, but must have one dtype and one device."
        )
    if not q.shape == k.shape == v.shape:
        raise ValueError(
            f"q, k and v have shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}, but "
            "must be equal: each rank holds as many keys as queries. For grouped heads, repeat "
            "those of k and v first."
        )


def _require_same_on_all_ranks(k: torch.Tensor, P: int) -> None:
    """Unequal shards would make a rank wait for ever for bytes that nobody sends."""
    mine = torch.tensor([*k.shape, k.element_size()], dtype=torch.int64, device=k.device)
    all_of_them = [torch.empty_like(mine) for _ in range(P)]
    dist.all_gather(all_of_them, mine)
    shards = [tuple(shard.tolist()) for shard in all_of_them]
    for rank, shard in enumerate(shards):
        if shard != shards[0]:
            raise ValueError(
                f"rank 0 holds shards of shape {shards[0][:4]}, {shards[0][4]} bytes a number, and "
                f"rank {rank} of {shard[:4]}, {shard[4]}: all must be equal. Pad the sequence to a "
                f"multiple of {P}."
            )
