"""FlashAttention in Triton, forward and backward, written to be read.

    from helpers.flash_triton import flash_attention
    out = flash_attention(query, key, value, is_causal=True)  # (B, H, T, D) tensors

Read `kernels` first, from top to bottom: it is the lesson. `launch` allocates and starts,
`config` chooses block sizes for a GPU, `autograd` lets torch differentiate, `checks` says what is
wrong with an argument, `runtime` where all this can run.

Without a GPU the kernels run in Triton's interpreter; importing this package arranges that, if
Triton was not imported before. Importing works without Triton, too: `available()` then says why
`flash_attention` will not run.
"""

from __future__ import annotations

from helpers.flash_triton.runtime import Availability, available, prepare

prepare()  # before anything imports Triton

from helpers.flash_triton.autograd import flash_attention  # noqa: E402
from helpers.flash_triton.config import Blocks, block_sizes  # noqa: E402

__all__ = ["Availability", "Blocks", "available", "block_sizes", "flash_attention"]
