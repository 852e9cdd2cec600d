"""Dot products and how far they spread: each assumption of the derivation has a control."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.experiments import DotProductSettings
from helpers.explorers.base import Explorer, bar
from helpers.pictures import spread
from helpers.pictures.spread import SpreadState

D_KS = tuple(2**n for n in range(11))
DISTRIBUTIONS = (
    ("normal", "normal"),
    ("uniform", "uniform"),
    ("±1", "rademacher"),
    ("heavy tails", "student_t5"),
)


class DotProductSpread(Explorer):
    """Histogram of q·k with its predicted curve, for any way of drawing q and k.

    controls : "d_k", "divisor", "distribution", "mean", "std", "correlation", "resembling",
        "entry correlation", "new sample".
    """

    def __init__(self, *, d_k: int = 64, divisor: str = "none") -> None:
        super().__init__()
        self._seed = 0
        controls = self.controls
        controls["d_k"] = widgets.SelectionSlider(
            options=[(str(d), d) for d in D_KS], value=d_k, description="dₖ"
        )
        controls["divisor"] = widgets.ToggleButtons(
            options=[("no scale", "none"), ("÷ √dₖ", "√d_k"), ("÷ dₖ", "d_k")],
            value=divisor, description="Scale",
        )  # fmt: skip
        controls["distribution"] = widgets.ToggleButtons(
            options=DISTRIBUTIONS, value="normal", description="Entries"
        )
        controls["mean"] = _slider(0.0, 0.0, 1.0, 0.1, "mean μ")
        controls["std"] = _slider(1.0, 0.25, 2.0, 0.25, "std σ")
        controls["correlation"] = _slider(0.0, 0.0, 0.9, 0.1, "q with k: ρ")
        controls["resembling"] = widgets.ToggleButtons(
            options=[("every key", 1.0), ("one key in 8", 0.125)], value=1.0, description="ρ for"
        )
        controls["entry correlation"] = _slider(0.0, 0.0, 0.5, 0.05, "inside a vector: r")
        controls["new sample"] = widgets.Button(
            description="New sample",
            tooltip="Draw other queries and keys",
            layout={"width": "auto"},
        )
        controls["new sample"].on_click(lambda _button: self._draw_again())
        self._start(
            bar(controls["d_k"], controls["divisor"], controls["new sample"]),
            bar(controls["distribution"], controls["mean"], controls["std"]),
            bar(controls["correlation"], controls["resembling"], controls["entry correlation"]),
            self._picture_view,
            self._words_view,
        )

    def read(self) -> SpreadState:
        value = {name: getattr(c, "value", None) for name, c in self.controls.items()}
        settings = DotProductSettings(
            d_k=value["d_k"], distribution=value["distribution"], mean=value["mean"],
            std=value["std"], correlation=value["correlation"],
            fraction_correlated=value["resembling"], entry_correlation=value["entry correlation"],
        )  # fmt: skip
        return SpreadState(settings, value["divisor"], self._seed)

    def draw(self, state: SpreadState) -> str:
        return spread.picture(state)

    def describe(self, state: SpreadState) -> str:
        return spread.describe(state)

    def _draw_again(self) -> None:
        self._seed += 1
        self.refresh()


def _slider(value: float, low: float, high: float, step: float, label: str) -> widgets.FloatSlider:
    return widgets.FloatSlider(
        value=value, min=low, max=high, step=step, description=label, readout_format=".2f"
    )
