"""Lesson 6's whiteboard tasks about attention agree with the package and with torch, its judge says
what it sees, and its questions' numbers hold."""

import numpy as np
import pytest
from wrong_answers.book import stable

from helpers import attention
from helpers.practice import check, exercises, judges06, lesson06
from helpers.practice.exercises import Exercise

BY_ID = {exercise.id: exercise for exercise in lesson06.EXERCISES}
QUESTIONS = {each.id: each for each in (*lesson06.PREDICTIONS, *lesson06.QUIZ)}
MINE = ("6.2", "6.3", "6.6")


def answer(id):
    right = next(option for option in QUESTIONS[id].options if option.right)
    return f"{right.text} {right.feedback}"


def test_the_tasks_stand_in_order():
    assert list(BY_ID) == [f"6.{number}" for number in range(1, 9)]
    assert sum(exercise.minutes for exercise in BY_ID.values()) <= 60


# --- Solutions ---


@pytest.mark.parametrize("id", MINE)
def test_solutions_warn_of_nothing(id):
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        for case in BY_ID[id].cases:
            BY_ID[id].expected(case)
    assert check(id, BY_ID[id].solution).remarks == ()


def heads_of(rows, count):
    return rows.reshape(len(rows), count, -1).swapaxes(0, 1)


def layer_of_the_package(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    q, k, v = heads_of(x @ w_q, heads), heads_of(x @ w_k, kv_heads), heads_of(x @ w_v, kv_heads)
    out = attention.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    return np.concatenate(list(out), axis=-1) @ w_o


def causal_of_the_package(q, k, v):
    mask = attention.causal_mask(q.shape[-2], k.shape[-2], "lower_right")
    return attention.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def test_solutions_agree_with_the_package():
    theirs = {
        "6.2": attention.scaled_dot_product_attention,
        "6.3": causal_of_the_package,
        "6.6": layer_of_the_package,
    }
    for id, reference in theirs.items():
        for case in BY_ID[id].cases:
            np.testing.assert_allclose(BY_ID[id].expected(case), reference(*case.args), atol=1e-9)


def test_grouped_heads_are_torchs():
    torch = pytest.importorskip("torch")
    for case in BY_ID["6.6"].cases:
        x, w_q, w_k, w_v, w_o, heads, kv_heads = case.args
        q = torch.from_numpy(heads_of(x @ w_q, heads).copy())[None]
        k, v = (torch.from_numpy(heads_of(x @ w, kv_heads).copy())[None] for w in (w_k, w_v))
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)[0]
        theirs = out.transpose(0, 1).reshape(len(x), -1).numpy() @ w_o
        np.testing.assert_allclose(BY_ID["6.6"].expected(case), theirs, atol=1e-9)


def test_some_cases_have_groups_that_a_tile_would_mix():
    def groups(case):
        heads, kv_heads = case.args[-2:]
        return 1 < kv_heads < heads

    assert sum(groups(case) for case in BY_ID["6.6"].cases) >= 6


def test_the_causal_task_also_attends_without_a_cache_and_with_a_single_query():
    lengths = [(c.args[0].shape[-2], c.args[1].shape[-2]) for c in BY_ID["6.3"].cases]
    assert any(T_q == T_k > 1 for T_q, T_k in lengths)
    assert any(1 == T_q < T_k for T_q, T_k in lengths)
    assert any(1 < T_q < T_k for T_q, T_k in lengths)


def test_decoding_token_by_token_is_causal_attention():
    draw = np.random.default_rng(0)
    x, w_q, w_k = (draw.standard_normal(shape) for shape in ((9, 5), (5, 4), (5, 4)))
    w_v = draw.standard_normal((5, 3))
    k_cache, v_cache, outputs = np.zeros((0, 4)), np.zeros((0, 3)), []
    for token in x:
        out, k_cache, v_cache = BY_ID["6.7"].solution(token, w_q, w_k, w_v, k_cache, v_cache)
        outputs.append(out)
    np.testing.assert_allclose(k_cache, x @ w_k)
    np.testing.assert_allclose(v_cache, x @ w_v)
    whole = attention.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, is_causal=True)
    np.testing.assert_allclose(outputs, whole)


def test_the_judges_steps_are_what_the_task_promises():
    rows = [step.rows for step in judges06.STEPS]
    assert rows.count(0) >= 2
    assert max(rows) >= 40
    for step in judges06.STEPS:
        for array in step.args:
            assert (array.astype(np.float32) == array).all()
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            found = BY_ID["6.7"].solution(*step.args)
        for ours, theirs in zip(found, step.expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)


# --- Verdicts of the judge ---


def grown(x, w_q, w_k, w_v, k_cache, v_cache):
    return x @ w_q, np.vstack([k_cache, x @ w_k]), np.vstack([v_cache, x @ w_v])


WRONG_PARTS = [(name, "output") for name in judges06._OUTPUTS] + [
    (name, "cache") for name in judges06._CACHES
]


@pytest.mark.parametrize(("name", "part"), WRONG_PARTS)
def test_each_mistake_that_the_judge_knows_is_told_from_every_other(name, part):
    """As the answer of a function that makes it, and nothing else wrong."""
    references = judges06._OUTPUTS[name][1] if part == "output" else (judges06._CACHES[name][1],)
    for reference in references:

        def decode_step(x, w_q, w_k, w_v, k_cache, v_cache, reference=reference):
            step = judges06.Step("", (x, w_q, w_k, w_v, k_cache, v_cache))
            out, *caches = step.expected
            with np.errstate(all="ignore"):
                if part == "cache":
                    return out, *reference(step)
                wrong = reference(step)
            return (np.full_like(out, np.nan) if wrong is None else wrong), *caches

        assert check("6.7", decode_step).mistake == name


