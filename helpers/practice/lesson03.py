"""Lesson 3's exercises: statements, hints, solutions. (Its questions are in `questions03`, the
wrong functions that its checkers know in `mistakes03`.)"""

from __future__ import annotations

import random

import numpy as np

from helpers.practice import mistakes03 as mistakes
from helpers.practice.exercises import Case, Exercise
from helpers.practice.opinion import Referral
from helpers.practice.questions03 import PREDICTIONS, QUIZ

__all__ = ["EXERCISES", "PREDICTIONS", "QUIZ"]


# --- Solutions, shown to the reader as they stand here. ---


def stable_softmax(x, temperature=1.0):
    largest = x.max(axis=-1, keepdims=True)  # (..., 1), one per row
    exps = np.exp((x - largest) / temperature)  # no exponent above 0, so no overflow
    return exps / exps.sum(axis=-1, keepdims=True)  # each row sums to 1


def entropy(weights):
    safe = np.where(weights > 0, weights, 1)  # ln 1 = 0 in place of ln 0 = -inf
    return 0 - (weights * np.log(safe)).sum(axis=-1)  # (..., T) -> (...)


def softmax_jvp(p, dz):
    mean = (p * dz).sum(axis=-1, keepdims=True)  # (n, 1): the mean of dz, weighted by p
    return p * (dz - mean)  # (diag(p) − p pᵀ) dz, row by row


def masked_softmax(scores, allowed):
    masked = np.where(allowed, scores, -np.inf)
    largest = masked.max(axis=-1, keepdims=True)  # among the allowed keys alone
    largest = np.where(largest == -np.inf, 0, largest)  # all masked: -inf − (-inf) would be nan
    exps = np.exp(masked - largest)  # exp(-inf) = 0
    total = exps.sum(axis=-1, keepdims=True)
    return exps / np.where(total == 0, 1, total)  # all masked: 0/1, not 0/0


# --- Inputs. All are exact in float32 too. ---

SCORES = np.array([2.0, 1, 0.5])  # the lesson's three scores
WEIGHTS = np.array([0.5, 0.25, 0.25])  # and weights


def _some(seed: int, *shape: int, step: float = 0.5) -> np.ndarray:
    """Multiples of `step` from −4·step to 4·step; the same on every machine."""
    draw = random.Random(seed)
    size = int(np.prod(shape))
    return np.array([draw.randrange(-4, 5) * step for _ in range(size)]).reshape(shape)


def _weights(seed: int, *shape: int) -> np.ndarray:
    """Rows of sixteenths that sum to 1, zeros among them."""
    draw = random.Random(seed)
    *rows, T = shape
    counts = np.zeros((int(np.prod(rows)), T))
    for row in counts:
        for _ in range(16):
            row[draw.randrange(T)] += 1
    return counts.reshape(shape) / 16


def _at(temperature: float, *rows) -> tuple[np.ndarray, float]:
    """Arguments of exercise 3.1: one row of scores, or several."""
    x = np.array(rows if len(rows) > 1 else rows[0], dtype=float)
    return x, float(temperature)


