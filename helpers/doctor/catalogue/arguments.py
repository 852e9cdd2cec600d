"""The arguments scale= and enable_gqa=, and two arguments at once."""

from __future__ import annotations

import numpy as np

from helpers.doctor.catalogue.base import Disease, github
from helpers.doctor.reference import attend


def _default(case):
    return case.q.shape[-1] ** -0.5


def _divides(case):
    if case.scale == 0:
        raise ZeroDivisionError
    return attend(case, scale=1 / case.scale)


def _tiled(case):
    """Heads 0 1 0 1 in place of 0 0 1 1."""
    times = (1, case.q.shape[1] // case.k.shape[1], 1, 1)
    return attend(case, k=np.tile(case.k, times), v=np.tile(case.v, times))


SCALE_ARGUMENT = (
    Disease(
        "scale-argument-ignored",
        "The argument `scale` has no effect.",
        "It agrees with 1/√d_k, whatever scale is passed.",
        "Multiply the scores by the argument where it is given.",
        github("NVIDIA/Megatron-LM", 3698, "pull"),
        (lambda c: attend(c, scale=_default(c)),),
    ),
    Disease(
        "scale-argument-on-top",
        "The argument `scale` is applied in addition to 1/√d_k, not in its place.",
        "It agrees with scale/√d_k.",
        "Let the argument replace the default.",
        github("huggingface/transformers", 38290, "pull"),
        (lambda c: attend(c, scale=c.scale * _default(c)),),
    ),
    Disease(
        "scale-argument-divides",
        "The scores are divided by the argument `scale`, where it should multiply them.",
        "It agrees with 1/scale.",
        "Multiply: scale=1/8 means what dividing by 8 means.",
        github("esceptico/perceiver-io", 9),
        (_divides,),
    ),
    Disease(
        "scale-argument-twice",
        "The argument `scale` is applied twice.",
        "It agrees with scale².",
        "Apply it to the scores, or to queries or keys, once.",
        github("huggingface/transformers", 38290, "pull"),
        (lambda c: attend(c, scale=c.scale**2),),
    ),
    Disease(
        "scale-zero-ignored",
        "scale=0 is taken for no scale at all.",
        "It is right for other scales; for 0 it agrees with 1/√d_k: 0 is false in Python.",
        "Ask `if scale is None`, not `if not scale` or `scale or default`.",
        github("ml-explore/mlx", 4097),
        (lambda c: attend(c, scale=c.scale or _default(c)),),
    ),
)

GQA = (
    Disease(
        "gqa-heads-tiled",
        "Heads of keys are repeated in the wrong order, 0 1 0 1 instead of 0 0 1 1.",
        "It agrees with tiled heads: neighbouring heads of queries do not share a head of keys.",
        "Use repeat_interleave (np.repeat), not repeat (np.tile).",
        github("onnx/onnx", 7274, "pull"),
        (_tiled,),
    ),
    Disease(
        "gqa-first-head-for-all",
        "All heads of queries use the first head of keys.",
        "It agrees with keys and values of head 0; with one head of keys nothing shows.",
        "Head h of the queries uses head h // group of keys and values.",
        github("PSAL-POSTECH/ONNXim", 34, "pull"),
        (lambda c: attend(c, k=c.k[:, :1], v=c.v[:, :1]),),
    ),
    Disease(
        "gqa-fails",
        "The function takes enable_gqa, but fails with fewer heads of keys than of queries.",
        "It raises, or returns another shape, on all such inputs.",
        "Repeat each head of keys and values for its group: repeat_interleave(H // H_kv) along the "
        "axis of heads.",
        github("ModelTC/LightX2V", 1472, "pull"),
    ),
)


def _visible_to_either(case):
    """Causality or the mask, where both should hold."""
    return attend(case, allowed=case.causal | case.mask)


# Argument, by the group of cases about it -> what comes of a case without it.
DROPPED = {
    "causal": (lambda c: attend(c, allowed=_mask(c)),),
    "mask": (lambda c: attend(c, allowed=c.causal),),
    "bias": (lambda c: attend(c, bias=None),),
    "scale": (lambda c: attend(c, scale=_default(c) if c.asks_scale else c.scale),),
}


def _mask(case):
    return case.mask if case.mask is not None and case.mask.dtype == bool else None


PAIRS = (
    Disease(
        "argument-dropped",
        "An argument has no effect where another is given as well.",
        "Each alone is right; with both, it agrees with attention that never got one of them.",
        "Look for an `if`, or an early return, that forgets the other argument. What cannot be "
        "combined should be refused, as torch refuses a mask together with is_causal.",
        github("huggingface/candle", 3609, "pull"),
        tuple(reference for references in DROPPED.values() for reference in references),
    ),
    Disease(
        "wrong-together",
        "Two arguments that are right alone give a wrong result together.",
        "Neither of the two is dropped.",
        "Both hold at once: who may be seen is what causality and the mask both allow, and a scale "
        "concerns the scores, never what is added to them.",
        github("lucidrains/local-attention", 5),
        (_visible_to_either,),
    ),
)
