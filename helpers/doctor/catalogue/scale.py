"""The scores are multiplied by the wrong number."""

from __future__ import annotations

import math

from helpers.doctor.catalogue.base import ATTENTION, Disease, github
from helpers.doctor.reference import attend, masked, repeated, softmax


def _d_k(case):
    return case.q.shape[-1]


def _by(scale_of):
    """The mistake that multiplies the scores by scale_of(case)."""
    return lambda case: attend(case, scale=scale_of(case))


def _floored(case):
    scores = case.q @ repeated(case.k, case.q.shape[1]).mT // (1 / case.scale)
    return softmax(masked(scores, case.allowed, case.bias)) @ repeated(case.v, case.q.shape[1])


SCALE = (
    Disease(
        "no-scale",
        "The scores are not divided by √d_k.",
        "It agrees with softmax(Q Kᵀ) V, without any factor, whatever d_k is.",
        "Multiply the scores by 1/√d_k before the softmax. If the model was trained without a "
        "scale, as T5, say so: scale=1.",
        github("mlc-ai/mlc-llm", 3426, "pull"),
        (_by(lambda c: 1.0),),
    ),
    Disease(
        "scale-unasked",
        "The scores are divided by √d_k, although this model wants another scale.",
        "It agrees with the factor 1/√d_k and not with the one that the caller named.",
        "Pass the model's own scale on: kernels add 1/√d_k unless they are told otherwise.",
        github("lucidrains/x-transformers", 190),
        (_by(lambda c: _d_k(c) ** -0.5),),
    ),
    Disease(
        "divided-by-d_k",
        "The scores are divided by d_k instead of √d_k.",
        "It agrees with the factor 1/d_k, which is also what 1/√d_k gives when applied twice.",
        "Take the root: d_k ** -0.5. If the model uses muP, which divides by d_k, say so: "
        'scale="1/d_k".',
        github("thegregyang/NTK4A", 3),
        (_by(lambda c: 1 / _d_k(c)),),
    ),
    Disease(
        "scale-twice",
        "The scale is applied twice, to the queries (or the keys) and to the scores again.",
        "It agrees with the square of the right factor, which for 1/√d_k is 1/d_k.",
        "Scale once. A fused kernel scales by itself: hand it unscaled queries, or scale=1.",
        github("huggingface/transformers", 38290, "pull"),
        (_by(lambda c: c.scale**2),),
    ),
    Disease(
        "scale-half-applied",
        "Only half of the scale is applied: the factor is the root of the right one.",
        "It agrees with the factor d_k^(−1/4): the scale is meant to be split between queries and "
        "keys, but only one side gets its share.",
        "Multiply both queries and keys by the root of the scale, or one of them by all of it.",
        ATTENTION,
        (_by(lambda c: math.copysign(abs(c.scale) ** 0.5, c.scale)),),
    ),
    Disease(
        "scale-by-d_model",
        "The scores are divided by √d_model, the width of all heads together, instead of by the "
        "root of one head's width.",
        "It agrees with 1/√(heads · d_k), so the factor changes with the number of heads.",
        "Take d_k from the last axis of the queries after they are split into heads.",
        github("karpathy/ng-video-lecture", 6, "pull"),
        (_by(lambda c: (c.q.shape[1] * _d_k(c)) ** -0.5),),
    ),
    Disease(
        "scale-by-heads",
        "The scores are divided by the root of the number of heads.",
        "It agrees with 1/√heads, whatever d_k is.",
        "Use the width of a head, `q.shape[-1]`, not the number of heads.",
        github("tenstorrent/tt-metal", 56789, "pull"),
        (_by(lambda c: c.q.shape[1] ** -0.5),),
    ),
    Disease(
        "scale-multiplied",
        "The scores are multiplied by √d_k instead of divided by it.",
        "It agrees with the factor √d_k.",
        "Divide by √d_k, or multiply by d_k ** -0.5.",
        github("esceptico/perceiver-io", 9),
        (_by(lambda c: _d_k(c) ** 0.5), _by(lambda c: 1 / c.scale)),
    ),
    Disease(
        "scale-by-d_v",
        "The scores are divided by √d_v, the root of the number of features of the values.",
        "It agrees with 1/√d_v where d_v differs from d_k.",
        "A score q · k sums d_k products: take the length from the queries or keys.",
        github("juho-lee/set_transformer", 18),
        (_by(lambda c: c.v.shape[-1] ** -0.5),),
    ),
    Disease(
        "scale-by-length",
        "The scores are divided by the root of a sequence length.",
        "It agrees with 1/√T_k or 1/√T_q, so the factor changes with the length.",
        "Use the number of features, the last axis: `q.shape[-1]`, not `q.shape[-2]`.",
        ATTENTION,
        (_by(lambda c: c.T_k**-0.5), _by(lambda c: c.T_q**-0.5)),
    ),
    Disease(
        "scale-truncated",
        "The root of d_k is cut to a whole number before it divides.",
        "It agrees with 1/⌊√d_k⌋; where d_k is a square nothing would show.",
        "Keep the root a float: math.sqrt(d_k), not int(...) or math.isqrt.",
        ATTENTION,
        (_by(lambda c: 1 / math.isqrt(_d_k(c))),),
    ),
    Disease(
        "scores-floored",
        "The scaled scores are rounded down to whole numbers.",
        "It agrees with ⌊q · k / √d_k⌋: `//` drops what is behind the decimal point.",
        "Divide with `/`.",
        ATTENTION,
        (_floored,),
    ),
    Disease(
        "scale-after-softmax",
        "The scale is applied after the softmax instead of before it, so weights sum to 1/√d_k.",
        "It agrees with softmax(Q Kᵀ) V times the scale.",
        "Scale the scores, then take the softmax.",
        github("FrancescoSaverioZuppichini/ViT", 2),
        (lambda c: attend(c, scale=1.0) * c.scale,),
    ),
    Disease(
        "scale-before-and-after",
        "The scores are scaled, and the result is scaled again.",
        "It is the right result times the scale.",
        "Scale the scores only.",
        ATTENTION,
        (lambda c: attend(c) * c.scale,),
    ),
    Disease(
        "scale-hard-coded",
        "The scores are multiplied by a fixed number, the same for every d_k.",
        "Weights shown by values of 1 give the same factor for two different d_k.",
        "Compute the scale from `q.shape[-1]`; 1/8 is right for d_k = 64 alone.",
        github("meta-pytorch/tritonbench", 344, "pull"),
    ),
    Disease(
        "wrong-scale",
        "The weights are a softmax of the right scores times a wrong factor.",
        "Weights shown by values of 1 are proportional to exp(factor · score); the factor is none "
        "of the known ones.",
        "Multiply the scores by 1/√d_k, and by nothing else.",
        ATTENTION,
    ),
)
