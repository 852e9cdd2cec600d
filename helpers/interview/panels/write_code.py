"""A function to write at the whiteboard, and its checker."""

from __future__ import annotations

import html
import linecache
import math
import re
from collections.abc import Callable

import ipywidgets as widgets
import numpy as np

from helpers import practice, watchdog
from helpers.interview.panels import base
from helpers.interview.panels.base import Panel
from helpers.practice import style
from helpers.practice.task import Task

_HINT, _FAILED = 0.15, 0.1  # what a hint costs, and a check that was not passed


class WriteCode(Panel):
    """An exercise of `helpers.practice`, written in a field of the panel.

    controls : "code" (the field), "run", "hint", "solution". A function that passes the first
    check is worth 1; a check that it failed and a hint cost a little, but never more than half. One
    that does not pass, or passes after the solution, is worth nothing.
    """

    focus = ".iv-code textarea"
    what_is_missing = "Run the checker on your code first, or skip this one."

    def __init__(self, task: Task, changed: Callable[[], object] = lambda: None):
        super().__init__(changed)
        self.task = task
        self.stub = stub(task)
        self._hints = self._failed = 0
        self._solution_shown = False
        self._score: float | None = None
        field = widgets.Textarea(value=self.stub, rows=9)
        field.add_class("iv-code")
        field.tooltip = f"Your code of {task.solution.__name__}"
        field.observe(style.guarded(changed, self.say), "value")
        self.controls["code"] = field
        row = widgets.HBox(
            [
                self.button("run", "Run the checker", self.run),
                self.button("hint", "", self.hint),
                self.button("solution", "Show a solution", self.show_solution),
            ]
        ).add_class("iv-row")
        self._verdict, self._help = base.page(""), base.page("")
        lead = base.page(
            f"<p>{style.rich(task.statement)}</p>"
            f'<p class="abh-quiet"><code>{html.escape(task.signature)}</code></p>'
        )
        self.view = widgets.VBox(
            [
                base.prompt(f"Write `{task.solution.__name__}`"),
                lead,
                field,
                row,
                self._said,
                self._verdict,
                self._help,
            ]
        )
        self._show()

    @property
    def is_done(self) -> bool:
        return bool(self._score) or self._solution_shown

    @property
    def main(self) -> widgets.Button:
        return self.controls["run"]

    def run(self) -> None:
        """Run the code, and check the function that it defines."""
        self.say("Checking …")
        self._verdict.value = ""
        fn = self._function()
        if fn is None:
            return
        verdict = practice.check(self.task.id, fn)
        self._verdict.value = verdict._repr_mimebundle_()["text/html"]
        self.say("")
        if self._score:
            return  # what passed once has passed
        if verdict.passed and not self._solution_shown:
            self._score = max(0.5, 1.0 - _HINT * self._hints - _FAILED * self._failed)
            if self._score < 1:
                self.say(f"Worth {self._score:.0%}, after {self._before}.")
        elif verdict.attempted:
            self._failed += not verdict.passed
            self._score = 0.0

    @property
    def _before(self) -> str:
        """Failed checks and hints, in words."""
        counts = (self._failed, "failed check"), (self._hints, "hint")
        return " and ".join(f"{n} {what}{'s' * (n > 1)}" for n, what in counts if n)

    def _function(self) -> Callable | None:
        """The function that the code defines; None after saying why there is none."""
        name = self.task.solution.__name__
        source, file = self.controls["code"].value, f"<your {name}>"
        # So that an error can show its line, as it would in a cell.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        space: dict[str, object] = {"np": np, "numpy": np, "math": math, "__name__": "whiteboard"}
        try:
            code = compile(source, file, "exec")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            line = getattr(error, "lineno", None)
            where = f" in line {line}" if line else ""
            self.say(f"Python cannot read it{where}: {getattr(error, 'msg', None) or error}.", "no")
            return None
        outcome = watchdog.run(lambda: exec(code, space))
        if outcome.ended == "raised":
            self.say(f"It stops before the function is there: {outcome.fault}", "no")
        elif not outcome.in_time:
            self.say("It does not finish, before the function is even called.", "no")
        elif not callable(space.get(name)):
            self.say(f"There is no function `{name}` in it: keep the first line as it was.", "no")
        else:
            return space[name]
        return None

    def hint(self) -> None:
        """Show one more hint."""
        self._hints = min(self._hints + 1, len(self.task.hints))
        self._show()

    def show_solution(self) -> None:
        """Show a solution; what passes from now on counts nothing."""
        self._solution_shown = True
        if self._score is None:
            self._score = 0.0
        self._show()

    def _show(self) -> None:
        count = len(self.task.hints)
        button = self.controls["hint"]
        button.description = f"Hint {min(self._hints + 1, count)} of {count}"
        button.disabled = self._hints == count
        self.controls["solution"].disabled = self._solution_shown
        shown = [
            f"<p>Hint {i}: {style.rich(hint)}</p>"
            for i, hint in enumerate(self.task.hints[: self._hints], start=1)
        ]
        if self._solution_shown:
            source = html.escape(self.task.source)
            shown += ['<p class="iv-head">A solution</p>', f"<pre><code>{source}</code></pre>"]
        self._help.value = f'<div class="abh">{"".join(shown)}</div>'

    @property
    def answer(self) -> dict:
        code = self.controls["code"].value
        untouched = code == self.stub and not (self._hints or self._failed or self._solution_shown)
        if untouched and self._score is None:
            return {}
        return {
            "code": code,
            "hints": self._hints,
            "failed": self._failed,
            "solution": self._solution_shown,
            "score": self._score,
        }

    def restore(self, answer: dict) -> None:
        if not answer:
            return
        self.controls["code"].value = str(answer["code"])
        self._hints = max(0, min(int(answer["hints"]), len(self.task.hints)))
        self._failed = max(0, int(answer["failed"]))
        self._solution_shown = bool(answer["solution"])
        self._score = None if answer["score"] is None else float(answer["score"])
        self._show()

    @property
    def score(self) -> float | None:
        return self._score

    @property
    def keys(self) -> dict[str, Callable[[], object]]:
        actions = {"Ctrl+Enter": self.run, "r": self.run, "h": self.hint}
        return {
            key: style.guarded(lambda each=action: self.did(each), self.say)
            for key, action in actions.items()
        }

    @property
    def say_keys(self) -> str:
        return "Ctrl+Enter or r runs the checker, h gives a hint"

    @property
    def words(self) -> str:
        return "\n".join([self.task.statement, self.task.signature, self.controls["code"].value])


def stub(task: Task) -> str:
    """The first line of the function, with the shapes as a comment."""
    shapes = re.sub(r"^\w+\([^)]*\):?\s*", "", task.signature)
    return f"def {task.solution.__name__}({', '.join(task.names)}):\n    # {shapes}\n    "
