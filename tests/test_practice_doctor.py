"""The doctor's second opinion: it names what an exercise cannot, rejects what fails elsewhere, and
never a right answer."""

import re
import subprocess
import sys
import time

import numpy as np
import pytest
from wrong_answers.book import stable

from helpers.doctor import CATALOGUE
from helpers.practice import check, exercises, lessons


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """Verdicts are tested here, not time: other processes must not cut an examination short."""
    monkeypatch.setattr(exercises, "_SECONDS", 60.0)
    monkeypatch.setattr(exercises, "_SECONDS_DOCTOR", 50.0)


BY_ID = {exercise.id: exercise for exercise in lessons.every("EXERCISES")}
ASKED = [id for id, exercise in BY_ID.items() if getattr(exercise, "doctor", None)]


def scaled(q, k):
    return q @ k.T / np.sqrt(q.shape[-1])


def attend(q, k, v):
    return stable(scaled(q, k)) @ v


def causal(q, k, v, scores=None, soft=stable):
    """Made for as many queries as keys, as exercise 1.4 promises."""
    T = len(q)
    scores = scaled(q, k) if scores is None else scores
    return soft(np.where(np.tril(np.ones((T, T), dtype=bool)), scores, -np.inf)) @ v


def heads_of(x, heads):
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def head_scores(q, k, heads, divide=lambda s, d: s / np.sqrt(d)):
    q, k = heads_of(q, heads), heads_of(k, heads)
    return divide(q @ k.mT, q.shape[-1])


def masked(scores, allowed):
    return np.nan_to_num(stable(np.where(allowed, scores, -np.inf)))


