"""Lesson 4's judges: of a rule that reads run logs, of a test for kernels, of blind inputs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from helpers.attention import softmax
from helpers.practice import kernels, run_logs
from helpers.practice.kernels import Call, Kernel
from helpers.practice.run_logs import Log
from helpers.practice.trials import Desk, Reply, Wrong, kind, nothing_came, stopped

# --- 4.2 diagnose(entropy, score_std, d_head) ---

_WORDS = tuple(run_logs.WORDS.values())
_QUOTED = ", ".join(f'"{word}"' for word in _WORDS[:-1]) + f' or "{_WORDS[-1]}"'

# (what a run is, what it was taken for) -> name of the mistake, and the sentence's end.
_CONFUSED = {
    ("healthy", "no scale"): (
        "sharpening-taken-for-no-scale",
        "Heads sharpen as they learn: neither a low entropy nor a wide spread late in training "
        "tells that a scale is missing. How wide is the spread before training?",
    ),
    ("healthy", "divided by d_k"): (
        "evenness-taken-for-divided-by-d_k",
        "Before it has learned anything a healthy head is fairly undecided too (about 0.87 here). "
        "How wide is the spread before training: about 1, or about 1/√d_head?",
    ),
    ("divided by d_k", "healthy"): (
        "growth-taken-for-healthy",
        "Training makes up for too small a scale by larger q and k, so that the end of the log "
        "looks better than its beginning. What is the spread before training?",
    ),
    ("no scale", "healthy"): (
        "no-scale-missed",
        "A dot product of d_head products of variance 1 has the variance d_head: without the "
        "scale, the scores start with a spread of about √d_head, with it, of about 1.",
    ),
    ("no scale", "divided by d_k"): (
        "opposites-exchanged",
        "Without the scale the scores spread about √d_head times too far, so the entropy is low.",
    ),
    ("divided by d_k", "no scale"): (
        "opposites-exchanged",
        "Divided by d_k the scores spread √d_head times too little at first, so the entropy is "
        "high.",
    ),
}


def diagnose(desk: Desk) -> tuple[str, ...]:
    """Judges a rule by its words on logs that the reader has not seen."""
    logs = run_logs.hidden()
    replies = [desk.call(*log.args, read=_word) for log in logs]
    again = [desk.call(*log.args, read=_word) for log in reversed(logs)][::-1]
    if changed := sorted({name for reply in replies for name in reply.changed}):
        raise Wrong(
            "changes-its-input",
            f"The function changes its argument `{'`, `'.join(changed)}` in place: work on a copy.",
        )
    if all(reply.fault is None and reply.value is None for reply in replies):
        raise nothing_came(replies[0])
    for log, reply in zip(logs, replies):
        _refuse_other_than_words(log, reply, len(logs), replies)
    if [r.value for r in replies] != [r.value for r in again]:
        raise Wrong(
            "not-deterministic",
            "The same log gave two different diagnoses: the function must depend on its arguments "
            "alone, not on chance or on what an earlier call left behind.",
        )
    words = [reply.value for reply in replies]
    pairs = [(log, word) for log, word in zip(logs, words) if word != log.diagnosis]
    if pairs:
        raise _confused(logs, words, pairs, lambda log: desk.call(*log.args, read=_word).value)
    d_heads = sorted({log.d_head for log in logs})
    widths = f"d_head = {', '.join(map(str, d_heads))}"
    return (f"Right on {len(logs)} logs that you had not seen, {widths}, whole and in part.",)


def _word(value: object):
    if value is None or type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return (kind(value),)  # in a tuple: no word, but words for what it is


def _refuse_other_than_words(log: Log, reply: Reply, count: int, replies: list[Reply]) -> None:
    if reply.fault:
        alike = [r for r in replies if r.fault and r.fault.name == reply.fault.name]
        often = "every log" if len(alike) == count else f"{len(alike)} of {count} logs"
        error = stopped(reply.fault, f" on {often}")
        if isinstance(error, Wrong):
            error.remarks = (
                f"The first of them has {len(log.steps)} measurements, d_head = {log.d_head}.",
            )
        raise error
    if reply.value is None:
        often = sum(r.value is None and r.fault is None for r in replies)
        raise Wrong(
            "returns-none",
            f"The function returns `None` for {often} of {count} logs: is a `return` or an `else` "
            f"missing? The first of these: {log.facts}.",
        )
    if isinstance(reply.value, tuple):
        raise Wrong(
            "wrong-type",
            f"The function must return one of the strings {_QUOTED}, but returned "
            f"{reply.value[0]}.",
        )
    if reply.value not in _WORDS:
        raise Wrong(
            "another-word",
            f"The function must return {_QUOTED}, letter by letter, but returned "
            f'"{reply.value[:40]}".',
        )


def _confused(logs, words, pairs, say) -> Wrong:
    """pairs : (log, wrong word). say : Log -> the rule's word for it."""
    if len(set(words)) == 1:
        return Wrong(
            "always-the-same",
            f'The function says "{words[0]}" of every log. How do the logs A, B and C differ?',
        )
    meant = {truth: {w for each, w in zip(logs, words) if each.diagnosis == truth}
             for truth in _WORDS}  # fmt: skip
    if all(len(said) == 1 for said in meant.values()) and len(set.union(*meant.values())) == 3:
        exchanged = ", ".join(
            f'"{min(said)}" for "{truth}"' for truth, said in meant.items() if truth not in said
        )
        return Wrong(
            "words-exchanged",
            f"The function tells the three kinds apart, but says {exchanged}.",
        )
    trades = _trades(logs, words)
    if all(say(log.going_on_as(other)) == word for log, word, other in trades):
        wrong = _one_width_only(logs, pairs) or _one_for_another(pairs)
    elif all(say(log.starting_as(other)) == word for log, word, other in trades):
        wrong = _one_for_another(pairs, reads_start=False)
    else:
        wrong = _one_for_another(pairs)
    wrong.remarks = (f"Right on {len(logs) - len(pairs)} of {len(logs)} logs.",)
    return wrong


