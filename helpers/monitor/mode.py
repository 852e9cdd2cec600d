"""Sees every call of a torch function: a mode of `torch.overrides`, which patches nothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from helpers.monitor.mha import from_mha
from helpers.monitor.sdpa import from_sdpa

# function -> what its rows are called, and how its arguments are read
FUNCTIONS = {
    F.scaled_dot_product_attention: ("sdpa", from_sdpa),
    torch.ops.aten.scaled_dot_product_attention: ("sdpa", from_sdpa),
    torch.ops.aten.scaled_dot_product_attention.default: ("sdpa", from_sdpa),
    F.multi_head_attention_forward: ("MultiheadAttention", from_mha),
}


class Watch(TorchFunctionMode):
    """Passes every torch function on unchanged, and tells `saw` of those in `FUNCTIONS`."""

    def __init__(self, saw):
        super().__init__()
        self._saw = saw
        self._above: list | None = None  # while it is aside, the modes that lay on it

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        # In this order: torch 2.13's compiler mixes values up where is_compiling() comes first.
        if func in FUNCTIONS and not torch.compiler.is_compiling():
            self._saw(*FUNCTIONS[func], args, kwargs or {})
        return result

    def step_aside(self, aside: bool) -> None:
        """Out of the stack of modes, or back to its place. Whoever else took it out puts it back:
        torch does, while a torch function runs."""
        modes = torch.overrides._get_current_function_mode_stack()
        if aside and self in modes:
            place = modes.index(self)
            self._above = modes[place + 1 :]
            _replace_modes(modes, [*modes[:place], *self._above])
        elif not aside and self._above is not None:
            place = next((i for i, mode in enumerate(modes) if mode in self._above), len(modes))
            _replace_modes(modes, [*modes[:place], self, *modes[place:]])
            self._above = None


def _replace_modes(old: list, new: list) -> None:
    same = next(
        (i for i, (a, b) in enumerate(zip(old, new)) if a is not b), min(map(len, (old, new)))
    )
    for _ in old[same:]:
        torch.overrides._pop_mode()
    for mode in new[same:]:
        torch.overrides._push_mode(mode)
