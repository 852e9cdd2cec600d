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
        buttons = []
        for letter, option in broken.question.lettered:
            button = self.button(letter, "", lambda letter=letter: self.choose(letter))
            button.add_class("abh-option")
            buttons.append(button)
            button.description = f"{letter}   {_plain(option.text)}"
        self._report = base.page("")
        lead = base.page(
            f"<p>{style.rich(broken.promise)}</p>"
            f"<pre><code>{html.escape(broken.code)}</code></pre>"
            f"<p>{style.rich(broken.symptom)}</p>"
        )
        self._options = widgets.VBox(buttons)
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
        options = dict(self.broken.question.lettered)
        for letter, option in options.items():
            button = self.controls[letter]
            tried = letter in self._tried
            mark = ("✓ " if option.right else "✗ ") if tried else ""
            button.description = f"{mark}{letter}   {_plain(option.text)}"
            for name, applies in (
                ("abh-chosen-right", option.right),
                ("abh-chosen-wrong", not option.right),
            ):
                (button.add_class if tried and applies else button.remove_class)(name)
        if not self._tried:
            return
        last = options[self._tried[-1]]
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
    def is_solved(self) -> bool:
        options = dict(self.broken.question.lettered)
        return any(options[letter].right for letter in self._tried)

    @property
    def answer(self) -> dict:
        return {"tried": list(self._tried)} if self._shown else {}

    def restore(self, answer: dict) -> None:
        if not answer:
            return
        known = dict(self.broken.question.lettered)
        self._tried = [letter for letter in answer["tried"] if letter in known]
        self._shown = True
        self._show()

    @property
    def score(self) -> float | None:
        if not self._tried:
            return None
        options = dict(self.broken.question.lettered)
        worth = {0: 1.0, 1: 0.5}
        rights = [i for i, letter in enumerate(self._tried) if options[letter].right]
        return worth.get(rights[0], 0.0) if rights else 0.0

    @property
    def keys(self) -> dict[str, Callable[[], object]]:
        if not self._shown:
            show = style.guarded(lambda: self.did(self.show_options), self.say)
            return {" ": show, "Enter": show}
        return {
            key: style.guarded(lambda x=letter: self.did(lambda: self.choose(x)), self.say)
            for letter, _ in self.broken.question.lettered
            for key in (letter, letter.lower())
        }

    @property
    def say_keys(self) -> str:
        if not self._shown:
            return "Space shows the diagnoses"
        letters = [letter for letter, _ in self.broken.question.lettered]
        return f"{letters[0].lower()} to {letters[-1].lower()} choose"

    @property
    def words(self) -> str:
        options = [f"{letter}  {_plain(option.text)}"
                   for letter, option in self.broken.question.lettered]  # fmt: skip
        return "\n".join([self.broken.promise, self.broken.code, self.broken.symptom, *options])


def _plain(text: str) -> str:
    return markup.plain(text)
