"""Lesson 2's exercises: statements, hints, solutions. (Its questions are in `questions02`, the
wrong functions that its checkers know in `mistakes02`.)"""

from __future__ import annotations

import random

import numpy as np

from helpers.practice import mistakes02 as mistakes
from helpers.practice.exercises import Case, Exercise
from helpers.practice.lesson01 import K, Q, softmax
from helpers.practice.opinion import Referral
from helpers.practice.questions02 import PREDICTIONS, QUIZ

__all__ = ["EXERCISES", "PREDICTIONS", "QUIZ"]


# --- Solutions, shown to the reader as they stand here. ---


def score_spread(d_k, mean, std):
    product = std**4 + 2 * std**2 * mean**2  # Var(q_i k_i) = (σ² + μ²)² − μ⁴
    given_q = (std**2 + mean**2) * std**2  # with q fixed: q_i² Var(k_i), on average E[q_i²] σ²
    return d_k * product, d_k * given_q  # d_k independent terms


def variance_error(d_k, n):
    fourth_moment = 3 * d_k**2 + 6 * d_k  # E (q·k)⁴ = E 3‖q‖⁴ = 3 (d_k² + 2 d_k)
    return np.sqrt((fourth_moment - d_k**2) / n)  # Var(q·k) = d_k


def initial_score_std(d_head, d_model, weight_std):
    entry_variance = d_model * weight_std**2  # of an entry of q or k: E x_c² = 1, d_model terms
    return np.sqrt(d_head) * entry_variance  # d_head products of variance entry_variance² each


def scaled_head_scores(q, k, heads):
    d_head = q.shape[-1] // heads
    q = q.reshape(len(q), heads, d_head).swapaxes(0, 1)  # (heads, T_q, d_head)
    k = k.reshape(len(k), heads, d_head).swapaxes(0, 1)  # (heads, T_k, d_head)
    return q @ k.swapaxes(1, 2) / np.sqrt(d_head)  # (heads, T_q, T_k)


# --- Inputs. Arrays hold halves and whole numbers: exact in float32 too. ---


def _qk(T_q: int, T_k: int, d_model: int, heads: int, step: float = 0.5):
    """q, k of multiples of `step` from −4·step to 4·step, the same on every machine; and heads."""
    draw = random.Random(T_q * T_k * d_model)
    q, k = (
        np.array([[draw.randrange(-4, 5) * step for _ in range(d_model)] for _ in range(T)])
        for T in (T_q, T_k)
    )
    return q, k, heads


# --- What the doctor examines. ---


def _completed(scaled_head_scores):
    """The scores of exercise 2.4 made into attention: softmax and values come after them."""

    def attention(q, k, v):  # (heads, T, d)
        side_by_side = (x.swapaxes(0, 1).reshape(x.shape[1], -1) for x in (q, k))
        return softmax(scaled_head_scores(*side_by_side, len(q))) @ v

    return attention


SPREAD = Exercise(
    id="2.2",
    title="What broken assumptions do to the spread",
    minutes=10,
    difficulty="medium",
    statement=(
        "All entries of q and k are independent, with mean `mean` = μ and standard deviation "
        "`std` = σ. Return two variances of the score q · k: over all queries and keys (pooled), "
        "and over the keys of one row, averaged over queries (within a row)."
    ),
    signature="score_spread(d_k, mean, std): three numbers -> (pooled, within_row), two numbers",
    hints=(
        "The score is a sum of d_k independent products qᵢkᵢ. What is the variance of one of them?",
        "Independence multiplies expectations: E[(qᵢkᵢ)²] = E[qᵢ²] · E[kᵢ²], and E[qᵢ²] = σ² + μ². "
        "From that subtract the square of E[qᵢkᵢ] = μ².",
        "Within a row q is fixed and only the keys vary: the variance of qᵢkᵢ is then qᵢ² · σ². "
        "Take its average over qᵢ.",
        "Per product: pooled (σ² + μ²)² − μ⁴, within a row (σ² + μ²) · σ². Both times d_k.",
    ),
    solution=score_spread,
    cases=(
        Case("one entry, all assumptions hold", (1, 0.0, 1.0)),
        Case("all assumptions hold", (16, 0.0, 1.0)),
        Case("σ = 2", (4, 0.0, 2.0)),
        Case("a mean", (3, 2.0, 1.0)),
        Case("a small σ and a mean", (10, 1.5, 0.5)),
        Case("a negative mean", (5, -2.0, 3.0)),
        Case("μ = 1 at d_k = 64", (64, 1.0, 1.0), example=True),
        Case("the same at d_k = 128", (128, 1.0, 1.0)),
        Case("σ = 0: every entry is the mean", (8, 2.0, 0.0)),
        Case("a wide head", (4096, 3.0, 1.5), large=True),
    ),
    mistakes=mistakes.SPREAD,
)

