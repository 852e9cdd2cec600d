"""Predictions and quizzes: their content, what a click does, and their static form."""

import re

import numpy as np
import pytest

from helpers.practice import check, hint, lesson02, lessons, predict, quiz, solution
from helpers.practice.lesson01 import PREDICTIONS, QUIZ, K, Q, V
from helpers.practice.questions import Option, Question, collection

ALL_PREDICTIONS = lessons.every("PREDICTIONS")
ALL = [*ALL_PREDICTIONS, *lessons.every("QUIZ")]


def options(*rights):
    return tuple(Option(f"option {i}", f"because {i}", right) for i, right in enumerate(rights))


@pytest.mark.parametrize(
    ("id", "prompt", "given", "problem"),
    [
        ("", "Why?", options(True, False), "needs an id"),
        ("1", " ", options(True, False), "needs an id and a prompt"),
        ("1", "Why?", options(True), "has 1 options"),
        ("1", "Why?", options(*[True] + [False] * 8), "has 9 options"),
        ("1", "Why?", options(False, False), "has 0 right"),
        ("1", "Why?", options(True, True), "has 2 right"),
        ("1", "Why?", (Option("a", "x", True), Option("a", "y")), "the same"),
        ("1", "Why?", (Option("a", "x", True), Option("", "y")), "empty"),
        ("1", "Why?", (Option("a", "x", True), Option("b", "")), "without feedback"),
        ("1", "Why?", (Option("a", "x", True), Option("b", "x")), "feedback of their own"),
    ],
)
def test_a_malformed_question_is_refused(id, prompt, given, problem):
    with pytest.raises(ValueError, match=problem):
        Question(id, prompt, given)


def test_two_questions_with_one_id_are_refused():
    question = Question("1", "Why?", options(True, False))
    with pytest.raises(ValueError, match="share the id 1"):
        collection(question, question)


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.id)
def test_a_question_is_written_with_care(question):
    assert len(question.options) >= 3
    for option in question.options:
        assert option.feedback.rstrip()[-1] in ".?!", option.feedback
        assert len(option.feedback.split()) >= 6, "feedback explains"


@pytest.mark.parametrize("number", lessons.numbers())
def test_the_right_option_is_not_always_in_the_same_place(number):
    mine = [q for q in ALL_PREDICTIONS if q.id.startswith(f"{number}.")] + [*quiz(number).questions]
    places = [[option.right for option in question.options].index(True) for question in mine]
    assert len(set(places)) >= 4
    assert max(places.count(place) for place in set(places)) <= len(places) / 2


def test_the_numbers_in_the_predictions_are_those_of_the_lesson():
    from helpers.practice.lesson01 import softmax

    scores = Q @ K.T
    assert scores[2].tolist() == [2, 1, 2]
    assert "2, 1 and 2" in PREDICTIONS[1].prompt
    assert "2 − 1 = 1 becomes 1 − 0.5 = 0.5" in PREDICTIONS[1].options[0].feedback
    np.testing.assert_allclose(softmax(scores + 10), softmax(scores))
    output = softmax(scores / 2) @ V
    assert (output <= V.max(axis=0)).all()


def test_torch_does_what_the_questions_say():
    torch = pytest.importorskip("torch")
    attention = torch.nn.functional.scaled_dot_product_attention
    q, k, v = torch.ones(1, 1, 1, 4), torch.randn(1, 1, 5, 4), torch.eye(5)[None, None]
    assert attention(q, k, v, is_causal=True).tolist() == [[[[1, 0, 0, 0, 0]]]]
    mask = torch.tensor([[False, True, False, False, False]])
    assert attention(q, k, v, attn_mask=mask).tolist() == [[[[0, 1, 0, 0, 0]]]]
    layer = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    _, weights = layer(torch.ones(1, 1, 4), k[0], k[0], attn_mask=mask)
    assert weights[0, 0, 1] == 0


