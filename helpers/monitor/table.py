# ruff: noqa: RUF009  (column() only declares a field)
"""One head of one layer over all its recorded calls, and the table of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from helpers._table import Table, column
from helpers.monitor.rows import AttentionRow

# A row of normalised entropy h spreads over T^h keys in effect: at 0.1, 1.5 of 64 or 2 of 1,024.
# Random scores of 64 keys get there at a standard deviation of 11, which d_head 128 without a scale
# has before any training.
COLLAPSED = 0.1
# With scores this close, a key one deviation above the others gets e^0.2 = 1.22 times its share.
UNIFORM, UNIFORM_STD = 0.99, 0.2


@dataclass(frozen=True, eq=False, repr=False)
class AttentionTable(Table):
    """One line for each head of each layer, over all its recorded calls, each query row counting
    alike (spreads: root mean square)."""

    layer: np.ndarray = column("layer")
    head: np.ndarray = column("head")
    calls: np.ndarray = column("calls")
    T_q: np.ndarray = column("T_q")
    T_k: np.ndarray = column("T_k")
    d_head: np.ndarray = column("d_head")
    scale: np.ndarray = column("scale", ".4f")
    scale_ratio: np.ndarray = column("scale·√d", ".2f")
    entropy: np.ndarray = column("entropy")
    largest_weight: np.ndarray = column("largest weight")
    score_std: np.ndarray = column("score std")
    score_std_pooled: np.ndarray = column("pooled")


@dataclass
class Head:
    """A line of the table, and what the warnings need besides."""

    layer: str
    head: int
    calls: int
    T_q: str
    T_k: str
    d_head: int
    scale: float
    scale_ratio: float
    entropy: float
    largest_weight: float
    score_std: float
    score_std_pooled: float
    q_over_k: float
    keys: int
    rows: int

    @classmethod
    def of(cls, layer: str, rows: list[AttentionRow]) -> Head:
        last = rows[-1]
        q, k = (float(np.mean([getattr(row, name) for row in rows])) for name in ("q_rms", "k_rms"))
        return cls(
            layer=layer,
            head=last.head,
            calls=len(rows),
            T_q=_span(row.T_q for row in rows),
            T_k=_span(row.T_k for row in rows),
            d_head=last.d_head,
            scale=last.scale,
            scale_ratio=last.scale * math.sqrt(last.d_head),
            entropy=_mean(rows, "entropy"),
            largest_weight=_mean(rows, "largest_weight"),
            score_std=_mean(rows, "score_std", power=2),
            score_std_pooled=_mean(rows, "score_std_pooled", power=2),
            q_over_k=q / k if k else math.nan,
            keys=max(row.T_k for row in rows),
            rows=sum(row.rows for row in rows),
        )

    @property
    def broken(self) -> bool:
        return self.rows > 0 and math.isnan(self.entropy)

    @property
    def collapsed(self) -> bool:
        return self.entropy < COLLAPSED

    @property
    def saturates(self) -> bool:
        """Scores that spread this far saturate softmax even if they are random."""
        return self.score_std > math.sqrt(2 * math.log(self.keys))

    @property
    def uniform(self) -> bool:
        return self.entropy > UNIFORM and self.score_std < UNIFORM_STD

    @property
    def seems_scaled(self) -> bool:
        """q is smaller than k by about 1/√d_head. Only a guess: weights may do that too."""
        return self.d_head > 1 and 0.8 < self.q_over_k * math.sqrt(self.d_head) < 1.25


def heads_of(rows: list[AttentionRow]) -> list[Head]:
    """Layers in the order of their first call; named with their model where there are several."""
    several = len({row.model for row in rows}) > 1
    layers: dict[str, dict[int, list[AttentionRow]]] = {}
    for row in rows:
        name = f"{row.model}: {row.layer}" if several and row.model else row.layer
        layers.setdefault(name, {}).setdefault(row.head, []).append(row)
    return [Head.of(name, heads[head]) for name, heads in layers.items() for head in sorted(heads)]


def table_of(heads: list[Head]) -> AttentionTable:
    names = [column.name for column in AttentionTable._columns()]
    return AttentionTable.from_rows([{name: getattr(h, name) for name in names} for h in heads])


def _mean(rows: list[AttentionRow], name: str, power: int = 1) -> float:
    """Over the calls, each weighing as much as its query rows; nan if there are none."""
    count = sum(row.rows for row in rows)
    total = sum(getattr(row, name) ** power * row.rows for row in rows if row.rows)
    return float((total / count) ** (1 / power)) if count else math.nan


def by_layer(heads: list[Head]) -> dict[str, list[Head]]:
    layers: dict[str, list[Head]] = {}
    for head in heads:
        layers.setdefault(head.layer, []).append(head)
    return layers


def span_of(values, decimals: int = 2) -> str:
    """Smallest to largest of those that are numbers."""
    found = [value for value in values if not math.isnan(value)] or [math.nan]
    low, high = (f"{value:.{decimals}f}" for value in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"


def _span(lengths) -> str:
    found = sorted(set(lengths))
    return str(found[0]) if len(found) == 1 else f"{found[0]}–{found[-1]}"
