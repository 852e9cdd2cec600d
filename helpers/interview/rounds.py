"""A mock interview without its screen: what is asked in which order, what an answer is worth.

A round has a level and a length. It is planned from the bank: chains of questions that rise in
level, between them a computation by hand, a kernel to read and a coding task. Which follow-up is
asked depends on what the answer had: an interviewer digs where one has been. There are only as many
as leave time for the rest.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from helpers.interview import bank as bank_module
from helpers.interview import by_hand, debug
from helpers.interview.bank import LEVELS, Bank, Question
from helpers.practice import lessons
from helpers.practice.task import Task

MINUTES = (10, 20, 45)
QUESTION, FOLLOW_UP, BY_HAND, KERNEL, CODE = "question", "follow-up", "by-hand", "kernel", "code"
_MINUTES = {QUESTION: 2.0, FOLLOW_UP: 1.0, BY_HAND: 1.5, KERNEL: 1.5}  # coding tasks have their own
_FOLLOW_UPS = {10: 1, 20: 1, 45: 2}  # asked at most about one question
_KERNELS = {10: 1, 20: 1, 45: 2}
_CODING = {10: 4, 20: 10, 45: 12}  # minutes that the coding task may take
_DIFFICULTY = {
    "screen": {10: {"easy"}, 20: {"easy"}, 45: {"easy", "medium"}},
    "onsite": {10: {"easy", "medium"}, 20: {"medium"}, 45: {"medium", "hard"}},
    "expert": {10: {"easy", "medium"}, 20: {"hard"}, 45: {"hard"}},
}
_KNOWN, _GOOD, _WEAK = 0.9, 0.75, 0.6


@dataclass(frozen=True)
class Step:
    """One thing to answer. ref : the question's id; "id#0" for its follow-up 0; "kind:seed" of a
    computation; the id of a broken kernel or of an exercise. minutes : planned for it."""

    kind: str
    ref: str
    minutes: float


@dataclass
class Entry:
    """What became of a step.

    root, lead : of a follow-up, the question that was planned, and what it was asked because of; ""
    for a new subject. answer : everything the reader wrote and ticked there, as its panel keeps it.
    score : 0 to 1, None before there is one, or if it was skipped. seconds : taken.
    """

    step: Step
    root: str = ""
    lead: str = ""
    answer: dict = field(default_factory=dict)
    score: float | None = None
    seconds: float = 0.0
    skipped: bool = False


def levels_of(level: str, count: int) -> list[str]:
    """The levels of so many questions in a round; several begin easier, and rise."""
    if level not in LEVELS:
        raise ValueError(f"no level {level!r}; there are: {', '.join(LEVELS)}.")
    at = LEVELS.index(level)
    levels = [level] * count
    if at > 0 and count >= 2:
        levels[0] = LEVELS[at - 1]
    if at + 1 < len(LEVELS) and count >= 4:
        levels[-1] = LEVELS[at + 1]
    return levels


def plan(
    bank: Bank, level: str, minutes: int, seed: int, asked: Mapping[str, int] | None = None
) -> list[Step]:
    """The steps of a round, without follow-ups: those depend on the answers.

    asked : how often each ref came up before; what came up least is preferred. The same arguments
    give the same plan. Raises ValueError for an unknown level or length.
    """
    if minutes not in MINUTES:
        raise ValueError(
            f"a round of {minutes!r} minutes is not possible; choose {', '.join(map(str, MINUTES))}"
        )
    levels_of(level, 1)
    rng, asked = random.Random(seed), Counter(asked or {})
    code = _coding_task(level, minutes, rng, asked)
    kernels = [
        Step(KERNEL, broken.id, _MINUTES[KERNEL])
        for broken in _least_asked(_of_level(debug.cases(), level), rng, asked)[: _KERNELS[minutes]]
    ]
    by_hands = [Step(BY_HAND, _computation(level, rng, asked), _MINUTES[BY_HAND])]
    left = minutes - code.minutes - sum(step.minutes for step in [*kernels, *by_hands])
    count = max(1, int(left // (_MINUTES[QUESTION] + _FOLLOW_UPS[minutes] * _MINUTES[FOLLOW_UP])))
    talk = _questions(bank, levels_of(level, count), rng, asked)
    return [*_between(talk, [*by_hands, *kernels]), code]


def _between(talk: list[Step], others: list[Step]) -> list[Step]:
    """The other steps spread among the questions; a question comes first."""
    steps = list(talk)
    for number, other in enumerate(others, start=1):
        at = max(1, number * len(talk) // len(others))
        steps.insert(at + number - 1, other)
    return steps


def _least_asked(items: Iterable, rng: random.Random, asked: Counter) -> list:
    items = list(items)
    rng.shuffle(items)
    return sorted(items, key=lambda item: asked[item.id])


def _of_level(items: Iterable, level: str) -> list:
    """Those of that level; if there is none, all."""
    items = list(items)
    return [item for item in items if item.level == level] or items


def _questions(bank: Bank, levels: list[str], rng: random.Random, asked: Counter) -> list[Step]:
    """A question for each level, of different topics as long as there are any."""
    chosen: list[Question] = []
    used = Counter()  # topics
    for level in levels:
        free = [q for q in _least_asked(bank.select([level]), rng, asked) if q not in chosen]
        if not free:
            continue
        question = min(free, key=lambda q: (used[q.topic], asked[q.id]))
        chosen.append(question)
        used[question.topic] += 1
    return [Step(QUESTION, question.id, _MINUTES[QUESTION]) for question in chosen]


def _computation(level: str, rng: random.Random, asked: Counter) -> str:
    kinds = [kind for kind, its in by_hand.KINDS.items() if its == level] or list(by_hand.KINDS)
    rng.shuffle(kinds)
    count = Counter({kind: sum(n for ref, n in asked.items() if ref.startswith(f"{kind}:"))
                     for kind in kinds})  # fmt: skip
    return f"{min(kinds, key=lambda kind: count[kind])}:{rng.randrange(1000)}"


def _coding_task(level: str, minutes: int, rng: random.Random, asked: Counter) -> Step:
    """A task as hard as the level, if there is time for it."""
    fitting = [
        task
        for task in coding_tasks()
        if task.minutes <= _CODING[minutes] and task.difficulty in _DIFFICULTY[level][minutes]
    ]
    task = _least_asked(fitting, rng, asked)[0]
    return Step(CODE, task.id, float(task.minutes))


def coding_tasks() -> list[Task]:
    """The whiteboard tasks: the exercises of lesson 6."""
    return [task for task in lessons.every("EXERCISES") if task.id.startswith("6.")]


def problem(ref: str) -> by_hand.Problem:
    """The computation of a step."""
    kind, _, seed = ref.partition(":")
    return by_hand.make(kind, int(seed))


def coding_task(ref: str) -> Task:
    """The whiteboard task of a step, or ValueError."""
    return lessons.exercise(ref)


# --- What comes next ---


def follow_up(
    question: Question,
    ticked: Iterable[int],
    most: int,
    asked: set[str],
    planned: Collection[str] = (),
) -> tuple[Step, str] | None:
    """What an interviewer asks next about an answer, and the words that lead to it; or None.

    ticked : the points that the answer had. most : how many may still be asked about it. asked,
    planned : refs that came up in this round, and that will. First comes what one of the answer's
    points leads to; then what is asked because a point was missing.
    """
    ticked, taken = set(ticked), asked.union(planned)
    free = [
        (each.point not in ticked, number)
        for number, each in enumerate(question.follow_ups)
        if _step(question, number).ref not in taken
    ]
    if most <= 0 or not free:
        return None
    late, number = min(free)
    point = question.points[question.follow_ups[number].point].rstrip(".")
    lead = f"Your answer {'lacked' if late else 'had'}: “{point}”."
    return _step(question, number), lead


def _step(question: Question, number: int) -> Step:
    if to := question.follow_ups[number].to:
        return Step(QUESTION, to, _MINUTES[QUESTION])
    return Step(FOLLOW_UP, f"{question.id}#{number}", _MINUTES[FOLLOW_UP])


def in_time(steps: list[Step], left: float) -> list[Step]:
    """The steps in the order in which they are still asked, with so many minutes left.

    An interviewer who is late leaves out questions rather than the kernel or the code: questions
    for which there is no time move behind them.
    """
    spare = left - sum(step.minutes for step in steps if step.kind != QUESTION)
    soon, later = [], []
    for step in steps:
        late = step.kind == QUESTION and spare < step.minutes
        spare -= step.minutes if step.kind == QUESTION and not late else 0
        (later if late else soon).append(step)
    return soon + later


def most_follow_ups(minutes: int) -> int:
    return _FOLLOW_UPS[minutes]


# --- What it came to ---


@dataclass(frozen=True)
class Topic:
    """What a step is about, for the report: a title, where it is taught (place, link), and what
    was asked (text as `markup` has it)."""

    title: str
    place: str
    link: str
    asked: str


def about(step: Step, bank: Bank) -> Topic:
    """What a step is about; also of one that the lessons no longer have."""
    try:
        return _about(step, bank)
    except (ValueError, IndexError):
        return Topic("No longer asked", "(no longer in the lessons)", "", step.ref)


def _about(step: Step, bank: Bank) -> Topic:
    if step.kind in (QUESTION, FOLLOW_UP):
        id, _, number = step.ref.partition("#")
        question = bank[id]
        asked = question.follow_ups[int(number)].ask if number else question.prompt
        return _taught(bank.topic(question.topic).title, question, asked)
    if step.kind == BY_HAND:
        item = problem(step.ref)
        return _taught("Computing by hand", item, item.prompt)
    if step.kind == KERNEL:
        case = debug.case(step.ref)
        return _taught("Reading kernels", case, f"What is wrong with this kernel? ({case.title})")
    task = coding_task(step.ref)
    place = f"The whiteboard of this lesson, exercise {task.id}"
    return Topic(
        "Coding at the whiteboard", place, "", f"{task.title}: write `{task.solution.__name__}`."
    )


def _taught(title: str, item: Question | by_hand.Problem | debug.Broken, asked: str) -> Topic:
    where = item.lesson, item.section
    return Topic(title, bank_module.place(*where), bank_module.link(*where), asked)


@dataclass(frozen=True)
class Reading:
    """A section to read. score : of what was asked about it. missed : what answers lacked."""

    place: str
    link: str
    score: float
    missed: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What a round came to.

    score : 0 to 1, weighted by minutes; None if nothing was scored. strengths, weaknesses : titles
    with their score. read : what to read next, the weakest first. scored, skipped, unreached : how
    many steps. seconds : in all. pace : seconds an answer to a question took, by mean; None
    without any.
    """

    score: float | None
    strengths: tuple[tuple[str, float], ...]
    weaknesses: tuple[tuple[str, float], ...]
    read: tuple[Reading, ...]
    scored: int
    skipped: int
    unreached: int
    seconds: float
    pace: float | None


