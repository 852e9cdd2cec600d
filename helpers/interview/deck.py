"""Flashcards and when each comes back: spaced repetition over the question bank.

The file of progress is a log of reviews (which card, when, how it went), and everything else
follows from it: a card's memory state is what the scheduler makes of its reviews in the order of
time. So two notebooks that grade the same card both count, a grade taken back stays in the log and
no longer counts, cards whose question has left the bank keep their history, and a file that was
replaced by an older one is made whole again from what is known here. The scheduler is
FSRS (the package `fsrs`), without its random spread of intervals.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

import fsrs

from helpers.interview import store
from helpers.interview.bank import LEVELS, Question, Weak, bank
from helpers.interview.sheet_data import sheet

FILE = "cards.json"
NEW_PER_DAY = 15
SOON = timedelta(minutes=20)  # a card that comes back within it belongs to the same sitting
GRADES = {1: "Again", 2: "Hard", 3: "Good", 4: "Easy"}
NUMBERS = "numbers"  # the topic of the cards made from the cheat sheet
_DAY_BEGINS = timedelta(hours=4)  # who learns past midnight is still in the same day
_DAY = timedelta(days=1)
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # an earlier review is a clock that was not set


@dataclass(frozen=True)
class Card:
    """Something to recall. Its texts hold the signs of `markup`.

    id : never changes; a question's id, or "number:" and a number's. front : what is asked. answer
    : what one says. points, weak : what a good answer has, what weak ones say; may be empty. topic
    : the id of its topic, title : the topic in words. place, link : where it is taught.
    """

    id: str
    front: str
    answer: str
    points: tuple[str, ...]
    weak: tuple[Weak, ...]
    level: str
    topic: str
    title: str
    place: str = ""
    link: str = ""


def _from_question(question: Question, title: str) -> Card:
    return Card(
        id=question.id,
        front=question.prompt,
        answer=question.answer,
        points=question.points,
        weak=question.weak,
        level=question.level,
        topic=question.topic,
        title=title,
        place=question.place,
        link=question.link,
    )


def _from_numbers() -> list[Card]:
    """The numbers to remember of the cheat sheet, as cards of the easiest level."""
    return [
        Card(
            id=f"number:{number.id}",
            front=number.ask,
            answer=number.say,
            points=(),
            weak=(),
            level=LEVELS[0],
            topic=NUMBERS,
            title="Numbers to remember",
            place=number.place,
            link=number.link,
        )
        for number in sheet().numbers
    ]


def cards(levels: Iterable[str] = LEVELS, topics: Iterable[str] = ()) -> list[Card]:
    """The cards of these levels and topics (all topics if none is named), in the bank's order.

    A single name may stand for a list of one. Raises ValueError for a name that does not exist.
    """
    levels = [levels] if isinstance(levels, str) else list(levels)
    topics = [topics] if isinstance(topics, str) else list(topics)
    every = [
        _from_question(question, topic.title)
        for topic in bank().topics
        for question in topic.questions
    ]
    every += _from_numbers()
    known = list(dict.fromkeys(card.topic for card in every))
    if unknown := [each for each in levels if each not in LEVELS]:
        raise ValueError(f"no level {unknown[0]!r}; there are: {', '.join(LEVELS)}.")
    if not levels:
        raise ValueError(f"no level is named; there are: {', '.join(LEVELS)}.")
    if unknown := [each for each in topics if each not in known]:
        raise ValueError(f"no topic {unknown[0]!r}; there are: {', '.join(known)}.")
    return [card for card in every if card.level in levels and (not topics or card.topic in topics)]


def mixed(chosen: Iterable[Card]) -> list[Card]:
    """The order in which new cards come: easier levels first, and in each the topics by turns."""
    turns: dict[tuple[str, str], int] = {}
    placed = []
    for card in chosen:
        kind = (card.level, card.topic)
        turns[kind] = turns.get(kind, 0) + 1
        placed.append((LEVELS.index(card.level), turns[kind], len(placed), card))
    return [card for *_, card in sorted(placed, key=lambda each: each[:3])]


@dataclass(frozen=True)
class Counts:
    """due : cards to repeat now. new : cards still to meet today. learning : met, not yet sure of
    them. learned : those that come back after days."""

    due: int
    new: int
    learning: int
    learned: int


def utc_now() -> datetime:
    return datetime.now(UTC)


class Deck:
    """Cards, and what the reader has done with them so far.

    chosen : the cards to take from; all of `cards`, until something else is set.
    now : the clock; returns a datetime in UTC. scheduler : an `fsrs.Scheduler` without fuzzing.
    new_per_day : how many cards may be met for the first time in a day, of whatever topic.
    zone : where days begin, at four in the morning; the reader's own time zone if None.
    problem : why grades are not on the disk yet, in words; "" if they are. notices : what else
    should be said.

    Nothing is written before the first grade. No method raises StoreError: a grade that cannot be
    saved is kept here, `problem` says so, and the next grade or `save()` tries again.
    """

    def __init__(
        self,
        cards: Sequence[Card],
        *,
        now: Callable[[], datetime] = utc_now,
        scheduler: fsrs.Scheduler | None = None,
        new_per_day: int = NEW_PER_DAY,
        zone: tzinfo | None = None,
    ):
        if not isinstance(new_per_day, int) or new_per_day < 0:
            raise ValueError(f"new_per_day is {new_per_day!r}; write a whole number from 0.")
        self.cards = tuple(cards)
        self.chosen: Sequence[Card] = self.cards
        self.now = now
        self.new_per_day = new_per_day
        self.problem = ""
        self._scheduler = scheduler or fsrs.Scheduler(enable_fuzzing=False)
        self._zone = zone
        self._document = store.Document(store.folder() / FILE, _check)
        self._log: dict[str, dict] = {}  # review id → review, all that the file ever had
        self._unsaved: dict[str, dict] = {}  # the same, not in the file yet, or not like this
        self._allowed: dict[date, int] = {}  # another limit than new_per_day, for that day
        self._sitting: list[str] = []  # ids of the reviews given here and not taken back
        self._states: dict[str, tuple[tuple, fsrs.Card]] = {}  # card id → reviews, their result
        self._histories: dict[str, tuple] = {}  # card id → its reviews that count
        self.refresh()

    # --- Which card is next ---

    def due(self) -> list[Card]:
        """The chosen cards to repeat now, the one that has waited longest first."""
        now = self.now()
        waiting = [card for card in self._met() if self._state(card).due <= now]
        return sorted(waiting, key=lambda card: self._state(card).due)

    def soon(self) -> list[Card]:
        """The chosen cards that come back within SOON, the first one first."""
        now = self.now()
        coming = [card for card in self._met() if now < self._state(card).due <= now + SOON]
        return sorted(coming, key=lambda card: self._state(card).due)

    def unmet(self) -> list[Card]:
        """The chosen cards never graded, in the order in which they will come."""
        return [card for card in mixed(self.chosen) if card.id not in self._histories]

    def new(self) -> list[Card]:
        """Those of them that today's limit still allows."""
        today = self._day(self.now())
        limit = max(self.new_per_day, self._allowed.get(today, 0))
        return self.unmet()[: max(0, limit - self._met_on(today))]

    def allow_more(self, number: int) -> None:
        """Raise today's limit, so that this many new cards come."""
        today = self._day(self.now())
        self._allowed = {today: self._met_on(today) + number}

    def next(self) -> Card | None:
        """The card to show: one that is due, else a new one, else none."""
        return next(iter([*self.due(), *self.new()]), None)

    def next_due(self) -> datetime | None:
        """When the next of the chosen cards is due, or was; None if none was ever graded."""
        return min((self._state(card).due for card in self._met()), default=None)

    def counts(self) -> Counts:
        states = [self._state(card).state for card in self._met()]
        learned = states.count(fsrs.State.Review)
        return Counts(len(self.due()), len(self.new()), len(states) - learned, learned)

    # --- Grading ---

    def preview(self, card: Card) -> dict[int, timedelta]:
        """How long until the card comes back, for each of the four grades."""
        now = self.now()
        return {grade: self._after(self._state(card), grade, now).due - now for grade in GRADES}

    def grade(self, card: Card, grade: int, seconds: float = 0.0) -> timedelta:
        """Note how it went (1 to 4) and how long it took; say how long until it comes back."""
        if grade not in GRADES:
            raise ValueError(f"the grade is {grade!r}; there are 1 to 4: {GRADES}.")
        now = self.now()
        review = {
            "id": uuid.uuid4().hex,
            "card": card.id,
            "at": now.isoformat(),
            "grade": int(grade),
            "seconds": round(float(seconds), 1),
        }
        self._unsaved[review["id"]] = review
        self._sitting.append(review["id"])
        self.save()
        return self._state(card).due - now

    def undo(self) -> Card | None:
        """Take back the last grade given here, and return its card; None if there is none.

        The review stays in the log, marked; what another notebook has graded since stays too.
        """
        if not self._sitting:
            return None
        id = self._sitting.pop()
        review = self._reviews()[id]
        if id in self._log:
            self._unsaved[id] = {**review, "undone": True}
        else:
            del self._unsaved[id]  # it was never saved
        self.save()
        return next((card for card in self.cards if card.id == review["card"]), None)

    @property
    def done(self) -> int:
        """How many grades were given here, without those taken back."""
        return len(self._sitting)

    @property
    def good(self) -> int:
        """How many of them were Good or Easy."""
        reviews = self._reviews()
        return sum(reviews[id]["grade"] >= 3 for id in self._sitting)

    # --- The file ---

    @property
    def path(self):
        return self._document.path

    @property
    def unsaved(self) -> int:
        """How many grades are not in the file yet."""
        return len(self._unsaved)

    @property
    def notices(self) -> list[str]:
        return self._document.notices

    def save(self) -> bool:
        """Put into the file what is not there yet; whether that worked. `problem` says why not."""
        if not self._unsaved:
            self.refresh()
        if self._unsaved:
            self._write()
        return not self.problem

    def _write(self) -> None:
        def edit(content: dict) -> dict[str, dict]:
            log = _joined(self._log, _by_id(content), self._unsaved)
            content["reviews"] = list(log.values())
            return log

        try:
            self._log = self._document.change(edit)
            self._unsaved, self.problem = {}, ""
        except store.StoreError as error:
            self.problem = str(error)
        self._index()

    def refresh(self) -> None:
        """Read again what the file holds: another notebook may have graded cards.

        What it lacks, if somebody has replaced it or it was damaged, goes with what is unsaved.
        """
        try:
            found = _by_id(self._document.read())
            self._log = _joined(self._log, found)
            reviews = self._reviews()
            self._unsaved = {id: each for id, each in reviews.items() if each != found.get(id)}
            if not self._unsaved:
                self.problem = ""
        except store.StoreError as error:
            self.problem = str(error)
        self._index()

    def _reviews(self) -> dict[str, dict]:
        return _joined(self._log, self._unsaved)

    # --- From reviews to states ---

    def _index(self) -> None:
        histories: dict[str, list] = {}
        for review, at in _timed(self._reviews().values(), self.now()):
            if not review.get("undone"):
                histories.setdefault(review["card"], []).append((at, review["grade"]))
        self._histories = {
            id: tuple(sorted(history, key=lambda each: each[0]))
            for id, history in histories.items()
        }

    def _met(self) -> list[Card]:
        return [card for card in self.chosen if card.id in self._histories]

    def _met_on(self, day: date) -> int:
        return sum(self._day(history[0][0]) == day for history in self._histories.values())

    def _state(self, card: Card) -> fsrs.Card:
        """What the scheduler makes of the card's reviews; remembered while they stay the same."""
        history = self._histories.get(card.id, ())
        known, state = self._states.get(card.id, ((), None))
        if state is None or known != history:
            state = fsrs.Card(card_id=0, due=self.now())
            for at, grade in history:
                state = self._after(state, grade, at)
            self._states[card.id] = history, state
        return state

    def _after(self, state: fsrs.Card, grade: int, at: datetime) -> fsrs.Card:
        return self._scheduler.review_card(state, fsrs.Rating(grade), at)[0]

    def _day(self, moment: datetime) -> date:
        return (moment.astimezone(self._zone) - _DAY_BEGINS).date()


