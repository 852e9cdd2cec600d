"""The checkers: right answers pass, wrong ones are rejected under the right name."""

import re
import time

import numpy as np
import pytest
import wrong_answers as answers

from helpers.practice import check, hint, kernels, lessons, solution
from helpers.practice.exercises import Case, Exercise, Mistake
from helpers.practice.verdict import Verdict

ALL = lessons.every("EXERCISES")  # trials too
EXERCISES = [exercise for exercise in ALL if isinstance(exercise, Exercise)]
BY_ID = {exercise.id: exercise for exercise in ALL}


@pytest.fixture(scope="module", autouse=True)
def torch_is_ready():
    """What it takes to import it once is not the fault of the first answer that uses it."""
    kernels.warm_up()


def name(answer):
    exercise, fn, *mistake = answer
    return "-".join([exercise, str(fn.__code__.co_firstlineno), *mistake])


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_the_solution_passes(exercise):
    verdict = check(exercise.id, exercise.solution)
    assert verdict.passed
    assert verdict.attempted
    assert verdict.mistake is None
    assert "✓ passed" in str(verdict)


@pytest.mark.parametrize("answer", answers.WRONG, ids=name)
def test_a_wrong_answer_is_rejected_by_name(answer):
    exercise, fn, mistake = answer
    verdict = check(exercise, fn)
    assert not verdict.passed
    assert verdict.attempted
    assert verdict.mistake == mistake, verdict
    assert (verdict.evidence is not None) == (BY_ID[exercise] in EXERCISES)
    verdict._repr_mimebundle_()


def test_the_catalogue_is_large_enough():
    for exercise in BY_ID:
        assert len({mistake for id, _, mistake in answers.WRONG if id == exercise}) >= 8, exercise
        assert sum(id == exercise for id, _ in answers.RIGHT) >= 3, exercise
    assert len(answers.HOSTILE) >= 10


@pytest.mark.parametrize("answer", answers.HOSTILE, ids=name)
def test_a_hostile_answer_is_survived(answer, capfd):
    exercise, fn, mistakes = answer
    start = time.monotonic()
    verdict = check(exercise, fn)
    assert time.monotonic() - start < 6.5
    assert not verdict.passed
    assert verdict.mistake in mistakes.split("|"), verdict
    assert not re.search(r"0x[0-9a-f]{4}|/tmp|/work", str(verdict))
    verdict._repr_mimebundle_()
    assert capfd.readouterr() == ("", "")


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("answer", answers.RIGHT, ids=name)
def test_a_right_answer_passes_however_it_is_written(answer):
    exercise, fn = answer
    verdict = check(exercise, fn)
    assert verdict.passed, verdict


REFERENCES = [
    pytest.param(exercise, mistake, reference, id=f"{exercise.id}-{mistake.id}-{i}")
    for exercise in EXERCISES
    for mistake in exercise.mistakes
    for i, reference in enumerate(mistake.references)
]


@pytest.mark.parametrize(("exercise", "mistake", "reference"), REFERENCES)
def test_every_known_mistake_can_be_told_from_every_other(exercise, mistake, reference):
    """Each of the checkers' own wrong functions gets its own name and no second one."""
    wrappers = {
        1: lambda x: reference(x),
        2: lambda q, k: reference(q, k),
        3: lambda q, k, v: reference(q, k, v),
        4: lambda a, b, c, d: reference(a, b, c, d),
        5: lambda a, b, c, d, e: reference(a, b, c, d, e),
        7: lambda a, b, c, d, e, f, g: reference(a, b, c, d, e, f, g),
    }
    verdict = check(exercise.id, wrappers[len(exercise.names)])
    assert verdict.mistake == mistake.id, verdict


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_a_stub_is_not_attempted_and_fails_nothing(exercise):
    def raises(*args):
        raise NotImplementedError

    for stub in (lambda *args: None, raises):
        verdict = check(exercise.id, stub)
        assert (verdict.passed, verdict.attempted, verdict.mistake) == (False, False, None)
        assert "not attempted yet" in str(verdict)
        assert exercise.signature in str(verdict)
        assert exercise.statement[:40].replace("`", "") in str(verdict).replace("`", "")


def test_what_is_not_a_function_is_said_to_be_none():
    for value in (None, np.eye(2), "scores"):
        verdict = check("1.1", value)
        assert verdict.mistake == "not-a-function"
        assert f'check("1.1", {BY_ID["1.1"].solution.__name__})' in verdict.message


