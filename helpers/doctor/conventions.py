"""What the caller says about the function: scale, causality, meaning of a mask, order of axes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers.attention import causal_mask
from helpers.doctor.precision import EPS

SCALES: dict[str, Callable[[int], float]] = {
    "1/sqrt(d_k)": lambda d_k: 1 / math.sqrt(d_k),
    "1/d_k": lambda d_k: 1 / d_k,
    "1": lambda d_k: 1.0,
}
LAYOUTS = ("BHTD", "BTHD", "HTD", "THD", "BTD", "TD")
_CANONICAL = "BHTD"


@dataclass(frozen=True)
class Conventions:
    """The arguments of `examine` but the first, checked. See there."""

    scale: float | str | Callable[[int], float] | None = None
    causal: bool = False
    causal_alignment: str = "upper_left"
    mask_true_means: str = "attend"
    layout: str = "BHTD"
    framework: str | None = None
    dtype: str | None = None
    device: str | None = None
    d_k: int | None = None
    d_v: int | None = None
    empty_rows: str = "zeros"
    gradients: bool = True
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self):
        _one_of("causal_alignment", self.causal_alignment, ("upper_left", "lower_right"))
        _one_of("mask_true_means", self.mask_true_means, ("attend", "masked"))
        _one_of("layout", self.layout, LAYOUTS)
        _one_of("framework", self.framework, (None, "numpy", "torch"))
        _one_of("dtype", self.dtype, (None, *EPS))
        _one_of("empty_rows", self.empty_rows, ("zeros", "any"))
        for name in ("causal", "gradients"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is {getattr(self, name)!r}, but must be True or False.")
        for name in ("d_k", "d_v"):
            _positive(name, getattr(self, name), numbers.Integral)
        _positive("seconds", self.seconds, numbers.Real)
        if self.framework == "numpy" and self.device is not None:
            raise ValueError(f"device is {self.device!r}, but NumPy knows none: drop it.")
        if self.framework == "numpy" and self.dtype == "bfloat16":
            raise ValueError("NumPy has no bfloat16: pass another dtype.")
        self.scale_for(12)

    def scale_for(self, d_k: int) -> float:
        """What the scores are multiplied by when queries have d_k features."""
        scale = "1/sqrt(d_k)" if self.scale is None else self.scale
        if isinstance(scale, str):
            _one_of("scale", scale, tuple(SCALES))
            scale = SCALES[scale]
        if callable(scale):
            scale = scale(d_k)
        if not isinstance(scale, numbers.Real) or isinstance(scale, bool):
            raise TypeError(
                f"scale gives {scale!r}, but must be a number, a function of d_k that returns one, "
                f"None, or one of {', '.join(map(repr, SCALES))}."
            )
        if not math.isfinite(scale):
            raise ValueError(f"scale gives {float(scale)}, but must be finite.")
        return float(scale)

    def causal_mask(self, T_q: int, T_k: int) -> np.ndarray:
        """Who may attend to whom when nobody looks ahead: boolean (T_q, T_k)."""
        return causal_mask(T_q, T_k, self.causal_alignment)

    def has(self, axis: str) -> bool:
        """Whether the layout has an axis "B" or "H"."""
        return axis in self.layout

    def __str__(self) -> str:
        said = [f"layout {self.layout}"]
        if self.scale is not None:
            shown = self.scale if isinstance(self.scale, str | numbers.Real) else "as given"
            said.append(f"scale {shown}")
        if self.causal:
            said.append("always causal")
        if self.causal_alignment != "upper_left":
            said.append("causal mask aligned to the lower right")
        if self.mask_true_means != "attend":
            said.append("True = masked")
        return ", ".join(said)


def arrange(x: np.ndarray, layout: str) -> np.ndarray:
    """From (B, H, T, D), where an axis that the layout lacks has length 1, to the layout."""
    absent = tuple(i for i, axis in enumerate(_CANONICAL) if axis not in layout)
    present = [axis for axis in _CANONICAL if axis in layout]
    turned = np.squeeze(x, axis=absent).transpose([present.index(axis) for axis in layout])
    return np.ascontiguousarray(turned)


def restore(x: np.ndarray, layout: str) -> np.ndarray:
    """Back from the layout to (B, H, T, D)."""
    present = [axis for axis in _CANONICAL if axis in layout]
    x = x.transpose([layout.index(axis) for axis in present])
    return np.expand_dims(x, tuple(i for i, a in enumerate(_CANONICAL) if a not in layout))


def arrange_mask(mask: np.ndarray, layout: str) -> np.ndarray:
    """A mask (T_q, T_k) or (B or 1, H or 1, T_q, T_k), without the axes that the layout lacks."""
    if mask.ndim == 2:
        return mask
    return np.squeeze(mask, axis=tuple(i for i, a in enumerate("BH") if a not in layout))


def _one_of(name, value, known):
    if value not in known:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(map(repr, known))}.")


def _positive(name, value, kind):
    if value is None:
        return
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, but must be a number.")
    if not value > 0:  # nan is no more than 0 either
        raise ValueError(f"{name} is {value!r}, but must be positive.")
