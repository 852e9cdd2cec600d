# ruff: noqa: RUF009  (column() only declares a field)
"""Dot products of independent vectors: their spread, its error, their distance from normal."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from helpers import _measuring as measuring
from helpers._table import Table, column


@dataclass(frozen=True)
class EntryDistribution:
    """A distribution of single entries, symmetric, of mean 0 and variance 1.

    `kurtosis` is E x⁴ (3 for the normal); `draw(rng, shape)` gives independent entries.
    """

    kurtosis: float
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


DISTRIBUTIONS: dict[str, EntryDistribution] = {
    "normal": EntryDistribution(3.0, lambda rng, shape: rng.standard_normal(shape)),
    "uniform": EntryDistribution(
        9 / 5, lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
    ),
    "rademacher": EntryDistribution(1.0, lambda rng, shape: rng.integers(0, 2, shape) * 2.0 - 1.0),
    "laplace": EntryDistribution(6.0, lambda rng, shape: rng.laplace(0, math.sqrt(1 / 2), shape)),
    # Student's t with 5 degrees of freedom has variance 5/3 and kurtosis 3 + 6/(5 − 4).
    "student_t5": EntryDistribution(
        9.0, lambda rng, shape: rng.standard_t(5, shape) / math.sqrt(5 / 3)
    ),
}


def draw_dot_products(
    d_k: int, pairs: int = 10_000, seed: measuring.Seed = 0, distribution: str = "normal"
) -> np.ndarray:
    """q·k for independent pairs of vectors with independent entries of mean 0 and variance 1.

    Args: `d_k` entries a vector, `pairs` ≥ 1, `distribution` a name in `DISTRIBUTIONS`.
    Returns shape (pairs,). Works in chunks of a few MB. Raises `ValueError` or `TypeError` for
    a bad count or an unknown name.
    """
    d_k, pairs = measuring.count("d_k", d_k), measuring.count("pairs", pairs)
    draw = measuring.choice("distribution", distribution, DISTRIBUTIONS).draw
    rng = np.random.default_rng(seed)
    scores = np.empty(pairs)
    step = max(1, measuring.CHUNK_ENTRIES // d_k)
    for start in range(0, pairs, step):
        shape = (min(step, pairs - start), d_k)
        q, k = draw(rng, shape), draw(rng, shape)
        scores[start : start + step] = np.einsum("nd,nd->n", q, k)
    return scores


def draw_gaussian_dot_products(
    d_k: int, shape: int | tuple[int, ...], seed: measuring.Seed = 0
) -> np.ndarray:
    """Scores with the law of q·k for standard-normal entries, without drawing the vectors.

    Given q, the sum Σ qᵢkᵢ of independent normals is normal with mean 0 and variance ‖q‖², and
    ‖q‖² is χ² with d_k degrees of freedom, so q·k has exactly the law of √(χ²_{d_k})·N(0, 1).
    The cost does not grow with d_k. Returns independent scores of the given shape. Raises as
    `draw_dot_products` does.
    """
    d_k, rng = measuring.count("d_k", d_k), np.random.default_rng(seed)
    return np.sqrt(rng.chisquare(d_k, shape)) * rng.standard_normal(shape)


def variance_standard_error(d_k: int, pairs: int, kurtosis: float = 3.0) -> float:
    """Standard error of the variance of `pairs` dot products: d_k·√((2 + (κ² − 3)/d_k)/n).

    For Gaussian entries, κ = 3, that is d_k·√((2 + 6/d_k)/n).

    The sample variance of n independent values with variance σ² and fourth central moment μ₄ has
    variance (μ₄ − σ⁴)/n to leading order in 1/n. For q·k, σ² = d_k; each term z = qᵢkᵢ has
    E z² = 1 and E z⁴ = κ², so μ₄ = 3d_k(d_k − 1) + κ²d_k. Needs `pairs` ≥ 2.
    """
    d_k, pairs = measuring.count("d_k", d_k), measuring.count("pairs", pairs, 2)
    return d_k * math.sqrt((2 + (kurtosis**2 - 3) / d_k) / pairs)


@dataclass(frozen=True, eq=False, repr=False)
class DotProductTable(Table):
    """Mean, variance and standard deviation of q·k with standard errors, one row a d_k.

    z is (measured − theory) / standard error, with theory 0, d_k and √d_k; NaN where theory leaves
    no error (entries ±1 with d_k = 1: every score is ±1).
    """

    d_k: np.ndarray = column("d_k")
    mean: np.ndarray = column("mean")
    mean_error: np.ndarray = column("± s.e.")
    mean_z: np.ndarray = column("z", ".2f")
    variance: np.ndarray = column("variance", ".2f")
    variance_error: np.ndarray = column("± s.e.", ".2f")
    variance_z: np.ndarray = column("z", ".2f")
    std: np.ndarray = column("std")
    std_error: np.ndarray = column("± s.e.")
    std_z: np.ndarray = column("z", ".2f")
    sqrt_d_k: np.ndarray = column("√d_k")


def dot_product_table(
    d_ks: Iterable[int],
    pairs: int = 10_000,
    seed: measuring.Seed = 0,
    distribution: str = "normal",
) -> DotProductTable:
    """Measure the spread of q·k beside the theory: mean 0, variance d_k, deviation √d_k.

    q·k = Σ qᵢkᵢ is a sum of d_k independent terms, each of mean E qᵢ·E kᵢ = 0 and variance
    E qᵢ²·E kᵢ² = 1 (Vaswani et al. 2017, "Attention is all you need", footnote 4).
    The standard errors are those that theory predicts: √(d_k/n) for the mean,
    `variance_standard_error` for the variance, and, by the delta method, that divided by 2√d_k
    for the standard deviation. The measured variance divides by n − 1.

    Args: `d_ks` entries a vector, each ≥ 1; `pairs` n ≥ 2 of vectors for each; `distribution`
    of the entries, a name in `DISTRIBUTIONS`. Raises `ValueError` or `TypeError` for a bad count
    or an unknown name.
    """
    pairs = measuring.count("pairs", pairs, 2)
    kurtosis = measuring.choice("distribution", distribution, DISTRIBUTIONS).kurtosis
    rng = np.random.default_rng(seed)
    rows = []
    for d_k in measuring.counts("d_ks", d_ks):
        scores = draw_dot_products(d_k, pairs, rng, distribution)
        mean, variance = float(scores.mean()), float(scores.var(ddof=1))
        root = math.sqrt(d_k)
        mean_error = math.sqrt(d_k / pairs)
        variance_error = variance_standard_error(d_k, pairs, kurtosis)
        std_error = variance_error / (2 * root)
        rows.append(
            {
                "d_k": d_k,
                "mean": mean,
                "mean_error": mean_error,
                "mean_z": mean / mean_error,
                "variance": variance,
                "variance_error": variance_error,
                "variance_z": (variance - d_k) / (variance_error or math.nan),
                "std": math.sqrt(variance),
                "std_error": std_error,
                "std_z": (math.sqrt(variance) - root) / (std_error or math.nan),
                "sqrt_d_k": root,
            }
        )
    return DotProductTable.from_rows(rows)


class LogLogFit(NamedTuple):
    """y ≈ exp(intercept)·x^slope, with the standard error of the slope."""

    slope: float
    intercept: float
    standard_error: float


def loglog_slope(x, y, y_error=None) -> LogLogFit:
    """Least-squares line through (ln x, ln y): a power law y ∝ xᵃ has slope a.

    The standard error of the slope is propagated from `y_error`, the standard errors of y, where
    they are known: few points tell little about their own scatter. Without them it comes from the
    residuals, with n − 2 degrees of freedom. `x` and `y` are positive, of one shape (n,), n ≥ 3;
    `x` takes at least two values. Raises `ValueError` otherwise.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or x.size < 3:
        raise ValueError(
            f"x has shape {x.shape} and y {y.shape}; pass two lists of one length, at least 3."
        )
    if not (np.all(x > 0) and np.all(y > 0)):
        raise ValueError(
            f"the smallest x is {x.min():g} and the smallest y {y.min():g}; a logarithm needs "
            "values above 0: leave the others out."
        )
    if x.min() == x.max():
        raise ValueError(f"every x is {x[0]:g}; a slope needs at least 2 different values of x.")
    log_x, log_y = np.log(x), np.log(y)
    away = log_x - log_x.mean()
    slope = (away * log_y).sum() / (away**2).sum()
    intercept = log_y.mean() - slope * log_x.mean()
    if y_error is not None:  # ln y has the error y_error / y
        shares = away / (away**2).sum() * np.asarray(y_error, dtype=float) / y
        return LogLogFit(float(slope), float(intercept), float(np.sqrt((shares**2).sum())))
    residual = log_y - intercept - slope * log_x
    error = math.sqrt((residual**2).sum() / (x.size - 2) / (away**2).sum())
    return LogLogFit(float(slope), float(intercept), error)


