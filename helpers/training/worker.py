"""One run in a process of its own: settings come in as JSON, measurements go out as JSON lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def job(config: dict, log: str, start: str | None, save: str | None, save_at: int | None) -> None:
    """Train as `config` says and save the run log to the file `log`.

    start : a file of Trainer.save to go on from. save : such a file to write, after `save_at` steps
    or, if that is None, at the end.
    """
    from helpers.training.config import TrainConfig
    from helpers.training.loop import Trainer

    trainer = Trainer.load(Path(start), **config) if start else Trainer(TrainConfig(**config))
    if save:
        trainer.run(until=save_at, on_measure=_report)
        trainer.save(Path(save))
    trainer.run(on_measure=_report)
    trainer.log().save(log)


def _report(trainer) -> None:
    """The newest measurement, as one line. It ends the run where nobody reads any more."""
    print(json.dumps(trainer.newest()), flush=True)


if __name__ == "__main__":
    # torch's optimizers would import Triton: a second and 80 MB for each run, and nothing uses it.
    sys.modules.setdefault("triton", None)
    try:
        job(**json.load(sys.stdin))
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