def test_expected_stands_beside_actual_for_the_smallest_failing_case():
    def columns(scores):
        e = np.exp(scores)
        return e / e.sum(axis=0)

    assert str(check("1.2", columns)) == (
        "1.2 Softmax: ✗ not yet\n"
        "The columns of your result sum to 1, not the rows: the softmax runs over the wrong axis "
        "(use `axis=-1`).\n"
        "\n"
        "Smallest input that shows it (1 query, 2 keys):\n"
        "scores  1×2     expected  1×2     your result  1×2\n"
        "1  2            0.269  0.731      1.000  1.000"
    )


def test_numbers_stand_beside_each_other_too():
    assert str(check("2.2", lambda d_k, mean, std: (d_k * std**4, d_k * std**4))) == (
        "2.2 What broken assumptions do to the spread: ✗ not yet\n"
        "The mean has no part in your result, but it adds to both variances: 2σ²μ² · d_k pooled, "
        "σ²μ² · d_k within a row.\n"
        "\n"
        "Smallest input that shows it (a mean):\n"
        "d_k     mean     std     expected  2 numbers     your result  2 numbers\n"
        "3       2        1       27  15                  3  3"
    )
    too_few = check("2.2", lambda d_k, mean, std: d_k + 1)
    assert too_few.message == "The result should be 2 numbers, but is one number."
    too_many = check("2.1", lambda d_k, n: [d_k, n])
    assert too_many.message == "The result should be one number, but is an array of shape (2,)."


def test_of_a_stack_of_tables_those_that_are_wrong_are_shown():
    def second_head_is_wrong(q, k, heads):
        scores = BY_ID["2.4"].solution(q, k, heads)
        return scores + (np.arange(heads) == 1)[:, None, None]

    verdict = check("2.4", second_head_is_wrong)
    assert "heads     expected[1]  of 2×1×1     your result[1]  of 2×1×1\n" in str(verdict)
    assert re.search(r"-0\.75 +0\.25$", str(verdict))
    assert "[0]" not in str(verdict)
    assert verdict._html().count('class="abh-off"') == 1


def test_a_second_finding_is_remarked_upon():
    def scaled_in_place(q, k, v):
        q /= q.shape[-1]
        scores = q @ k.T
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    verdict = check("1.3", scaled_in_place)
    assert verdict.mistake == "divided-by-d_k"
    assert "changes its argument `q`" in verdict.remarks[0]


def test_an_error_is_shown_with_the_readers_line():
    def attention(q, k, v):
        scores = q @ k.transpose(1, 2)
        return scores @ v

    verdict = check("1.3", attention)
    assert verdict.mistake == "raises-error"
    assert "`scores = q @ k.transpose(1, 2)`" in verdict.message
    assert "AxisError" in verdict.message or "ValueError" in verdict.message


def test_mistakes_that_cannot_be_told_apart_are_named_together():
    def double(x):
        return 2 * x

    def right(x):
        return x

    exercise = Exercise(
        id="9.1",
        title="Identity",
        minutes=1,
        difficulty="easy",
        statement="",
        signature="",
        hints=("Return it.",),
        solution=right,
        cases=(Case("one", (np.array([[2.0]]),), example=True),),
        mistakes=(
            Mistake("doubled", "It is doubled.", (double,)),
            Mistake("squared", "It is squared.", (lambda x: x**2,)),
        ),
    )
    from helpers.practice import exercises

    verdict = exercises.check(exercise, double)
    assert verdict.mistake == "doubled|squared"
    assert "It is doubled." in verdict.message
    assert "It is squared." in verdict.message


def test_an_exercise_without_the_example_or_with_a_mistake_twice_is_refused():
    case = Case("one", (np.eye(2),))
    parts = {
        "id": "9.1",
        "title": "",
        "minutes": 1,
        "difficulty": "",
        "statement": "",
        "signature": "",
        "hints": ("hint",),
        "solution": lambda x: x,
    }
    with pytest.raises(ValueError, match="example"):
        Exercise(**parts, cases=(case,), mistakes=())
    twice = (Mistake("a", "A."), Mistake("a", "B."))
    example = Case("one", (np.eye(2),), example=True)
    with pytest.raises(ValueError, match="same id"):
        Exercise(**parts, cases=(example,), mistakes=twice)


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_an_exercise_says_all_that_a_lesson_needs(exercise):
    assert exercise.title
    assert exercise.statement
    assert exercise.minutes > 0
    assert exercise.difficulty in ("easy", "medium", "hard")
    assert exercise.solution.__name__ in exercise.signature
    assert 3 <= len(exercise.hints) <= 4


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_cases_differ_and_some_are_large(exercise):
    assert len({case.label for case in exercise.cases}) == len(exercise.cases)
    weights_alone = exercise.names == ("weights",)  # which are never large
    assert weights_alone or any(case.large for case in exercise.cases)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_inputs_are_exact_in_float32_and_results_are_finite(exercise):
    for case in exercise.cases:
        for arg in case.args:
            assert np.ndim(arg) == 0 or (arg.astype(np.float32) == arg).all()
        assert np.isfinite(exercise.expected(case)).all()