def _one_width_only(logs, pairs) -> Wrong | None:
    """For a rule that reads the start alone, if it is right for the lesson's width of heads."""
    (log, word), wrong_widths = pairs[0], {each.d_head for each, _ in pairs}
    right_widths = {each.d_head for each in logs} - wrong_widths
    if 128 not in right_widths:
        return None
    return Wrong(
        "fits-d_head-128-only",
        f"Right for d_head = {_listed(right_widths)}, not for {_listed(wrong_widths)}: what is "
        "a wide spread depends on d_head. Without the scale it is about √d_head before "
        f"training, divided by d_k about 1/√d_head. One of those logs: {log.facts}; the "
        f'function says "{word}", but it is "{log.diagnosis}".',
    )


def _one_for_another(pairs, reads_start=True) -> Wrong:
    """For the confusion that is most common."""
    (truth, said), _ = Counter((log.diagnosis, word) for log, word in pairs).most_common(1)[0]
    log = next(log for log, word in pairs if (log.diagnosis, word) == (truth, said))
    mistake, advice = _CONFUSED[truth, said]
    if not reads_start:
        mistake = "start-not-read"
        advice = (
            "The rule says so whatever the first measurement is. The later ones tell what training "
            "made of the heads; what the kernel does can be told before training."
        )
    return Wrong(mistake, f'A run that is "{truth}" is taken for "{said}": {log.facts}. {advice}')


def _trades(logs, words) -> list[tuple[Log, str, Log]]:
    """(log, word, other), to see what becomes of the word if the log starts, or goes on, as the
    other does. Of logs that are alike in kind, width and word one will do."""
    tried = {(log.d_head, log.diagnosis, word): (log, word) for log, word in zip(logs, words)}
    others = {(log.d_head, log.diagnosis): log for log in reversed(logs)}
    return [(*one, other) for one in tried.values() for other in others.values()]


def _listed(numbers) -> str:
    return ", ".join(map(str, sorted(numbers)))


# --- 4.3 kernel_test(attention) ---

_REJECTS = ("AssertionError", "Failed")  # the second is pytest.fail's
_DESCRIBED = 3  # reasons to pass, at most, that are told
_SMALL = (
    f"The test runs once for each of {len(kernels.RIGHT) + len(kernels.BROKEN)} kernels. A hundred "
    "keys show as much as thousands."
)


@dataclass(frozen=True)
class Tried:
    """What the reader's test made of a kernel, and what it gave to it."""

    kernel: Kernel
    reply: Reply
    calls: list[Call]

    @property
    def accepted(self) -> bool:
        """None passes, as it does in pytest."""
        return self.reply.fault is None and self.reply.value is not False


