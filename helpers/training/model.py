"""A transformer that completes code, small enough to read in one sitting.

In the comments: B windows of a batch, T bytes of a window, C = d_model features, H heads of
D = d_head features each.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from helpers.training.config import INITS, SCALES, TrainConfig
from helpers.training.kernel import team_attention

BYTES = 256


class Transformer(nn.Module):
    """Bytes (B, T), whole numbers -> logits of each next byte (B, T, 256).

    attention : called as attention(q, k, v, is_causal=True, scale=...) with q, k, v (B, H, T, D);
    None takes what the settings name.
    """

    def __init__(self, config: TrainConfig, attention=None):
        super().__init__()
        C = config.d_model
        self.config = config
        self.byte = nn.Embedding(BYTES, C)
        self.position = nn.Embedding(config.context, C)
        self.blocks = nn.ModuleList(Block(config, attention) for _ in range(config.layers))
        self.norm = nn.LayerNorm(C)
        self.head = nn.Linear(C, BYTES, bias=False)
        self._start(config)

    def forward(self, tokens):
        x = self.byte(tokens) + self.position.weight[: tokens.size(1)]  # (B, T, C)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, tokens, targets, reduction="mean"):
        """Cross-entropy in nats a byte."""
        logits = self(tokens).flatten(0, 1)  # (B·T, 256)
        return F.cross_entropy(logits, targets.flatten(), reduction=reduction)

    @property
    def attentions(self) -> list[Attention]:
        return [block.attention for block in self.blocks]

    @torch.no_grad()
    def _start(self, config: TrainConfig):
        for linear in (m for m in self.modules() if isinstance(m, nn.Linear)):
            std = INITS[config.init](linear.in_features)
            if config.init == "linear":
                bound = 3**0.5 * std
                linear.weight.uniform_(-bound, bound)
            else:
                linear.weight.normal_(0, std)
        for embedding in (self.byte, self.position):
            embedding.weight.normal_(0, 0.02 if config.init == "0.02" else 1.0)
        self.head.weight.normal_(0, 0.02)  # so that every run starts near ln 256, undecided
        for attention in self.attentions:
            if config.fold_scale:
                attention.W_Q.weight.mul_(config.d_head**-0.5)
            if config.freeze_qk:
                attention.W_Q.requires_grad_(False)
                attention.W_K.requires_grad_(False)


class Block(nn.Module):
    def __init__(self, config: TrainConfig, attention=None):
        super().__init__()
        C = config.d_model
        self.norm_1, self.norm_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.attention = Attention(config, attention)
        # Twice as wide, where GPT takes four times: a third less to wait for.
        self.widen, self.narrow = nn.Linear(C, 2 * C, bias=False), nn.Linear(2 * C, C, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.narrow(F.gelu(self.widen(self.norm_2(x))))


class Attention(nn.Module):
    """Causal self-attention whose attention function is an option."""

    def __init__(self, config: TrainConfig, function=None):
        super().__init__()
        C = config.d_model
        self.heads, self.cap = config.heads, config.softcap
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(C, C, bias=False) for _ in range(4))
        self.scale = SCALES[config.scale](config.d_head)
        self.norms = None  # of q and of k, with a learned factor a feature, shared by the heads
        if config.qk_norm:
            self.norms = nn.ModuleList([nn.RMSNorm(config.d_head), nn.RMSNorm(config.d_head)])
        # A learned factor of the scores; the exponential keeps it positive.
        self.log_gain = nn.Parameter(torch.zeros(())) if config.scale == "learned" else None
        self.function = function or _named(config)
        self.watched = None  # (q, k) of the last pass, where somebody has set it to ()

    def forward(self, x):  # (B, T, C)
        split = partial(torch.unflatten, dim=-1, sizes=(self.heads, -1))
        q, k, v = (split(W(x)).transpose(1, 2) for W in (self.W_Q, self.W_K, self.W_V))
        if self.norms is not None:
            q, k = self.norms[0](q), self.norms[1](k)
        if self.log_gain is not None:
            q = q * self.log_gain.exp()
        if self.watched is not None:
            self.watched = q, k
        y = self.function(q, k, v, is_causal=True, scale=self.scale)  # (B, H, T, D)
        return self.W_O(y.transpose(1, 2).flatten(2))  # heads side by side: (B, T, H·D = C)

    def scores(self, q, k):
        """What softmax gets: (B, H, T, T), the future at -inf."""
        return _scores(q, k, self.scale, self.cap)


def _scores(q, k, scale, cap=None):
    scores = q @ k.transpose(-2, -1) * scale
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(future, -torch.inf)


def softcapped_attention(q, k, v, *, cap, is_causal=True, scale):
    """Causal attention over the scores c·tanh(s/c), as in Gemma 2 (arXiv:2408.00118)."""
    return _scores(q, k, scale, cap).softmax(dim=-1) @ v


def _team(q, k, v, is_causal, scale):
    return team_attention(q, k, v, is_causal)  # it knows no scale: TrainConfig insists on "none"


def _nothing(q, k, v, is_causal, scale):
    return 0 * (q + k + v)  # no byte learns of another; gradients are 0 rather than missing


def _named(config: TrainConfig):
    if config.attention == "nothing":
        return _nothing
    if config.attention == "team":
        return _team
    if config.softcap is not None:
        return partial(softcapped_attention, cap=config.softcap)
    return F.scaled_dot_product_attention
