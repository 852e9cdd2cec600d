# ruff: noqa: E741  (l is the papers' letter)
"""Lesson 5's exercises: statements, hints, solutions. (Its questions are in `questions05`, the
wrong functions that a checker knows in `mistakes05`.)"""

from __future__ import annotations

import math
import random

import numpy as np

from helpers.practice import mistakes05 as mistakes
from helpers.practice.exercises import Case, Exercise
from helpers.practice.questions05 import PREDICTIONS, QUIZ

__all__ = ["EXERCISES", "PREDICTIONS", "QUIZ"]


# --- Solutions, shown to the reader as they stand here. ---


def online_update(m, l, o, scores, v):
    m_new = max(m, scores.max())
    rescale = np.exp(m - m_new)  # exp(−∞) = 0 at the first block
    powers = np.exp(scores - m_new)  # (n,), 1 at most
    l_new = l * rescale + powers.sum()
    o_new = o * rescale + powers @ v
    return [m_new, l_new, *o_new]


def merge(out_a, lse_a, out_b, lse_b):
    largest = max(lse_a, lse_b)
    a = np.exp(lse_a - largest)  # what each part weighs, over what the heavier one weighs;
    b = np.exp(lse_b - largest)  # exp(−∞) = 0 for a part without keys
    out = (a * out_a + b * out_b) / (a + b)
    return [*out, largest + np.log(a + b)]


def bytes_moved(T, d, block_q):
    plain = 4 * T * T + 4 * T * d  # S and P: written and read; Q, K, V, O: once
    passes = T // block_q  # how many times all keys and values go by
    tiled = 2 * T * d + passes * 2 * T * d  # Q and O once, K and V in each pass
    return 2 * plain, 2 * tiled  # 2 bytes a number


