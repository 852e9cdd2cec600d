"""Softmax from undecided to one-hot: a few scores with their Jacobian, and many random rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from helpers.attention import normalized_entropy, softmax, softmax_jacobian
from helpers.experiments import SaturationTable, saturation_table, sqrt_two_log_T
from helpers.pictures import svg
from helpers.pictures.axes import Axes, ticks
from helpers.pictures.matrices import Matrix, draw
from helpers.pictures.palette import QUIET, ROLES, RULE, TEXT, tint

WIDTH, HEIGHT = 950.0, 466.0
LOWEST, HIGHEST = -4.0, 4.0  # of a score
GAINS = 2.0 ** np.arange(-3, 6.51, 0.25)  # √128 is among them: 2^3.5

# Where the scores stand; the explorer lays its sliders over the same places.
SCORES_TOP, SCORES_HEIGHT = 84.0, 130.0
_LEFT, _RIGHT = 36.0, 556.0
_BARS = Axes(_LEFT, 276, _RIGHT - _LEFT, 112, (0, 1), (0, 1))


@dataclass(frozen=True)
class FewScores:
    """Some scores, before the gain. The softmax is taken of gain · scores."""

    scores: tuple[float, ...]
    gain: float = 1.0

    @cached_property
    def weights(self) -> np.ndarray:
        return softmax(self.gain * np.array(self.scores))

    @cached_property
    def jacobian(self) -> np.ndarray:
        """(n, n): ∂weight_i/∂input_j at softmax's input."""
        return softmax_jacobian(self.weights)

    @property
    def largest_eigenvalue(self) -> float:
        return float(np.linalg.eigvalsh(self.jacobian)[-1])

    @property
    def entropy(self) -> float:
        return float(normalized_entropy(self.weights))


