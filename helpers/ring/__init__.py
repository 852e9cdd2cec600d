"""Ring attention: a sequence too long for one device, spread over several that stand in a ring.

    result = run_ring(processes=2, T=256)
    print(result)
    result.max_error

Each rank keeps its own queries. Keys and values go round: at every step a rank computes with the
block it holds, while that block is already on its way to the next rank. After P steps each query
has met every key, although no rank held more than two foreign blocks at a time. The parts are
joined with their log-sum-exps, as in `helpers.flash.merge`.

* `attention` : `ring_attention`, called in each rank. Same code on CPUs (gloo) and GPUs (NCCL).
* `launch` : `run_ring`, called anywhere: starts the ranks as processes of their own, collects
  their shards and compares them with attention over the whole sequence.
* `__main__` : what such a process runs.

Source: Liu, Zaharia, Abbeel 2023, "Ring Attention with blockwise transformers for near-infinite
context", arXiv:2310.01889.
"""

from helpers.ring.attention import RingShard, block_kinds, predicted_bytes, ring_attention
from helpers.ring.launch import RingResult, run_ring

__all__ = [
    "RingResult",
    "RingShard",
    "block_kinds",
    "predicted_bytes",
    "ring_attention",
    "run_ring",
]
