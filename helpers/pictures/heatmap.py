"""A heatmap with its numbers in the cells: one line a layer, one column a head, for instance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from helpers.pictures import svg
from helpers.pictures.figure import Figure
from helpers.pictures.palette import ERROR, QUIET, RULE, TEXT, ink_on

WIDTH = 900.0  # what a page shows at full size; many columns make a picture wider, few narrower
CELL_HEIGHT = 28.0
NARROWEST, WIDEST = 34.0, 64.0  # cells: 34 pixels are what "0.87" needs
LARGEST_TYPE = 1.5  # times the usual: type grows where the page will shrink the picture
GAP = 5.0  # room for the outlines of neighbours
TOP = 84.0
SCALE_WIDTH = 360.0
LONGEST_LABEL = 34

# Every tenth of cividis (Nuñez, Anderton, Renslow 2018), which grows evenly lighter and looks the
# same with and without red-green colour blindness. Straight lines between stay within 9/255 of it.
_CIVIDIS = (
    "#00224e", "#083370", "#35456c", "#4f576c", "#666970", "#7d7c78",
    "#948e77", "#aea371", "#c8b866", "#e5cf52", "#fee838",
)  # fmt: skip


def cividis(amount: float) -> str:
    """The colour "#rrggbb" for an amount from 0 (dark blue) to 1 (yellow); clipped beyond."""
    place = min(max(amount, 0.0), 1.0) * (len(_CIVIDIS) - 1)
    below = min(int(place), len(_CIVIDIS) - 2)
    one, two = _CIVIDIS[below : below + 2]
    first, second = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (one, two))
    channels = (round(a + (b - a) * (place - below)) for a, b in zip(first, second))
    return "#" + "".join(f"{c:02x}" for c in channels)


def heatmap(
    values, *, rows: list[str], columns: list[str], title: str, words: str, column_title: str = "",
    low: float = 0.0, high: float = 1.0, ends: tuple[str, str] = ("", ""), outlined=None,
    outline_means: str = "", decimals: int = 2,
) -> Figure:  # fmt: skip
    """`values` (rows, columns) as coloured cells with their numbers, and a scale under them.

    rows, columns : a label for each; long row labels lose their beginning, columns get theirs
    above. column_title : what the columns are. low, high : the values of the darkest and of the
    lightest colour; `ends` says in words what they mean. outlined : booleans like `values`, cells
    to mark; outline_means : what the mark says. words : what the picture shows, for those who do
    not see it. NaN is drawn as an empty dashed cell.

    Raises ValueError when labels and values differ in number, or low is not below high.
    """
    values = np.asarray(values, dtype=float)
    if values.shape != (len(rows), len(columns)) or not values.size:
        raise ValueError(
            f"values have shape {values.shape}, but there are {len(rows)} row and {len(columns)} "
            "column labels; pass one label for each row and column, at least one of each."
        )
    if not low < high:
        raise ValueError(f"low is {low}, high is {high}; low must be below high.")
    labels = [_shortened(label) for label in rows]
    grid = _Grid.of(labels, columns)
    marked = np.zeros(values.shape, bool) if outlined is None else np.asarray(outlined)

    body = [grid.text(28, 32, svg.formula(title, 16 * grid.type), 16, TEXT, weight="bold")]
    body += _labels(grid, labels, columns, column_title)
    body += _cells(grid, (values - low) / (high - low), _printed(values, decimals, grid), marked)
    bottom = TOP + len(rows) * (CELL_HEIGHT + GAP)
    body.append(_scale(grid, bottom + 22, low, high, ends, decimals))
    bottom += 64
    if outline_means and marked.any():
        body.append(svg.rect(grid.left, bottom + 8, 22, 16, stroke=ERROR, line=2.5, radius=4))
        body.append(grid.text(grid.left + 32, bottom + 21, svg.formula(outline_means, 12.5), 12.5))
        bottom += 34
    right = max(grid.right, 56 + 11.5 * grid.type * len(title))
    return Figure(svg.document(right, bottom, title, words, body), words)


@dataclass(frozen=True)
class _Grid:
    """Where the cells are, and how large the type is."""

    left: float
    width: float  # of a cell
    right: float  # of the picture
    type: float  # times the usual size

    @classmethod
    def of(cls, rows: list[str], columns: list[str]) -> _Grid:
        room = 7.8 * max(map(len, rows))
        width = min(max((WIDTH - room - 66) / len(columns) - GAP, NARROWEST), WIDEST)
        across = len(columns) * (width + GAP)
        type_ = min(max((room + 66 + across) / WIDTH, 1.0), LARGEST_TYPE)
        left = room * type_ + 38
        return cls(left, width, left + max(across, SCALE_WIDTH * type_) + 28, type_)

    def x(self, column: int) -> float:
        return self.left + column * (self.width + GAP)

    def text(self, x, y, content, size, fill=QUIET, **options) -> str:
        return svg.text(x, y, content, size=size * self.type, fill=fill, **options)


def _shortened(label: str) -> str:
    """A layer's last parts tell it from its neighbours, so the beginning goes."""
    return label if len(label) <= LONGEST_LABEL else "…" + label[1 - LONGEST_LABEL :]