ERROR = Exercise(
    id="2.1",
    title="How exact is a measured variance?",
    minutes=15,
    difficulty="hard",
    statement=(
        "You measure the variance of q · k from n independent pairs, with independent standard "
        "normal entries. Return the standard error of the result. For many values (of variance "
        "σ², fourth central moment μ₄) the square of it is (μ₄ − σ⁴)/n; use this for every n."
    ),
    signature="variance_error(d_k, n): two whole numbers -> one number",
    hints=(
        "The mean of q · k is 0 and its variance d_k. So σ⁴ = d_k², and μ₄ = E[(q · k)⁴]. A "
        "standard error is a root.",
        "With q fixed, q · k is a sum of independent normal numbers: it is normal, with the "
        "variance ‖q‖². The fourth moment of a normal number of variance v is 3v².",
        "So μ₄ = 3 · E[‖q‖⁴]. ‖q‖² is a sum of d_k squares, each with mean 1 and variance 2: its "
        "mean is d_k, its variance 2d_k, and the mean of its square d_k² + 2d_k.",
        "μ₄ = 3d_k² + 6d_k. Subtract d_k², divide by n, take the root: d_k · √((2 + 6/d_k)/n).",
    ),
    solution=variance_error,
    cases=(
        Case("d_k = 1, 2 pairs", (1, 2)),
        Case("d_k = 2, 10 pairs", (2, 10)),
        Case("as many pairs as entries", (16, 16)),
        Case("d_k = 4, 1,000 pairs", (4, 1_000)),
        Case("d_k = 64, 100 pairs", (64, 100)),
        Case("the lesson's table at d_k = 64", (64, 10_000), example=True),
        Case("the same at d_k = 16", (16, 10_000)),
        Case("d_k = 512, 50 pairs", (512, 50)),
        Case("d_k = 1024, a million pairs", (1024, 1_000_000), large=True),
    ),
    mistakes=mistakes.ERROR,
)

INITIAL = Exercise(
    id="2.3",
    title="The scores of an untrained model",
    minutes=10,
    difficulty="medium",
    statement=(
        "Two inputs x and y have root mean square 1, as LayerNorm makes them: the squares of the "
        "`d_model` entries sum to d_model. W_Q and W_K, of shape (d_model, d_head), have "
        "independent entries with mean 0 and standard deviation `weight_std`. Return the standard "
        "deviation of the unscaled score, the dot product of xW_Q and yW_K."
    ),
    signature="initial_score_std(d_head, d_model, weight_std): three numbers -> one number",
    hints=(
        "First one entry of q = xW_Q: a sum of d_model terms, each an entry of x times a weight. "
        "What is its variance?",
        "The variance of one term is x_c² · `weight_std`², and the x_c² sum to d_model. So an "
        "entry of q has the variance d_model · `weight_std`², and so has an entry of k.",
        "Now the score: d_head products of an entry of q and an entry of k, mean 0. Their "
        "variances add up, and each is the product of two variances.",
        "The variance is d_head · (d_model · `weight_std`²)². The exercise asks for its root.",
    ),
    solution=initial_score_std,
    cases=(
        Case("a single weight each", (1, 1, 2.0)),
        Case("d_head = 1", (1, 8, 0.5)),
        Case("d_model = 1", (4, 1, 3.0)),
        Case("as wide as one head", (16, 16, 0.25)),
        Case("unit-variance q and k", (64, 256, 0.0625)),
        Case("GPT-2 small: N(0, 0.02)", (64, 768, 0.02), example=True),
        Case("the same with 6 heads", (128, 768, 0.02)),
        Case("the same at d_model = 1600", (64, 1600, 0.02)),
        Case("N(0, 0.1)", (64, 768, 0.1)),
        Case("a very wide model", (256, 16384, 0.5), large=True),
    ),
    mistakes=mistakes.INITIAL,
)

HEADS = Exercise(
    id="2.4",
    title="One divisor for each head",
    minutes=15,
    difficulty="medium",
    statement=(
        "`q` and `k` are as wide as the model. Each of the `heads` heads owns d_model/heads "
        "neighbouring columns: head 0 the first ones, head 1 the next. Return the scaled scores "
        "of every head, before the softmax."
    ),
    signature=(
        "scaled_head_scores(q, k, heads): q (T_q, d_model), k (T_k, d_model) -> (heads, T_q, T_k)"
    ),
    hints=(
        "How many columns does a head own, and over how many products does one of its scores sum? "
        "That number decides the divisor.",
        "Head h owns the columns h · d_head to (h + 1) · d_head. A loop over the heads and a "
        "slice of columns is a good first version; `np.stack` puts the tables together.",
        "Without a loop: `q.reshape(T_q, heads, d_head)` cuts each row into its heads. Then the "
        "axis of the heads has to come first: `.swapaxes(0, 1)`.",
        "`@` works on the last two axes: (heads, T_q, d_head) @ (heads, d_head, T_k). For the "
        "second factor use `.swapaxes(1, 2)`. Divide by √d_head.",
    ),
    solution=scaled_head_scores,
    cases=(
        Case("1 query, 1 key, 2 heads of 1", _qk(1, 1, 2, 2)),
        Case("a single head", _qk(2, 2, 3, 1)),
        Case("1 query, 2 keys, 2 heads of 2", _qk(1, 2, 4, 2)),
        Case("2 queries, 3 keys, 2 heads of 3", _qk(2, 3, 6, 2)),
        Case("lesson 1's three tokens, 2 heads", (Q, K, 2), example=True),
        Case("the example's sizes, other numbers", _qk(3, 3, 4, 2)),
        Case("the same with 4 heads of 1", _qk(3, 3, 4, 4)),
        Case("3 queries, 2 keys, 3 heads of 2", _qk(3, 2, 6, 3)),
        Case("as many tokens as heads", _qk(3, 3, 12, 3)),
        Case("5 queries, 4 keys, 4 heads of 4", _qk(5, 4, 16, 4)),
        Case("4 queries, 6 keys, 2 heads of 9", _qk(4, 6, 18, 2)),
        Case("large numbers", _qk(2, 4, 8, 2, step=500.0), large=True),
    ),
    mistakes=mistakes.HEADS,
    doctor=Referral(_completed, {"layout": "HTD"}),
)

EXERCISES = (ERROR, SPREAD, INITIAL, HEADS)
