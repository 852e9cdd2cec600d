"""The explorers, driven as a hand drives them, without a browser."""

import re

import pytest

from helpers.explorers import (
    AttentionByHand,
    DotProductSpread,
    OnlineSoftmax,
    SoftmaxSaturation,
    Tiles,
)
from helpers.explorers.entries import parse_number

ALL = (AttentionByHand, DotProductSpread, SoftmaxSaturation, OnlineSoftmax, Tiles)


@pytest.fixture
def explorer():
    return AttentionByHand()


def test_every_number_can_be_changed(explorer):
    before = explorer.picture
    entries = [name for name in explorer.controls if re.fullmatch(r"[QKV]\[\d,\d\]", name)]
    assert len(entries) == 4 * (4 + 4 + 2)
    for name in entries:
        if name[2] == "3":
            continue  # of the token that waits to be added
        explorer.controls[name].value = "3"
        assert explorer.picture != before, name
        explorer.controls["reset"].click()
        assert explorer.picture == before


def test_steps_go_forwards_and_backwards_and_stop_at_the_ends(explorer):
    back, forward, step = (explorer.controls[n] for n in ("back", "next", "step"))
    assert forward.disabled
    assert not back.disabled
    for expected in (3, 2, 1):
        back.click()
        assert step.value == explorer.state.step == expected
        assert explorer.words.startswith(f"Step {expected} of 4")
    assert back.disabled
    forward.click()
    assert "divided by √4: 1.0, 0.5, 1.0" in explorer.words


def test_row_and_divisor(explorer):
    explorer.controls["row"].value = 0
    assert "weights 0.506, 0.186, 0.307; output 0.814, 0.494" in explorer.words
    explorer.controls["divisor"].value = "none"
    assert "weights 0.665, 0.090, 0.245" in explorer.words
    explorer.controls["divisor"].value = "d_k"
    assert "divided by 4" in explorer.words


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("abc", "“abc” is not a number"),
        ("", "is empty"),
        ("9.5", "outside −9 … 9"),
        ("nan", "not a number"),
        ("1e400", "not a number"),
        ("1/0", "divides by zero"),
        ("0.125", "more than two decimals"),
        ("1/3", "more than two decimals"),
    ],
)
def test_a_bad_entry_is_refused_beside_its_cell_and_the_picture_stays(explorer, entry, reason):
    good = explorer.picture
    explorer.controls["Q[2,1]"].value = entry
    assert reason in explorer.refused["Q[2,1]"]
    assert "keeps 1" in explorer.refused["Q[2,1]"]
    assert explorer.picture == good
    assert explorer.controls["Q[2,1]"].value == entry  # what was typed is not lost
    assert "byhand-bad" in explorer.controls["Q[2,1]"]._dom_classes
    assert reason in explorer._complaints.value
    explorer.controls["step"].value = 2  # everything else goes on working
    assert explorer.state.step == 2
    explorer.controls["K[0,0]"].value = "9" * 5000  # the newer note floats, the older goes below
    assert len(explorer.refused["K[0,0]"]) < 100
    assert reason in explorer._others.value
    assert explorer._complaints.value.count("byhand-note") == 1
    explorer.controls["K[0,0]"].value = "1"
    explorer.controls["Q[2,1]"].value = "1/2"
    assert not explorer.refused
    assert explorer._others.value == ""
    assert explorer._complaints.value == ""
    assert "byhand-bad" not in explorer.controls["Q[2,1]"]._dom_classes


def test_tokens_come_and_go_within_limits(explorer):
    explorer.controls["add token"].click()
    assert explorer.state.tokens == ("the", "cat", "sat", "on")
    assert explorer.state.row == 2  # the chosen row stays chosen
    assert explorer.controls["add token"].disabled
    explorer.controls["row"].value = 3
    for left in (3, 2, 1):
        explorer.controls["remove token"].click()
        assert len(explorer.state.tokens) == left
        assert explorer.state.row == left - 1
    assert explorer.controls["remove token"].disabled
    assert "weights 1.000" in explorer.words
    explorer.controls["reset"].click()
    assert "output 0.767, 0.616" in explorer.words


@pytest.mark.parametrize("kind", ALL)
def test_an_unexpected_error_is_said_in_the_figure(kind, monkeypatch):
    explorer = kind()
    good = explorer.picture
    monkeypatch.setattr(explorer, "draw", lambda state: 1 / 0)
    explorer.refresh()
    assert "ZeroDivisionError" in explorer.refusal
    assert "ZeroDivisionError" in explorer._words_view.value
    assert explorer.picture == good


@pytest.mark.parametrize("kind", ALL)
def test_the_live_view_shows_the_picture_and_the_static_form_shows_it_too(kind):
    explorer = kind()
    assert explorer._picture_view.value == explorer.picture
    data, metadata = explorer._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.view.model_id
    assert data["text/plain"] == explorer.words
    assert data["image/png"].startswith(b"\x89PNG")
    assert len(data["image/png"]) <= 60_000
    assert metadata["image/png"]["width"] == 950
    assert "image/svg+xml" not in data