def causal_tiles(T, block_q, block_k):
    tiles = np.zeros((-(-T // block_q), -(-T // block_k)), dtype=int)  # rounded up
    for i, j in np.ndindex(tiles.shape):
        first_query, first_key = i * block_q, j * block_k
        last_query = min(first_query + block_q, T) - 1
        last_key = min(first_key + block_k, T) - 1
        if last_key <= first_query:  # even the first query sees even the last key
            tiles[i, j] = 2
        elif first_key <= last_query:  # the last query sees at least the first key
            tiles[i, j] = 1
    return tiles


# --- Inputs. Arrays hold halves, whole numbers and −∞: exact in float32 too. ---

NOTHING = (-np.inf, 0.0)  # m and l before the first block


def _update(m: float, l: float, o, scores, v):
    return m, l, np.array(o, dtype=float), np.array(scores, dtype=float), np.array(v, dtype=float)


def _some_update(seed: int, n: int, d_v: int, m: float, l: float = 1.5, near: float = 0.0):
    """A block of n scores from near − 2 to near + 2; what was summed so far is in quarters."""
    draw = random.Random(seed)

    def some(*shape):
        flat = [draw.randrange(-4, 5) / 2 for _ in range(math.prod(shape))]
        return np.array(flat).reshape(shape)

    o = some(d_v) / 2 if l else np.zeros(d_v)
    return m, l, o, near + some(n), some(n, d_v)


UPDATE = Exercise(
    id="5.1",
    title="One step of the online softmax",
    minutes=12,
    difficulty="medium",
    statement=(
        "The scores of one query arrive in blocks. `m` is the largest score so far, `l` the sum of "
        "exp(score − m) over all scores so far, `o` the same sum with each term times its row of "
        "V. "
        "Take in one more block, `scores` with a row of `v` for each, and return the new m, l and "
        "o, in this order and in one list: `[m, l, *o]`. Before the first block m = −∞, l = 0 and "
        "o is zeros; do not divide o by l, that is done once, after the last block. Scores may be "
        "as large as 1,000. A masked score is −∞, but never are all scores so far masked."
    ),
    signature=(
        "online_update(m, l, o, scores, v): two numbers, (d_v,), (n,), (n, d_v) -> 2 + d_v "
        "numbers [m, l, *o]"
    ),
    hints=(
        "The new m is the larger one of the old m and the block's largest score. To it all the "
        "exponentials of the block refer: exp(score − m_new), 1 at most.",
        "The old sums refer to the old m. By which factor do you make exp(score − m_old) into "
        "exp(score − m_new)? All terms share it.",
        "Both sums take the factor exp(m_old − m_new), l and o alike. At the first block it is "
        "exp(−∞) = 0, without an `if`.",
        "With `powers = np.exp(scores - m_new)`: l times the factor plus `powers.sum()`, o times "
        "the factor plus `powers @ v`.",
    ),
    solution=online_update,
    cases=(
        Case("the first block, two scores", _update(*NOTHING, [0, 0], [1, 2], [[1, 0], [0, 1]])),
        Case("two scores, a new maximum", _update(-1, 1.25, [1, 0.5], [1, 0.5], [[1, 2], [3, -1]])),
        Case(
            "the lesson's block, a new maximum",
            _update(1, 1.5, [1, 0.5], [2, 0], [[0, 1], [1, 1]]),
            example=True,
        ),
        Case("two scores, the maximum stays", _update(2, 1.25, [1, -1], [1, 0], [[2, 1], [0, 3]])),
        Case("a score as large as the maximum", _update(1, 2, [1, 0], [1, -1], [[0, 2], [1, 1]])),
        Case("a masked score", _update(1, 1.5, [1, 2], [-np.inf, 1.5], [[9, 9], [1, -1]])),
        Case("every score of the block masked", _update(1, 1.5, [1, 2], [-np.inf] * 2, np.eye(2))),
        Case("the first block, one score", _update(*NOTHING, [0] * 4, [1], [[2, 0, -1, 3]])),
        Case("one score, the maximum stays", _update(2, 1, [1, 2, 0, 1], [1], [[3, 1, 1, -2]])),
        Case("one score, a new maximum", _update(1, 1.5, [2, 0, 1, 4], [2], [[-1, 1, 2, 0.5]])),
        Case("the maximum was 0", _some_update(1, 3, 2, 0.0)),
        Case("all scores below 0", _some_update(2, 3, 3, -5.0, near=-4.0)),
        Case("three scores, d_v = 4", _some_update(3, 3, 4, 0.5, 2.25)),
        Case("five scores, d_v = 3", _some_update(4, 5, 3, -0.5, 3.75)),
        Case("six scores, the maximum stays", _some_update(5, 6, 2, 4.0, 1.75)),
        Case("the first block, four scores", _some_update(6, 4, 3, *NOTHING)),
        Case("scores near 1000", _some_update(7, 3, 2, 999.0, near=1000.0), large=True),
        Case("scores near −1000", _some_update(8, 3, 2, -1001.0, near=-1000.0), large=True),
        Case("the first block near 1000", _some_update(9, 3, 2, *NOTHING, near=1e3), large=True),
        Case("from 0 to 1000", _some_update(10, 3, 2, 1.0, near=1000.0), large=True),
        Case("from 1000 to 0", _some_update(11, 3, 2, 1000.0), large=True),
    ),
    mistakes=mistakes.UPDATE,
)


def _parts(out_a, lse_a: float, out_b, lse_b: float):
    return np.array(out_a, dtype=float), lse_a, np.array(out_b, dtype=float), lse_b


MERGE = Exercise(
    id="5.2",
    title="Merge two parts",
    minutes=10,
    difficulty="medium",
    statement=(
        "Somebody has attended to the first keys for you and somebody else to the others: two "
        "outputs `out`, each already divided by its own sum, and two numbers `lse`, ln Σ "
        "exp(score) "
        "over the keys of that part. Return the output and the lse over all keys, in one list: "
        "`[*out, lse]`. An lse may be as large as 1,000 and as low as −1,000; a part in which "
        "every key was masked has lse = −∞ and zeros as its output. No nan may come out. At most "
        "one of the two parts is empty."
    ),
    signature=(
        "merge(out_a, lse_a, out_b, lse_b): (d_v,), a number, (d_v,), a number -> d_v + 1 numbers "
        "[*out, lse]"
    ),
    hints=(
        "Before the division, each output was a sum with Σ exp(score) = exp(lse) below it. By what "
        "must you multiply a part's output to get that sum back?",
        "out = (exp(lse_a) out_a + exp(lse_b) out_b) / (exp(lse_a) + exp(lse_b)), and the new lse "
        "is "
        "the logarithm of that denominator. What does e^1000 give?",
        "Only the difference of the two counts: subtract the larger lse from both before exp, as "
        "softmax does. Add it back after the logarithm.",
        "`largest = max(lse_a, lse_b)`, `a = np.exp(lse_a - largest)`, b likewise, the lse is "
        "`largest + np.log(a + b)`. An empty part gets the weight exp(−∞) = 0.",
    ),
    solution=merge,
    cases=(
        Case("two equal parts", _parts([1, 2], 0.0, [3, 0], 0.0)),
        Case("the first part heavier", _parts([1, -1], 1.0, [3, 2], 0.0)),
        Case("the first part empty", _parts([0, 0], -np.inf, [1, 2], 0.5)),
        Case("the second part empty", _parts([2, -1], 1.5, [0, 0], -np.inf)),
        Case("the lesson's two parts", _parts([1, 0], 2.0, [0, 1], 1.0), example=True),
        Case("equal lse", _parts([2, 1], 1.0, [-1, 3], 1.0)),
        Case("the second part heavier", _parts([1, 2], -1.0, [3, -1], 0.5)),
        Case("both below 0", _parts([1, -2, 4], -2.5, [0, 1, 2], -1.0)),
        Case("both above 0", _parts([1, 0.5, -1], 3.5, [2, -2, 0], 2.25)),
        Case("one above, one below 0", _parts([0.5, 2, 1, -3], 0.75, [1, 1, -1, 2], -0.5)),
        Case("near 1000", _parts([1, 3], 1000.0, [2, -1], 1001.0), large=True),
        Case("near −1000", _parts([1, 3], -1000.0, [2, -1], -1001.5), large=True),
        Case("1000 and 0", _parts([1, 3], 1000.0, [2, -1], 0.5), large=True),
        Case("0 and 1000", _parts([1, 3], 0.5, [2, -1], 1000.0), large=True),
        Case("1000 and −1000", _parts([4, 1], 1000.0, [2, 2], -1000.0), large=True),
        Case("1000, and an empty part", _parts([4, 1], 1000.0, [0, 0], -np.inf), large=True),
        Case("an empty part, and −1000", _parts([0, 0], -np.inf, [5, 1], -1000.0), large=True),
    ),
    mistakes=mistakes.MERGE,
)

BYTES = Exercise(
    id="5.3",
    title="The bytes that attention moves",
    minutes=10,
    difficulty="medium",
    statement=(
        "One head, T queries and T keys, rows of d numbers in Q, K, V and the output O, 2 bytes a "
        "number, no mask. Count the bytes that go between main memory and the processor, both "
        "ways. Plain attention makes three passes: it reads Q and K and writes the scores S; reads "
        "S and writes the weights P; reads P and V and writes O. Tiled attention keeps a block of "
        "`block_q` queries in fast memory, with its share of O, while all keys and values are read "
        "past it; then comes the next block. T is a multiple of block_q; the lse is left out."
    ),
    signature="bytes_moved(T, d, block_q): three whole numbers -> (plain, tiled), two numbers",
    hints=(
        "Q, K, V and O have T · d numbers each, S and P have T · T. Make a list of the reads and "
        "writes of the three passes, in numbers.",
        "Plain: S and P are each written once and read once, Q, K, V and O move once. Together "
        "4 T² + 4 T d numbers.",
        "Tiled: each row of Q is read once and each row of O written once. How many blocks of "
        "queries are there, and what is read for each?",
        "T / block_q times all of K and V: 2 T d + (T / block_q) · 2 T d numbers. Both times 2 "
        "bytes.",
    ),
    solution=bytes_moved,
    cases=(
        Case("one block", (4, 2, 4)),
        Case("two blocks", (6, 5, 3)),
        Case("blocks of one query", (5, 3, 1)),
        Case("three blocks", (12, 8, 4)),
        Case("more features than tokens", (16, 64, 8)),
        Case("T = 1,024", (1024, 64, 128)),
        Case("T = 8,192, blocks of 128", (8192, 128, 128), example=True),
        Case("the same in blocks of 64", (8192, 128, 64)),
        Case("T = 4,096, d = 80", (4096, 80, 256)),
        Case("T = 131,072", (131_072, 128, 128), large=True),
    ),
    mistakes=mistakes.BYTES,
)

TILES = Exercise(
    id="5.4",
    title="Which tiles must be computed?",
    minutes=10,
    difficulty="hard",
    statement=(
        "T queries are cut into blocks of `block_q` and T keys into blocks of `block_k`, the last "
        "ones shorter where T is no multiple. Query i sees the keys 0 … i. Return an array with a "
        "row for each block of queries and a column for each block of keys: 0 where no query of "
        "the tile sees any of its keys (skip it), 2 where every query of it sees every key of it "
        "(no mask needed), 1 where it is some of them (mask needed). Only the queries and keys "
        "that there are count."
    ),
    signature=(
        "causal_tiles(T, block_q, block_k): three whole numbers -> "
        "(⌈T / block_q⌉, ⌈T / block_k⌉) of 0, 1 and 2"
    ),
    hints=(
        "Four numbers decide about a tile: its first and last query, its first and last key. Of "
        "its queries, which one sees most, and which one least?",
        "The last query sees most: if it does not see the first key, the tile is 0. The first "
        "query sees least: if it sees the last key, the tile is 2.",
        "Block i of the queries begins at i · block_q and ends with "
        "min((i + 1) · block_q, T) − 1; the keys likewise.",
        "0 if first_key > last_query, 2 if last_key <= first_query, else 1. There are "
        "`math.ceil(T / block_q)` rows.",
    ),
    solution=causal_tiles,
    cases=(
        Case("blocks of two", (4, 2, 2)),
        Case("blocks of queries twice as long", (8, 4, 2)),
        Case("the lesson's grid", (8, 2, 4), example=True),
        Case("blocks of 3 queries and 2 keys", (6, 3, 2)),
        Case("blocks of 2 queries and 3 keys", (6, 2, 3)),
        Case("a last block of one query", (5, 2, 3)),
        Case("a last block of keys with one key", (7, 2, 3)),
        Case("both last blocks shorter", (10, 4, 3)),
        Case("one tile", (3, 4, 4)),
        Case("blocks of one", (3, 1, 1)),
        Case("one token", (1, 1, 1)),
        Case("one block of queries", (5, 8, 2)),
        Case("one block of keys", (5, 2, 8)),
        Case("blocks of 5 and 3", (17, 5, 3)),
        Case("blocks of 3 and 5", (17, 3, 5)),
        Case("T = 1,000, blocks of 128 and 64", (1000, 128, 64), large=True),
    ),
    mistakes=mistakes.TILES,
)

EXERCISES = (UPDATE, MERGE, BYTES, TILES)
