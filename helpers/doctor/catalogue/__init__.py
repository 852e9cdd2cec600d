"""The catalogue of diseases: what each is, how it shows, what cures it, where it was met."""

from __future__ import annotations

from helpers.doctor.catalogue.arguments import GQA, PAIRS, SCALE_ARGUMENT
from helpers.doctor.catalogue.base import Disease
from helpers.doctor.catalogue.blocks import BLOCKS
from helpers.doctor.catalogue.conduct import CONDUCT
from helpers.doctor.catalogue.gradients import GRADIENTS
from helpers.doctor.catalogue.heads import HEADS
from helpers.doctor.catalogue.inputs import INPUTS
from helpers.doctor.catalogue.masks import BIAS, CAUSAL, EMPTY, FILL, MASK
from helpers.doctor.catalogue.numerics import LARGE, PRECISION
from helpers.doctor.catalogue.scale import SCALE
from helpers.doctor.catalogue.softmax import SOFTMAX

__all__ = ["BESIDE", "BY_GROUP", "CATALOGUE", "GRADIENTS", "Disease"]

# Argument, by the group of cases about it -> what may be wrong with it beside another only.
BESIDE: dict[str, tuple[Disease, ...]] = {
    "scale": tuple(
        d for d in SCALE_ARGUMENT if d.id not in ("scale-argument-ignored", "scale-zero-ignored")
    ),
    "gqa": tuple(d for d in GQA if d.references),
    "bias": tuple(d for d in BIAS if d.id in ("mask-scaled-too", "float-mask-unscaled-scores")),
}
_PLAIN = (*SCALE, *SOFTMAX, *INPUTS, *HEADS, *BLOCKS, *PRECISION)

# Group of cases -> the diseases that show there.
BY_GROUP: dict[str, tuple[Disease, ...]] = {
    "plain": _PLAIN,
    "always-causal": (*CAUSAL, *(d for d in _PLAIN if d.id != "causal-unasked")),
    "large": LARGE,
    "causal": CAUSAL,
    "mask": MASK,
    "bias": BIAS,
    "fill": (*FILL, *LARGE),
    "empty": EMPTY,
    "scale": SCALE_ARGUMENT,
    "gqa": GQA,
    "pair": (*PAIRS, *(disease for diseases in BESIDE.values() for disease in diseases)),
}

# Identifier -> disease.
CATALOGUE: dict[str, Disease] = {
    disease.id: disease
    for disease in (
        *_PLAIN, *LARGE, *CAUSAL, *MASK, *BIAS, *FILL, *EMPTY, *SCALE_ARGUMENT, *GQA, *PAIRS,
        *GRADIENTS,
        *CONDUCT,
    )
}  # fmt: skip