@pytest.mark.parametrize("kind", ALL)
def test_every_control_has_an_accessible_name_of_its_own(kind):
    names = [c.description for c in kind().controls.values()]
    assert all(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("kind", ALL)
def test_two_explorers_do_not_disturb_each_other_and_the_same_state_draws_the_same(kind):
    one, two = kind(), kind()
    before = two.picture
    assert one.picture == before
    for control in one.controls.values():
        if hasattr(control, "options"):
            control.index = len(control.options) - 1
    assert two.picture == before
    assert one.picture != before


# ── DotProductSpread ─────────────────────────────────────────────────────────────────────────────


def number_after(words: str, text: str) -> float:
    return float(text.split(words)[1].split()[0].rstrip(",.;").replace("−", "-"))


@pytest.mark.parametrize(
    ("changes", "std", "within"),
    [
        ({}, 8.0, 8.0),
        ({"divisor": "√d_k"}, 1.0, 1.0),
        ({"divisor": "d_k"}, 1 / 8, 1 / 8),
        ({"std": 2.0}, 32.0, 32.0),
        ({"mean": 1.0}, 192**0.5, 128**0.5),
        ({"correlation": 0.5}, 80**0.5, 48**0.5),
        ({"correlation": 0.5, "resembling": 0.125}, 178.0**0.5, 177.5**0.5),
        ({"entry correlation": 0.2}, 225.3**0.5, 225.3**0.5),
        ({"distribution": "student_t5", "d_k": 256}, 16.0, 16.0),
    ],
)
def test_the_spread_is_predicted_and_measured(changes, std, within):
    explorer = DotProductSpread()
    for name, value in changes.items():
        explorer.controls[name].value = value
    assert explorer.refusal == ""
    state = explorer.state
    assert state.predicted.std == pytest.approx(std, rel=1e-3)
    assert state.predicted.within_row_std == pytest.approx(within, rel=1e-3)
    (got, error) = state.measured
    assert abs(got.variance - std**2) <= 4 * error.variance
    assert abs(got.within_row_variance - within**2) <= 4 * error.within_row_variance
    assert number_after("Standard deviation: predicted", explorer.words) == pytest.approx(
        std, rel=0.01
    )
    assert f"{state.largest_weight:.2f}" in explorer.picture


def test_a_new_sample_changes_the_measurement_and_not_the_prediction():
    explorer = DotProductSpread()
    before = explorer.state
    explorer.controls["new sample"].click()
    assert explorer.state.measured != before.measured
    assert explorer.state.predicted == before.predicted


@pytest.mark.parametrize("d_k", [1, 2, 64, 1024])
@pytest.mark.parametrize("divisor", ["none", "√d_k", "d_k"])
def test_the_axis_holds_nearly_all_scores(d_k, divisor):
    explorer = DotProductSpread(d_k=d_k, divisor=divisor)
    outside = re.search(r"\((\d+) outside\)", explorer.picture)
    assert int(outside[1] if outside else 0) <= 0.02 * explorer.state.scores.size


# ── SoftmaxSaturation ────────────────────────────────────────────────────────────────────────────


def test_softmax_of_the_lessons_scores_saturates():
    explorer = SoftmaxSaturation()
    assert "[0.63, 0.23, 0.14]" in explorer.words
    explorer.controls["gain"].value = 128**0.5
    assert "11.3 × [2, 1, 0.5]) = [1.00, 0.00, 0.00]" in explorer.words


def test_scores_are_dragged_added_and_taken_away():
    explorer = SoftmaxSaturation()
    explorer.controls["score 0"].value = 1.0
    explorer.controls["score 2"].value = -4.0
    assert explorer.state.weights[:2] == pytest.approx([0.498, 0.498], abs=1e-3)
    assert explorer.state.largest_eigenvalue == pytest.approx(0.5, abs=0.01)
    for count in (8, 4, 3):
        explorer.controls["count"].value = count
        assert len(explorer.state.scores) == count
        sliders = [c for c in explorer._stage.children if "sat-score" in c._dom_classes]
        assert sliders == [explorer.controls[f"score {i}"] for i in range(count)]
        assert f"{explorer.state.weights.max():.2f}" in explorer.picture


def test_many_random_rows():
    explorer = SoftmaxSaturation(view="many")
    explorer.controls["T"].value = 1024
    assert "√(2 ln T) = 3.72 is a heuristic" in explorer.words
    largest = []
    for gain in (0.125, 1.0, 4.0, 32.0):
        explorer.controls["gain"].value = gain
        largest.append(explorer.state.here[0])
    assert largest == sorted(largest)
    assert largest[0] < 0.01
    assert largest[-1] > 0.9
    assert not any("sat-score" in c._dom_classes for c in explorer._stage.children)
    assert explorer.controls["count"].layout.display == "none"
    explorer.controls["view"].value = "few"
    assert explorer.controls["T"].layout.display == "none"


@pytest.mark.parametrize(
    ("entry", "value"), [(" 3 ", 3), ("-0.5", -0.5), ("−2", -2), ("0,5", 0.5), ("1/4", 0.25)]
)
def test_parse_number(entry, value):
    assert parse_number(entry) == value
