"""Exercises and their checker: run a function on many inputs, and name what is wrong with it.

A mistake is named by comparison: each exercise keeps a family of wrong functions, and an answer
that agrees with one of them on every input has made its mistake. What agrees with none is still
rejected, and described. Attention functions are also shown to the doctor; `opinion` says when, and
what counts.
"""

from __future__ import annotations

import dis
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from helpers import watchdog
from helpers.practice import answers, opinion
from helpers.practice.answers import Answer
from helpers.practice.opinion import Opinion, Referral
from helpers.practice.task import Task
from helpers.practice.verdict import Evidence, Verdict

_SECONDS = 5.0  # for all calls of one check; the watchdog may add one
_SECONDS_DOCTOR = 3.0  # of these, at most, for the doctor's


@dataclass(frozen=True)
class Case:
    """One input.

    label : what is particular about it. args : arrays and plain Python numbers. example : the
    lesson prints its answer, so a function may have copied it. large : numbers so large that a
    careless exponential overflows. told : the label says what a reader needs to know of it.
    """

    label: str
    args: tuple[answers.Argument, ...]
    example: bool = False
    large: bool = False
    told: bool = False

    @property
    def entries(self) -> int:
        return sum(np.size(arg) for arg in self.args)


@dataclass(frozen=True)
class Mistake:
    """A way to be wrong.

    id : for programs. sentence : for the reader; it must be true of every function that matches.
    references : functions that make the mistake. sign : tells it from what all cases show; asked
    only when no reference of any mistake agrees.
    """

    id: str
    sentence: str
    references: tuple[Callable, ...] = ()
    sign: Callable[[tuple[Seen, ...]], bool] | None = None


@dataclass(frozen=True)
class Exercise(Task):
    """A function for the reader to write, whose results are compared with the solution's.

    solution : returns an array, a number, or a tuple of numbers. cases : inputs of different sizes
    (among those of one size the earlier counts as smaller), one of them the lesson's own example.
    doctor : how the doctor examines an answer, where it is a part of attention.
    """

    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...]
    doctor: Referral | None = None

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "cases", tuple(sorted(self.cases, key=lambda case: case.entries)))
        ids = [mistake.id for mistake in self.mistakes]
        if len(set(ids)) != len(ids):
            raise ValueError(f"exercise {self.id}: two mistakes have the same id in {ids}.")
        if not self.hints or not any(case.example for case in self.cases):
            raise ValueError(f"exercise {self.id} needs a hint and the lesson's example as a case.")

    def expected(self, case: Case) -> np.ndarray:
        return np.asarray(self.solution(*answers.copies(case.args)), dtype=np.float64)

    @property
    def returns(self) -> str:
        """What the function must return, in words."""
        expected = self.expected(self.cases[0])
        return _numbers(expected.shape) if expected.ndim < 2 else "an array of numbers"


@dataclass(frozen=True)
class Seen:
    """What a function answered on one input, beside what it should have."""

    case: Case
    expected: np.ndarray
    answer: Answer

    @property
    def right(self) -> bool:
        return answers.right(self.answer, self.expected)

    @property
    def nearly_right(self) -> bool:
        """Right, or as good as float32 makes it."""
        return answers.right(replace(self.answer, itemsize=4), self.expected)


def check(exercise: Exercise, fn: Callable) -> Verdict:
    """Try `fn` on every case, twice, and judge it: in six seconds at most, whatever `fn` does."""
    if misfit := not_to_be_called(exercise, fn):
        return misfit
    end = time.monotonic() + _SECONDS
    seen, again = _run(exercise, fn, end)
    return (
        _unfinished(exercise, seen)
        or _untouched(exercise, seen)
        or _capricious(exercise, seen, again)
        or _unsuitable(exercise, seen)
        or _judged(exercise, fn, seen, end)
    )


