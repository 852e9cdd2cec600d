"""Knows which module is running, and sees the attention of those that run without the mode."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from helpers.monitor.mha import from_encoder_layer, from_module
from helpers.monitor.mode import Watch
from helpers.monitor.naming import Names, class_name

_STEP_ASIDE = {
    torch.nn.MultiheadAttention.forward: "MultiheadAttention",
    torch.nn.TransformerEncoderLayer.forward: "TransformerEncoderLayer",
    torch.nn.TransformerEncoder.forward: "TransformerEncoder",
}


@dataclass
class _Running:
    """A module whose forward is running."""

    module: torch.nn.Module
    kind: str  # its name in _STEP_ASIDE, "compiled", or ""; the mode is off unless it is ""
    attended: bool = False  # an encoder layer that called its self_attn


class Modules:
    """Which module is running. Global hooks tell of each that begins and ends.

    While one of torch's own attention modules runs, and while something compiled does, the mode
    is off: a mode keeps them from the fast path, which gives other numbers at padded positions
    and is the only one to take nested tensors. Their attention is read from their inputs.
    """

    def __init__(self, saw):
        self._saw = saw
        self._names = Names()
        self._watch: Watch | None = None
        self._thread = 0
        self.running: list[_Running] = []
        self.compiled: set[str] = set()

    def __enter__(self):
        self._thread = threading.get_ident()
        self.running.clear()
        with ExitStack() as stack:
            for hook in (
                register_module_forward_pre_hook(self._begins),
                register_module_forward_hook(self._ends, with_kwargs=True, always_call=True),
            ):
                stack.callback(hook.remove)
            self._watch = Watch(self._saw)
            torch.overrides._push_mode(self._watch)
            stack.callback(self._watch.step_aside, True)
            self._open = stack.pop_all()

    def __exit__(self, *_):
        self._open.close()

    def label(self, kind: str) -> tuple[str, str]:
        """Names of the outermost module's class and of the innermost that is running."""
        if not self.running:
            return "", ""
        suffix = ".self_attn" if kind == "TransformerEncoderLayer" else ""
        return self._names.label(self.running[0].module, self.running[-1].module, suffix)

    def _begins(self, module, _args):
        if torch.compiler.is_compiling():  # first: a compiler reads on only where this is False
            return
        if threading.get_ident() != self._thread:
            return
        if self.running and getattr(self.running[-1].module, "self_attn", None) is module:
            self.running[-1].attended = True
        self.running.append(_Running(module, _kind(module)))
        if self.running[-1].kind == "compiled":
            self.compiled.add(class_name(module))
        self._set_watch()

    def _ends(self, module, args, *rest):
        # After an exception torch leaves the kwargs out.
        kwargs, result = rest if len(rest) == 2 else ({}, None)
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        if not any(step.module is module for step in self.running):
            return  # it was running already when the monitor began
        while self.running[-1].module is not module:  # what an exception ended without a word
            self.running.pop()
        if result is not None:
            self._look_at(self.running[-1], (module, *args), kwargs)
        self.running.pop()
        if not self.running:
            self._names.pass_ends()
        self._set_watch()

    def _set_watch(self):
        self._watch.step_aside(bool(self.running and self.running[-1].kind))

    def _look_at(self, step: _Running, args, kwargs):
        if step.kind == "MultiheadAttention":
            self._saw(step.kind, from_module, args, kwargs)
        elif step.kind == "TransformerEncoderLayer" and not step.attended:
            self._saw(step.kind, from_encoder_layer, args, kwargs)


def _kind(module) -> str:
    if isinstance(module, torch.jit.ScriptModule) or type(module).__name__ == "OptimizedModule":
        return "compiled"
    return _STEP_ASIDE.get(type(module).forward, "")
