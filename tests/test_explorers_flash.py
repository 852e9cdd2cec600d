"""The explorers of the online softmax and of the tiles, driven as a hand drives them."""

import numpy as np
import pytest

from helpers.attention import softmax
from helpers.explorers import OnlineSoftmax, Tiles
from helpers.explorers.online_softmax import SCORES, as_text, parse_scores
from helpers.explorers.tiles import DS, FAST_MEMORIES, TS
from helpers.flash import memory_traffic
from helpers.pictures.online_softmax import VALUES

ALL = (OnlineSoftmax, Tiles)


@pytest.mark.parametrize("kind", ALL)
def test_steps_go_forwards_and_backwards_and_stop_at_the_ends(kind):
    explorer = kind()
    back, forward, step = (explorer.controls[n] for n in ("back", "next", "step"))
    assert back.disabled
    assert not forward.disabled
    forward.click()
    assert step.value == explorer.state.step == 2
    assert not back.disabled
    step.value = step.max
    assert forward.disabled
    forward.click()
    assert step.value == step.max
    back.click()
    assert explorer.state.step == step.max - 1


# ── OnlineSoftmax ────────────────────────────────────────────────────────────────────────────────


def test_the_blocks_arrive_and_the_output_is_softmax_over_the_keys_seen():
    explorer = OnlineSoftmax()
    for step in (1, 2, 3, 4):
        explorer.controls["step"].value = step
        output = softmax(SCORES["largest last"][: 3 * step]) @ np.array(VALUES[: 3 * step])
        printed = f"({output[0]:.3f}, {output[1]:.3f})"
        assert explorer.words.count(printed) == 2
        assert explorer.words.endswith("error 0.000.")
        assert f"Block {step} of 4, keys {3 * step - 2} to {3 * step}, " in explorer.words


def test_leaving_the_factor_out_gives_an_error_that_is_said():
    explorer = OnlineSoftmax(step=4)
    right = explorer.picture
    explorer.controls["rescale"].value = False
    assert "= 0.150 is left out" in explorer.words
    assert explorer.words.endswith("error 3.085.")
    assert "error 3.085" in explorer.picture
    explorer.controls["preset"].value = "largest first"
    assert explorer.words.endswith("error 0.000.")
    explorer.controls["preset"].value = "largest last"
    explorer.controls["rescale"].value = True
    assert explorer.picture == right


def test_the_block_size_sets_how_many_steps_there_are():
    explorer = OnlineSoftmax()
    step = explorer.controls["step"]
    for block in range(1, 13):
        explorer.controls["block"].value = block
        assert step.max == explorer.state.blocks == -(-12 // block)
        step.value = step.max
        assert explorer.state.now.seen == 12
        assert explorer.words.endswith("error 0.000.")
    assert explorer.state.blocks == 1
    assert explorer.controls["next"].disabled
    assert explorer.controls["back"].disabled


@pytest.mark.parametrize("name", SCORES)
def test_a_preset_fills_the_entry_and_an_entry_may_name_a_preset(name):
    explorer = OnlineSoftmax(preset=name)
    entry, preset = explorer.controls["scores"], explorer.controls["preset"]
    assert parse_scores(entry.value) == explorer.state.scores == SCORES[name]
    entry.value = "1, 2, 3"
    assert preset.value is None
    assert explorer.state.scores == (1, 2, 3)
    assert explorer.controls["step"].max == 1
    entry.value = as_text(SCORES[name])
    assert preset.value == name
    assert explorer.controls["step"].max == 4


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("1, 2, many", "“many” is not a number"),
        ("", "There are no scores"),
        (" , ;", "There are no scores"),
        ("1 " * 13, "13 scores, but the picture holds 12"),
        ("1, 1000", "1000 is outside −999 … 999"),
        ("nan", "not a number"),
        ("1/0", "divides by zero"),
        ("0.125", "0.125 has more than two decimals"),
        ("9" * 300, "outside"),
        ("9" * 5000, "not a number"),  # longer than Python reads
    ],
)
def test_a_bad_entry_is_refused_in_words_and_everything_else_goes_on(entry, reason):
    explorer = OnlineSoftmax()
    good, control = explorer.picture, explorer.controls["scores"]
    control.value = entry
    assert reason in explorer.refusal
    assert len(explorer.refusal) < 150
    assert reason in explorer._words_view.value.replace("&#x27;", "'")
    assert explorer.picture == good
    assert control.value == entry  # what was typed is not lost
    assert "online-bad" in control._dom_classes
    explorer.controls["step"].value = 3
    assert explorer.state.step == 3
    assert reason in explorer.refusal
    control.value = "1, 2, 3, 4"
    assert explorer.refusal == ""
    assert "online-bad" not in control._dom_classes


