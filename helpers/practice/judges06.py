"""Lesson 6's judge: of one step of decoding with a KV cache (6.7).

Three arrays come back, of different shapes, and a mistake in a cache is another than one in the
output: each is looked at by itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers.practice import answers
from helpers.practice.answers import Answer
from helpers.practice.mistakes01 import _naive, _softmax
from helpers.practice.trials import Desk, Reply, Wrong, kind, nothing_came, stopped

_PARTS = ("the output", "the cache of keys", "the cache of values")


@dataclass(frozen=True)
class Step:
    """One input: x (d_model,), w_q, w_k (d_model, d_k), w_v (d_model, d_v), caches of T rows."""

    label: str
    args: tuple[np.ndarray, ...]

    @property
    def rows(self) -> int:
        return len(self.args[4])

    @property
    def query(self) -> np.ndarray:
        return self.args[0] @ self.args[1]

    @property
    def keys(self) -> np.ndarray:
        x, _, w_k, _, k_cache, _ = self.args
        return np.concatenate([k_cache, (x @ w_k)[None]])

    @property
    def values(self) -> np.ndarray:
        x, _, _, w_v, _, v_cache = self.args
        return np.concatenate([v_cache, (x @ w_v)[None]])

    @property
    def expected(self) -> tuple[np.ndarray, ...]:
        """(out, k_cache, v_cache)"""
        return _attended(self.query, self.keys, self.values), self.keys, self.values


def _attended(q, k, v, soft=_softmax, divisor=None):
    """Attention of one query: q (d_k,), k (T, d_k), v (T, d_v) -> (d_v,)."""
    return soft(k @ q / np.sqrt(len(q) if divisor is None else divisor)) @ v


# --- Inputs: multiples of powers of ½, so exact in float32 too. ---


def _step(label: str, T: int, d_model: int, d_k: int, d_v: int, step: float = 0.25) -> Step:
    """`step` is that of w_q and w_k: large weights make large scores."""
    draw = random.Random(5 + T + 3 * d_model + 5 * d_k + 7 * d_v)

    def some(*shape, step=0.5):
        flat = [draw.randrange(-4, 5) * step for _ in range(math.prod(shape))]
        return np.array(flat).reshape(shape)

    x, w_q, w_k = some(d_model), some(d_model, d_k, step=step), some(d_model, d_k, step=step)
    return Step(label, (x, w_q, w_k, some(d_model, d_v), some(T, d_k, step=2 * step), some(T, d_v)))


STEPS = (
    _step("an empty cache", 0, 2, 2, 1),
    _step("a cache of 1", 1, 2, 2, 1),
    _step("a cache of 2", 2, 2, 3, 2),
    _step("a cache of 3, all widths equal", 3, 3, 3, 3),
    _step("an empty cache, d_model = 6", 0, 6, 4, 3),
    _step("a cache of 4", 4, 3, 4, 2),
    _step("a cache of 5, d_k = 16", 5, 4, 16, 5),
    _step("a cache as long as d_k", 8, 6, 8, 4),
    _step("large scores", 3, 4, 4, 2, step=8.0),
    _step("a cache of 40", 40, 4, 9, 6),
)

# --- Wrong outputs, by name. Where one raises, or gives None, any wrong answer will do. ---


def _old(step: Step):
    """Query, and the caches as they came in."""
    return step.query, *step.args[4:]


def _all(step: Step):
    return step.query, step.keys, step.values


def _scaled(divisor: Callable[[Step], float]) -> tuple[Callable, ...]:
    return tuple(
        lambda step, soft=soft: _attended(*_all(step), soft, divisor(step))
        for soft in (_softmax, _naive)
    )


def _on_rows(choose: Callable) -> tuple[Callable, ...]:
    """Attention to some of the rows only."""
    return tuple(
        lambda step, soft=soft: _attended(step.query, choose(step.keys), choose(step.values), soft)
        for soft in (_softmax, _naive)
    )


def _unseen(soft: Callable, of_nothing: Callable[[Step], np.ndarray | None]) -> Callable:
    """Attention to the caches as they came in. What comes of an empty one depends: nan, zeros, an
    error (None), or the right thing after all."""
    return lambda step: _attended(*_old(step), soft) if step.rows else of_nothing(step)


_OUTPUTS: dict[str, tuple[str, tuple[Callable, ...]]] = {
    "new-token-not-seen": (
        "The output leaves the newest token out: its key and value belong into the caches before "
        "attention, not after. A token sees itself too.",
        tuple(
            _unseen(soft, of_nothing)
            for soft in (_softmax, _naive)
            for of_nothing in (lambda step: None, lambda step: step.values[-1])
        ),
    ),
    "first-key-only": (
        "The output is the first row of the cached values: the query sees key 0 alone, as a causal "
        "mask that counts from the upper left has it. The newest token sees every key: no mask.",
        (lambda step: step.values[0],),
    ),
    "newest-key-only": (
        "The output is the newest token's own value: it must attend to the cache as well.",
        (lambda step: step.values[-1],),
    ),
    "first-key-not-seen": (
        "The output leaves the oldest token out: every row of the cache counts.",
        _on_rows(lambda rows: rows[1:] if len(rows) > 1 else rows),
    ),
    "no-scale": ("The scores are not divided by √d_k.", _scaled(lambda step: 1)),
    "divided-by-d_k": (
        "The scores are divided by d_k instead of √d_k: take the root, once.",
        _scaled(lambda step: len(step.query) ** 2),
    ),
    "multiplied-by-sqrt-d_k": (
        "The scores are multiplied by √d_k instead of divided by it.",
        _scaled(lambda step: 1 / len(step.query)),
    ),
    "scaled-by-sqrt-d_model": (
        "The scores are divided by √d_model, the length of x. A score sums d_k products: √d_k.",
        _scaled(lambda step: len(step.args[0])),
    ),
    "scaled-by-sqrt-d_v": (
        "The scores are divided by √d_v: a score sums d_k products, so it is √d_k.",
        _scaled(lambda step: step.values.shape[1]),
    ),
    "scaled-by-sqrt-T": (
        "The scores are divided by the root of the number of tokens: take the length of the query.",
        _scaled(lambda step: len(step.keys))
        + _scaled(lambda step: max(step.rows, 1))
        + _scaled(lambda step: step.rows),
    ),
    "scale-hard-coded": (
        "The scores are divided by the same number for every input: take √d_k, `len(q)`.",
        _scaled(lambda step: 4) + _scaled(lambda step: 64),
    ),
    "no-softmax": (
        "The scores are used as weights: the softmax is missing.",
        (
            lambda step: _attended(*_all(step), lambda s: s),
            lambda step: _attended(*_all(step), lambda s: s, 1),
        ),
    ),
    "not-normalised": (
        "The exponentials are used as weights: divide them by their sum.",
        (
            lambda step: _attended(*_all(step), np.exp),
            lambda step: _attended(*_all(step), lambda s: np.exp(s - s.max())),
        ),
    ),
    "keys-for-values": (
        "The keys are mixed instead of the values: the weights belong to the rows of v_cache.",
        (lambda step: _attended(step.query, step.keys, step.keys),),
    ),
    "mean-of-the-values": (
        "The output is the plain mean of the values: the weights must depend on the scores.",
        (lambda step: step.values.mean(axis=0),),
    ),
    "key-as-query": (
        "The new token's key is used as its query: project x with w_q.",
        (lambda step: _attended(step.keys[-1], step.keys, step.values),),
    ),
    "query-not-projected": (
        "x meets the keys as it is: project it with w_q first.",
        (lambda step: _attended(step.args[0], step.keys, step.values),),
    ),
    "overflows": (
        "Right until the scores get large: then exp overflows and nan comes out. Subtract the "
        "largest score before exp; the weights stay the same.",
        (lambda step: _attended(*_all(step), _naive),),
    ),
}

# --- Wrong caches, by name: what both are in place of what they should be. ---


def _row(step: Step, which: int) -> np.ndarray:
    """The new row of the keys (0) or the values (1)."""
    return (step.keys, step.values)[which][-1:]


_CACHES: dict[str, tuple[str, Callable[[Step], tuple]]] = {
    "cache-not-extended": (
        "The caches come back as they came in, without the new token's row: the next token would "
        "not see it.",
        lambda step: step.args[4:],
    ),
    "new-row-first": (
        "The new row stands at the beginning of the caches: they are kept oldest first, so it "
        "belongs to the end.",
        lambda step: tuple(np.concatenate([_row(step, i), step.args[4 + i]]) for i in (0, 1)),
    ),
    "order-reversed": (
        "The rows of the caches are in reverse order: oldest first, the new one at the end.",
        lambda step: (step.keys[::-1], step.values[::-1]),
    ),
    "oldest-row-dropped": (
        "The oldest row has gone as the new one came: every row stays, so T + 1 come back.",
        lambda step: (step.keys[-max(step.rows, 1) :], step.values[-max(step.rows, 1) :]),
    ),
    "new-row-only": (
        "The new rows come back alone: return the whole caches, the new row at their end.",
        lambda step: (_row(step, 0), _row(step, 1)),
    ),
    "x-in-the-cache": (
        "x itself is in the caches: they hold its key x · w_k and its value x · w_v.",
        lambda step: tuple(np.concatenate([old, step.args[0][None]]) for old in step.args[4:]),
    ),
    "key-and-value-exchanged": (
        "The new token's key stands in the cache of values and its value in that of keys.",
        lambda step: tuple(np.concatenate([step.args[4 + i], _row(step, 1 - i)]) for i in (0, 1)),
    ),
    "key-in-both": (
        "The new token's key stands in both caches: the value is x · w_v.",
        lambda step: tuple(np.concatenate([old, _row(step, 0)]) for old in step.args[4:]),
    ),
    "query-in-the-cache": (
        "The new token's query stands in the cache of keys: the key is x · w_k. No later token "
        "needs this query.",
        lambda step: (np.concatenate([step.args[4], step.query[None]]), step.values),
    ),
    "scaled-keys-in-the-cache": (
        "The new key is divided by √d_k before it is kept, and those in the cache are not: keep "
        "keys as they are and scale the scores.",
        lambda step: (
            np.concatenate([step.args[4], _row(step, 0) / np.sqrt(len(step.query))]),
            step.values,
        ),
    ),
}


def decode_step(desk: Desk) -> tuple[str, ...]:
    """Judges the three arrays, on steps with caches of 0 to 40 rows."""
    replies = [desk.call(*step.args, read=_three) for step in STEPS]
    again = [desk.call(*step.args, read=_three) for step in reversed(STEPS)][::-1]
    found = [reply.value for reply in replies]
    _refuse_unfinished(replies)
    if not all(_alike(a, b.value) for a, b in zip(found, again)):
        raise Wrong(
            "not-deterministic",
            "The same input gave two different results: the function must depend on its arguments "
            "alone, not on chance or on what an earlier call left behind.",
        )
    changed = sorted({name for reply in replies for name in reply.changed})
    changes = (
        f"The function changes its argument `{'`, `'.join(changed)}` in place, so its caller's "
        "array is spoiled: make a new one, as `np.concatenate` does."
    )
    remarks = (changes,) if changed else ()
    wrong_caches = [i for i, f in enumerate(found) if not _right(f, STEPS[i], (1, 2))]
    wrong_outputs = [i for i, f in enumerate(found) if not _right(f, STEPS[i], (0,))]
    if wrong_caches:
        if not wrong_outputs:
            remarks = ("The output is right.", *remarks)
        raise Wrong(*_of_caches(found, wrong_caches), *remarks)
    if wrong_outputs:
        raise Wrong(*_of_output(found, wrong_outputs), "Both caches are right.", *remarks)
    if changed:
        raise Wrong("changes-its-input", "The result is right, but: " + changes)
    return (f"Right on {len(STEPS)} steps, with caches of 0 to 40 rows, large scores among them.",)


# --- Reading what came back, under the watchdog. ---


def _three(value: object):
    """Three Answers in a tuple; None; words in a list; a single Answer for what is no three."""
    if value is None:
        return None
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        return _one(value)
    if not isinstance(value, tuple | list):
        if hasattr(value, "close") and hasattr(value, "cr_await"):
            value.close()  # else Python complains later that it was never awaited
        return [kind(value)]
    if len(value) != 3:
        return [f"{len(value)} things"]
    parts = tuple(_one(part) for part in value)
    for name, part in zip(_PARTS, parts):
        if part.kind != "array":
            return [f"{part.words or 'None'} as {name}"]
    return parts


def _one(value: object) -> Answer:
    return Answer(**answers.read(value))


def _refuse_unfinished(replies: list[Reply]) -> None:
    """Raises for errors, stubs, and what is no three arrays."""
    if all(reply.fault is None and reply.value is None for reply in replies):
        raise nothing_came(replies[0])
    for step, reply in zip(STEPS, replies):
        if reply.fault:
            raise _named_by_the_rest(replies) or _stopped(step, reply, replies)
    for step, reply in zip(STEPS, replies):
        if reply.value is None:
            raise Wrong(
                "returns-none",
                f"The function returns `None` for {step.label}: is a `return` missing?",
            )
        if isinstance(reply.value, Answer):
            right = answers.right(reply.value, step.expected[0])
            praise = " Its numbers are right, but the next step needs the caches too." * right
            raise Wrong(
                "caches-not-returned" if right else "wrong-type",
                "The function must return three arrays, `out, k_cache, v_cache`, but returned one "
                f"array of shape {reply.value.shape}.{praise}",
            )
        if isinstance(reply.value, list):
            raise Wrong(
                "wrong-type",
                "The function must return three arrays, `out, k_cache, v_cache`, but returned "
                f"{reply.value[0]}.",
            )


def _named_by_the_rest(replies: list[Reply]) -> Wrong | None:
    """The mistake of a function that stops where shapes do not fit, if other inputs tell it."""
    found = [reply.value if isinstance(reply.value, tuple) else None for reply in replies]
    named = _named_cache(found) or _named_output(found)
    fault = next(reply.fault for reply in replies if reply.fault)
    return Wrong(*named, f"On some inputs it stops with {fault}.") if named else None


def _stopped(step: Step, reply: Reply, replies: list[Reply]) -> Exception:
    failed = [i for i, r in enumerate(replies) if r.fault and r.fault.name == reply.fault.name]
    if all(STEPS[i].rows == 0 for i in failed):
        return Wrong(
            "fails-on-an-empty-cache",
            f"The function stops where the cache is empty, T = 0, with {reply.fault}. Append the "
            "new row before attending: then there is always one key.",
        )
    often = "every input" if len(failed) == len(STEPS) else f"{len(failed)} of {len(STEPS)} inputs"
    error = stopped(reply.fault, f" on {often}")
    if isinstance(error, Wrong):
        error.remarks = (f"The first of them: {_described(step)}.",)
    return error


def _described(step: Step) -> str:
    x, w_q, _, w_v, k_cache, _ = step.args
    sizes = f"T = {len(k_cache)}, d_model = {len(x)}, d_k = {w_q.shape[1]}, d_v = {w_v.shape[1]}"
    return f"{step.label} ({sizes})"


def _alike(a, b) -> bool:
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return type(a) is type(b)
    return all(map(answers.same, a, b))


# --- Naming what is wrong. ---


def _right(found: tuple[Answer, ...], step: Step, which: tuple[int, ...]) -> bool:
    return all(answers.right(found[i], step.expected[i]) for i in which)


def _of_caches(found, wrong: list[int]) -> tuple[str, str]:
    """(mistake, sentence) for caches that are not what they should be."""
    if all(_are(f, [step.expected[i] for i in (1, 2, 0)]) for f, step in zip(found, STEPS)):
        return (
            "another-order",
            "The arrays are right, but in another order: the output comes first.",
        )
    if all(_are(f, [step.expected[i] for i in (0, 2, 1)]) for f, step in zip(found, STEPS)):
        return (
            "caches-exchanged",
            "The two caches have changed places: `out, k_cache, v_cache` is asked for.",
        )
    if named := _named_cache(found):
        return named
    first = wrong[0]
    step = STEPS[first]
    which = next(i for i in (1, 2) if not answers.right(found[first][i], step.expected[i]))
    shape, should = found[first][which].shape, step.expected[which].shape
    name = _PARTS[which].capitalize()
    if shape != should:
        return (
            "wrong-shape",
            f"{name} has the shape {shape}, but should have {should}, on {_described(step)}.",
        )
    return (
        "wrong-cache",
        f"{name} is wrong on {_described(step)}. Its last row should be {_row_of(step, which)}, "
        "and the rows before it those of the cache that came in.",
    )


def _row_of(step: Step, which: int) -> str:
    return f"x @ {'w_k' if which == 1 else 'w_v'} = {_numbers(step.expected[which][-1])}"


def _of_output(found, wrong: list[int]) -> tuple[str, str]:
    """(mistake, sentence) for an output that is not what it should be."""
    if named := _named_output(found):
        return named
    first = wrong[0]
    step, out = STEPS[first], found[first][0]
    expected = step.expected[0]
    if out.shape != expected.shape:
        same = out.array is not None and out.array.size == expected.size
        same = same and np.allclose(out.array.ravel(), expected, rtol=1e-3, atol=1e-5)
        return (
            "wrong-shape",
            f"The output has the shape {out.shape}, but should have {expected.shape}"
            + (" (its numbers are right)." if same else "."),
        )
    how_often = f"{len(wrong)} of {len(found)} inputs" if len(wrong) < len(found) else "every input"
    if all(_is_near(found[i][0], STEPS[i].expected[0]) for i in wrong):
        return (
            "imprecise",
            "The output is nearly right, but not to six digits: is something rounded, or held in "
            "half precision (float16)?",
        )
    return (
        "unknown",
        f"The output is wrong on {how_often}, in a way that this checker has no name for. On "
        f"{_described(step)} it should be {_numbers(expected)}, and is {_numbers(out.array)}.",
    )


def _named_cache(found) -> tuple[str, str] | None:
    for mistake, (sentence, caches) in _CACHES.items():
        if _agrees(found, (1, 2), caches):
            return mistake, sentence
    return None


def _named_output(found) -> tuple[str, str] | None:
    for mistake, (sentence, references) in _OUTPUTS.items():
        for reference in references:
            if _agrees(found, (0,), lambda step, reference=reference: (reference(step),)):
                return mistake, sentence
    return None


def _agrees(found, which: tuple[int, ...], make: Callable[[Step], tuple]) -> bool:
    """Whether a wrong function gives these answers, and wrong ones at least once.

    found : three Answers for each step, None where the reader's function stopped. which : of the
    three. make : what the wrong function gives there.
    """
    telling = False
    for answer, step in zip(found, STEPS):
        right = answer is not None and _right(answer, step, which)
        theirs = _made(make, step)
        if theirs is None:
            if right:
                return False
        elif answer is None or not _are([answer[i] for i in which], theirs):
            return False
        else:
            telling = telling or not right
    return telling


def _made(make: Callable[[Step], tuple], step: Step) -> tuple[np.ndarray, ...] | None:
    """What a wrong function gives; None where it gives nothing, as there are many ways to fail."""
    with np.errstate(all="ignore"):
        try:
            theirs = make(step)
        except ValueError:  # shapes do not fit
            return None
    return None if any(their is None for their in theirs) else tuple(map(np.asarray, theirs))


def _are(found, arrays) -> bool:
    return all(map(answers.right, found, arrays))


def _is_near(answer: Answer, expected: np.ndarray) -> bool:
    array = answer.array
    if array is None or array.shape != expected.shape:
        return False
    return bool(np.allclose(array, expected, rtol=1e-2, atol=1e-2))


def _numbers(array: np.ndarray | None) -> str:
    if array is None:
        return "too large to be shown"
    shown = ", ".join(f"{number:.4g}" for number in array.ravel()[:6])
    return f"[{shown}{', …' * (array.size > 6)}]"
