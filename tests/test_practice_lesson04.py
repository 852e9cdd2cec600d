"""Lesson 4's practice: its kernels are as right and as broken as they say, its logs tell, its
judges are fair."""

import random
import re
import subprocess
import sys

import numpy as np
import pytest

from helpers import attention
from helpers.practice import check, hint, kernels, lesson04, run_logs, solution, trials
from helpers.practice.run_logs import Log

torch = pytest.importorskip("torch")
F = torch.nn.functional

ENTROPY, *TRIALS = lesson04.EXERCISES
BROKEN = {kernel.id: kernel for kernel in kernels.BROKEN}


@pytest.fixture(autouse=True)
def one_thread():
    """Waking up others takes longer than these sizes do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- 4.1 ---


def test_the_solution_agrees_with_the_reference_implementation():
    for case in ENTROPY.cases:
        (weights,) = case.args
        T = weights.shape[-1]
        rows = attention.normalized_entropy(weights, attention.causal_mask(T, T))
        expected = np.nanmean(rows, axis=(0, 2))
        np.testing.assert_allclose(ENTROPY.expected(case), expected, atol=1e-12)


def test_the_solution_agrees_with_what_training_measures():
    from helpers.training.loop import _of_heads

    scores = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0)).double()
    scores = scores.masked_fill(torch.ones(12, 12).triu(1).bool(), -torch.inf)
    weights, statistics = _of_heads(scores)
    ours = lesson04.head_entropy(weights.numpy())
    np.testing.assert_allclose(ours, statistics["entropy"], atol=1e-12)


def test_the_solution_warns_of_nothing_and_changes_nothing():
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        for case in ENTROPY.cases:
            ENTROPY.expected(case)
    assert check("4.1", lesson04.head_entropy).remarks == ()
    assert ENTROPY.expected(next(c for c in ENTROPY.cases if c.example)).shape == (2,)


# --- 4.2 ---


def test_the_lesson_shows_three_logs_and_the_checker_tries_others():
    shown, hidden = run_logs.shown(), run_logs.hidden()
    assert list(shown) == ["A", "B", "C"]
    assert {log.diagnosis for log in shown.values()} == set(run_logs.WORDS.values())
    assert {log.diagnosis for log in hidden} == set(run_logs.WORDS.values())
    assert not any(log.name for log in hidden)
    for log in (*shown.values(), *hidden):
        assert log.steps[0] == 0
        assert log.steps.shape == log.entropy.shape == log.score_std.shape
        assert log.diagnosis not in repr(log)
    assert len({len(log.steps) for log in hidden}) > 1


def test_the_healthy_log_is_that_of_a_model_with_attention():
    """A run whose attention is switched off has the same scale in its settings."""
    healthy = run_logs.shown()["B"]
    assert healthy.entropy[-1] < 0.5 < healthy.entropy[0]
    assert healthy.score_std[-1] > 2
    settings = [(x.d_head, x.learning_rate, x.diagnosis, x.seed) for x in run_logs._recorded()]
    assert len(set(settings)) == len(settings)


def test_every_log_starts_where_its_scale_puts_it():
    power = {"healthy": 0, "no scale": 0.5, "divided by d_k": -0.5}
    for log in (*run_logs.shown().values(), *run_logs.hidden()):
        start = log.d_head ** power[log.diagnosis]
        assert log.score_std[0] == pytest.approx(start, rel=0.1)


@pytest.mark.parametrize("of", [np.mean, np.median, np.min, lambda x: x[-1]])
def test_no_limit_on_the_entropy_after_the_start_tells_the_logs_apart(of):
    """Slow or short runs leave healthy heads as undecided as others that are divided by d_k."""
    logs = run_logs.hidden()
    healthy, divided = (
        [of(log.entropy) for log in logs if log.diagnosis == diagnosis]
        for diagnosis in ("healthy", "divided by d_k")
    )
    assert max(healthy) > min(divided) + 0.02


def test_a_rule_that_reads_the_end_is_told_so():
    def diagnose(entropy, score_std, d_head):
        if entropy[-1] > 0.7:
            return "divided by d_k"
        return "no scale" if entropy[-1] < 0.35 else "healthy"

    verdict = check("4.2", diagnose)
    assert verdict.mistake == "start-not-read"
    assert 'A run that is "healthy" is taken for "divided by d_k": with d_head = 16' in str(verdict)
    assert "whatever the first measurement is" in str(verdict)


def test_the_first_hint_prints_the_logs(capsys):
    code = re.search(r"`(for .*)`", lesson04.EXERCISES[1].hints[0])[1]
    exec(code, {"run_logs": run_logs})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["A", "B", "C"]


def test_healthy_heads_are_fairly_undecided_at_first():
    """The checker's words on a rule that takes that for a division by d_k."""
    starts = [log.entropy[0] for log in run_logs.hidden() if log.diagnosis == "healthy"]
    assert starts == pytest.approx([0.87] * len(starts), abs=0.01)
    verdict = check("4.2", lambda e, s, d: "divided by d_k" if e[0] > 0.8 else "no scale")
    assert verdict.mistake == "evenness-taken-for-divided-by-d_k"
    assert "about 0.87 here" in verdict.message


