"""Lesson 1 says what the series is built on: its numbers to three decimals, its colours."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from helpers.attention import attention_steps
from helpers.explorers import AttentionByHand
from helpers.pictures.palette import ROLES

LESSON = Path(__file__).parent.parent / "notebooks" / "01_three_tokens_by_hand.ipynb"

# The example, and its results to three decimals.
FACTS = {
    "scores": [[2, 0, 1], [0, 2, 1], [2, 1, 2]],
    "scaled": [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [1.0, 0.5, 1.0]],
    "weights": [[0.506, 0.186, 0.307], [0.186, 0.506, 0.307], [0.384, 0.233, 0.384]],
    "output": [[0.814, 0.494], [0.494, 0.814], [0.767, 0.616]],
}
ROW = {"exponentials": ["2.718", "1.000", "1.649"], "sum": "5.367"}


@pytest.fixture(scope="module")
def cells():
    return json.loads(LESSON.read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module")
def printed(cells):
    """Everything that the lesson's outputs say, as one text."""
    parts = []
    for cell in cells:
        for output in cell.get("outputs", []):
            text = output.get("text") or output["data"]["text/plain"]
            parts.append("".join(text))
    return "\n".join(parts)


@pytest.mark.parametrize("name", FACTS)
def test_every_matrix_is_printed_as_the_facts_have_it(printed, name):
    decimals = {"scores": 0, "scaled": 1}.get(name, 3)
    rows = [" ".join(f"{x:.{decimals}f}" for x in row) for row in FACTS[name]]
    shape = f"{len(FACTS[name])} × {len(FACTS[name][0])}"
    matrix = r"\n".join(rf"\s+(?:\w+ )?{re.escape(row)}" for row in rows)
    assert re.search(rf"{name} \({shape}\)\n{matrix}", printed)


def test_one_row_is_checked_with_its_exponentials(printed):
    line = r"e\^1\.0, e\^0\.0, e\^0\.5 = " + " ".join(map(re.escape, ROW["exponentials"]))
    assert re.search(line, printed)
    assert re.search(rf"sum +={re.escape(' ' + ROW['sum'])}", printed)


def test_torch_gives_the_same(printed):
    assert "largest difference below 1e-12: True" in printed
    assert "is_causal=True:        [[1. 0.]]\ntorch, is_causal=True: [[1. 0.]]" in printed


def test_formulas_have_the_colours_of_the_series(cells):
    prose = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    used = dict(re.findall(r"\\color\{(#\w+)\}\{(\w)", prose))
    letters = {"q": "Q", "k": "K", "v": "V", "S": "scores", "A": "weights", "o": "output"}
    assert used
    for colour, letter in re.findall(r"\\color\{(#\w+)\}\{(\w)", prose):
        name = letters.get(letter, letters.get(letter.lower()))
        assert colour == ROLES[name].formula, f"{letter} has the colour of another role"


# What the folded answers of section 6 claim.


def test_divisors_order_the_sharpness_and_keep_the_ranking():
    explorer = AttentionByHand()
    largest, orders = [], set()
    for divisor in ("none", "√d_k", "d_k"):
        explorer.controls["divisor"].value = divisor
        weights = explorer.state.steps.weights
        largest.append(weights.max(axis=1))
        orders.add(tuple(map(tuple, np.argsort(weights, axis=1, kind="stable"))))
    assert (largest[0] > largest[1]).all()
    assert (largest[1] > largest[2]).all()
    assert len(orders) == 1


def test_one_number_makes_sat_choose_cat():
    explorer = AttentionByHand()
    explorer.controls["Q[2,3]"].value = "9"
    assert explorer.state.steps.scores[2].tolist() == [2, 10, 2]
    assert explorer.state.steps.scaled[2, 1] == 5
    assert explorer.state.steps.weights[2, 1] == pytest.approx(0.96, abs=0.005)


def test_the_value_of_cat_moves_cat_most():
    explorer = AttentionByHand()
    before = explorer.state.steps
    for column in (0, 1):
        explorer.controls[f"V[1,{column}]"].value = "9"
    moved = np.abs(explorer.state.steps.output - before.output).sum(axis=1)
    assert moved.argmax() == 1
    assert np.round(100 * before.weights[:, 1]).tolist() == [19, 51, 23]


def test_a_disliked_key_is_nearly_invisible_and_a_zero_key_is_not():
    explorer = AttentionByHand()
    explorer.controls["add token"].click()
    for column in range(4):
        explorer.controls[f"K[3,{column}]"].value = "-9"
    steps = explorer.state.steps
    assert (steps.scores[:3, 3] <= -18).all()
    assert (steps.weights[:, 3] < 0.01).all()
    for column in range(4):
        explorer.controls[f"K[3,{column}]"].value = "0"
    assert (explorer.state.steps.weights[:, 3] > 0.1).all()


def test_the_facts_are_what_attention_computes():
    q, k, v = (
        np.array(x)
        for x in (
            [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]],
            [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]],
            [[1, 0], [0, 1], [1, 1]],
        )
    )
    steps = attention_steps(q, k, v)
    for name, expected in FACTS.items():
        assert getattr(steps, name).round(3).tolist() == expected, name
