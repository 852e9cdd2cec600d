"""The question bank: what may be asked about attention, and what a good answer has.

The questions are text, a TOML file for each topic in the folder `questions`, so that somebody who
knows no Python can mend or add one; the page CONTRIBUTING.md beside them says how. Everything that
is wrong with a file is said in a sentence with its name, the value, the limit and what to do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers.interview import markup

FOLDER = Path(__file__).parent / "questions"
LEVELS = ("screen", "onsite", "expert")
LESSONS = {
    "1": "01_three_tokens_by_hand.ipynb",
    "2": "02_why_sqrt_dk.ipynb",
    "3": "03_softmax_saturation.ipynb",
    "4": "04_the_missing_scale.ipynb",
    "5": "05_flash_attention.ipynb",
}
WORDS_ANSWER = (80, 150)  # one speaks 130 to 170 words in a minute, fewer where numbers are many
WORDS_FOLLOW_UP = (15, 90)
POINTS = (3, 6)
WORDS_POINT = 35


def place(lesson: str, section: str) -> str:
    """Where something is taught, in words: "Lesson 2, section 4: Three divisors side by side"."""
    number, _, title = section.partition(". ")
    if number.isdigit():
        return f"Lesson {lesson}, section {number}: {title}"
    return f"Lesson {lesson}: {section}"


def link(lesson: str, section: str) -> str:
    """The same as a link from one lesson to another, as Jupyter writes it."""
    return f"{LESSONS[lesson]}#{section.replace(' ', '-')}"


class BankError(ValueError):
    """Something in a file of questions is wrong: which file, which question, what to do."""


@dataclass(frozen=True)
class Weak:
    """What a weak answer says, and why it is weak."""

    says: str
    because: str


@dataclass(frozen=True)
class FollowUp:
    """What is asked next, and from which point of the answer (its index, from 0).

    Either `ask` with its own `answer`, or `to`: the id of another question of the bank.
    """

    point: int
    ask: str = ""
    answer: str = ""
    to: str = ""


@dataclass(frozen=True)
class Question:
    """One question of an interview.

    id : never changes, since learners' progress hangs on it. level : one of LEVELS. topic : the
    file's id, such as "variance". answer : about sixty seconds, spoken. points : what a good
    answer must have. lesson, section : the heading that teaches it, as it stands in the lesson.
    sources : where its facts come from, if they are not derived.
    """

    id: str
    topic: str
    level: str
    prompt: str
    answer: str
    points: tuple[str, ...]
    weak: tuple[Weak, ...]
    follow_ups: tuple[FollowUp, ...]
    lesson: str
    section: str
    sources: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return place(self.lesson, self.section)

    @property
    def link(self) -> str:
        return link(self.lesson, self.section)


@dataclass(frozen=True)
class Topic:
    """A file of questions: id is its name without the number in front."""

    id: str
    title: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Bank:
    """All topics, in the order of their files."""

    topics: tuple[Topic, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for topic in self.topics for question in topic.questions)

    def __getitem__(self, id: str) -> Question:
        """The question with that id, or ValueError."""
        for question in self.questions:
            if question.id == id:
                return question
        raise ValueError(f"no question {id!r}; `Library()` shows them all, with their ids.")

    def topic(self, id: str) -> Topic:
        """The topic with that id, or ValueError."""
        for topic in self.topics:
            if topic.id == id:
                return topic
        known = ", ".join(topic.id for topic in self.topics)
        raise ValueError(f"no topic {id!r}; there are: {known}.")

    def select(self, levels: Iterable[str] = LEVELS, topics: Iterable[str] = ()) -> list[Question]:
        """The questions of these levels and topics (all topics, if none is named)."""
        levels, topics = set(levels), set(topics)
        if unknown := levels - set(LEVELS):
            raise ValueError(f"no level {sorted(unknown)}; there are: {', '.join(LEVELS)}.")
        for topic in topics:
            self.topic(topic)
        return [
            question
            for question in self.questions
            if question.level in levels and (not topics or question.topic in topics)
        ]


@cache
def bank() -> Bank:
    """The bank, read once. Raises BankError if a file is not as it must be."""
    return load(FOLDER)


def load(folder: Path) -> Bank:
    """Read all files of a folder. Raises BankError."""
    topics = tuple(_topic(path) for path in sorted(folder.glob("*.toml")))
    if not topics:
        raise BankError(f"there is no file of questions in {folder.name}.")
    found = Bank(topics)
    seen: dict[str, str] = {}
    for question in found.questions:
        if question.id in seen:
            _fail(question.topic, question.id, f"the topic {seen[question.id]} has this id too")
        seen[question.id] = question.topic
    for question in found.questions:
        for follow_up in question.follow_ups:
            if follow_up.to and (follow_up.to not in seen or follow_up.to == question.id):
                _fail(
                    question.topic,
                    question.id,
                    f"a follow-up leads to {follow_up.to!r}, which is no other question",
                )
    return found


# --- From a file to questions ---


def _fail(where: str, id: str, problem: str):
    raise BankError(f"{where}, question {id!r}: {problem}.")


def _topic(path: Path) -> Topic:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BankError(f"{path.name} cannot be read as TOML: {error}.") from None
    match = re.fullmatch(r"\d\d_([a-z0-9_]+)\.toml", path.name)
    if match is None:
        raise BankError(f"{path.name}: call it something like 03_variance.toml.")
    if extra := set(content) - {"title", "question"}:
        raise BankError(f"{path.name}: nobody reads {sorted(extra)}; is it misspelt?")
    if not content.get("title") or not content.get("question"):
        raise BankError(f"{path.name}: it needs a `title` and at least one [[question]].")
    entries = content["question"]
    questions = tuple(_question(path.name, match[1], entry) for entry in entries)
    return Topic(match[1], content["title"], questions)


_TEXTS = ("id", "level", "prompt", "answer", "lesson", "section")
_LISTS = ("points", "weak", "follow_ups")


def _question(file: str, topic: str, entry: Mapping) -> Question:
    id = entry.get("id", "(without an id)")

    def fail(problem: str):
        _fail(file, str(id), problem)

    if missing := [name for name in (*_TEXTS, *_LISTS) if not entry.get(name)]:
        fail(f"it lacks {', '.join(missing)}")
    if extra := set(entry) - {*_TEXTS, *_LISTS, "sources"}:
        fail(f"nobody reads {sorted(extra)}; is it misspelt?")
    for name in _TEXTS:
        if not isinstance(entry[name], str):
            fail(f"{name} is {entry[name]!r}; write it in quotes")
    for name in (*_LISTS, "sources"):
        if not isinstance(entry.get(name, []), list):
            fail(f"{name} must be a list, in square brackets")
    texts = {name: _words(fail, name, entry[name]) for name in _TEXTS}
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", texts["id"]):
        fail("an id has small letters, digits and hyphens, such as why-not-dk")
    if texts["level"] not in LEVELS:
        fail(f"its level is {texts['level']!r}; write {', '.join(LEVELS)}")
    if texts["lesson"] not in LESSONS:
        fail(f"its lesson is {texts['lesson']!r}; write {', '.join(LESSONS)}")
    _count(fail, "answer", texts["answer"], WORDS_ANSWER)
    points = tuple(_words(fail, "points", point) for point in entry["points"])
    if not POINTS[0] <= len(points) <= POINTS[1]:
        fail(f"it has {len(points)} points; {POINTS[0]} to {POINTS[1]} can be kept in mind")
    for point in points:
        _count(fail, "a point", point, (2, WORDS_POINT))
    question = Question(
        **texts,
        topic=topic,
        points=points,
        weak=tuple(Weak(**_fields(fail, "weak", each, {"says", "because"}))
                   for each in entry["weak"]),
        follow_ups=tuple(_follow_up(fail, each, len(points)) for each in entry["follow_ups"]),
        sources=tuple(_words(fail, "sources", each) for each in entry.get("sources", ())),
    )  # fmt: skip
    for text in texts_of(question):
        try:
            markup.plain(text)
        except ValueError as error:
            fail(str(error).rstrip("."))
    return question


def texts_of(question: Question) -> list[str]:
    """Every text of a question that a reader sees."""
    follow_ups = [text for each in question.follow_ups for text in (each.ask, each.answer) if text]
    weak = [text for each in question.weak for text in (each.says, each.because)]
    return [question.prompt, question.answer, *question.points, *weak, *follow_ups]


def _follow_up(fail, entry: object, points: int) -> FollowUp:
    names = {"point", "to"} if isinstance(entry, Mapping) and "to" in entry else None
    fields = _fields(fail, "follow_ups", entry, names or {"point", "ask", "answer"})
    number = fields.pop("point")
    if not isinstance(number, int) or not 1 <= number <= points:
        fail(f"a follow-up comes from point {number!r}; write a number from 1 to {points}")
    if "answer" in fields:
        _count(fail, "a follow-up's answer", fields["answer"], WORDS_FOLLOW_UP)
    return FollowUp(number - 1, **fields)


def _fields(fail, name: str, entry: object, names: set[str]) -> dict:
    if not isinstance(entry, Mapping) or set(entry) != names:
        fail(f"each entry of {name} has {', '.join(sorted(names))}, and got {entry!r}")
    return {
        key: value if key == "point" else _words(fail, name, value) for key, value in entry.items()
    }


def _words(fail, name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        fail(f"{name} holds {value!r}; write words in quotes")
    if found := re.search(r"[\t\r\f\b]\w*", value):  # TOML reads \rho as a carriage return and "ho"
        fail(f"{name} holds {found[0]!r}, a sign that is no text; write each backslash twice")
    return _tidy(value)


def _tidy(text: str) -> str:
    """One line a paragraph: how a file is broken into lines says nothing."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _count(fail, name: str, text: str, limits: tuple[int, int]) -> None:
    words = len(text.split())
    if not limits[0] <= words <= limits[1]:
        fail(f"{name} has {words} words; {limits[0]} to {limits[1]} are possible")
