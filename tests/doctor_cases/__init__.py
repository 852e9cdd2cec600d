"""Attention functions for the doctor: sick ones with their names, wrong ones without, sound ones.

They are written as people write them, and share no code with the doctor's own references.
"""

from doctor_cases.diseased_heads import DISEASED as _HEADS
from doctor_cases.diseased_kernels import DISEASED as _KERNELS
from doctor_cases.diseased_masks import DISEASED as _MASKS
from doctor_cases.diseased_scores import DISEASED as _SCORES
from doctor_cases.diseased_together import DISEASED as _TOGETHER
from doctor_cases.diseased_torch import DISEASED as _TORCH
from doctor_cases.rejected import REJECTED
from doctor_cases.sound import SOUND

DISEASED = [*_SCORES, *_HEADS, *_KERNELS, *_MASKS, *_TOGETHER, *_TORCH]

__all__ = ["DISEASED", "REJECTED", "SOUND"]
