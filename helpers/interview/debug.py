"""What is wrong with this attention function? Short functions to read, and sound ones among them.

    broken = case("longer-is-worse")
    print(broken.code, broken.promise, broken.symptom)
    broken.question   # four diagnoses, the last one "nothing"; every one has its own reply
    broken.examine()  # what the doctor says of the same function

The functions stand in `helpers.interview.broken`, what is said about them in `debug_cases`. The
right version of each is not written down a second time: it is the broken one with `change` made in
it, so that what a reader is told to change is what makes it right.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from helpers.interview import broken
from helpers.interview.bank import LESSONS, LEVELS
from helpers.practice.questions import Option, Question

NOTHING = "Nothing: it does what it promises."
_CAUSAL = {
    "upper_left": "Causal: query i sees keys 0 to i.",
    "lower_right": (
        "Causal, against a cache: the queries are the last T_q of T_k tokens, so the last query "
        "sees every key, the one before it all but the last, and so on."
    ),
}
_ARGUMENTS = {
    "mask": "`mask` holds booleans, and True means: may attend.",
    "attn_bias": "`attn_bias` is added to the scaled scores, as in PyTorch.",
    "enable_gqa": (
        "With `enable_gqa` there are fewer heads of keys than of queries, and they are shared as "
        "in PyTorch."
    ),
}


@dataclass(frozen=True)
class Broken:
    """A function to diagnose.

    function : from `helpers.interview.broken`; a reader sees `code`. disease : the name that the
    doctor's examination gives it under `conventions` (arguments of `helpers.doctor.examine`);
    "sound" if nothing is wrong. symptom : what somebody saw, true of this function. diagnoses :
    three options; the right one is among them unless nothing is wrong. nothing : what is said to
    whoever chooses `NOTHING`. change : (text as it is, text as it must be), each found once in the
    code; none for a sound function. level, lesson, section, topic : as in the bank.
    """

    id: str
    title: str
    function: Callable
    disease: str
    level: str
    minutes: int
    symptom: str
    diagnoses: tuple[Option, ...]
    nothing: str
    lesson: str
    section: str
    topic: str
    change: tuple[tuple[str, str], ...] = ()
    conventions: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self):
        if self.level not in LEVELS:
            raise ValueError(f"{self.id}: level {self.level!r}; there are {', '.join(LEVELS)}.")
        if self.lesson not in LESSONS:
            raise ValueError(f"{self.id}: lesson {self.lesson!r}; there are {', '.join(LESSONS)}.")

    @property
    def is_sound(self) -> bool:
        return self.disease == "sound"

    @cached_property
    def code(self) -> str:
        """The function as a reader sees it: called `attention`, whatever it is called here."""
        return re.sub(r"^def \w+\(", "def attention(", inspect.getsource(self.function)).rstrip()

    @cached_property
    def fixed_code(self) -> str:
        """The same with `change` made in it. Raises ValueError if that cannot be done."""
        code = self.code
        for before, after in self.change:
            if code.count(before) != 1:
                raise ValueError(f"{self.id}: {before!r} is in the code {code.count(before)} times")
            code = code.replace(before, after)
        return code

    @property
    def fix(self) -> str:
        """The lines to change, old ones marked - and new ones +, with a line around them; "" for a
        sound function."""
        old, new = self.code.splitlines(), self.fixed_code.splitlines()
        lines = list(difflib.unified_diff(old, new, n=1, lineterm=""))[3:]  # without the heading
        return "\n".join("  …" if line.startswith("@@") else line for line in lines)

    @cached_property
    def fixed(self) -> Callable:
        """The right function, made from `fixed_code`."""
        namespace = dict(vars(broken))
        exec(compile(self.fixed_code, f"<{self.id}, fixed>", "exec"), namespace)
        return namespace["attention"]

    @property
    def promise(self) -> str:
        """In words, what the function is meant to do: shapes, causality, arguments, scale."""
        layout = self.conventions.get("layout", "BHTD")
        scale = "d_k" if "scale" in self.conventions else "√d_k"
        said = [f"softmax(QKᵀ / {scale}) V. Arrays are ({', '.join(layout)}), the result too."]
        if self.conventions.get("causal"):
            said.append(_CAUSAL[self.conventions.get("causal_alignment", "upper_left")])
        arguments = inspect.signature(self.function).parameters
        said += [words for name, words in _ARGUMENTS.items() if name in arguments]
        if "scale" in self.conventions:
            said.append("(The model was trained with muP, which divides by d_k.)")
        if re.search(r"\bsoftmax\(", self.code):
            said.append(
                "`softmax` is right: it subtracts the largest score, and a row of −∞ gives zeros."
            )
        return " ".join(said)

    @property
    def question(self) -> Question:
        """The symptom and four diagnoses; "nothing" comes last, and is the right one if so."""
        options = sorted(self.diagnoses, key=lambda option: option.text)
        last = Option(NOTHING, self.nothing, right=self.is_sound)
        return Question(self.id, f"{self.symptom} What is wrong?", (*options, last))

    def examine(self, function: Callable | None = None):
        """The doctor's Diagnosis of the function (or of another one that keeps its promise)."""
        from helpers.doctor import examine

        return examine(function or self.function, framework="numpy", **self.conventions)


def cases() -> tuple[Broken, ...]:
    """All of them, easier levels first."""
    from helpers.interview.debug_cases import CASES

    return CASES


def case(id: str) -> Broken:
    """The one with that id, or ValueError."""
    for each in cases():
        if each.id == id:
            return each
    known = ", ".join(each.id for each in cases())
    raise ValueError(f"no function to diagnose is called {id!r}; there are: {known}.")
