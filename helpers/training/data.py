"""The text to learn from: the source of the reader's own Python, read as bytes."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

VALIDATION_SHARE = 0.1  # of the files
FEWEST_BYTES = 1_000_000
_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
_LEFT_OUT |= {"encodings", "pydoc_data"}  # tables of characters, and one long text


@dataclass(frozen=True)
class Corpus:
    """train, validation : uint8, whole files one after the other, no file in both.
    name : what it is. files : how many there are in each."""

    train: np.ndarray = field(repr=False)
    validation: np.ndarray = field(repr=False)
    name: str
    files: tuple[int, int]

    def windows(self, part: str, count: int, length: int, seed) -> tuple[np.ndarray, np.ndarray]:
        """(inputs, targets), each (count, length): windows at random places of "train" or
        "validation", each target the byte after its input."""
        text = getattr(self, part)
        starts = np.random.default_rng(seed).integers(0, text.size - length, size=count)
        windows = text[starts[:, None] + np.arange(length + 1)]
        return windows[:, :-1].astype(np.int64), windows[:, 1:].astype(np.int64)


@cache
def standard_library(folder: str | None = None) -> Corpus:
    """The `*.py` files of Python's standard library, tests left out.

    A file belongs to validation if a hash of its path says so: the same files on every machine
    with the same Python. Raises RuntimeError where Python comes without its sources.
    """
    root = Path(folder or sysconfig.get_path("stdlib"))
    parts = {"train": [], "validation": []}
    for path in sorted(root.rglob("*.py")):
        inner = path.relative_to(root)
        if not _LEFT_OUT & set(inner.parts[:-1]):
            digest = hashlib.sha256(inner.as_posix().encode()).digest()
            held_out = digest[0] < 256 * VALIDATION_SHARE
            parts["validation" if held_out else "train"].append(path.read_bytes())
    texts = {part: np.frombuffer(b"\n".join(files), np.uint8) for part, files in parts.items()}
    size = sum(text.size for text in texts.values())
    if size < FEWEST_BYTES:
        raise RuntimeError(
            f"Python {platform.python_version()} has only {size:,} bytes of source in {root}; this "
            f"lesson trains on its standard library and needs {FEWEST_BYTES:,}. Some "
            "distributions ship it compiled or in a zip file: use a Python from python.org, conda, "
            "uv or your system's full package (python3-full on Debian)."
        )
    name = f"standard library of Python {platform.python_version()}"
    return Corpus(texts["train"], texts["validation"], name,
                  (len(parts["train"]), len(parts["validation"])))  # fmt: skip
