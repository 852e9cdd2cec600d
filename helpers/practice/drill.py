"""Small attention problems to work out by hand, and the slips that people make in them.

Pure functions, no widgets. A problem asks for one row: its scores, scaled scores, weights and
output. Problems are chosen so that the usual slips give other numbers, at the precision asked for,
than the right way and than each other: then a wrong row names its slip.

Rounding on the way is fine: a row counts as right whether its exponentials and weights were rounded
or not. So each way of working, right or wrong, has several possible rows.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

STEPS = ("scores", "scaled", "weights", "output")
ENTRY = {"scores": "score", "scaled": "scaled", "weights": "weight", "output": "output"}

# (T, d_k, d_v). T = d_k allows K to be mistaken for Kᵀ, and T = d_v rows of V for its columns.
_SHAPES = (
    (3, 4, 2),
    (4, 4, 2),
    (2, 4, 2),
    (3, 9, 2),
    (3, 4, 3),
    (4, 4, 3),
    (2, 9, 2),
    (3, 9, 3),
    (3, 16, 2),
    (4, 16, 2),
)
_NUMBERS = {4: (-1, 1, 1, 2), 9: (-1, 1, 2, 3), 16: (-2, 1, 2, 3, 4)}  # what vectors are made of
_FEATURES = 4  # so many of the d_k entries are used at all: short sums


@dataclass(frozen=True)
class Problem:
    """One row of one attention, in whole numbers.

    q, k : (T, d_k). v : (T, d_v). row : the query to work out, counted from 0. places : decimals
    asked for in scaled scores, weights and output.
    """

    seed: int
    q: tuple[tuple[int, ...], ...]
    k: tuple[tuple[int, ...], ...]
    v: tuple[tuple[int, ...], ...]
    row: int
    places: int

    @property
    def T(self) -> int:
        return len(self.k)

    @property
    def d_k(self) -> int:
        return len(self.k[0])

    @property
    def d_v(self) -> int:
        return len(self.v[0])

    @property
    def root(self) -> int:
        return math.isqrt(self.d_k)

    def width(self, step: str) -> int:
        """How many numbers a step asks for."""
        return self.d_v if step == "output" else self.T

    def scores_of(self, row: int) -> np.ndarray:
        """(T,) what query `row` scores with each key."""
        return np.array(self.k) @ np.array(self.q[row])

    @cached_property
    def right(self) -> dict[str, np.ndarray]:
        """Each step's row, unrounded."""
        scores = self.scores_of(self.row)
        scaled = scores / self.root
        weights = _softmax(scaled)
        return {
            "scores": scores.astype(float),
            "scaled": scaled,
            "weights": weights,
            "output": weights @ np.array(self.v),
        }

    @cached_property
    def accepted(self) -> dict[str, np.ndarray]:
        """Each step's row, for every way of rounding before it: (ways, entries)."""
        weights = weights_from(self.right["scaled"], self.places)
        return {
            "scores": self.right["scores"][None],
            "scaled": self.right["scaled"][None],
            "weights": weights,
            "output": outputs_from(weights, self.v, self.places),
        }

    @cached_property
    def half_rounded(self) -> dict[str, np.ndarray]:
        """Rows that come out when only some of the numbers on the way are rounded.

        They are not accepted: an entry that is not right, but among these, was rounded too early.
        """
        weights = _half_rounded_weights(self.right["scaled"], self.places)
        rounded = [np.stack([row, np.round(row, self.places)]) for row in self.accepted["weights"]]
        mixed = np.concatenate([_choices(each) for each in rounded])
        return {"weights": weights, "output": mixed @ np.array(self.v)}

    @cached_property
    def slips(self) -> dict[str, tuple[Slip, ...]]:
        """Each step's slips that this problem can show."""
        return {step: tuple(_slips(self, step)) for step in STEPS}


@dataclass(frozen=True, eq=False)
class Slip:
    """A usual mistake: what to say about it, and the row it gives for each way of rounding."""

    id: str
    sentence: str
    rows: Sequence[np.ndarray]


