# ruff: noqa: RUF009  (column() only declares a field)
"""Where the spread of scores comes from: initialisation of W_Q and W_K, and LayerNormed inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from helpers import _measuring as measuring
from helpers._table import Table, column


@dataclass(frozen=True)
class WeightInit:
    """A projection's initialisation: its shape and its standard deviation for a given d_model."""

    uniform: bool
    std: Callable[[int], float]


INITS: dict[str, WeightInit] = {
    # GPT-2's (openai/gpt-2, model.py: w_init_stdev=0.02).
    "N(0, 0.02)": WeightInit(False, lambda d_model: 0.02),
    # torch.nn.Linear.reset_parameters: U(−1/√d_in, 1/√d_in), whose variance is 1/(3·d_in).
    "nn.Linear default": WeightInit(True, lambda d_model: 1 / math.sqrt(3 * d_model)),
    # torch.nn.init.xavier_uniform_: variance 2/(fan_in + fan_out), here d_model → d_model.
    "Xavier uniform": WeightInit(True, lambda d_model: math.sqrt(2 / (2 * d_model))),
    # The same on nn.MultiheadAttention's in_proj_weight: W_Q, W_K, W_V stacked, 3·d_model wide.
    "nn.MultiheadAttention": WeightInit(True, lambda d_model: math.sqrt(2 / (4 * d_model))),
    # Unit variance of q and k for unit-RMS inputs.
    "unit": WeightInit(False, lambda d_model: 1 / math.sqrt(d_model)),
}


def init_weight_std(init: str, d_model: int) -> float:
    """Standard deviation σ_W of the entries of W_Q and W_K under a named init (see `INITS`).

    Both are d_model → d_model; biases are left out. Raises `ValueError` for an unknown name and
    `ValueError` or `TypeError` for a bad `d_model`.
    """
    return measuring.choice("init", init, INITS).std(measuring.count("d_model", d_model))


def initial_score_std(d_head: int, d_model: int, weight_std: float) -> float:
    """Standard deviation of unscaled scores at the start: √d_head · d_model · σ_W².

    For inputs of root mean square 1 (‖x‖² = d_model: what LayerNorm gives) and independent W_Q,
    W_K of independent entries with mean 0 and deviation σ_W = `weight_std`: given x, each entry
    of q = xW_Q and of k has mean 0 and variance d_model·σ_W², entries and q, k are uncorrelated,
    so q·k, a sum of d_head terms, has variance d_head·(d_model·σ_W²)². This holds for any two
    inputs, and is pooled over draws of the weights; how inputs resemble each other changes only
    the share of it that a row's keys do not have in common. Divide by √d_head for scaled scores.

    Args: `d_head` ≥ 1, `d_model` ≥ 1, `weight_std` ≥ 0. Raises `ValueError` or `TypeError`
    otherwise.
    """
    d_head, d_model = measuring.count("d_head", d_head), measuring.count("d_model", d_model)
    return math.sqrt(d_head) * d_model * measuring.real("weight_std", weight_std, 0) ** 2


class InitialScoreStd(NamedTuple):
    """Standard deviation of unscaled scores, measured pooled and within a row; and predicted.

    `pooled` is the root mean square over all heads, rows and keys (the mean over weights is 0);
    `within_row` the root of the average variance over a row's keys. Errors are standard errors
    over heads. `predicted` = √d_head·d_model·σ_W² for the pooled one, `predicted_within_row` the
    same times √(1 − `input_cosine`), the mean cosine between two of the inputs that were drawn.
    """

    pooled: float
    pooled_error: float
    predicted: float
    within_row: float
    within_row_error: float
    predicted_within_row: float
    input_cosine: float