@dataclass(frozen=True, eq=False, repr=False)
class SampleSizeTable(Table):
    """How far the measured variance of q·k scatters, one row a sample size.

    `mean` and `scatter` are the average and standard deviation of the measured variance over the
    repeats; `predicted_scatter` is theory's; the rest are quantiles of the measured variance.
    """

    pairs: np.ndarray = column("pairs")
    mean: np.ndarray = column("mean")
    scatter: np.ndarray = column("scatter")
    predicted_scatter: np.ndarray = column("predicted")
    q05: np.ndarray = column("5 %")
    q25: np.ndarray = column("25 %")
    median: np.ndarray = column("median")
    q75: np.ndarray = column("75 %")
    q95: np.ndarray = column("95 %")


def sample_size_table(
    d_k: int,
    pairs: Iterable[int] = (4, 16, 100, 1_000, 10_000),
    repeats: int = 1_000,
    seed: measuring.Seed = 0,
) -> SampleSizeTable:
    """Measure the variance of q·k again and again from few and from many pairs.

    For each n in `pairs`, `repeats` independent samples of n Gaussian dot products (drawn by
    `draw_gaussian_dot_products`), each with its variance (n − 1 in the denominator: unbiased).
    Predicted scatter, exact at every n: d_k·√(2/(n − 1) + 6/(d_k·n)), from
    Var s² = (μ₄ − σ⁴(n − 3)/(n − 1))/n with σ² = d_k and μ₄ = 3d_k² + 6d_k.

    Args: `d_k` ≥ 1, every n ≥ 2, `repeats` ≥ 2. Raises `ValueError` or `TypeError` otherwise.
    """
    d_k, repeats = measuring.count("d_k", d_k), measuring.count("repeats", repeats, 2)
    rng = np.random.default_rng(seed)
    rows = []
    for n in measuring.counts("pairs", pairs, 2):
        variances = np.empty(repeats)
        step = max(1, measuring.CHUNK_ENTRIES // n)
        for start in range(0, repeats, step):
            shape = (min(step, repeats - start), n)
            scores = draw_gaussian_dot_products(d_k, shape, rng)
            variances[start : start + step] = scores.var(axis=1, ddof=1)
        rows.append(
            {
                "pairs": n,
                "mean": variances.mean(),
                "scatter": variances.std(ddof=1),
                "predicted_scatter": d_k * math.sqrt(2 / (n - 1) + 6 / (d_k * n)),
            }
            | measuring.quantiles(variances)
        )
    return SampleSizeTable.from_rows(rows)


@functools.cache
def _normal_cdf_grid() -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(-9, 9, 18_001)
    return x, np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x.tolist()])


