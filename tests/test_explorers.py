"""The explorers, driven as a hand drives them, without a browser."""

import re

import pytest

from helpers.explorers import AttentionByHand
from helpers.explorers.entries import parse_number


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
    explorer.controls["Q[2,1]"].value = "1/2"
    assert not explorer.refused
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


def test_an_unexpected_error_is_said_in_the_figure(explorer, monkeypatch):
    good = explorer.picture
    monkeypatch.setattr(explorer, "draw", lambda state: 1 / 0)
    explorer.controls["step"].value = 1
    assert "ZeroDivisionError" in explorer.refusal
    assert "ZeroDivisionError" in explorer._words_view.value
    assert explorer.picture == good


def test_the_live_view_shows_the_picture_and_the_static_form_shows_it_too(explorer):
    assert explorer._picture_view.value == explorer.picture
    data, metadata = explorer._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.view.model_id
    assert data["text/plain"] == explorer.words
    assert data["image/png"].startswith(b"\x89PNG")
    assert metadata["image/png"]["width"] == 950
    assert "image/svg+xml" not in data


def test_every_control_has_an_accessible_name(explorer):
    names = [c.description for c in explorer.controls.values()]
    assert all(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("entry", "value"), [(" 3 ", 3), ("-0.5", -0.5), ("−2", -2), ("0,5", 0.5), ("1/4", 0.25)]
)
def test_parse_number(entry, value):
    assert parse_number(entry) == value
