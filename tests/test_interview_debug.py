"""The functions to diagnose: the doctor agrees, the cure cures, and every symptom is true."""

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from helpers.attention import entropy, scaled_dot_product_attention, softmax
from helpers.doctor import CATALOGUE
from helpers.interview import broken, debug, markup
from helpers.interview.bank import FOLDER, LESSONS, LEVELS

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
CASES = debug.cases()
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


@every_case
def test_the_doctor_says_what_is_wrong(case):
    assert case.examine().name == case.disease
    assert case.is_sound or all(name in CATALOGUE for name in case.disease.split("|"))


@every_case
def test_the_cure_cures(case):
    assert case.examine(case.fixed).sound
    assert bool(case.fix) != case.is_sound


@every_case
def test_a_reader_sees_code_that_gives_nothing_away(case):
    lines = case.code.splitlines()
    assert lines[0].startswith("def attention(q, k, v")
    assert 4 <= len(lines) <= 14
    assert "#" not in case.code
    assert '"""' not in case.code
    assert case.function.__name__ not in case.code
    assert not [name for name in case.disease.split("|") if name in case.id]


@every_case
def test_the_question_has_one_right_answer_and_replies_to_all(case):
    question = case.question
    assert len(question.options) == 4
    assert question.options[-1].text == debug.NOTHING
    assert question.options[-1].right == case.is_sound
    for text in (case.title, case.promise, *(option.feedback for option in question.options)):
        assert markup.plain(text)
        assert "$" not in text
    words = [len(option.feedback.split()) for option in question.options]
    assert 8 <= min(words) <= max(words) <= 60


@every_case
def test_it_is_taught_where_it_says(case):
    notebook = json.loads((NOTEBOOKS / LESSONS[case.lesson]).read_text(encoding="utf-8"))
    text = "\n".join(
        "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
    )
    assert case.section in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    assert list(FOLDER.glob(f"[0-9][0-9]_{case.topic}.toml"))


def test_all_functions_are_asked_about_once():
    functions = {
        function
        for function in vars(broken).values()
        if getattr(function, "__module__", "") == broken.__name__
    }
    assert {case.function for case in CASES} == functions
    assert len({case.id for case in CASES}) == len({case.title for case in CASES}) == len(CASES)


def test_there_is_enough_of_everything():
    assert sum(not case.is_sound for case in CASES) >= 14
    assert sum(case.is_sound for case in CASES) >= 2
    for level in LEVELS:
        assert sum(case.level == level for case in CASES) >= 5
    needed = {"no-scale", "scale-by-d_model", "divided-by-d_k|scale-twice", "softmax-over-queries"}
    needed |= {"mask-inverted", "mask-after-softmax", "causal-leaks-one", "causal-wrong-alignment"}
    needed |= {"overflows", "nan-on-fully-masked-row", "heads-mixed-in-the-inputs"}
    needed |= {"gqa-heads-tiled", "accumulator-not-rescaled", "normaliser-not-rescaled"}
    needed |= {"padding-takes-weight", "low-precision-accumulation", "changes-its-input"}
    assert needed <= {case.disease for case in CASES}


def test_the_right_answer_is_not_always_in_the_same_place():
    places = [[option.right for option in case.question.options].index(True) for case in CASES]
    assert {places.count(place) for place in range(4)} & {0} == set()
    assert max(places.count(place) for place in range(4)) <= len(CASES) // 2


def test_a_case_is_found_by_its_id():
    with pytest.raises(ValueError, match="'nobody'"):
        debug.case("nobody")
    assert debug.case(CASES[0].id) is CASES[0]


def test_a_change_that_is_not_in_the_code_is_refused():
    case = debug.Broken(
        id="x", title="X", function=broken.in_place, disease="no-scale", level="screen", minutes=1,
        symptom="…", diagnoses=(), nothing="…", lesson="1", section="Recap", topic="divisors",
        change=(("nowhere", "here"),),
    )  # fmt: skip
    with pytest.raises(ValueError, match="'nowhere' is in the code 0 times"):
        _ = case.fixed_code


