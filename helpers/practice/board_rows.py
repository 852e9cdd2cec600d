# ruff: noqa: E741  (l is the papers' letter)
"""Lesson 6's whiteboard tasks that go row by row: softmax and its backward, block by block, merge.

(The tasks about whole attention are in `board_attention`, the wrong functions that the checkers of
these four know in `mistakes06_rows`.)
"""

from __future__ import annotations

import math
import random

import numpy as np

from helpers.practice import mistakes06_rows as mistakes
from helpers.practice.exercises import Case, Exercise
from helpers.practice.opinion import Referral

__all__ = ["EXERCISES"]


# --- Solutions, shown to the reader as they stand here. ---


def softmax(x):
    largest = x.max(axis=-1, keepdims=True)  # (..., 1), one per row
    largest = np.where(largest == -np.inf, 0, largest)  # all masked: −∞ − (−∞) would be nan
    exps = np.exp(x - largest)  # no exponent above 0, so no overflow; exp(−∞) = 0
    total = exps.sum(axis=-1, keepdims=True)
    return exps / np.where(total == 0, 1, total)  # all masked: 0/1, not 0/0


def online_softmax(q, K, V, block):
    m, l, out = -np.inf, 0.0, np.zeros(V.shape[-1])
    for start in range(0, len(K), block):
        scores = K[start : start + block] @ q / np.sqrt(len(q))  # the last block may be shorter
        m_new = max(m, scores.max())
        rescale = np.exp(m - m_new)  # exp(−∞) = 0 at the first block
        powers = np.exp(scores - m_new)  # 1 at most
        l = l * rescale + powers.sum()
        out = out * rescale + powers @ V[start : start + block]
        m = m_new
    return out / l  # once, after the last block


def merge(out_a, lse_a, out_b, lse_b):
    largest = np.maximum(lse_a, lse_b)  # (T,), one per query
    a = np.exp(lse_a - largest)  # exp(−∞) = 0 for a part without keys
    b = np.exp(lse_b - largest)
    out = (a[:, None] * out_a + b[:, None] * out_b) / (a + b)[:, None]
    return np.column_stack([out, largest + np.log(a + b)])


def softmax_backward(weights, grad_weights):
    mean = (weights * grad_weights).sum(axis=-1, keepdims=True)  # (..., 1)
    return weights * (grad_weights - mean)  # (diag(p) − p pᵀ) g, row by row


# --- Inputs. Binary fractions, whole numbers and −∞: exact in float32 too. ---


def _some(seed: int, *shape: int, step: float = 0.5, near: float = 0.0) -> np.ndarray:
    """Multiples of `step` from near − 4·step to near + 4·step; the same on every machine."""
    draw = random.Random(seed)
    flat = [near + draw.randrange(-4, 5) * step for _ in range(math.prod(shape))]
    return np.array(flat).reshape(shape)


def _masked(seed: int, *shape: int, rows: tuple[int, ...] = (), step: float = 0.5) -> np.ndarray:
    """The same with about a third of the entries masked, and `rows` masked as a whole.

    Rows are counted through all axes; every other row keeps its first entry at least.
    """
    x = _some(seed, *shape, step=step).reshape(-1, shape[-1])
    hidden = _some(seed + 1, *x.shape) > 0.5
    hidden[:, 0] = False
    hidden[list(rows)] = True
    return np.where(hidden, -np.inf, x).reshape(shape)


def _rows(*rows) -> tuple[np.ndarray]:
    """The argument of exercise 6.1: one row of scores, or several. "-" is a masked score."""
    table = [[-np.inf if entry == "-" else float(entry) for entry in row.split()] for row in rows]
    return (np.array(table if len(table) > 1 else table[0]),)


def _keys(seed: int, T_k: int, d_k: int, d_v: int, block: int, step: float = 0.5):
    """Arguments of exercise 6.4."""
    q, K = _some(seed, d_k, step=step), _some(seed + 1, T_k, d_k, step=step)
    return q, K, _some(seed + 2, T_k, d_v), block


def _with_scores(seed: int, scores, d_v: int, block: int):
    """Arguments of exercise 6.4 that have these scores after the division by √4."""
    q = np.array([128.0, 0, 0, 0])
    K = np.column_stack([np.array(scores) / 64, _some(seed, len(scores), 3)])
    return q, K, _some(seed + 1, len(scores), d_v), block


