"""Questions to be answered aloud, and scored by whoever answered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import ipywidgets as widgets

from helpers.interview import bank as bank_module
from helpers.interview import markup
from helpers.interview.bank import Question
from helpers.interview.panels import base
from helpers.interview.panels.base import Panel
from helpers.practice import style

_FIELD = "Say it aloud, or write it here."


class Spoken(Panel):
    """Something to be answered aloud: a prompt, a field for whoever writes, and behind a button
    what one compares with.

    lead : what it is asked because of, in a sentence, or "". controls : "answer" (the field),
    "reveal".
    """

    def __init__(
        self,
        prompt: str,
        reveal: str,
        lead: str,
        changed: Callable[[], object],
        field: str = _FIELD,
    ):
        super().__init__(changed)
        self.prompt, self.lead = prompt, lead
        self._revealed = False
        notes = self.controls["answer"] = base.notes(field, style.guarded(changed, self.say))
        button = self.button("reveal", reveal, self.reveal)
        self._behind = widgets.VBox()
        above = [base.page(f'<p class="abh-quiet">{markup.html(lead)}</p>')] if lead else []
        self.view = widgets.VBox(
            [*above, base.prompt(prompt), notes, widgets.HBox([button]), self._behind]
        )

    @property
    def main(self) -> widgets.Button:
        return self.controls["reveal"]

    def reveal(self) -> None:
        """Show what one compares with; what was written stays."""
        self._revealed = True
        self._show()

    def _show(self) -> None:
        base.show(self._behind, self._revealed)
        base.show(self.controls["reveal"], not self._revealed)
        self._tell()

    @abstractmethod
    def _tell(self) -> None:
        """Say what the score is."""

    @property
    @abstractmethod
    def _judgement(self) -> dict:
        """How one's own answer was, as JSON."""

    @abstractmethod
    def _restore_judgement(self, answer: dict) -> None:
        """Put back what `_judgement` told."""

    @property
    def answer(self) -> dict:
        written = self.controls["answer"].value
        if not written and not self._revealed:
            return {}
        return {"written": written, "revealed": self._revealed, **self._judgement}

    def restore(self, answer: dict) -> None:
        if not answer:
            return
        self.controls["answer"].value = str(answer["written"])
        self._revealed = bool(answer["revealed"])
        self._restore_judgement(answer)
        self._show()

    @property
    def keys(self) -> dict[str, Callable[[], object]]:
        if self._revealed:
            return self._judging_keys
        reveal = style.guarded(lambda: self.did(self.reveal), self.say)
        return {" ": reveal, "Enter": reveal}

    @property
    @abstractmethod
    def _judging_keys(self) -> dict[str, Callable[[], object]]:
        """What keys do once the answer is shown."""

    @property
    def words(self) -> str:
        lines = [self.lead, self.prompt, *(self._compared if self._revealed else [])]
        return "\n".join(markup.plain(line) for line in lines if line)

    @property
    @abstractmethod
    def _compared(self) -> list[str]:
        """What one compares with, in lines."""


class Talk(Spoken):
    """A question. After the answer is shown one ticks the points that one's own had.

    controls : also "point 1", "point 2", …
    """

    what_is_missing = "Show the points and tick yours first, or skip this one."

    def __init__(
        self,
        question: Question,
        changed: Callable[[], object] = lambda: None,
        lead: str = "",
        field: str = _FIELD,
    ):
        super().__init__(question.prompt, "Show what a good answer has", lead, changed, field)
        self.question = question
        self._points = []
        for number, point in enumerate(question.points, start=1):
            box = widgets.Checkbox(description=f"{number}.  {markup.plain(point)}", indent=False)
            box.add_class("iv-point")
            box.observe(style.guarded(self._ticked, self.say), "value")
            self.controls[f"point {number}"] = box
            self._points.append(box)
        heading = base.page('<p class="iv-head">Tick what your answer had</p>')
        self._behind.children = [
            heading, *self._points, self._said, base.page(model_answer(question)),
        ]  # fmt: skip
        self._show()

    def tick(self, number: int) -> None:
        """Tick point `number` (from 1), or take the tick away."""
        box = self._points[number - 1]
        box.value = not box.value

    def _ticked(self) -> None:
        self._tell()
        self.changed()

    def _tell(self) -> None:
        count = len(self.ticked)
        self.say(f"{count} of {len(self._points)} points." if self._revealed else "")

    @property
    def ticked(self) -> list[int]:
        """The points that the answer had, from 0."""
        return [i for i, box in enumerate(self._points) if box.value]

    @property
    def _judgement(self) -> dict:
        return {"ticked": self.ticked}

    def _restore_judgement(self, answer: dict) -> None:
        for number in answer["ticked"]:
            if 0 <= int(number) < len(self._points):  # the bank may have fewer points now
                self._points[int(number)].value = True

    @property
    def score(self) -> float | None:
        return len(self.ticked) / len(self._points) if self._revealed else None

    @property
    def _judging_keys(self) -> dict[str, Callable[[], object]]:
        return {
            str(number): style.guarded(lambda n=number: self.tick(n), self.say)
            for number in range(1, len(self._points) + 1)
        }

    @property
    def say_keys(self) -> str:
        if not self._revealed:
            return "Space shows the points, t writes"
        return f"1 to {len(self._points)} tick a point"

    @property
    def _compared(self) -> list[str]:
        points = [
            f"{'✓' if box.value else '·'} {i}  {point}"
            for i, (box, point) in enumerate(zip(self._points, self.question.points), start=1)
        ]
        return [*points, self.question.answer]