@dataclass(frozen=True)
class ManyScores:
    """Rows of T standard-normal scores, times a gain."""

    T: int = 64
    gain: float = 1.0

    @property
    def rows(self) -> int:
        """Random rows drawn: fewer long ones, so that the picture follows the slider."""
        return max(60, min(200, 30_000 // self.T))

    @cached_property
    def table(self) -> SaturationTable:
        return _table(self.T, self.rows)

    @cached_property
    def here(self) -> tuple[float, float]:
        """Largest weight and normalised entropy at this gain, from the same rows."""
        one = saturation_table([self.gain], [self.T], self.rows)
        return float(one.largest_weight[0]), float(one.entropy[0])


@lru_cache(maxsize=16)
def _table(T: int, rows: int) -> SaturationTable:
    return saturation_table(GAINS, [T], rows)


def column_middle(index: int, count: int) -> float:
    """Where score `index` of `count` stands, in pixels from the left."""
    width = (_RIGHT - _LEFT) / count
    return _LEFT + (index + 0.5) * width


# ── a few scores ─────────────────────────────────────────────────────────────────────────────────


def describe_few(state: FewScores) -> str:
    """The weights and what is left of the Jacobian, in words."""
    scores = ", ".join(f"{s:g}" for s in state.scores).replace("-", "−")
    weights = ", ".join(f"{w:.2f}" for w in state.weights)
    return (
        f"softmax({_gain(state.gain)} × [{scores}]) = [{weights}]. Largest weight "
        f"{state.weights.max():.3f}, entropy {state.entropy:.3f} of its maximum. Largest "
        f"eigenvalue of the Jacobian {state.largest_eigenvalue:.3f}, never above 0.5."
    )


def picture_few(state: FewScores) -> str:
    """Scores, weights and Jacobian, as an SVG string."""
    title = f"softmax({_gain(state.gain)} × scores): how sure is it?"
    body = [
        svg.text(_LEFT, 32, title, size=16, fill=TEXT, weight="bold"),
        _score_columns(state),
        _weight_columns(state),
        _jacobian(state),
    ]
    return svg.document(WIDTH, HEIGHT, title, describe_few(state), body)


def _gain(gain: float) -> str:
    return f"{gain:.3g}"


def score_height(score: float) -> float:
    """Where on the picture a score's dot is, in pixels from the top."""
    return SCORES_TOP + SCORES_HEIGHT * (HIGHEST - score) / (HIGHEST - LOWEST)


def _score_columns(state: FewScores) -> str:
    role, zero = ROLES["scores"], score_height(0)
    parts = [
        svg.text(_LEFT, 62, "scores", size=15, fill=role.fill, family=svg.SERIF, weight="bold",
                 style="italic"),
        svg.path(f"M{_LEFT},{svg.px(zero)} H{_RIGHT}", stroke=RULE, line=1),
        svg.text(_LEFT - 6, zero + 4, "0", size=12, fill=QUIET, anchor="end"),
    ]  # fmt: skip
    for i, score in enumerate(state.scores):
        x, y = column_middle(i, len(state.scores)), score_height(score)
        rail = f"M{svg.px(x)},{SCORES_TOP} v{SCORES_HEIGHT}"
        parts += [
            svg.path(rail, stroke="#eceef2", line=4),
            svg.path(f"M{svg.px(x)},{svg.px(zero)} V{svg.px(y)}", stroke=role.fill, line=4),
            f'<circle cx="{svg.px(x)}" cy="{svg.px(y)}" r="8" fill="{role.fill}"/>',
            svg.text(x + 14, y + 4.5, svg.number(score, 1), fill=TEXT),
        ]
    return "".join(parts)


def _weight_columns(state: FewScores) -> str:
    role, count = ROLES["weights"], len(state.scores)
    width = min(54.0, 0.6 * (_RIGHT - _LEFT) / count)
    parts = [
        svg.text(_LEFT, _BARS.top - 16, "weights", size=15, fill=role.fill, family=svg.SERIF,
                 weight="bold", style="italic"),
        svg.path(f"M{_LEFT},{_BARS.bottom} H{_RIGHT}", stroke=RULE, line=1),
    ]  # fmt: skip
    for i, weight in enumerate(state.weights):
        x, (_, y) = column_middle(i, count), _BARS.at(0, weight)
        tall = max(_BARS.bottom - y, 1.0)
        parts += [
            svg.rect(x - width / 2, _BARS.top, width, _BARS.height, fill=tint(role.fill, 0.0)),
            svg.rect(x - width / 2, _BARS.bottom - tall, width, tall, fill=role.fill,
                     radius=min(6, tall / 2)),
            svg.text(x, _BARS.bottom + 19, f"{weight:.2f}", fill=TEXT, anchor="middle"),
        ]  # fmt: skip
    return "".join(parts)


def _jacobian(state: FewScores) -> str:
    count = len(state.scores)
    cell = 74.0 if count == 3 else 56.0 if count == 4 else 36.0
    left = 600.0
    matrix = Matrix(
        state.jacobian, "X", "Jacobian", decimals=2, full=0.25, cell_width=cell,
        caption="∂ weight (row) by ∂ (gain × score) (column)",
    )  # fmt: skip
    return draw(matrix, left, 84).body + _facts(
        left, HEIGHT - 30,
        (("largest weight", f"{state.weights.max():.2f}"),
          (f"entropy ÷ ln {count}", f"{state.entropy:.2f}"),
         ("eigenvalue (≤ ½)", f"{state.largest_eigenvalue:.2f}")),
    )  # fmt: skip


def _facts(left: float, y: float, facts: tuple[tuple[str, str], ...]) -> str:
    """Small names with large numbers, side by side."""
    parts = []
    for i, (name, value) in enumerate(facts):
        x = left + 116 * i
        parts.append(svg.text(x, y, value, size=20, fill=TEXT, weight="bold"))
        parts.append(svg.text(x, y + 17, name, size=11.5, fill=QUIET))
    return "".join(parts)


# ── many random rows ─────────────────────────────────────────────────────────────────────────────


def describe_many(state: ManyScores) -> str:
    """Largest weight and entropy at this gain, in words."""
    weight, entropy = state.here
    return (
        f"{state.rows} rows of T = {state.T} standard-normal scores, times {_gain(state.gain)}: "
        f"mean largest weight {weight:.2f}, entropy {entropy:.2f} of its maximum. √(2 ln T) = "
        f"{sqrt_two_log_T(state.T):.2f} is a heuristic for where the weight starts to gather on "
        "few keys."
    )


def picture_many(state: ManyScores) -> str:
    """Largest weight and entropy against the gain, as an SVG string."""
    weights, grey = ROLES["weights"].fill, TEXT
    table, mark = state.table, sqrt_two_log_T(state.T)
    weight, entropy = state.here
    low, high = (math.log2(g) for g in (GAINS[0], GAINS[-1]))
    axes = Axes(60, 84, 600, 306, (low, high), (0, 1))
    xs = np.log2(GAINS)
    here, _ = axes.at(math.log2(state.gain), 0)
    at_mark, _ = axes.at(math.log2(mark), 0)
    title = f"Random rows of {state.T} scores, times a gain"
    powers = [(n, svg.number(2.0**n, max(0, -n))) for n in range(-3, 7)]
    body = [
        svg.text(36, 32, title, size=16, fill=TEXT, weight="bold"),
        axes.y_axis(ticks(0, 1, 5)),
        svg.path(f"M{svg.px(at_mark)},{axes.top} v{axes.height}", stroke=QUIET).replace(
            "/>", ' stroke-dasharray="5 4"/>'),
        svg.text(at_mark + 6, axes.top - 6, f"√(2 ln T) = {mark:.2f}, a heuristic", size=12,
                 fill=QUIET),
        svg.path(f"M{svg.px(here)},{axes.top} v{axes.height}", stroke=ROLES["scores"].fill, line=2),
        axes.curve(xs, table.entropy, grey, line=2.5),
        axes.curve(xs, table.largest_weight, weights, line=2.5),
        axes.x_axis(powers, "gain (the standard deviation of the scores), a factor of 2 a tick"),
    ]  # fmt: skip
    for x, value, name, colour in (
        (-2.9, table.entropy[0] - 0.07, "entropy ÷ ln T", grey),
        (4.6, table.largest_weight[-6] - 0.1, "largest weight", weights),
    ):
        left, base = axes.at(x, value)
        body.append(svg.text(left, base, name, fill=colour, weight="bold"))
    for value, colour in ((entropy, grey), (weight, weights)):
        x, y = axes.at(math.log2(state.gain), value)
        body.append(f'<circle cx="{svg.px(x)}" cy="{svg.px(y)}" r="5" fill="{colour}"/>')
    body.append(_many_numbers(state, weight, entropy))
    return svg.document(WIDTH, HEIGHT, title, describe_many(state), body)


def _many_numbers(state: ManyScores, weight: float, entropy: float) -> str:
    left, parts = 700.0, []
    for i, (value, name, colour) in enumerate(
        (
            (f"{weight:.2f}", "mean largest weight", ROLES["weights"].fill),
            (f"{entropy:.2f}", f"entropy ÷ ln {state.T}", TEXT),
            (_gain(state.gain), "gain", ROLES["scores"].fill),
        )
    ):
        y = 130 + 66 * i
        parts += [
            svg.text(left, y, value, size=24, fill=colour, weight="bold"),
            svg.text(left, y + 19, name, size=12, fill=QUIET),
        ]
    d_k = state.gain**2
    if d_k >= 1:
        alike = svg.formula(f"like an unscaled head of d_k ≈ {d_k:.3g}", 12)
        parts.append(svg.text(left, 322, alike, size=12, fill=QUIET))
    return "".join(parts)
