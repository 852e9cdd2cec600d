"""The online softmax: scores of one row arrive in blocks; only m, l and acc are kept."""

from __future__ import annotations

import re
from typing import Any

import ipywidgets as widgets

from helpers.explorers.base import Explorer, bar
from helpers.explorers.entries import parse_number
from helpers.pictures import online_softmax
from helpers.pictures.online_softmax import MOST, OnlineState
from helpers.pictures.palette import ERROR

SCORES = {  # name → what to start from
    "largest last": (0.2, -0.5, 0.6, 0.1, 1.1, 0.4, 1.6, 0.9, 1.3, 1.9, 2.4, 3.5),
    "largest first": (3.5, 0.9, 1.3, 1.9, 0.2, 1.1, 0.4, 1.6, -0.5, 0.6, 2.4, 0.1),
    "all alike": (1.0,) * 12,
    "large": (711, 709, 712, 710, 713, 711, 716, 714, 715, 712, 713, 711),
}
LARGEST = 999.0


class OnlineSoftmax(Explorer):
    """Up to twelve scores in blocks, with the rescaling and without it.

    controls : "preset" (a key of `SCORES`, None after typing), "scores" (text: 1 to 12 numbers),
        "block" (scores at a time), "step" (blocks arrived), "back", "next", "rescale".
    """

    def __init__(
        self, *, preset: str = "largest last", block: int = 3, step: int = 1, rescale: bool = True
    ) -> None:
        super().__init__()
        self.refused = ""  # why the text in the entry is not used
        self._scores = SCORES[preset]  # the last good ones
        controls = self.controls
        controls["preset"] = widgets.ToggleButtons(
            options=list(SCORES), value=preset, description="Row"
        )
        controls["scores"] = widgets.Text(
            value=as_text(self._scores), description="Scores", continuous_update=False,
            layout=widgets.Layout(width="520px"), style={"description_width": "initial"},
        )  # fmt: skip
        controls["block"] = widgets.IntSlider(
            value=block, min=1, max=MOST, description="Block",
            layout=widgets.Layout(width="230px"),
        )  # fmt: skip
        controls["step"] = widgets.IntSlider(
            value=1, min=1, max=MOST, description="Step", layout=widgets.Layout(width="230px")
        )
        for name, label, tip, by in (
            ("back", "◀ Back", "One block back", -1),
            ("next", "Next ▶", "One block further", +1),
        ):
            controls[name] = widgets.Button(
                description=label, tooltip=tip, layout={"width": "auto"}
            )
            controls[name].on_click(lambda _button, by=by: self._go(by))
        controls["rescale"] = widgets.ToggleButtons(
            options=[("yes", True), ("left out", False)], value=rescale, description="Rescale"
        )
        self._fit_steps()
        controls["step"].value = step
        style = widgets.HTML(_STYLE, layout=widgets.Layout(display="none"))
        self._start(
            style,
            bar(controls["preset"], controls["rescale"]),
            bar(controls["block"], controls["step"], controls["back"], controls["next"]),
            bar(controls["scores"]),
            self._picture_view,
            self._words_view,
        )

    # ── state, picture, words ────────────────────────────────────────────────────────────────────

    def refresh(self, change: Any = None) -> None:
        owner = change["owner"] if change else None
        if owner is self.controls["preset"] and change["new"] is not None:
            self.controls["scores"].value = as_text(SCORES[change["new"]])
        self._take_scores()
        self._fit_steps()
        super().refresh(change)

    def read(self) -> OnlineState:
        value = {name: getattr(c, "value", None) for name, c in self.controls.items()}
        return OnlineState(self._scores, value["block"], value["step"], value["rescale"])

    def draw(self, state: OnlineState) -> str:
        return online_softmax.picture(state)

    def describe(self, state: OnlineState) -> str:
        return online_softmax.describe(state)

    def _show(self) -> None:
        self.refusal = self.refusal or self.refused
        super()._show()
        entry = self.controls["scores"]
        (entry.add_class if self.refused else entry.remove_class)("online-bad")
        step = self.controls["step"]
        self.controls["back"].disabled = step.value == step.min
        self.controls["next"].disabled = step.value == step.max

    # ── what the controls do to each other ───────────────────────────────────────────────────────

    def _take_scores(self) -> None:
        """Read the entry; where it says no scores, keep the last ones and say why."""
        try:
            self._scores, self.refused = parse_scores(self.controls["scores"].value), ""
        except ValueError as error:
            self.refused = f"{error} The picture keeps the scores it has."
            return
        names = [name for name, scores in SCORES.items() if scores == self._scores]
        self.controls["preset"].value = names[0] if names else None

    def _fit_steps(self) -> None:
        """As many steps as there are blocks."""
        blocks = OnlineState(self._scores, self.controls["block"].value).blocks
        self.controls["step"].max = blocks

    def _go(self, by: int) -> None:
        step = self.controls["step"]
        step.value = min(max(step.value + by, step.min), step.max)


def as_text(scores: tuple[float, ...]) -> str:
    """Scores as the entry holds them: "0.2, −0.5"."""
    return ", ".join(f"{score:g}" for score in scores).replace("-", "−")


def parse_scores(entry: str) -> tuple[float, ...]:
    """The 1 to 12 numbers that `entry` says: "1, 2, 0.5", "1 2 0,5" or "1; 2; 1/2".

    Raises ValueError, in a sentence, for anything else: no number or too many, one that is no
    number, is outside −999 … 999 or has more than two decimals.
    """
    spaced = re.search(r"[\s;]", entry.strip())
    parts = re.split(r"[\s;]+" if spaced else ",", entry.strip(" \t\n,;"))
    parts = [part.strip(",") for part in parts if part.strip(",")]
    if not parts:
        raise ValueError("There are no scores. Write some, such as 1, 2, 0.5.")
    if len(parts) > MOST:
        raise ValueError(f"These are {len(parts)} scores, but the picture holds {MOST}.")
    scores = tuple(parse_number(part, low=-LARGEST, high=LARGEST) for part in parts)
    for part, score in zip(parts, scores):
        if round(score, 2) != score:
            raise ValueError(f"{part[:20]} has more than two decimals.")
    return scores


_STYLE = f"""<style>
.ex-bar .online-bad.widget-text input[type="text"] {{ box-shadow: 0 0 0 2px {ERROR}; }}
</style>"""