# --- Every symptom is seen ---

rng = np.random.default_rng(7)


def normal(*shape):
    return rng.standard_normal(shape)


def right(q, k, v, **arguments):
    return scaled_dot_product_attention(q, k, v, **arguments)


def close(a, b):
    return np.allclose(a, b, rtol=1e-9, atol=1e-9)


def largest_weight(scores):
    return softmax(scores).max(axis=-1).mean()


def one_key_takes_nearly_all():
    q, k = normal(2000, 1, 128), normal(2000, 64, 128)
    scores = q @ k.mT
    values = np.broadcast_to(np.eye(64), (2000, 64, 64))  # the output is then the weights
    weights = broken.scores_left_large(q[:, None], k[:, None], values[:, None])
    assert close(weights[:, 0], softmax(scores))
    assert abs(weights.max(axis=-1).mean() - 0.85) < 0.02
    assert abs(largest_weight(scores / np.sqrt(128)) - 0.11) < 0.01


def right_with_one_head():
    q, k, v = normal(300, 1, 12, 64), normal(300, 64, 12, 64), normal(300, 64, 12, 64)
    one = [x[:, :, :1] for x in (q, k, v)]
    assert close(broken.width_of_all_heads(*one)[:, :, 0], right(*(x[:, :, 0] for x in one)))
    values = np.broadcast_to(np.eye(64)[:, None], (300, 64, 12, 64))
    assert abs(broken.width_of_all_heads(q, k, values).max(axis=-1).mean() - 0.03) < 0.005
    assert abs(largest_weight(np.einsum("bqhd,bkhd->bhqk", q, k) / 8) - 0.11) < 0.01


def everybody_is_average():
    q, k = normal(2000, 1, 64), normal(2000, 64, 64)
    weights = broken.scaled_here_and_there(q, k, np.broadcast_to(np.eye(64), (2000, 64, 64)))
    assert abs(entropy(weights).mean() / np.log(64) - 0.998) < 0.001
    assert abs(entropy(softmax(q @ k.mT / 8)).mean() / np.log(64) - 0.89) < 0.01


def company_matters():
    q, k, v = normal(1, 1, 5, 8), normal(1, 1, 6, 8), normal(1, 1, 6, 8)
    alone = broken.keys_first(q[..., :1, :], k, v)
    assert close(alone, v.sum(axis=-2, keepdims=True))
    assert not close(alone, broken.keys_first(q, k, v)[..., :1, :])


def values_of_one():
    for T, mean in ((64, 8), (16, 2)):
        q, k = normal(1, T, 8, 4), normal(1, T, 8, 4)
        assert abs(broken.heads_last(q, k, np.ones_like(k)).mean() - mean) < 1e-9


def the_right_shapes():
    q, k, v = (normal(2, 16, 8, 4) for _ in range(3))
    out = broken.reshaped_to_heads(q, k, v)
    assert out.shape == v.shape
    for x in (q, k, v):
        x[:, -1] += 1
    assert close(broken.reshaped_to_heads(q, k, v)[:, :, 0], out[:, :, 0])
    one = [x[:, :, :1] for x in (q, k, v)]
    assert close(broken.reshaped_to_heads(*one)[:, :, 0], right(*(x[:, :, 0] for x in one)))


def eight_heads_and_two():
    q, k, v = normal(1, 8, 4, 16), normal(1, 8, 10, 16), normal(1, 8, 10, 16)
    for heads, agree in ((8, range(8)), (1, range(8)), (2, (0, 2, 5, 7))):
        keys, values = k[:, :heads], v[:, :heads]
        ours = broken.tiled_heads(q, keys, values, enable_gqa=True)
        theirs = right(q, keys, values, enable_gqa=True)
        assert [h for h in range(8) if close(ours[:, h], theirs[:, h])] == list(agree)


def only_the_padding_counts():
    q, k, v = (normal(1, 1, 6, 4) for _ in range(3))
    mask = np.broadcast_to(np.arange(6) < 4, (6, 6))  # the last two are padding
    before = broken.filled_where_true(q, k, v, mask)
    v[..., :4, :] += 1
    assert close(broken.filled_where_true(q, k, v, mask), before)
    v[..., 5, :] += 1
    assert not close(broken.filled_where_true(q, k, v, mask), before)