def _labels(grid: _Grid, rows, columns, column_title):
    for i, label in enumerate(rows):
        y = TOP + i * (CELL_HEIGHT + GAP) + CELL_HEIGHT / 2 + 4.5 * grid.type
        yield grid.text(grid.left - 12, y, svg.words(label), 13, TEXT, anchor="end")
    for j, label in enumerate(columns):
        yield grid.text(grid.x(j) + grid.width / 2, TOP - 9, svg.words(label), 12, anchor="middle")
    if column_title:
        yield grid.text(grid.left - 12, TOP - 9, svg.words(column_title), 12, anchor="end")


def _printed(values: np.ndarray, decimals: int, grid: _Grid) -> np.ndarray:
    """The numbers in the cells; where room is scarce, a character shorter."""
    printed = [svg.number(value, decimals) for value in values.flat]
    if grid.type > 1:
        printed = [_shorter(text) for text in printed]
    return np.array(printed, dtype=object).reshape(values.shape)


def _shorter(number: str) -> str:
    """ ".87" for "0.87", "1.0" for "1.00"."""
    if number.startswith("0."):
        return number[1:]
    return number[:-1] if number[-3:-2] == "." else number


def _cells(grid: _Grid, shares: np.ndarray, printed: np.ndarray, marked: np.ndarray):
    widest = max(map(svg.text_width, printed.flat))
    size = min(12 * grid.type, (grid.width - 4) / widest)
    for i, j in np.ndindex(shares.shape):
        x, y = grid.x(j), TOP + i * (CELL_HEIGHT + GAP)
        yield _cell(x, y, grid.width, size, printed[i, j], shares[i, j], marked[i, j])


def _cell(x, y, width, size, printed, share, marked) -> str:
    if not math.isfinite(share):
        box = svg.rect(x, y, width, CELL_HEIGHT, stroke=RULE, dash="3 4")
        fill = "#ffffff"
        printed = "–"
    else:
        fill = cividis(share)
        box = svg.rect(x, y, width, CELL_HEIGHT, fill=fill)
    number = svg.text(x + width / 2, y + CELL_HEIGHT / 2 + 0.37 * size, printed, size=size,
                      fill=ink_on(fill), anchor="middle",
                      weight="bold" if marked else "normal")  # fmt: skip
    ring = svg.rect(x - 1, y - 1, width + 2, CELL_HEIGHT + 2, stroke=ERROR, line=2.5)
    return box + number + (ring if marked else "")


def _scale(grid: _Grid, y, low, high, ends, decimals, steps: int = 40) -> str:
    """The colours from low to high as a bar, with both ends named."""
    x, width = grid.left, SCALE_WIDTH * grid.type
    step = width / steps
    parts = [svg.rect(x + i * step, y, step + 0.5, 12, fill=cividis((i + 0.5) / steps), radius=0)
             for i in range(steps)]  # fmt: skip
    ticks = (x, low, ends[0], "start"), (x + width, high, ends[1], "end")
    for place, value, means, anchor in ticks:
        said = f"{svg.number(value, decimals)}{': ' if means else ''}{means}"
        parts.append(grid.text(place, y + 30, svg.words(said), 12, anchor=anchor))
    return "".join(parts)