def _by_id(content: Mapping) -> dict[str, dict]:
    return {review["id"]: review for review in content.get("reviews", [])}


def _joined(*logs: Mapping[str, dict]) -> dict[str, dict]:
    """All reviews of these logs, in that order, and all that any of them says of each.

    So a grade that was taken back stays so when an older file, which does not know it, comes back.
    """
    joined: dict[str, dict] = {}
    for log in logs:
        for id, review in log.items():
            joined[id] = joined.get(id, {}) | review
    return joined


def _timed(reviews: Iterable[dict], now: datetime) -> Iterator[tuple[dict, datetime]]:
    """The reviews and when each was given.

    A time more than a day after now is that of a wrong clock, and would put the card away until
    then. Such a review counts from the one that follows in the log, or, as long as none does, from
    yesterday: not from today, where it would use up the day's new cards, and again tomorrow.
    """
    timed, next_one = [], now - _DAY
    for review in reversed(list(reviews)):
        at = max(_EARLIEST, datetime.fromisoformat(review["at"]))
        if at > now + _DAY:
            at = next_one
        next_one = at
        timed.append((review, at))
    return reversed(timed)


def _check(content: dict) -> None:
    """Raises ValueError, KeyError or TypeError for a file that is not a log of reviews."""
    reviews = content.get("reviews", [])
    if not isinstance(reviews, list):
        raise ValueError("its reviews are no list")
    for review in reviews:
        if not isinstance(review["id"], str) or not isinstance(review["card"], str):
            raise ValueError(f"a review of {review['card']!r} has no name")
        if review["grade"] not in GRADES:
            raise ValueError(f"a grade is {review['grade']!r}")
        if datetime.fromisoformat(review["at"]).tzinfo != UTC:
            raise ValueError(f"the time {review['at']!r} is not in UTC")


# --- Time in words ---

_UNITS = (("year", 365.25), ("month", 30.4375), ("day", 1.0))  # in days


def span(time: timedelta) -> str:
    """A length of time as one says it: "10 min", "3 days", "1.5 years"."""
    minutes = max(1, round(time.total_seconds() / 60))
    if minutes < 60:
        return f"{minutes} min"
    days = time.total_seconds() / 86400
    if days < 23.5 / 24:
        return _counted(max(1, round(days * 24)), "hour")
    for unit, size in _UNITS:
        if days >= 1.95 * size or unit == "day":
            number = days / size
            whole = unit == "day" or number >= 10 or abs(number - round(number)) < 0.05
            return _counted(max(1, round(number)) if whole else round(number, 1), unit)
    raise AssertionError("days are the smallest unit")


def _counted(number: float, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"
