"""Softmax from undecided to one-hot: drag scores, turn up the gain."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.explorers.base import Explorer, bar, cqw, stage_style
from helpers.pictures import saturation
from helpers.pictures.palette import ROLES
from helpers.pictures.saturation import FewScores, ManyScores

_START = (2.0, 1.0, 0.5, 0.0, -0.5, -1.0, 1.5, -2.0)
_FEWEST, _MOST = 3, len(_START)
TS = tuple(2**n for n in range(1, 11))


class SoftmaxSaturation(Explorer):
    """Three to eight scores and a gain; or many random rows.

    controls : "view" ("few" or "many"), "gain", "count", "T", and "score 0" … "score 7".
    """

    def __init__(self, *, view: str = "few", gain: float = 1.0) -> None:
        super().__init__()
        controls = self.controls
        controls["view"] = widgets.ToggleButtons(
            options=[("these scores", "few"), ("many random rows", "many")],
            value=view, description="Show",
        )  # fmt: skip
        controls["gain"] = widgets.FloatLogSlider(
            value=gain, base=2, min=-3, max=6.5, step=0.25, description="gain", readout_format=".3g"
        )
        controls["count"] = widgets.IntSlider(
            value=_FEWEST, min=_FEWEST, max=_MOST, description="scores"
        )
        controls["T"] = widgets.SelectionSlider(
            options=[(str(T), T) for T in TS], value=64, description="T"
        )
        for i, score in enumerate(_START):
            controls[f"score {i}"] = widgets.FloatSlider(
                value=score, min=saturation.LOWEST, max=saturation.HIGHEST, step=0.1,
                orientation="vertical", readout=False, description=f"score {i + 1}",
            ).add_class("sat-score").add_class(f"sat-at-{i}")  # fmt: skip
        self._places = widgets.HTML()
        self._stage = widgets.Box().add_class("ex-stage")
        self._start(
            bar(controls["view"], controls["gain"], controls["count"], controls["T"]),
            self._stage,
            self._words_view,
        )

    def read(self) -> FewScores | ManyScores:
        gain = self.controls["gain"].value
        if self.controls["view"].value == "many":
            return ManyScores(self.controls["T"].value, gain)
        count = self.controls["count"].value
        return FewScores(tuple(self.controls[f"score {i}"].value for i in range(count)), gain)

    def draw(self, state: FewScores | ManyScores) -> str:
        few = isinstance(state, FewScores)
        return saturation.picture_few(state) if few else saturation.picture_many(state)

    def describe(self, state: FewScores | ManyScores) -> str:
        few = isinstance(state, FewScores)
        return saturation.describe_few(state) if few else saturation.describe_many(state)

    def _show(self) -> None:
        super()._show()
        few = self.controls["view"].value == "few"
        self.controls["count"].layout.display = None if few else "none"
        self.controls["T"].layout.display = "none" if few else None
        self._arrange(self.controls["count"].value if few else 0)

    def _arrange(self, count: int) -> None:
        """Lay one slider over the rail of each score."""
        sliders = [self.controls[f"score {i}"] for i in range(count)]
        children = (self._places, self._picture_view, *sliders)
        if self._stage.children == children:
            return
        rules = [stage_style(saturation.WIDTH), _SLIDER_STYLE]
        rules += [
            f".sat-at-{i} {{ left: {cqw(saturation.column_middle(i, count) - 14)}; }}"
            for i in range(count)
        ]
        self._places.value = f"<style>{''.join(rules)}</style>"
        self._stage.children = children


_SLIDER_STYLE = f"""
.ex-stage > .sat-score.widget-vslider {{ position: absolute; margin: 0; padding: 0; min-width: 0;
  top: {cqw(saturation.SCORES_TOP)}; width: {cqw(28)}; height: {cqw(saturation.SCORES_HEIGHT)};
  overflow: visible; }}
.sat-score > .widget-label {{ position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }}
.ex-stage > .sat-score .slider-container {{ width: 100%; height: 100%; margin: 0; padding: 0; }}
.ex-stage > .sat-score .noUi-target {{ width: 100%; height: 100%; margin: 0; background: none;
  border: none; box-shadow: none; }}
.ex-stage > .sat-score .noUi-connects {{ display: none; }}
.ex-stage > .sat-score .noUi-base {{ cursor: ns-resize; }}
.ex-stage > .sat-score .noUi-handle {{ left: {cqw(-14)}; right: auto; transform: translateX(-50%);
  width: {cqw(20)}; height: {cqw(20)}; bottom: {cqw(-10)}; border-radius: 50%;
  border: 2px solid #fff; background: {ROLES["scores"].fill}; box-shadow: none; cursor: grab; }}
.ex-stage > .sat-score .noUi-handle:is(:hover, :focus) {{
  background: {ROLES["scores"].fill}; box-shadow: 0 0 0 3px {ROLES["scores"].formula};
  outline: none; }}
"""