def model_answer(question: Question) -> str:
    """The sixty-second answer, what weak answers say, and where it is taught, as HTML."""
    weak = "".join(
        f"<li>“{markup.html(each.says)}” <span class='abh-quiet'>{markup.html(each.because)}"
        "</span></li>"
        for each in question.weak
    )
    sources = "; ".join(markup.html(each) for each in question.sources)
    return (
        '<p class="iv-head">In sixty seconds</p>'
        f'<p class="iv-answer">{markup.html(question.answer)}</p>'
        f'<p class="iv-head">What weak answers say</p><ul>{weak}</ul>'
        f"<p>{where(question.place, question.link)}"
        + (f' <span class="abh-quiet">Sources: {sources}.</span>' if sources else "")
        + "</p>"
    )


def leads_to(question: Question) -> str:
    """The follow-ups with their answers to unfold, as HTML."""
    return '<p class="iv-head">It leads to</p>' + "".join(map(_follow_up, question.follow_ups))


def _follow_up(each: bank_module.FollowUp) -> str:
    to = bank_module.bank()[each.to] if each.to else each
    ask = to.prompt if each.to else each.ask
    answer = f"<p>{markup.html(to.answer)}</p>"
    return f"<details><summary>{markup.html(ask)}</summary>{answer}</details>"


def where(place: str, link: str) -> str:
    """A link to the section that teaches something, as HTML."""
    if not link:
        return f"<span>{markup.html(place)}</span>"
    return f'<a href="{link}" target="_blank">{markup.html(place)}</a>'


def taught(item) -> str:
    """The same for whatever has a lesson and a section."""
    place = bank_module.place(item.lesson, item.section)
    return where(place, bank_module.link(item.lesson, item.section))


class FollowUp(Spoken):
    """A follow-up. After the answer is shown one says how one's own was.

    controls : also "missed", "partly", "had it".
    """

    GRADES = (("missed", 0.0), ("partly", 0.5), ("had it", 1.0))
    what_is_missing = "Show the answer and say how yours was, or skip this one."

    def __init__(
        self,
        question: Question,
        number: int,
        changed: Callable[[], object] = lambda: None,
        lead: str = "",
    ):
        follow_up = question.follow_ups[number]
        super().__init__(follow_up.ask, "Show an answer", lead, changed)
        self._answer = follow_up.answer
        self._grade = ""
        grades = [
            self.button(name, name.capitalize(), lambda name=name: self.grade(name))
            for name, _ in self.GRADES
        ]
        answer = markup.html(self._answer)
        self._behind.children = [
            base.page(f'<p class="iv-head">An answer</p><p class="iv-answer">{answer}</p>'),
            widgets.HBox(grades).add_class("iv-row"),
        ]
        self.view.children = [*self.view.children, self._said]
        self._show()

    def grade(self, name: str) -> None:
        """Say how one's own answer was: "missed", "partly" or "had it"."""
        self._grade = name
        self._show()

    def _tell(self) -> None:
        for name, _ in self.GRADES:
            chosen = name == self._grade
            self.controls[name].description = f"{'✓ ' if chosen else ''}{name.capitalize()}"
            style.mark(self.controls[name], "abh-chosen-right", chosen)
        self.say(f"Noted: {self._grade}." if self._grade else "")

    @property
    def _judgement(self) -> dict:
        return {"grade": self._grade}

    def _restore_judgement(self, answer: dict) -> None:
        self._grade = answer["grade"] if answer["grade"] in dict(self.GRADES) else ""

    @property
    def score(self) -> float | None:
        return dict(self.GRADES).get(self._grade)

    @property
    def _judging_keys(self) -> dict[str, Callable[[], object]]:
        return {
            str(i): style.guarded(lambda n=name: self.did(lambda: self.grade(n)), self.say)
            for i, (name, _) in enumerate(self.GRADES, start=1)
        }

    @property
    def say_keys(self) -> str:
        if not self._revealed:
            return "Space shows an answer, t writes"
        return "1 missed, 2 partly, 3 had it"

    @property
    def _compared(self) -> list[str]:
        return [self._answer]
