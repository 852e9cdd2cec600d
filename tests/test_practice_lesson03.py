"""Lesson 3's practice: its solutions and its questions' numbers hold, its verdicts show well."""

import math

import numpy as np
import pytest

from helpers import attention, experiments
from helpers.practice import check, lesson03

BY_ID = {exercise.id: exercise for exercise in lesson03.EXERCISES}
QUESTIONS = {each.id: each for each in (*lesson03.PREDICTIONS, *lesson03.QUIZ)}


def said(id):
    """All that a question says, options and feedback included."""
    question = QUESTIONS[id]
    return " ".join([question.prompt, *(f"{o.text} {o.feedback}" for o in question.options)])


def answer(id):
    right = next(option for option in QUESTIONS[id].options if option.right)
    return f"{right.text} {right.feedback}"


def test_the_solutions_agree_with_the_reference_implementation():
    theirs = {
        "3.1": lambda x, temperature: attention.softmax(x / temperature),
        "3.2": attention.entropy,
        "3.3": lambda p, dz: (attention.softmax_jacobian(p) @ dz[..., None])[..., 0],
        "3.4": lambda scores, allowed: attention.softmax(np.where(allowed, scores, -np.inf)),
    }
    for id, reference in theirs.items():
        for case in BY_ID[id].cases:
            np.testing.assert_allclose(BY_ID[id].expected(case), reference(*case.args), atol=1e-12)


def test_the_solutions_warn_of_nothing():
    for exercise in lesson03.EXERCISES:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            for case in exercise.cases:
                exercise.expected(case)
        assert check(exercise.id, exercise.solution).remarks == ()


def test_the_product_with_the_jacobian_is_a_derivative():
    z, dz = np.random.default_rng(0).standard_normal((2, 4, 6))
    step = 1e-6
    difference = attention.softmax(z + step * dz) - attention.softmax(z - step * dz)
    found = lesson03.softmax_jvp(attention.softmax(z), dz)
    np.testing.assert_allclose(found, difference / (2 * step), atol=1e-9)


def test_a_right_function_that_numpy_warns_of_passes_with_a_remark():
    verdict = check("3.2", lambda w: -np.where(w > 0, w * np.log(w), 0).sum(axis=-1))
    assert verdict.passed
    assert "divide by zero, invalid value" in str(verdict)

    def careful(w):
        with np.errstate(all="ignore"):
            return -np.nansum(w * np.log(w), axis=-1)

    assert check("3.2", careful).remarks == ()


def test_masks_and_stacks_of_tables_are_shown():
    text = str(check("3.4", lambda scores, allowed: attention.softmax(scores * allowed)))
    assert "allowed  1×1" in text
    assert "False" in text

    def wrong_in_four_axes(x, temperature):
        right = lesson03.stable_softmax(x, temperature)
        if x.ndim == 4:
            right[1, 0] = 0
        return right

    verdict = check("3.1", wrong_in_four_axes)
    for title in ("x", "expected", "your result"):
        assert f"{title}[1, 0]  of 2×1×2×3" in str(verdict)
        assert f"{title}[0, 0]" not in str(verdict)
    assert verdict._html().count('class="abh-off"') == 6


# --- The numbers in the questions ---


def test_the_numbers_on_scores_and_factors():
    scores = lesson03.SCORES
    for factor, shown in ((1, "[0.63, 0.23, 0.14]"), (5, "[0.993, 0.007, 0.001]")):
        places = 2 if factor == 1 else 3
        weights = attention.softmax(factor * scores)
        assert shown == "[" + ", ".join(f"{w:.{places}f}" for w in weights) + "]"
        assert shown in said("3.2")
    assert [round(w, 1) for w in attention.softmax(11.3 * scores)] == [1, 0, 0]
    assert [round(w, 1) for w in attention.softmax(2.2 * scores)] == [0.9, 0.1, 0]
    assert [f"{w:.5f}" for w in attention.softmax(11.3 * scores)[:2]] == ["0.99999", "0.00001"]
    assert [f"{w:.1f}" for w in attention.softmax(scores) * 11.3] == ["7.1", "2.6", "1.6"]
    assert math.exp(11.3) == pytest.approx(81_000, rel=0.005)
    assert math.exp(5) == pytest.approx(148, abs=0.5)
    first = [attention.softmax(row)[0] for row in ([2.0, 1], [4.0, 2], [3.0, 1], [102.0, 101])]
    assert [f"{w:.2f}" for w in first] == ["0.73", "0.88", "0.88", "0.73"]


