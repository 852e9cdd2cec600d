"""What all panels have in common: what is on them, what was entered, and what it is worth."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable

import ipywidgets as widgets

from helpers.interview import markup
from helpers.practice import style


class Panel(ABC):
    """One step.

    controls : name → widget. changed : called after everything that the reader enters, so that it
    can be kept. `focus` is the CSS selector of what should have the keyboard first, "" for the
    panel itself.
    """

    focus = ""
    what_is_missing = "There is no score yet. Skip leaves it open."

    def __init__(self, changed: Callable[[], object] = lambda: None):
        self.changed = changed
        self.controls: dict[str, widgets.Widget] = {}
        self._said = widgets.HTMLMath(style.live(""))

    # --- What a kind of panel says of itself ---

    view: widgets.Widget

    @property
    @abstractmethod
    def answer(self) -> dict:
        """Everything that was entered, as JSON; {} while there is nothing."""

    @abstractmethod
    def restore(self, answer: dict) -> None:
        """Put back what `answer` told. Raises KeyError, TypeError, ValueError if it never did."""

    @property
    @abstractmethod
    def score(self) -> float | None:
        """0 to 1; None as long as there is none."""

    @property
    @abstractmethod
    def keys(self) -> dict[str, Callable[[], object]]:
        """What keys do at the moment."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What is asked, and what is on show."""

    @property
    def say_keys(self) -> str:
        """The keys of the moment, for the line under the panel."""
        return ""

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to gain here."""
        return self.score is not None

    @property
    @abstractmethod
    def main(self) -> widgets.Button:
        """The button that leads to a score."""

    # --- What they are built from ---

    def button(self, name: str, description: str, action: Callable[[], object]) -> widgets.Button:
        """A button called `name` among the controls."""
        button = widgets.Button(description=description)
        button.on_click(style.guarded(lambda: self.did(action), self.say))
        self.controls[name] = button
        return button

    def did(self, action: Callable[[], object]) -> None:
        """Do what a control or a key asks for, and tell whoever keeps it."""
        action()
        self.changed()

    def say(self, text: str, kind: str = "") -> None:
        """Say something under the panel; a screen reader speaks it. kind : "yes", "no" or ""."""
        self._said.value = style.live(markup.html(text), kind) if text else style.live("")


def prompt(text: str) -> widgets.HTMLMath:
    """A question in large type."""
    paragraphs = "".join(f"<p>{markup.html(part)}</p>" for part in text.split("\n\n"))
    return widgets.HTMLMath(f'<div class="abh iv-prompt">{paragraphs}</div>')


def page(content: str) -> widgets.HTMLMath:
    """HTML in the common style; formulas between dollars are set."""
    return widgets.HTMLMath(f'<div class="abh">{content}</div>')


def title(text: str) -> str:
    """The line above a panel, as HTML; text : without signs."""
    return f'<div class="abh"><p class="abh-title">{html.escape(text)}</p></div>'


def keys_line(*keys: str) -> str:
    """The line under a panel that says what keys do, as HTML; empty ones are left out."""
    said = html.escape(", ".join(filter(None, keys)))
    return f'<div class="abh"><p class="abh-quiet iv-keys">Keys: {said}</p></div>'


def notes(label: str, changed: Callable[..., object], rows: int = 3) -> widgets.Textarea:
    """A field to write in; every key that is typed is told at once. changed : an observer."""
    field = widgets.Textarea(placeholder=label, rows=rows)
    field.add_class("iv-notes")
    field.tooltip = label
    field.observe(changed, "value")
    return field


def show(widget: widgets.Widget, shown: bool) -> None:
    """Show a widget, or take it out of the page."""
    widget.layout.display = None if shown else "none"
