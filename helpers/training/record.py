# ruff: noqa: RUF009  (column() only declares a field)
"""The recorded runs of `make sweep`, and what lesson 4 asks of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from helpers._initial_scores import initial_score_std
from helpers._table import Table, column
from helpers.training import sweep
from helpers.training.config import INITS, TrainConfig


@dataclass(frozen=True, eq=False, repr=False)
class LossTable(Table):
    """One line a method: final validation loss over its seeds, nats a byte."""

    method: np.ndarray = column("method")
    runs: np.ndarray = column("runs")
    mean: np.ndarray = column("mean loss")
    lowest: np.ndarray = column("lowest")
    highest: np.ndarray = column("highest")
    score_std: np.ndarray = column("score std at the end", ".1f")
    entropy: np.ndarray = column("entropy at the end", ".2f")


@dataclass(frozen=True, eq=False, repr=False)
class CornerTable(Table):
    """One line a corner of the map: means over its seeds.

    lost, least, most : nats lost without the scale, at equal seed: mean, smallest, largest.
    predicted : std of unscaled scores before training. first_std, last_std : measured without the
    scale, mean of heads, before and after training. entropy : at the end, without the scale.
    """

    d_head: np.ndarray = column("d_head")
    init: np.ndarray = column("init")
    rate: np.ndarray = column("learning rate", "g")
    runs: np.ndarray = column("seeds")
    with_scale: np.ndarray = column("loss, 1/√d")
    without: np.ndarray = column("loss, no scale")
    lost: np.ndarray = column("lost")
    least: np.ndarray = column("smallest")
    most: np.ndarray = column("largest")
    predicted: np.ndarray = column("predicted std", ".1f")
    first_std: np.ndarray = column("std at step 0", ".1f")
    last_std: np.ndarray = column("at the end", ".1f")
    entropy: np.ndarray = column("entropy at the end", ".2f")


class Record:
    """The lines of the record. `Record()` reads the one that comes with the lessons.

    of(config) : the lines of every seed with those settings. losses(config) : their final losses.
    """

    def __init__(self, path=sweep.RECORD):
        self.lines = sweep.read(Path(path))

    @cached_property
    def _by_settings(self) -> dict[TrainConfig, list[dict]]:
        found = {}
        for line in self.lines:
            config = TrainConfig.from_dict(line["config"])
            found.setdefault(config.but(seed=0), []).append(line)
        return found

    def of(self, config: TrainConfig) -> list[dict]:
        """Raises KeyError, in words, where nothing of the kind was recorded."""
        lines = self._by_settings.get(config.but(seed=0))
        if lines is None:
            raise KeyError(f"no run with {sweep.told(config)} is recorded; see sweep.plan().")
        return sorted(lines, key=lambda line: line["config"]["seed"])

    def losses(self, config: TrainConfig) -> np.ndarray:
        return np.array([line["final_loss"] for line in self.of(config)])

    def about(self) -> str:
        """Where the record comes from: runs, core-hours, versions. (Each line has its date.)"""
        abouts = [line["about"] for line in self.lines]
        hours = sum(about["seconds"] for about in abouts) / 3600
        told = [f"{len(abouts)} runs", f"{hours:.1f} core-hours"]
        for name in ("corpus", "torch"):
            values = sorted({about[name] for about in abouts})
            told.append(f"{name} {' to '.join(dict.fromkeys((values[0], values[-1])))}")
        return ", ".join(told)

    def table(self, methods: Mapping[str, TrainConfig]) -> LossTable:
        """A line for each method, in that order."""
        rows = []
        for method, config in methods.items():
            lines, losses = self.of(config), self.losses(config)
            rows.append({
                "method": method, "runs": len(losses), "mean": losses.mean(),
                "lowest": losses.min(), "highest": losses.max(),
                "score_std": np.mean([line["score_std"][-1] for line in lines]),
                "entropy": np.mean([line["entropy"][-1] for line in lines]),
            })  # fmt: skip
        return LossTable.from_rows(rows)

    def corners(self) -> CornerTable:
        """The corners of the map that have several seeds."""
        rows = []
        for d_head, init, rate in sweep.CORNERS:
            config = sweep.on_map(d_head, init, rate, "none")
            losses = self.losses(config.but(scale="1/√d"))
            lost = self.losses(config) - losses
            lines = self.of(config)
            rows.append({
                "d_head": d_head, "init": init, "rate": rate, "runs": len(lines),
                "with_scale": losses.mean(), "without": self.losses(config).mean(),
                "lost": lost.mean(), "least": lost.min(), "most": lost.max(),
                "predicted": predicted_score_std(init, d_head),
                "first_std": np.mean([line["score_std"][0] for line in lines]),
                "last_std": np.mean([line["score_std"][-1] for line in lines]),
                "entropy": np.mean([line["entropy"][-1] for line in lines]),
            })  # fmt: skip
        return CornerTable.from_rows(rows)

    def map_words(self) -> str:
        """The map of `lost` in words."""
        told = []
        for rate in sweep.RATES:
            lost = self.lost(rate)
            for init, row in zip(INITS, lost):
                numbers = ", ".join(f"{x:.2f}" for x in row)
                told.append(f"learning rate {rate:g}, init {init}: {numbers}")
        heads = ", ".join(map(str, sweep.D_HEADS))
        return f"Nats lost without the scale, for d_head {heads}. " + "; ".join(told) + "."

    def dots_words(self, methods: Mapping[str, TrainConfig]) -> str:
        """The losses of several methods in words."""
        told = (f"{name}: {', '.join(f'{loss:.2f}' for loss in self.losses(config))}"
                for name, config in methods.items())  # fmt: skip
        return "Losses. " + "; ".join(told) + "."

    def lost(self, learning_rate: float, scale: str = "none") -> np.ndarray:
        """(inits, d_heads): by how much more the loss of seed 0 is than with the scale 1/√d."""

        def loss(d_head, init, scale):
            return self.losses(sweep.on_map(d_head, init, learning_rate, scale))[0]

        return np.array([[loss(d, init, scale) - loss(d, init, "1/√d") for d in sweep.D_HEADS]
                         for init in INITS])  # fmt: skip


def agreement(line: dict, half: str) -> np.ndarray:
    """(layers, 3) of W_Q, W_K, W_V: mean cosine of successive gradients in the "first" or
    "second" half of a recorded run."""
    return np.array(line[f"agreement_{half}_half"], dtype=float)


def predicted_score_std(init: str, d_head: int, d_model: int = sweep.D_MODEL) -> float:
    """Of unscaled scores at the start, for inputs of unit RMS, as lesson 2 derives it."""
    return initial_score_std(d_head, d_model, INITS[init](d_model))
