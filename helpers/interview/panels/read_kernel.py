"""An attention function to read: what is wrong with it? The doctor has the last word."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets as widgets

from helpers.interview import debug, markup
from helpers.interview.panels import base
from helpers.interview.panels.base import Panel
from helpers.interview.panels.talk import taught
from helpers.practice import style
from helpers.practice.questions import show_options


class ReadKernel(Panel):
    """A function of `helpers.interview.debug`.

    controls : "show", then "A", "B", … for the diagnoses: one says one's own before one reads
    them. Right at the first choice is worth 1, at the second 1/2, later nothing.
    """

    what_is_missing = "Choose a diagnosis first, or skip this one."

    def __init__(self, broken: debug.Broken, changed: Callable[[], object] = lambda: None):
        super().__init__(changed)
        self.broken = broken
        self._tried: list[str] = []
        self._shown = False
        show = self.button("show", "Show four diagnoses", self.show_options)
        # The options as they are now: every look at `broken.question` makes them anew.
        self._question = broken.question
        self._buttons = {
            letter: self.button(letter, "", lambda letter=letter: self.choose(letter))
            for letter, _ in self._question.lettered
        }
        for button in self._buttons.values():
            button.add_class("abh-option")
        self._report = base.page("")
        lead = base.page(
            f"<p>{style.rich(broken.promise)}</p>"
            f"<pre><code>{html.escape(broken.code)}</code></pre>"
            f"<p>{style.rich(broken.symptom)}</p>"
        )
        self._options = widgets.VBox(list(self._buttons.values()))
        self.view = widgets.VBox(
            [
                base.prompt("Is anything wrong with it? Say it aloud first."),
                lead,
                widgets.HBox([show]),
                self._options,
                self._said,
                self._report,
            ]
        )
        self._show()

    @property
    def main(self) -> widgets.Button:
        return self.controls["show"]

    def show_options(self) -> None:
        """Show the diagnoses to choose from."""
        self._shown = True
        self._show()

    def choose(self, letter: str) -> None:
        """Choose a diagnosis."""
        self._shown = True
        self._tried.append(letter)
        self._show()

    def _show(self) -> None:
        base.show(self._options, self._shown)
        base.show(self.controls["show"], not self._shown)
        show_options(self._question, self._buttons, self._tried)
        if not self._tried:
            return
        last = dict(self._question.lettered)[self._tried[-1]]
        sign = "✓" if last.right else "✗"
        self._said.value = style.live(
            style.rich(f"{sign} {last.feedback}"), "yes" if last.right else "no"
        )
        if self.is_solved and "iv-report" not in self._report.value:
            self._report.value = self._findings()

    def _findings(self) -> str:
        """What the doctor says of the function, and what makes it right, as HTML."""
        parts = [
            '<p class="iv-head">What the doctor says</p>',
            self.broken.examine()._repr_html_(),
        ]
        if self.broken.fix:
            fix = html.escape(self.broken.fix)
            parts += ['<p class="iv-head">The change</p>', f"<pre><code>{fix}</code></pre>"]
        parts.append(f"<p>{taught(self.broken)}</p>")
        return f'<div class="abh iv-report">{"".join(parts)}</div>'

    @property
    def _rights(self) -> list[bool]:
        """Whether each letter that was tried is right."""
        options = dict(self._question.lettered)
        return [options[letter].right for letter in self._tried]

    @property
    def is_solved(self) -> bool:
        return any(self._rights)

    @property
    def answer(self) -> dict:
        return {"tried": list(self._tried)} if self._shown else {}

    def restore(self, answer: dict) -> None:
        if not answer:
            return
        self._tried = [letter for letter in answer["tried"] if letter in self._buttons]
        self._shown = True
        self._show()

    @property
    def score(self) -> float | None:
        if not self._tried:
            return None
        worth = {0: 1.0, 1: 0.5}
        return worth.get(self._rights.index(True), 0.0) if self.is_solved else 0.0

    @property
    def keys(self) -> dict[str, Callable[[], object]]:
        if not self._shown:
            show = style.guarded(lambda: self.did(self.show_options), self.say)
            return {" ": show, "Enter": show}
        return {
            key: style.guarded(lambda x=letter: self.did(lambda: self.choose(x)), self.say)
            for letter in self._buttons
            for key in (letter, letter.lower())
        }

    @property
    def say_keys(self) -> str:
        if not self._shown:
            return "Space shows the diagnoses"
        letters = list(self._buttons)
        return f"{letters[0].lower()} to {letters[-1].lower()} choose"

    @property
    def words(self) -> str:
        options = [f"{letter}  {markup.plain(option.text)}"
                   for letter, option in self._question.lettered]  # fmt: skip
        return "\n".join([self.broken.promise, self.broken.code, self.broken.symptom, *options])