def the_more_padding_the_smaller():
    q, k = normal(1, 1, 6, 4), normal(1, 1, 6, 4)
    sums = [
        broken.masked_at_the_end(q, k, np.ones((1, 1, 6, 1)), np.broadcast_to(seen, (6, 6)))
        for seen in (np.arange(6) < n for n in range(6, 0, -1))
    ]
    assert close(sums[0], 1)
    assert all((fewer < more).all() for more, fewer in pairwise(sums))


def the_first_knows_the_last():
    q, k, v = (normal(1, 1, 6, 4) for _ in range(3))
    before = broken.triangle_kept(q, k, v)
    v[..., -1, :] += 1
    assert not close(broken.triangle_kept(q, k, v)[..., 0, :], before[..., 0, :])


def token_five():
    q, k, v = (normal(1, 1, 8, 4) for _ in range(3))
    before = broken.diagonal_of_two(q, k, v)
    for x in (q, k, v):
        x[..., 5, :] += 1
    changed = ~np.isclose(broken.diagonal_of_two(q, k, v), before).all(axis=-1)[0, 0]
    assert list(np.flatnonzero(changed)) == [4, 5, 6, 7]


def prompts_are_fine():
    q, k, v = (normal(1, 1, 8, 4) for _ in range(3))
    assert close(broken.counted_from_the_first(q, k, v), right(q, k, v, is_causal=True))
    assert close(broken.counted_from_the_first(q[..., -1:, :], k, v), v[..., :1, :])


def no_mask_at_all():
    q, k, v = (normal(1, 1, 1000, 4) for _ in range(3))
    ours, theirs = broken.counted_from_the_last, right
    assert close(ours(q, k, v), theirs(q, k, v, is_causal=True))
    assert not close(ours(q[..., -1:, :], k, v), theirs(q[..., -1:, :], k, v, is_causal=True))


def nan_in_padded_batches():
    q, k, v = (normal(2, 1, 6, 4) for _ in range(3))
    real = np.arange(6) < np.array([[6], [4]])  # the second sequence has two padding tokens
    mask = (real[:, :, None] & real[:, None, :])[:, None]
    first = broken.nothing_to_choose_from(q, k, v, mask)
    assert np.isnan(first[1, 0]).all(axis=-1).tolist() == [False] * 4 + [True] * 2
    second = broken.nothing_to_choose_from(first, first, first, mask)
    assert np.isnan(second[1]).all()
    assert not np.isnan(second[0]).any()
    assert np.isfinite(broken.nothing_to_choose_from(q, k, v)).all()


def biases_too_weak():
    q, k, v, bias = normal(1, 1, 5, 64), normal(1, 1, 7, 64), normal(1, 1, 7, 4), normal(5, 7)
    assert close(broken.bias_inside(q, k, v), right(q, k, v))
    assert close(broken.bias_inside(q, k, v, bias), right(q, k, v, attn_mask=bias / 8))


def nan_above_89():
    with np.errstate(over="ignore", invalid="ignore"):
        for score, is_nan in ((88.0, False), (89.0, True)):
            q, k = np.full((1, 1, 1, 1), score, np.float32), np.ones((1, 1, 1, 1), np.float32)
            assert np.isnan(broken.straight_exponentials(q, k, k)).any() == is_nan


def bad_company():
    q, k, v = (normal(2, 1, 5, 4) for _ in range(3))
    q[1], k[1] = 1, 500 + 0.1 * k[1]  # scores of 4 · 500 / √4 = 1,000
    with np.errstate(invalid="ignore"):
        together = broken.one_maximum(q, k, v)
    assert np.isnan(together[0]).all()
    assert close(together[1], right(q[1], k[1], v[1]))
    assert close(broken.one_maximum(q[:1], k[:1], v[:1]), right(q[:1], k[:1], v[:1]))


