"""Where a reader's progress is kept: small JSON files in the user's data folder, and never lost.

A file is changed under a lock that other notebooks respect, from what it holds at that moment, and
is replaced in one step: whoever crashes, and whenever, leaves either the old or the new one. A file
that cannot be read is set aside under another name, never overwritten.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import platformdirs
from filelock import FileLock, Timeout

from helpers.interview import atomic

VARIABLE = "ATTENTION_LESSONS_DATA"  # names another folder, for a shared server or a test
FORMAT = 1
_SECONDS = 5.0  # to wait for another notebook that is writing
_Result = TypeVar("_Result")


class StoreError(Exception):
    """Something could not be read or kept: what, why, and what to do, in a sentence."""


def folder() -> Path:
    """The folder of all progress; it need not exist yet."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    return platformdirs.user_data_path("attention-lessons", appauthor=False)


class Document:
    """One file of progress, a JSON object.

    path : where. check : raises ValueError, KeyError or TypeError for content that is not what
    was once written. notices : what the reader should know, such as a file set aside.
    """

    def __init__(self, path: Path, check: Callable[[dict], object] = lambda content: None):
        self.path, self._check = path, check
        self.notices: list[str] = []

    def read(self) -> dict:
        """What the file holds, {} if there is none. Sets a damaged file aside.

        Raises StoreError if it cannot be read, or was written by a newer version of the lessons.
        """
        if not self.path.exists():
            return {}
        with self._locked():
            return self._read()

    def change(self, edit: Callable[[dict], _Result]) -> _Result:
        """Have `edit` change what the file holds now, in place; keep that; return its result.

        Raises StoreError, with the file as it was, if that cannot be.
        """
        with self._locked():
            content = self._read()
            result = edit(content)
            self._write({"format": FORMAT, **content})
        return result

    def _locked(self) -> _Locked:
        return _Locked(self.path)

    def _read(self) -> dict:
        try:
            text = self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError as error:
            return self._set_aside(error)
        except OSError as error:
            raise _cannot("read", self.path, error) from None
        try:
            content = json.loads(text)
            if not isinstance(content, dict) or not isinstance(content["format"], int):
                raise ValueError("it is not a file of these lessons")
            newer = content["format"] > FORMAT
            if not newer:
                self._check(content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return self._set_aside(error)
        if newer:
            raise StoreError(
                f"{self.path} was written by a newer version of these lessons (format "
                f"{content['format']}, this one knows {FORMAT}). It was left as it is: update the "
                "lessons, or move the file away."
            )
        return content

    def _set_aside(self, error: Exception) -> dict:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        aside = self.path.with_name(f"{self.path.stem}.damaged-{stamp}{self.path.suffix}")
        number = 1
        while aside.exists():
            number += 1
            aside = aside.with_name(f"{self.path.stem}.damaged-{stamp}-{number}{self.path.suffix}")
        try:
            os.rename(self.path, aside)
        except OSError as problem:
            raise _cannot("set aside", self.path, problem) from None
        self.notices.append(
            f"{self.path.name} could not be read ({_short(error)}). It was set aside as "
            f"{aside}, and nothing in it was changed; a new one begins now."
        )
        return {}

    def _write(self, content: dict) -> None:
        text = json.dumps(content, ensure_ascii=False, indent=1)
        try:
            atomic.replace(self.path, text.encode("utf-8"))
        except OSError as error:
            raise _cannot("write", self.path, error) from None


class _Locked:
    """Holds the lock of a file; its folder is made if there is none."""

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self):
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(str(self._path) + ".lock", timeout=_SECONDS)
            self._lock.acquire()
        except Timeout:
            raise StoreError(
                f"{self._path} has been in use by another notebook for {_SECONDS:.0f} seconds. "
                "Close that one, or try again."
            ) from None
        except (OSError, NotImplementedError) as error:
            raise _cannot("use", self._path, error) from None

    def __exit__(self, *_):
        self._lock.release()


def _cannot(verb: str, path: Path, error: Exception) -> StoreError:
    why = getattr(error, "strerror", None) or _short(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        why = "something that is no folder stands where its folder should be"
    return StoreError(
        f"Could not {verb} {path}: {why}. Make room or give yourself the right to write there, or "
        f"set the variable {VARIABLE} to another folder and restart the kernel."
    )


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
