"""The pictures of the online softmax and of the tiles: numbers that are right, text that fits."""

import itertools
import re
import time
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest
from PIL import ImageFont

from helpers.attention import softmax
from helpers.explorers.online_softmax import SCORES
from helpers.flash import memory_traffic
from helpers.pictures import online_softmax, tiles
from helpers.pictures.online_softmax import VALUES, OnlineState
from helpers.pictures.palette import ERROR, ROLES
from helpers.pictures.static import _fonts, png
from helpers.pictures.tiles import TilesState

KB = 1024
LAST = SCORES["largest last"]
LONG = (-999.25, 345.67, -0.01, 12.34, 999.99, -123.45) * 2


def texts(picture: str) -> list[str]:
    """Every line of text in a picture, as it reads."""
    return ["".join(e.itertext()) for e in ET.fromstring(picture).findall(".//{*}text")]


@cache
def font(name: str):
    (file,) = [path for path in _fonts() if path.endswith(f"/{name}.ttf")]
    return ImageFont.truetype(file, 100)


def boxes(picture: str):
    """(left, top, right, bottom, text) of each line of text, measured with the picture's fonts."""
    for element in ET.fromstring(picture).findall(".//{*}text"):
        family = element.get("font-family").split(",")[0].replace(" ", "")
        bold, italic = element.get("font-weight"), element.get("font-style")
        style = {"DejaVuSans": "Oblique"}.get(family, "Italic")
        name = ("Bold" if bold else "") + (style if italic else "")
        size = float(element.get("font-size"))
        pieces = [(element.text or "", size)]
        for span in element:
            pieces += [(span.text, float(span.get("font-size", size))), (span.tail or "", size)]
        measure = font(f"{family}-{name}" if name else family).getlength
        width = sum(measure(piece) * points / 100 for piece, points in pieces)
        text = "".join(piece for piece, _ in pieces)
        share = {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor")]
        x, y = float(element.get("x")) - share * width, float(element.get("y"))
        yield x, y - 0.75 * size, x + width, y + 0.1 * size, text


def assert_text_fits(picture: str, width: float, height: float):
    """No line leaves the picture and no two lines meet."""
    found = list(boxes(picture))
    for left, top, right, bottom, text in found:
        assert left >= 5, text
        assert right <= width - 5, text
        assert top >= 5, text
        assert bottom <= height - 5, text
    for one, two in itertools.combinations(found, 2):
        apart = one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]
        assert apart, (one, two)


def assert_rounded(picture: str):
    assert not re.search(r"\d\.\d\d+(?=[\",\s])", re.sub(r">[^<]*<", "", picture))


# ── online softmax ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_the_numbers_are_those_of_softmax_over_the_keys_seen(step):
    state = OnlineState(LAST, 3, step)
    shown, seen = texts(online_softmax.picture(state)), 3 * step
    scores = np.array(LAST[:seen])
    output = softmax(scores) @ np.array(VALUES[:seen])
    for value in output:
        assert shown.count(f"{value:.3f}") == 2  # output and right
    assert f"{np.exp(scores - scores.max()).sum():.3f}" in shown
    assert f"{scores.max():.1f}" in shown
    assert shown.count("?") == 2 * (12 - seen)
    for power in np.exp(scores - scores.max()):
        assert f"{power:.2f}" in shown
    assert "error 0.000" in shown
    assert ERROR not in online_softmax.picture(state)


def test_the_arithmetic_of_the_lessons_last_block():
    shown = texts(online_softmax.picture(OnlineState(LAST, 3, 4)))
    assert "m   = max(1.6, 3.5) = 3.5" in shown
    assert "l   = 0.150 · 4.105 + (0.202 + 0.333 + 1.000) ≈ 2.149" in shown
    acc = "acc = 0.150 · (16.64, 22.01) + 0.202·(8, 1) + 0.333·(9, 3) + 1.000·(6, 0)"
    assert f"{acc} ≈ (13.10, 4.49)" in shown
    assert "output = (13.10, 4.49) ÷ 2.149 ≈ (6.096, 2.091)" in shown


def test_without_the_factor_the_error_stands_beside_the_right_output():
    state = OnlineState(LAST, 3, 4, rescale=False)
    picture = online_softmax.picture(state)
    shown, said = texts(picture), online_softmax.describe(state)
    for number in ("3.888", "5.176", "6.096", "2.091", "error 3.085", "left out"):
        assert number in shown
    assert "but the factor e^(m before − m) = e^(1.6 − 3.5) = 0.150 is left out" in said
    assert "output (3.888, 5.176); softmax over the 12 keys seen gives (6.096, 2.091)" in said
    assert "l   = 6.105 + (0.202 + 0.333 + 1.000) ≈ 7.640" in shown
    assert picture.count(f'stroke="{ERROR}"') == 9  # each key of the first three blocks
    assert shown.count("1.00") == 4  # what a first largest score counted as, it still counts as