def normal_cdf(x: np.ndarray) -> np.ndarray:
    """Φ(x) of the standard normal, any shape, to 1e-7 (interpolated: NumPy has no erf)."""
    return np.interp(x, *_normal_cdf_grid())


def distance_from_normal(d_k: int) -> float:
    """sup over x of |P(q·k/√d_k ≤ x) − Φ(x)| for Gaussian entries, to about 1e-5.

    Given q, the score is normal with deviation ‖q‖, so P(q·k/√d_k ≤ x) = E Φ(x/R) with
    R = ‖q‖/√d_k, whose density is proportional to r^(d−1)·exp(−d·r²/2): one integral, done here
    by the midpoint rule. At d_k = 1 this is the law of a product of two normals, at
    d_k = 2 a Laplace law. Raises `ValueError` or `TypeError` for a bad `d_k`.
    """
    d_k = measuring.count("d_k", d_k)
    reach = 8 / math.sqrt(2 * d_k)
    edges = np.linspace(max(0.0, 1 - reach), 1 + reach, 1001)
    r = (edges[1:] + edges[:-1]) / 2
    log_density = (d_k - 1) * np.log(r) - d_k * r**2 / 2
    density = np.exp(log_density - log_density.max())
    x = np.linspace(0.01, 4, 400)
    mixture = np.einsum("xr,r->x", normal_cdf(x[:, None] / r), density / density.sum())
    return float(np.abs(mixture - normal_cdf(x)).max())