def test_logs_are_read_without_torch():
    code = (
        "import sys; from helpers.practice import check, lesson04;"
        "assert check('4.2', lesson04.diagnose).passed; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def some_log(diagnosis, d_head, start, end):
    steps = np.arange(0.0, 100, 20)
    path = np.linspace(start, end, len(steps))
    entropy = 1 / (1 + path**2 / 4)
    return Log("", d_head, steps, entropy, path, diagnosis, 1e-3, 0)


LOGS = (
    some_log("healthy", 128, 1, 2.5),
    some_log("no scale", 128, 11, 80),
    some_log("divided by d_k", 128, 0.09, 1.2),
    some_log("healthy", 16, 1, 2.5),
    some_log("no scale", 16, 4, 20),
    some_log("divided by d_k", 16, 0.25, 1.2),
)


def test_a_limit_that_fits_one_width_only_is_named(monkeypatch):
    monkeypatch.setattr(run_logs, "hidden", lambda: LOGS)

    def diagnose(entropy, score_std, d_head):
        if score_std[0] > 8:
            return "no scale"
        return "divided by d_k" if score_std[0] < 0.1 else "healthy"

    verdict = check("4.2", diagnose)
    assert verdict.mistake == "fits-d_head-128-only"
    assert "Right for d_head = 128, not for 16" in verdict.message
    assert 'says "healthy", but it is "no scale"' in verdict.message
    assert verdict.remarks == ("Right on 4 of 6 logs.",)
    assert check("4.2", lesson04.diagnose).passed
    assert "d_head = 16, 128" in check("4.2", lesson04.diagnose).message


def test_a_limit_on_what_training_made_is_not_one_that_fits_a_width(monkeypatch):
    monkeypatch.setattr(run_logs, "hidden", lambda: LOGS)

    def diagnose(entropy, score_std, d_head):
        if score_std[-1] > 40:
            return "no scale"
        return "divided by d_k" if score_std[0] < 0.5 else "healthy"

    assert check("4.2", diagnose).mistake == "no-scale-missed"


def test_what_the_checker_says_of_a_run_is_in_its_log():
    verdict = check("4.2", lambda entropy, score_std, d_head: "healthy" if d_head > 1 else "")
    assert verdict.mistake == "always-the-same"
    verdict = check("4.2", lambda e, s, d: "healthy" if s[0] < d**0.25 else "no scale")
    assert verdict.mistake == "growth-taken-for-healthy"
    said = re.search(r"goes from ([\d.]+) to ([\d.]+) and the entropy from", verdict.message)
    ends = [(f"{x.score_std[0]:.3g}", f"{x.score_std[-1]:.3g}") for x in run_logs.hidden()]
    assert said.groups() in ends


def test_without_the_record_the_checker_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(run_logs, "RECORD", tmp_path / "sweep.jsonl")
    run_logs._recorded.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="make sweep"):
            check("4.2", lesson04.diagnose)
    finally:
        run_logs._recorded.cache_clear()


# --- 4.3 ---


def tensors(B=2, H=3, T_q=100, T_k=100, d=32, d_v=32):
    generator = torch.Generator().manual_seed(1)
    sizes = ((B, H, T_q, d), (B, H, T_k, d), (B, H, T_k, d_v))
    return [torch.randn(size, generator=generator) for size in sizes]


def off(kernel, q, k, v, is_causal):
    """How far a kernel is from PyTorch's, as the checker notes it."""
    calls = []
    output = kernels.watched(kernel, calls)(q, k, v, is_causal)
    right = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    assert output.dtype == q.dtype
    assert calls[0].off == pytest.approx((output - right).abs().max().item(), abs=1e-6)
    return calls[0].off


SIZES = [{}, {"T_q": 1, "T_k": 1}, {"T_q": 70, "T_k": 130}, {"T_q": 130, "T_k": 64, "d_v": 5}]


@pytest.mark.parametrize("kernel", kernels.RIGHT, ids=lambda kernel: kernel.words)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
def test_right_kernels_are_right(kernel, sizes, is_causal):
    assert off(kernel, *tensors(**sizes), is_causal) < 1e-5