def not_to_be_called(exercise, fn: object) -> Verdict | None:
    """A verdict on what is no function, or takes other arguments than the exercise's."""
    if not callable(fn):
        return _verdict(
            exercise,
            "not-a-function",
            f"`check` needs the function itself, but got {_kind(fn)}: "
            f'write `check("{exercise.id}", {exercise.solution.__name__})`, without calling it.',
        )
    if not _takes(fn, len(exercise.names)):
        count = len(exercise.names) or "no"
        takes = f"{count} argument{'s' * (len(exercise.names) != 1)}"
        names = f": `{', '.join(exercise.names)}`" if exercise.names else ""
        return _verdict(exercise, "wrong-arguments", f"The function must take {takes}{names}.")
    return None


def _run(exercise: Exercise, fn: Callable, end: float) -> tuple[tuple[Seen, ...], tuple[Seen, ...]]:
    """Two rounds of answers, the second in reverse order; both stop when time runs out."""
    rounds = []
    for cases in (exercise.cases, exercise.cases[::-1]):
        seen = []
        for case in cases:
            left = end - time.monotonic()
            if left <= 0:
                late = Answer("unfinished", ended="too slow")
                seen.append(Seen(case, exercise.expected(case), late))
                return tuple(seen), ()
            limit = min(watchdog.SECONDS, left)
            answer = answers.answer(fn, case.args, exercise.names, limit)
            if answer.kind == "unfinished" and limit < watchdog.SECONDS:
                answer = Answer("unfinished", ended="too slow")
            seen.append(Seen(case, exercise.expected(case), answer))
            if answer.kind == "unfinished":
                return tuple(seen), ()
        rounds.append(tuple(seen))
    return rounds[0], rounds[1][::-1]


# --- One finding each: a verdict, or None where there is nothing of the kind to say. ---


def _unfinished(exercise, seen):
    last = seen[-1]
    if last.answer.kind != "unfinished":
        return None
    if last.answer.ended == "too slow":
        sentence = (
            f"The inputs are tiny, yet the checker had to give up after {_SECONDS:.0f} seconds. "
            "Is there a `sleep`, or a loop that does far more rounds than it needs?"
        )
        return _verdict(exercise, "too-slow", sentence)
    sentence = (
        f"The function did not finish within {watchdog.SECONDS:.0f} seconds on an input of "
        f"{last.case.entries} numbers. Is there a loop that never ends?"
    )
    remarks = (LEFT_BEHIND,) if last.answer.ended == "left behind" else ()
    return _verdict(exercise, "did-not-finish", sentence, last, remarks)


LEFT_BEHIND = (
    "It could not be stopped and may go on in the background: if the notebook feels slow, restart "
    "the kernel."
)


def _untouched(exercise, seen):
    kinds = {one.answer.kind for one in seen}
    stubs = {one.answer.fault.name for one in seen if one.answer.kind == "raised"}
    if kinds == {"raised"} and stubs == {"NotImplementedError"}:
        return task(exercise)
    if kinds != {"none"}:
        return None
    if any(one.answer.printed.strip() for one in seen):
        return _verdict(exercise, *PRINTS, seen[0])
    return task(exercise)


PRINTS = (
    "prints-instead-of-returning",
    "The function prints something but returns `None`: end it with `return`.",
)


def task(exercise) -> Verdict:
    """Before an attempt the checker says what is asked."""
    how = f"`{exercise.signature}`. Once it has something to return, run this again."
    return Verdict(exercise.heading, False, False, None, exercise.statement, remarks=(how,))


def _capricious(exercise, seen, again):
    for first, second in zip(seen, again, strict=True):
        if not answers.same(first.answer, second.answer):
            sentence = (
                "The same input gave two different results: the function must depend on its "
                "arguments alone, not on chance or on what an earlier call left behind."
            )
            worse = second if first.right else first
            return _verdict(exercise, "not-deterministic", sentence, worse)
    return None