def measured_initial_score_std(
    d_head: int,
    d_model: int,
    init: str,
    T: int = 64,
    seed: measuring.Seed = 0,
    input_similarity: float = 0.0,
    heads: int = 16,
) -> InitialScoreStd:
    """Draw inputs and W_Q, W_K, compute unscaled scores, and measure their spread.

    T inputs xⱼ = LayerNorm(√c·m + √(1 − c)·eⱼ), with normal m and eⱼ, so that two of them have
    cosine c = `input_similarity` on average; for each of `heads` heads W_Q and W_K of shape
    (d_model, d_head) from `init` (see `INITS`), and scores of shape (T, T).

    Given q, the scores of a row are sums over independent columns of W_K: two of them have
    covariance σ_W²·‖q‖²·(xⱼ·xₗ), each has variance σ_W²·‖q‖²·d_model. So a share c of a row's
    variance is common to its keys, which softmax ignores; within the row the standard deviation
    is √(1 − c) times the pooled one, with c the mean cosine of the inputs as drawn: it scatters
    around `input_similarity`, and at a small d_model visibly. The common part is almost one
    number a head, so the pooled measurement needs many heads where c is large: read its error.

    Args: `d_head` ≥ 1, `d_model` ≥ 2, `T` ≥ 2, 0 ≤ c ≤ 1, `heads` ≥ 2 (any number: their width
    need not be d_model). Raises `ValueError` or `TypeError` otherwise.
    """
    d_head, d_model = measuring.count("d_head", d_head), measuring.count("d_model", d_model, 2)
    T, heads = measuring.count("T", T, 2), measuring.count("heads", heads, 2)
    similarity = measuring.real("input_similarity", input_similarity, 0, 1)
    std = init_weight_std(init, d_model)
    rng = np.random.default_rng(seed)
    x = _inputs(T, d_model, similarity, rng)
    squares, variances = np.empty(heads), np.empty(heads)
    step = max(1, 4 * measuring.CHUNK_ENTRIES // (d_model * d_head))
    for start in range(0, heads, step):
        n = min(step, heads - start)
        shape = (d_model, n * d_head)
        # (T, n·d_head) -> (n, T, d_head)
        q, k = (
            (x @ _draw_weight(init, std, shape, rng)).reshape(T, n, d_head).swapaxes(0, 1)
            for _ in range(2)
        )
        scores = q @ k.mT
        squares[start : start + n] = (scores**2).mean(axis=(1, 2))
        variances[start : start + n] = scores.var(axis=2, ddof=1).mean(axis=1)
    predicted = initial_score_std(d_head, d_model, std)
    # Mean of xⱼ·xₗ/d_model over j ≠ l: the square of the sum less the T squares, each d_model.
    cosine = float(((x.sum(axis=0) ** 2).sum() / d_model - T) / (T * (T - 1)))
    return InitialScoreStd(
        *measuring.root_and_error(squares),
        predicted,
        *measuring.root_and_error(variances),
        predicted * math.sqrt(max(0.0, 1 - cosine)),
        cosine,
    )


def _inputs(T: int, d_model: int, similarity: float, rng) -> np.ndarray:
    """LayerNormed inputs (T, d_model): mean 0, variance 1 each, mean cosine `similarity`."""
    common, own = rng.standard_normal(d_model), rng.standard_normal((T, d_model))
    x = math.sqrt(similarity) * common + math.sqrt(1 - similarity) * own
    x -= x.mean(axis=1, keepdims=True)
    return x / x.std(axis=1, keepdims=True)


def _draw_weight(init: str, std: float, shape: tuple[int, int], rng) -> np.ndarray:
    if INITS[init].uniform:
        return rng.uniform(-math.sqrt(3) * std, math.sqrt(3) * std, shape)
    return std * rng.standard_normal(shape)


@dataclass(frozen=True, eq=False, repr=False)
class InitTable(Table):
    """Standard deviation of unscaled scores at the start, one row an init and d_model.

    `weight_std` is σ_W, `predicted` √d_head·d_model·σ_W², `measured` pooled, `z` their
    difference in standard errors, `scaled` the prediction divided by √d_head.
    """

    init: np.ndarray = column("init")
    d_model: np.ndarray = column("d_model")
    weight_std: np.ndarray = column("σ_W", ".4f")
    predicted: np.ndarray = column("predicted std")
    measured: np.ndarray = column("measured")
    error: np.ndarray = column("± s.e.")
    z: np.ndarray = column("z", ".2f")
    scaled: np.ndarray = column("predicted / √d_head")


def init_table(
    d_models: Iterable[int] = (256, 512, 1024, 2048, 4096),
    d_head: int = 64,
    inits: Iterable[str] = tuple(INITS),
    T: int = 64,
    heads: int = 16,
    seed: measuring.Seed = 0,
) -> InitTable:
    """`measured_initial_score_std` beside √d_head·d_model·σ_W² for several inits and widths.

    Arguments and what is raised are as there; an empty list raises `ValueError`.
    """
    widths, rng = measuring.counts("d_models", d_models, 2), np.random.default_rng(seed)
    rows = []
    for init in inits:
        for d_model in widths:
            got = measured_initial_score_std(d_head, d_model, init, T, rng, heads=heads)
            rows.append(
                {
                    "init": init,
                    "d_model": d_model,
                    "weight_std": init_weight_std(init, d_model),
                    "predicted": got.predicted,
                    "measured": got.pooled,
                    "error": got.pooled_error,
                    "z": (got.pooled - got.predicted) / got.pooled_error,
                    "scaled": got.predicted / math.sqrt(d_head),
                }
            )
    return InitTable.from_rows(rows)
