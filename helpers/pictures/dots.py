"""A line for each of several methods, a dot for each of its runs: what repeats, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from helpers.pictures import svg
from helpers.pictures.axes import Axes, ticks
from helpers.pictures.figure import Figure
from helpers.pictures.palette import ERROR, QUIET, TEXT

WIDTH = 950.0
LINE = 32.0


def dots(
    values: Mapping[str, Sequence[float]], *, title: str, x_label: str, words: str,
    marks: Mapping[str, float] | None = None, sick: Sequence[str] = (),
) -> Figure:  # fmt: skip
    """`values`: name → one number a run. Hollow dots are runs, the bar is their mean.

    marks : name → a level, drawn as a dotted line across. sick : names drawn in the colour of
    faults. words : what the picture shows.
    """
    marks = marks or {}
    everything = np.concatenate([*map(np.asarray, values.values()), list(marks.values())])
    pad = 0.06 * (everything.max() - everything.min() or 1.0)
    height = LINE * len(values)
    axes = Axes(250, 84, 640, height, (everything.min() - pad, everything.max() + pad), (0, 1))
    body = [
        svg.text(28, 34, svg.formula(title, 16), size=16, fill=TEXT, weight="bold"),
        svg.text(28, 58, "○ one run   | mean", size=12.5, fill=QUIET),
        axes.x_axis(ticks(*axes.x, 8), svg.formula(x_label, 12.5)),
    ]
    for name, level in marks.items():
        x, _ = axes.at(level, 0)
        down = f"M{svg.px(x)},{axes.top} v{svg.px(height)}"
        body.append(svg.path(down, stroke=QUIET, line=1, dash="1 3"))
        body.append(svg.text(x, axes.top - 9, svg.words(name), size=11.5, fill=QUIET,
                             anchor="middle"))  # fmt: skip
    for i, (name, runs) in enumerate(values.items()):
        y, colour = axes.top + LINE * (i + 0.5), ERROR if name in sick else TEXT
        body.append(svg.path(f"M{axes.left},{svg.px(y)} h{axes.width}", stroke="#e9ebef", line=1))
        body.append(svg.text(axes.left - 14, y + 4.5, svg.formula(name, 13), size=13, fill=colour,
                             anchor="end"))  # fmt: skip
        mean, _ = axes.at(float(np.mean(runs)), 0)
        body.append(svg.path(f"M{svg.px(mean)},{svg.px(y - 10)} v20", stroke=colour, line=3))
        for run in runs:
            x, _ = axes.at(run, 0)
            body.append(f'<circle cx="{svg.px(x)}" cy="{svg.px(y)}" r="5" fill="none" '
                        f'stroke="{colour}" stroke-width="1.8"/>')  # fmt: skip
    return Figure(svg.document(WIDTH, axes.bottom + 62, title, words, body), words)