def test_the_numbers_of_lesson_2_are_those_of_its_experiments():
    from helpers import attention
    from helpers.experiments import (
        DISTRIBUTIONS,
        DotProductSettings,
        draw_scores,
        initial_score_std,
        predicted_spread,
    )

    by_id = {q.id: q for q in (*lesson02.PREDICTIONS, *lesson02.QUIZ)}

    def answer(id):
        right = next(option for option in by_id[id].options if option.right)
        return f"{right.text} {right.feedback}"

    product = np.abs(np.prod(DISTRIBUTIONS["normal"].draw(np.random.default_rng(0), (2, 10**6)), 0))
    assert f"{(product > 3).mean():.0%}".replace("%", " %") in answer("2.2")
    assert np.mean(product < 0.25) == pytest.approx(0.40, abs=0.002)
    assert f"{predicted_spread(DotProductSettings(std=2.0)).variance:.0f}" in answer("2.3")
    mean = predicted_spread(DotProductSettings(mean=1.0))
    assert (mean.variance, mean.within_row_variance) == (192, 128)
    assert "128" in answer("2.4")
    every_key = predicted_spread(DotProductSettings(correlation=0.5))
    assert every_key == (32, 80, 48)
    assert "48 instead of 64" in answer("2.5")
    weights = attention.softmax(draw_scores(DotProductSettings(256), 2_000) / 256)
    assert f"{weights.max(axis=1).mean():.3f}" in answer("2.6")
    assert f"{attention.normalized_entropy(weights).mean():.2%}".replace("%", " %") in answer("2.6")
    std = initial_score_std(64, 768, 0.02)
    assert f"{std:.2f}" in answer("init")
    assert f"{std / 8:.2f}" in answer("init")


def test_four_scores_say_next_to_nothing_about_a_variance():
    q, k = np.random.default_rng(0).standard_normal((2, 50_000, 2, 4))
    variances = np.einsum("nid,njd->nij", q, k).reshape(-1, 4).var(axis=1, ddof=1)
    assert variances.mean() == pytest.approx(4, abs=0.1)
    assert 1 / 3 < (variances <= 1.6).mean() < 0.4
    assert 0.04 < (variances > 12).mean() < 0.08


def test_t5s_scores_start_with_spread_1():
    """W_Q ~ N(0, 1/(d_model·d_k)), W_K ~ N(0, 1/d_model), no scale (T5's reference code)."""
    rng, d_model, d_k = np.random.default_rng(0), 768, 64
    x = rng.standard_normal((64, d_model))
    x /= np.sqrt((x**2).mean(axis=1, keepdims=True))
    q, k = (x @ (s * rng.standard_normal((50, d_model, d_k))) for s in (1 / 8, 1))
    assert (q @ k.mT / d_model).std() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("optimizer", "ratio"), [("SGD", 64), ("Adam", 8)])
def test_a_folded_scale_is_the_same_function_with_larger_steps(optimizer, ratio):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    x, k, upstream = torch.randn(5, 16), torch.randn(5, 64), torch.randn(5, 5)
    start, outputs, steps = torch.randn(16, 64) / 4, [], []
    for in_weight, in_scores in ((1, 8), (8, 1)):
        weight = (start / in_weight).requires_grad_()
        weights = (x @ weight @ k.T / in_scores).softmax(dim=-1)
        outputs.append(weights.detach())
        (weights * upstream).sum().backward()
        before = weight.detach().clone()
        getattr(torch.optim, optimizer)([weight], lr=1e-3).step()
        steps.append((weight.detach() - before).norm() * in_weight)
    torch.testing.assert_close(*outputs)
    assert steps[1] / steps[0] == pytest.approx(ratio, rel=0.01)


# --- predict ---


def test_choosing_gives_feedback_and_locks_nothing():
    prediction = predict("1.1")
    assert list(prediction.controls) == ["A", "B", "C", "D"]
    assert prediction.state == {"tried": [], "right": False}
    assert "because" not in prediction.words
    prediction.controls["B"].click()
    assert prediction.state == {"tried": ["B"], "right": False}
    assert "✗ Not B." in prediction.words
    assert "Try another" in prediction.words
    assert prediction.controls["B"].description.startswith("✗ B")
    prediction.controls["D"].click()
    assert prediction.state == {"tried": ["B", "D"], "right": True}
    assert "✓ D is right." in prediction.words
    assert not any(button.disabled for button in prediction.controls.values())
    assert prediction.controls["B"].description.startswith("✗ B")


