"""Lesson 1's exercises: statements, hints, solutions. (Its questions are in `questions01`, the
wrong functions that its checkers know in `mistakes01`.)"""

from __future__ import annotations

import random

import numpy as np

from helpers.practice import mistakes01 as mistakes
from helpers.practice.exercises import Case, Exercise
from helpers.practice.opinion import Referral
from helpers.practice.questions01 import PREDICTIONS, QUIZ

__all__ = ["EXERCISES", "PREDICTIONS", "QUIZ"]


# --- Solutions, shown to the reader as they stand here. ---


def raw_scores(q, k):
    return q @ k.T  # (T_q, d_k) @ (d_k, T_k) -> (T_q, T_k)


def softmax(scores):
    largest = scores.max(axis=-1, keepdims=True)  # (T_q, 1), one per row
    exps = np.exp(scores - largest)  # no exponent above 0, so no overflow
    return exps / exps.sum(axis=-1, keepdims=True)  # each row sums to 1


def attention(q, k, v):
    d_k = q.shape[-1]
    scaled = q @ k.T / np.sqrt(d_k)  # (T_q, T_k)
    weights = softmax(scaled)  # softmax is the function of exercise 1.2
    return weights @ v  # (T_q, T_k) @ (T_k, d_v) -> (T_q, d_v)


def causal_attention(q, k, v):
    T, d_k = q.shape
    scaled = q @ k.T / np.sqrt(d_k)  # (T, T)
    may_attend = np.tril(np.ones((T, T), dtype=bool))  # row i: keys 0 … i
    masked = np.where(may_attend, scaled, -np.inf)  # exp(-inf) = 0
    return softmax(masked) @ v  # softmax is the function of exercise 1.2


# --- Inputs. Halves and whole numbers: exact in float32 too. ---

Q = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]])  # the, cat, sat
K = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
V = np.array([[1.0, 0], [0, 1], [1, 1]])


def _some(seed: int, *shapes: tuple[int, int], step: float = 0.5) -> tuple[np.ndarray, ...]:
    """Arrays of multiples of `step` from −4·step to 4·step; the same on every machine."""
    draw = random.Random(seed)
    return tuple(
        np.array([[draw.randrange(-4, 5) * step for _ in range(cols)] for _ in range(rows)])
        for rows, cols in shapes
    )


def _qk(T_q, T_k, d_k, seed=0, step=0.5):
    return _some(seed + 1, (T_q, d_k), (T_k, d_k), step=step)


def _qkv(T_q, T_k, d_k, d_v, seed=0, step=0.5):
    q, k = _qk(T_q, T_k, d_k, seed, step)
    return q, k, *_some(seed + 2, (T_k, d_v))


def _rows(*rows):
    return (np.array(rows, dtype=float),)


# Scaled scores of −2546 (query 0 with key 0) and +2546 (query 0 with key 1, which it may not see).
_FAR_FUTURE = (
    np.array([[60.0, 0], [60, 0]]),
    np.array([[-60.0, 0], [60, 0]]),
    np.array([[1.0, 0, 2], [3, 1, 0]]),
)


# --- What the doctor examines. ---


def _for_all_lengths(causal):
    """The doctor also tries more queries than keys, or fewer, where exercise 1.4 promises as many.
    A query before the last key sees the same keys whatever comes after; one beyond it sees all, as
    the last query of a square does."""

    def attention(q, k, v):
        T = len(k)
        if len(q) == T:
            return causal(q, k, v)
        early, late = q[:T], q[T:]
        fill = np.zeros((T - len(early), q.shape[1]))
        rows = causal(np.concatenate([early, fill]), k, v)[: len(early)]
        last = [causal(np.concatenate([early[:-1], one[None]]), k, v)[-1:] for one in late]
        return np.concatenate([rows, *last])

    return attention