def _parts(out_a, lse_a, out_b, lse_b):
    return tuple(np.array(part, dtype=float) for part in (out_a, lse_a, out_b, lse_b))


def _some_parts(seed: int, T: int, d_v: int, near=(0.0, 0.0), empty=((), ())):
    """Arguments of exercise 6.5. near, empty : for part a and part b."""
    parts = []
    for number in (0, 1):
        out = _some(seed + 10 * number, T, d_v)
        lse = _some(seed + 10 * number + 5, T, near=near[number])
        gone = list(empty[number])
        out[gone], lse[gone] = 0.0, -np.inf
        parts += [out, lse]
    return tuple(parts)


def _weights(seed: int, *shape: int) -> np.ndarray:
    """Rows of sixteenths that sum to 1, zeros among them."""
    draw = random.Random(seed)
    counts = np.zeros((math.prod(shape[:-1]), shape[-1]))
    for row in counts:
        for _ in range(16):
            row[draw.randrange(shape[-1])] += 1
    return counts.reshape(shape) / 16


def _backward(seed: int, *shape: int, step: float = 0.5):
    """Arguments of exercise 6.8."""
    return _weights(seed, *shape), _some(seed + 1, *shape, step=step)


# --- What the doctor examines. ---

_LIMIT = 10_000  # how large scores may be, as the exercises say


def _within_the_limit(scores):
    """Scores with the same softmax, each row within the exercise's limit: the doctor's large ones
    go beyond it. What lies 10,000 below its row's largest score has the weight 0 in any case."""
    seen = scores > -np.inf
    beyond = (seen & (np.abs(scores) > _LIMIT)).any(axis=-1, keepdims=True)
    shift = np.where(beyond, scores.max(axis=-1, keepdims=True), 0)
    return np.where(seen, np.maximum(scores - shift, -_LIMIT), -np.inf)


def _between_scores_and_values(softmax):
    """The softmax of exercise 6.1 made into attention."""

    def attention(q, k, v, mask=None):
        scores = q @ k.T / np.sqrt(q.shape[-1])
        hidden = False if mask is None else ~mask.astype(bool)
        return softmax(_within_the_limit(np.where(hidden, -np.inf, scores))) @ v

    return attention


def _query_by_query(online_softmax):
    """Attention of many queries, each by exercise 6.4, in blocks of 16 keys. Of a result with
    another shape than one query's the exercise can say more than the doctor."""

    def attention(q, k, v):
        rows = [np.asarray(online_softmax(query, k, v, 16)) for query in q]
        if any(row.shape != v.shape[1:] for row in rows):
            raise ValueError("an output of another shape than (d_v,)")
        return np.stack(rows)

    return attention


# --- The tasks. Lesson 1's sentence "the cat sat" is the example of 6.1 and 6.4. ---

Q = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]])
K = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
V = np.array([[1.0, 0], [0, 1], [1, 1]])