@pytest.mark.parametrize("name", ["largest first", "all alike"])
def test_leaving_the_factor_out_harms_nothing_where_the_first_block_holds_the_largest(name):
    for step in (1, 2, 3, 4):
        state = OnlineState(SCORES[name], 3, step, rescale=False)
        assert state.error == 0
        assert ERROR not in online_softmax.picture(state)
    assert "m stays" in online_softmax.describe(state)


def test_large_scores_overflow_nothing():
    state = OnlineState(SCORES["large"], 3, 4)
    assert state.now.m > np.log(np.finfo(float).max)
    assert np.isfinite(state.now.output).all()
    assert any("e^716 itself overflows float64" in line for line in texts(
        online_softmax.picture(state)))  # fmt: skip


def test_scores_and_weights_stand_at_their_heights():
    state = OnlineState((0.0, 1.0, 2.0, 3.0), 2, 2)
    root = ET.fromstring(online_softmax.picture(state))
    ys = [float(c.get("cy")) for c in root.findall(".//{*}circle")]
    assert np.diff(ys) == pytest.approx(np.diff(ys)[0], abs=0.11)
    assert np.diff(ys)[0] < 0
    bars = [
        float(r.get("height"))
        for r in root.findall(".//{*}rect")
        if r.get("fill") == ROLES["weights"].fill and r.get("width") == "26"
    ]
    np.testing.assert_allclose(bars, 76 * np.exp([-3.0, -2, -1, 0]), atol=0.06)


ROWS = [*SCORES.values(), LONG, (0.25,), (-5.5, 7)]


