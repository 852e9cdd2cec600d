"""What the catalogue is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers.doctor.cases import Case


@dataclass(frozen=True)
class Disease:
    """A way for an attention function to be wrong.

    id : for programs. sentence : what is wrong, true of every function that gets the name. tells :
    what tells it from its neighbours. fix : what to do. link : where it was met in the wild, or
    what is violated. references : functions of a case that make the mistake, and nothing else.
    They return (B, H, T_q, d_v), for gradients (dq, dk, dv) or (dq, dk, dv, d mask), and may raise
    where the mistake does.
    """

    id: str
    sentence: str
    tells: str
    fix: str
    link: str
    references: tuple[Callable[[Case], np.ndarray], ...] = ()


ATTENTION = "https://arxiv.org/abs/1706.03762"  # Vaswani et al. 2017
FLASH_ATTENTION = "https://arxiv.org/abs/2205.14135"  # Dao et al. 2022
ONLINE_SOFTMAX = "https://arxiv.org/abs/1805.02867"  # Milakov, Gimelshein 2018
SDPA = (
    "https://docs.pytorch.org/docs/stable/generated/"
    "torch.nn.functional.scaled_dot_product_attention.html"
)


def github(repository: str, number: int, kind: str = "issues") -> str:
    return f"https://github.com/{repository}/{kind}/{number}"
