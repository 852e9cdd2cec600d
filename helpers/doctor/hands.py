"""What NumPy and torch do differently: making inputs, reading results. torch is imported only when
a function is handed tensors."""

from __future__ import annotations

import numbers
import sys

import numpy as np

from helpers.doctor.precision import name_of


class NotNumbers(Exception):
    """What came back is no array of real numbers; the message says what it is."""


class NumPyHands:
    """Inputs as NumPy arrays."""

    name = "numpy"

    def __init__(self, precision: str):
        self.precision = precision

    def floats(self, x: np.ndarray):
        return x.astype(self.precision)

    def booleans(self, x: np.ndarray):
        return x.copy()

    def strided(self, x, *, sliced: bool):
        """The same numbers in memory that is not contiguous: every other part of a wider array, or
        with two axes exchanged."""
        if sliced:
            wide = np.concatenate([x, np.full_like(x, 7)], axis=-1)
            return wide[..., : x.shape[-1]]
        axes = (-2, -3) if x.ndim > 2 else (-2, -1)
        return np.ascontiguousarray(x.swapaxes(*axes)).swapaxes(*axes)


class TorchHands:
    """Inputs as torch tensors."""

    name = "torch"

    def __init__(self, precision: str, device: str | None):
        """Raises ImportError without torch, ValueError for a device that it has not."""
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"torch is needed, but cannot be imported ({error}): install it, or leave out "
                "framework, device and dtype='bfloat16'."
            ) from None
        try:
            torch.empty(0, device=device)
        except Exception as error:  # RuntimeError, AssertionError, … by the kind of device
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(
                f"device is {device!r}, but torch cannot use it here: {reason}. "
                'Pass "cpu", or nothing.'
            ) from None
        self.precision, self.device = precision, device
        self._torch, self._dtype = torch, getattr(torch, precision)

    def floats(self, x: np.ndarray):
        return self._torch.from_numpy(x.copy()).to(self.device, self._dtype)

    def booleans(self, x: np.ndarray):
        return self._torch.from_numpy(x.copy()).to(self.device)

    def strided(self, x, *, sliced: bool):
        if sliced:
            wide = self._torch.cat([x, self._torch.full_like(x, 7)], dim=-1)
            return wide[..., : x.shape[-1]]
        axes = (-2, -3) if x.ndim > 2 else (-2, -1)
        return x.transpose(*axes).contiguous().transpose(*axes)

    def prepare_to_differentiate(self) -> None:
        """Let torch import what its first gradient needs. The watchdog, which has no patience for
        that, would cut the import, and every later one would fail."""
        x = self._torch.ones(1, device=self.device, requires_grad=True)
        self._torch.autograd.grad(x * x, x, self._torch.ones_like(x))

    def differentiate(self, output, inputs, grad_output: np.ndarray, manner: str):
        """Gradients at the inputs, None for one that has none; None for all if nothing flows.

        manner : "contiguous"; "strided" and "expanded" hand the same numbers as other views.
        """
        torch = self._torch
        if not isinstance(output, torch.Tensor) or not output.requires_grad:
            return None
        if manner == "expanded":
            above = torch.ones((), dtype=output.dtype, device=output.device).expand(output.shape)
        else:
            above = torch.from_numpy(grad_output.copy()).to(output.device, output.dtype)
            above = self.strided(above, sliced=False) if manner == "strided" else above
        return torch.autograd.grad(output, inputs, above, allow_unused=True)


def is_tensor(x: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_array(x: object) -> bool:
    return isinstance(x, np.ndarray) or is_tensor(x)


def numbers_of(x: object) -> tuple[np.ndarray, str]:
    """(float64 array, name of the dtype that it had). Raises NotNumbers."""
    if is_tensor(x):
        if x.is_complex():
            raise NotNumbers("a complex tensor")
        return x.detach().to("cpu").double().numpy(), name_of(x.dtype)
    if x is None:
        raise NotNumbers("None")
    if not isinstance(x, np.ndarray | list | tuple | numbers.Number) and not (
        hasattr(x, "__array__") or hasattr(x, "__array_interface__")
    ):
        if hasattr(x, "close") and hasattr(x, "cr_await"):
            x.close()  # else Python complains later that it was never awaited
        raise NotNumbers(f"an object of type {type(x).__name__}")
    try:
        array = np.asarray(x)
    except ValueError:
        raise NotNumbers("a list whose rows differ in length") from None
    if array.dtype.kind == "c":
        raise NotNumbers("an array of complex numbers")
    try:
        return np.array(array, dtype=np.float64), name_of(array.dtype)
    except (TypeError, ValueError):
        raise NotNumbers("an array of something else than numbers") from None
