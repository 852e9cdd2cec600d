"""Small grids of coloured cells side by side that share their rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from helpers.pictures import svg
from helpers.pictures.figure import Figure
from helpers.pictures.heatmap import cividis
from helpers.pictures.palette import QUIET, TEXT, ink_on

WIDTH = 950.0
_LEFT, _TOP, _HEIGHT, _GAP, _BETWEEN = 132.0, 132.0, 34.0, 4.0, 26.0


@dataclass(frozen=True)
class Panel:
    """One grid. values : (rows, columns). low, high : the values of the darkest and the lightest
    colour. log : colours go by the logarithm. decimals : of the numbers in the cells."""

    title: str
    subtitle: str
    values: np.ndarray
    low: float
    high: float
    decimals: int = 2
    log: bool = False

    def share(self, value: float) -> float:
        low, high, value = self.low, self.high, max(value, 1e-12 if self.log else value)
        if self.log:
            low, high, value = np.log([low, high, value])
        return float((value - low) / (high - low))


def panels(
    grids: Sequence[Panel], *, rows: Sequence[str], columns: Sequence[str], row_title: str,
    column_title: str, title: str, words: str,
) -> Figure:  # fmt: skip
    """The grids from left to right. `words` say what they show."""
    room = (WIDTH - _LEFT - 24 - _BETWEEN * (len(grids) - 1)) / len(grids)
    cell = room / len(columns) - _GAP
    body = [svg.text(28, 34, svg.formula(title, 16), size=16, fill=TEXT, weight="bold")]
    body += _row_labels(rows, row_title)
    for g, grid in enumerate(grids):
        left = _LEFT + g * (room + _BETWEEN)
        body.append(svg.text(left, 70, svg.formula(grid.title, 13), size=13, fill=TEXT,
                             weight="bold"))  # fmt: skip
        body.append(svg.text(left, 90, svg.formula(grid.subtitle, 12), size=12, fill=QUIET))
        for j, name in enumerate(columns):
            x = left + j * (cell + _GAP)
            label = f"{column_title} {name}" if j == 0 and g == 0 else name
            body.append(svg.text(x + cell / 2, _TOP - 9, svg.formula(label, 12), size=12,
                                 fill=QUIET, anchor="middle"))  # fmt: skip
            for i in range(len(rows)):
                body.append(_cell(grid, i, j, x, cell))
    height = _TOP + len(rows) * (_HEIGHT + _GAP) + 22
    return Figure(svg.document(WIDTH, height, title, words, body), words)


def _row_labels(rows, row_title):
    yield svg.text(_LEFT - 14, _TOP - 9, svg.formula(row_title, 12), size=12, fill=QUIET,
                   anchor="end")  # fmt: skip
    for i, name in enumerate(rows):
        y = _TOP + i * (_HEIGHT + _GAP) + _HEIGHT / 2 + 4.5
        yield svg.text(_LEFT - 14, y, svg.formula(name, 13), size=13, fill=TEXT, anchor="end")


def _cell(grid: Panel, i: int, j: int, x: float, width: float) -> str:
    y, value = _TOP + i * (_HEIGHT + _GAP), float(grid.values[i, j])
    colour = cividis(grid.share(value))
    return svg.rect(x, y, width, _HEIGHT, fill=colour, radius=5) + svg.text(
        x + width / 2, y + _HEIGHT / 2 + 4.5, svg.number(value, grid.decimals), size=12.5,
        fill=ink_on(colour), anchor="middle",
    )  # fmt: skip