REFUSED = {
    "SystemExit": ("exits", "The function ends the program (`exit`): use `return` instead."),
    "KeyboardInterrupt": (
        "exits",
        "The function raises `KeyboardInterrupt`: use `return` instead.",
    ),
    "NoInput": (
        "asks-for-input",
        "The function calls `input()`, but nobody is there to answer while it is checked.",
    ),
}


def _unsuitable(exercise, seen):
    """Answers that are no table of numbers, or reached by a way that cannot be right."""
    for one in seen:
        if one.answer.kind == "raised" and one.answer.fault.name in REFUSED:
            return _verdict(exercise, *REFUSED[one.answer.fault.name], one)
    for one in seen:
        if one.answer.kind == "other":
            mistake = "complex-numbers" if "complex" in one.answer.words else "wrong-type"
            sentence = (
                f"The function must return {exercise.returns}, but returned {one.answer.words}."
            )
            return _verdict(exercise, mistake, sentence, one)
    return None


def _judged(exercise, fn, seen, end):
    failing = [one for one in seen if not one.right]
    changes = _changes(seen)
    if not failing and changes:
        one = next(one for one in seen if one.answer.changed)
        return _verdict(exercise, "changes-its-input", "The result is right, but: " + changes, one)
    ask = partial(_ask, exercise, fn, end)
    if not failing:
        return _wrong_elsewhere(exercise, seen, ask()) or _passed(exercise, seen)
    remarks = (changes,) if changes else ()
    remarks += tuple(
        f"It calls `{name}`, which is still a stub: write that first." for name in _stubs_called(fn)
    )
    mistake, sentence = _name(exercise, seen, failing, ask)
    return _verdict(exercise, mistake, sentence, failing[0], remarks)


def _changes(seen) -> str:
    """What is to be said of arguments that a function modified, if it did."""
    changed = sorted({name for one in seen for name in one.answer.changed})
    if not changed:
        return ""
    return (
        f"The function changes its argument `{'`, `'.join(changed)}` in place, so its caller's "
        "array is spoiled: work on a new array (`x = x / 2` makes one, `x /= 2` does not)."
    )


def _passed(exercise, seen):
    large = ", large numbers among them" * any(one.case.large for one in seen)
    sentence = f"Right on {len(seen)} different inputs{large}."
    return Verdict(exercise.heading, True, True, None, sentence, remarks=_warnings(seen))


def _wrong_elsewhere(exercise, seen, second: Opinion | None):
    """A verdict on a function that is right on the cases and wrong on inputs of the doctor's."""
    calls = [call for call in second.calls if not call.forgiven] if second else []
    tried = [] if second is None or second.sound else _as_seen(exercise, calls)
    failing = [one for one in tried if not one.nearly_right]
    changed = _as_seen(exercise, [call for call in calls if call.answer.changed])
    if not failing and not changed:
        return None
    if not failing:
        mistake, sentence = "changes-its-input", _changes(changed)
    elif second.name:
        mistake, sentence = second.name, second.words
    else:
        mistake, sentence = _described(failing, len(tried))
    sentence = f"Right on the {len(seen)} inputs of this exercise, but not everywhere. {sentence}"
    return _verdict(exercise, mistake, sentence, (failing or changed)[0])


def _as_seen(exercise, calls) -> list[Seen]:
    """Calls of the doctor's as further cases, the smallest first."""
    cases = [Case(call.described(exercise.names), call.args, told=True) for call in calls]
    found = [Seen(case, exercise.expected(case), c.answer) for case, c in zip(cases, calls)]
    return sorted(found, key=lambda one: one.case.entries)


def _ask(exercise, fn, end) -> Opinion | None:
    """The doctor's opinion, if it is one for the doctor and there is time."""
    left = end - time.monotonic()
    if exercise.doctor is None or left <= 0:
        return None
    return opinion.ask(exercise.doctor, fn, exercise.names, min(left, _SECONDS_DOCTOR))


_OF_A_STUB = {"RESUME", "NOP", "LOAD_CONST", "POP_TOP", "RETURN_CONST", "RETURN_VALUE"}


