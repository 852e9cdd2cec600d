"""Questions with options: `predict` shows one, `quiz` several. Every option has its own reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.practice import style

_LETTERS = "ABCDEFGH"


@dataclass(frozen=True)
class Option:
    """One answer to choose, and what is said to whoever chooses it."""

    text: str
    feedback: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A question with one right option.

    lines : numbered lines under the prompt, such as the steps of a proof.

    Raises ValueError unless there are 2 to 8 different options, exactly one of them right, each
    with feedback of its own.
    """

    id: str
    prompt: str
    options: tuple[Option, ...]
    lines: tuple[str, ...] = ()

    def __post_init__(self):
        texts = [option.text.strip() for option in self.options]
        feedbacks = [option.feedback.strip() for option in self.options]
        rights = sum(option.right for option in self.options)
        problems = [
            (not self.id or not self.prompt.strip(), "needs an id and a prompt"),
            (
                not 2 <= len(texts) <= len(_LETTERS),
                f"has {len(texts)} options; 2 to 8 are possible",
            ),
            (rights != 1, f"has {rights} right options; exactly 1 is needed"),
            ("" in texts or len(set(texts)) < len(texts), "has options that are empty or the same"),
            (
                "" in feedbacks or len(set(feedbacks)) < len(feedbacks),
                "has options without feedback of their own",
            ),
        ]
        for is_wrong, problem in problems:
            if is_wrong:
                raise ValueError(f"question {self.id!r} {problem}.")

    @property
    def lettered(self) -> list[tuple[str, Option]]:
        return list(zip(_LETTERS, self.options, strict=False))

    def text(self, heading: str) -> str:
        """The question and its options, without the answer."""
        lines = [f"  {i}. {style.plain(line)}" for i, line in enumerate(self.lines, start=1)]
        options = [f"  {letter}  {style.plain(option.text)}" for letter, option in self.lettered]
        return "\n".join([f"{heading} {style.plain(self.prompt)}", *lines, *options])

    def prompt_html(self, heading: str) -> str:
        """The question alone as HTML."""
        lines = "".join(f"<li>{style.rich(line)}</li>" for line in self.lines)
        return f"<p><strong>{style.rich(heading)}</strong> {style.rich(self.prompt)}</p>" + (
            f"\n<ol>{lines}</ol>" if lines else ""
        )

    def html(self, heading: str) -> str:
        """The same as HTML, with the answer folded away."""
        options = "".join(f"<li>{style.rich(option.text)}</li>" for _, option in self.lettered)
        answers = "".join(
            f"<li>{'✓ <strong>right</strong>' if option.right else '✗ no'}: "
            f"{style.rich(option.feedback)}</li>"
            for _, option in self.lettered
        )
        folded = style.folded("Answer", f'<ol type="A">{answers}</ol>')
        return f'{self.prompt_html(heading)}\n<ol type="A">{options}</ol>\n{folded}'


def collection(*questions: Question) -> tuple[Question, ...]:
    """The questions, once it is certain that no two share an id (ValueError)."""
    ids = [question.id for question in questions]
    twice = sorted({each for each in ids if ids.count(each) > 1})
    if twice:
        raise ValueError(f"questions share the id {', '.join(twice)}.")
    return questions


def show_options(
    question: Question, buttons: Mapping[str, widgets.Button], tried: Sequence[str]
) -> None:
    """Label a question's buttons (letter → button), and mark those that were tried."""
    for letter, option in question.lettered:
        button = buttons[letter]
        marks = {True: "✓ ", False: "✗ "}
        mark = marks[option.right] if letter in tried else ""
        button.description = f"{mark}{letter}   {style.plain(option.text).replace('`', '')}"
        style.mark(button, "abh-chosen-right", bool(mark) and option.right)
        style.mark(button, "abh-chosen-wrong", bool(mark) and not option.right)


