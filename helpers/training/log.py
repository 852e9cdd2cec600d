"""What a training run leaves behind: settings, losses, statistics of its heads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from helpers.training.config import TrainConfig

MATRICES = ("W_Q", "W_K", "W_V")


@dataclass(eq=False)
class RunLog:
    """One run. n steps, m measurements, L layers, H heads, T bytes of context.

    config : its settings. about : versions, corpus, seconds, as strings and numbers.
    train_loss      (n,)           nats a byte, of each step's batch before its update
    gradient_norm   (n, L, 3)      of the loss at W_Q, W_K, W_V, before clipping
    agreement       (n, L, 3)      cosine of that gradient with the one of the step before
    measured        (m,)           steps done at each measurement, from 0
    val_loss        (m,)           nats a byte, on the same validation windows each time
    entropy         (m, L, H)      of the weights, over ln(keys a query may attend): 0 to 1
    largest_weight  (m, L, H)      mean over queries
    score_std       (m, L, H)      of what softmax gets, within a row (root mean square of rows)
    row_gradients   (m, L, H, R)   norms of ∂(sum of losses)/∂q, a value for each query row
    maps            (m, L, H, T, T) weights of one validation window
    final_loss, final_error : validation loss at the end on FINAL_TARGETS bytes, and its standard
    error over windows; nan before.
    Queries that may attend to one key only are left out of the statistics.
    """

    config: TrainConfig
    about: dict = field(default_factory=dict)
    train_loss: np.ndarray = None
    gradient_norm: np.ndarray = None
    agreement: np.ndarray = None
    measured: np.ndarray = None
    val_loss: np.ndarray = None
    entropy: np.ndarray = None
    largest_weight: np.ndarray = None
    score_std: np.ndarray = None
    row_gradients: np.ndarray = None
    maps: np.ndarray = None
    final_loss: float = float("nan")
    final_error: float = float("nan")

    def averaged(self, name: str, over: int) -> tuple[np.ndarray, np.ndarray]:
        """(steps in the middle of each stretch of `over` steps, means over it of the field `name`),
        for a field with a value a step. Stretches with nan, such as the first cosine, skip it."""
        values = getattr(self, name)
        whole = len(values) // over
        stretches = values[: whole * over].reshape(whole, over, *values.shape[1:])
        return np.arange(whole) * over + over / 2, np.nanmean(stretches, axis=1)

    def save(self, path) -> None:
        """As a NumPy archive (.npz) without pickled objects."""
        arrays = {name: getattr(self, name) for name in _arrays()}
        settings = {"config": self.config.as_dict(), "about": self.about}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, settings=json.dumps(settings), **arrays)

    @classmethod
    def load(cls, path) -> RunLog:
        """Raises FileNotFoundError, or ValueError where the file is no run log."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                settings = json.loads(str(archive["settings"]))
                arrays = {name: archive[name] for name in _arrays()}
        except FileNotFoundError:
            raise
        except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
            raise ValueError(f"{path} is no run log ({error}); pass a file that RunLog.save "
                             "wrote.") from error  # fmt: skip
        for name in ("final_loss", "final_error"):
            arrays[name] = float(arrays[name])
        return cls(TrainConfig.from_dict(settings["config"]), settings["about"], **arrays)


def _arrays() -> list[str]:
    return [f.name for f in fields(RunLog) if f.name not in ("config", "about")]
