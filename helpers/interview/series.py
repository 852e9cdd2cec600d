"""Panels of the interview on their own: a question, and series of computations and of kernels."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Sequence

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.interview import bank as bank_module
from helpers.interview import by_hand, debug, look, markup, panels
from helpers.interview.clock import ClockFace, Stopwatch
from helpers.interview.keyboard import Keyboard
from helpers.interview.panels import base, talk
from helpers.practice import style

_FIELD = "Say it aloud, or write it here (it is not kept)."


class Series:
    """One panel at a time, with Back and Next. What was entered in a panel stays there.

    controls : those of the panel, "back" and "next". state : {"at", "of", "done": how many have a
    score, "right": how many have the full score}. words : what is on show.
    """

    title = ""

    def __init__(self, makers: Sequence[Callable[[Callable], panels.Panel]], start: int = 0):
        self._makers = makers
        self._made: dict[int, panels.Panel] = {}
        self._at = start
        self._keyboard = Keyboard(self.title)
        self._head, self._hint, self._said = base.page(""), base.page(""), base.page("")
        self._body = widgets.VBox()
        self._back = self._button("Back", lambda: self.go(-1))
        self._next = self._button("Next", lambda: self.go(1))
        self._row = widgets.HBox([self._back, self._next]).add_class("iv-row")
        above, below = self._around()
        self.view = style.panel(
            look.sheet(look.PANELS),
            self._head,
            *above,
            self._body,
            *below,
            self._row,
            self._said,
            self._hint,
            self._keyboard,
        ).add_class("iv-panel")
        base.show(self._row, len(makers) > 1)
        self._show()

    def _around(self) -> tuple[list[widgets.Widget], list[widgets.Widget]]:
        """What is shown above and below the panel."""
        return [], []

    @property
    def panel(self) -> panels.Panel:
        """The panel on show."""
        if self._at not in self._made:
            self._made[self._at] = self._makers[self._at](self._changed)
        return self._made[self._at]

    def go(self, by: int) -> None:
        """Go so many panels forward, or back if negative; nothing beyond the ends."""
        self._at = max(0, min(self._at + by, len(self._makers) - 1))
        self._show()
        self._keyboard.focus(self.panel.focus or "panel")

    @property
    def controls(self) -> dict[str, widgets.Widget]:
        moves = {"back": self._back, "next": self._next} if len(self._makers) > 1 else {}
        return {**self.panel.controls, **moves}

    @property
    def state(self) -> dict:
        scores = [panel.score for panel in self._made.values() if panel.score is not None]
        return {
            "at": self._at,
            "of": len(self._makers),
            "done": len(scores),
            "right": sum(score == 1 for score in scores),
        }

    @property
    def words(self) -> str:
        return f"{self._heading}\n{self.panel.words}"

    @property
    def _heading(self) -> str:
        state = self.state
        if state["of"] == 1:
            return self.title
        done = f" · {state['right']} right at once" if state["done"] else ""
        return f"{self.title} · {state['at'] + 1} of {state['of']}{done}"

    @property
    def own_keys(self) -> dict[str, tuple[str, Callable[[], object]]]:
        """Keys besides the panel's: key → what it does, in words and as an action."""
        if len(self._makers) == 1:
            return {}
        return {"n": ("next", lambda: self.go(1)), "p": ("previous", lambda: self.go(-1))}

    def _changed(self) -> None:
        self._tell()

    def _show(self) -> None:
        self._body.children = [self.panel.view]
        self._back.disabled = self._at == 0
        self._next.disabled = self._at == len(self._makers) - 1
        self._tell()

    def _tell(self) -> None:
        self._head.value = base.title(self._heading)
        own = self.own_keys
        guarded = {key: style.guarded(action, self._say) for key, (_, action) in own.items()}
        self._keyboard.mean({**guarded, **self.panel.keys})
        said = [f"{key} {what}" for key, (what, _) in own.items()]
        self._hint.value = base.keys_line(self.panel.say_keys, *said, "Esc leaves a field")

    def _say(self, text: str) -> None:
        self._said.value = style.live(html.escape(text))

    def _button(self, description: str, action: Callable[[], object]) -> widgets.Button:
        button = widgets.Button(description=description)
        button.on_click(style.guarded(action, self._say))
        return button

    def _static(self) -> tuple[str, str]:
        """Words and HTML where there is no kernel: the same in every run."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include=None, exclude=None):
        words, page = self._static()
        return mimebundle(self.view, words, html=page)


class Ask(Series):
    """One question of the bank, to be answered aloud in a minute.

    controls : those of the panel, and "minute", which starts the clock, and everything anew if
    there is a score. Raises ValueError for an unknown id.
    """

    title = "Say it aloud"

    def __init__(self, id: str, now: Callable[[], float] = time.monotonic):
        self.question = bank_module.bank()[id]
        self._now = now
        self._watch = Stopwatch(now=now)
        super().__init__([lambda changed: panels.Talk(self.question, changed, field=_FIELD)])

    def _around(self):
        self._clock = ClockFace(self._times)
        self._minute = self._button("Start a minute", self.start)
        self._more, self._took = base.page(""), ""
        return [widgets.HBox([self._minute, self._clock]).add_class("iv-row")], [self._more]

    def start(self) -> None:
        """Start the minute; if there is a score already, begin anew."""
        if self.panel.score is not None:
            self._made.clear()
        self._watch = Stopwatch(now=self._now)
        self._watch.start()
        self._took = ""
        self._show()
        self._keyboard.focus()

    def _times(self) -> dict:
        left = 60 - self._watch.seconds
        return {"left": left, "spent": 0.0, "planned": 0.0, "running": self._watch.running}

    def _tell(self) -> None:
        revealed = self.panel.score is not None
        if revealed and self._watch.running:
            self._watch.stop()
            self._took = f"<p>It took you {self._watch.seconds:.0f} seconds.</p>"
        base.show(self._clock, self._watch.running)
        self._minute.description = "Again, in a minute" if revealed else "Start a minute"
        more = self._took + talk.leads_to(self.question) if revealed else ""
        self._more.value = f'<div class="abh">{more}</div>'
        self._clock.refresh()
        super()._tell()

    @property
    def own_keys(self) -> dict[str, tuple[str, Callable[[], object]]]:
        what = "begins anew" if self.panel.score is not None else "starts the minute"
        return {"m": (what, self.start)}

    @property
    def controls(self) -> dict[str, widgets.Widget]:
        return {**super().controls, "minute": self._minute}

    def _static(self) -> tuple[str, str]:
        question = self.question
        words = "\n".join(
            [
                f"“{markup.plain(question.prompt)}”",
                "A good answer has:",
                *(f"  {i}. {markup.plain(p)}" for i, p in enumerate(question.points, start=1)),
            ]
        )
        page = f"<p><strong>“{markup.html(question.prompt)}”</strong></p>\n" + style.folded(
            "A good answer", markup.bullets(question.points) + talk.model_answer(question)
        )
        return words, page


class ByHand(Series):
    """Computations by hand, one of each kind. seed : another one gives other numbers."""

    title = "By hand"

    def __init__(self, seed: int = 0):
        self.problems = [by_hand.make(kind, seed) for kind in by_hand.KINDS]
        super().__init__(
            [lambda changed, p=problem: panels.Compute(p, changed) for problem in self.problems]
        )

    def _static(self) -> tuple[str, str]:
        words = "\n".join(
            f"{i}. {markup.plain(problem.prompt)}{_in(problem.unit)}"
            for i, problem in enumerate(self.problems, start=1)
        )
        pages = [
            f"<p><strong>{i}.</strong> {markup.html(problem.prompt)}{_in(problem.unit)}</p>\n"
            + style.folded("Worked out", "<br>".join(map(markup.html, problem.worked)))
            for i, problem in enumerate(self.problems, start=1)
        ]
        return words, "\n<hr>\n".join(pages)


def _in(unit: str) -> str:
    return f" (In {unit}.)" if unit else ""


class DebugThis(Series):
    """Attention functions to diagnose, the simpler ones first; some of them are right."""

    title = "Read a kernel"

    def __init__(self):
        self.cases = debug.cases()
        super().__init__(
            [lambda changed, c=case: panels.ReadKernel(c, changed) for case in self.cases]
        )

    def _static(self) -> tuple[str, str]:
        words = "\n\n".join(
            f"{i}. {case.promise}\n{case.code}\n{case.symptom}"
            for i, case in enumerate(self.cases, start=1)
        )
        pages = [
            f"<p><strong>{i}.</strong> {style.rich(case.promise)}</p>\n"
            f"<pre><code>{html.escape(case.code)}</code></pre>\n<p>{style.rich(case.symptom)}</p>\n"
            + style.folded("What is wrong", _solved(case))
            for i, case in enumerate(self.cases, start=1)
        ]
        return words, "\n<hr>\n".join(pages)


def _solved(case: debug.Broken) -> str:
    right = next(option for option in case.question.options if option.right)
    fix = f"<pre><code>{html.escape(case.fix)}</code></pre>" if case.fix else ""
    return f"<p>{style.rich(right.text)} {style.rich(right.feedback)}</p>{fix}"
