"""What stands on the cheat sheet: the text of `sheet.toml`, checked.

The sheet, its static form in a notebook and the Anki cards of its numbers are made of the same
data. Everything that is wrong with the file is said in a sentence that names the place.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.interview import markup
from helpers.interview.bank import LESSONS, Bank, Question, link, place
from helpers.pictures.palette import ROLES

FILE = Path(__file__).with_name("sheet.toml")
NUMBERS = (14, 18)  # more do not fit on the page, nor into a head
_WORDS = {"ask": 24, "say": 28}  # at most; a formula without spaces counts as one


class SheetError(ValueError):
    """Something in the file of the cheat sheet is wrong: where, and what to do."""


@dataclass(frozen=True)
class Shape:
    """One matrix of the formula. role : whose colour it has, see `pictures.palette.ROLES`."""

    role: str
    name: str
    shape: str
    words: str


@dataclass(frozen=True)
class Step:
    """One line of the derivation, and why it holds."""

    formula: str
    because: str


@dataclass(frozen=True)
class Number:
    """Something to know by heart.

    id : never changes, since Anki cards hang on it. ask, say : a question and its answer, a few
    words each. question : id of the question of the bank that it belongs to. lesson, section : the
    heading that teaches it, as it stands in the lesson.
    """

    id: str
    ask: str
    say: str
    question: str
    lesson: str
    section: str

    @property
    def place(self) -> str:
        """Where it is taught, in words."""
        return place(self.lesson, self.section)

    @property
    def short_place(self) -> str:
        """The same as it stands in a narrow column: "2.4" is lesson 2, section 4."""
        number = self.section.partition(". ")[0]
        return f"{self.lesson}.{number}" if number.isdigit() else self.lesson

    @property
    def link(self) -> str:
        """The same as a link from one lesson to another."""
        return link(self.lesson, self.section)


@dataclass(frozen=True)
class Sheet:
    """The whole cheat sheet. All texts are in the signs of `markup`, but `code`, which is code.

    tex : the formula, without dollars. minutes : ids of the bank's questions whose points it shows.
    """

    title: str
    tagline: str
    tex: str
    formula_note: str
    shapes: tuple[Shape, ...]
    derivation_title: str
    given: str
    steps: tuple[Step, ...]
    therefore: str
    half_true: tuple[str, ...]
    lesson: str
    section: str
    code_title: str
    code: str
    code_note: str
    traps_title: str
    traps: tuple[str, ...]
    numbers_title: str
    numbers_note: str
    numbers: tuple[Number, ...]
    minutes_title: str
    minutes: tuple[str, ...]


@cache
def sheet() -> Sheet:
    """The cheat sheet, read once. Raises SheetError if its file is not as it must be."""
    return load(FILE)


def minutes(of: Sheet, questions: Bank) -> list[Question]:
    """The questions whose points are the sixty-second answers. Raises SheetError."""
    try:
        return [questions[id] for id in of.minutes]
    except ValueError as error:
        raise SheetError(f"[minutes] of the sheet: {error}") from None


def load(path: Path) -> Sheet:
    """Read one file. Raises SheetError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SheetError(f"{path.name} cannot be read as TOML: {error}.") from None
    names = ("formula", "derivation", "code", "traps", "numbers", "minutes")
    top = _fields(path.name, content, texts=("title", "tagline"), tables=names, lists=("number",))
    formula = _fields("[formula]", top["formula"], texts=("tex", "note"), lists=("shapes",))
    derivation = _fields(
        "[derivation]",
        top["derivation"],
        texts=("title", "given", "therefore", "lesson", "section"),
        lists=("steps", "half_true"),
    )
    code = _fields("[code]", top["code"], texts=("title", "note"), raw=("text",))
    traps = _fields("[traps]", top["traps"], texts=("title",), lists=("items",))
    numbers = _fields("[numbers]", top["numbers"], texts=("title", "note"))
    minute = _fields("[minutes]", top["minutes"], texts=("title",), lists=("questions",))
    _checked("[formula]", "tex", f"${formula['tex']}$")
    _lesson("[derivation]", derivation["lesson"])
    return Sheet(
        title=top["title"],
        tagline=top["tagline"],
        tex=formula["tex"],
        formula_note=formula["note"],
        shapes=tuple(_shape(entry) for entry in formula["shapes"]),
        derivation_title=derivation["title"],
        given=derivation["given"],
        steps=tuple(
            Step(**_fields("a step", entry, texts=("formula", "because")))
            for entry in derivation["steps"]
        ),
        therefore=derivation["therefore"],
        half_true=_texts("[derivation], half_true", derivation["half_true"]),
        lesson=derivation["lesson"],
        section=derivation["section"],
        code_title=code["title"],
        code=code["text"].strip("\n"),
        code_note=code["note"],
        traps_title=traps["title"],
        traps=_texts("[traps], items", traps["items"]),
        numbers_title=numbers["title"],
        numbers_note=numbers["note"],
        numbers=_numbers(top["number"]),
        minutes_title=minute["title"],
        minutes=_texts("[minutes], questions", minute["questions"]),
    )