def report(entries: list[Entry], unreached: int, bank: Bank) -> Report:
    """Sum up a round. unreached : steps of its plan that were not asked."""
    scored = [entry for entry in entries if entry.score is not None]
    by_title: dict[str, list[Entry]] = {}
    by_place: dict[tuple[str, str], list[Entry]] = {}
    lacked: dict[tuple[str, str], list[str]] = {}
    for entry in scored:
        topic = about(entry.step, bank)
        place = topic.place, topic.link
        by_title.setdefault(topic.title, []).append(entry)
        by_place.setdefault(place, []).append(entry)
        lacked.setdefault(place, []).extend(missed(entry, topic, bank))
    titles = sorted(((title, mean(each)) for title, each in by_title.items()), key=lambda t: -t[1])
    readings = [
        Reading(*place, mean(each), tuple(lacked[place])) for place, each in by_place.items()
    ]
    talk = [entry.seconds for entry in scored if entry.step.kind in (QUESTION, FOLLOW_UP)]
    return Report(
        score=mean(scored) if scored else None,
        strengths=tuple(each for each in titles if each[1] >= _GOOD),
        weaknesses=tuple(each for each in reversed(titles) if each[1] < _WEAK),
        read=tuple(sorted((r for r in readings if r.score < _KNOWN), key=lambda r: r.score)),
        scored=len(scored),
        skipped=sum(entry.skipped for entry in entries),
        unreached=unreached,
        seconds=sum(entry.seconds for entry in entries),
        pace=sum(talk) / len(talk) if talk else None,
    )