def test_a_preset_takes_a_bad_entry_away():
    explorer = OnlineSoftmax()
    explorer.controls["scores"].value = "many"
    explorer.controls["preset"].value = "large"
    assert explorer.refusal == ""
    assert explorer.state.scores == SCORES["large"]


@pytest.mark.parametrize(
    ("entry", "scores"),
    [("1, 2, 0.5", (1, 2, 0.5)), ("1,2,3", (1, 2, 3)), ("0,5 −1", (0.5, -1)), ("7", (7,)),
     ("1; 1/2;\t-3 ,", (1, 0.5, -3)), ("1 , 2", (1, 2))],
)  # fmt: skip
def test_parse_scores(entry, scores):
    assert parse_scores(entry) == scores


@pytest.mark.parametrize("scores", ["999, -999", "-999 -999 -999", "0", "0.01 0.02 0.03 0.04"])
@pytest.mark.parametrize("rescale", [True, False])
def test_extreme_scores_are_drawn(scores, rescale):
    explorer = OnlineSoftmax(block=1, rescale=rescale)
    explorer.controls["scores"].value = scores
    for step in range(1, explorer.controls["step"].max + 1):
        explorer.controls["step"].value = step
        assert explorer.refusal == ""
        assert "nan" not in explorer.picture.lower()


# ── Tiles ────────────────────────────────────────────────────────────────────────────────────────


def test_the_words_give_the_sizes_the_tile_and_the_bytes():
    explorer = Tiles(step=37)
    assert "blocks of 128 queries and 64 keys fit (48 KB); 128 tiles" in explorer.words
    assert "Tile 37 of 128: queries 257–384 meet keys 257–320" in explorer.words
    assert "reads 16 KB and writes nothing. Moved so far 672 KB of 2.25 MB" in explorer.words
    assert "plain attention moves 8.5 MB, 3.77 times as much as tiled" in explorer.words
    assert "would take 2 MB; they are never stored" in explorer.words
    explorer.controls["causal"].value = True
    assert "72 tiles, 56 more skipped as causal" in explorer.words
    explorer.controls["outer"].value = "keys"
    assert "keys in the outer loop" in explorer.words
    assert "blocks of 64 queries and 128 keys fit" in explorer.words


def test_too_little_fast_memory_makes_tiling_lose_and_the_words_say_so():
    explorer = Tiles(T=4096, d=128, fast_memory=16)
    assert "plain attention moves 132 MB, less: tiled moves 3.89 times as much" in explorer.words
    assert explorer.controls["step"].max == 65_536
    explorer.controls["end"].click()
    assert "Tile 65,536 of 65,536: queries 4081–4096 meet keys 4081–4096" in explorer.words
    assert "Moved so far 514 MB of 514 MB" in explorer.words
    assert explorer.controls["end"].disabled
    explorer.controls["fast memory"].value = 256  # fewer tiles: the step comes back into range
    assert explorer.state.step == explorer.controls["step"].max == 512
    assert "3.88 times as much as tiled" in explorer.words


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("outer", ["queries", "keys"])
def test_every_setting_is_drawn_with_its_own_bytes(causal, outer):
    explorer = Tiles(causal=causal, outer=outer)
    for T in TS:
        for d in DS:
            for fast_memory in FAST_MEMORIES:
                controls = explorer.controls
                controls["T"].value, controls["d"].value = T, d
                controls["fast memory"].value = fast_memory
                controls["end"].click()
                traffic = memory_traffic(T, d, 1024 * fast_memory, 2, causal, outer)
                assert explorer.refusal == ""
                assert explorer.state.traffic == traffic
                assert sum(explorer.state.moved) == traffic.tiled
                assert explorer.state.step == controls["step"].max == traffic.plan.tiles


def test_one_tile_has_no_next():
    explorer = Tiles(T=128, fast_memory=256)
    explorer.controls["d"].value = 128
    assert "1 tile," in explorer.words
    for name in ("back", "next", "end"):
        assert explorer.controls[name].disabled
