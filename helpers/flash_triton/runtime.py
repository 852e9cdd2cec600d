"""Where the kernels can run: a GPU, Triton's interpreter on the CPU, or nowhere, and then why.

Triton decides when it is imported: with TRITON_INTERPRET=1 in the environment every kernel becomes
Python that works on NumPy arrays, without it every kernel is compiled for a GPU.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import NamedTuple

import torch


class Availability(NamedTuple):
    """Whether the kernels can run here, and how, or why not. True or False in an `if`."""

    ok: bool
    reason: str

    def __bool__(self) -> bool:
        return self.ok


def prepare() -> None:
    """Choose the interpreter if there is no GPU. Must come before Triton is imported."""
    if not torch.cuda.is_available() and "triton" not in sys.modules:
        os.environ.setdefault("TRITON_INTERPRET", "1")


def interpreted() -> bool:
    """Whether Triton was imported as an interpreter. Needs Triton."""
    import triton.language as tl
    from triton.runtime.jit import JITFunction

    return not isinstance(tl.max, JITFunction)  # Triton's own kernels were made as ours will be


@functools.cache
def available() -> Availability:
    """Whether `flash_attention` can run here, and how, or why not.

    Returns Availability(ok, reason), which counts as True or False. Raises nothing.
    """
    try:
        import triton
    except Exception as error:  # missing, or broken
        advice = (
            f"Install it with: pip install triton ({error})."
            if sys.platform == "linux"
            else f"It exists for Linux, and this is {sys.platform}: use a Linux machine or WSL."
        )
        return Availability(False, f"Triton cannot be imported. {advice}")
    if interpreted():
        return Availability(
            True, f"Triton {triton.__version__}'s interpreter, on the CPU: right, but slow"
        )
    if not torch.cuda.is_available():
        return Availability(
            False,
            "torch sees no GPU here, and Triton was imported without TRITON_INTERPRET=1, so that "
            "it cannot interpret. Restart Python (in JupyterLab: Kernel, Restart Kernel) and "
            "import helpers.flash_triton before anything that imports Triton, as the first step "
            "of a torch optimizer does; if TRITON_INTERPRET is set to 0, unset it.",
        )
    if torch.version.hip:
        return Availability(
            False, "This torch is built for AMD GPUs, and the block sizes are for NVIDIA's only."
        )
    major, minor = torch.cuda.get_device_capability()
    if (major, minor) < (7, 5):
        return Availability(
            False,
            f"{torch.cuda.get_device_name()} has compute capability {major}.{minor}, and Triton "
            "needs 7.5 (Turing) or newer. Set TRITON_INTERPRET=1 before Python starts.",
        )
    return Availability(True, f"{torch.cuda.get_device_name()} (sm_{major}{minor})")


def require() -> None:
    """Raises RuntimeError with the reason where the kernels cannot run."""
    here = available()
    if not here:
        raise RuntimeError(f"flash_attention cannot run here. {here.reason}")
