"""Training as it happens: a progress bar a run, and the curves as far as they have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets as widgets

from helpers.explorers.base import STYLE
from helpers.explorers.live import mimebundle
from helpers.pictures.runs import Run, describe, training_picture


class LiveRuns:
    """Shows runs while they train; it has nothing to set.

    names : of the runs, in the order of their numbers. steps : where the plots end. marks : level
    of the loss → name. note(number, measurement) takes what `train_together` calls `on_measure`
    with. picture, words : as they stand.
    """

    def __init__(self, names: Sequence[str], steps: int, marks: Mapping[str, float] | None = None):
        self.steps, self.marks = steps, dict(marks or {})
        self.runs = [Run(name, [], [], [], []) for name in names]
        self.bars = [
            widgets.IntProgress(0, 0, steps, description=name,
                                style={"description_width": "170px", "bar_color": "#543894"},
                                layout=widgets.Layout(width="420px"))
            for name in names
        ]  # fmt: skip
        self._steps_done = [widgets.Label("waiting") for _ in names]
        self._picture_view = widgets.HTML().add_class("ex-picture")
        style = widgets.HTML(STYLE, layout=widgets.Layout(display="none"))
        lines = [widgets.HBox(pair) for pair in zip(self.bars, self._steps_done)]
        self.view = widgets.VBox([style, *lines, self._picture_view]).add_class("ex-root")
        self._draw()

    def note(self, number: int, measurement: dict) -> None:
        """Add a measurement of a run: "step", "val_loss", "entropy", "score_std" are read."""
        run, done = self.runs[number], measurement["step"]
        run.steps.append(done)
        run.loss.append(measurement["val_loss"])
        for name in ("entropy", "score_std"):
            heads = [head for layer in measurement[name] for head in layer]
            getattr(run, name).append(heads)
        self.bars[number].value = done
        self._steps_done[number].value = f"{done} of {self.steps} steps"
        self._draw()

    def _draw(self) -> None:
        self.picture = training_picture(self.runs, self.steps, self.marks, "While it trains")
        self.words = describe(self.runs)
        self._picture_view.value = self.picture

    def _repr_mimebundle_(self, include=None, exclude=None):
        # It is shown before there is anything to see: the static page gets words alone.
        names = "; ".join(run.name for run in self.runs)
        return mimebundle(self.view, f"Live while training: {names}. The result is below.")