SCORES = Exercise(
    id="1.1",
    title="Raw scores",
    minutes=5,
    difficulty="easy",
    statement=(
        "Return the dot product of every query with every key. `q` holds one query a row, `k` one "
        "key a row; both are arrays of floats. Entry (i, j) of the result is query i · key j."
    ),
    signature="raw_scores(q, k): q (T_q, d_k), k (T_k, d_k) -> (T_q, T_k)",
    hints=(
        "How many numbers must come out for 2 queries and 3 keys? Each needs a whole query and a "
        "whole key.",
        "A matrix product takes rows of the left factor and columns of the right one. Your keys "
        "are rows.",
        "Which axes have to meet in the middle? (T_q, d_k) @ (d_k, T_k) gives (T_q, T_k).",
        "`k.T` has the shape (d_k, T_k). The whole function is one line with `@`.",
    ),
    solution=raw_scores,
    cases=(
        Case("1 query, 1 key", (np.array([[1.0, 0, 2]]), np.array([[2.0, 1, 1]]))),
        Case("1 query, 2 keys, d_k = 2", (np.array([[1.0, 2]]), np.array([[3.0, -1], [0, 4]]))),
        Case("2 queries, 3 keys, d_k = 2", _qk(2, 3, 2)),
        Case("as many keys as features", _qk(2, 3, 3)),
        Case("all sizes equal", _qk(3, 3, 3)),
        Case("the lesson's example", (Q, K), example=True),
        Case("the example's sizes, other numbers", _qk(3, 3, 4)),
        Case("more queries than keys, d_k = 9", _qk(5, 2, 9)),
        Case("4 queries, 6 keys, d_k = 5", _qk(4, 6, 5)),
        Case("large numbers", _qk(2, 4, 4, step=500.0), large=True),
    ),
    mistakes=mistakes.SCORES,
)

SOFTMAX = Exercise(
    id="1.2",
    title="Softmax",
    minutes=10,
    difficulty="medium",
    statement=(
        "Turn scores into weights: in each row, exp(score) over the sum of that row's "
        "exponentials. It must also work for scores as large as 1000 and as low as −1000."
    ),
    signature="softmax(scores): (T_q, T_k) -> (T_q, T_k), each row sums to 1",
    hints=(
        "Work on one row at a time: which axis of (T_q, T_k) counts the keys?",
        "A sum over `axis=-1` has the shape (T_q,). With `keepdims=True` it stays (T_q, 1), and "
        "dividing by it goes row by row.",
        "`np.exp(1000)` is inf. Adding the same number to every score of a row does not change its "
        "weights (you predicted that). Which number keeps every exponent at or below 0?",
        "Subtract each row's own maximum, take `np.exp`, divide by each row's sum: three lines.",
    ),
    solution=softmax,
    cases=(
        Case("1 query, 2 keys", _rows([1, 2])),
        Case("2 queries, 2 keys", _rows([2, 0], [-1, 1])),
        Case("a single key", _rows([0.5], [-2], [3])),
        Case("2 queries, 3 keys", _rows([1, -2, 0.5], [0, 3, -1])),
        Case("ties", _rows([1, 1, 1], [2, 0, 2])),
        Case("3 queries, 2 keys", _rows([0.5, 1], [4, -1], [-3, -2])),
        Case("the lesson's example", (Q @ K.T / 2,), example=True),
        Case("the example's sizes, other numbers", _some(5, (3, 3))),
        Case("negative scores only", _rows([-1, -4, -2, -3], [-5, -0.5, -1, -2])),
        Case("4 queries, 6 keys", _some(6, (4, 6))),
        Case("scores near 1000", _rows([1000, 1001, 999]), large=True),
        Case("scores near −1000", _rows([-1000, -1002, -1001], [-999, -999, -1000]), large=True),
        Case("one row near 1000, one near 0", _rows([0, 1, 2], [1000, 1001, 999]), large=True),
    ),
    mistakes=mistakes.SOFTMAX,
)