def longer_is_worse():
    for T, error in ((64, 0.005), (4096, 0.08)):
        q, k, v = (normal(1, 4, n, 64).astype(np.float32) for n in (16, T, T))
        v += 1
        out = broken.half_a_sum(q, k, v)
        assert out.dtype == np.float32
        assert error / 2 < np.abs(out - right(q, k, v)).max() < error * 2


def the_second_call():
    q, k = normal(1, 1, 1, 16), normal(1, 1, 9, 16)
    values, expected = np.eye(9)[None, None], right(q, k, np.eye(9)[None, None])
    weights = [broken.in_place(q, k, values) for _ in range(6)]
    assert close(weights[0], expected)
    spreads = [each.std() for each in weights]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] < 0.01 * spreads[0]


def seven_tenths():
    q, k, v = normal(1, 1, 5, 64), normal(1, 1, 7, 64), normal(1, 1, 7, 4)
    ours = broken.powers_of_two(q, k, v)
    assert np.allclose(ours, right(q, k, v, scale=0.0866), atol=1e-2)
    assert close(ours, right(q, k, v, scale=0.125 * np.log(2)))


def sixty_five():
    for T in (64, 65):
        q, k, v = (normal(1, 1, T, 8) for _ in range(3))
        wrong = ~np.isclose(broken.whole_blocks(q, k, v), right(q, k, v)).all(axis=-1)[0, 0]
        assert list(np.flatnonzero(wrong)) == ([] if T == 64 else [64])


def ratios(function, T):
    """(T_q, d_v), output over the right output."""
    q, k, v = (normal(1, 1, n, 8) for n in (40, T, T))
    return (function(q, k, v) / right(q, k, v))[0, 0]


def too_short_for_65():
    assert close(ratios(broken.filled_up, 64), 1)
    assert close(ratios(broken.filled_up, 128), 1)
    rows = ratios(broken.filled_up, 65)
    assert np.allclose(rows, rows[:, :1])
    assert (rows < 0.99).all()


def the_right_direction():
    assert close(ratios(broken.sum_left_behind, 32), 1)
    rows = ratios(broken.sum_left_behind, 64)
    assert np.allclose(rows, rows[:, :1])
    assert (rows < 1 + 1e-6).all()
    assert (rows[:, 0] < 0.99).any()
    assert np.isclose(rows[:, 0], 1).any()


def order_matters():
    q, k, v = (normal(1, 1, n, 8) for n in (3, 100, 100))
    q[..., 0], k[..., 0] = 3, 0
    for at, agrees in ((0, True), (99, False)):
        keys = k.copy()
        keys[..., at, 0] = 30
        assert close(broken.output_left_behind(q, keys, v), right(q, keys, v)) == agrees
    assert close(
        *(f(q, k[..., :64, :], v[..., :64, :]) for f in (broken.output_left_behind, right))
    )


def the_newest_token_gets_half():
    q, k = normal(1, 1, 4, 8), normal(1, 1, 65, 8)
    weights = broken.parts_alike(q, k, np.eye(65)[None, None])
    assert close(weights[..., -1], 0.5)
    assert close(*(f(q, k[..., :64, :], k[..., :64, :]) for f in (broken.parts_alike, right)))


SYMPTOMS = [
    no_mask_at_all,
    one_key_takes_nearly_all, right_with_one_head, everybody_is_average, company_matters,
    values_of_one, the_right_shapes, eight_heads_and_two, only_the_padding_counts,
    the_more_padding_the_smaller, the_first_knows_the_last, token_five, prompts_are_fine,
    nan_in_padded_batches, biases_too_weak, nan_above_89, bad_company, longer_is_worse,
    the_second_call, seven_tenths, sixty_five, too_short_for_65, the_right_direction,
    order_matters, the_newest_token_gets_half,
]  # fmt: skip


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.__name__)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_the_symptom_is_true(symptom):
    symptom()


def test_every_symptom_is_measured():
    measured = {symptom.__name__.replace("_", "-") for symptom in SYMPTOMS}
    assert measured >= {case.id for case in CASES if not case.is_sound}
    assert measured <= {case.id for case in CASES}