def kernel_test(desk: Desk) -> tuple[str, ...]:
    """Judges a test by what it says of right kernels and of broken ones."""
    kernels.warm_up()
    right = [_try(desk, kernel) for kernel in kernels.RIGHT]
    _refuse_no_test(right)
    broken = [_try(desk, kernel) for kernel in kernels.BROKEN]
    _refuse_no_test(broken, of_right=False)
    survivors = [tried for tried in broken if tried.accepted]
    if not any(tried.calls for tried in (*right, *broken)):
        raise Wrong(
            "never-calls-the-kernel",
            "The test never calls the function that it gets: compare what `attention(…)` returns "
            "with what it should.",
        )
    if not all(tried.accepted for tried in right):
        raise _rejects_right(right, survivors)
    if survivors:
        raise _accepts_broken(right, survivors)
    sentence = (
        f"It accepts all {len(right)} right kernels and catches all {len(broken)} broken ones."
    )
    return (sentence,)


def _try(desk: Desk, kernel: Kernel) -> Tried:
    calls = []
    given = kernels.watched(kernel, calls)
    try:
        with _seeded():
            return Tried(kernel, desk.call(given, read=_passes), calls)
    except Wrong as wrong:
        if wrong.mistake in ("too-slow", "did-not-finish"):
            wrong.remarks += (_SMALL,)
        raise


@contextmanager
def _seeded() -> Iterator[None]:
    """Chance begins anew for each kernel, and goes on as before afterwards. One thread computes:
    waking up others takes longer than these sizes do."""
    import torch

    ours, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            random.setstate(ours)
            np.random.set_state(numpys)  # noqa: NPY002


def _passes(value: object):
    """True, False or None; words for anything else."""
    if value is None or type(value) is bool:
        return value
    dtype, size = getattr(value, "dtype", None), getattr(value, "size", None)
    if str(dtype).removeprefix("torch.") == "bool":
        count = value.numel() if callable(size) else size
        if count == 1:
            return bool(value)
        return f"{count} booleans: take `.all()` of them"
    return kind(value)


def _refuse_no_test(tries: list[Tried], of_right: bool = True) -> None:
    """Raises for a stub, and for what is neither yes nor no. An error is a no, but not of a right
    kernel."""
    for tried in tries:
        if isinstance(tried.reply.value, str):
            raise Wrong(
                "wrong-type",
                "The test must return True or False (or fail an `assert`), but returned "
                f"{tried.reply.value}.",
            )
    if not of_right:
        return
    for tried in tries:
        fault = tried.reply.fault
        if fault and fault.name not in _REJECTS:
            raise stopped(fault, f" on a right kernel, one that {tried.kernel.words},")
    if all(not t.calls and t.reply.value is None and t.reply.fault is None for t in tries):
        raise nothing_came(tries[0].reply)


def _rejects_right(right: list[Tried], survivors: list[Tried]) -> Wrong:
    rejected = [tried for tried in right if not tried.accepted]
    first = rejected[0]
    count = f"{len(rejected)} of {len(right)} right kernels"
    if len(rejected) == len(right):
        if not survivors:
            return Wrong(
                "rejects-everything",
                f"The test rejects all kernels, the {len(right)} right ones too{_line(first)}",
            )
        if len(survivors) == len(kernels.BROKEN):
            return Wrong(
                "reversed",
                "The test rejects every right kernel and accepts every broken one: True must mean "
                "that the kernel is right.",
            )
        if len(survivors) == 1:
            broken = survivors[0].kernel
            return Wrong(
                f"expects-{broken.id}",
                f"The test accepts a kernel that {broken.words}, and none of the right ones: does "
                "what it compares with make the same mistake?",
            )
    off = max((call.off for call in first.calls), default=0)
    if off == 0:
        return Wrong(
            "rejects-a-right-kernel",
            f"The test rejects {count}, one that {first.kernel.words} among them{_line(first)}",
        )
    how = (
        "compare with a tolerance, such as `torch.allclose(actual, expected, rtol=1e-4, "
        "atol=1e-5)`."
        if off < 1e-5
        else "so coarse is it with numbers as large, or in a format as short, as yours. Use random "
        "numbers of variance 1, in float32, and a tolerance."
    )
    return Wrong(
        "too-strict",
        f"The test rejects {count}. One that {first.kernel.words} differs from PyTorch's by at "
        f"most {off:.1g} on your inputs, which is rounding: {how}",
    )