SOFTMAX = Exercise(
    id="6.1",
    title="Stable softmax",
    minutes=4,
    difficulty="easy",
    statement=(
        "Softmax over the last axis, however many axes come before it. Scores lie between "
        "−10,000 and 10,000; a masked one is −∞ and gets the weight 0. A row in which every score "
        "is masked gives zeros, not nan."
    ),
    signature="softmax(x): (..., T_k) -> (..., T_k); a row sums to 1, or to 0 if all is masked",
    hints=(
        "`np.exp(10_000)` is inf. Which number, subtracted from a whole row, leaves no exponent "
        "above 0 and changes no weight?",
        "`axis=-1` with `keepdims=True`, for the maximum and for the sum: then any number of axes "
        "may come before.",
        "A masked score needs nothing: exp(−∞) = 0. In a row with nothing else the maximum is −∞ "
        "as well, and −∞ − (−∞) is nan: subtract 0 there.",
        "Such a row's sum is then 0: `exps / np.where(total == 0, 1, total)`.",
    ),
    solution=softmax,
    cases=(
        Case("a single score", (np.array([3.0]),)),
        Case("a single score, masked", (np.array([-np.inf]),)),
        Case("two scores", _rows("1 2")),
        Case("three scores, one masked", _rows("1 - 0.5")),
        Case("three scores, all masked", _rows("- - -")),
        Case("2 rows of 2", _rows("1 0", "-1 1")),
        Case("2 rows of 3", _rows("1 -2 0.5", "0 3 -1")),
        Case("the scaled scores of lesson 1", (Q @ K.T / 2,), example=True),
        Case("the same size, other scores", (_some(5, 3, 3),)),
        Case("the same size, causal", _rows("0.5 - -", "1 -1 -", "2 0 1")),
        Case("a row with everything masked", _rows("1 2 -", "- - -")),
        Case("3 rows of 2", _rows("0.5 1", "4 -1", "- -2")),
        Case("4 rows of 6", (_some(6, 4, 6),)),
        Case("three axes", (_some(7, 2, 2, 3),)),
        Case("three axes of length 3", (_some(8, 3, 3, 3),)),
        Case("three axes, masks", (_masked(9, 2, 3, 4, rows=(4,)),)),
        Case("four axes, masks", (_masked(11, 2, 1, 2, 3, rows=(0,)),)),
        Case("near 10,000", _rows("9999 10000 9998"), large=True),
        Case("near −10,000", _rows("-9999 -10000", "-9997 -9998"), large=True),
        Case("near −10,000, masks", _rows("-9999 - -9998", "- -9997 -9997"), large=True),
        Case("one row near 10,000, one near 0", _rows("0 1 -", "9999 10000 0"), large=True),
        Case("−10,000 and 10,000", _rows("-10000 10000 10000", "- - -"), large=True),
        Case("three axes, large", (_masked(13, 2, 2, 3, rows=(1,), step=2500.0),), large=True),
    ),
    mistakes=mistakes.SOFTMAX,
    doctor=Referral(_between_scores_and_values, {"layout": "TD"}),
)

ONLINE = Exercise(
    id="6.4",
    title="Online softmax",
    minutes=9,
    difficulty="hard",
    statement=(
        "Attention of one query, over keys and values taken in blocks of `block` rows; the last "
        "block may be shorter. Go through the blocks once and carry a running maximum, a running "
        "sum and a running output along. Scores are divided by √d_k and then lie between −10,000 "
        "and 10,000; nothing is masked. The checker sees the result alone, so it is up to you that "
        "no more than `block` scores exist at a time."
    ),
    signature=(
        "online_softmax(q, K, V, block): (d_k,), (T_k, d_k), (T_k, d_v), a whole number -> (d_v,)"
    ),
    hints=(
        "Three things to carry: m, the largest score so far; l, the sum of exp(score − m); out, "
        "the same sum with each term times its row of V. What are they before the first block?",
        "Start from m = −∞, l = 0, out = zeros. A block's exponentials refer to "
        "m_new = max(m, scores.max()), the old sums still to m.",
        "exp(m − m_new) brings both old sums, l and out, to the new maximum. Then add the block: "
        "`powers.sum()` to l, `powers @ V[start : start + block]` to out.",
        "`for start in range(0, len(K), block)`: a slice that goes past the end is shorter by "
        "itself. Divide out by l once, after the loop.",
    ),
    solution=online_softmax,
    cases=(
        Case("one key", _keys(1, 1, 3, 2, 1)),
        Case("two keys, one block", _keys(4, 2, 2, 1, 2)),
        Case("two keys, blocks of one", _keys(4, 2, 2, 1, 1)),
        Case("a block longer than all keys", _keys(7, 3, 2, 3, 8)),
        Case("the token `sat` of lesson 1, blocks of 2", (Q[2], K, V, 2), example=True),
        Case("the same sizes, other numbers", _keys(10, 3, 4, 2, 2)),
        Case("two blocks of 2, d_k = 3", _keys(13, 4, 3, 2, 2)),
        Case("a last block of one key", _keys(16, 5, 3, 2, 2)),
        Case("three blocks, the last one shorter", _keys(19, 8, 5, 3, 3)),
        Case("blocks of one key, d_k = 9", _keys(22, 4, 9, 3, 1)),
        Case("three blocks of 4, d_k = 7", _keys(25, 12, 7, 5, 4)),
        Case("the maximum in the first block", _with_scores(1, [3, 1, 0, -1, 0.5], 2, 2)),
        Case("the maximum in the last block", _with_scores(3, [-1, 0, 1, 0.5, 3], 2, 2)),
        Case("scores far apart", _with_scores(17, [0, -6, -12, -9], 2, 2)),
        Case("all scores below 0", _with_scores(5, [-5, -4, -6, -4.5, -3], 3, 3)),
        Case("near 10,000", _with_scores(7, [9999, 10_000, 9998, 1e4, 9997], 2, 2), large=True),
        Case("near −10,000", _with_scores(9, [-9999, -1e4, -9998, -9997], 3, 3), large=True),
        Case("from 0 to 10,000", _with_scores(11, [0, 1, 9999, 10_000, 9998], 2, 2), large=True),
        Case("from 10,000 to 0", _with_scores(13, [9999, 10_000, 1, 0, 2], 2, 2), large=True),
        Case("up and down", _with_scores(15, [0, -1e4, 1e4, 5000, 1e4, 0, 9999], 2, 3), large=True),
    ),
    mistakes=mistakes.ONLINE,
    doctor=Referral(_query_by_query, {"layout": "TD"}),
)