def plus_one(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / (1 + e.sum(axis=-1, keepdims=True))


def column_maximum(s):
    e = np.exp(s - s.max(axis=0))
    return e / e.sum(axis=-1, keepdims=True)


def hides_the_future(q, k, v):
    seen = np.tri(len(q), len(k), dtype=bool)
    return stable(np.where(seen, scaled(q, k), -np.inf)) @ v


def sees_its_pair(q, k, v):
    """Masked in pairs of two tokens."""
    token = np.arange(len(q))
    seen = token < (token[:, None] // 2 + 1) * 2
    return stable(np.where(seen, scaled(q, k), -np.inf)) @ v


def root_of(length):
    return lambda q, k, v: causal(q, k, v, q @ k.T / np.sqrt(length(q, k, v)))


# Wrong on the exercise's cases, and unknown to its own mistakes.
UNKNOWN_TO_EXERCISES = [
    ("1.3", "softmax-twice", lambda q, k, v: stable(stable(scaled(q, k))) @ v),
    ("1.3", "softmax-plus-one", lambda q, k, v: plus_one(scaled(q, k)) @ v),
    ("1.3", "maximum-of-the-columns", lambda q, k, v: column_maximum(scaled(q, k)) @ v),
    ("1.3", "exp2-without-log2e", lambda q, k, v: stable(scaled(q, k) * np.log(2)) @ v),
    ("1.3", "sign-reversed", lambda q, k, v: stable(-scaled(q, k)) @ v),
    ("1.3", "absolute-scores", lambda q, k, v: stable(np.abs(scaled(q, k))) @ v),
    ("1.3", "sigmoid", lambda q, k, v: 1 / (1 + np.exp(-scaled(q, k))) @ v),
    ("1.3", "scale-half-applied", lambda q, k, v: stable(q @ k.T / q.shape[-1] ** 0.25) @ v),
    ("1.3", "scale-truncated", lambda q, k, v: stable(q @ k.T / int(q.shape[-1] ** 0.5)) @ v),
    ("1.3", "scale-hard-coded", lambda q, k, v: stable(q @ k.T / 3) @ v),
    ("1.3", "wrong-scale", lambda q, k, v: stable(1.1 * scaled(q, k)) @ v),
    ("1.3", "keys-with-keys", lambda q, k, v: stable(scaled(k, k)) @ v),
    ("1.3", "values-as-keys", lambda q, k, v: stable(scaled(q, v)) @ v),
    ("1.3", "causal-unasked", hides_the_future),
    ("1.4", "softmax-twice", lambda q, k, v: causal(q, k, v, soft=lambda s: stable(stable(s)))),
    ("1.4", "softmax-plus-one", lambda q, k, v: causal(q, k, v, soft=plus_one)),
    ("1.4", "scale-by-d_v", root_of(lambda q, k, v: v.shape[-1])),
    ("1.4", "scale-by-length", root_of(lambda q, k, v: len(k))),
    ("1.4", "scale-truncated", root_of(lambda q, k, v: int(q.shape[-1] ** 0.5) ** 2)),
    ("1.4", "scale-after-softmax", lambda q, k, v: causal(q, k, v, q @ k.T) / q.shape[-1] ** 0.5),
    ("1.4", "sign-reversed", lambda q, k, v: causal(q, k, v, -scaled(q, k))),
    ("1.4", "causal-leaks-within-blocks", sees_its_pair),
    ("2.4", "scale-truncated", lambda *a: head_scores(*a, lambda s, d: s / int(d**0.5))),
    ("2.4", "scale-half-applied", lambda *a: head_scores(*a, lambda s, d: s / d**0.25)),
    ("3.4", "softmax-twice", lambda s, a: masked(masked(s, a), a)),
    ("3.4", "scores-clipped", lambda s, a: masked(np.clip(s, -50, 50), a)),
]


@pytest.mark.parametrize(("id", "name", "fn"), UNKNOWN_TO_EXERCISES)
def test_the_doctor_names_what_the_exercise_cannot(id, name, fn):
    assert name not in {m.id for m in BY_ID[id].mistakes if m.references} or "hard-coded" in name
    answer = with_names(id, fn)
    verdict = check(id, answer)
    assert not verdict.passed
    assert verdict.mistake == name, verdict
    assert CATALOGUE[name].sentence in verdict.message
    assert "elsewhere" not in verdict.message
    assert verdict.evidence.inputs, "the exercise's own case is shown, with its numbers"


def with_names(id, fn):
    """A function with as many parameters as the exercise says."""
    return {
        2: lambda a, b: fn(a, b),
        3: lambda a, b, c: fn(a, b, c),
    }[len(BY_ID[id].names)]


def test_the_exercises_own_words_come_first():
    verdict = check("1.3", lambda q, k, v: stable(q @ k.T) @ v)
    assert verdict.message == "The scores are not divided by √d_k."
    assert check("1.4", lambda q, k, v: stable(np.where(np.tri(len(q), k=1), scaled(q, k), -np.inf))
                 @ v).mistake == "off-by-one"  # fmt: skip
    assert "sum to 1/√d_k" not in str(check("1.3", lambda q, k, v: attend(q, k, v) * 3))


def test_its_words_show_in_text_and_in_html():
    verdict = check("1.3", lambda q, k, v: stable(stable(scaled(q, k))) @ v)
    disease = CATALOGUE["softmax-twice"]
    for shown in verdict._repr_mimebundle_().values():
        assert disease.sentence in shown
        assert disease.fix in shown
    html = check("1.3", lambda q, k, v: stable(q @ k.T / 3) @ v)._html()
    assert "<code>q.shape[-1]</code>" in html


def test_advice_to_the_doctors_caller_is_left_out():
    message = check("1.3", hides_the_future).message
    assert message.endswith("nobody asked for it. Mask only on request.")


# --- Right on the exercise's cases ---


def spoils_long_values(q, k, v):
    out = attend(q, k, v)
    if len(k) > 20:
        v *= 2
    return out


def spoils_long_masks(scores, allowed):
    out = masked(scores, allowed)
    allowed[20:] = False
    return out


def reads_memory_in_order(q, k, v):
    if not k.flags.c_contiguous:
        k = k.ravel(order="K").reshape(k.shape)[::-1]
    return attend(q, k, v)


def forgets_keys(q, k, v):
    return attend(q, k[:30], v[:30])


def sees_a_window(q, k, v):
    token = np.arange(len(q))
    far = token[:, None] - token > 40
    return causal(q, k, v, np.where(far, -np.inf, scaled(q, k)))


def refuses_many(q, k, v):
    if len(q) > 100:
        raise ValueError("too many queries")
    return attend(q, k, v)


def guesses_from_20_keys_on(q, k, v):
    return attend(q, k, v) + (len(k) > 20) * np.random.default_rng().random()


def forgets_rows(q, k, v):
    out = attend(q, k, v)
    out[8:][::7] = 0
    return out


WRONG_ELSEWHERE = [
    ("1.3", "changes-its-input", spoils_long_values),
    ("1.3", "needs-contiguous", reads_memory_in_order),
    ("1.3", "wrong-with-many-keys", forgets_keys),
    ("1.3", "wrong-with-many-keys", refuses_many),
    ("1.3", "wrong-with-many-keys", guesses_from_20_keys_on),
    ("1.3", "wrong-with-many-keys", forgets_rows),
    ("1.3", "unknown", lambda q, k, v: attend(q, k, v) * (1 + (q.shape[-1] == 20) * v[0])),
    ("1.3", "scores-clipped", lambda q, k, v: stable(np.clip(scaled(q, k), -50, 50)) @ v),
    ("1.4", "wrong-with-many-keys", sees_a_window),
    ("2.4", "wrong-with-many-keys", lambda q, k, n: head_scores(q, k, n) * (len(k) < 50)),
    ("3.4", "changes-its-input", spoils_long_masks),
    ("3.4", "weights-do-not-sum-to-1", lambda s, a: masked(s, a) * (1 - (len(s[0]) > 50) / 2)),
]


@pytest.mark.parametrize(("id", "name", "fn"), WRONG_ELSEWHERE)
def test_what_is_wrong_elsewhere_is_rejected(id, name, fn):
    verdict = check(id, fn)
    assert not verdict.passed
    assert verdict.mistake == name, verdict
    count = len(BY_ID[id].cases)
    assert verdict.message.startswith(f"Right on the {count} inputs of this exercise, but not")
    assert "one of the doctor's: " in str(verdict)
    assert "×" in verdict.evidence.label
    assert len(str(verdict)) < 3000
    verdict._repr_mimebundle_()


def test_what_is_beyond_the_tables_is_said():
    text = str(check("1.3", forgets_rows))
    assert re.search(r"first entry that differs is \[8, 0\], beyond these tables: expected", text)
    assert text.endswith(", your result 0.")


# --- What does not count ---


def recursive(q, k, v):
    def score(i):
        return [] if i == len(k) else [q @ k[i] / np.sqrt(len(k[i])), *score(i + 1)]

    return stable(np.array(score(0)).T) @ v


def with_extras(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None or is_causal or scale or enable_gqa:
        raise NotImplementedError
    return attend(q, k, v)


def under_other_names(k, q, v):
    """Handed by position; that the names are misleading is the reader's affair."""
    return attend(k, q, v)


def in_single_precision(q, k, v):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    return attend(q, k, v)


def as_lists(q, k, v):
    return attend(q, k, v).tolist()


def with_a_small_epsilon(q, k, v):
    s = scaled(q, k)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / (e.sum(axis=-1, keepdims=True) + 1e-7) @ v


def by_loops(q, k, v):
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        s = [sum(a * b for a, b in zip(q[i], key)) / len(key) ** 0.5 for key in k]
        e = [np.exp(x - max(s)) for x in s]
        for w, value in zip(e, v):
            out[i] += w / sum(e) * value
    return out


def for_two_axes_alone(q, k, v):
    (T, d), (_, _) = q.shape, v.shape
    assert k.shape == (T, d)
    return causal(q, k, v)


def through_torch(q, k, v):
    import torch

    q, k, v = (torch.from_numpy(np.ascontiguousarray(x)) for x in (q, k, v))
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, dim=-1) @ v


NOT_COUNTED = [
    ("1.3", recursive),
    ("1.3", with_extras),
    ("1.3", under_other_names),
    ("1.3", in_single_precision),
    ("1.3", as_lists),
    ("1.3", with_a_small_epsilon),
    ("1.3", by_loops),
    ("1.3", through_torch),
    ("1.4", for_two_axes_alone),
    ("1.4", lambda q, k, v: causal(q, k, v, scaled(q, k).astype(np.float32))),
    ("2.4", lambda q, k, heads: head_scores(q, k, heads) + 0.0),
    ("3.4", lambda scores, allowed: masked(scores.astype(np.float32), allowed)),
    ("3.4", lambda scores, allowed: masked(scores, allowed).tolist()),
]


@pytest.mark.parametrize(("id", "fn"), NOT_COUNTED)
def test_a_right_answer_passes(id, fn):
    if fn is through_torch:
        pytest.importorskip("torch")  # not within the time for one call
    verdict = check(id, fn)
    assert verdict.passed, verdict
    assert verdict.message.startswith(f"Right on {len(BY_ID[id].cases)} different inputs")


# --- Hostile to the doctor, friendly to the exercise ---


def hangs_on_long_inputs(q, k, v):
    while len(k) > 20:
        pass
    return attend(q, k, v)


def exits_on_long_inputs(q, k, v):
    if len(k) > 20:
        raise SystemExit
    return attend(q, k, v)


def asks_on_long_inputs(q, k, v):
    print("thinking")
    return attend(q, k, v) if len(k) < 20 else input()


def returns_a_trap(q, k, v):
    class Trap:
        def __array__(self, *args, **kwargs):
            raise RuntimeError(repr(object()))

    return attend(q, k, v) if len(k) < 20 else Trap()


def is_slow(q, k, v):
    time.sleep(0.1)
    return attend(q, k, v)


@pytest.mark.parametrize(
    "fn",
    [hangs_on_long_inputs, exits_on_long_inputs, asks_on_long_inputs, returns_a_trap, is_slow],
)
def test_whatever_happens_a_verdict_comes_in_time(fn, monkeypatch, capfd):
    monkeypatch.setattr(exercises, "_SECONDS", 5.0)  # as readers have it
    monkeypatch.setattr(exercises, "_SECONDS_DOCTOR", 3.0)
    start = time.monotonic()
    verdict = check("1.3", fn)
    assert time.monotonic() - start < 6.5
    assert not re.search(r"0x[0-9a-f]{4}", str(verdict))
    verdict._repr_mimebundle_()
    assert capfd.readouterr() == ("", "")
    assert verdict.passed == (fn in (hangs_on_long_inputs, exits_on_long_inputs, is_slow))


def test_the_doctor_is_not_troubled_with_what_has_a_name(monkeypatch):
    """Nor with stubs, which every run of a lesson checks."""
    monkeypatch.setattr("helpers.practice.opinion.ask", lambda *args: pytest.fail("asked"))
    assert check("1.3", lambda q, k, v: None).mistake is None
    assert check("1.3", lambda q, k, v: stable(q @ k.T) @ v).mistake == "no-scale"
    assert check("1.1", lambda q, k: q @ k.T).passed


def test_the_exercises_with_a_doctor():
    assert ASKED == ["1.3", "1.4", "2.4", "3.4", "6.1", "6.2", "6.3", "6.4", "6.6"]


def test_the_doctor_is_imported_when_it_is_asked():
    code = (
        "import sys; from helpers.practice import check, lessons; lessons.every('EXERCISES');"
        "print('helpers.doctor' in sys.modules);"
        "check('1.3', lessons.exercise('1.3').solution); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nFalse\n"


@pytest.mark.parametrize("id", ASKED)
def test_solutions_make_sound_attention(id):
    from helpers.practice import opinion

    exercise = BY_ID[id]
    said = opinion.ask(exercise.doctor, exercise.solution, exercise.names, 20)
    assert said.sound
    assert said.name == said.words == ""
    assert len(said.calls) > 15