ATTENTION = Exercise(
    id="1.3",
    title="Attention",
    minutes=10,
    difficulty="medium",
    statement=(
        "Put the steps together: scores, divided by √d_k, softmax over the keys, and the weighted "
        "sum of the rows of `v`. You may call your `softmax` from exercise 1.2."
    ),
    signature="attention(q, k, v): q (T_q, d_k), k (T_k, d_k), v (T_k, d_v) -> (T_q, d_v)",
    hints=(
        "Four lines, one per step: scores, scaled, weights, output. Write the shape of each "
        "beside it.",
        "d_k is the length of one query, `q.shape[-1]`. Divide the scores by its square root "
        "before the softmax.",
        "`weights` has the shape (T_q, T_k) and `v` has (T_k, d_v): the keys meet in the middle.",
        "`weights @ v` is the last line. Nothing is divided after the softmax.",
    ),
    solution=attention,
    cases=(
        Case("1 query, 1 key", _qkv(1, 1, 2, 3)),
        Case("1 query, 2 keys, d_k = 2, d_v = 1", _qkv(1, 2, 2, 1, seed=3)),
        Case("2 queries, 3 keys, d_k = 2, d_v = 1", _qkv(2, 3, 2, 1)),
        Case("as many keys as features in v", _qkv(2, 3, 4, 3)),
        Case("as many keys as features in k", _qkv(2, 3, 3, 2)),
        Case("all sizes equal", _qkv(3, 3, 3, 3)),
        Case("the lesson's example", (Q, K, V), example=True),
        Case("the example's sizes, other numbers", _qkv(3, 3, 4, 2)),
        Case("more queries than keys, d_k = 9", _qkv(5, 2, 9, 3)),
        Case("4 queries, 6 keys, d_k = 5", _qkv(4, 6, 5, 2)),
        Case("d_k = 16", _qkv(3, 5, 16, 4)),
        Case("large scores", _qkv(2, 3, 4, 2, step=16.0), large=True),
    ),
    mistakes=mistakes.ATTENTION,
    doctor=Referral(lambda attention: attention, {"layout": "TD"}),
)

CAUSAL = Exercise(
    id="1.4",
    title="Causal attention",
    minutes=15,
    difficulty="hard",
    statement=(
        "Attention as in exercise 1.3, softmax(QKᵀ/√d_k)V, but no token looks ahead: query i may "
        "attend to keys 0 … i only. There are as many queries as keys."
    ),
    signature="causal_attention(q, k, v): q, k (T, d_k), v (T, d_v) -> (T, d_v)",
    hints=(
        "Which entries of the (T, T) table of scores may count? Draw it for T = 3: row 0 keeps "
        "one, row 2 keeps three.",
        "A forbidden key needs the weight 0, and the weights of the others must still sum to 1. "
        "Which score has the exponential 0?",
        "`np.tril(np.ones((T, T), dtype=bool))` is True on and below the diagonal.",
        "Before the softmax, `np.where(may_attend, scaled, -np.inf)` puts −∞ where a query may not "
        "look: exp(−∞) = 0.",
    ),
    solution=causal_attention,
    cases=(
        Case("a single token", _qkv(1, 1, 2, 3)),
        Case("2 tokens, d_k = 2, d_v = 1", _qkv(2, 2, 2, 1, seed=3)),
        Case("3 tokens, d_k = 2, d_v = 1", _qkv(3, 3, 2, 1)),
        Case("all sizes equal", _qkv(3, 3, 3, 3)),
        Case("the lesson's example", (Q, K, V), example=True),
        Case("the example's sizes, other numbers", _qkv(3, 3, 4, 2)),
        Case("4 tokens, d_k = 9", _qkv(4, 4, 9, 3)),
        Case("6 tokens, d_k = 5", _qkv(6, 6, 5, 2)),
        Case("5 tokens, d_k = 16", _qkv(5, 5, 16, 4)),
        Case("large scores", _qkv(4, 4, 4, 2, seed=2, step=16.0), large=True),
        Case("a future score far above all others", _FAR_FUTURE, large=True),
    ),
    mistakes=mistakes.CAUSAL,
    doctor=Referral(_for_all_lengths, {"layout": "TD", "causal": True}),
)

EXERCISES = (SCORES, SOFTMAX, ATTENTION, CAUSAL)
