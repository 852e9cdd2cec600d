"""Several runs side by side, each in a process of its own with one thread."""

from __future__ import annotations

import atexit
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.training.config import TrainConfig
from helpers.training.log import RunLog


@cache
def scratch_folder() -> Path:
    """A folder for what runs leave behind; it goes when Python ends."""
    folder = tempfile.TemporaryDirectory(prefix="runs-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@dataclass(frozen=True)
class Job:
    """A run. start : a file of `Trainer.save` to go on from. save : such a file to write, after
    `save_at` steps (None: at the end)."""

    config: TrainConfig
    start: Path | None = None
    save: Path | None = None
    save_at: int | None = None


def train_together(
    jobs: Sequence[TrainConfig | Job], *, at_once: int = 2, on_measure: Callable | None = None,
    on_done: Callable | None = None,
) -> list[RunLog]:  # fmt: skip
    """Run all, `at_once` at a time; the logs in the order of the jobs.

    on_measure(number of the job, {"step": …, "val_loss": …, …}) at each measurement,
    on_done(number, log) after each run, both in the calling thread. An interrupt ends all runs.
    Raises RuntimeError with the last words of a run that fails.
    """
    jobs = [job if isinstance(job, Job) else Job(job) for job in jobs]
    waiting = list(enumerate(jobs))[::-1]
    running: dict[int, subprocess.Popen] = {}
    heard: queue.Queue = queue.Queue()
    logs: list[RunLog | None] = [None] * len(jobs)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.npz" for number in range(len(jobs))]
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    number, job = waiting.pop()
                    running[number] = _start(number, job, files[number], heard)
                number, line = heard.get()
                if line is not None:
                    if on_measure is not None:
                        on_measure(number, line)
                    continue
                _ended(running.pop(number))
                logs[number] = RunLog.load(files[number])
                if on_done is not None:
                    on_done(number, logs[number])
        finally:
            for process in running.values():
                process.kill()
                process.wait()
    return logs


def _start(number: int, job: Job, file: Path, heard: queue.Queue) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.training.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        encoding="utf-8",
    )  # fmt: skip
    asked = {"config": job.config.as_dict(), "log": str(file), "save_at": job.save_at}
    asked |= {name: path and str(path) for name in ("start", "save")
              for path in [getattr(job, name)]}  # fmt: skip
    process.stdin.write(json.dumps(asked))
    process.stdin.close()

    def listen():
        for line in process.stdout:
            heard.put((number, json.loads(line)))
        heard.put((number, None))

    process.last_words = []
    reader = threading.Thread(target=lambda: process.last_words.extend(process.stderr), daemon=True)
    process.reader = reader
    reader.start()
    threading.Thread(target=listen, daemon=True).start()
    return process


def _ended(process: subprocess.Popen) -> None:
    code = process.wait()
    process.reader.join()
    if code:
        said = "".join(process.last_words[-5:]).strip() or "it said nothing"
        raise RuntimeError(f"a training run ended with exit code {code}: {said}")
