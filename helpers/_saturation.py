# ruff: noqa: RUF009  (column() only declares a field)
"""What large scores do to softmax: its weights, its Jacobian, the gradient that passes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from helpers import _measuring as measuring
from helpers._table import Table, column
from helpers.attention import normalized_entropy, softmax


def sqrt_two_log_T(T: int) -> float:
    """√(2 ln T): about the largest of T standard-normal scores, and a heuristic for saturation.

    The maximum of T independent standard normals divided by √(2 ln T) tends to 1 (slowly, from
    below). In the random energy model (Derrida 1981, Phys. Rev. B 24, 2613), which is softmax of
    gain·N(0, 1) with T → ∞, the weight condenses on few keys once the gain exceeds √(2 ln T).
    At finite T the change is gradual, so use it as a mark on an axis, not as a threshold.
    Needs `T` ≥ 1. Raises `ValueError` or `TypeError` otherwise.
    """
    return math.sqrt(2 * math.log(measuring.count("T", T)))


@dataclass(frozen=True, eq=False, repr=False)
class SaturationTable(Table):
    """softmax(gain·N(0, 1)) over T keys, one row a T and gain.

    `relative_gain` is gain/√(2 ln T); `limit_entropy` is what the random energy model gives for
    T → ∞ at that relative gain g: 1 − g² up to 1, then 0.
    """

    T: np.ndarray = column("T")
    gain: np.ndarray = column("gain", ".2f")
    relative_gain: np.ndarray = column("gain/√(2 ln T)")
    entropy: np.ndarray = column("entropy / ln T")
    entropy_error: np.ndarray = column("± s.e.")
    limit_entropy: np.ndarray = column("limit T → ∞")
    largest_weight: np.ndarray = column("largest weight")
    largest_weight_error: np.ndarray = column("± s.e.")


def saturation_table(
    gains: Iterable[float] = (0.5, 1, 2, 4, 8, 16),
    Ts: Iterable[int] = (16, 64, 256, 1024),
    draws: int = 400,
    seed: measuring.Seed = 0,
) -> SaturationTable:
    """Normalised entropy and largest weight of softmax over T scores of deviation `gain`.

    Every gain sees the same standard-normal scores, so a column changes with the gain alone.
    Unscaled attention over Gaussian q and k has gain √d_k. Args: `gains` each ≥ 0, `Ts` each
    ≥ 2, `draws` ≥ 2 rows. Raises `ValueError` or `TypeError` otherwise.
    """
    draws, rng = measuring.count("draws", draws, 2), np.random.default_rng(seed)
    gains = measuring.reals("gains", gains, 0)
    rows = []
    for T in measuring.counts("Ts", Ts, 2):
        scores = rng.standard_normal((draws, T))
        for gain in gains:
            relative = gain / sqrt_two_log_T(T)
            rows.append(
                {
                    "T": T,
                    "gain": gain,
                    "relative_gain": relative,
                    "limit_entropy": max(0.0, 1 - relative**2),
                }
                | measuring.weight_columns(gain * scores)
            )
    return SaturationTable.from_rows(rows)


class RowGradients(NamedTuple):
    """Weights of a row of attention, and the gradient at three places on the way back to q."""

    weights: np.ndarray  # (n, T) softmax(scaled)
    scaled: np.ndarray  # (n, T) ∂L/∂scaled, at softmax's input
    scores: np.ndarray  # (n, T) ∂L/∂scores, before the scale
    q: np.ndarray  # (n, d)


def row_gradients(q, k, v, grad_output, scale: float) -> RowGradients:
    """Gradients of n separate rows of attention, each with one query and T keys of its own.

    q (n, d), k (n, T, d), v (n, T, d_v), upstream gradient ∂L/∂output (n, d_v). With scores
    s = kq, scaled z = scale·s, p = softmax(z) and output pᵀv:

        ∂L/∂p = v·∂L/∂output,   ∂L/∂z = p ∘ (∂L/∂p − p·∂L/∂p),
        ∂L/∂s = scale·∂L/∂z,    ∂L/∂q = kᵀ·∂L/∂s.

    The second is the product with softmax's Jacobian diag(p) − p pᵀ.
    """
    weights = softmax(scale * np.einsum("nd,ntd->nt", q, k))
    grad_weights = np.einsum("nd,ntd->nt", grad_output, v)
    shared = (weights * grad_weights).sum(axis=1, keepdims=True)
    grad_scaled = weights * (grad_weights - shared)
    grad_scores = scale * grad_scaled
    return RowGradients(weights, grad_scaled, grad_scores, np.einsum("nt,ntd->nd", grad_scores, k))


SCALES: dict[str, Callable[[int], float]] = {
    "1": lambda d: 1.0,
    "1/sqrt(d)": lambda d: 1 / math.sqrt(d),
    "1/d": lambda d: 1 / d,
}
_USUAL = "1/sqrt(d)"


@dataclass(frozen=True, eq=False, repr=False)
class GradientTable(Table):
    """Norms of the gradient inside attention, three rows a scale.

    `gradient` names what the loss is differentiated by: "scaled" (softmax's input), "scores"
    (the raw scores, before scaling), "q" (the query). Mean, median and quantiles are over all
    draws of all seeds; `mean_spread` and `median_spread` are the standard deviation of a seed's
    mean and median over seeds (NaN with one seed). `almost_none` is the share of draws
    below a tenth of that gradient's median with scale 1/√d, `tenfold` the share above ten times
    it. `largest_weight` and `entropy` (over ln T) are means of the softmax rows.

    `samples[scale][name]` has shape (seeds, draws), for the names "scaled", "scores", "q",
    "largest_weight" and "entropy".
    """

    scale: np.ndarray = column("scale")
    gradient: np.ndarray = column("∂L/∂…")
    mean: np.ndarray = column("mean")
    mean_spread: np.ndarray = column("over seeds")
    median: np.ndarray = column("median")
    median_spread: np.ndarray = column("over seeds")
    q05: np.ndarray = column("5 %")
    q25: np.ndarray = column("25 %")
    q75: np.ndarray = column("75 %")
    q95: np.ndarray = column("95 %")
    almost_none: np.ndarray = column("almost none", ".2f")
    tenfold: np.ndarray = column("tenfold", ".2f")
    largest_weight: np.ndarray = column("largest weight", ".2f")
    entropy: np.ndarray = column("entropy / ln T", ".2f")
    samples: dict[str, dict[str, np.ndarray]]


def gradient_table(
    scales: Iterable[str] = ("1", "1/sqrt(d)", "1/d"),
    T: int = 64,
    d: int = 128,
    draws: int = 400,
    seeds: Iterable[measuring.Seed] = (0, 1, 2, 3, 4),
) -> GradientTable:
    """Measure how large the gradient is at softmax's input, at the raw scores and at the query.

    One draw is one row of attention (see `row_gradients`): q of shape (d,), k and v of shape
    (T, d) and the upstream gradient ∂L/∂output of shape (d,), all independent standard normal.
    Norms are Euclidean, in units where each entry of the upstream gradient has variance 1; an
    entry of ∂L/∂weights then has deviation √d. All scales see the same draws.

    Args: `scales` names in `SCALES` ("1", "1/sqrt(d)", "1/d"), `T` ≥ 2 keys, `d` ≥ 1, `draws`
    ≥ 2 a seed, `seeds` at least one. Raises `ValueError` or `TypeError` otherwise.
    """
    T, d = measuring.count("T", T, 2), measuring.count("d", d)
    draws, seeds = measuring.count("draws", draws, 2), list(seeds)
    scales = list(dict.fromkeys(scales))
    for scale in scales:
        measuring.choice("scale", scale, SCALES)
    if not (scales and seeds):
        raise ValueError(f"got {len(scales)} scales and {len(seeds)} seeds; pass at least 1 each.")
    # "Almost none" is measured against the rows with 1/√d, asked for or not.
    measured = dict.fromkeys([*scales, _USUAL])
    drawn = [_gradient_draws(measured, T, d, draws, seed) for seed in seeds]
    samples = {
        scale: {name: np.stack([one[scale][name] for one in drawn]) for name in drawn[0][scale]}
        for scale in measured
    }
    rows = [
        {"scale": scale, "gradient": name}
        | _norm_columns(samples[scale][name], np.median(samples[_USUAL][name]))
        | {name: samples[scale][name].mean() for name in ("largest_weight", "entropy")}
        for scale in scales
        for name in ("scaled", "scores", "q")
    ]
    return GradientTable.from_rows(rows, samples={scale: samples[scale] for scale in scales})


def _gradient_draws(scales, T, d, draws, seed) -> dict[str, dict[str, np.ndarray]]:
    """Per scale and name, one value a draw, shape (draws,)."""
    rng = np.random.default_rng(seed)
    chunks: dict[str, list[dict]] = {name: [] for name in scales}
    step = max(1, measuring.CHUNK_ENTRIES // (T * d))
    for start in range(0, draws, step):
        n = min(step, draws - start)
        q, grad_output = rng.standard_normal((2, n, d))
        k, v = rng.standard_normal((2, n, T, d))
        for name in scales:
            row = row_gradients(q, k, v, grad_output, SCALES[name](d))
            chunks[name].append(
                {
                    "scaled": np.linalg.norm(row.scaled, axis=1),
                    "scores": np.linalg.norm(row.scores, axis=1),
                    "q": np.linalg.norm(row.q, axis=1),
                    "largest_weight": row.weights.max(axis=1),
                    "entropy": normalized_entropy(row.weights),
                }
            )
    return {
        name: {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        for name, parts in chunks.items()
    }


def _norm_columns(norms: np.ndarray, usual_median: float) -> dict[str, float]:
    """Summary of norms of shape (seeds, draws)."""
    means, medians = norms.mean(axis=1), np.median(norms, axis=1)
    several = len(norms) > 1
    return {
        "mean": norms.mean(),
        "mean_spread": means.std(ddof=1) if several else math.nan,
        "median_spread": medians.std(ddof=1) if several else math.nan,
        "almost_none": (norms < usual_median / 10).mean(),
        "tenfold": (norms > usual_median * 10).mean(),
    } | measuring.quantiles(norms)


def largest_jacobian_eigenvalue(p: np.ndarray) -> np.ndarray:
    """Largest eigenvalue of softmax's Jacobian diag(p) − p pᵀ, for weights p of shape (…, T).

    Never above ½: row i of the (symmetric) Jacobian has diagonal pᵢ(1 − pᵢ) and off-diagonal
    magnitudes that sum to pᵢ(1 − pᵢ), so by Gershgorin every eigenvalue is at most
    2·max pᵢ(1 − pᵢ) ≤ ½. It is ½ at p = (½, ½, 0, …), along (1, −1, 0, …)/√2. At uniform weights
    it is 1/T, at one-hot 0. Returns shape (…). Raises `ValueError` unless p ≥ 0 sums to 1.
    """
    p = np.asarray(p, dtype=float)
    if p.ndim < 1 or not p.shape[-1] or np.any(~(p >= 0)) or np.any(abs(p.sum(-1) - 1) > 1e-6):
        raise ValueError(
            f"p of shape {p.shape} is not weights; pass values from 0 to 1 whose last axis sums "
            "to 1, such as softmax(scores)."
        )
    jacobian = p[..., None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]
    return np.linalg.eigvalsh(jacobian)[..., -1]


@dataclass(frozen=True, eq=False, repr=False)
class JacobianTable(Table):
    """The largest eigenvalue λ of softmax's Jacobian along a gain, one row a gain.

    Mean, smallest and largest λ over the draws; `trace` is the mean of 1 − Σp², the sum of all
    eigenvalues; `largest_weight` the mean of each row's largest weight.
    """

    gain: np.ndarray = column("gain", ".2f")
    largest_weight: np.ndarray = column("largest weight")
    mean: np.ndarray = column("mean λ", ".4f")
    smallest: np.ndarray = column("smallest λ", ".4f")
    largest: np.ndarray = column("largest λ", ".4f")
    trace: np.ndarray = column("trace", ".4f")


def jacobian_eigenvalue_sweep(
    gains: Iterable[float] = (0, 0.5, 1, 2, 4, 8, 16, 32),
    T: int = 8,
    draws: int = 400,
    seed: measuring.Seed = 0,
) -> JacobianTable:
    """Largest eigenvalue of the Jacobian at softmax(gain·s), for `draws` rows s of T normals.

    All gains see the same rows. Args: `gains` each ≥ 0, `T` ≥ 2, `draws` ≥ 1. Raises
    `ValueError` or `TypeError` otherwise.
    """
    T, draws = measuring.count("T", T, 2), measuring.count("draws", draws)
    scores = np.random.default_rng(seed).standard_normal((draws, T))
    rows = []
    for gain in measuring.reals("gains", gains, 0):
        weights = softmax(gain * scores)
        eigenvalues = largest_jacobian_eigenvalue(weights)
        rows.append(
            {
                "gain": gain,
                "largest_weight": weights.max(axis=1).mean(),
                "mean": eigenvalues.mean(),
                "smallest": eigenvalues.min(),
                "largest": eigenvalues.max(),
                "trace": (1 - (weights**2).sum(axis=1)).mean(),
            }
        )
    return JacobianTable.from_rows(rows)
