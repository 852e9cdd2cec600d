"""Pictures of training runs: what is drawn is what was measured."""

import base64
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from helpers.explorers import LiveRuns
from helpers.pictures import Panel, Run, attention_maps, dots, panels, training_curves
from helpers.pictures.heatmap import cividis
from helpers.pictures.runs import describe, training_picture
from helpers.pictures.static import png

STEPS = [0, 20, 40]
GOOD = Run("with scale", STEPS, [5.5, 2.9, 2.5], [[0.9, 0.8], [0.7, 0.6], [0.5, 0.4]],
           [[1.0, 1.1], [2.0, 1.5], [3.0, 2.0]])  # fmt: skip
BAD = Run("no scale", STEPS[:2], [5.5, 3.0], [[0.1, 0.12], [0.05, 0.02]], [[11, 12], [30, 90]])


def texts(picture):
    return ["".join(e.itertext()) for e in ET.fromstring(picture).findall(".//{*}text")]


def strokes(picture, colour):
    return [e for e in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}path")
            if e.get("stroke") == colour]  # fmt: skip


# --- Curves ---


def test_each_run_has_a_loss_and_a_line_for_each_head():
    picture = training_picture([GOOD, BAD], 40, {"bigram": 2.4})
    assert {"with scale", "no scale", "bigram", "steps"} <= set(texts(picture))
    # In the legend, the loss, and two heads in each of the two other plots.
    assert len(strokes(picture, "#1f2430")) == len(strokes(picture, "#b3261e")) == 1 + 1 + 2 + 2
    dashed = [e.get("stroke-dasharray") for e in strokes(picture, "#b3261e")]
    assert set(dashed) == {"7 4"}  # not by colour alone


def test_a_run_that_has_not_started_is_drawn_and_told():
    empty = Run("waiting", [], [], [], [])
    assert describe([empty]) == "waiting: not started."
    ET.fromstring(training_picture([empty], 600))


def test_the_newest_measurement_is_told():
    assert describe([BAD]) == (
        "no scale: after 20 steps loss 3.00, entropy of heads 0.02 to 0.05, score std 30.0 to 90.0."
    )


def test_losses_stand_where_the_axis_says():
    picture = training_picture([GOOD], 40)
    loss = next(e for e in strokes(picture, "#1f2430") if e.get("stroke-width") == "2.4")
    x, y = map(float, re.findall(r"L([\d.]+),([\d.]+)", loss.get("d"))[-1])
    ticks = {t: float(e.get("y")) - 4 for e in ET.fromstring(picture).findall(".//{*}text")
             for t in ["".join(e.itertext())] if e.get("x") == "56"}  # fmt: skip
    per_nat = (ticks["2.0"] - ticks["3.0"]) / 1.0
    assert y == pytest.approx(ticks["3.0"] + 0.5 * per_nat, abs=0.5)
    assert x == pytest.approx(64 + 330, abs=0.5)


def test_a_figure_says_its_words_and_stays_small():
    data, _ = training_curves([GOOD, BAD], words="two runs")._repr_mimebundle_()
    assert data["text/plain"] == "two runs"
    assert len(data["image/png"]) < 60_000


# --- Maps ---


def test_a_map_shows_its_weights_and_leaves_the_future_white():
    weights = np.zeros((1, 4, 4))
    weights[0] = [[1, 0, 0, 0], [0.25, 0.75, 0, 0], [0, 1, 0, 0], [0.5, 0, 0, 0.5]]
    figure = attention_maps({"step 0": weights}, rows=["A"], title="t", words="w")
    images = ET.fromstring(figure.svg).findall(".//{*}image")
    assert len(images) == 1
    coded = images[0].get("href").split(",")[1]
    pixels = Image.open(io.BytesIO(base64.b64decode(coded))).convert("RGB")
    size = pixels.width // 4

    def at(i, j):
        return "#{:02x}{:02x}{:02x}".format(*pixels.getpixel((j * size + 1, i * size + 1)))

    assert at(0, 1) == at(2, 3) == "#ffffff"
    assert at(0, 0) == at(2, 1) == cividis(1.0)
    assert at(2, 0) == cividis(0.0)
    assert at(1, 0) == cividis(127 / 254)
    png(figure.svg)


# --- Panels and dots ---


def test_panels_show_every_number_in_a_colour_that_grows_with_it():
    values = np.array([[0.1, 1.0], [4.0, 11.3]])
    figure = panels(
        [Panel("A", "a", values, 0.1, 11.3, 1, log=True), Panel("B", "b", values, 0, 12)],
        rows=["r1", "r2"], columns=["c1", "c2"], row_title="init", column_title="d_head",
        title="T", words="w",
    )  # fmt: skip
    shown = texts(figure.svg)
    for printed in ("0.1", "1.0", "4.0", "11.3", "0.10", "11.30", "r1", "c2", "init"):
        assert printed in shown
    fills = [e.get("fill") for e in ET.fromstring(figure.svg).findall(".//{*}rect")]
    assert fills.count(cividis(1.0)) == 1  # 11.3 in A
    assert fills.count(cividis(0.0)) == 1  # 0.1 in A


@pytest.mark.parametrize(("value", "share"), [(1.0, 0.0), (10.0, 0.5), (100.0, 1.0)])
def test_a_logarithmic_panel_shares_by_ratio(value, share):
    assert Panel("", "", np.zeros((1, 1)), 1, 100, log=True).share(value) == pytest.approx(share)


def test_dots_stand_at_their_values_with_the_mean_between():
    figure = dots({"a": [1.0, 3.0], "bad": [2.0]}, title="t", x_label="loss", words="w",
                  marks={"table": 2.5}, sick=["bad"])  # fmt: skip
    circles = ET.fromstring(figure.svg).findall(".//{*}circle")
    xs = [float(c.get("cx")) for c in circles]
    assert len(xs) == 3
    assert (xs[0] + xs[1]) / 2 == pytest.approx(xs[2], abs=0.6)
    assert circles[2].get("stroke") == "#b3261e"
    assert "table" in texts(figure.svg)


# --- Live ---


def test_live_runs_follow_what_they_are_told():
    live = LiveRuns(["one", "two"], 40, {"bigram": 2.4})
    assert live.words == "one: not started. two: not started."
    live.note(0, {"step": 0, "val_loss": 5.5, "entropy": [[0.9], [0.8]], "score_std": [[1], [1]]})
    live.note(0, {"step": 20, "val_loss": 3.0, "entropy": [[0.7], [0.6]], "score_std": [[2], [3]]})
    assert live.words.startswith("one: after 20 steps loss 3.00, entropy of heads 0.60 to 0.70")
    assert live.bars[0].value == 20
    assert live._steps_done[0].value == "20 of 40 steps"
    assert live._picture_view.value == live.picture
    assert live._repr_mimebundle_()[0]["text/plain"].startswith("Live while training: one; two")
