"""Predictions and quizzes: their content, what a click does, and their static form."""

import re

import numpy as np
import pytest

from helpers.practice import check, hint, predict, quiz, solution
from helpers.practice.lesson01 import PREDICTIONS, QUIZ, K, Q, V
from helpers.practice.questions import Option, Question, collection

ALL = [*PREDICTIONS, *QUIZ]


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


def test_the_right_option_is_not_always_in_the_same_place():
    places = [[option.right for option in question.options].index(True) for question in ALL]
    assert len(set(places)) == 4
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


@pytest.mark.parametrize("question", PREDICTIONS, ids=lambda question: question.id)
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