@pytest.mark.parametrize("kernel", kernels.BROKEN, ids=lambda kernel: kernel.id)
def test_broken_kernels_are_broken_on_the_inputs_of_the_solution(kernel):
    assert max(off(kernel, *tensors(), is_causal) for is_causal in (False, True)) > 0.05


# Inputs on which a broken kernel looks right, and a word of the reason that must be given.
ALIKE = [torch.ones(2, 3, 100, 8)] * 3
BLIND = [
    ("no-scale", tensors(d=1), False, "d_k is 1"),
    ("no-scale", tensors(T_q=5, T_k=1), False, "one key"),
    ("no-scale", ALIKE, False, "same value"),
    ("no-scale", [0 * tensors()[0], *tensors()[1:]], False, "alike"),
    ("no-scale", [1e3 * torch.eye(16)[None, None]] * 3, False, "whole weight"),
    ("divided-by-d_k", tensors(d=1), True, "d_k is 1"),
    ("scale-hard-coded", tensors(d=64), True, "√d_k is 8"),
    ("root-of-d_model", tensors(H=1), True, "one head"),
    ("root-of-the-length", tensors(T_q=32, T_k=32), True, "same number"),
    ("causal-ignored", tensors(), False, "never True"),
    ("leaks-by-one", tensors(), False, "never True"),
    ("always-causal", tensors(), True, "never False"),
    ("not-rescaled", tensors(T_k=64), False, "first block"),
    ("not-rescaled", [*ALIKE[:2], tensors()[2]], False, "alike"),
    ("padding-counted", tensors(T_k=128), False, "multiple of 64"),
    ("padding-counted", tensors(), True, "mask hides"),
    ("heads-mixed", tensors(H=1), False, "one head"),
    ("heads-mixed", [tensors()[0], *(x[:, :1].expand_as(x) for x in tensors()[1:])], False, "same"),
    ("batch-mixed", tensors(B=1), False, "one example"),
    ("batch-mixed", [tensors()[0], *(x[:1].expand_as(x) for x in tensors()[1:])], False, "same"),
]


@pytest.mark.parametrize(("id", "qkv", "is_causal", "reason"), BLIND)
def test_a_broken_kernel_is_right_where_its_reasons_say_so(id, qkv, is_causal, reason):
    kernel, calls = BROKEN[id], []
    kernels.watched(kernel, calls)(*qkv, is_causal)
    assert calls[0].off < 1e-5
    assert reason in kernel.why_blind(calls)


def test_every_reason_is_tried():
    reasons = {(id, words) for id, kernel in BROKEN.items() for _, words in kernel.blind}
    given = set()
    for id, qkv, is_causal, _ in BLIND:
        calls = []
        kernels.watched(BROKEN[id], calls)(*qkv, is_causal)
        given.add((id, BROKEN[id].why_blind(calls)))
    own = {(id, words) for id, words in reasons if words not in _shared()}
    both = next(words for id, words in own if "or a causal mask" in words)  # of several calls
    assert own - given == {("padding-counted", both)}


def _shared():
    """Reasons that several kernels give."""
    words = [words for kernel in BROKEN.values() for _, words in kernel.blind]
    return {each for each in words if words.count(each) > 1}


def test_no_kernel_claims_to_be_right_where_it_is_wrong():
    """On whatever inputs: where a reason holds of a call, the output of that call is right."""
    sizes = [{}, {"d": 1}, {"d": 64}, {"H": 1}, {"B": 1}, {"T_k": 64}, {"T_q": 1, "T_k": 1}]
    inputs = [tensors(**each) for each in sizes] + [qkv for _, qkv, _, _ in BLIND]
    for kernel in kernels.BROKEN:
        for qkv in inputs:
            for is_causal in (False, True):
                calls = []
                kernels.watched(kernel, calls)(*qkv, is_causal)
                if kernel.why_blind(calls):
                    assert not calls[0].visible, (kernel.id, kernel.why_blind(calls))


def test_the_broken_kernel_without_a_scale_is_the_teams():
    from helpers.training.kernel import team_attention

    q, k, v = tensors()
    for is_causal in (False, True):
        ours = BROKEN["no-scale"].run(q, k, v, is_causal)
        torch.testing.assert_close(ours, team_attention(q, k, v, is_causal))


def test_chance_is_the_same_for_every_kernel_and_goes_on_as_before():
    drawn = []

    def kernel_test(attention):
        here = torch.rand(1).item(), random.random(), np.random.random()  # noqa: NPY002
        drawn.append(here)
        return lesson04.kernel_test(attention)

    def state():
        return (
            torch.random.get_rng_state().tolist(), random.getstate(),
            np.random.get_state()[1].tolist(), torch.get_num_threads(),  # noqa: NPY002
        )  # fmt: skip

    before = state()
    assert check("4.3", kernel_test).passed
    assert state() == before
    assert len(drawn) == len(kernels.RIGHT) + len(kernels.BROKEN)
    assert len(set(drawn)) == 1


