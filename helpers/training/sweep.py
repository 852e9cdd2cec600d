"""The recorded runs of lesson 4: when a missing scale bites, what helps, and the controls.

    python -m helpers.training          (or: make sweep)

It runs what the record lacks, two runs at a time, and adds a line for each as it ends: stop it
whenever you like, the next call goes on. Two to three core-hours from nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from helpers.training.config import TrainConfig

RECORD = Path(__file__).with_name("sweep.jsonl")
D_MODEL = 256
D_HEADS = (16, 32, 64, 128)
RATES = (3e-4, 1e-3)
SEEDS = (0, 1, 2)
STORY = TrainConfig()

# The corners of the map that the lesson speaks about: (d_head, init, learning rate).
CORNERS = (
    (128, "unit", 1e-3), (16, "unit", 3e-4), (128, "linear", 1e-3),
    (128, "0.02", 1e-3), (128, "0.02", 3e-4), (16, "0.02", 3e-4),
)  # fmt: skip

# What else can be done about the scores, each on the story's model.
ALTERNATIVES = {
    "learned scale": {"scale": "learned"},
    "QK-norm": {"qk_norm": True},
    "soft cap 50, no scale": {"scale": "none", "softcap": 50.0},
    "soft cap 10, no scale": {"scale": "none", "softcap": 10.0},
    "folded into W_Q": {"scale": "none", "fold_scale": True},
    "folded, W_Q slower too": {"scale": "none", "fold_scale": True, "rate_of_W_Q": 128**-0.5},
}
CONTROLS = {
    "W_Q, W_K frozen, no scale": {"scale": "none", "freeze_qk": True},
    "W_Q, W_K frozen": {"freeze_qk": True},
    "no attention at all": {"attention": "nothing"},
    "scale put in half-way": {"scale": "none", "rescale_at": 300},
    "scale put in half-way, W_Q and W_K anew": {
        "scale": "none",
        "rescale_at": 300,
        "redraw_qk": True,
    },
}


def on_map(d_head: int, init: str, learning_rate: float, scale: str, seed: int = 0) -> TrainConfig:
    return TrainConfig(d_head=d_head, heads=D_MODEL // d_head, init=init,
                       learning_rate=learning_rate, scale=scale, seed=seed)  # fmt: skip


def plan() -> list[TrainConfig]:
    """Every run, the ones that the lesson leans on first; each once."""
    return list(dict.fromkeys(_wanted()))


def _wanted() -> Iterator[TrainConfig]:
    for seed in SEEDS:
        for scale in ("1/√d", "none", "1/d"):
            yield on_map(*CORNERS[0], scale, seed)
        for changes in (*CONTROLS.values(), *ALTERNATIVES.values()):
            yield STORY.but(**changes, seed=seed)
    for corner in CORNERS:
        for seed in SEEDS:
            for scale in ("1/√d", "none"):
                yield on_map(*corner, scale, seed)
    for d_head in D_HEADS:
        for init in ("unit", "linear", "0.02"):
            for learning_rate in RATES:
                for scale in ("1/√d", "none", "1/d"):
                    yield on_map(d_head, init, learning_rate, scale)


def summary(log) -> dict:
    """The line of the record for one run: its settings, and what was measured, rounded."""
    half = log.config.steps // 2

    def matrices(values, steps):
        return _rounded(np.median(values[steps], axis=0))

    return {
        "config": log.config.as_dict(),
        "final_loss": _rounded(log.final_loss),
        "final_error": _rounded(log.final_error),
        "measured": log.measured.tolist(),
        "val_loss": _rounded(log.val_loss),
        "entropy": _rounded(log.entropy.mean(axis=(1, 2))),
        "largest_weight": _rounded(log.largest_weight.mean(axis=(1, 2))),
        "score_std": _rounded(log.score_std.mean(axis=(1, 2))),
        "highest_entropy_of_a_head": _rounded(log.entropy.max(axis=(1, 2))),
        "agreement_first_half": _rounded(log.agreement[1:half].mean(axis=0)),
        "agreement_second_half": _rounded(log.agreement[half:].mean(axis=0)),
        "gradient_norm_first_half": matrices(log.gradient_norm, slice(0, half)),
        "gradient_norm_second_half": matrices(log.gradient_norm, slice(half, None)),
        "about": log.about | {"date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                              "processor": platform.machine(), "cores": os.cpu_count()},
    }  # fmt: skip


def _rounded(values):
    """Four significant digits; None for nan, which JSON has not."""
    if isinstance(values, float | np.floating):
        return float(f"{values:.4g}") if np.isfinite(values) else None
    return [_rounded(value) for value in values]


def read(path: Path = RECORD) -> list[dict]:
    """The lines of the record. Raises FileNotFoundError, or ValueError for a line that is none."""
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            lines.append(json.loads(line))
        except ValueError as error:
            raise ValueError(f"line {number} of {path.name} is no JSON ({error}); delete that "
                             "line and run make sweep again.") from error  # fmt: skip
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make sweep", description=__doc__.split("\n")[0])
    parser.add_argument("--record", type=Path, default=RECORD, help="file to add to")
    parser.add_argument("--at-once", type=int, default=2, help="runs at a time, one thread each")
    parser.add_argument("--first", type=int, help="only the first so many of the plan")
    parser.add_argument("--fresh", action="store_true", help="forget the record first")
    asked = parser.parse_args(arguments)
    if asked.fresh:
        asked.record.unlink(missing_ok=True)
    done = [TrainConfig.from_dict(line["config"]) for line in read(asked.record)] \
        if asked.record.exists() else []  # fmt: skip
    todo = [config for config in plan()[: asked.first] if config not in done]
    print(f"{len(done)} runs are recorded, {len(todo)} to do.", flush=True)
    _run(todo, asked.record, asked.at_once)
    return 0


def _run(todo: list[TrainConfig], record: Path, at_once: int) -> None:
    from helpers.training.together import train_together

    began = time.monotonic()
    ended = 0

    def note(number, log):
        nonlocal ended
        ended += 1
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(summary(log), ensure_ascii=False) + "\n")
        left = (time.monotonic() - began) / ended * (len(todo) - ended) / 60
        print(f"{ended} of {len(todo)}: {told(log.config)}: loss {log.final_loss:.3f}; about "
              f"{left:.0f} minutes left", flush=True)  # fmt: skip

    train_together(todo, at_once=at_once, on_done=note)


def told(config: TrainConfig) -> str:
    """A run's settings, where they differ from the story's."""
    usual = TrainConfig().as_dict()
    changes = {name: value for name, value in config.as_dict().items() if value != usual[name]}
    return ", ".join(f"{name} {value}" for name, value in changes.items()) or "the story's model"