@pytest.mark.parametrize("scores", ROWS)
@pytest.mark.parametrize("rescale", [True, False])
def test_nothing_of_the_online_softmax_overlaps_or_leaves_the_picture(scores, rescale):
    for block in (1, 3, 4, 5, 7, 12):
        blocks = -(-len(scores) // block)
        for step in {1, min(2, blocks), blocks}:
            picture = online_softmax.picture(OnlineState(scores, block, step, rescale))
            assert_text_fits(picture, online_softmax.WIDTH, online_softmax.HEIGHT)
            assert_rounded(picture)


@pytest.mark.parametrize(
    ("value", "printed"),
    [(0.15, "0.150"), (1.0, "1.000"), (0.0, "0.000"), (7e-5, "7·10⁻⁵"), (3e-130, "3·10⁻¹³⁰")],
)
def test_small_factors_are_not_printed_as_nothing(value, printed):
    assert online_softmax.fraction(value) == printed


# ── tiles ────────────────────────────────────────────────────────────────────────────────────────

SETTINGS = [
    TilesState(*values, step=1)
    for values in itertools.product(
        (128, 1024, 4096), (32, 128), (16 * KB, 256 * KB), (False, True), ("queries", "keys")
    )
]


def moved_to(state: TilesState, step: int) -> TilesState:
    return TilesState(state.T, state.d, state.fast_memory, state.is_causal, state.outer, step)


@pytest.mark.parametrize("state", SETTINGS, ids=repr)
def test_the_bytes_in_the_picture_are_those_of_the_model(state):
    state = moved_to(state, (state.plan.tiles + 1) // 2)
    traffic = memory_traffic(state.T, state.d, state.fast_memory, 2, state.is_causal, state.outer)
    shown, said = texts(tiles.picture(state)), tiles.describe(state)
    so_far, total = tiles.size(sum(traffic.plan.moved(state.step))), tiles.size(traffic.tiled)
    assert f"{so_far} of {total}" in shown
    assert f"Moved so far {so_far} of {total}" in said
    assert f"{tiles.size(traffic.plain)}, scores and weights stored" in shown
    assert f"plain attention moves {tiles.size(traffic.plain)}" in said
    matrix = tiles.size(2 * state.T**2)
    assert f"{state.T} × {state.T} scores: never stored, would take {matrix}" in shown
    assert f"scores would take {matrix}; they are never stored" in said
    assert f"blocks of {traffic.block_q} queries and {traffic.block_k} keys fit" in said
    fits = f"Q, K, V, O blocks: {tiles.size(traffic.blocks_held)}"
    assert f"{fits} of {tiles.size(state.fast_memory)}" in shown
    assert traffic.blocks_held <= state.fast_memory
    read, _ = state.moved_now
    assert any(line.startswith(f"← reads {tiles.size(read)}: ") for line in shown)
    assert ("never touched" in shown) == (traffic.plan.skipped > 0)
    loses = traffic.tiled > traffic.plain
    assert (ERROR in tiles.picture(state)) == loses == ("less: tiled moves" in said)


@pytest.mark.parametrize("state", SETTINGS, ids=repr)
def test_nothing_of_the_tiles_overlaps_or_leaves_the_picture(state):
    tiles_in_all = state.plan.tiles
    for step in {1, -(-tiles_in_all // 3), tiles_in_all}:
        picture = tiles.picture(moved_to(state, step))
        assert_text_fits(picture, tiles.WIDTH, tiles.HEIGHT)
        assert_rounded(picture)
        xs = re.findall(r"M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h-", picture)
        assert xs
        for x, y, wide, tall in (map(float, box) for box in xs):
            assert x > 22
            assert x + wide < 522
            assert y > 48
            assert y + tall < 460


def fields(picture: str, colour: str) -> int:
    """How many boxes of this colour the grid has."""
    paths = re.findall(rf'<path d="([^"]+)" fill="{colour}"', picture)
    return sum(d.count("M") for d in paths)


@pytest.mark.parametrize("outer", ["queries", "keys"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_each_tile_is_drawn_as_done_now_or_to_come(is_causal, outer):
    state = TilesState(1024, 64, 64 * KB, is_causal, outer)
    for step in (1, 30, state.plan.tiles):
        picture = tiles.picture(moved_to(state, step))
        assert fields(picture, tiles._NOW) == 1
        assert fields(picture, tiles._DONE) == step - 1
        assert fields(picture, tiles._QUEUE) == state.plan.tiles - step


def test_the_output_is_drawn_as_written_once_its_row_is_finished():
    written = 'fill="' + tiles.tint(ROLES["output"].fill, 0.35)
    state = TilesState(1024, 64, 64 * KB)  # 8 × 16 tiles
    for step, rows in ((1, 0), (15, 0), (16, 1), (17, 1), (128, 8)):
        picture = tiles.picture(moved_to(state, step))
        found = re.search(rf'<path d="([^"]+)" {written}', picture)
        assert (found[1].count("M") if found else 0) == rows
        assert ("writes nothing yet" in picture) == (step % 16 != 0)


def test_many_tiles_are_drawn_as_few_fields_and_quickly():
    state = TilesState(4096, 128, 16 * KB)
    assert state.plan.tiles == 256 * 256
    fastest = 1.0
    for step in (1, 30_000, 65_536):
        start = time.process_time()
        picture = tiles.picture(moved_to(state, step))
        fastest = min(fastest, time.process_time() - start)
        assert picture.count("h-") < 1300
        assert "a field drawn is 8 × 8 of them" in picture
        assert len(picture) < 60_000
    assert fastest < 0.02


@pytest.mark.parametrize(
    ("count", "printed"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.98 KB"), (1024, "1 KB"), (16_640, "16.2 KB"),
     (2_359_296, "2.25 MB"), (999 * 1024, "999 KB"), (1000 * 1024, "0.98 MB"),
     (135_266_304, "129 MB"), (5 * 1024**4, "5120 GB")],
)  # fmt: skip
def test_bytes_are_printed_for_people(count, printed):
    assert tiles.size(count) == printed


# ── both ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("module", "state"),
    [(online_softmax, OnlineState(LAST, 3, 2)), (tiles, TilesState(step=20))],
)
def test_the_same_state_gives_the_same_string_and_a_named_picture(module, state):
    one = module.picture(state)
    assert one == module.picture(state)
    root = ET.fromstring(one)
    assert root.get("role") == "img"
    assert root.find("{*}title").text == module.headline(state)
    assert root.find("{*}desc").text == module.describe(state)


@pytest.mark.parametrize(
    "picture",
    [
        *(  # the fullest ones
            online_softmax.picture(OnlineState(scores, 3, 4, rescale=False))
            for scores in (LAST, SCORES["large"], LONG)
        ),
        tiles.picture(TilesState(4096, 128, 16 * KB, True, "keys", 20_000)),
        tiles.picture(TilesState(1024, 64, 64 * KB, False, "queries", 77)),
    ],
)
def test_the_png_is_small(picture):
    assert len(png(picture)) <= 60_000
