"""How far dot products spread: a histogram, the predicted curve, predicted against measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from helpers.attention import normalized_entropy, softmax
from helpers.experiments import (
    DotProductSettings,
    MeasuredSpread,
    Spread,
    draw_scores,
    measured_spread,
    predicted_spread,
)
from helpers.pictures import svg
from helpers.pictures.axes import Axes, ticks
from helpers.pictures.palette import QUIET, ROLES, RULE, TEXT, tint

WIDTH, HEIGHT = 950.0, 420.0
KEYS = 32  # in a row
_ENTRIES = 500_000  # numbers drawn for one picture
_BINS = 60
DIVISORS = ("none", "√d_k", "d_k")


@dataclass(frozen=True)
class SpreadState:
    """What the picture shows.

    settings : how queries and keys are drawn. divisor : one of `DIVISORS`. seed : of the sample.
    """

    settings: DotProductSettings
    divisor: str = "none"
    seed: int = 0

    @property
    def divided_by(self) -> float:
        d_k = self.settings.d_k
        return {"none": 1.0, "√d_k": math.sqrt(d_k), "d_k": float(d_k)}[self.divisor]

    @property
    def rows(self) -> int:
        """Queries drawn: fewer for a large d_k, so that the picture follows the slider."""
        return int(np.clip(_ENTRIES // (KEYS * self.settings.d_k), 24, 400))

    @cached_property
    def scores(self) -> np.ndarray:
        """(rows, KEYS) scores after the division."""
        return _sample(self.settings, self.rows, self.seed) / self.divided_by

    @cached_property
    def measured(self) -> MeasuredSpread:
        return measured_spread(self.scores)

    @cached_property
    def predicted(self) -> Spread:
        return _divided(predicted_spread(self.settings), self.divided_by)

    @cached_property
    def weights(self) -> np.ndarray:
        """(rows, KEYS): the softmax of each row."""
        return softmax(self.scores)

    @property
    def entropy(self) -> float:
        """Mean over rows of entropy / ln KEYS."""
        return float(np.mean(normalized_entropy(self.weights)))

    @property
    def largest_weight(self) -> float:
        """Mean over rows of the largest weight."""
        return float(self.weights.max(axis=-1).mean())


@lru_cache(maxsize=1)  # another divisor needs no other sample
def _sample(settings: DotProductSettings, rows: int, seed: int) -> np.ndarray:
    return draw_scores(settings, rows, KEYS, seed)


def _divided(spread: Spread, by: float) -> Spread:
    return Spread(spread.mean / by, spread.variance / by**2, spread.within_row_variance / by**2)


def predicted_density(state: SpreadState, xs: np.ndarray) -> np.ndarray:
    """Normal curves with the predicted mean and variance: one for the keys that resemble their
    query, one for the others, each with its share."""
    settings = state.settings
    share = settings.fraction_correlated if settings.correlation else 0.0
    total = np.zeros_like(xs)
    for part, fraction in ((share, 1.0), (1 - share, 0.0)):
        group = replace(settings, fraction_correlated=fraction)
        spread = _divided(predicted_spread(group), state.divided_by)
        if part and spread.std > 0:
            z = (xs - spread.mean) / spread.std
            total += part * np.exp(-(z**2) / 2) / (spread.std * math.sqrt(2 * math.pi))
    return total


def describe(state: SpreadState) -> str:
    """Predicted and measured spread in words."""
    (got, error), want = state.measured, state.predicted
    divided = "undivided" if state.divisor == "none" else f"divided by {state.divisor}"
    return (
        f"d_k = {state.settings.d_k}, scores {divided}. "
        f"Standard deviation: predicted {_short(want.std)}, measured {_short(got.std)} "
        f"(standard error {_short(_std_error(got.std, error.variance))}). "
        f"Within a row: predicted {_short(want.within_row_std)}, measured "
        f"{_short(got.within_row_std)}. Mean: predicted {_short(want.mean)}, measured "
        f"{_short(got.mean)}. Softmax over {KEYS} keys: largest weight {state.largest_weight:.2f}, "
        f"entropy {state.entropy:.2f} of its maximum."
    )


def _std_error(std: float, variance_error: float) -> float:
    """Standard error of a standard deviation from that of its square (delta method)."""
    return variance_error / (2 * std) if std else 0.0


def _short(value: float) -> str:
    """Three significant digits, without an exponent between 0.001 and 10⁵."""
    if value == 0:
        return "0"
    decimals = int(np.clip(2 - math.floor(math.log10(abs(value))), 0, 3))
    return svg.number(value, decimals)


def _grid(state: SpreadState, low: float, high: float) -> np.ndarray:
    """Where the curves are computed: evenly, and densely where one of them is narrow."""
    spread = state.predicted
    narrow = spread.mean + np.linspace(-4.5, 4.5, 61)[:, None] * [spread.std, 1.0]
    xs = np.union1d(np.linspace(low, high, 281), narrow.ravel())
    return xs[(xs >= low) & (xs <= high)]


def _round_up(value: float) -> float:
    """To the next of 1, 1½, 2, 3, 4, 6, 8 …: the axis keeps still for most moves of a slider."""
    power = 2.0 ** math.floor(math.log2(value))
    return next(m * power for m in (1, 1.5, 2) if m * power >= value)


def picture(state: SpreadState) -> str:
    """The whole picture, as an SVG string."""
    spread = state.predicted
    half = _round_up(max(3.9 * spread.std, 3.9))
    centre = round(spread.mean / (half / 4)) * (half / 4)
    low, high = centre - half, centre + half
    counts, edges = np.histogram(state.scores, bins=_BINS, range=(low, high))
    density = counts / state.scores.size / (edges[1] - edges[0])
    # A fine grid and the bins agree on the peak only where the curve is wide.
    xs = _grid(state, low, high)
    curve = predicted_density(state, xs)
    tallest = max(density.max(), min(curve.max(), 1.4 * density.max())) * 1.08
    axes = Axes(40, 64, 560, 290, (low, high), (0.0, float(tallest)))
    fill = ROLES["scores"].fill
    unit = np.exp(-((xs - spread.mean) ** 2) / 2) / math.sqrt(2 * math.pi)
    outside = state.scores.size - counts.sum()
    sample = f"{state.rows} queries × {KEYS} keys"
    if outside:
        sample += f" ({outside} outside)"
    body = [
        svg.text(40, 30, svg.formula(_title(state), 16), size=16, fill=TEXT, weight="bold"),
        axes.bars(edges, density, tint(fill, 0.35)),
        axes.curve(xs, unit, QUIET, line=1.5, dash="4 4"),
        axes.curve(xs, curve, fill, line=2.5),
        axes.x_axis(ticks(low, high), f"score · {sample}"),
        _legend(fill),
        _numbers(state),
    ]
    return svg.document(WIDTH, HEIGHT, _title(state), describe(state), body)


def _title(state: SpreadState) -> str:
    divided = {"none": "q·k", "√d_k": "q·k ÷ √d_k", "d_k": "q·k ÷ d_k"}[state.divisor]
    return f"How far does {divided} spread for d_k = {state.settings.d_k}?"


def _legend(fill: str) -> str:
    x, y = 40, 50
    return "".join(
        [
            svg.rect(x, y - 9, 14, 10, fill=tint(fill, 0.35), radius=2),
            svg.text(x + 20, y, "measured", size=12, fill=QUIET),
            svg.path(f"M{x + 100},{y - 4} h18", stroke=fill, line=2.5),
            svg.text(x + 124, y, "normal, predicted mean and std", size=12, fill=QUIET),
            svg.path(f"M{x + 338},{y - 4} h18", stroke=QUIET).replace(
                "/>", ' stroke-dasharray="4 4"/>'
            ),
            svg.text(x + 362, y, "normal, std 1", size=12, fill=QUIET),
        ]
    )


def _numbers(state: SpreadState) -> str:
    """Predicted against measured, and what softmax makes of it."""
    (got, error), want = state.measured, state.predicted
    left, top = 640.0, 64.0
    columns = (left + 180, left + 262)
    parts = [
        svg.text(columns[0], top, "predicted", size=12, fill=QUIET, anchor="end"),
        svg.text(columns[1], top, "measured", size=12, fill=QUIET, anchor="end"),
    ]
    rows = (
        ("mean", want.mean, got.mean, False),
        ("variance", want.variance, got.variance, False),
        ("std", want.std, got.std, True),
        ("std within a row", want.within_row_std, got.within_row_std, True),
    )
    for i, (name, predicted, measured, strong) in enumerate(rows):
        y = top + 28 + 28 * i
        weight = "bold" if strong else "normal"
        parts += [
            svg.path(f"M{svg.px(left)},{svg.px(y - 19)} h262", stroke=RULE, line=0.7),
            svg.text(left, y, name, size=13, fill=TEXT, weight=weight),
            svg.text(columns[0], y, _short(predicted), fill=TEXT, anchor="end", weight=weight),
            svg.text(columns[1], y, _short(measured), fill=ROLES["scores"].fill, anchor="end",
                     weight=weight),
        ]  # fmt: skip
    y = top + 28 * 5 - 4
    error_words = f"standard error of the std: {_short(_std_error(got.std, error.variance))}"
    parts.append(svg.text(left, y, error_words, size=11.5, fill=QUIET))

    y += 42
    parts.append(svg.text(left, y, f"Softmax over {KEYS} keys", fill=TEXT, weight="bold"))
    for i, (name, value) in enumerate(
        (("largest weight", state.largest_weight), ("entropy ÷ its maximum", state.entropy))
    ):
        top_of_bar = y + 30 + 46 * i
        role = ROLES["weights"]
        parts += [
            svg.text(left, top_of_bar - 6, name, size=12, fill=QUIET),
            svg.text(columns[1], top_of_bar - 6, f"{value:.2f}", fill=TEXT, anchor="end"),
            svg.rect(left, top_of_bar, 262, 12, fill=tint(role.fill, 0.0), radius=4),
            svg.rect(left, top_of_bar, max(262 * value, 2), 12, fill=role.fill, radius=4),
        ]
    return "".join(parts)
