"""Where a reader's progress is kept: small JSON files in the user's data folder, and never lost.

A file is changed under a lock that other notebooks respect, from what it holds at that moment, and
is replaced in one step: whoever crashes, and whenever, leaves either the old or the new one. A file
that is damaged is set aside under another name, never overwritten.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
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


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # somebody has removed it
        return Path()


_BEGAN_IN = _working_folder()  # the working folder may change later, the reader's progress stays


class StoreError(Exception):
    """Something could not be read or kept: what, why, and what to do, in a sentence."""


class _Damaged(Exception):
    """The file is there and is not what was once written; the words say why."""


def folder() -> Path:
    """The folder of all progress; it need not exist yet.

    A relative one counts from where Python began. If it names a home folder that is not known
    ("~nobody"), every document in it raises StoreError.
    """
    named = os.environ.get(VARIABLE) or platformdirs.user_data_path(
        "attention-lessons", appauthor=False
    )
    path = os.path.expanduser(named)  # unlike pathlib's, it leaves a "~nobody" as it is
    return Path(path) if path.startswith("~") else _BEGAN_IN / path


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
        if not self._is_there():
            return {}
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(_Locked(self._file))
            except StoreError as problem:
                return self._read_unlocked(problem)
            return self._read()

    def change(self, edit: Callable[[dict], _Result]) -> _Result:
        """Have `edit` change what the file holds now, in place; keep that; return its result.

        Raises StoreError, with the file as it was, if that cannot be.
        """
        self._is_there()  # says what is wrong with the place before a lock is made in it
        with _Locked(self._file):
            content = self._read()
            result = edit(content)
            self._write({"format": FORMAT, **content})
        return result

    @property
    def _file(self) -> Path:
        return atomic.target(self.path)

    def _is_there(self) -> bool:
        """Raises StoreError if nobody can tell, or if it is no file."""
        if not self.path.is_absolute():
            raise StoreError(
                f"There is no place {self.path}: it names a home folder that is not known, or the "
                f"working folder is gone. Set the variable {VARIABLE} to a whole path and restart "
                "the kernel."
            )
        try:
            mode = os.stat(self._file).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _cannot("read", self.path, error) from None
        if not stat.S_ISREG(mode):  # a folder, or a device, of which reading may never end
            raise StoreError(
                f"{self.path} is no ordinary file. Move it away, or set the variable {VARIABLE} to "
                "another folder and restart the kernel."
            )
        return True

    def _read(self) -> dict:
        try:
            return self._load()
        except _Damaged as damage:
            return self._set_aside(damage)

    def _read_unlocked(self, problem: StoreError) -> dict:
        """Who may not write here, or waits too long, may read: what stands here is always whole."""
        try:
            return self._load()
        except _Damaged as damage:
            raise StoreError(
                f"{self.path} could not be read ({damage}), and not be set aside. {problem}"
            ) from None

    def _load(self) -> dict:
        """Raises _Damaged, or StoreError for what cannot be read or is of a newer version."""
        if not self._is_there():
            return {}
        try:
            text = self._file.read_bytes().decode("utf-8-sig")  # some editors put a mark first
            content = json.loads(text)
            if not isinstance(content, dict) or not isinstance(content["format"], int):
                raise ValueError("it is not a file of these lessons")
            newer = content["format"] > FORMAT
            if not newer:
                self._check(content)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _cannot("read", self.path, error) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _Damaged(_short(error)) from error
        if newer:
            raise StoreError(
                f"{self.path} was written by a newer version of these lessons (format "
                f"{content['format']}, this one knows {FORMAT}). It was left as it is: update the "
                "lessons, or move the file away."
            )
        return content

    def _set_aside(self, damage: _Damaged) -> dict:
        file, stamp = self._file, time.strftime("%Y%m%d-%H%M%S")
        aside = file.with_name(f"{file.stem}.damaged-{stamp}{file.suffix}")
        number = 1
        try:
            while aside.exists():
                number += 1
                aside = aside.with_name(f"{file.stem}.damaged-{stamp}-{number}{file.suffix}")
            os.rename(file, aside)
        except OSError as problem:
            raise _cannot("set aside", self.path, problem) from None
        self.notices.append(
            f"{self.path.name} could not be read ({damage}). It was set aside as "
            f"{aside}, and nothing in it was changed; a new one begins now."
        )
        return {}

    def _write(self, content: dict) -> None:
        # As ASCII, so that half of a surrogate pair, as fields may hold it, can be written at all.
        text = json.dumps(content, ensure_ascii=True, indent=1)
        try:
            atomic.replace(self.path, text.encode("ascii"))
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
        f"Could not {verb} {path}: {why}. Make room, give yourself the right to read and write "
        f"there, or set the variable {VARIABLE} to another folder and restart the kernel."
    )


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
