"""Flashcards on the screen: the question, the answer, how it went.

One panel with a card in it. A row of buttons stands between question and answer and keeps its
place: first one that shows the answer, then the four grades. All of it works by key alone.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from functools import partial

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.interview import look, markup
from helpers.interview.bank import LEVELS
from helpers.interview.deck import (
    GRADES,
    NEW_PER_DAY,
    SOON,
    Card,
    Deck,
    cards,
    mixed,
    span,
)
from helpers.interview.keyboard import Keyboard
from helpers.practice import style

_MORE = 5  # new cards beyond the day's limit, when the reader asks for them
_SAMPLES = 3
_DOUBLE = timedelta(seconds=0.4)  # within it, a second click belongs to the first
_KEYS = (
    "<kbd>Space</kbd> shows the answer, <kbd>1</kbd> to <kbd>4</kbd> say how it went, "
    "<kbd>u</kbd> takes the last grade back. Click beside a button, or reach the panel with "
    "<kbd>Tab</kbd>, to give it the keys."
)


class Flashcards:
    """The question bank as flashcards that come back when they are about to be forgotten.

    levels, topics : which cards; all topics if none is named. new_per_day : how many may be met
    for the first time in a day.

    controls : name → widget: "show", "again", "hard", "good", "easy", "undo", "retry", "soon",
    "more", "topic", "level". state : {"card" (id or None), "side" ("front", "back", "end"), "due",
    "new", "done", "unsaved"}. words : everything on show, in words. deck : the cards and what was
    done with them. `press(key)` does what that key does.

    Raises ValueError for a level or topic that does not exist.
    """

    def __init__(
        self,
        levels: Iterable[str] = LEVELS,
        topics: Iterable[str] = (),
        *,
        new_per_day: int = NEW_PER_DAY,
        deck: Deck | None = None,
    ):
        self.deck = deck or Deck(cards(levels, topics), new_per_day=new_per_day)
        self._card: Card | None = None
        self._side = "end"
        self._early = False  # cards that come back soon are taken at once
        self._said = ""
        self._shown_at: datetime = self.deck.now()
        self._clicked_at = self._shown_at - _DOUBLE
        self._make_widgets()
        self._go_on()

    # --- What buttons and keys do ---

    def show(self) -> None:
        """Turn the card over."""
        if self._side == "front":
            self._side = "back"
            self._show()

    def grade(self, grade: int) -> None:
        """Say how it went, 1 to 4, and go on to the next card."""
        if self._side != "back":
            return
        seconds = (self.deck.now() - self._shown_at).total_seconds()
        time = self.deck.grade(self._card, grade, seconds)
        self._said = f"{GRADES[grade]}: that card comes back in {span(time)}."
        self._go_on()

    def undo(self) -> None:
        """Take back the last grade; its card is on show again, with its answer."""
        if (card := self.deck.undo()) is None:
            self._said = "There is no grade of this sitting to take back."
            return self._show()
        self._said = "The last grade is taken back. How did it go?"
        return self._turn_to(card, "back")

    def retry(self) -> None:
        """Try again to save what could not be saved."""
        if self.deck.save():
            self._said = "Everything is saved now."
        self._show()

    def take_soon(self) -> None:
        """At the end: look again what is due, and take early what comes back within minutes."""
        self._early = True
        self.deck.save()  # which reads first, and mends a file that somebody has replaced
        self._said = "" if self.deck.due() or self.deck.soon() else "Nothing is due yet."
        self._go_on()

    def take_more(self) -> None:
        """At the end: meet a few new cards beyond the limit of the day."""
        self.deck.allow_more(_MORE)
        self._said = ""
        self._go_on()

    def press(self, key: str) -> None:
        """What that key does now."""
        self._keyboard.press(key)

    def _clicked(self, action: Callable[[], object], _button=None) -> None:
        """A click in the bar, where each click puts other buttons under the pointer.

        The second click of a double click was not meant for these: it counts for nothing.
        """
        since = self.deck.now() - self._clicked_at
        if not timedelta() <= since < _DOUBLE:  # before it, if the clock was set back
            action()
            self._clicked_at = self.deck.now()

    def _choose(self, _change=None) -> None:
        topic, level = self.controls["topic"].value, self.controls["level"].value
        self.deck.chosen = [
            card
            for card in self.deck.cards
            if topic in ("", card.topic) and level in ("", card.level)
        ]
        self._said = ""
        if self._card not in self.deck.chosen:
            self._go_on()
        else:
            self._show()

    def _go_on(self) -> None:
        card = self.deck.next()
        if card is None and self._early:
            card = next(iter(self.deck.soon()), None)
        self._turn_to(card, "end" if card is None else "front")

    def _turn_to(self, card: Card | None, side: str) -> None:
        self._early = self._early and card is not None
        self._card, self._side = card, side
        self._shown_at = self.deck.now()
        self._show()
        self._keyboard.reveal()

    # --- The widgets ---

    def _make_widgets(self) -> None:
        self._progress, self._last, self._trouble, self._head, self._foot, self._spoken = (
            widgets.HTML() for _ in range(6)
        )
        self._front, self._back = widgets.HTMLMath(), widgets.HTMLMath()
        self.controls = {
            "show": widgets.Button(description="Show the answer\nSpace"),
            **{
                name.lower(): widgets.Button().add_class("iv-grade").add_class(f"iv-grade-{grade}")
                for grade, name in GRADES.items()
            },
            "soon": widgets.Button(),
            "more": widgets.Button(),
            "undo": widgets.Button(description="Undo (u)", tooltip="Take the last grade back"),
            "retry": widgets.Button(description="Try again"),
            "topic": self._filter("Topic", "All topics", _topics(self.deck.cards)),
            "level": self._filter("Level", "All levels", _levels(self.deck.cards)),
        }
        actions = {
            "show": self.show,
            "undo": self.undo,
            "retry": self.retry,
            "soon": self.take_soon,
            "more": self.take_more,
            **{name.lower(): partial(self.grade, grade) for grade, name in GRADES.items()},
        }
        self._actions = {name: style.guarded(do, self._failed) for name, do in actions.items()}
        in_bar = [name for name in actions if name not in ("undo", "retry")]
        for name, action in self._actions.items():
            click = partial(self._clicked, action) if name in in_bar else action
            self.controls[name].on_click(click)
        self._keyboard = Keyboard("Flashcards")
        bar = widgets.HBox([self.controls[name] for name in in_bar]).add_class("iv-bar")
        top = widgets.HBox([self._progress, self.controls["topic"], self.controls["level"]])
        said = widgets.HBox([self._last, self.controls["undo"]]).add_class("iv-said")
        self._trouble_row = widgets.HBox([self._trouble, self.controls["retry"]])
        self._link = look.lesson_link()
        card = widgets.VBox([self._head, self._front, bar, self._back, self._link])
        card.add_class("iv-card")
        for row in (top, said, self._trouble_row):
            row.add_class("iv-row")
        self.view = style.panel(
            look.sheet(look.CARDS),
            top,
            said,
            self._trouble_row,
            card,
            self._foot,
            self._spoken,
            self._keyboard,
        ).add_class("iv-cards")

    def _filter(self, name: str, every: str, options: list[tuple[str, str]]) -> widgets.Dropdown:
        choice = widgets.Dropdown(description=name, options=[(every, ""), *options])
        choice.observe(style.guarded(self._choose, self._failed), "value")
        return choice

    def _failed(self, words: str) -> None:
        self._trouble.value = style.live(style.rich(words), "no")
        self._trouble_row.layout.display = ""

    # --- What is on show ---

    def _show(self) -> None:
        keys = self._keys
        # First of all, so that a key pressed at what is on show already means it.
        self._keyboard.mean({key: self._actions[name] for key, name in keys.items()})
        self._show_around()
        self._show_card()
        self._show_buttons(keys.values())
        self._spoken.value = (
            f'<div class="iv-spoken" role="status">{html.escape(self._speech)}</div>'
        )

    def _show_around(self) -> None:
        self._progress.value = f'<div class="abh"><strong>{self._progress_words}</strong></div>'
        self._last.value = f'<div class="abh">{html.escape(self._said)}</div>'
        trouble = self._trouble_words
        self._trouble.value = style.live(html.escape(trouble), "no") if trouble else ""
        self._trouble_row.layout.display = "" if trouble else "none"
        self.controls["retry"].layout.display = "" if self.deck.problem else "none"
        self._foot.value = (
            f'<div class="abh iv-foot">{_KEYS}<br>'
            f"Progress is kept in {html.escape(str(self.deck.path))}</div>"
        )

    def _show_card(self) -> None:
        card, back = self._card, ""
        if card is None:
            head, front = "", "".join(f"<p>{html.escape(line)}</p>" for line in self._end_lines)
        else:
            head = f"<span>{html.escape(card.title)}</span><span>{card.level}</span>"
            front = f"<p>{markup.html(card.front)}</p>"
            short = "" if card.points else " iv-short"
            back = f'<div class="abh iv-back{short}">{_back_html(card)}</div>'
        self._head.value = f'<div class="iv-head">{head or "&nbsp;"}</div>'
        self._front.value = f'<div class="abh iv-front"><div>{front}</div></div>'
        turned = self._side == "back"
        self._back.value = back if turned else ""
        self._link.layout.display = "" if turned and card.link else "none"
        if turned:
            look.point(self._link, card.link, card.place)

    @property
    def _keys(self) -> dict[str, str]:
        """Key → the name of the button that it presses now."""
        keys = {"u": "undo"} if self.deck.done else {}
        if self._side == "front":
            return keys | {" ": "show", "Enter": "show"}
        if self._side == "back":
            return keys | {str(grade): name.lower() for grade, name in GRADES.items()}
        if self.deck.next_due() is not None:
            keys |= {" ": "soon", "Enter": "soon"}
        return keys | ({"n": "more"} if self.deck.unmet() else {})

    def _show_buttons(self, active: Collection[str]) -> None:
        controls = self.controls
        if self._side == "back":
            for grade, time in self.deck.preview(self._card).items():
                name = GRADES[grade]
                controls[name.lower()].description = f"{grade}  {name}\n{span(time)}"
        if self._side == "end":
            coming, more = len(self.deck.soon()), min(_MORE, len(self.deck.unmet()))
            soon = f"Go on with {_number(coming, 'card')}" if coming else "Look again"
            controls["soon"].description = f"{soon}\nSpace"
            controls["more"].description = f"{more} more new {_plural(more, 'card')}\nn"
        for name in ("show", *(each.lower() for each in GRADES.values()), "soon", "more"):
            controls[name].disabled = name not in active
            controls[name].layout.display = "" if name in active else "none"
        controls["undo"].disabled = "undo" not in active

    @property
    def _progress_words(self) -> str:
        counts = self.deck.counts()
        return f"{counts.due} due, {counts.new} new today, {self.deck.done} done in this sitting"

    @property
    def _trouble_words(self) -> str:
        lines = list(self.deck.notices)
        if self.deck.problem and self.deck.unsaved:
            grades = _number(self.deck.unsaved, "grade")
            lines.append(f"Not saved yet, and kept here: {grades}. {self.deck.problem}")
        elif self.deck.problem:
            lines.append(self.deck.problem)
        return " ".join(lines)

    @property
    def _end_lines(self) -> list[str]:
        """What stands on the card when there is none to ask."""
        deck = self.deck
        if not deck.chosen:
            return ["No card has this topic at this level. Choose another one above."]
        lines = ["Done for now."]
        if deck.done:
            done = _number(deck.done, "grade")
            lines = [f"Done for now: {done} in this sitting, {deck.good} of them Good or Easy."]
        if (due := deck.next_due()) is not None:
            wait = due - deck.now()
            when = f"in {span(wait)}" if due > deck.now() else "now"
            if wait > SOON:
                when += f", {_calendar(due)}"
            lines.append(f"The next one is due {when}.")
        return lines

    @property
    def state(self) -> dict:
        counts = self.deck.counts()
        return {
            "card": None if self._card is None else self._card.id,
            "side": self._side,
            "due": counts.due,
            "new": counts.new,
            "done": self.deck.done,
            "unsaved": self.deck.unsaved,
        }

    @property
    def _speech(self) -> str:
        """What a screen reader says when something has changed."""
        if self._card is None:
            return " ".join([self._said, *self._end_lines]).strip()
        if self._side == "back":
            return f"Answer: {markup.plain(' '.join(self._card.points) or self._card.answer)}"
        return f"{self._said} {markup.plain(self._card.front)}".strip()

    @property
    def words(self) -> str:
        lines = [self._progress_words, self._said, self._trouble_words]
        if self._card is None:
            lines += self._end_lines
        else:
            lines += [f"{self._card.title}, {self._card.level}", markup.plain(self._card.front)]
        if self._side == "back":
            lines.append(_back_text(self._card))
        shown = [
            control.description.replace("\n", ": ")
            for control in self.controls.values()
            if isinstance(control, widgets.Button)
            and not control.disabled
            and control.layout.display != "none"
        ]
        return "\n".join(filter(None, [*lines, " | ".join(shown)]))

    # --- Without a kernel ---

    def _repr_mimebundle_(self, include=None, exclude=None):
        """The static forms know the cards only, never the reader's progress."""
        every = self.deck.cards
        samples = mixed(every)[:_SAMPLES]
        title = f"{_number(len(every), 'flashcard')} on {_number(len(_topics(every)), 'topic')}"
        rest = "Where this notebook runs, the cards come back when they are about to be forgotten."
        text = [f"{title}. {rest}", *(f"Such as: {markup.plain(card.front)}" for card in samples)]
        page = [f"<p><strong>{title}.</strong> {rest}</p>"]
        page += [
            f"<details><summary>{html.escape(markup.plain(card.front), quote=False)}</summary>\n"
            f"{_back_html(card, _static)}\n<p>{html.escape(card.place)}</p>\n</details>"
            for card in samples
        ]
        return mimebundle(self.view, "\n".join(text), html="\n".join(page))


