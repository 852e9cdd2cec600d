"""FlashAttention's mathematics in NumPy: softmax block by block, merging parts, tiles, traffic.

Nothing here is fast. It is what the fast kernels compute, in the order in which they compute it,
with every intermediate to be looked at.

* `online` : softmax and attention of one row (or many) whose scores arrive in blocks; `merge`.
* `tiled` : a whole attention tile by tile, with the bytes it reads and writes.
* `traffic` : how many bytes that takes, without doing it; plain attention and the paper's bound.

Symbols are FlashAttention's: m is the largest score so far, l the sum of e^{score − m} so far, acc
the same sum with each term times its row of V, lse = m + ln l. Slow memory is the GPU's HBM, fast
memory what one thread block has to itself (shared memory and registers; the paper says SRAM).
"""

from helpers.flash.online import OnlineStep, merge, online_attention, online_softmax
from helpers.flash.tiled import TileStep, tiled_attention
from helpers.flash.traffic import (
    LOOPS,
    MemoryTraffic,
    TilePlan,
    block_sizes,
    memory_traffic,
)

__all__ = [
    "LOOPS",
    "MemoryTraffic",
    "OnlineStep",
    "TilePlan",
    "TileStep",
    "block_sizes",
    "memory_traffic",
    "merge",
    "online_attention",
    "online_softmax",
    "tiled_attention",
]
