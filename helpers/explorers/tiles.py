"""FlashAttention's tiles: what is in fast memory, and how many bytes have moved."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from helpers.explorers.base import Explorer, bar
from helpers.flash import memory_traffic
from helpers.pictures import tiles
from helpers.pictures.tiles import BYTES, TilesState

TS = tuple(2**n for n in range(7, 13))
DS = (32, 64, 128)
FAST_MEMORIES = (16, 32, 64, 96, 128, 192, 256)  # KB; 192 is an A100's, in the paper


class Tiles(Explorer):
    """Attention of one head in float16, tile by tile; any length, width and fast memory.

    controls : "T", "d", "fast memory" (KB), "causal", "outer" ("queries" or "keys": which loop is
        outside), "step" (tiles done), "back", "next", "end".
    """

    def __init__(
        self, *, T: int = 1024, d: int = 64, fast_memory: int = 64, causal: bool = False,
        outer: str = "queries", step: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        controls = self.controls
        controls["T"] = widgets.SelectionSlider(
            options=[(str(n), n) for n in TS], value=T, description="T"
        )
        controls["d"] = widgets.ToggleButtons(
            options=[(str(n), n) for n in DS], value=d, description="d"
        )
        controls["fast memory"] = widgets.SelectionSlider(
            options=[(f"{n} KB", n) for n in FAST_MEMORIES], value=fast_memory,
            description="Fast memory", style={"description_width": "initial"},
        )  # fmt: skip
        controls["causal"] = widgets.ToggleButtons(
            options=[("none", False), ("causal", True)], value=causal, description="Mask"
        )
        controls["outer"] = widgets.ToggleButtons(
            options=[("queries", "queries"), ("keys", "keys")], value=outer,
            description="Outer loop", style={"description_width": "initial"},
        )  # fmt: skip
        controls["step"] = widgets.IntSlider(
            value=1, min=1, max=1, description="Tile", layout=widgets.Layout(width="420px")
        )
        for name, label, tip, act in (
            ("back", "◀ Back", "One tile back", lambda: self._go(self.controls["step"].value - 1)),
            ("next", "Next ▶", "One tile further",
             lambda: self._go(self.controls["step"].value + 1)),
            ("end", "To the end", "All tiles done", lambda: self._go(self.controls["step"].max)),
        ):  # fmt: skip
            button = widgets.Button(description=label, tooltip=tip, layout={"width": "auto"})
            button.on_click(lambda _button, act=act: act())
            controls[name] = button
        self._fit_steps()
        controls["step"].value = step
        self._start(
            bar(controls["T"], controls["d"], controls["fast memory"]),
            bar(controls["causal"], controls["outer"]),
            bar(*(controls[name] for name in ("step", "back", "next", "end"))),
            self._picture_view,
            self._words_view,
        )

    def refresh(self, change: Any = None) -> None:
        self._fit_steps()
        super().refresh(change)

    def read(self) -> TilesState:
        value = {name: getattr(c, "value", None) for name, c in self.controls.items()}
        return TilesState(
            T=value["T"], d=value["d"], fast_memory=1024 * value["fast memory"],
            is_causal=value["causal"], outer=value["outer"], step=value["step"],
        )  # fmt: skip

    def draw(self, state: TilesState) -> str:
        return tiles.picture(state)

    def describe(self, state: TilesState) -> str:
        return tiles.describe(state)

    def _show(self) -> None:
        super()._show()
        step = self.controls["step"]
        self.controls["back"].disabled = step.value == step.min
        for name in ("next", "end"):
            self.controls[name].disabled = step.value == step.max

    def _fit_steps(self) -> None:
        """As many steps as there are tiles to compute."""
        value = {name: getattr(c, "value", None) for name, c in self.controls.items()}
        traffic = memory_traffic(
            value["T"], value["d"], 1024 * value["fast memory"], BYTES, value["causal"],
            value["outer"],
        )  # fmt: skip
        self.controls["step"].max = traffic.plan.tiles

    def _go(self, to: int) -> None:
        step = self.controls["step"]
        step.value = min(max(to, step.min), step.max)