class _Asked:
    """A question on the screen: a button for each option, and what is said to the last one chosen.

    `tried` holds the letters chosen so far, in order. Nothing is ever locked: one may try again.
    """

    def __init__(
        self, question: Question, heading: str, on_choice: Callable[[], None] = lambda: None
    ):
        self.question = question
        self.tried: list[str] = []
        self._heading = heading
        self._on_choice = on_choice
        self.buttons = {letter: self._button(letter) for letter, _ in question.lettered}
        self._feedback = widgets.HTML(style.live(""))
        self.view = widgets.VBox(
            [
                widgets.HTML(f'<div class="abh">{question.prompt_html(heading)}</div>'),
                *self.buttons.values(),
                self._feedback,
            ]
        )
        self._show()

    def _button(self, letter: str) -> widgets.Button:
        button = widgets.Button()
        button.add_class("abh-option")
        button.on_click(style.guarded(lambda: self.choose(letter), self._say))
        return button

    def choose(self, letter: str) -> None:
        """What a click on that option does."""
        self.tried.append(letter)
        self._show()
        self._on_choice()

    def restart(self) -> None:
        self.tried.clear()
        self._show()

    @property
    def chosen(self) -> Option | None:
        return dict(self.question.lettered)[self.tried[-1]] if self.tried else None

    @property
    def first_was_right(self) -> bool:
        return bool(self.tried) and dict(self.question.lettered)[self.tried[0]].right

    @property
    def said(self) -> str:
        """The feedback on the last choice, in words."""
        if self.chosen is None:
            return ""
        if self.chosen.right:
            return f"✓ {self.tried[-1]} is right. {self.chosen.feedback}"
        return f"✗ Not {self.tried[-1]}. {self.chosen.feedback} Try another one."

    def _show(self) -> None:
        show_options(self.question, self.buttons, self.tried)
        kind = "" if self.chosen is None else "yes" if self.chosen.right else "no"
        self._say(self.said, kind)

    def _say(self, words: str, kind: str = "") -> None:
        self._feedback.value = style.live(style.rich(words), kind)

    @property
    def words(self) -> str:
        return "\n".join(filter(None, [self.question.text(self._heading), self.said]))


class Prediction:
    """A question to answer before looking. Live: buttons; elsewhere: the answer folded away.

    controls : option letter → its button. state : {"tried": letters chosen so far, "right": whether
    the last one is}. words : everything on show, in words.
    """

    def __init__(self, question: Question):
        self.question = question
        self._heading = f"Predict {question.id}."
        self._asked = _Asked(question, self._heading)
        self.controls = self._asked.buttons
        self.view = style.panel(self._asked.view)

    @property
    def state(self) -> dict:
        chosen = self._asked.chosen
        return {"tried": list(self._asked.tried), "right": chosen is not None and chosen.right}

    @property
    def words(self) -> str:
        return self._asked.words

    def _repr_mimebundle_(self, include=None, exclude=None):
        return mimebundle(
            self.view, self.question.text(self._heading), html=self.question.html(self._heading)
        )


class Quiz:
    """Several questions with a score. The first answer to each counts; one may go on trying.

    controls : "question letter" (such as "2B") → its button, and "again". state : {"answered",
    "right" (at the first try), "questions"}. words : everything on show, in words.
    """

    def __init__(self, lesson: str, questions: tuple[Question, ...]):
        self.questions = questions
        self._title = f"Quiz on lesson {lesson}: {len(questions)} questions"
        self._asked = [
            _Asked(question, f"{number}.", self._show_score)
            for number, question in enumerate(questions, start=1)
        ]
        self._score = widgets.HTML()
        again = widgets.Button(description="Start again")
        again.on_click(style.guarded(self.restart, self._say))
        self.controls = {
            f"{number}{letter}": button
            for number, asked in enumerate(self._asked, start=1)
            for letter, button in asked.buttons.items()
        }
        self.controls["again"] = again
        self.view = style.panel(
            widgets.HTML(f'<div class="abh"><p class="abh-title">{self._title}</p></div>'),
            *(asked.view for asked in self._asked),
            self._score,
            widgets.HBox([again]),
        )
        for asked in self._asked:
            asked.view.add_class("abh-step")
        self._show_score()

    def restart(self) -> None:
        """What the button "Start again" does: forget every answer."""
        for asked in self._asked:
            asked.restart()
        self._show_score()

    @property
    def state(self) -> dict:
        return {
            "answered": sum(bool(asked.tried) for asked in self._asked),
            "right": sum(asked.first_was_right for asked in self._asked),
            "questions": len(self._asked),
        }

    @property
    def score(self) -> str:
        """The score in a sentence."""
        answered, right, questions = self.state.values()
        if not answered:
            return f"Score: nothing answered yet, {questions} to go."
        left = "All answered." if answered == questions else f"{questions - answered} to go."
        return f"Score: {right} of {answered} right at the first try. {left}"

    def _show_score(self) -> None:
        self._say(f"**{self.score}**")

    def _say(self, words: str) -> None:
        self._score.value = style.live(style.rich(words))

    @property
    def words(self) -> str:
        return "\n\n".join([self._title, *(asked.words for asked in self._asked), self.score])

    def _repr_mimebundle_(self, include=None, exclude=None):
        numbered = [(f"{i}.", question) for i, question in enumerate(self.questions, start=1)]
        words = "\n\n".join([self._title, *(question.text(head) for head, question in numbered)])
        pages = "\n<hr>\n".join(question.html(head) for head, question in numbered)
        return mimebundle(self.view, words, html=f"<p><strong>{self._title}</strong></p>\n{pages}")
