"""Files that the interview room makes for the reader, and the button that makes one.

A file is written beside its place and put there in one step: whoever interrupts it leaves either
what was there before or the whole new file. What goes wrong is said in a sentence.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import ipywidgets as widgets

from helpers.interview import atomic
from helpers.practice import style


class SaveError(Exception):
    """A file could not be written: which, why, and what to do, in a sentence."""


def write(path: str | Path, content: bytes) -> Path:
    """Write a whole file, or leave what is there. Returns its absolute path.

    path : from the working folder, unless it is absolute; a file that is there is replaced, and
    of a link the file that it leads to. Raises SaveError.
    """
    try:
        target = Path(path).expanduser().absolute()
        file = atomic.target(target)
        if file.is_dir():
            raise SaveError(f"{target} is a folder: name a file in it.")
        if not file.parent.is_dir():
            raise SaveError(f"There is no folder {file.parent}: name a file in one that exists.")
        if file.exists() and not file.is_file():
            raise SaveError(
                f"{target} is no ordinary file but something like a device: name another file."
            )
        atomic.replace(file, content)
    except (OSError, ValueError, RuntimeError) as error:  # also a user or a name that cannot be
        raise SaveError(
            f"{path} could not be written: {getattr(error, 'strerror', None) or error}. If it is "
            "open in another program, close it there; else name a file in a folder that you may "
            "write to."
        ) from None
    return target


class SaveButton:
    """A button that makes one file in the working folder, and says where, or why not.

    label : what the button says. name : of the file. save : makes the file at a path and returns
    where it is; it raises SaveError. then : what the reader does with it, a sentence.
    """

    def __init__(self, label: str, name: str, save: Callable[[str], Path], then: str):
        self._name, self._save, self._then = name, save, then
        self.saved: Path | None = None
        self.words = ""
        self.button = widgets.Button(description=label)
        self.button.on_click(style.guarded(self.press, self._say))
        self._status = widgets.HTML(style.live(""))
        self.view = widgets.VBox([widgets.HBox([self.button]), self._status])

    def press(self) -> None:
        """What a click does."""
        try:
            self.saved = self._save(self._name)
        except SaveError as error:
            self._say(f"✗ {error}", "no")
        else:
            self._say(f"✓ Saved as {self.saved}. {self._then}", "yes")

    def _say(self, words: str, kind: str = "no") -> None:
        self.words = words
        # Not `style.rich`: a path may hold signs that mean something there.
        self._status.value = style.live(html.escape(words, quote=False), kind)
