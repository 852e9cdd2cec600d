"""Replace a file in one step: whoever interrupts it leaves either the old file or the whole new."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, see it safely on the disk, and put it in its place.

    Raises OSError, with what was there as it was.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.new")
    try:
        with open(draft, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