MERGE = Exercise(
    id="6.5",
    title="Merge two partial results",
    minutes=6,
    difficulty="medium",
    statement=(
        "T queries have attended to some of the keys (part a) and to the others (part b). Each "
        "row of `out` is divided by its own sum already; `lse` is ln Σ exp(score) over that part's "
        "keys, between −10,000 and 10,000, or −∞ where a query saw none of them, and its row of "
        "`out` is then zeros. Return the output over all keys, with the lse over all keys as one "
        "more column. No nan may come out. Every query saw a key in at least one part."
    ),
    signature="merge(out_a, lse_a, out_b, lse_b): (T, d_v), (T,), (T, d_v), (T,) -> (T, d_v + 1)",
    hints=(
        "Before its division a row of `out` was a sum with Σ exp(score) = exp(lse) below it. How "
        "much does each part weigh, then?",
        "out = (exp(lse_a) out_a + exp(lse_b) out_b) / (exp(lse_a) + exp(lse_b)), row by row, and "
        "the new lse is the logarithm of the denominator. e^10,000 overflows: what may you "
        "subtract from both lse?",
        "`largest = np.maximum(lse_a, lse_b)`, one for each query; `a = np.exp(lse_a - largest)`, "
        "b likewise. A part without keys gets exp(−∞) = 0. The lse is `largest + np.log(a + b)`.",
        "a and b have the shape (T,), the outputs (T, d_v): `a[:, None]` scales rows. "
        "`np.column_stack([out, lse])` adds the column.",
    ),
    solution=merge,
    cases=(
        Case("one query, equal parts", _parts([[1, 2]], [0], [[3, 0]], [0])),
        Case("one query", _parts([[1, -1, 2]], [1], [[3, 2, 0]], [0])),
        Case("one query, part a empty", _parts([[0, 0]], [-np.inf], [[1, 2]], [0.5])),
        Case("one query, part b empty", _parts([[2, -1]], [1.5], [[0, 0]], [-np.inf])),
        Case("two queries, d_v = 1", _some_parts(2, 2, 1)),
        Case(
            "the two parts of lesson 5, and exchanged",
            _parts([[1, 0], [0, 1]], [2, 1], [[0, 1], [1, 0]], [1, 2]),
            example=True,
        ),
        Case("the same sizes, other numbers", _some_parts(3, 2, 2)),
        Case("three queries, d_v = 2", _some_parts(4, 3, 2)),
        Case("two queries, d_v = 3, below 0", _some_parts(5, 2, 3, near=(-3, -4))),
        Case("three queries, d_v = 3", _some_parts(6, 3, 3, near=(3, 2))),
        Case("three queries, an empty part each way", _some_parts(7, 3, 2, empty=((0,), (2,)))),
        Case("four queries, d_v = 5", _some_parts(8, 4, 5, empty=((1,), ()))),
        Case("five queries, causal", _some_parts(9, 5, 3, empty=((), (0, 1)))),
        Case("near 10,000", _some_parts(30, 2, 3, near=(9998, 9998)), large=True),
        Case("near −10,000", _some_parts(31, 2, 3, near=(-9998, -9998)), large=True),
        Case("10,000 and 0", _some_parts(32, 3, 2, near=(9998, 0)), large=True),
        Case("0 and 10,000", _some_parts(33, 3, 2, near=(0, 9998)), large=True),
        Case(
            "one query near 10,000, one near 0, one near −10,000",
            _parts(
                [[1, 3], [2, 0], [4, 1]],
                [9999, 1, -10_000],
                [[2, -1], [1, 1], [0, 3]],
                [10_000, 0, -9999],
            ),
            large=True,
        ),
        Case(
            "10,000, −10,000 and empty parts",
            _parts(
                [[4, 1], [0, 0], [5, 1]],
                [10_000, -np.inf, -10_000],
                [[0, 0], [2, 2], [1, 0]],
                [-np.inf, -10_000, 10_000],
            ),
            large=True,
        ),
    ),
    mistakes=mistakes.MERGE,
)

