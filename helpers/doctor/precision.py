"""What a dtype can hold: rounding to it in NumPy alone, and names that NumPy and torch share."""

from __future__ import annotations

import numpy as np

# Name -> distance from 1 to the next larger number. From fine to coarse.
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_FINENESS = list(EPS)


def is_half(precision: str) -> bool:
    return precision in ("float16", "bfloat16")


def coarser(*precisions: str) -> str:
    """The one that can hold the least."""
    return max(precisions, key=_FINENESS.index)


def name_of(dtype: object) -> str:
    """ "float32" for NumPy's and torch's float32 alike; "" for a dtype that is none of EPS."""
    name = str(dtype).rpartition(".")[2]
    return name if name in EPS else ""


def rounded(x: np.ndarray, precision: str) -> np.ndarray:
    """The nearest numbers that `precision` holds, in an array of the dtype that x had."""
    if precision == "float64":
        return x
    if precision == "bfloat16":
        return _to_bfloat16(x.astype(np.float32)).astype(x.dtype)
    with np.errstate(over="ignore"):
        return x.astype(precision).astype(x.dtype)


def _to_bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 with the lower 16 bits rounded away, ties to even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(x), kept.view(np.float32), x)