def make(seed: int) -> Problem:
    """The problem with that number: always the same.

    Raises ValueError unless `seed` is a whole number from 0.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"a drill's seed is a whole number from 0, not {seed!r}.")
    draw = random.Random(seed)
    T, d_k, d_v = _SHAPES[seed % len(_SHAPES)]
    places = draw.choice((2, 2, 3))
    while True:  # a few dozen rounds
        columns = draw.sample(range(d_k), min(d_k, _FEATURES))
        problem = Problem(
            seed,
            tuple(_sparse(draw, d_k, columns) for _ in range(T)),
            tuple(_sparse(draw, d_k, columns) for _ in range(T)),
            tuple(tuple(draw.randrange(5) for _ in range(d_v)) for _ in range(T)),
            draw.randrange(T),
            places,
        )
        if _is_pleasant(problem) and _tells_slips_apart(problem):
            return problem


def _sparse(draw: random.Random, d_k: int, columns: list[int]) -> tuple[int, ...]:
    vector = [0] * d_k
    for column in draw.sample(columns, draw.choice((2, 2, 3))):
        vector[column] = draw.choice(_NUMBERS[d_k])
    return tuple(vector)


def _is_pleasant(problem: Problem) -> bool:
    weights = problem.right["weights"]
    return (
        weights.min() > 0.04
        and weights.max() < 0.9
        and len(set(problem.right["scores"])) > 1
        and np.ptp(np.array(problem.v), axis=0).min() > 0
        and not _is_on_an_edge(weights, problem.places)
        and not _is_on_an_edge(problem.right["output"], problem.places)
    )


def _is_on_an_edge(row: np.ndarray, places: int) -> bool:
    """Whether a number is so near to the middle that it takes many digits to round it."""
    return bool((np.abs(row * 10**places % 1 - 0.5) < 0.02).any())


def _tells_slips_apart(problem: Problem) -> bool:
    gap = 10**-problem.places + 1e-6  # numbers further apart never round to the same
    for step in STEPS:
        right = problem.accepted[step]
        slips = [np.array(slip.rows) for slip in _slips(problem, step)]
        rows = np.concatenate(slips)
        # Entries are accepted one by one, so one entry must be wrong whichever way one rounds.
        if not (_distances(rows, right).min(axis=1) > gap).any(axis=-1).all():
            return False
        # The right numbers in wrong places are a slip of their own.
        in_order = np.sort(rows, axis=1), np.sort(right, axis=1)
        if not (_distances(*in_order).max(axis=-1) > gap).all():
            return False
        # Slips are named by whole rows.
        label = np.repeat(np.arange(len(slips)), [len(each) for each in slips])
        too_near = _distances(rows, rows).max(axis=-1) <= gap
        if (too_near & (label[:, None] != label)).any():
            return False
    return True


def _distances(these: np.ndarray, those: np.ndarray) -> np.ndarray:
    """(rows of one, rows of the other, entries)"""
    return np.abs(these[:, None, :] - those[None, :, :])


# --- The right way, and what may be rounded in it ---


def _softmax(x: np.ndarray) -> np.ndarray:
    exps = np.exp(x - x.max())
    return exps / exps.sum()


def weights_from(scaled: np.ndarray, places: int) -> np.ndarray:
    """(ways, T) Weights from scaled scores, unrounded or after rounding scores and exponentials.

    Rounded to the decimals asked for, or to one more (exponentials: two more).
    """
    exponents = _roundings(scaled[None], (places, places + 1))
    with np.errstate(over="ignore"):
        exps = _roundings(np.exp(exponents), (places, places + 1, places + 2))
    sums = exps.sum(axis=1)
    usable = (sums > 0) & (sums < math.inf)
    return np.concatenate([_softmax(scaled)[None], exps[usable] / sums[usable, None]])


def outputs_from(weights: np.ndarray, v: Sequence, places: int) -> np.ndarray:
    """(ways, d_v) Outputs from each row of weights, unrounded or rounded before.

    Rounded to the decimals asked for, or to one more.
    """
    return _roundings(weights, (places, places + 1)) @ np.array(v)


def _roundings(rows: np.ndarray, digits: Iterable[int]) -> np.ndarray:
    """The rows as they are, and rounded to so many digits where that changes any."""
    rounded = [each for each in (np.round(rows, n) for n in digits) if (each != rows).any()]
    return np.concatenate([rows, *rounded])


def _choices(table: np.ndarray) -> np.ndarray:
    """(ways ** entries, entries) every row that takes each entry from some row of `table`."""
    return np.array(list(itertools.product(*(dict.fromkeys(column) for column in table.T))))


def _half_rounded_weights(scaled: np.ndarray, places: int) -> np.ndarray:
    exponents = np.stack([scaled, np.round(scaled, places)])
    exps = np.exp(exponents)
    exps = _choices(np.concatenate([exps, np.round(exps, places)]))
    sums = exps.sum(axis=1, keepdims=True)
    return np.concatenate([exps / sums, exps / np.round(sums, places)])


# --- The slips ---


def _slips(problem: Problem, step: str) -> Iterable[Slip]:
    return {
        "scores": _score_slips,
        "scaled": _scale_slips,
        "weights": _weight_slips,
        "output": _output_slips,
    }[step](problem)


def _score_slips(problem):
    q, k = np.array(problem.q), np.array(problem.k)
    mine = q[problem.row]
    scores = problem.right["scores"]
    yield Slip(
        "already-scaled",
        f"These are divided by √{problem.d_k} already; that is the next step.",
        (scores / problem.root,),
    )
    yield Slip("another-query", _another(problem), tuple(_other_scores(problem)))
    if problem.d_k == problem.T:
        yield Slip(
            "column-of-K",
            "The query was multiplied with the columns of K: each key is a row (a column of Kᵀ).",
            (mine @ k,),
        )
    if (mine * k < 0).any():
        yield Slip(
            "sign-lost",
            "A minus sign was lost: products of a negative and a positive number are negative.",
            (np.abs(k) @ np.abs(mine),),
        )


def _other_scores(problem) -> Iterable[np.ndarray]:
    return (problem.scores_of(i) for i in range(problem.T) if i != problem.row)


def _another(problem) -> str:
    return f"Another row of Q was used: take row {problem.row + 1}."


def _misscaled(problem) -> Iterable[tuple[str, str, str, np.ndarray]]:
    """(id, what was done to the scores, what to do, the scaled scores) for every wrong scale."""
    scores, root = problem.right["scores"], problem.root
    fix = f"divide by √{problem.d_k} = {root}"
    yield "no-scale", "not divided at all", fix, scores
    yield "divided-by-d_k", f"divided by d_k = {problem.d_k}", fix, scores / problem.d_k
    yield "multiplied-by-sqrt-d_k", "multiplied", fix, scores * root
    if root != 2:
        fix = f"d_k is {problem.d_k} here, so {fix}"
        yield "divided-by-2", "divided by 2, which is √4", fix, scores / 2


def _scale_slips(problem):
    for id, done, fix, row in _misscaled(problem):
        yield Slip(id, f"The scores were {done}: {fix}.", (row,))
    others = tuple(row / problem.root for row in _other_scores(problem))
    yield Slip("another-query", _another(problem), others)


def _column_normalised(problem) -> np.ndarray:
    exps = np.exp(np.array(problem.q) @ np.array(problem.k).T / problem.root)
    return exps[problem.row] / exps.sum(axis=0)


def _weight_slips(problem):
    scaled = problem.right["scaled"]
    for id, done, fix, row in _misscaled(problem):
        sentence = f"These weights come from scores that were {done}: {fix}."
        yield Slip(id, sentence, weights_from(row, problem.places))
    yield Slip("another-query", _another(problem), _other_weights(problem))
    yield Slip(
        "not-normalised",
        "These are the exponentials, not the weights yet: divide each by the sum of them all.",
        (np.exp(scaled), np.exp(np.round(scaled, problem.places)), np.exp(scaled - scaled.max())),
    )
    yield Slip(
        "column-normalised",
        "Each exponential was divided by the sum of its column: divide by the sum of its row.",
        (_column_normalised(problem),),
    )
    if abs(scaled.sum()) > 0.2:
        yield Slip(
            "exp-forgotten",
            "The scaled scores were divided by their sum: take e to their power first.",
            (scaled / scaled.sum(),),
        )


def _other_weights(problem) -> np.ndarray:
    others = (row / problem.root for row in _other_scores(problem))
    return np.concatenate([weights_from(row, problem.places) for row in others])


def _output_slips(problem):
    v, places = np.array(problem.v), problem.places
    scaled, weights = problem.right["scaled"], problem.right["weights"]
    for id, done, fix, row in _misscaled(problem):
        sentence = f"This output comes from scores that were {done}: {fix}."
        yield Slip(id, sentence, outputs_from(weights_from(row, places), v, places))
    yield Slip("another-query", _another(problem), outputs_from(_other_weights(problem), v, places))
    yield Slip(
        "not-normalised",
        "The exponentials were used as weights: divide each by the sum of them all first.",
        outputs_from(np.exp(scaled)[None], v, places),
    )
    yield Slip(
        "column-normalised",
        "The weights were normalised down their columns: a query's weights, a row, must sum to 1.",
        outputs_from(_column_normalised(problem)[None], v, places),
    )
    yield Slip(
        "scores-as-weights",
        "The scaled scores were used as weights: the softmax comes between.",
        (scaled @ v,),
    )
    yield Slip(
        "plain-mean",
        "This is the plain mean of the rows of V: weight each row by its weight.",
        (v.mean(axis=0),),
    )
    yield Slip("plain-sum", "The rows of V were added unweighted.", (v.sum(axis=0).astype(float),))
    if np.sort(weights)[-1] > np.sort(weights)[-2] + 1e-9:
        yield Slip(
            "best-key-only",
            "This is the value of the best key alone: the others have their share too.",
            (v[weights.argmax()].astype(float),),
        )
    if problem.d_v == problem.T:
        yield Slip(
            "row-of-V-for-column",
            "The weights were multiplied along the rows of V: each output goes down a column.",
            outputs_from(weights_from(scaled, places), v.T, places),
        )
