"""Where an output differs from the right one: queries down, features across."""

from __future__ import annotations

import numpy as np

from helpers.pictures import svg
from helpers.pictures.figure import Figure
from helpers.pictures.heatmap import heatmap

_MOST_ROWS, _MOST_COLUMNS = 16, 12


def difference(errors, title: str = "Where the output is wrong") -> Figure:
    """|output − right output| as a heatmap with its numbers.

    errors : (T_q, d_v), not negative, no unit; nan where the output is nan. More than 16 queries
    or 12 features are drawn in groups, each with its largest error. A picture of errors that are
    all below 0.1 is drawn in units of a power of ten.

    Raises ValueError if errors is not two-dimensional or empty.
    """
    errors = np.asarray(errors, dtype=float)
    if errors.ndim != 2 or not errors.size:
        raise ValueError(
            f"errors has shape {errors.shape}, but must be (queries, features), at least one each."
        )
    rows, down = _groups(errors.shape[0], _MOST_ROWS)
    columns, across = _groups(errors.shape[1], _MOST_COLUMNS)
    values = np.array([[_largest(errors[r, c]) for c in across] for r in down])
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max(initial=0))
    exponent = int(np.floor(np.log10(largest))) if 0 < largest < 0.1 else 0
    unit = 10.0**exponent
    if exponent:
        title = f"{title}, in units of 10{svg.superscript(exponent)}"
    return heatmap(
        values / unit,
        rows=[f"query {label}" for label in rows],
        columns=list(columns),
        column_title="feature",
        title=title,
        words=_words(errors, title),
        high=largest / unit or 1.0,
        ends=("right", "largest error"),
        outlined=~np.isfinite(values),
        outline_means="nan or inf",
        decimals=2 if largest / unit < 10 else 0,
    )


def _groups(length: int, most: int) -> tuple[list[str], list[slice]]:
    """Labels and slices of at most `most` groups of neighbours."""
    size = -(-length // most)
    starts = range(0, length, size)
    slices = [slice(start, min(start + size, length)) for start in starts]
    labels = [f"{s.start}" if s.stop - s.start == 1 else f"{s.start}–{s.stop - 1}" for s in slices]
    return labels, slices


def _largest(block: np.ndarray) -> float:
    return float(block.max()) if np.isfinite(block).all() else np.nan


def _words(errors: np.ndarray, title: str) -> str:
    bad = ~np.isfinite(errors)
    lines = [f"{title}: {errors.shape[0]} queries, {errors.shape[1]} features."]
    if bad.any():
        queries = np.flatnonzero(bad.any(axis=1))
        lines.append(f"nan or inf for {len(queries)} of the queries, first for query {queries[0]}.")
    if not bad.all():
        finite = np.where(bad, -1.0, errors)
        i, j = np.unravel_index(np.argmax(finite), finite.shape)
        lines.append(f"Largest error {finite[i, j]:.2g}, at query {i}, feature {j}.")
    return " ".join(lines)
