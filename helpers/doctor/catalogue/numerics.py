"""Right on paper, wrong in floating point."""

from __future__ import annotations

import numpy as np

from helpers.doctor.catalogue.base import ATTENTION, Disease, github
from helpers.doctor.reference import attend


def _careless(s):
    e = np.exp(s)
    return e / e.sum(axis=-1, keepdims=True)


def _careless_with_epsilon(s):
    e = np.exp(s)
    return e / (e.sum(axis=-1, keepdims=True) + 1e-9)


def _from_maximum(axes):
    def soft(s):
        e = np.exp(s - s.max(axis=axes, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    return soft


def _clipped(s):
    return _from_maximum(-1)(np.where(s == -np.inf, s, np.clip(s, -50, 50)))


def _with(soft):
    return lambda case: attend(case, soft=soft)


def _with_zeros_for_nan(soft):
    return lambda case: np.nan_to_num(attend(case, soft=soft))


LARGE = (
    Disease(
        "overflows",
        "Large scores overflow: exp gives inf, or 0 for a whole row, and nan comes out.",
        "It is right on ordinary scores; rows of large positive and of large negative scores give "
        "nan.",
        "Subtract each row's maximum before exp; the weights stay the same.",
        github("pytorch/executorch", 18407, "pull"),
        (
            _with(_careless),
            _with(_careless_with_epsilon),
            _with_zeros_for_nan(_careless),
        ),
    ),
    Disease(
        "maximum-of-everything",
        "One maximum is subtracted for all rows: where a row lies far below it, all exponentials "
        "are 0, and 0/0 is nan.",
        "It is right on ordinary scores; rows of large positive scores are right too, the others "
        "give nan.",
        "Subtract each row's own maximum: axis=-1, keepdims=True.",
        github("NVIDIA/FasterTransformer", 43),
        (
            _with(_from_maximum((-2, -1))),
            _with(_from_maximum((-3, -2, -1))),
            _with(_from_maximum(None)),
            _with_zeros_for_nan(_from_maximum((-2, -1))),
            _with_zeros_for_nan(_from_maximum(None)),
        ),
    ),
    Disease(
        "scores-clipped",
        "Large scores are cut to a range, so that keys become equal which are not.",
        "It is right on ordinary scores, and agrees with scores clipped to a range on large ones.",
        "Subtract each row's maximum instead of clipping. If the model caps its scores on purpose "
        "(tanh), this is not plain attention.",
        ATTENTION,
        (_with(_clipped),),
    ),
    Disease(
        "wrong-on-large-scores",
        "Ordinary scores give the right result, large ones a wrong one.",
        "It is finite, and agrees with no known way to avoid an overflow.",
        "Subtract each row's maximum before exp, and keep scores in float32 or better.",
        github("deepseek-ai/FlashMLA", 68, "pull"),
    ),
)

PRECISION = (
    Disease(
        "low-precision",
        "The result has the dtype float32, but only the accuracy of half precision.",
        "All errors are small and of the size that rounding to float16 or bfloat16 makes.",
        "Compute in the dtype of the inputs, or better. If the function is meant for half "
        'precision, say so: dtype="bfloat16".',
        github("pytorch/pytorch", 161022),
    ),
    Disease(
        "low-precision-accumulation",
        "A sum is kept in half precision: small terms vanish beside what has been summed.",
        "The error is larger than rounding alone explains, and grows with the number of keys.",
        "Accumulate scores, row sums and output in float32, and round at the end.",
        github("pytorch/executorch", 20090, "pull"),
    ),
    Disease(
        "imprecise",
        "The result is nearly right, but not to the digits that its dtype holds.",
        "Errors are small everywhere; neither half precision nor a factor for each row explains "
        "them.",
        "Look for a rounded constant, an approximated exponential, or an epsilon.",
        github("Dao-AILab/flash-attention", 2067, "pull"),
    ),
    Disease(
        "not-finite-in-half-precision",
        "Right in float32, but nan or inf where the inputs have half precision.",
        "The scores are ordinary: an intermediate number exceeds what float16 holds (65504).",
        "Compute scores and softmax in float32; scale the queries before the product.",
        github("google/flax", 982),
    ),
)