def test_the_numbers_on_the_jacobian():
    eigenvalue = experiments.largest_jacobian_eigenvalue
    rest = [0] * 6
    assert eigenvalue([1, 0, *rest]) == 0
    assert eigenvalue([0.5, 0.5, *rest]) == pytest.approx(0.5)
    assert eigenvalue([0.125] * 8) == pytest.approx(0.125)
    assert eigenvalue([0.9, 0.1, *rest]) == pytest.approx(0.18)
    assert not attention.softmax_jacobian([0.0, 1, 0]).any()


def test_the_numbers_on_the_gradient():
    table = experiments.gradient_table()
    without, usual = table.samples["1"], table.samples["1/sqrt(d)"]
    medians = {name: np.median(usual[name]) for name in ("q", "scaled")}
    q = without["q"]
    numbers = {
        "0.86": without["largest_weight"].mean(),
        "2.0": usual["q"].mean(),
        "16": q.mean(),
        "1.9": medians["q"],
        "5.0": np.median(q),
        "0.44": np.median(without["scaled"]),
    }
    for shown, number in numbers.items():
        places = len(shown.partition(".")[2])
        assert f"{number:.{places}f}" == shown
        assert shown in said("3.4") + said("half-true")
    assert f"{medians['scaled']:.1f}" == "1.9"
    shares = {
        "23 %": (q < medians["q"] / 10).mean(),
        "29 %": (q > medians["q"] * 10).mean(),
        "39 %": (q < usual["q"]).mean(),
        "73 %": (without["scaled"] < usual["scaled"]).mean(),
    }
    for shown, share in shares.items():
        assert f"{share:.0%}".replace("%", " %") == shown
        assert shown in said("3.4") + said("half-true")
    assert q.mean() / usual["q"].mean() == pytest.approx(8, abs=0.5)
    assert (usual["q"] > medians["q"] / 10).all()
    assert (usual["q"] < medians["q"] * 10).all()


def test_the_numbers_on_the_gain():
    table = experiments.saturation_table(gains=(1, 2.9, 8), Ts=(64,))
    low, middle, high = table.largest_weight
    assert 0.4 < middle < 0.5
    assert f"{low:.1f} on average at gain 1, just under 0.5 at 2.9 and {high:.1f} at 8" in said(
        "heuristic"
    )
    assert f"{math.sqrt(2 * math.log(64)):.1f}" == "2.9"


def test_the_numbers_on_formats():
    with np.errstate(all="ignore"):
        assert np.isinf(np.float16(65_520))
        assert np.isfinite(np.float16(65_519))
        assert np.isinf(np.float16(70_000) / np.float16(math.sqrt(128)))
        finite = [np.isfinite(np.exp(t(89))) for t in (np.float16, np.float32, np.float64)]
    assert finite == [False, False, True]
    assert f"{70_000 / math.sqrt(128):.0f}" == "6187"
    largest = [math.log(np.finfo(t).max) for t in (np.float16, np.float32, np.float64)]
    assert [f"{each:.2f}" for each in largest] == ["11.09", "88.72", "709.78"]
    assert all(f"{each:.2f}" in said("range") for each in largest)
    assert np.logaddexp(1000, 1000) == pytest.approx(1000.69, abs=0.005)


def test_torch_does_what_the_questions_say():
    torch = pytest.importorskip("torch")
    assert f"{math.log(torch.finfo(torch.bfloat16).max):.1f}" == "88.7"
    assert f"{torch.finfo(torch.bfloat16).max:.2e}" == "3.39e+38"
    assert not torch.tensor(89.0, dtype=torch.bfloat16).exp().isfinite()
    q = torch.full((1, 128), 23.4, dtype=torch.float16)
    assert (q.float() @ q.float().T).item() == pytest.approx(70_000, rel=0.01)
    assert (q @ q.T).isinf().all()
    assert ((q / 128**0.5) @ q.T).isfinite().all()
    assert torch.softmax(torch.full((3,), -torch.inf), -1).isnan().all()
    k = torch.randn(1, 1, 3, 4)
    mask = torch.zeros(1, 3, dtype=torch.bool)
    output = torch.nn.functional.scaled_dot_product_attention(k[..., :1, :], k, k, attn_mask=mask)
    assert not output.any()
