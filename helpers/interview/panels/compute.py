"""A computation by hand: its numbers are typed, and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import ipywidgets as widgets

from helpers.interview import by_hand, markup
from helpers.interview.panels import base
from helpers.interview.panels.base import Panel
from helpers.interview.panels.talk import taught
from helpers.practice import style

_LOOK = {True: "abh-chosen-right", False: "abh-chosen-wrong"}
_SIGN = {True: "✓ ", False: "✗ ", None: ""}


class Compute(Panel):
    """A problem of `helpers.interview.by_hand`.

    controls : the label of each number → its field, "check", "solution". A unit that is typed
    behind a number is not looked at.
    Right at the first check is worth 1, later 1/2, after the solution was shown nothing.
    """

    focus = ".abh-entry input"
    what_is_missing = (
        "Check your numbers until they are right, show the solution, or skip this one."
    )

    def __init__(self, problem: by_hand.Problem, changed: Callable[[], object] = lambda: None):
        super().__init__(changed)
        self.problem = problem
        self._tries = 0
        self._shown = False
        self._score: float | None = None
        self._fields = []
        for label in problem.labels:
            field = widgets.Text(style={"description_width": "initial"})
            field.add_class("abh-entry")
            field.observe(style.guarded(self._typed, self.say), "value")
            self.controls[label] = field
            self._fields.append(field)
        self._mark([None] * len(self._fields))
        check = self.button("check", "Check", self.check)
        solution = self.button("solution", "Show the solution", self.show_solution)
        entries = widgets.HBox(self._fields).add_class("abh-entries")
        self._worked = base.page("")
        self.view = widgets.VBox(
            [
                base.prompt(problem.prompt),
                entries,
                widgets.HBox([check, solution]).add_class("iv-row"),
                self._said,
                self._worked,
            ]
        )

    @property
    def main(self) -> widgets.Button:
        return self.controls["check"]

    def check(self) -> None:
        """Check what is typed."""
        unit = re.escape(self.problem.unit.partition(" ")[0])
        texts = [re.sub(rf"\s*{unit}s?\s*$", "", x, flags=re.I) for x in self._typed_texts]
        graded = by_hand.grade(self.problem, texts)
        self._mark(graded.right)
        if None not in graded.right and not graded.is_right:
            self._tries += 1
        if graded.is_right and self._score is None:
            self._score = 1.0 if self._tries == 0 else 0.5
        kind = "yes" if graded.is_right else "no" if False in graded.right else ""
        self.say(" ".join(graded.sentences), kind)

    def show_solution(self) -> None:
        """Show how it is worked out."""
        self._shown = True
        if self._score is None:
            self._score = 0.0
        self._show()

    def _typed(self) -> None:
        """A number that is being changed is no longer right or wrong."""
        self._mark([None] * len(self._fields))
        self.changed()

    def _mark(self, rights: Sequence[bool | None]) -> None:
        """Say at each field whether its number is right, where that is known."""
        unit = f", in {self.problem.unit}" if self.problem.unit else ""
        for field, label, right in zip(self._fields, self.problem.labels, rights):
            field.description = f"{_SIGN[right]}{label}{unit}"
            for value, look in _LOOK.items():
                style.mark(field, look, value is right)

    def _show(self) -> None:
        self.controls["solution"].disabled = self._shown
        if self._shown:
            lines = "<br>".join(markup.html(line) for line in self.problem.worked)
            place = taught(self.problem)
            self._worked.value = (
                f'<div class="abh"><p class="iv-head">Worked out</p><p>{lines}</p>'
                f"<p>{place}</p></div>"
            )

    @property
    def _typed_texts(self) -> list[str]:
        return [field.value for field in self._fields]

    @property
    def answer(self) -> dict:
        if not any(self._typed_texts) and not self._shown:
            return {}
        return {
            "typed": self._typed_texts,
            "tries": self._tries,
            "shown": self._shown,
            "score": self._score,
        }

    def restore(self, answer: dict) -> None:
        if not answer:
            return
        for field, text in zip(self._fields, answer["typed"]):
            field.value = str(text)
        self._tries, self._shown = int(answer["tries"]), bool(answer["shown"])
        self._score = None if answer["score"] is None else float(answer["score"])
        self._show()

    @property
    def score(self) -> float | None:
        return self._score

    @property
    def keys(self) -> dict[str, Callable[[], object]]:
        return {"Ctrl+Enter": style.guarded(lambda: self.did(self.check), self.say)}

    @property
    def say_keys(self) -> str:
        return "Enter checks"

    @property
    def words(self) -> str:
        parts = [markup.plain(self.problem.prompt)]
        parts += [f"{label}: {field.value}" for label, field in zip(self.problem.labels,
                                                                   self._fields)]  # fmt: skip
        if self._shown:
            parts += [markup.plain(line) for line in self.problem.worked]
        return "\n".join(parts)
