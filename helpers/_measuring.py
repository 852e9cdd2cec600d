"""What every measurement of `helpers.experiments` needs: checks of arguments, standard errors."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Mapping

import numpy as np

from helpers.attention import normalized_entropy, softmax

Seed = int | np.random.Generator

# Vector entries drawn at a time: 4 MB of float64 an array.
CHUNK_ENTRIES = 2**19


def count(name: str, value, least: int = 1) -> int:
    """`value` if it is a whole number of at least `least`."""
    advice = f"pass an integer of at least {least}."
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} is {value!r}, not a whole number; {advice}")
    if value < least:
        raise ValueError(f"{name} is {value}, below the limit {least}; {advice}")
    return operator.index(value)


def counts(name: str, values: Iterable[int] | int, least: int = 1) -> list[int]:
    """A list of at least one such number; a single number is a list of one."""
    return [count(f"an entry of {name}", value, least) for value in _listed(name, values)]


def real(name: str, value, low: float = -math.inf, high: float = math.inf) -> float:
    """`value` as a float if it is a finite number from `low` to `high`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}, not a number; pass a real number.")
    if not math.isfinite(value) or not low <= value <= high:
        limits = "" if low == -math.inf else f" from {low:g}"
        limits += "" if high == math.inf else f" to {high:g}"
        if limits == f" from {low:g}":
            limits = f" of at least {low:g}"
        raise ValueError(f"{name} is {value:g}; pass a finite number{limits}.")
    return float(value)


def reals(name: str, values: Iterable[float] | float, low: float = -math.inf) -> list[float]:
    """A list of at least one such number; a single number is a list of one."""
    return [real(f"an entry of {name}", value, low) for value in _listed(name, values)]


def choice(name: str, value, known: Mapping):
    """What `known` holds under the key `value`."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} is {value!r}; choose one of: {', '.join(map(repr, known))}.")
    return known[value]


def _listed(name: str, values) -> list:
    listed = [values] if isinstance(values, numbers.Number) else list(values)
    if not listed:
        raise ValueError(f"{name} is empty; pass at least 1 number.")
    return listed


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean of independent values, shape (n,), n ≥ 2, and its standard error s/√n."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def root_and_error(squares: np.ndarray) -> tuple[float, float]:
    """Root of the mean of independent values ≥ 0, and its standard error by the delta method."""
    mean, error = mean_and_error(squares)
    root = math.sqrt(mean)
    return root, error / (2 * root) if root else 0.0


def quantiles(values: np.ndarray) -> dict[str, float]:
    """The 5, 25, 50, 75 and 95 % quantiles of all values, as columns of a table."""
    names = ("q05", "q25", "median", "q75", "q95")
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    return dict(zip(names, np.quantile(values, shares).tolist(), strict=True))


def score_std_columns(scaled: np.ndarray) -> dict[str, float]:
    """Root mean square of scores (rows, T), rows independent, as columns of a table."""
    root, error = root_and_error((scaled**2).mean(axis=1))
    return {"score_std": root, "score_std_error": error}


def weight_columns(scaled: np.ndarray) -> dict[str, float]:
    """Mean normalised entropy and mean largest weight of softmax's rows, as columns."""
    weights = softmax(scaled)
    entropy, entropy_error = mean_and_error(normalized_entropy(weights))
    largest, largest_error = mean_and_error(weights.max(axis=-1))
    return {
        "entropy": entropy,
        "entropy_error": entropy_error,
        "largest_weight": largest,
        "largest_weight_error": largest_error,
    }
