"""The normalised entropy of each head as a heatmap."""

from __future__ import annotations

import numpy as np

from helpers.monitor.table import COLLAPSED, Head
from helpers.pictures.figure import Figure
from helpers.pictures.heatmap import heatmap


def picture_of(heads: list[Head]) -> Figure:
    """A line for each layer, a column for each head."""
    layers = list(dict.fromkeys(head.layer for head in heads))
    count = 1 + max(head.head for head in heads)
    entropy = np.full((len(layers), count), np.nan)
    for head in heads:
        entropy[layers.index(head.layer), head.head] = head.entropy
    return heatmap(
        entropy,
        rows=layers,
        columns=[str(i) for i in range(count)],
        column_title="head",
        title="Normalised entropy of each head",
        words=_words(layers, entropy),
        ends=("one key takes all", "all keys alike"),
        outlined=entropy < COLLAPSED,
        outline_means=f"below {COLLAPSED}: collapsed",
    )


def _words(layers: list[str], entropy: np.ndarray) -> str:
    lines = ["Normalised entropy of each head: 0, one key takes all; 1, all keys alike."]
    for name, values in zip(layers, entropy):
        lines.append(f"{name}: " + " ".join("–" if np.isnan(x) else f"{x:.2f}" for x in values))
    return "\n".join(lines)
