"""The monitor itself."""

from __future__ import annotations

from collections import Counter

import torch

from helpers.monitor.display import as_html, as_text
from helpers.monitor.modules import Modules
from helpers.monitor.picture import picture_of
from helpers.monitor.records import Records
from helpers.monitor.rows import AttentionRow
from helpers.monitor.table import AttentionTable, Head, heads_of, table_of
from helpers.monitor.words import warnings_about
from helpers.pictures.figure import Figure


class AttentionMonitor:
    """Records the attention of every torch model that runs inside its `with` block.

        with AttentionMonitor() as monitor:
            model(x)
        print(monitor)          # a table, then warnings in words
        monitor.picture()       # a heatmap over layers and heads
        monitor.rows            # an AttentionRow for each head of each call

    keep_weights  keep the weights too, in float32 on the CPU, 256 MiB at most in all
    every         record the first of every so many calls of each layer: in training, of every so
                  many steps

    Seen are all calls of `scaled_dot_product_attention`, however its name was bound, from
    `torch.nn.functional` or `torch.ops.aten`; of `multi_head_attention_forward`; and of
    `nn.MultiheadAttention`, `nn.TransformerEncoderLayer`, `nn.TransformerEncoder` and whatever is
    made of them, with and without weights, in training and evaluation, nested or padded. Masks,
    is_causal, grouped queries and torch's CausalBias are understood, as are add_bias_kv and
    add_zero_attn. Three axes (B, T, D) are a batch with one head, or (H, T, D) with enable_gqa.
    Monitors nest; one can be used again and then goes on. `calls` counts what was seen.

    Outputs, gradients and random numbers stay what they are without a monitor, bit for bit: the
    original functions run, with the same arguments, on the same path. (A subclass of those modules
    with a forward of its own keeps off the fast path while it is watched: equal to about 1e-6, and
    it cannot take nested tensors.) Statistics are computed in float32, or float64 for such inputs,
    from the queries and keys as given; for the modules after projecting their inputs once more.
    They agree with those of the weights that torch returns to 1e-5. Dropout comes after the weights
    and is not in them; under autocast, the arguments of scaled_dot_product_attention are taken
    before they are rounded.

    Not seen, because torch shows it to nobody: what torch.compile, torch.jit or torch.export has
    compiled (`unseen` names compiled modules; run such a model uncompiled, for each monitor makes
    it compile again); other kernels, such as flex_attention, flash_attn, or a softmax written out;
    other threads than the one that entered the block, so nn.DataParallel's. Not recorded: calls
    inside torch.func transforms and on tensors without numbers (`unseen` says so), and what a
    checkpoint repeats during backward.

    Raises TypeError or ValueError if every is not a whole number of at least 1, RuntimeError when
    it is entered while it watches.
    """

    def __init__(self, keep_weights: bool = False, every: int = 1):
        if isinstance(every, bool) or not isinstance(every, int):
            raise TypeError(f"every is {every!r}, not a whole number; pass an integer from 1.")
        if every < 1:
            raise ValueError(f"every is {every}; pass an integer from 1 (1 records every call).")
        self.keep_weights = bool(keep_weights)
        self.every = every
        self.calls = 0
        self._layer_calls = Counter()
        self._records = Records(self.keep_weights)
        self._modules = Modules(self._saw)
        self._watching = False

    def __enter__(self) -> AttentionMonitor:
        if self._watching:
            raise RuntimeError("this monitor is watching already: nest another AttentionMonitor().")
        self._modules.__enter__()
        self._watching = True
        return self

    def __exit__(self, *_) -> None:
        self._watching = False
        self._modules.__exit__()

    def _saw(self, kind, read, args, kwargs) -> None:
        # A trace would copy the monitor's own work; in backward, a checkpoint repeats what was
        # recorded before.
        if torch.jit.is_tracing() or torch._C._current_graph_task_id() != -1:
            return
        self.calls += 1
        layer = f"call {self.calls}"
        try:
            model, name = self._modules.label(kind)
            self._layer_calls[model, name] += 1
            if (self._layer_calls[model, name] - 1) % self.every:
                return
            layer = name or layer
            self._records.add(self.calls, model, layer, kind, read, args, kwargs)
        except Exception as error:  # the model must go on, whatever is wrong with the monitor
            self._records.failed(layer, error)

    @property
    def rows(self) -> list[AttentionRow]:
        """One `AttentionRow` for each head of each recorded call, in the order of the calls."""
        return self._records.rows

    @property
    def unseen(self) -> list[str]:
        """What ran but could not be recorded, and why: a sentence each."""
        compiled = [
            f"{name} is compiled: the attention inside it is not seen. Watch it uncompiled."
            for name in sorted(self._modules.compiled)
        ]
        return compiled + self._records.failures

    @property
    def warnings(self) -> list[str]:
        """A sentence or two for each thing that looks wrong; empty if nothing does."""
        return warnings_about(heads_of(self.rows))

    def table(self) -> AttentionTable:
        """One line for each head of each layer, layers in the order of their first call.

        Raises ValueError if nothing was recorded.
        """
        return table_of(self._heads())

    def picture(self) -> Figure:
        """A heatmap of the normalised entropy, a line for each layer, a column for each head.

        Returns a `helpers.pictures.figure.Figure`: `.svg`, `.words`. Collapsed heads are outlined.
        Raises ValueError if nothing was recorded.
        """
        return picture_of(self._heads())

    def _heads(self) -> list[Head]:
        heads = heads_of(self.rows)
        if not heads:
            raise ValueError(self._nothing_seen())
        return heads

    def _counted(self) -> str:
        return f"{self.calls} attention call{'' if self.calls == 1 else 's'}"

    def _nothing_seen(self) -> str:
        return (
            f"{self._counted()} seen, none recorded. Run the model inside "
            "`with AttentionMonitor() as monitor:`, in the same thread, not compiled; a model "
            "that multiplies its own matrices is not seen either."
        )

    def _seen(self) -> str:
        recorded = len({row.call for row in self.rows})
        return f"{self._counted()} seen, {recorded} recorded"

    def _sentences(self) -> list[tuple[str, str]]:
        warnings = [("Warning", words) for words in self.warnings]
        return warnings + [("Unseen", words) for words in self.unseen]

    def __str__(self) -> str:
        if not self.rows:
            return "\n".join([self._nothing_seen(), *self.unseen])
        return as_text(self._seen(), self._heads(), self._sentences())

    __repr__ = __str__

    def _repr_html_(self) -> str | None:
        if not self.rows:
            return None  # a notebook shows the text
        return as_html(self._seen(), self._heads(), self._sentences())
