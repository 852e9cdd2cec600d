"""The calls that were recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import _disable_current_modes

from helpers.monitor.attention import Attention, CannotSee
from helpers.monitor.rows import AttentionRow
from helpers.monitor.statistics import statistics

KEPT_WEIGHTS = 2**28  # bytes of weights that keep_weights=True keeps at most: 256 MiB


@dataclass
class _Call:
    """A recorded call. Its statistics stay on the device until somebody reads them."""

    number: int
    model: str
    layer: str
    kind: str
    sizes: tuple[int, int, int, int]  # batch, T_q, T_k, d_head
    scale: float
    statistics: torch.Tensor  # (H, 7)
    weights: torch.Tensor | None

    def rows(self) -> list[AttentionRow]:
        return [
            AttentionRow(
                self.number, self.model, self.layer, self.kind, head, *self.sizes, self.scale,
                int(numbers[0]), *numbers[1:],
                None if self.weights is None else self.weights[:, head],
            )
            for head, numbers in enumerate(self.statistics.tolist())
        ]  # fmt: skip


class Records:
    """Reads the arguments of a call, and keeps the statistics of its attention."""

    def __init__(self, keep_weights: bool):
        self._keep_weights = keep_weights
        self._kept_bytes = 0
        self._calls: list[_Call] = []
        self._rows: list[AttentionRow] = []
        self._failures: dict[str, None] = {}

    @property
    def rows(self) -> list[AttentionRow]:
        self._rows += [row for call in self._calls for row in call.rows()]
        self._calls.clear()
        return list(self._rows)

    @property
    def failures(self) -> list[str]:
        """What could not be recorded or kept, and why: a sentence each."""
        return list(self._failures)

    def failed(self, layer: str, error: Exception) -> None:
        known = isinstance(error, CannotSee)
        why = str(error) if known else f"{type(error).__name__}: {error}"
        self._failures[f"{layer} was not recorded: {why}."] = None

    def add(self, number: int, model: str, layer: str, kind: str, read, args, kwargs) -> None:
        """Record the call; `read` makes attentions of its arguments."""
        with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.no_grad():
            _refuse_to_look([*args, *kwargs.values()])
            attentions = read(*args, **kwargs)
            with torch.autocast(attentions[0].q.device.type, enabled=False):
                weights = self._room_for_weights(layer, attentions)
                found = statistics(attentions, weights)
            if type(found) is not torch.Tensor:
                raise CannotSee(f"its tensors are of class {type(found).__name__}")
            sizes, scale = _sizes(attentions), attentions[0].scale
            self._calls.append(_Call(number, model, layer, kind, sizes, scale, found, weights))

    def _room_for_weights(self, layer: str, attentions: list[Attention]):
        if not self._keep_weights:
            return None
        size = 4 * math.prod(attentions[0].shape)
        why = ""
        if len(attentions) > 1:
            why = "its tensors are nested"
        elif self._kept_bytes + size > KEPT_WEIGHTS:
            why = f"more than {KEPT_WEIGHTS // 2**20} MiB"
        if why:
            self._failures[f"The weights of {layer} were not kept: {why}."] = None
            return None
        self._kept_bytes += size
        return torch.zeros(attentions[0].shape)


def _refuse_to_look(arguments: list) -> None:
    tensor = next((x for x in arguments if isinstance(x, torch.Tensor)), None)
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise CannotSee("it ran inside a transform of torch.func, such as vmap or grad")
    if tensor is not None and (tensor.is_meta or type(tensor).__name__ == "FakeTensor"):
        raise CannotSee("meta and fake tensors hold no numbers")
    if tensor is not None and tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        raise CannotSee("a CUDA graph was being captured")


def _sizes(attentions: list[Attention]) -> tuple[int, int, int, int]:
    """Batch, T_q, T_k and d_head; of nested tensors the longest."""
    batches, _, T_q, T_k = zip(*(attention.shape for attention in attentions))
    return sum(batches), max(T_q), max(T_k), attentions[0].q.shape[-1]