def test_what_is_right_beside_the_mistake_is_said():
    def unscaled(*args):
        q, k, v = grown(*args)
        return stable(k @ q) @ v, k, v

    def backwards(*args):
        q, k, v = grown(*args)
        return stable(k @ q / np.sqrt(len(q))) @ v, k[::-1], v[::-1]

    assert "Both caches are right." in str(check("6.7", unscaled))
    assert "The output is right." in str(check("6.7", backwards))


def test_a_spoiled_cache_is_remarked_upon():
    def unscaled(*args):
        q, k, v = grown(*args)
        args[4][:] = 0
        return stable(k @ q) @ v, k, v

    verdict = check("6.7", unscaled)
    assert verdict.mistake == "no-scale"
    assert "changes its argument `k_cache`" in verdict.remarks[-1]


def test_what_has_no_name_is_shown_in_numbers():
    def half(*args):
        q, k, v = grown(*args)
        return stable(k @ q / np.sqrt(len(q))) @ v / 2, k, v

    verdict = check("6.7", half)
    assert verdict.mistake == "unknown"
    assert "T = 0, d_model = 2, d_k = 2, d_v = 1" in verdict.message
    expected = judges06.STEPS[0].expected[0][0]
    assert f"it should be [{expected:.4g}], and is [{expected / 2:.4g}]" in verdict.message


# --- The doctor's second opinion ---


@pytest.fixture
def enough_time(monkeypatch):
    monkeypatch.setattr(exercises, "_SECONDS", 60.0)
    monkeypatch.setattr(exercises, "_SECONDS_DOCTOR", 50.0)


def forgets_keys(q, k, v):
    return BY_ID["6.2"].solution(q, k[..., :30, :], v[..., :30, :])


def sees_a_window(q, k, v):
    token = np.arange(k.shape[1])
    own = token[k.shape[1] - q.shape[1] :, None]
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    return stable(np.where((token <= own) & (token > own - 40), scores, -np.inf)) @ v


def of_30_keys(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    q, k, v = heads_of(x @ w_q, heads), heads_of(x @ w_k, kv_heads), heads_of(x @ w_v, kv_heads)
    k, v = (np.repeat(each, heads // kv_heads, axis=0)[:, :30] for each in (k, v))
    return np.hstack(list(BY_ID["6.2"].solution(q, k, v))) @ w_o


@pytest.mark.parametrize(
    ("id", "fn"), [("6.2", forgets_keys), ("6.3", sees_a_window), ("6.6", of_30_keys)]
)
def test_what_is_wrong_on_longer_inputs_is_rejected(id, fn, enough_time):
    verdict = check(id, fn)
    assert not verdict.passed
    assert verdict.message.startswith(f"Right on the {len(BY_ID[id].cases)} inputs")


def softmax_twice(x, w_q, w_k, w_v, w_o, heads, kv_heads):
    q, k, v = heads_of(x @ w_q, heads), heads_of(x @ w_k, kv_heads), heads_of(x @ w_v, kv_heads)
    k, v = (np.repeat(each, heads // kv_heads, axis=0) for each in (k, v))
    weights = stable(stable(q @ k.mT / np.sqrt(q.shape[-1])))
    return np.hstack(list(weights @ v)) @ w_o


def test_the_doctor_names_mistakes_inside_a_layer(enough_time):
    assert check("6.6", softmax_twice).mistake == "softmax-twice"


# --- Questions ---


def test_the_predictions_are_measured():
    q, k = np.random.default_rng(0).standard_normal((2, 2_000, 128))
    assert f"{(q @ k.T / 8).std():.1f}" == "1.4"
    assert "About 1.4." in answer("6.1")
    needed, tiled = np.repeat(np.arange(8), 4), np.tile(np.arange(8), 4)
    assert str((needed != tiled).sum()) in answer("6.2")
    assert np.flatnonzero(needed == tiled).tolist() == [0, 10, 21, 31]
    assert "h = 0, 10, 21 and 31" in answer("6.2")
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 8))
    for scores in (q @ k.T, q @ k.T / 8, q @ k.T / 8**0.5):
        for axis in (0, 1):
            np.testing.assert_allclose(stable(scores, axis=axis) @ v, v)
    assert "`weights @ k`" in answer("6.3")


def test_llamas_numbers():
    layers, heads, kv_heads, d_head, d_model, parameters = 32, 32, 8, 128, 4096, 8.03e9
    assert f"{2 * layers * kv_heads * d_head * 2:,} bytes" in answer("kv-cache")
    saved = 2 * layers * d_model * (heads - kv_heads) * d_head
    fewer = QUESTIONS["grouped-queries"].options[1].feedback
    assert f"{saved / 1e9:.1f} billion" in fewer
    assert f"{saved / (parameters + saved):.0%}".replace("%", " %") in fewer


def test_only_one_task_has_a_judge():
    assert [id for id, task in BY_ID.items() if not isinstance(task, Exercise)] == ["6.7"]