def empirical_distance_from_normal(values: np.ndarray) -> float:
    """sup over x of |share of `values` ≤ x − Φ(x)|, the Kolmogorov-Smirnov distance.

    `values` has shape (n,), n ≥ 1. Values that are normal stay below 1.36/√n in 95 of 100 samples.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n = measuring.count("the number of values", ordered.size)
    cdf = normal_cdf(ordered)
    above, below = np.arange(1, n + 1) / n - cdf, cdf - np.arange(n) / n
    return float(max(above.max(), below.max()))


def excess_kurtosis(values: np.ndarray) -> float:
    """m₄/m₂² − 3 with central moments of `values`, shape (n,), n ≥ 2: 0 for a normal curve.

    Dividing by √d_k changes nothing: it is free of scale. Raises `ValueError` where all values
    are equal.
    """
    values = np.asarray(values, dtype=float)
    measuring.count("the number of values", values.size, 2)
    squares = (values - values.mean()) ** 2
    if not squares.any():
        raise ValueError(f"all {values.size} values are equal; kurtosis needs at least 2 values.")
    return float((squares**2).mean() / squares.mean() ** 2 - 3)


@dataclass(frozen=True, eq=False, repr=False)
class NormalityTable(Table):
    """How far q·k/√d_k is from a normal variable, one row a d_k.

    `excess_kurtosis` is measured, `predicted` is 6/d_k, `error` the standard error, `z` the
    difference in standard errors; `distance` is the measured sup-distance to the normal, `exact`
    the true one, `noise` what a truly normal sample of this size stays below 95 times in 100.
    """

    d_k: np.ndarray = column("d_k")
    excess_kurtosis: np.ndarray = column("excess kurtosis")
    predicted: np.ndarray = column("6/d_k")
    error: np.ndarray = column("± s.e.")
    z: np.ndarray = column("z", ".2f")
    distance: np.ndarray = column("distance", ".4f")
    exact: np.ndarray = column("gap to normal", ".4f")
    noise: np.ndarray = column("noise", ".4f")


def normality_table(
    d_ks: Iterable[int] = (1, 2, 4, 16, 64, 256),
    pairs: int = 100_000,
    seed: measuring.Seed = 0,
) -> NormalityTable:
    """Measure how q·k/√d_k approaches a normal curve as d_k grows, for Gaussian entries.

    Excess kurtosis: a sum of d independent terms has 1/d of a term's, and z = qᵢkᵢ has
    E z⁴/(E z²)² − 3 = 9 − 3 = 6, so it is 6/d_k. Its standard error is the delta method's,
    √((μ₈ − μ₄² − 4μ₄(μ₆ − μ₄) + 4μ₄²(μ₄ − 1))/n) with the moments of q·k/√d_k,
    μ₂ₘ = (2m − 1)!!·E(χ²_d/d)ᵐ. At d_k = 1 the estimate is skewed: its own tails are heavy.

    Args: each of `d_ks` ≥ 1, `pairs` n ≥ 2. Raises `ValueError` or `TypeError` otherwise.
    """
    pairs, rng = measuring.count("pairs", pairs, 2), np.random.default_rng(seed)
    rows = []
    for d_k in measuring.counts("d_ks", d_ks):
        values = draw_gaussian_dot_products(d_k, pairs, rng) / math.sqrt(d_k)
        measured, predicted = excess_kurtosis(values), 6 / d_k
        chi = [math.prod(1 + 2 * i / d_k for i in range(m)) for m in (2, 3, 4)]
        m4, m6, m8 = 3 * chi[0], 15 * chi[1], 105 * chi[2]
        error = math.sqrt((m8 - m4**2 - 4 * m4 * (m6 - m4) + 4 * m4**2 * (m4 - 1)) / pairs)
        rows.append(
            {
                "d_k": d_k,
                "excess_kurtosis": measured,
                "predicted": predicted,
                "error": error,
                "z": (measured - predicted) / error,
                "distance": empirical_distance_from_normal(values),
                "exact": distance_from_normal(d_k),
                "noise": 1.36 / math.sqrt(pairs),
            }
        )
    return NormalityTable.from_rows(rows)
