"""One attention as the monitor understands it, whichever torch function was asked for it."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass
class Attention:
    """softmax(q kᵀ · scale + masks)"""

    q: torch.Tensor  # (B, H, T_q, D)
    k: torch.Tensor  # (B, H, T_k, D)
    scale: float
    masks: list[torch.Tensor]  # broadcast to (B, H, T_q, T_k): True = may attend, or added floats
    diagonal: int | None = None  # causal: query i sees the keys up to i + diagonal
    counted: torch.Tensor | None = None  # (B, T_q) boolean: the queries that are no padding

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return *self.q.shape[:3], self.k.shape[2]


class CannotSee(Exception):
    """Why a call was not recorded, in words."""