def _masked(*rows: str) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of exercise 3.4, "2 1 (0.5)" for a row whose last key is masked."""
    split = [row.split() for row in rows]
    scores = np.array([[float(entry.strip("()")) for entry in row] for row in split])
    return scores, np.array([[not entry.startswith("(") for entry in row] for row in split])


def _some_masked(seed: int, T_q: int, T_k: int) -> tuple[np.ndarray, np.ndarray]:
    return _some(seed, T_q, T_k), _some(seed + 1, T_q, T_k) < 0.5


# --- What the doctor examines. ---


def _between_scores_and_values(masked_softmax):
    """The masked softmax of exercise 3.4 made into attention."""

    def attention(q, k, v, mask=None):
        scores = q @ k.T / np.sqrt(q.shape[-1])
        allowed = np.ones(scores.shape, dtype=bool) if mask is None else mask.astype(bool)
        return masked_softmax(scores, allowed) @ v

    return attention


SOFTMAX = Exercise(
    id="3.1",
    title="A softmax that holds",
    minutes=8,
    difficulty="easy",
    statement=(
        "Divide the scores by the temperature and take the softmax over the last axis, however "
        "many axes come before it: one row, a table, or the (B, H, T, T) of a whole layer. Scores "
        "may be as large as 100,000 and as low as −100,000, the temperature any positive number."
    ),
    signature="stable_softmax(x, temperature=1.0): (..., T) -> (..., T), each row sums to 1",
    hints=(
        "Which comes first, the division by the temperature or exp? A temperature of 2 must do "
        "what halving every score does.",
        "`axis=-1` is the last axis whatever the number of axes; `axis=1` is so in a table only.",
        "`np.exp(100_000)` is inf. Which number, subtracted from each row, leaves no exponent "
        "above 0 and changes no weight?",
        "`x / temperature`, minus its own maximum over `axis=-1` with `keepdims=True`, exp, "
        "divided by its sum over the same axis.",
    ),
    solution=stable_softmax,
    cases=(
        Case("a single score", (np.array([[3.0]]), 2.0)),
        Case("2 scores, temperature 1", _at(1, [1, 2])),
        Case("2 scores, temperature 2", _at(2, [1, 3])),
        Case("the lesson's three scores", (SCORES, 1.0), example=True),
        Case("three scores, temperature 4", _at(4, [-1, 3, 1])),
        Case("2 rows, temperature 0.5", _at(0.5, [0, 1], [0.5, -0.5])),
        Case("2 rows of 3, temperature 2", _at(2, [1, -2, 0.5], [0, 3, -1])),
        Case("ties", _at(2, [1, 1, 1], [2, 0, 2])),
        Case("3 rows of 3, temperature 4", (_some(5, 3, 3, step=2.0), 4.0)),
        Case("4 rows of 6, temperature 3", (_some(6, 4, 6), 3.0)),
        Case("three axes", (_some(7, 2, 2, 3), 1.0)),
        Case("three axes of length 3", (_some(8, 3, 3, 3), 2.0)),
        Case("four axes", (_some(9, 2, 1, 2, 3), 0.5)),
        Case("scores near 100,000", _at(1, [99_999, 100_000, 99_998]), large=True),
        Case("scores near −100,000", _at(1, [-99_999, -100_000], [-99_997, -99_998]), large=True),
        Case("near 100,000, temperature 2", _at(2, [99_998, 100_000, 99_997]), large=True),
        Case("near −100,000, temperature 2", _at(2, [-99_998, -100_000, -99_997]), large=True),
        Case("one row near 100,000, one near 0", _at(1, [0, 1, 2], [99_999, 1e5, 0]), large=True),
        Case("temperature 65,536", _at(65_536, [65_536, 0, -65_536, 98_304]), large=True),
    ),
    mistakes=mistakes.SOFTMAX,
)

ENTROPY = Exercise(
    id="3.2",
    title="Entropy",
    minutes=8,
    difficulty="medium",
    statement=(
        "Each row of `weights` holds numbers from 0 to 1 that sum to 1. Return the entropy of "
        "each, −Σ w · ln w, in nats. A weight of 0 adds nothing, since w · ln w tends to 0 as w "
        "does. No nan may come out, and NumPy should have nothing to warn of."
    ),
    signature="entropy(weights): (..., T) -> (...), one number a row",
    hints=(
        "What does `np.log(0.0)` give, and what 0 times that? Try both in a cell.",
        "Only the zeros are the trouble. By which number could you replace them inside the "
        "logarithm, so that it gives 0?",
        "`np.where(weights > 0, weights, 1)` is such an array: ln 1 = 0. Leave the factor in front "
        "of the logarithm as it is.",
        "Multiply `weights` with the logarithm of that array, sum over `axis=-1`, reverse the "
        "sign.",
    ),
    solution=entropy,
    cases=(
        Case("a single key", (np.array([[1.0]]),)),
        Case("two equal weights", (np.array([0.5, 0.5]),)),
        Case("two unequal weights", (np.array([0.125, 0.875]),)),
        Case("one-hot", (np.array([0.0, 1, 0]),)),
        Case("the lesson's three weights", (WEIGHTS,), example=True),
        Case("three weights, one of them 0", (np.array([0.75, 0, 0.25]),)),
        Case("4 equal weights", (np.full(4, 0.25),)),
        Case("2 rows of 2", (np.array([[0.25, 0.75], [0.5, 0.5]]),)),
        Case("2 rows of 3, zeros in one", (np.array([[0.25, 0.25, 0.5], [0.5, 0.5, 0]]),)),
        Case("3 rows of 3", (_weights(3, 3, 3),)),
        Case("3 rows of 3, without zeros", (np.array([[4.0, 2, 2], [1, 6, 1], [1, 2, 5]]) / 8,)),
        Case("three axes", (_weights(4, 2, 2, 3),)),
        Case("4 rows of 6", (_weights(5, 4, 6),)),
        Case("32 equal weights", (np.full((1, 32), 1 / 32),)),
        Case("nearly one-hot", (np.array([[1 - 2.0**-20, 2.0**-20], [2.0**-10, 1 - 2.0**-10]]),)),
    ),
    mistakes=mistakes.ENTROPY,
)

JVP = Exercise(
    id="3.3",
    title="The Jacobian without the matrix",
    minutes=12,
    difficulty="medium",
    statement=(
        "`p` holds softmax weights, one row a query, and `dz` a small change of the scores behind "
        "them. Return the change of the weights to first order: (diag(p) − p pᵀ) dz, row by row. "
        "Do it without the T × T matrix, which at T = 4,096 would hold 16.8 million numbers a row; "
        "the checker looks at the result alone."
    ),
    signature="softmax_jvp(p, dz): p, dz (n, T) -> (n, T)",
    hints=(
        "Write entry i of (diag(p) − p pᵀ) dz for one row: p_i · dz_i minus a sum. What do all "
        "terms of that sum share?",
        "(p pᵀ) dz is p (pᵀ dz), and pᵀ dz is one number a row: the mean of dz, weighted by p.",
        "`(p * dz).sum(axis=-1, keepdims=True)` holds that number for each row, in the shape "
        "(n, 1).",
        "Both terms have the factor p: p · (dz − that mean). The result of each row sums to 0.",
    ),
    solution=softmax_jvp,
    cases=(
        Case("a single key", (np.array([[1.0]]), np.array([[2.0]]))),
        Case("two equal weights", (np.array([[0.5, 0.5]]), np.array([[1.0, 0]]))),
        Case("two unequal weights", (np.array([[0.25, 0.75]]), np.array([[1.0, 2]]))),
        Case("one-hot", (np.array([[0.0, 1, 0]]), np.array([[1.0, -2, 3]]))),
        Case("the same change for all", (np.array([[0.5, 0.125, 0.375]]), np.full((1, 3), 2.0))),
        Case("the lesson's three weights", (WEIGHTS[None], np.array([[1.0, 0, 0]])), example=True),
        Case("three weights, other numbers", (np.array([[0.125, 0.625, 0.25]]), _some(1, 1, 3))),
        Case("2 rows of 2", (np.array([[0.25, 0.75], [0.5, 0.5]]), _some(2, 2, 2))),
        Case("2 rows of 3", (np.array([[1.0, 2, 5], [3, 4, 1]]) / 8, _some(3, 2, 3))),
        Case("3 rows of 3", (np.array([[4.0, 2, 2], [1, 6, 1], [1, 2, 5]]) / 8, _some(4, 3, 3))),
        Case("3 rows of 2", (np.array([[0.5, 0.5], [0.125, 0.875], [1, 0]]), _some(5, 3, 2))),
        Case("4 rows of 6", (_weights(6, 4, 6), _some(7, 4, 6))),
        Case("large changes", (_weights(8, 3, 4), _some(9, 3, 4, step=500.0)), large=True),
    ),
    mistakes=mistakes.JVP,
)

MASKED = Exercise(
    id="3.4",
    title="Masked softmax",
    minutes=15,
    difficulty="hard",
    statement=(
        "A softmax over the keys that a query may attend to: `allowed` is True there, False where "
        "a key is masked. A masked key gets the weight 0, and the others share out 1 among "
        "themselves, however large the masked scores are. A row in which every key is masked gets "
        "zeros: no nan, and nothing that NumPy warns of."
    ),
    signature="masked_softmax(scores, allowed): (T_q, T_k), booleans (T_q, T_k) -> (T_q, T_k)",
    hints=(
        "Which score has the exponential 0? Put it where `allowed` is False, before anything else.",
        "After `np.where(allowed, scores, -np.inf)`, a row's maximum is that of its allowed keys. "
        "What is it where there are none, and what is −∞ − (−∞)?",
        "Where the maximum is −∞, subtract 0 instead: `np.where(largest == -np.inf, 0, largest)`. "
        "All exponentials of that row are then 0.",
        "Their sum is 0 too: divide by 1 there, `np.where(total == 0, 1, total)`.",
    ),
    solution=masked_softmax,
    cases=(
        Case("one key", _masked("0.5")),
        Case("one key, masked", _masked("(0.5)")),
        Case("2 keys, nothing masked", _masked("1 2")),
        Case("2 keys, one masked", _masked("1 (2)")),
        Case("the lesson's three scores, the last masked", _masked("2 1 (0.5)"), example=True),
        Case("three scores, other numbers", _masked("(1) -1 0.5")),
        Case("2 queries, 2 keys", _masked("1 0", "(2) -1")),
        Case("2 queries, 3 keys, nothing masked", _masked("1 -2 0.5", "0 3 -1")),
        Case("a row with every key masked", _masked("1 2 (0)", "(1) (-1) (2)")),
        Case("3 queries, 3 keys", _masked("1 (0.5) 2", "-1 0 (1)", "(0) (2) 1.5")),
        Case("3 queries, 2 keys", _masked("(1) (0.5)", "4 -1", "-2 (1)")),
        Case("4 queries, 6 keys", _some_masked(10, 4, 6)),
        Case("5 queries, 4 keys", _some_masked(20, 5, 4)),
        Case("a masked score far above the others", _masked("0 1 (2000)", "1 (3) 2"), large=True),
        Case("scores near 1000", _masked("1000 1001 (999)", "(1000) 998 1000"), large=True),
        Case("scores near −1000", _masked("-1000 -1002 (0)", "-999 -1000 -998"), large=True),
        Case("scores near −100,000", _masked("-100000 -99999 (-99998) -99998"), large=True),
        Case("one row near 1000, one near 0", _masked("0 1 (2)", "(999) 1000 1001"), large=True),
        Case("large, and a row masked", _masked("(5000) (9000)", "900 (-900)"), large=True),
    ),
    mistakes=mistakes.MASKED,
    doctor=Referral(_between_scores_and_values, {"layout": "TD"}),
)

EXERCISES = (SOFTMAX, ENTROPY, JVP, MASKED)