def missed(entry: Entry, topic: Topic, bank: Bank) -> list[str]:
    """What an answer lacked: its question's other points, or what a follow-up asked. topic : what
    the entry's step is about."""
    if entry.step.kind == QUESTION and topic.link:
        ticked = entry.answer.get("ticked", [])
        return [point for i, point in enumerate(bank[entry.step.ref].points) if i not in ticked]
    if entry.score == 1:
        return []
    return [topic.asked] if entry.step.kind in (FOLLOW_UP, CODE) else []


def mean(entries: list[Entry]) -> float:
    """The mean score, weighted by planned minutes."""
    weights = [entry.step.minutes for entry in entries]
    total = sum(w * entry.score for w, entry in zip(weights, entries))
    return total / sum(weights)


# --- As JSON ---


def from_json(content: Mapping) -> Entry:
    """An entry from what `asdict` made of it. Raises KeyError, TypeError or ValueError for what it
    never made."""
    entry = Entry(**{**content, "step": step_from_json(content["step"])})
    _check(isinstance(entry.answer, dict), content)
    _check(isinstance(entry.root, str) and isinstance(entry.lead, str), content)
    _check(entry.score is None or 0 <= entry.score <= 1, content)
    _check(0 <= entry.seconds < math.inf, content)
    return entry


def step_from_json(content: Mapping) -> Step:
    step = Step(**content)
    _check(step.kind in (*_MINUTES, CODE) and isinstance(step.ref, str), content)
    _check(0 < step.minutes < math.inf, content)
    return step


def _check(holds: bool, content: object) -> None:
    if not holds:
        raise ValueError(f"this was never written: {content!r}")