def test_the_feedback_is_a_live_region_and_escaped():
    question = Question("1", "a < b?", (Option("x", "x <i> is.", True), Option("y", "no.")))
    from helpers.practice.questions import Prediction

    prediction = Prediction(question)
    prediction.controls["A"].click()
    values = [getattr(w, "value", "") for w in prediction.view.children[1].children]
    spoken = [value for value in values if 'role="status"' in value]
    assert len(spoken) == 1
    assert "x &lt;i&gt; is." in spoken[0]


@pytest.mark.parametrize("question", ALL_PREDICTIONS, ids=lambda question: question.id)
def test_the_static_form_hides_the_answer(question):
    bundle, _ = predict(question.id)._repr_mimebundle_()
    for option in question.options:
        assert option.feedback not in bundle["text/plain"]
    html = bundle["text/html"]
    folded = html[html.index("<details>") : html.index("</details>")]
    assert "<summary>Answer</summary>" in folded
    assert folded.count("✓") == 1
    assert folded.count("✗") == len(question.options) - 1
    assert "✓" not in html.replace(folded, "")
    assert not re.search(r"<style|<script|style=|0x", html)


def test_numbered_lines_stand_under_their_prompt():
    shown = predict("2.8")
    lines = lesson02.PREDICTIONS[7].lines
    assert f"\n  3. {lines[2]}\n" in shown.words
    html = shown._repr_mimebundle_()[0]["text/html"]
    live = shown.view.children[1].children[0].value
    for page in (html, live):
        assert page.count("<li>qᵢ and kᵢ are independent") == 2
        assert page.index("Spot the error") < page.index("<ol>") < page.index("</ol>")


# --- quiz ---


def test_a_quiz_counts_first_answers_and_starts_again():
    shown = quiz("1")
    right = {
        i: "ABCD"[[option.right for option in question.options].index(True)]
        for i, question in enumerate(QUIZ, start=1)
    }
    for i, letter in right.items():
        if i == 2:
            wrong = next(other for other in "ABCD" if other != letter)
            shown.controls[f"{i}{wrong}"].click()
        shown.controls[f"{i}{letter}"].click()
    assert shown.state == {"answered": len(QUIZ), "right": len(QUIZ) - 1, "questions": len(QUIZ)}
    assert f"{len(QUIZ) - 1} of {len(QUIZ)} right at the first try" in shown.words
    shown.controls["again"].click()
    assert shown.state == {"answered": 0, "right": 0, "questions": len(QUIZ)}
    assert "✓" not in shown.words
    assert not shown.controls[f"1{right[1]}"].description.startswith("✓")


def test_a_quiz_gives_feedback_to_each_option():
    shown = quiz("1")
    for i, question in enumerate(QUIZ, start=1):
        for letter, option in zip("ABCD", question.options, strict=False):
            shown.controls[f"{i}{letter}"].click()
            assert option.feedback in shown.words


def test_the_static_quiz_has_every_question_with_its_answer_folded():
    bundle, _ = quiz("1")._repr_mimebundle_()
    assert bundle["text/html"].count("<details>") == len(QUIZ)
    for question in QUIZ:
        assert question.prompt.replace("`", "") in bundle["text/plain"].replace("`", "")
        assert question.options[0].feedback not in bundle["text/plain"]


# --- ids ---


@pytest.mark.parametrize("call", [predict, hint, solution, lambda id: check(id, len)])
def test_an_unknown_id_names_the_known_ones(call):
    for id in ("1.99", "7.1", "", "nonsense"):
        with pytest.raises(ValueError, match=r"there are: 1\.1, 1\.2, "):
            call(id)
    with pytest.raises(ValueError, match="in quotes"):
        call(1.1)


def test_an_unknown_quiz_names_the_known_ones():
    with pytest.raises(ValueError, match=r"there is one for: 1"):
        quiz("77")
    assert quiz(1).state["questions"] == len(QUIZ)
