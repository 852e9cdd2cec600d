"""Training runs: loss, entropy and score spread side by side, and heads' attention maps."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from helpers.pictures import svg
from helpers.pictures.axes import Axes, ticks
from helpers.pictures.curves import spread_out
from helpers.pictures.figure import Figure
from helpers.pictures.heatmap import cividis
from helpers.pictures.palette import ERROR, QUIET, TEXT

WIDTH = 950.0
HEALTHY, SICK, OTHER = "#1f2430", ERROR, "#1f7fbf"  # no role's colour stands for a run
_STYLES = ((HEALTHY, ""), (SICK, "7 4"), (OTHER, "2 4"))  # dashes tell them apart without colour
_NAMELESS = ((HEALTHY, ""), (QUIET, "7 4"), (OTHER, "2 4"))  # where red would give a hint


@dataclass(frozen=True)
class Run:
    """A run as far as it has come.

    name : as the legend calls it. steps : (m,) done at each measurement. loss : (m,) nats a byte.
    entropy, score_std : (m, heads), of all heads of all layers.
    """

    name: str
    steps: Sequence[int]
    loss: Sequence[float]
    entropy: Sequence[Sequence[float]]
    score_std: Sequence[Sequence[float]]

    @classmethod
    def of(cls, name: str, log) -> Run:
        """From a `helpers.training.RunLog`."""
        return cls(name, log.measured, log.val_loss, log.entropy.reshape(len(log.measured), -1),
                   log.score_std.reshape(len(log.measured), -1))  # fmt: skip


def describe(runs: Sequence[Run]) -> str:
    """The newest measurement of each run, in words."""
    told = []
    for run in runs:
        if not len(run.steps):
            told.append(f"{run.name}: not started.")
            continue
        told.append(
            f"{run.name}: after {run.steps[-1]} steps loss {run.loss[-1]:.2f}, entropy of heads "
            f"{np.min(run.entropy[-1]):.2f} to {np.max(run.entropy[-1]):.2f}, score std "
            f"{np.min(run.score_std[-1]):.1f} to {np.max(run.score_std[-1]):.1f}."
        )
    return " ".join(told)


def training_picture(
    runs: Sequence[Run], steps: int, marks: Mapping[str, float] | None = None,
    title: str = "Training runs", event: tuple[int, str] | None = None,
) -> str:  # fmt: skip
    """Three plots over the steps done, as SVG: validation loss, entropy of each head, spread of
    each head's scores (logarithmic). Runs that are not over fill only a part.

    steps : the right end. marks : level of the loss → name, thin lines in the first plot. event :
    (step, what happened then), a thin line through all three.
    """
    marks = marks or {}
    first = Axes(64, 112, 330, 220, (0, steps), _losses(runs, marks))
    second = Axes(506, 112, 172, 220, (0, steps), (0, 1))
    third = Axes(748, 112, 172, 220, (0, steps), (-1, 8))  # of log2
    body = [
        svg.text(28, 34, svg.words(title), size=16, fill=TEXT, weight="bold"),
        _legend(runs),
        first.y_axis(ticks(*first.y, 6), "validation loss, nats per byte"),
        second.y_axis(ticks(0, 1, 5), "normalised entropy of heads"),
        third.y_axis([(i, svg.number(2.0**i, 1 if i < 0 else 0)) for i in range(-1, 9)],
                     "score std of heads, log scale"),
    ]  # fmt: skip
    for axes, most in ((first, 6), (second, 3), (third, 3)):
        body.append(axes.x_axis(ticks(0, steps, most), "steps"))
    body += [_mark(first, level, name) for name, level in marks.items()]
    if event is not None:
        body += [_event(axes, event[0]) for axes in (first, second, third)]
        x, _ = first.at(event[0], 0)
        body.append(svg.text(x - 6, first.top + 14, svg.words(event[1]), size=11.5, fill=QUIET,
                             anchor="end"))  # fmt: skip
    for run, (colour, dash) in zip(runs, _STYLES):
        body.append(first.curve(run.steps, run.loss, colour, line=2.4, dash=dash))
        for heads, axes, height in (
            (run.entropy, second, np.asarray),
            (run.score_std, third, lambda x: np.log2(np.maximum(x, 1e-9))),
        ):
            if len(heads):
                for head in np.asarray(height(heads)).T:
                    body.append(axes.curve(run.steps, head, colour, line=1.6, dash=dash))
    return svg.document(WIDTH, 392, title, describe(runs), body)


def training_curves(
    runs: Sequence[Run], *, marks=None, title="Training runs", event=None, words: str
) -> Figure:
    """`training_picture` of runs that are over. `words` say what every machine will see."""
    steps = max(int(run.steps[-1]) for run in runs)
    return Figure(training_picture(runs, steps, marks, title, event), words)


def head_curves(logs: Mapping, title: str) -> Figure:
    """Entropy and score spread of several logs, means over heads, side by side.

    logs : name → an object with steps, entropy and score_std, each (m,).
    """
    words = "; ".join(
        f"{name}: entropy {log.entropy[0]:.2f} to {log.entropy[-1]:.2f}, score std "
        f"{log.score_std[0]:.2f} to {log.score_std[-1]:.2f}"
        for name, log in logs.items()
    )
    steps = max(int(log.steps[-1]) for log in logs.values())
    left, right = Axes(64, 92, 350, 200, (0, steps), (0, 1)), Axes(530, 92, 350, 200, (0, steps),
                                                                  (-4, 8))  # fmt: skip
    body = [
        svg.text(28, 34, svg.words(title), size=16, fill=TEXT, weight="bold"),
        left.y_axis(ticks(0, 1, 5), "normalised entropy, mean of heads"),
        right.y_axis([(i, svg.number(2.0**i, max(0, -i))) for i in range(-4, 9, 2)],
                     "score std, mean of heads, log scale"),
    ]  # fmt: skip
    body += [axes.x_axis(ticks(0, steps, 4), "steps") for axes in (left, right)]
    for axes, read in (
        (left, lambda log: log.entropy),
        (right, lambda log: np.log2(log.score_std)),
    ):
        ends = spread_out([axes.at(0, read(log)[-1])[1] for log in logs.values()])
        for (name, log), (colour, dash), end in zip(logs.items(), _NAMELESS, ends):
            body.append(axes.curve(log.steps, read(log), colour, line=2.4, dash=dash))
            body.append(svg.text(axes.left + axes.width + 10, end + 5, svg.words(name), size=14,
                                 fill=colour, weight="bold"))  # fmt: skip
    return Figure(svg.document(WIDTH, 350, title, words, body), f"{title}. {words}.")


def _losses(runs, marks) -> tuple[float, float]:
    """The range of losses worth drawing: the steep beginning, above 3.4, is cut."""
    seen = [loss for run in runs for loss in run.loss] + list(marks.values())
    lowest = min(seen, default=2.0)
    return math.floor(min(lowest, 1.9) * 5 - 0.5) / 5, 3.4


def _mark(axes: Axes, level: float, name: str) -> str:
    _, y = axes.at(0, level)
    right = axes.left + axes.width
    across = f"M{svg.px(axes.left)},{svg.px(y)} h{svg.px(axes.width)}"
    return svg.path(across, stroke=QUIET, line=1, dash="1 3") + svg.text(
        right + 6, y + 4, svg.words(name), size=11.5, fill=QUIET
    )


def _event(axes: Axes, step: int) -> str:
    x, _ = axes.at(step, axes.y[0])
    down = f"M{svg.px(x)},{svg.px(axes.top)} v{svg.px(axes.height)}"
    return svg.path(down, stroke=QUIET, line=1, dash="4 4")


def _legend(runs) -> str:
    parts, x = [], 28.0
    for run, (colour, dash) in zip(runs, _STYLES):
        parts.append(svg.path(f"M{svg.px(x)},62 h34", stroke=colour, line=2.6, dash=dash))
        parts.append(svg.text(x + 42, 66.5, svg.formula(run.name, 13), size=13, fill=colour,
                              weight="bold"))  # fmt: skip
        x += 42 + 13 * svg.text_width(run.name) + 40
    return "".join(parts)


# --- Attention maps ---


def attention_maps(
    columns: Mapping[str, np.ndarray], *, rows: Sequence[str], title: str, words: str
) -> Figure:
    """Causal maps: a column for each moment, name → weights (heads, T, T) from 0 to 1; a line for
    each head.

    rows : names of the heads. The colour is the root of the weight, so that a share of 1/16 is
    still a quarter of the way from dark to light. What no query may see is left white.
    """
    left, gap = 92.0, 12.0
    side = min(128.0, (WIDTH - left - 28) / len(columns) - gap)
    body = [
        svg.text(28, 34, svg.words(title), size=16, fill=TEXT, weight="bold"),
        svg.text(28, 58, "down: the byte that asks · across: the byte it attends to · bright: "
                 "large weight", size=12.5, fill=QUIET),
    ]  # fmt: skip
    for j, (name, maps) in enumerate(columns.items()):
        x = left + j * (side + gap)
        body.append(svg.text(x + side / 2, 86, svg.formula(name, 12.5), size=12.5, fill=TEXT,
                             anchor="middle"))  # fmt: skip
        body += [_image(maps[i], x, 96 + i * (side + gap), side) for i in range(len(rows))]
    for i, name in enumerate(rows):
        y = 96 + i * (side + gap) + side / 2 + 4
        body.append(svg.text(left - 12, y, svg.words(name), size=12, fill=TEXT, anchor="end"))
    height = 96 + len(rows) * (side + gap) + 10
    return Figure(svg.document(WIDTH, height, title, words, body), words)


_PALETTE = bytes(c for i in range(255) for c in bytes.fromhex(cividis(i / 254)[1:]))
_FUTURE = 255  # number of the colour white
_PIXELS = 8  # of the image for an entry, so that renderers blur its edges only


def _image(weights: np.ndarray, x: float, y: float, side: float) -> str:
    """A map as a small PNG inside the picture: as rectangles it would be thousands of them."""
    from PIL import Image

    levels = np.round(np.sqrt(np.clip(weights.astype(float), 0, 1)) * 254).astype(np.uint8)
    levels[np.triu_indices(len(levels), 1)] = _FUTURE
    image = Image.fromarray(np.kron(levels, np.ones((_PIXELS, _PIXELS), np.uint8)), mode="P")
    image.putpalette(_PALETTE + b"\xff\xff\xff")
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f'<image x="{svg.px(x)}" y="{svg.px(y)}" width="{svg.px(side)}" height="{svg.px(side)}"'
        f' image-rendering="optimizeSpeed" href="data:image/png;base64,{data}"/>'
    )