SOFTMAX_BACKWARD = Exercise(
    id="6.8",
    title="Backward of softmax",
    minutes=4,
    difficulty="medium",
    statement=(
        "`weights` is a softmax over the last axis, `grad_weights` the gradient of the loss with "
        "respect to it. Return the gradient with respect to the softmax's input. Any number of "
        "axes may come before the last. Do not build the T_k × T_k Jacobian (the checker sees the "
        "result alone). A row of zeros, where every key was masked, has the gradient 0."
    ),
    signature="softmax_backward(weights, grad_weights): (..., T_k), (..., T_k) -> (..., T_k)",
    hints=(
        "For one row the Jacobian is ∂p_i/∂s_j = p_i (δ_ij − p_j). Write the gradient of s_j as a "
        "sum over i of g_i times that.",
        "The term with δ gives p_j g_j. In the other term p_j stands before a sum, Σ p_i g_i, "
        "which is the same number for the whole row.",
        "`(weights * grad_weights).sum(axis=-1, keepdims=True)` is that number for every row.",
        "p · (g − Σ p g). Check: each row of the result sums to 0.",
    ),
    solution=softmax_backward,
    cases=(
        Case("a single key", (np.array([1.0]), np.array([2.0]))),
        Case("two equal weights", (np.array([0.5, 0.5]), np.array([1.0, 0]))),
        Case("two unequal weights", (np.array([0.25, 0.75]), np.array([1.0, 2]))),
        Case("one-hot", (np.array([0.0, 1, 0]), np.array([1.0, -2, 3]))),
        Case("every key masked", (np.zeros(3), np.array([1.0, -2, 0.5]))),
        Case("the same gradient for all", (np.array([0.5, 0.125, 0.375]), np.full(3, 2.0))),
        Case("one row", (np.array([0.5, 0.25, 0.25]), np.array([1.0, 0, 0])), example=True),
        Case("one row, other numbers", (np.array([0.125, 0.625, 0.25]), _some(1, 3))),
        Case("2 rows of 2", (np.array([[0.25, 0.75], [0.5, 0.5]]), _some(2, 2, 2))),
        Case("2 rows of 3", (np.array([[1.0, 2, 5], [3, 4, 1]]) / 8, _some(3, 2, 3))),
        Case(
            "3 rows of 3, causal",
            (np.array([[8.0, 0, 0], [3, 5, 0], [1, 2, 5]]) / 8, _some(4, 3, 3)),
        ),
        Case("3 rows of 2", (np.array([[0.5, 0.5], [0.125, 0.875], [1, 0]]), _some(5, 3, 2))),
        Case("4 rows of 6", _backward(6, 4, 6)),
        Case("three axes", _backward(8, 2, 2, 3)),
        Case("three axes of length 3", _backward(10, 3, 3, 3)),
        Case("four axes", _backward(12, 2, 1, 2, 4)),
        Case("large gradients", _backward(14, 2, 3, 4, step=500.0), large=True),
    ),
    mistakes=mistakes.SOFTMAX_BACKWARD,
)

EXERCISES = (SOFTMAX, ONLINE, MERGE, SOFTMAX_BACKWARD)
