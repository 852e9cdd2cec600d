"""Replace a file in one step: whoever interrupts it leaves either the old file or the whole new."""

from __future__ import annotations

import contextlib
import glob
import os
import time
import uuid
from pathlib import Path

_FORGOTTEN = 3600.0  # seconds after which nobody is still writing a draft


def target(path: Path) -> Path:
    """The file itself, where `path` is a link to it: the link stays when the file is replaced."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


def replace(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, see it safely on the disk, and put it in its place.

    A link stays a link, and the file that it leads to is replaced. Raises OSError, with what was
    there as it was.
    """
    path = target(path)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.new")
    try:
        with open(draft, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _remove_forgotten_drafts(path)


def _remove_forgotten_drafts(path: Path) -> None:
    """What those left behind who were killed while they wrote this file."""
    drafts = path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.new")
    with contextlib.suppress(OSError):  # the file is written, and that is what was asked for
        for draft in drafts:
            if time.time() - draft.stat().st_mtime > _FORGOTTEN:
                draft.unlink(missing_ok=True)
