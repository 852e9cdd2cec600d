"""How fast the lessons' model trains, against a plain loop in the manner of nanoGPT.

Both train the same sizes on the same batches, on one thread, taking turns; the lessons' loop with
all its statistics, the plain one with nothing but its loss. Reported is the ratio of times.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

from helpers.training import TrainConfig, Trainer, standard_library
from helpers.training.loop import _one_thread

CONFIG = TrainConfig()


class PlainBlock(nn.Module):
    """One projection for q, k and v, as nanoGPT has it; the MLP as wide as the lessons'."""

    def __init__(self, C, H):
        super().__init__()
        self.H = H
        self.norm_1, self.norm_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.out = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.mlp = nn.Sequential(nn.Linear(C, 2 * C, bias=False), nn.GELU(),
                                 nn.Linear(2 * C, C, bias=False))  # fmt: skip

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.norm_1(x)).split(C, dim=2)
        q, k, v = (y.view(B, T, self.H, C // self.H).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.norm_2(x))


class PlainModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        C = config.d_model
        self.byte, self.position = nn.Embedding(256, C), nn.Embedding(config.context, C)
        self.blocks = nn.Sequential(*(PlainBlock(C, config.heads) for _ in range(config.layers)))
        self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, 256, bias=False)

    def forward(self, tokens, targets):
        x = self.byte(tokens) + self.position(torch.arange(tokens.size(1)))
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.view(-1, 256), targets.view(-1))


class PlainLoop:
    def __init__(self, config, corpus):
        self.config, self.corpus, self.step = config, corpus, 0
        self.model = PlainModel(config)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.learning_rate,
                                           betas=(0.9, 0.95), fused=True)  # fmt: skip

    def run(self, until):
        while self.step < until:
            arrays = self.corpus.windows("train", self.config.batch, self.config.context, self.step)
            loss = self.model(*map(torch.from_numpy, arrays))
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
            self.optimizer.step()
            self.step += 1


def seconds(loop, steps):
    began = time.perf_counter()
    with _one_thread():
        loop.run(loop.step + steps)
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="in a round; statistics every 20")
    asked, _ = parser.parse_known_args()
    corpus = standard_library()
    loops = {"plain loop": PlainLoop(CONFIG, corpus),
             "ours, with statistics": Trainer(CONFIG.but(steps=10**6), corpus=corpus)}  # fmt: skip
    for loop in loops.values():
        seconds(loop, 20)
    times = {name: [] for name in loops}
    for _ in range(asked.rounds):
        for name, loop in loops.items():
            times[name].append(seconds(loop, asked.steps) / asked.steps)
    for name, values in times.items():
        print(f"{name:22} {1000 * statistics.median(values):6.1f} ms a step")
    ratios = [ours / plain for plain, ours in zip(*times.values())]
    print(f"ratio: median {statistics.median(ratios):.2f}, "
          f"from {min(ratios):.2f} to {max(ratios):.2f} (limit 1.2)")  # fmt: skip


if __name__ == "__main__":
    main()