def _stubs_called(fn: Callable) -> list[str]:
    """Names of the notebook's functions that `fn` uses and that do nothing yet."""
    code, known = getattr(fn, "__code__", None), getattr(fn, "__globals__", {})
    stubs = []
    for name in getattr(code, "co_names", ()):
        body = getattr(known.get(name), "__code__", None)
        if body and {step.opname for step in dis.get_instructions(body)} <= _OF_A_STUB:
            stubs.append(name)
    return stubs


def _warnings(seen) -> tuple[str, ...]:
    """What is to be said about a right function that NumPy warns of."""
    warned = sorted({kind for one in seen for kind in one.answer.warned})
    if not warned:
        return ()
    return (
        f"But NumPy warns on the way ({', '.join(warned)}): somewhere inf or nan comes up, even if "
        "none is left in the end. `np.where`, for one, computes both of its cases everywhere.",
    )


def _name(exercise, seen, failing, ask: Callable[[], Opinion | None]) -> tuple[str, str]:
    """(identifier, sentence) of the likely mistake.

    The exercise's own words, made for it, come before the doctor's, except for a mistake without
    references: that is a mere symptom, of which the doctor may know the cause.
    """
    alike = [m for m in exercise.mistakes if any(_agrees(ref, seen) for ref in m.references)]
    if len(alike) == 1:
        return alike[0].id, alike[0].sentence
    if alike:
        sentences = " — or: ".join(m.sentence for m in alike)
        return "|".join(m.id for m in alike), f"One of these; the inputs cannot tell: {sentences}"
    special = _copied(seen) or _transposed(failing)
    if special:
        return special
    sign = next((m for m in exercise.mistakes if m.sign and m.sign(seen)), None)
    second = None if sign and sign.references else ask()
    if second and second.explains and (second.compared or not sign):
        return second.name, second.words
    return (sign.id, sign.sentence) if sign else _described(failing, len(seen))


def _agrees(reference: Callable, seen: tuple[Seen, ...]) -> bool:
    """Whether the answers are what `reference` gives, wrong numbers at least once.

    Where it raises (shapes do not fit), any wrong answer will do: there are many ways to fail.
    """
    telling = False
    for one in seen:
        theirs = _result(reference, one.case.args)
        if theirs is None:
            if one.right:
                return False
        elif not answers.right(one.answer, theirs):
            return False
        else:
            telling = telling or not one.right
    return telling


def _result(reference: Callable, args) -> np.ndarray | None:
    """What a wrong function gives, None if it raises."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(reference(*answers.copies(args)), dtype=np.float64)
        except Exception:  # wrong functions may fail in any way
            return None


def _copied(seen) -> tuple[str, str] | None:
    """An answer made for the lesson's example: its numbers, or its sizes."""
    example = next(one for one in seen if one.case.example)
    others = [one for one in seen if one is not example]
    if not example.right:
        return None

    def constant_or_nothing(one):
        if one.answer.kind in ("none", "raised"):
            return True
        return answers.right(one.answer, example.expected)

    if not any(one.right for one in others) and all(map(constant_or_nothing, others)):
        return "hard-coded", (
            "The result is that of the lesson's own example, whatever the input. Compute it from "
            "the arguments; does the function use a variable of the notebook in place of an "
            "argument?"
        )
    shapes = [np.shape(arg) for arg in example.case.args]
    sized = [one for one in seen if [np.shape(arg) for arg in one.case.args] == shapes]
    if len(sized) > 1 and all(one.right for one in sized):
        wrong = [one for one in seen if one not in sized]
        if wrong and not any(one.right for one in wrong):
            return "hard-coded-sizes", (
                "The result is right for inputs as large as the lesson's example and for no "
                "others: take the sizes from the arguments' `.shape`."
            )
    return None


def _transposed(failing) -> tuple[str, str] | None:
    if not all(_is_transposed(one) for one in failing):
        return None
    return "transposed-result", (
        "The numbers are right, but rows and columns are exchanged: "
        "the result is the transpose of what was asked for."
    )