def _line(tried: Tried) -> str:
    """Where the test failed, if it says so."""
    return f". It stops with {tried.reply.fault}." if tried.reply.fault else "."


def _accepts_broken(right: list[Tried], survivors: list[Tried]) -> Wrong:
    count = len(kernels.BROKEN)
    visible = [any(call.visible for call in tried.calls) for tried in survivors]
    if len(survivors) == count and sum(visible) > count // 2:
        hint = (
            " It returns `None`: `assert` the comparison, or return it."
            if all(tried.reply.value is None for tried in survivors)
            else ""
        )
        return Wrong(
            "accepts-everything",
            f"The test accepts all kernels, the {count} broken ones too, though their outputs are "
            "visibly wrong on your inputs: is the result compared with what is right, and with a "
            f"small tolerance?{hint}",
        )
    caught = f"It accepts all {len(right)} right kernels, and catches {count - len(survivors)} of "
    caught += f"{count} broken ones."
    groups: dict[str, list[Tried]] = {}  # those that pass for the same reason
    for tried in survivors:
        groups.setdefault(_reason(tried), []).append(tried)
    first, *others = (_passed_by(*group) for group in list(groups.items())[:_DESCRIBED])
    more = sum(len(group) for group in list(groups.values())[_DESCRIBED:])
    if more:
        others.append(f"{more} more broken kernels pass; the ones above come first.")
    mistake = "too-lenient" if visible[0] else f"accepts-{survivors[0].kernel.id}"
    return Wrong(mistake, f"{caught} {first}", *others)


def _reason(tried: Tried) -> str:
    """Why a broken kernel passed, after a colon."""
    if not tried.calls:
        return "the test did not call it."
    worst = max(tried.calls, key=lambda call: call.off).off
    if any(call.visible for call in tried.calls):
        return (
            f"its output is wrong by up to {worst:.2g} on your inputs, and yet it passes. Is every "
            "result compared, and with a small tolerance?"
        )
    if why := tried.kernel.why_blind(tried.calls):
        return f"in all your inputs {why}."
    exactly = f" to {worst:.0g}" if worst else ""
    return f"on your inputs its output is right{exactly}."


def _passed_by(reason: str, group: list[Tried]) -> str:
    first, *others = (tried.kernel for tried in group)
    blind = not any(call.visible for call in group[0].calls)
    advice = f" {first.shows}" if blind else ""
    too = "; ".join(f"one that {kernel.words}" for kernel in others)
    return (
        f"A kernel passes that {first.words}: {reason}{advice}"
        + f" For the same reason there pass: {too}." * bool(too)
    )


# --- 4.4 blind_inputs() ---

_AGREE = 1e-6  # of outputs with and without the scale
_DIFFER = 0.1  # of two values
_MOST_ENTRIES = 1_000  # of a table

_KINDS = {
    "alike": "all keys are alike, so each query's scores are equal and its weights uniform",
    "orthogonal": (
        "the differences between keys are orthogonal to the queries, so each query's scores are "
        "equal and its weights uniform"
    ),
    "saturated": (
        "the scores lie so far apart that every weight but that of the largest score is 0, with "
        "the scale and without"
    ),
    "tiny": (
        "the scores lie so close together that the weights are uniform, to several digits, with "
        "the scale and without"
    ),
    "balanced": (
        "the weights do change with the scale, but only between keys whose values make up for it"
    ),
}


