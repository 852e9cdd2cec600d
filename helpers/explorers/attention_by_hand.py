"""The first explorer: every number of a three-token attention, to be changed in the picture."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets
import numpy as np

from helpers.explorers.base import Explorer, bar, cqw, stage_style
from helpers.explorers.entries import parse_number
from helpers.pictures import by_hand
from helpers.pictures.by_hand import STEPS, WIDTH, ByHand
from helpers.pictures.palette import ERROR, INK, PAPER, ROLES

TOKENS = ("the", "cat", "sat", "on")
LARGEST = 9.0
_MATRICES = {  # name → numbers of every token, the fourth one waiting to be added
    "Q": ((1, 0, 1, 0), (0, 1, 0, 1), (1, 1, 1, 0), (0, 0, 1, 1)),
    "K": ((1, 0, 1, 0), (0, 1, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1)),
    "V": ((1, 0), (0, 1), (1, 1), (2, 0)),
}
_START = 3  # tokens


class AttentionByHand(Explorer):
    """Attention of one to four tokens, d_k = 4: change any number, take it step by step.

    controls : "row", "divisor", "step", "back", "next", "add token", "remove token", "reset", and
        one text entry a number: "Q[0,2]" is row 0, column 2 of Q (rows are tokens).
    """

    def __init__(self, *, row: int = 2, step: int = 4, divisor: str = "√d_k") -> None:
        super().__init__()
        self._first = {"row": row, "step": step, "divisor": divisor}
        self._good = {}  # entry name → the last number it held
        self.refused: dict[str, str] = {}  # entry name → why its text is not used
        self._touched = ""  # the entry that was changed last
        self._count = _START

        controls = self.controls
        controls["row"] = widgets.ToggleButtons(
            options=_row_options(_START), value=row, description="Row of"
        )
        controls["divisor"] = widgets.ToggleButtons(
            options=[("no scale", "none"), ("÷ √dₖ", "√d_k"), ("÷ dₖ", "d_k")],
            value=divisor, description="Scale",
        )  # fmt: skip
        controls["step"] = widgets.IntSlider(
            value=step, min=1, max=len(STEPS), description="Step",
            layout=widgets.Layout(width="210px"),
        )  # fmt: skip
        buttons = {
            "back": ("◀ Back", "One step back", lambda: self._go(-1)),
            "next": ("Next ▶", "One step forward", lambda: self._go(+1)),
            "add token": ("+ token", "Add a token", lambda: self._resize(+1)),
            "remove token": ("− token", "Remove the last token", lambda: self._resize(-1)),
            "reset": ("Reset", "Back to the numbers of the lesson", self.reset),
        }
        for name, (label, tip, act) in buttons.items():
            button = widgets.Button(description=label, tooltip=tip, layout={"width": "auto"})
            button.on_click(lambda _button, act=act: act())
            controls[name] = button
        for matrix, rows in _MATRICES.items():
            for i, numbers in enumerate(rows):
                for j, value in enumerate(numbers):
                    controls[f"{matrix}[{i},{j}]"] = _entry(matrix, i, j, value)

        self._places = widgets.HTML(layout=widgets.Layout(margin="0"))
        self._complaints = widgets.HTML().add_class("byhand-complaints")
        self._others = widgets.HTML().add_class("byhand-others")
        self._stage = widgets.Box().add_class("ex-stage")
        hint = widgets.HTML("Click a number in Q, Kᵀ or V, type another, press Enter.")
        self._arrange()
        self._start(
            bar(controls["row"], controls["divisor"]),
            bar(*(controls[name] for name in ("step", *buttons))),
            hint.add_class("byhand-hint"),
            self._stage,
            self._others,
            self._words_view,
        )  # fmt: skip

    # ── state, picture, words ────────────────────────────────────────────────────────────────────

    def refresh(self, change: Any = None) -> None:
        if change is not None:
            self._touched = next(n for n, c in self.controls.items() if c is change["owner"])
        super().refresh(change)

    def read(self) -> ByHand:
        self.refused = {}
        q, k, v = (self._matrix(name) for name in "QKV")
        return ByHand(
            tokens=TOKENS[: self._count], q=q, k=k, v=v, divisor=self.controls["divisor"].value,
            row=self.controls["row"].value, step=self.controls["step"].value,
        )  # fmt: skip

    def draw(self, state: ByHand) -> str:
        return by_hand.picture(state)

    def describe(self, state: ByHand) -> str:
        return by_hand.describe(state)

    def _matrix(self, name: str) -> np.ndarray:
        columns = len(_MATRICES[name][0])
        numbers = [
            [self._number(f"{name}[{i},{j}]") for j in range(columns)] for i in range(self._count)
        ]
        return np.array(numbers)

    def _number(self, name: str) -> float:
        """The number in an entry; where its text is none, the last good one, and a complaint."""
        try:
            value = parse_number(self.controls[name].value, low=-LARGEST, high=LARGEST)
            if round(value, 2) != value:
                raise ValueError(f"{self.controls[name].value[:20]} has more than two decimals.")
            self._good[name] = value
        except ValueError as error:
            self.refused[name] = f"{error} The picture keeps {self._good[name]:g}."
        return self._good[name]

    def _show(self) -> None:
        super()._show()
        step = self.controls["step"].value
        self.controls["back"].disabled = step == 1
        self.controls["next"].disabled = step == len(STEPS)
        self.controls["add token"].disabled = self._count == len(TOKENS)
        self.controls["remove token"].disabled = self._count == 1
        self._complain()

    def _complain(self) -> None:
        """Outline refused entries; say why beside the one just typed, and of the others below."""
        blocks = by_hand.layout(self.state).blocks if self.refused else {}
        notes = []
        for name, control in self.controls.items():
            if not isinstance(control, widgets.Text):
                continue
            (control.add_class if name in self.refused else control.remove_class)("byhand-bad")
            if name in self.refused and name == self._touched:
                matrix, i, j = _address(name)
                x, y, _, tall = blocks[matrix].cell(*((j, i) if matrix == "K" else (i, j)))
                notes.append(
                    f'<div class="byhand-note" role="alert" style="left:{cqw(min(x, 650))};'
                    f'top:{cqw(y + tall + 7)}">{escape(self.refused[name])}</div>'
                )
        others = [
            f"<div>{escape(self.controls[name].description)}: {escape(why)}</div>"
            for name, why in self.refused.items()
            if name != self._touched
        ]
        self._complaints.value = "".join(notes)
        self._others.value = "".join(others)

    # ── what the buttons do ──────────────────────────────────────────────────────────────────────

    def _go(self, by: int) -> None:
        step = self.controls["step"]
        step.value = min(max(step.value + by, step.min), step.max)

    def _resize(self, by: int) -> None:
        count = min(max(self._count + by, 1), len(TOKENS))
        if count == self._count:
            return
        row = min(self.controls["row"].value, count - 1)
        self._count = count
        self._arrange()
        self.controls["row"].options = _row_options(count)  # goes to the first row
        self.controls["row"].value = row
        self.refresh()

    def reset(self) -> None:
        """The numbers, tokens and choices of the lesson."""
        self._resize(_START - self._count)
        for matrix, rows in _MATRICES.items():
            for i, numbers in enumerate(rows):
                for j, value in enumerate(numbers):
                    self.controls[f"{matrix}[{i},{j}]"].value = str(value)
        for name, value in self._first.items():
            self.controls[name].value = value

    # ── the entries, laid over the picture's own cells ───────────────────────────────────────────

    def _arrange(self) -> None:
        """Put an entry over each cell of Q, Kᵀ and V that is now shown."""
        zeros = np.zeros((self._count, 4))
        blocks = by_hand.layout(ByHand(TOKENS[: self._count], zeros, zeros, zeros[:, :2])).blocks
        rules, entries = [_STAGE_STYLE], []
        for name, control in self.controls.items():
            if not isinstance(control, widgets.Text):
                continue
            matrix, i, j = _address(name)
            if i >= self._count:
                continue
            x, y, width, tall = blocks[matrix].cell(*((j, i) if matrix == "K" else (i, j)))
            rules.append(
                f".byhand-at-{matrix}{i}{j} {{ left: {cqw(x)}; top: {cqw(y)};"
                f" width: {cqw(width)}; height: {cqw(tall)}; }}"
            )
            entries.append(control)
        self._places.value = f"<style>{''.join(rules)}</style>"
        self._stage.children = (self._places, self._picture_view, *entries, self._complaints)


def _row_options(count: int) -> list[tuple[str, int]]:
    return [(token, i) for i, token in enumerate(TOKENS[:count])]


def _entry(matrix: str, i: int, j: int, value: int) -> widgets.Text:
    entry = widgets.Text(
        value=str(value),
        description=f"{matrix}, row {TOKENS[i]}, column {j + 1}",  # hidden; names the entry aloud
        continuous_update=False,
    )
    for name in ("ex-entry", "byhand-entry", f"byhand-{matrix}", f"byhand-at-{matrix}{i}{j}"):
        entry.add_class(name)
    return entry


def _address(name: str) -> tuple[str, int, int]:
    """ "Q[0,2]" → ("Q", 0, 2)."""
    return name[0], int(name[2]), int(name[4])


_STAGE_STYLE = f"""{stage_style(WIDTH)}
.ex-stage > .byhand-complaints {{ position: static; overflow: visible; height: 0; }}
.byhand-complaints > .widget-html-content {{ position: static; }}
.byhand-others {{ color: var(--jp-error-color0, {ERROR}); margin: 0; }}
.byhand-hint {{ margin: 0; color: var(--jp-content-font-color2, #5b6270); }}
.ex-stage > .byhand-entry.widget-text {{ position: absolute; margin: 0; padding: 0;
  min-width: 0; }}
.byhand-entry > .widget-label {{ position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }}
.ex-stage .byhand-entry.widget-text input[type="text"] {{ width: 100%; height: 100%;
  min-width: 0; padding: 0; margin: 0; border: none; border-radius: {cqw(6)};
  background: transparent; color: transparent; text-align: center;
  font: {cqw(13)} "DejaVu Sans", Verdana, sans-serif; cursor: text; }}
.ex-stage .byhand-entry.widget-text input[type="text"]:focus {{
  background: {PAPER}; color: {INK}; }}
.ex-stage .byhand-entry.widget-text.byhand-bad input[type="text"] {{ background: {PAPER};
  color: {ERROR}; box-shadow: 0 0 0 2px {ERROR}; }}
.byhand-note {{ position: absolute; z-index: 2; max-width: 300px; padding: 4px 9px;
  border-radius: 6px; background: {ERROR}; color: {PAPER}; font-size: 12px;
  line-height: 1.4; pointer-events: none; }}
""" + "".join(
    f'.ex-stage .byhand-{name}.widget-text input[type="text"]:is(:hover, :focus)'
    f" {{ box-shadow: 0 0 0 2px {ROLES[name].fill}; }}\n"
    for name in "QKV"
)