def test_solutions_agree_with_the_reference_implementation():
    from helpers import attention
    from helpers.practice import lesson01

    for case in BY_ID["1.2"].cases:
        ours = lesson01.softmax(*case.args)
        np.testing.assert_allclose(ours, attention.softmax(*case.args), atol=1e-12)
    for id, is_causal in (("1.3", False), ("1.4", True)):
        for case in BY_ID[id].cases:
            theirs = attention.scaled_dot_product_attention(*case.args, is_causal=is_causal)
            np.testing.assert_allclose(BY_ID[id].expected(case), theirs, atol=1e-9)


def test_solutions_of_lesson_2_agree_with_the_measurements():
    from helpers import attention, experiments

    def spread(d_k, mean, std):
        predicted = experiments.predicted_spread(
            experiments.DotProductSettings(d_k, mean=mean, std=std)
        )
        return predicted.variance, predicted.within_row_variance

    def head_scores(q, k, heads):
        columns = np.split(np.arange(q.shape[1]), heads)
        return [attention.attention_steps(q[:, c], k[:, c], k).scaled for c in columns]

    theirs = {
        "2.2": spread,
        "2.1": experiments.variance_standard_error,
        "2.3": experiments.initial_score_std,
        "2.4": head_scores,
    }
    for id, reference in theirs.items():
        for case in BY_ID[id].cases:
            np.testing.assert_allclose(BY_ID[id].expected(case), reference(*case.args), atol=1e-12)


# --- How a verdict, a hint and a solution show themselves ---


def test_a_verdict_is_text_and_themed_html():
    bundle = check("1.1", lambda q, k: (q @ k.T).T)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "expected" in bundle["text/html"]
    assert "var(--jp-" in bundle["text/html"]
    assert 'class="abh-off"' in check("1.2", lambda s: s * 0)._html()


def test_html_in_a_message_is_escaped():
    verdict = Verdict("1.1 <b>", False, True, "x", "a <script> & `code`")
    html = verdict._repr_mimebundle_()["text/html"]
    assert "<script>" not in html
    assert "a &lt;script&gt; &amp; <code>code</code>" in html


def test_hints_come_one_at_a_time_and_begin_anew_in_each_display():
    hints = BY_ID["1.2"].hints
    for _ in range(2):
        shown = hint("1.2")
        assert shown.state == {"shown": 0}
        assert hints[0] not in shown.words
        for count in range(1, len(hints) + 1):
            assert f"hint {count} of {len(hints)}" in shown.controls["next"].description
            shown.controls["next"].click()
            assert shown.state == {"shown": count}
            assert hints[count - 1] in shown.words
        assert shown.controls["next"].disabled
        shown.controls["next"].click()
        assert shown.state == {"shown": len(hints)}


def test_the_static_hint_is_the_first_one_folded_and_says_how_many_follow():
    bundle, _ = hint("1.1")._repr_mimebundle_()
    html = bundle["text/html"]
    assert html.index("<details>") < html.index("How many numbers") < html.index("</details>")
    assert "3 more hints" in html
    assert BY_ID["1.1"].hints[1] not in html
    assert "Hint 1 of 4" in bundle["text/plain"]


def test_a_solution_is_its_source_and_shown_on_request():
    shown = solution("1.3")
    assert shown.source.startswith("def attention(q, k, v):\n")
    assert "def attention" not in shown.words
    shown.controls["show"].click()
    assert shown.state == {"shown": True}
    assert shown.source in shown.words
    shown.controls["show"].click()
    assert shown.state == {"shown": False}
    html = shown._repr_mimebundle_()[0]["text/html"]
    assert html.index("<details>") < html.index("def attention") < html.index("</details>")