def test_those_that_pass_for_one_reason_are_told_of_together():
    def kernel_test(attention):
        q, k, v = tensors(B=1, H=1, T_q=64, T_k=64, d=64)
        expected = F.scaled_dot_product_attention(q, k, v)
        return torch.allclose(attention(q, k, v), expected, atol=1e-5)

    verdict = check("4.3", kernel_test)
    assert verdict.mistake == "accepts-scale-hard-coded"
    assert "catches 4 of 13" in verdict.message
    assert "d_k is 64, where √d_k is 8" in verdict.message
    assert verdict.remarks[-1] == "6 more broken kernels pass; the ones above come first."
    calls = str(check("4.3", lambda attention: bool(attention(*tensors(T_q=9, T_k=1)).sum())))
    assert "one that divides by d_k; one that always divides by 8" in calls


# --- 4.4 ---

V = np.array([[1.0, 0], [0, 1], [2, 2]])


@pytest.mark.parametrize(
    ("q", "k", "word"),
    [
        ([[1, 2]], [[1, 1]] * 3, "all keys are alike"),
        ([[1, 0]], [[1, 1], [1, 2], [1, 3]], "orthogonal"),
        ([[100, 0]], [[1, 0], [0, 0], [-1, 0]], "far apart"),
        ([[1e-5, 0]], [[1e-5, 0], [0, 0], [2e-5, 0]], "close together"),
    ],
)
def test_the_kind_of_blindness_is_named(q, k, word):
    q, k = np.array(q, dtype=float), np.array(k, dtype=float)
    verdict = check("4.4", lambda: (q, k, V))
    assert verdict.passed, verdict
    assert word in verdict.message
    assert verdict.remarks[0].startswith("Another kind of blindness: ")
    assert word not in verdict.remarks[0]


def test_values_that_balance_and_mixtures_are_named_too():
    k = np.array([[1.0, 0], [0, 0], [-1, 0]])
    v = np.array([[1.0], [1], [1.0]])
    tied = check("4.4", lambda: (np.array([[0.0, 1]]), k, v * np.array([[1.0], [2], [3]])))
    assert tied.passed
    # Two keys with equal scores share; the third is far below: only the value that never counts
    # differs.
    q = np.array([[50.0, 0]])
    verdict = check("4.4", lambda: (q, np.array([[1.0, 0], [1, 5], [-1, 0]]), V))
    assert verdict.passed
    assert "far apart" in verdict.message
    both = check("4.4", lambda: (np.array([[0.0, 1], [100, 0]]), k, V))
    assert "orthogonal" in both.message
    assert "; or the scores lie so far apart" in both.message
    # The weights of the keys 0 and 1 change, but their values are the same.
    q, k = np.array([[1.0, 0]]), np.array([[1.0, 0], [0, 0], [-200, 0]])
    balanced = check("4.4", lambda: (q, k, np.array([[1.0], [1], [7]])))
    assert "make up for it" in balanced.message


# --- Trials ---


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.id)
def test_a_trial_has_hints_and_a_solution_to_show(trial):
    assert hint(trial.id)._title == f"Hints for {trial.heading}"
    assert solution(trial.id).source.startswith(f"def {trial.solution.__name__}(")
    bundle = check(trial.id, trial.solution)._repr_mimebundle_()
    assert "✓ passed" in bundle["text/plain"]
    for value in (None, 3):
        assert check(trial.id, value).mistake == "not-a-function"
    assert check(trial.id, lambda a, b, c, d, e: None).mistake == "wrong-arguments"


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.id)
def test_a_trial_says_the_same_twice(trial):
    def guess(*args):
        return np.random.default_rng().random((3, 2, 2)) if not args else "healthy"

    first, second = check(trial.id, trial.solution), check(trial.id, trial.solution)
    assert str(first) == str(second)
    assert not check(trial.id, guess).passed


def test_a_trial_without_a_hint_is_refused():
    with pytest.raises(ValueError, match="needs a hint"):
        trials.Trial("9.9", "", 1, "easy", "", "", (), lambda: None, lambda desk: ("",))


def test_asking_the_checker_from_inside_is_survived():
    def kernel_test(attention):
        return check("4.3", kernel_test).passed

    assert check("4.3", kernel_test).mistake == "raises-error"


def test_what_cannot_be_stopped_is_told(monkeypatch):
    from helpers import watchdog

    left = watchdog.Outcome("left behind")
    monkeypatch.setattr(watchdog, "run", lambda call, seconds: left)
    verdict = check("4.4", lambda: None)
    assert verdict.mistake == "did-not-finish"
    assert "restart the kernel" in verdict.remarks[0]