def blind_inputs(desk: Desk) -> tuple[str, ...]:
    """Judges inputs by what the scale changes on them."""
    reply = desk.call(read=_arrays)
    if reply.fault:
        raise stopped(reply.fault)
    if reply.value is None:
        raise nothing_came(reply)
    if isinstance(reply.value, str):
        raise Wrong(
            "wrong-type",
            f"The function must return three tables of numbers, `q, k, v`, but {reply.value}.",
        )
    q, k, v = reply.value
    _refuse_cheap(q, k, v)
    with np.errstate(all="ignore"):
        scores = q @ k.T
        scaled = scores / np.sqrt(q.shape[1])
        weights, weights_scaled = softmax(scores), softmax(scaled)
        off = np.abs((weights - weights_scaled) @ v).max()
    if not np.isfinite(off):
        raise Wrong("overflows", "The scores or the outputs overflow: take smaller numbers.")
    if off > _AGREE:
        raise Wrong(
            "outputs-differ",
            f"The two outputs differ by up to {off:.2g}: here the scale can be seen.",
            _nearest(k, weights, weights_scaled),
        )
    kinds = _kinds(k, scores, weights, weights_scaled)
    why = "; or ".join(_KINDS[each] for each in kinds)
    first = f"Blind: the outputs agree {f'to {off:.0g}' if off else 'exactly'}, since {why}"
    other = next(each for each in ("orthogonal", "saturated", "tiny") if each not in kinds)
    return f"{first}.", f"Another kind of blindness: {_KINDS[other]}."


def _arrays(value: object):
    """Three float64 tables; words for anything else."""
    if value is None:
        return None
    shape = getattr(value, "shape", None)
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        return f"returned {kind(value)}"
    if len(value) != 3:
        return f"returned {len(value)} things" if shape is None else f"returned {kind(value)}"
    tables = []
    for name, x in zip("qkv", value):
        if hasattr(x, "detach"):
            x = x.detach().cpu().double().numpy()
        try:
            table = np.array(x)
            numbers = table.dtype.kind in "fiub"
        except ValueError:
            return f"the rows of {name} differ in length"
        if not numbers:
            return f"{name} is no array of real numbers"
        if table.ndim != 2 or 0 in table.shape:
            return f"{name} has the shape {table.shape}"
        if table.size > _MOST_ENTRIES:
            return f"{name} has the shape {table.shape}, and a few rows and columns will do"
        tables.append(table.astype(float))
    return tuple(tables)


def _refuse_cheap(q, k, v) -> None:
    (_, d), (T_k, d_of_k) = q.shape, k.shape
    if d != d_of_k:
        raise Wrong("wrong-shape", f"The rows of q have {d} entries, those of k {d_of_k}.")
    if len(v) != T_k:
        raise Wrong("wrong-shape", f"k has {T_k} rows, v has {len(v)}: each key has one value.")
    if not all(np.isfinite(x).all() for x in (q, k, v)):
        raise Wrong("not-finite", "There is nan or inf in the inputs.")
    if d == 1:
        raise Wrong(
            "d-is-1", "d is 1, where 1/√d is 1: there is no scale to be missed. Take d ≥ 2."
        )
    if T_k == 1:
        raise Wrong(
            "one-key",
            "There is one key, which gets the weight 1 whatever its score is. Take two or more.",
        )
    for name, x in (("q", q), ("k", k)):
        if not x.any():
            raise Wrong(
                f"{name}-is-zero",
                f"{name} is all zeros, and so are the scores, at any scale. That is blind indeed, "
                "but excluded here: nobody would test with it.",
            )
    if np.ptp(v, axis=0).max() < _DIFFER:
        raise Wrong(
            "values-alike",
            f"No two rows of v differ by {_DIFFER} or more. If all values are alike, so is the "
            "output, whatever the weights are: that is excluded here.",
        )


def _nearest(k, weights, weights_scaled) -> str:
    row = np.abs(weights - weights_scaled).max(axis=1).argmax()
    numbers = [", ".join(f"{w:.3g}" for w in table[row][:4]) for table in (weights_scaled, weights)]
    dots = ", …" * (len(k) > 4)
    return (
        f"The weights of query {row} are {numbers[0]}{dots} with the scale and {numbers[1]}{dots} "
        "without. Which scores give the same weights when all of them are multiplied by a number?"
    )


def _kinds(k, scores, weights, weights_scaled) -> list[str]:
    """Why each query is blind, each reason once."""
    found = set()
    for row, w, w_scaled in zip(scores, weights, weights_scaled):
        spread, size = np.ptp(row), np.abs(row).max()
        if np.abs(w - w_scaled).max() > 1e-5:
            found.add("balanced")
        elif spread <= 1e-12 * max(size, 1):
            found.add("alike" if (k == k[0]).all() else "orthogonal")
        else:
            found.add("tiny" if np.abs(w - 1 / len(w)).max() < 1e-3 else "saturated")
    return [each for each in _KINDS if each in found]
