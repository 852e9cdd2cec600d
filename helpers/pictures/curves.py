"""Curves and histograms that need no controls: drawn once, in the colours of the series."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from helpers.pictures import svg
from helpers.pictures.axes import Axes, ticks
from helpers.pictures.figure import Figure
from helpers.pictures.palette import QUIET, ROLES, TEXT, tint

WIDTH = 950.0


@dataclass(frozen=True)
class Line:
    """One curve of a plot.

    xs, ys : its points. name : written beside its last point. role : a key of `palette.ROLES`
    that gives the colour. errors : half-lengths of error bars in units of y. dots : mark points.
    line : join them.
    """

    xs: Sequence[float]
    ys: Sequence[float]
    name: str
    role: str = "scores"
    dash: str = ""
    dots: bool = True
    line: bool = True
    errors: Sequence[float] | None = None


@dataclass(frozen=True)
class Histogram:
    """Columns of a histogram and a curve over them.

    values : the sample. title : over the plot. density : a function to draw over it, or None.
    span : (lowest, highest) value shown; None takes the sample's. role : gives the colour.
    marks : values at which a thin line stands.
    """

    values: np.ndarray
    title: str
    density: Callable[[np.ndarray], np.ndarray] | None = None
    span: tuple[float, float] | None = None
    role: str = "scores"
    bins: int = 48
    marks: tuple[float, ...] = ()


def plot(
    *lines: Line, title: str, x_label: str, y_label: str, x_log: bool = False, y_log: bool = False,
    words: str, height: float = 360.0, y_range: tuple[float, float] | None = None,
) -> Figure:  # fmt: skip
    """Curves in one pair of axes. `words` say what they show. Logarithmic axes have base 2.

    y_range : (lowest, highest) y shown; None takes 0, where nothing is negative, and the highest.
    """
    to_x, to_y = (np.log2 if log else np.asarray for log in (x_log, y_log))
    all_x = np.concatenate([to_x(line.xs) for line in lines])
    all_y = np.concatenate([to_y(line.ys) for line in lines])
    y_low = 0.0 if not y_log and all_y.min() >= 0 else float(all_y.min())
    y_high = float(all_y.max()) + 0.04 * float(all_y.max() - y_low)
    axes = Axes(76, 76, 660, height - 140, _padded(all_x.min(), all_x.max()),
                y_range or (y_low, y_high))  # fmt: skip
    body = [
        svg.text(28, 32, svg.formula(title, 16), size=16, fill=TEXT, weight="bold"),
        axes.y_axis(_ticks(*axes.y, y_log), svg.formula(y_label, 12.5)),
        axes.x_axis(_ticks(*axes.x, x_log), svg.formula(x_label, 12.5)),
    ]
    ends = spread_out([axes.at(0, to_y(line.ys)[-1])[1] for line in lines])
    for line, end in zip(lines, ends):
        xs, ys, colour = to_x(line.xs), to_y(line.ys), ROLES[line.role].fill
        if line.errors is not None:
            body.append(_error_bars(axes, xs, line, to_y, colour))
        if line.line:
            body.append(axes.curve(xs, ys, colour, line=2.5, dash=line.dash))
        if line.dots:
            body += [_dot(*axes.at(x, y), colour) for x, y in zip(xs, ys)]
        x, _ = axes.at(xs[-1], ys[-1])
        body.append(
            svg.text(x + 14, end + 4.5, svg.formula(line.name, 13), fill=colour, weight="bold")
        )
    return Figure(svg.document(WIDTH, height, title, words, body), words)


def histograms(
    *panels: Histogram, title: str, words: str, height: float = 300.0, one_scale: bool = True
) -> Figure:
    """Histograms side by side. `words` say what they show.

    one_scale : equal areas mean equal shares in all panels; else each is drawn to its own peak.
    """
    room = (WIDTH - 40) / len(panels)
    body = [svg.text(28, 32, svg.formula(title, 16), size=16, fill=TEXT, weight="bold")]
    measured = [_density(panel) for panel in panels]
    tallest = [1.08 * density.max() for _, density, _ in measured]
    for i, (panel, (edges, density, outside)) in enumerate(zip(panels, measured)):
        low, high = edges[0], edges[-1]
        top = max(tallest) if one_scale else tallest[i]
        axes = Axes(28 + i * room, 90, room - 36, height - 142, (low, high), (0.0, float(top)))
        fill = ROLES[panel.role].fill
        heading = panel.title + (f"  ({outside} outside)" if outside else "")
        body += [
            svg.text(axes.left, 68, svg.formula(heading, 13), size=13, fill=TEXT),
            axes.bars(edges, density, tint(fill, 0.35)),
            axes.x_axis(ticks(low, high, 5)),
        ]
        for mark in panel.marks:
            x, _ = axes.at(mark, 0)
            down = f"M{svg.px(x)},{axes.top} v{svg.px(axes.height)}"
            body.append(svg.path(down, stroke=QUIET, line=1, dash="4 4"))
        if panel.density is not None:
            xs = np.linspace(low, high, 241)
            body.append(axes.curve(xs, panel.density(xs), fill, line=2.2))
    return Figure(svg.document(WIDTH, height, title, words, body), words)


def _density(panel: Histogram) -> tuple[np.ndarray, np.ndarray, int]:
    """(bin edges, density in each bin, how many values lie outside)."""
    low, high = panel.span or (float(panel.values.min()), float(panel.values.max()))
    counts, edges = np.histogram(panel.values, bins=panel.bins, range=(low, high))
    density = counts / panel.values.size / (edges[1] - edges[0])
    return edges, density, int(panel.values.size - counts.sum())


def normal_density(mean: float, std: float) -> Callable[[np.ndarray], np.ndarray]:
    """The density of the normal distribution."""

    def density(xs: np.ndarray) -> np.ndarray:
        return np.exp(-(((xs - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi))

    return density


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = 0.02 * (high - low)
    return float(low) - pad, float(high) + pad


def _ticks(low: float, high: float, log: bool) -> list[tuple[float, str]]:
    if not log:
        return ticks(low, high, 6)
    step = max(1, math.ceil((high - low) / 8))
    powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1, step)
    return [(p, svg.number(2.0**p, max(0, -p))) for p in powers]


def spread_out(heights: list[float], apart: float = 17.0) -> list[float]:
    """Move labels that would overlap apart, keeping their order."""
    order = np.argsort(heights)
    placed = np.array(heights, dtype=float)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + apart)
    return list(placed)


def _error_bars(axes: Axes, xs, line: Line, to_y, colour: str) -> str:
    parts = []
    for x, y, error in zip(xs, line.ys, line.errors):
        px, low = axes.at(x, to_y(y - error))
        _, high = axes.at(x, to_y(y + error))
        parts.append(svg.path(f"M{svg.px(px)},{svg.px(low)} V{svg.px(high)}", stroke=colour))
    return "".join(parts)


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{svg.px(x)}" cy="{svg.px(y)}" r="4" fill="{colour}"/>'
