"""What every explorer is made of: controls, a picture, words.

A control changes, the state is read anew from all controls, the picture is drawn from the state
as an SVG string, and one `HTML` widget takes the string. The figure itself needs no JavaScript and
no cell output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any

import ipywidgets as widgets

from helpers.explorers.access import Access
from helpers.explorers.live import mimebundle

STYLE = """<style>
.ex-root { max-width: 970px; overflow-x: auto; overflow-y: hidden; }
.ex-picture svg { min-width: 620px; }
.ex-picture > .widget-html-content { line-height: normal; }
.ex-words { margin: 2px 0 8px; }
.ex-words .ex-said { font-size: 13px; line-height: 1.45;
  color: var(--jp-content-font-color1, #1f2430); }
.ex-words .ex-refused { color: var(--jp-error-color0, #b3261e); font-weight: 600; }
.ex-bar { flex-flow: row wrap; align-items: center; gap: 4px 14px; overflow: visible; }
.ex-bar .widget-toggle-buttons { display: flex; width: auto; align-items: center; }
.ex-bar .widget-toggle-button.mod-active, .ex-bar .widget-toggle-button.mod-active:hover {
  background: #543894; color: #ffffff; box-shadow: none; }
.ex-bar .widget-toggle-buttons .widget-label, .ex-bar .widget-inline-hbox > .widget-label {
  width: auto; min-width: 0; margin-right: 8px; }
.ex-bar .widget-toggle-button { width: auto; min-width: 44px; padding: 0 12px; }
.ex-bar .jupyter-button { min-width: 36px; }
.ex-bar .jupyter-button:focus-visible, .ex-bar .noUi-handle:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #1f7fbf); outline-offset: 1px; }
</style>"""


class Explorer(ABC):
    """A live figure.

    controls : name → widget. Setting `explorer.controls["step"].value` is what a hand does.
    state : what the controls say, as the picture's function takes it.
    picture : the SVG string now on the screen.
    words : the same in words and numbers; the static form and screen readers have it.

    A subclass makes its controls, reads them into a state, draws and describes the state, and
    calls `self._start(...)` with the widgets in the order in which they stand.
    """

    def __init__(self) -> None:
        self.controls: dict[str, widgets.Widget] = {}
        self.picture = ""
        self.words = ""
        self.refusal = ""
        self._picture_view = widgets.HTML().add_class("ex-picture")
        self._words_view = widgets.HTML().add_class("ex-words")

    @abstractmethod
    def read(self) -> Any:
        """The state that the controls say. Raises ValueError, in words, where they say none."""

    @abstractmethod
    def draw(self, state: Any) -> str:
        """The picture of a state, as an SVG string."""

    @abstractmethod
    def describe(self, state: Any) -> str:
        """A state in words and numbers."""

    def _start(self, *children: widgets.Widget) -> None:
        """Lay the widgets out, listen to the controls, draw for the first time."""
        for control in self.controls.values():
            if not isinstance(control, widgets.Button):
                control.observe(self.refresh, names="value")
        style = widgets.HTML(STYLE, layout=widgets.Layout(display="none"))
        self.view = widgets.VBox([style, *children, Access()]).add_class("ex-root")
        self.refresh()

    def refresh(self, _change: Any = None) -> None:
        """Read the controls and draw. On a bad entry the last good picture stays."""
        # An exception in a widget callback would vanish into a log: say it in the figure.
        try:
            self.state = self.read()
            self.picture = self.draw(self.state)
            self.words = self.describe(self.state)
            self.refusal = ""
        except ValueError as error:
            self.refusal = str(error)
        except Exception as error:
            self.refusal = f"This figure could not be drawn ({type(error).__name__}: {error})."
        self._show()

    def _show(self) -> None:
        if self._picture_view.value != self.picture:
            self._picture_view.value = self.picture
        refused = f'<div class="ex-refused">{escape(self.refusal)}</div>' if self.refusal else ""
        self._words_view.value = (
            f'<div class="ex-said" role="status" aria-live="polite">{refused}'
            f"{escape(self.words)}</div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        return mimebundle(self.view, self.words, svg=self.picture)


def stage_style(width: float) -> str:
    """CSS of class "ex-stage": a box as wide as its picture, on which controls can be placed."""
    return f"""
.ex-stage {{ position: relative; container-type: inline-size; width: 100%; min-width: 620px;
  max-width: {width:g}px;
  overflow: visible; display: block; padding: 0; }}
.ex-stage > .widget-html {{ margin: 0; }}
"""


def cqw(pixels: float, width: float = 950.0) -> str:
    """Pixels of a picture in hundredths of its width, so that what lies on it scales with it."""
    return f"{100 * pixels / width:.3f}cqw"


def bar(*children: widgets.Widget) -> widgets.Box:
    """Controls in a row that wraps where the column is narrow."""
    return widgets.HBox(list(children)).add_class("ex-bar")
