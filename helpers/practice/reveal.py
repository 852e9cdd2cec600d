"""What is shown only on request: hints, one at a time, and solutions."""

from __future__ import annotations

import html

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.practice import style
from helpers.practice.task import Task


class Hints:
    """An exercise's hints. Live: a button brings the next; elsewhere: the first one, folded.

    controls : {"next"}. state : {"shown": how many hints are visible}. words : those, in words.
    A new display starts with none, so running a notebook twice gives twice the same.
    """

    def __init__(self, exercise: Task):
        self._exercise = exercise
        self._shown = 0
        self._page = widgets.HTML()
        button = widgets.Button()
        button.on_click(style.guarded(self.reveal, self._say))
        self.controls = {"next": button}
        self.view = style.panel(self._page, widgets.HBox([button]))
        self._show()

    def reveal(self) -> None:
        """What the button does: show one more hint, if there is one."""
        self._shown = min(self._shown + 1, len(self._exercise.hints))
        self._show()

    @property
    def state(self) -> dict:
        return {"shown": self._shown}

    @property
    def _title(self) -> str:
        return f"Hints for {self._exercise.heading}"

    def _lines(self, shown: int) -> list[str]:
        hints = self._exercise.hints
        return [
            f"Hint {i} of {len(hints)}: {hint}" for i, hint in enumerate(hints[:shown], start=1)
        ]

    @property
    def words(self) -> str:
        return "\n".join([self._title, *map(style.plain, self._lines(self._shown))])

    def _show(self) -> None:
        count = len(self._exercise.hints)
        button = self.controls["next"]
        button.description = (
            "That was the last hint"
            if self._shown == count
            else f"Show hint {self._shown + 1} of {count}"
        )
        button.disabled = self._shown == count
        paragraphs = "".join(f"<p>{style.rich(line)}</p>" for line in self._lines(self._shown))
        self._page.value = (
            f'<div class="abh"><p class="abh-title">{style.rich(self._title)}</p></div>'
            + style.live(paragraphs)
        )

    def _say(self, words: str) -> None:
        self._page.value = style.live(style.rich(words))

    def _repr_mimebundle_(self, include=None, exclude=None):
        more = len(self._exercise.hints) - 1
        rest = f"{more} more hints where this notebook runs: run the cell and press the button."
        first = self._lines(1)[0]
        page = (
            f"<p><strong>{style.rich(self._title)}</strong></p>\n"
            + style.folded("Show the first hint", f"<p>{style.rich(first)}</p>")
            + f"\n<p>{rest}</p>"
        )
        words = "\n".join([self._title, style.plain(first), rest])
        return mimebundle(self.view, words, html=page)


class Solution:
    """An exercise's solution, from its source. Live: a button shows it; elsewhere: folded.

    controls : {"show"}. state : {"shown"}. words : what is visible. source : the code.
    """

    def __init__(self, exercise: Task):
        self._exercise = exercise
        self.source = exercise.source
        self._shown = False
        self._page = widgets.HTML()
        button = widgets.Button()
        button.on_click(style.guarded(self.toggle, self._say))
        self.controls = {"show": button}
        self.view = style.panel(self._page, widgets.HBox([button]))
        self._show()

    def toggle(self) -> None:
        """What the button does: show the solution, or hide it."""
        self._shown = not self._shown
        self._show()

    @property
    def state(self) -> dict:
        return {"shown": self._shown}

    @property
    def _title(self) -> str:
        return f"Solution of {self._exercise.heading}"

    @property
    def _code(self) -> str:
        return f"<pre><code>{html.escape(self.source)}</code></pre>"

    @property
    def words(self) -> str:
        return "\n\n".join([self._title, self.source] if self._shown else [self._title])

    def _show(self) -> None:
        self.controls["show"].description = (
            "Hide the solution" if self._shown else "Show the solution"
        )
        self._page.value = (
            f'<div class="abh"><p class="abh-title">{style.rich(self._title)}</p>'
            f"{self._code if self._shown else ''}</div>"
        )

    def _say(self, words: str) -> None:
        self._page.value = style.live(style.rich(words))

    def _repr_mimebundle_(self, include=None, exclude=None):
        page = style.folded(self._title, self._code)
        return mimebundle(self.view, f"{self._title}\n\n{self.source}", html=page)