def _numbers(entries: list) -> tuple[Number, ...]:
    if not NUMBERS[0] <= len(entries) <= NUMBERS[1]:
        raise SheetError(
            f"there are {len(entries)} numbers; {NUMBERS[0]} to {NUMBERS[1]} fit on the page."
        )
    found: dict[str, Number] = {}
    for entry in entries:
        where = f"number {entry.get('id', '(without an id)')!r}"
        number = Number(
            **_fields(where, entry, texts=("id", "ask", "say", "question", "lesson", "section"))
        )
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", number.id):
            raise SheetError(f"{where}: an id has small letters, digits and hyphens.")
        if number.id in found:
            raise SheetError(f"{where}: another number has this id too.")
        _lesson(where, number.lesson)
        for name, most in _WORDS.items():
            words = len(getattr(number, name).split())
            if words > most:
                raise SheetError(f"{where}: {name} has {words} words; {most} fit on the page.")
        found[number.id] = number
    return tuple(found.values())


def _shape(entry) -> Shape:
    shape = Shape(**_fields("a shape", entry, texts=("role", "name", "shape", "words")))
    if shape.role not in ROLES:
        raise SheetError(f"a shape has the role {shape.role!r}; there are: {', '.join(ROLES)}.")
    return shape


def _lesson(where: str, lesson: str) -> None:
    if lesson not in LESSONS:
        raise SheetError(f"{where}: its lesson is {lesson!r}; write {', '.join(LESSONS)}.")


def _fields(where: str, entry, texts=(), raw=(), lists=(), tables=()) -> dict:
    """The entry's values, each of its kind, all there and no others."""
    if not isinstance(entry, Mapping):
        raise SheetError(f"{where} is {entry!r}, but must have {', '.join((*texts, *lists))}.")
    kinds = dict.fromkeys((*texts, *raw), (str, "words in quotes"))
    kinds |= dict.fromkeys(lists, (list, "a list"))
    kinds |= {name: (dict, f"a table, [{name}]") for name in tables}
    if missing := [name for name in kinds if not entry.get(name)]:
        raise SheetError(f"{where} lacks {', '.join(missing)}.")
    if extra := sorted(set(entry) - set(kinds)):
        raise SheetError(f"{where}: nobody reads {extra}; is it misspelt?")
    for name, (kind, words) in kinds.items():
        if not isinstance(entry[name], kind):
            raise SheetError(f"{where}: {name} is {entry[name]!r}, but must be {words}.")
    return {
        name: _checked(where, name, entry[name]) if name in texts else entry[name] for name in kinds
    }


def _texts(where: str, entries: list) -> tuple[str, ...]:
    for entry in entries:
        if not isinstance(entry, str) or not entry.strip():
            raise SheetError(f"{where} holds {entry!r}; write words in quotes.")
    return tuple(_checked(where, "a text", entry) for entry in entries)


def _checked(where: str, name: str, text: str) -> str:
    """The text on one line. Raises SheetError for signs that `markup` does not know."""
    tidy = " ".join(text.split())
    try:
        markup.plain(tidy)
    except ValueError as error:
        raise SheetError(f"{where}, {name}: {error}") from None
    return tidy