def _topics(every: Iterable[Card]) -> list[tuple[str, str]]:
    """(title, id) of each topic among these cards."""
    return list({card.topic: (card.title, card.topic) for card in every}.values())


def _levels(every: Iterable[Card]) -> list[tuple[str, str]]:
    found = {card.level for card in every}
    return [(level, level) for level in LEVELS if level in found]


# --- The back of a card ---


def _static(text: str) -> str:
    """For viewers that set no formulas in outputs."""
    return html.escape(markup.plain(text), quote=False)


def _back_html(card: Card, form=markup.html) -> str:
    parts = []
    if card.points:
        points = "".join(f"<li>{form(point)}</li>" for point in card.points)
        parts += ["<h4>A good answer has</h4>", f"<ol>{points}</ol>"]
        parts += ["<h4>In sixty seconds</h4>"]
    parts += [f"<p>{form(paragraph)}</p>" for paragraph in card.answer.split("\n\n")]
    if card.weak:
        parts.append("<h4>What weak answers say</h4>")
        parts += [
            f'<p><span class="iv-says">“{form(weak.says)}”</span> {form(weak.because)}</p>'
            for weak in card.weak
        ]
    return "\n".join(parts)


def _back_text(card: Card) -> str:
    lines = []
    if card.points:
        lines.append("A good answer has:")
        lines += [f"{i}. {markup.plain(point)}" for i, point in enumerate(card.points, start=1)]
        lines.append("In sixty seconds:")
    lines.append(markup.plain(card.answer))
    lines += [
        f"What weak answers say: “{markup.plain(weak.says)}” {markup.plain(weak.because)}"
        for weak in card.weak
    ]
    if card.place:
        lines.append(f"Taught in {card.place}.")
    return "\n".join(lines)


# --- Words ---


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _number(number: int, noun: str) -> str:
    return f"{number} {_plural(number, noun)}"


def _calendar(moment: datetime) -> str:
    """The reader's own date and time: "on Friday 3 May at 14:05"."""
    local = moment.astimezone()
    return f"on {local:%A} {local.day} {local:%B} at {local:%H:%M}"
