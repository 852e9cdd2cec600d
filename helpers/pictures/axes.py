"""A plot in SVG: scales, ticks, curves, bars. Only what the explorers need."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from helpers.pictures import svg
from helpers.pictures.palette import QUIET, RULE


@dataclass(frozen=True)
class Axes:
    """A rectangle of the picture and the numbers along its sides.

    left, top, width, height : CSS pixels. x, y : (lowest, highest) in data units; y grows upwards.
    """

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Data units to pixels."""
        return (
            self.left + self.width * (x - self.x[0]) / (self.x[1] - self.x[0]),
            self.top + self.height * (1 - (y - self.y[0]) / (self.y[1] - self.y[0])),
        )

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x_axis(self, ticks: Iterable[tuple[float, str]], label: str = "") -> str:
        """The base line with its ticks (value, text), and a label under them."""
        parts = [svg.path(f"M{svg.px(self.left)},{svg.px(self.bottom)} h{svg.px(self.width)}",
                          stroke=RULE)]  # fmt: skip
        for value, words in ticks:
            x, _ = self.at(value, self.y[0])
            parts.append(svg.path(f"M{svg.px(x)},{svg.px(self.bottom)} v5", stroke=RULE))
            parts.append(svg.text(x, self.bottom + 19, svg.words(words), size=12, fill=QUIET,
                                  anchor="middle"))  # fmt: skip
        middle = self.left + self.width / 2
        parts.append(svg.text(middle, self.bottom + 39, label, size=12.5, fill=QUIET,
                              anchor="middle"))  # fmt: skip
        return "".join(parts)

    def y_axis(self, ticks: Iterable[tuple[float, str]], label: str = "") -> str:
        """Light lines across the plot at the ticks, their text on the left, a label on top."""
        parts = [svg.text(self.left, self.top - 10, label, size=12.5, fill=QUIET)]
        for value, words in ticks:
            _, y = self.at(self.x[0], value)
            line = f"M{svg.px(self.left)},{svg.px(y)} h{svg.px(self.width)}"
            parts.append(svg.path(line, stroke="#e9ebef", line=1))
            parts.append(svg.text(self.left - 8, y + 4, svg.words(words), size=12, fill=QUIET,
                                  anchor="end"))  # fmt: skip
        return "".join(parts)

    def curve(self, xs, ys, colour: str, *, line: float = 2.0, dash: str = "") -> str:
        """A line through the points (xs[i], ys[i]); it is cut where it leaves the plot."""
        corners: list[str] = []
        for (x0, y0), (x1, y1) in pairwise(zip(xs, ys)):
            piece = self._inside(float(x0), float(y0), float(x1), float(y1))
            if piece is None:
                continue
            start, end = (",".join(map(svg.px, self.at(*point))) for point in piece)
            if not corners or corners[-1][1:] != start:
                corners.append(f"M{start}")
            corners.append(f"L{end}")
        return svg.path(" ".join(corners), stroke=colour, line=line, dash=dash)

    def _inside(self, x0: float, y0: float, x1: float, y1: float):
        """The part of a segment between the lowest and the highest y, or None."""
        if not (self.x[0] <= x0 and x1 <= self.x[1]):
            return None
        low, high = self.y
        if max(y0, y1) < low or min(y0, y1) > high:
            return None

        def cut(x, y, other_x, other_y):
            edge = min(max(y, low), high)
            return (x, y) if edge == y else (x + (other_x - x) * (edge - y) / (other_y - y), edge)

        return cut(x0, y0, x1, y1), cut(x1, y1, x0, y0)

    def bars(self, edges, heights, colour: str) -> str:
        """Columns between consecutive edges, as one outline: cheap however many there are."""
        corners = [f"M{svg.px(self.at(edges[0], 0)[0])},{svg.px(self.bottom)}"]
        for left, right, tall in zip(edges, edges[1:], heights):
            x0, y = self.at(left, min(tall, self.y[1]))
            x1, _ = self.at(right, 0)
            corners.append(f"L{svg.px(x0)},{svg.px(y)} L{svg.px(x1)},{svg.px(y)}")
        corners.append(f"L{svg.px(self.at(edges[-1], 0)[0])},{svg.px(self.bottom)} Z")
        return svg.path(" ".join(corners), stroke=colour, line=0.6, fill=colour)


def nice_step(span: float, at_most: int = 8) -> float:
    """The smallest of 1, 2, 5 · 10ⁿ that divides `span` into at most so many parts."""
    rough = span / at_most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def ticks(low: float, high: float, at_most: int = 8) -> list[tuple[float, str]]:
    """Round numbers between low and high, with their text."""
    step = nice_step(high - low, at_most)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [(i * step, svg.number(i * step, decimals)) for i in range(first, last + 1)]
