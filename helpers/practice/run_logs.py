"""Logs of real training runs, for the reader to tell apart: those that lesson 4 recorded.

The record is read where the sweep writes it, without importing torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np

RECORD = Path(__file__).parent.parent / "training" / "sweep.jsonl"
WORDS = {"1/√d": "healthy", "none": "no scale", "1/d": "divided by d_k"}
NAMES = {"1/d": "A", "1/√d": "B", "none": "C"}  # what the lesson calls the three that it shows

# What the record's other runs change. Weights that start smaller than "unit" give q and k another
# variance than 1, and then the scores at the start say less.
_PLAIN = {
    "attention": "torch", "init": "unit", "qk_norm": False, "softcap": None, "fold_scale": False,
    "freeze_qk": False, "rescale_at": None,
}  # fmt: skip
_SHOWN = {"d_head": 128, "learning_rate": 1e-3, "seed": 0}
_SEEDS = 2  # of one setting, at most, that the checker tries
_BEGINNING = 4  # measurements of a run that has only begun


@dataclass(frozen=True, eq=False)
class Log:
    """What a run's log says of its heads, as means over them.

    name : what to call it. steps, entropy, score_std : one number a measurement, the first of them
    before training. d_head : features a head. diagnosis : what `diagnose` should say.
    learning_rate, seed : of the run.
    """

    name: str
    d_head: int
    steps: np.ndarray = field(repr=False)
    entropy: np.ndarray = field(repr=False)
    score_std: np.ndarray = field(repr=False)
    diagnosis: str = field(repr=False)
    learning_rate: float = field(repr=False)
    seed: int = field(repr=False)

    @property
    def args(self) -> tuple[np.ndarray, np.ndarray, int]:
        """What `diagnose` is called with."""
        return self.entropy, self.score_std, self.d_head

    @property
    def facts(self) -> str:
        """The log in a few words."""
        (first, last), (low, high) = self.entropy[[0, -1]], self.score_std[[0, -1]]
        return (
            f"with d_head = {self.d_head}, the spread of the scores goes from {low:.3g} to "
            f"{high:.3g} and the entropy from {first:.2f} to {last:.2f}"
        )

    def only(self, which: slice) -> Log:
        """The log with some of its measurements."""
        parts = ("steps", "entropy", "score_std")
        return replace(self, **{name: getattr(self, name)[which] for name in parts})

    def starting_as(self, other: Log) -> Log:
        """The log with its first measurement replaced by that of another."""
        entropy, score_std = self.entropy.copy(), self.score_std.copy()
        entropy[0], score_std[0] = other.entropy[0], other.score_std[0]
        return replace(self, entropy=entropy, score_std=score_std)

    def going_on_as(self, other: Log) -> Log:
        """The log with all but its first measurement replaced by those of another."""
        entropy, score_std = other.entropy.copy(), other.score_std.copy()
        entropy[0], score_std[0] = self.entropy[0], self.score_std[0]
        return replace(self, steps=other.steps, entropy=entropy, score_std=score_std)


def shown() -> dict[str, Log]:
    """The three logs that the lesson shows, by name: A, B, C."""
    logs = [log for log in _recorded() if log.name in NAMES.values()]
    return {log.name: log for log in sorted(logs, key=lambda log: log.name)}


def hidden() -> tuple[Log, ...]:
    """Those that the checker tries, d_head = 128 first: other runs, whole and in part.

    The first measurement tells the three kinds apart, the last does not: slow or short training
    leaves a healthy head as undecided as one whose scores were divided by d_k.
    """
    logs = [log for log in _recorded() if log.name not in NAMES.values()]
    logs.sort(key=_setting)
    few = [log for _, group in groupby(logs, _setting) for log in list(group)[:_SEEDS]]
    few.sort(key=lambda log: log.d_head != _SHOWN["d_head"])  # stable
    halves = [log.only(slice(0, 1 + len(log.steps) // 2)) for log in few]
    coarse = [log.only(slice(0, None, 2)) for log in few]
    beginnings = [log.only(slice(0, _BEGINNING)) for log in few]
    return (*few, *halves, *coarse, *beginnings)


def _setting(log: Log) -> tuple:
    return log.d_head, log.learning_rate, log.diagnosis


@cache
def _recorded() -> tuple[Log, ...]:
    """Raises RuntimeError where the record lacks one of the three kinds."""
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    logs = [_log(run) for run in map(json.loads, lines) if _is_plain(run["config"])]
    for part in (True, False):
        kinds = {log.diagnosis for log in logs if (log.name in NAMES.values()) is part}
        if missing := set(WORDS.values()) - kinds:
            raise RuntimeError(
                f"{RECORD.name} in helpers/training has too few runs of the kind "
                f"{', '.join(sorted(missing))}: `make sweep` records them."
            )
    return tuple(logs)


def _is_plain(config: dict) -> bool:
    return config["scale"] in WORDS and all(config[key] == value for key, value in _PLAIN.items())


def _log(run: dict) -> Log:
    config = run["config"]
    is_shown = all(config[key] == value for key, value in _SHOWN.items())
    return Log(
        NAMES[config["scale"]] if is_shown else "",
        config["d_head"],
        *(np.array(run[key], dtype=float) for key in ("measured", "entropy", "score_std")),
        WORDS[config["scale"]],
        config["learning_rate"],
        config["seed"],
    )
