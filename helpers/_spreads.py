# ruff: noqa: RUF009  (column() only declares a field)
"""Assumptions behind Var(q·k) = d_k, broken one at a time; divisors; predicted beside measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from helpers import _measuring as measuring
from helpers._dot_products import DISTRIBUTIONS
from helpers._table import Table, column


@dataclass(frozen=True)
class DotProductSettings:
    """How queries and keys are drawn, for `draw_scores` and `predicted_spread`.

    * u, w: vectors of d_k standardised entries, from `distribution` (a name in `DISTRIBUTIONS`).
    * query q = μ + σu, keys kⱼ = μ + σwⱼ, with μ = `mean` and σ = `std`, the same for each entry.
    * `correlation` ρ: each key resembles its query with probability `fraction_correlated` f,
      independently; then wⱼ = ρu + √(1 − ρ²)·εⱼ with a fresh εⱼ, and any two matching entries
      of q and k correlate by ρ. Otherwise wⱼ = εⱼ. (For other than normal entries this mixture
      keeps mean and variance but not the shape of a key's distribution.)
    * `entry_correlation` r: any two entries of one vector u or ε correlate by r, as
      uᵢ = √r·c + √(1 − r)·eᵢ with one c a vector; c and eᵢ come from `distribution`.

    Raises `ValueError` or `TypeError` for a value outside its range: d_k ≥ 1, σ ≥ 0,
    −1 ≤ ρ ≤ 1, 0 ≤ f ≤ 1, 0 ≤ r ≤ 1.
    """

    d_k: int = 64
    distribution: str = "normal"
    mean: float = 0.0
    std: float = 1.0
    correlation: float = 0.0
    fraction_correlated: float = 1.0
    entry_correlation: float = 0.0

    def __post_init__(self) -> None:
        measuring.count("d_k", self.d_k)
        measuring.choice("distribution", self.distribution, DISTRIBUTIONS)
        measuring.real("mean", self.mean)
        measuring.real("std", self.std, 0)
        measuring.real("correlation", self.correlation, -1, 1)
        measuring.real("fraction_correlated", self.fraction_correlated, 0, 1)
        measuring.real("entry_correlation", self.entry_correlation, 0, 1)


def _vectors(settings: DotProductSettings, shape: tuple[int, ...], rng) -> np.ndarray:
    draw, r = DISTRIBUTIONS[settings.distribution].draw, settings.entry_correlation
    entries = draw(rng, (*shape, settings.d_k))
    if r == 0:
        return entries
    return math.sqrt(r) * draw(rng, (*shape, 1)) + math.sqrt(1 - r) * entries


def draw_scores(
    settings: DotProductSettings,
    rows: int = 200,
    keys: int = 64,
    seed: measuring.Seed = 0,
    return_correlated: bool = False,
):
    """Raw scores q·k of `rows` independent queries, each with `keys` keys of its own.

    Returns scores of shape (rows, keys); with `return_correlated` also a boolean array of that
    shape, True where the key was drawn to correlate with its query. The vectors themselves are
    drawn, in chunks of a few MB. Raises `ValueError` or `TypeError` for a bad count.
    """
    rows, keys = measuring.count("rows", rows), measuring.count("keys", keys)
    rng = np.random.default_rng(seed)
    scores, correlated = np.empty((rows, keys)), np.zeros((rows, keys), dtype=bool)
    rho = settings.correlation
    step = max(1, measuring.CHUNK_ENTRIES // (settings.d_k * keys))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        n = len(scores[part])
        u, w = _vectors(settings, (n,), rng), _vectors(settings, (n, keys), rng)
        if rho != 0:
            correlated[part] = rng.random((n, keys)) < settings.fraction_correlated
            resembling = rho * u[:, None, :] + math.sqrt(1 - rho**2) * w
            w = np.where(correlated[part][..., None], resembling, w)
        q, k = settings.mean + settings.std * u, settings.mean + settings.std * w
        scores[part] = np.einsum("nd,nkd->nk", q, k)
    return (scores, correlated) if return_correlated else scores


class Spread(NamedTuple):
    """Predicted or measured spread of scores: pooled, and within a row (variances)."""

    mean: float
    variance: float
    within_row_variance: float

    @property
    def std(self) -> float:
        """Square root of the pooled variance."""
        return math.sqrt(self.variance)

    @property
    def within_row_std(self) -> float:
        """Square root of the within-row variance."""
        return math.sqrt(self.within_row_variance)


def predicted_spread(settings: DotProductSettings) -> Spread:
    """Mean, pooled variance and within-row variance of q·k; exact for these settings.

    With q = μ1 + σu and k = μ1 + σw a score is μ²d + μσ(1·u + 1·w) + σ²u·w. Write R for the
    correlation matrix of u, S = 1ᵀR1 = d(1 + (d − 1)r) and F = tr R² = d + d(d − 1)r² (for
    r = 0 both are d), and N = Var ‖u‖² = 2F + (κ − 3)(r²d² + (1 − r)²d).

    An independent key, w = ε. Given q the score has mean μ²d + μσ(1·u) and variance σ²·qᵀRq, on
    average V = σ²μ²S + σ⁴F: the within-row variance. The mean varies between rows by σ²μ²S, so
    the pooled variance is σ⁴F + 2σ²μ²S; for r = 0 it is σ⁴d_k + 2σ²μ²d_k.

    A key that resembles its query, w = ρu + √(1 − ρ²)ε. Given q, mean
    μ²d + μσ(1 + ρ)(1·u) + σ²ρ‖u‖² and variance (1 − ρ²)σ²·qᵀRq. On average the mean is
    μ²d + σ²ρd; it varies between rows by σ²μ²(1 + ρ)²S + σ⁴ρ²N (1·u and ‖u‖² do not correlate:
    the entries are symmetric). Where all keys resemble q, the mean is a shift that softmax
    ignores, and the within-row variance *falls* to (1 − ρ²)V.

    A share f of such keys: within a row the two groups stand Δ = μσρ(1·u) + σ²ρ‖u‖² apart, which
    adds f(1 − f)·E Δ² = f(1 − f)ρ²(σ²μ²S + σ⁴(d² + N)) to the within-row variance
    (1 − f)V + f(1 − ρ²)V. It grows as d², so no 1/√d holds it: the case for which muP divides by
    d (Yang et al. 2022, "Tensor Programs V", arXiv:2203.03466). The pooled variance is that of
    the mixture: (1 − f)·[independent] + f·[resembling] + f(1 − f)(σ²ρd)².

    The two groups apart: pass `dataclasses.replace(settings, fraction_correlated=0.0)`, or 1.0.
    """
    d, mu, sigma = settings.d_k, settings.mean, settings.std
    rho, r = settings.correlation, settings.entry_correlation
    f = settings.fraction_correlated
    kurtosis = DISTRIBUTIONS[settings.distribution].kurtosis
    s = d * (1 + (d - 1) * r)
    tr_r2 = d + d * (d - 1) * r**2
    norm_variance = 2 * tr_r2 + (kurtosis - 3) * (r**2 * d**2 + (1 - r) ** 2 * d)

    within = sigma**2 * mu**2 * s + sigma**4 * tr_r2
    independent = within + sigma**2 * mu**2 * s
    resembling = (
        (1 - rho**2) * within
        + sigma**2 * mu**2 * (1 + rho) ** 2 * s
        + sigma**4 * rho**2 * norm_variance
    )
    mean_gap = sigma**2 * rho * d
    squared_gap = rho**2 * (sigma**2 * mu**2 * s + sigma**4 * (d**2 + norm_variance))
    mixed = f * (1 - f)
    return Spread(
        mean=mu**2 * d + f * mean_gap,
        variance=(1 - f) * independent + f * resembling + mixed * mean_gap**2,
        within_row_variance=(1 - f * rho**2) * within + mixed * squared_gap,
    )


class MeasuredSpread(NamedTuple):
    """A measured `Spread` and the standard error of each of its three numbers."""

    spread: Spread
    error: Spread


def measured_spread(scores: np.ndarray) -> MeasuredSpread:
    """Mean, pooled variance and average within-row variance of scores of shape (rows, keys).

    Rows are taken as independent, keys of one row not. The within-row variance divides by
    keys − 1. Raises `ValueError` unless there are at least 2 rows and 2 keys.
    """
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 2 or min(scores.shape) < 2:
        raise ValueError(
            f"scores have shape {scores.shape}; pass (rows, keys) with at least 2 of each."
        )
    mean, mean_error = measuring.mean_and_error(scores.mean(axis=1))
    pooled, pooled_error = measuring.mean_and_error(((scores - mean) ** 2).mean(axis=1))
    within, within_error = measuring.mean_and_error(scores.var(axis=1, ddof=1))
    return MeasuredSpread(
        Spread(mean, pooled, within), Spread(mean_error, pooled_error, within_error)
    )


BROKEN_ASSUMPTIONS: dict[str, DotProductSettings] = {
    "all hold": DotProductSettings(),
    "σ = 2": DotProductSettings(std=2.0),
    "μ = 1": DotProductSettings(mean=1.0),
    "ρ = 0.5, every key": DotProductSettings(correlation=0.5),
    "ρ = 0.5, one key in 8": DotProductSettings(correlation=0.5, fraction_correlated=0.125),
    "entries correlate, r = 0.2": DotProductSettings(entry_correlation=0.2),
    "bounded entries (uniform)": DotProductSettings(distribution="uniform"),
    "heavy tails (Student t, 5)": DotProductSettings(distribution="student_t5"),
}


@dataclass(frozen=True, eq=False, repr=False)
class SpreadTable(Table):
    """Predicted beside measured spread of raw scores, one row a case; z in standard errors."""

    case: np.ndarray = column("case")
    mean_predicted: np.ndarray = column("mean: predicted", ".1f")
    mean: np.ndarray = column("measured", ".1f")
    mean_z: np.ndarray = column("z", ".2f")
    variance_predicted: np.ndarray = column("pooled variance: predicted", ".1f")
    variance: np.ndarray = column("measured", ".1f")
    variance_z: np.ndarray = column("z", ".2f")
    within_row_predicted: np.ndarray = column("within a row: predicted", ".1f")
    within_row: np.ndarray = column("measured", ".1f")
    within_row_z: np.ndarray = column("z", ".2f")


def spread_table(
    cases: Mapping[str, DotProductSettings] | None = None,
    rows: int = 2_000,
    keys: int = 32,
    seed: measuring.Seed = 0,
) -> SpreadTable:
    """`predicted_spread` beside `measured_spread` for named settings, one case a row.

    `cases` maps a name to its settings (default: `BROKEN_ASSUMPTIONS`, all with d_k = 64);
    `rows` ≥ 2, `keys` ≥ 2. Raises `ValueError` or `TypeError` for a bad count or no case.
    """
    rows, keys = measuring.count("rows", rows, 2), measuring.count("keys", keys, 2)
    rng = np.random.default_rng(seed)
    lines = []
    for name, settings in (BROKEN_ASSUMPTIONS if cases is None else cases).items():
        predicted = predicted_spread(settings)
        measured, error = measured_spread(draw_scores(settings, rows, keys, rng))
        z = [
            (got - expected) / (e or math.nan)
            for got, expected, e in zip(measured, predicted, error, strict=True)
        ]
        lines.append(
            {
                "case": name,
                "mean_predicted": predicted.mean,
                "mean": measured.mean,
                "mean_z": z[0],
                "variance_predicted": predicted.variance,
                "variance": measured.variance,
                "variance_z": z[1],
                "within_row_predicted": predicted.within_row_variance,
                "within_row": measured.within_row_variance,
                "within_row_z": z[2],
            }
        )
    return SpreadTable.from_rows(lines)


@dataclass(frozen=True, eq=False, repr=False)
class DivisorTable(Table):
    """What a divisor of the scores does to softmax, one row a d_k and divisor.

    `score_std` is the pooled standard deviation of the divided scores, `entropy` the mean of
    entropy / ln T, `largest_weight` the mean of each row's largest weight.
    """

    d_k: np.ndarray = column("d_k")
    divisor: np.ndarray = column("divided by")
    score_std: np.ndarray = column("score std")
    score_std_error: np.ndarray = column("± s.e.")
    entropy: np.ndarray = column("entropy / ln T")
    entropy_error: np.ndarray = column("± s.e.")
    largest_weight: np.ndarray = column("largest weight")
    largest_weight_error: np.ndarray = column("± s.e.")


def divisor_table(
    d_ks: Iterable[int] = (4, 16, 64, 256, 1024),
    T: int = 64,
    seed: measuring.Seed = 0,
    draws: int = 200,
) -> DivisorTable:
    """Divide the same scores by 1, √d_k and d_k, for Gaussian q and k.

    The scores' standard deviation is then √d_k, 1 and 1/√d_k. Args: `d_ks` each ≥ 1, `T` ≥ 2
    keys a row, `draws` ≥ 2 rows. Raises `ValueError` or `TypeError` otherwise.
    """
    T, draws = measuring.count("T", T, 2), measuring.count("draws", draws, 2)
    rng = np.random.default_rng(seed)
    rows = []
    for d_k in measuring.counts("d_ks", d_ks):
        scores = draw_scores(DotProductSettings(d_k), draws, T, rng)
        for name, divisor in (("1", 1.0), ("√d_k", math.sqrt(d_k)), ("d_k", float(d_k))):
            scaled = scores / divisor
            rows.append(
                {"d_k": d_k, "divisor": name}
                | measuring.score_std_columns(scaled)
                | measuring.weight_columns(scaled)
            )
    return DivisorTable.from_rows(rows)


@dataclass(frozen=True, eq=False, repr=False)
class DivisorMistakeTable(Table):
    """√d_head against √d_model as divisor, one row each; columns as in `DivisorTable`."""

    divisor: np.ndarray = column("divided by")
    value: np.ndarray = column("value")
    predicted_std: np.ndarray = column("predicted std")
    score_std: np.ndarray = column("score std")
    score_std_error: np.ndarray = column("± s.e.")
    entropy: np.ndarray = column("entropy / ln T")
    entropy_error: np.ndarray = column("± s.e.")
    largest_weight: np.ndarray = column("largest weight")
    largest_weight_error: np.ndarray = column("± s.e.")


def divisor_mistake(
    d_model: int = 768, heads: int = 12, T: int = 64, draws: int = 400, seed: measuring.Seed = 0
) -> DivisorMistakeTable:
    """What dividing by √d_model instead of √d_head costs.

    Each head has d_head = d_model/heads entries, so its raw scores have deviation √d_head.
    √d_model = √heads·√d_head is √heads too large, which leaves scores of deviation 1/√heads.

    Args: `d_model` ≥ 1 a multiple of `heads` ≥ 1, `T` ≥ 2 keys, `draws` ≥ 2 rows of Gaussian
    q and k. Raises `ValueError` or `TypeError` otherwise.
    """
    d_model, heads = measuring.count("d_model", d_model), measuring.count("heads", heads)
    T, draws = measuring.count("T", T, 2), measuring.count("draws", draws, 2)
    if d_model % heads:
        raise ValueError(
            f"d_model {d_model} is not a multiple of heads {heads}; pass d_model = heads·d_head."
        )
    d_head = d_model // heads
    scores = draw_scores(DotProductSettings(d_head), draws, T, seed)
    rows = []
    for name, d in (("√d_head", d_head), ("√d_model", d_model)):
        scaled = scores / math.sqrt(d)
        rows.append(
            {"divisor": name, "value": math.sqrt(d), "predicted_std": math.sqrt(d_head / d)}
            | measuring.score_std_columns(scaled)
            | measuring.weight_columns(scaled)
        )
    return DivisorMistakeTable.from_rows(rows)