def _described(failing, count: int) -> tuple[str, str]:
    """What can be said of a mistake that has no name: the first that is true."""
    first = failing[0]
    answer = first.answer
    alike = [one for one in failing if one.answer.kind == answer.kind]
    if answer.kind == "raised":
        alike = [one for one in alike if one.answer.fault.name == answer.fault.name]
    how_often = "every input" if len(alike) == count else f"{len(alike)} of {count} inputs"
    if answer.kind == "raised":
        return "raises-error", f"The function stops on {how_often} with {answer.fault}."
    if answer.kind == "none":
        return (
            "returns-none",
            f"The function returns `None` for {how_often}: is a `return` missing?",
        )
    if answer.shape != first.expected.shape:
        same_numbers = (
            answer.array is not None
            and answer.array.size == first.expected.size
            and (np.allclose(answer.array.ravel(), first.expected.ravel(), rtol=1e-3, atol=1e-5))
        )
        sentence = (
            f"The result has the shape {answer.shape}, but should have {first.expected.shape}"
        )
        if first.expected.ndim < 2:
            found = f"an array of shape {answer.shape}" if answer.shape else "one number"
            sentence = f"The result should be {_numbers(first.expected.shape)}, but is {found}"
        return "wrong-shape", sentence + (" (its numbers are right)." if same_numbers else ".")
    if all(_is_near(one) for one in failing):
        return "imprecise", (
            "The numbers are nearly right, but not to six digits: is something rounded, or held in "
            "half precision (float16)?"
        )
    if all(
        one.answer.array is not None and not np.isfinite(one.answer.array).all() for one in failing
    ):
        return "not-finite", f"The result holds nan or inf on {how_often}."
    advice = (
        "Is there anything in it that depends on how many queries, keys or features there are?"
        if first.case.told
        else "Work the input below by hand, one step at a time, and compare."
    )
    return "unknown", (
        f"The result is wrong on {how_often}, in a way that this checker has no name for. {advice}"
    )


def _is_transposed(one) -> bool:
    array = one.answer.array
    if array is None or array.ndim < 2 or array.mT.shape != one.expected.shape:
        return False
    return bool(np.allclose(array.mT, one.expected, rtol=1e-3, atol=1e-5))


def _is_near(one) -> bool:
    array = one.answer.array
    if array is None or array.shape != one.expected.shape:
        return False
    return bool(np.allclose(array, one.expected, rtol=1e-2, atol=1e-2))


# --- Putting it in a verdict. ---


def _verdict(exercise, mistake, sentence, one: Seen | None = None, remarks=()) -> Verdict:
    evidence = None
    if one is not None:
        inputs = () if one.case.told else tuple(zip(exercise.names, one.case.args, strict=True))
        off = answers.close(one.answer, one.expected)
        told = mistake == "raises-error"  # by the sentence
        evidence = Evidence(
            one.case.label,
            inputs,
            one.expected,
            "the error above" if told else _shown(one.answer),
            None if off is None else ~off,
        )
    return Verdict(exercise.heading, False, True, mistake, sentence, evidence, tuple(remarks))


def _shown(answer: Answer) -> np.ndarray | str:
    if answer.kind == "array":
        return f"an array of shape {answer.shape}" if answer.array is None else answer.array
    if answer.kind == "raised":
        return str(answer.fault)
    return {"none": "None", "other": answer.words, "unfinished": "none in time"}[answer.kind]


def _numbers(shape: tuple[int, ...]) -> str:
    """A single number, or a row of them, in words."""
    return f"{shape[0]} numbers" if shape else "one number"


def _kind(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _takes(fn: Callable, count: int) -> bool:
    try:
        inspect.signature(fn).bind(*range(count))
    except TypeError:
        return False
    except Exception:  # some built-in functions do not tell, and some objects resist
        return True
    return True
