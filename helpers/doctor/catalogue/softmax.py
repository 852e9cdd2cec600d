"""The scores are right, but what is made of them is not."""

from __future__ import annotations

import numpy as np

from helpers.doctor.catalogue.base import ATTENTION, FLASH_ATTENTION, Disease, github
from helpers.doctor.reference import attend, softmax


def _with(soft):
    return lambda case: attend(case, soft=soft)


def _normalised(x):
    return x / x.sum(axis=-1, keepdims=True)


def _exps(s):
    return np.exp(s - s.max(axis=-1, keepdims=True))


def _plus_one(s):
    e = np.exp(s)
    return e / (1 + e.sum(axis=-1, keepdims=True))


def _plus_one_after_maximum(s):
    e = _exps(s)
    return e / (1 + e.sum(axis=-1, keepdims=True))


def _hardest(s):
    return np.eye(s.shape[-1])[s.argmax(axis=-1)]


def _all_hardest(s):
    return _normalised((s == s.max(axis=-1, keepdims=True)).astype(float))


def _sigmoid(s):
    return 1 / (1 + np.exp(-s))


def _zero_where_masked(s):
    return np.where(s == -np.inf, 0, s)


SOFTMAX = (
    Disease(
        "softmax-over-queries",
        "The softmax runs over the queries: each column of the weights sums to 1, not each row.",
        "It agrees with a softmax over the axis of length T_q, the last but one.",
        "Let it run over the keys: axis=-1 (dim=-1).",
        github("labmlai/annotated_deep_learning_paper_implementations", 146),
        (_with(lambda s: softmax(s, axis=-2)),),
    ),
    Disease(
        "softmax-over-heads",
        "The softmax runs over the heads instead of the keys.",
        "It agrees with a softmax over the axis of heads; dim=1 means that axis in (B, H, T, D).",
        "Let it run over the keys: axis=-1 (dim=-1).",
        github("FudanNLP/fastNLP", 254),
        (_with(lambda s: softmax(s, axis=1)),),
    ),
    Disease(
        "softmax-over-batch",
        "The softmax runs over the sequences of the batch instead of the keys.",
        "It agrees with a softmax over the first axis: another batch changes the result.",
        "Let it run over the keys: axis=-1 (dim=-1).",
        github("PetrochukM/PyTorch-NLP", 2),
        (_with(lambda s: softmax(s, axis=0)),),
    ),
    Disease(
        "softmax-over-everything",
        "All weights together sum to 1, not those of each row.",
        "It agrees with a softmax over several axes at once.",
        "Sum over the keys alone: axis=-1, keepdims=True.",
        ATTENTION,
        (
            _with(lambda s: softmax(s, axis=(-2, -1))),
            _with(lambda s: softmax(s, axis=(-3, -2, -1))),
            _with(lambda s: softmax(s, axis=None)),
            _with(lambda s: _exps(s) / _exps(s).sum(axis=(-2, -1), keepdims=True)),
            _with(lambda s: _exps(s) / _exps(s).sum()),
        ),
    ),
    Disease(
        "exp2-without-log2e",
        "The exponential has base 2 instead of e.",
        "It agrees with 2 to the power of the scores, as if the scale were smaller by ln 2 = 0.69.",
        "Fold log₂e = 1.4427 into the scale where exp2 replaces exp.",
        github("meta-pytorch/segment-anything-fast", 71, "pull"),
        (_with(lambda s: softmax(s * np.log(2))),),
    ),
    Disease(
        "softmax-twice",
        "The softmax is applied to the weights a second time.",
        "It agrees with softmax(softmax(S)), whose rows are nearly uniform.",
        "Apply it once; look for a layer or a loss that does it by itself.",
        ATTENTION,
        (_with(lambda s: softmax(softmax(s))),),
    ),
    Disease(
        "not-normalised",
        "The exponentials are not divided by their sum.",
        "It agrees with exp(S) V, with or without each row's maximum subtracted.",
        "Divide each row by its sum; in an online softmax, after the last block.",
        FLASH_ATTENTION,
        (_with(np.exp), _with(_exps), _with(lambda s: np.exp(s - s.max()))),
    ),
    Disease(
        "softmax-plus-one",
        "Each row of weights is divided by its sum plus 1, so it sums to less than 1.",
        "It agrees with exp(S) / (1 + Σ exp(S)); where weights are small, little remains.",
        "Drop the 1, which an accumulator that starts at 1 adds too. If the model has an attention "
        "sink on purpose, this is not plain attention.",
        github("tracel-ai/burn", 691),
        (_with(_plus_one), _with(_plus_one_after_maximum)),
    ),
    Disease(
        "no-softmax",
        "The scores themselves are used as weights.",
        "It agrees with S V, or with S divided by its row sums.",
        "Take the softmax of the scores over the keys.",
        ATTENTION,
        (_with(_zero_where_masked), _with(lambda s: _normalised(_zero_where_masked(s)))),
    ),
    Disease(
        "sigmoid",
        "Each score is squashed by itself; the keys do not compete.",
        "It agrees with 1 / (1 + exp(−S)), normalised or not.",
        "Take the softmax of each row.",
        ATTENTION,
        (_with(_sigmoid), _with(lambda s: _normalised(_sigmoid(s)))),
    ),
    Disease(
        "winner-takes-all",
        "The key with the largest score gets the whole weight.",
        "It agrees with the argmax of each row.",
        "Take the softmax, which gives every key its share.",
        ATTENTION,
        (_with(_hardest), _with(_all_hardest)),
    ),
    Disease(
        "sign-reversed",
        "The smallest score gets the largest weight.",
        "It agrees with softmax(−S).",
        "Look at the sign in the exponent: exp(score − maximum).",
        ATTENTION,
        (lambda c: attend(c, scale=-c.scale),),
    ),
    Disease(
        "absolute-scores",
        "The sign of the scores is lost.",
        "It agrees with softmax(|S|).",
        "Leave negative scores negative: they get small weights.",
        ATTENTION,
        (_with(lambda s: softmax(np.where(s == -np.inf, s, np.abs(s)))),),
    ),
    Disease(
        "maximum-of-the-columns",
        "The maximum that is subtracted is each column's, not each row's, which shifts the scores "
        "of a row by different amounts.",
        "It agrees with exp(S − max over the queries), divided by row sums.",
        "Subtract max(axis=-1, keepdims=True).",
        ATTENTION,
        (_with(lambda s: _normalised(np.exp(s - s.max(axis=-2, keepdims=True)))),),
    ),
    Disease(
        "logarithm-of-the-weights",
        "The logarithms of the weights are used as weights.",
        "It agrees with log_softmax(S) V.",
        "Use softmax, not log_softmax.",
        ATTENTION,
        (_with(lambda s: np.where(s == -np.inf, s, np.log(softmax(s)))),),
    ),
    Disease(
        "weights-do-not-sum-to-1",
        "Each row of the result is the right one times a number: the weights of a row do not sum "
        "to 1.",
        "Row by row the result is proportional to the right one, by factors that no known mistake "
        "explains.",
        "Look at what divides each row: it must be the sum of that row's exponentials, no more "
        "(no epsilon) and no less.",
        github("huggingface/candle", 3727),
    ),
)
