"""Watches the attention of any torch model: how sharp each head is, how far its scores spread.

    with AttentionMonitor() as monitor:
        model(x)
    print(monitor)

How it sees. A `torch.overrides.TorchFunctionMode` gets every call of a torch function that the
thread makes, whatever name the caller bound it to, and with it `scaled_dot_product_attention` and
`multi_head_attention_forward`. While `nn.MultiheadAttention`, `nn.TransformerEncoderLayer` and
`nn.TransformerEncoder` run, the mode steps aside, because it would keep them from their fast path;
their inputs come from a global module hook. Nothing is patched. Each call is made first, with the
arguments it was given; then the scores are computed once more from the same arguments, in blocks,
and only statistics are kept.

Cost, measured in one run on 2 CPU cores, float32, least of 7 times: a training step of a causal
2-layer transformer (d_model 256, 4 heads) took 1.1 times as long at T 64 and T 256, 1.2 times at
T 1024; its forward pass alone 1.4, 1.5 and 2.2 times; nn.TransformerEncoder on its fast path
(4 layers, T 256) 1.5 times; the attention alone 2.5 to 3.7 times (T 1024, d_head 64). Under that,
0.4 ms for each call and 1.5 µs for every torch function. At most 1 MiB of scores exists at a time
(on a GPU 64 MiB) and a few arrays of that size: with 8 heads and T 4096, whose scores would be
512 MiB, the peak rose by 11 MiB. `every=10` divides all but the 1.5 µs by ten.

Sources: Zhai et al. 2023, arXiv:2303.06296 (attention entropy and its collapse); PyTorch's
documentation of torch.overrides and of the functions above.
"""

from __future__ import annotations

from helpers.monitor.monitor import AttentionMonitor
from helpers.monitor.rows import AttentionRow
from helpers.monitor.table import AttentionTable

__all__ = ["AttentionMonitor", "AttentionRow", "AttentionTable"]
