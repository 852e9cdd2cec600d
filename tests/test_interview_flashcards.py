"""Flashcards: when each comes back, what is kept, and what keys and clicks do."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone

import fsrs
import pytest

from helpers.interview import store
from helpers.interview.bank import LEVELS, Weak, bank
from helpers.interview.deck import FILE, GRADES, NUMBERS, Card, Counts, Deck, cards, mixed, span
from helpers.interview.flashcards import Flashcards
from helpers.interview.sheet_data import sheet

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data" / FILE


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.time = NOON

    def __call__(self):
        return self.time

    def forward(self, by: timedelta):
        self.time += by


@pytest.fixture
def clock():
    return Clock()


def card(id, level="screen", topic="variance"):
    return Card(
        id=id,
        front=f"Why $\\sqrt{{d_k}}$ in {id}?",
        answer=f"Because of {id}.",
        points=(f"first of {id}", f"second of {id}"),
        weak=(Weak(f"I do not know {id}.", "One should."),),
        level=level,
        topic=topic,
        title=topic.capitalize(),
        place="Lesson 2, section 1: The experiment",
        link="02_why_sqrt_dk.ipynb#1.-The-experiment",
    )


SIX = [
    card("a1"),
    card("a2"),
    card("a3", "expert"),
    card("b1", "screen", "masks"),
    card("b2", "onsite", "masks"),
    card("b3", "expert", "masks"),
]


@pytest.fixture
def deck(clock):
    return make(clock)


def make(clock, cards=SIX, **options):
    return Deck(cards, now=clock, zone=UTC, **options)


def ids(cards):
    return [card.id for card in cards]


def stored(file):
    return json.loads(file.read_text(encoding="utf-8"))["reviews"]


def jam(file, monkeypatch):
    """Make saving impossible until `undo` of the patch."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "replace", full)


# --- The cards ---


def test_every_question_and_number_is_a_card():
    every = cards()
    numbers = [f"number:{number.id}" for number in sheet().numbers]
    assert ids(every) == [question.id for question in bank().questions] + numbers
    assert len(set(ids(every))) == len(every)
    for each in every:
        assert each.front
        assert each.answer
        assert each.place
        assert each.link.endswith(each.link.partition("#")[2])
        assert bool(each.points) == (each.topic != NUMBERS)


def test_levels_and_topics_are_chosen():
    assert {each.level for each in cards("expert")} == {"expert"}
    assert {each.topic for each in cards(topics=["divisors"])} == {"divisors"}
    assert {each.topic for each in cards(topics=NUMBERS)} == {NUMBERS}
    both = cards(["screen", "onsite"], ["divisors", NUMBERS])
    assert {each.topic for each in both} == {"divisors", NUMBERS}


@pytest.mark.parametrize(
    ("levels", "topics", "words"),
    [
        (["easy"], (), "no level 'easy'; there are: screen, onsite, expert"),
        ("easy", (), "no level 'easy'"),
        ([], (), "no level is named"),
        (LEVELS, ["cooking"], "no topic 'cooking'; there are: .*numbers"),
    ],
)
def test_a_name_that_does_not_exist_is_refused(levels, topics, words):
    with pytest.raises(ValueError, match=words):
        Flashcards(levels, topics)


def test_new_cards_come_by_level_and_mix_topics():
    assert ids(mixed(SIX)) == ["a1", "b1", "a2", "b2", "a3", "b3"]
    first = [each.topic for each in mixed(cards())[:5]]
    assert len(set(first)) == 5


# --- When a card comes back ---


def test_the_four_grades_of_a_new_card(deck, clock):
    assert {grade: span(time) for grade, time in deck.preview(SIX[0]).items()} == {
        1: "1 min",
        2: "6 min",
        3: "10 min",
        4: "8 days",
    }


@pytest.mark.parametrize("grade", GRADES)
def test_a_card_comes_back_when_the_preview_said(deck, clock, grade):
    for _ in range(4):
        promised = deck.preview(SIX[0])[grade]
        assert deck.grade(SIX[0], grade) == promised
        assert SIX[0] not in deck.due()
        clock.forward(promised - timedelta(seconds=1))
        assert SIX[0] not in deck.due()
        clock.forward(timedelta(seconds=1))
        assert SIX[0] in deck.due()


def test_the_intervals_are_those_of_the_scheduler(deck, clock):
    """The same reviews, given to the package directly."""
    scheduler = fsrs.Scheduler(enable_fuzzing=False)
    direct = fsrs.Card(card_id=1, due=NOON)
    for grade, wait in ((3, 10 * MINUTE), (3, 2 * DAY), (2, 5 * DAY), (1, 10 * MINUTE), (4, DAY)):
        deck.grade(SIX[0], grade)
        direct, _ = scheduler.review_card(direct, fsrs.Rating(grade), clock())
        assert deck.next_due() == direct.due
        clock.forward(wait)
    assert direct.state == fsrs.State.Review


def test_due_before_new_and_the_longest_overdue_first(deck, clock):
    assert deck.next() == SIX[0]
    deck.grade(SIX[3], 3)
    clock.forward(MINUTE)
    deck.grade(SIX[1], 3)
    clock.forward(MINUTE)
    deck.grade(SIX[4], 1)
    assert deck.next() == SIX[0]
    assert ids(deck.soon()) == ["b2", "b1", "a2"]
    clock.forward(HOUR)
    assert ids(deck.due()) == ["b2", "b1", "a2"]
    assert deck.next() == SIX[4]
    assert ids(deck.new()) == ["a1", "a3", "b3"]


def test_the_limit_of_new_cards_is_for_a_day(clock):
    deck = make(clock, new_per_day=2)
    assert ids(deck.new()) == ["a1", "b1"]
    deck.grade(deck.next(), 4)
    deck.grade(deck.next(), 4)
    assert deck.next() is None
    assert make(clock, new_per_day=2).next() is None  # whoever asks
    clock.time = NOON.replace(hour=23, minute=59) + 4 * HOUR
    assert deck.next() is None  # it is 03:59 of the next day
    clock.forward(MINUTE)
    assert ids(deck.new()) == ["a2", "b2"]
    deck.grade(deck.next(), 4)
    deck.grade(deck.next(), 4)
    assert deck.new() == []
    deck.allow_more(1)
    assert ids(deck.new()) == ["a3"]
    deck.grade(deck.next(), 4)
    assert deck.new() == []
    clock.forward(DAY)
    assert ids(deck.new()) == ["b3"]


def test_the_default_limit(clock):
    many = [card(f"c{i:02}") for i in range(40)]
    assert len(make(clock, many).new()) == 15
    with pytest.raises(ValueError, match="new_per_day is -1"):
        make(clock, new_per_day=-1)


def test_the_day_begins_at_four_where_the_reader_is(clock):
    deck = Deck(SIX, now=clock, zone=timezone(9 * HOUR), new_per_day=1)
    deck.grade(deck.next(), 4)
    clock.forward(7 * HOUR - MINUTE)  # 03:59
    assert deck.new() == []
    clock.forward(MINUTE)
    assert len(deck.new()) == 1


def test_counts(deck, clock):
    assert deck.counts() == Counts(due=0, new=6, learning=0, learned=0)
    deck.grade(SIX[0], 4)
    deck.grade(SIX[1], 3)
    counts = deck.counts()
    assert (counts.due, counts.new, counts.learning, counts.learned) == (0, 4, 1, 1)
    clock.forward(30 * DAY)
    assert deck.counts().due == 2
    deck.grade(SIX[0], 1)  # forgotten
    assert (deck.counts().learning, deck.counts().learned) == (2, 0)


@pytest.mark.parametrize("grade", [0, 5, "3", None, 2.5])
def test_a_grade_that_does_not_exist_is_refused(deck, file, grade):
    with pytest.raises(ValueError, match="there are 1 to 4"):
        deck.grade(SIX[0], grade)
    assert not file.exists()


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (timedelta(seconds=5), "1 min"),
        (timedelta(minutes=5.5), "6 min"),
        (59 * MINUTE, "59 min"),
        (60 * MINUTE, "1 hour"),
        (5 * HOUR, "5 hours"),
        (DAY, "1 day"),
        (3 * DAY, "3 days"),
        (80 * DAY, "2.6 months"),
        (365 * DAY, "12 months"),
        (800 * DAY, "2.2 years"),
    ],
)
def test_a_length_of_time_in_words(time, words):
    assert span(time) == words


# --- What is kept ---


def test_each_grade_is_saved_at_once_with_its_time(deck, clock, file):
    deck.grade(SIX[0], 3, seconds=12.34)
    (review,) = stored(file)
    assert review["card"] == "a1"
    assert review["grade"] == 3
    assert review["seconds"] == 12.3
    assert datetime.fromisoformat(review["at"]) == NOON
    assert datetime.fromisoformat(review["at"]).tzinfo == UTC
    clock.forward(10 * MINUTE)
    deck.grade(SIX[0], 1)
    assert [review["grade"] for review in stored(file)] == [3, 1]


def test_a_new_deck_goes_on_where_the_last_one_was(deck, clock):
    for each, grade in zip(SIX, (1, 2, 3, 4), strict=False):
        deck.grade(each, grade)
    clock.forward(HOUR)
    again = make(clock)
    assert again.due() == deck.due()
    assert [again.preview(each) for each in SIX] == [deck.preview(each) for each in SIX]
    assert again.done == 0


def test_two_notebooks_lose_no_grade(deck, clock, file):
    other = make(clock)
    deck.grade(SIX[0], 3)
    other.grade(SIX[1], 2)
    deck.grade(SIX[3], 1)
    assert [review["card"] for review in stored(file)] == ["a1", "a2", "b1"]
    assert ids(deck.unmet()) == ["b2", "a3", "b3"]


def test_the_same_card_graded_in_both_notebooks_counts_twice(clock, file):
    mine, theirs, alone = (make(clock) for _ in range(3))
    theirs.grade(SIX[0], 3)
    clock.forward(MINUTE)
    mine.grade(SIX[0], 3)  # shown before theirs was known
    assert [review["grade"] for review in stored(file)] == [3, 3]
    alone.refresh()
    assert alone.next_due() == mine.next_due()
    assert alone.next_due() - clock() >= DAY  # after two of Good it is learned


def test_a_grade_of_the_other_notebook_comes_in_between(clock):
    mine, theirs = make(clock), make(clock)
    theirs.grade(SIX[0], 4)
    mine.refresh()
    assert SIX[0] not in mine.new()


def test_what_left_the_bank_is_untouched(clock, file):
    make(clock, [card("old"), *SIX]).grade(card("old"), 3)
    before = stored(file)
    deck = make(clock)
    deck.grade(SIX[0], 3)
    deck.undo()
    assert stored(file)[0] == before[0]
    back = make(clock, [card("old"), *SIX])
    clock.forward(HOUR)
    assert ids(back.due()) == ["old"]


def test_what_a_later_version_adds_to_the_file_stays(deck, file):
    deck.grade(SIX[0], 3)
    content = json.loads(file.read_text(encoding="utf-8"))
    content["goals"] = {"hours": 3}
    content["reviews"][0]["mood"] = "calm"
    file.write_text(json.dumps(content), encoding="utf-8")
    deck.grade(SIX[1], 3)
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["goals"] == {"hours": 3}
    assert content["reviews"][0]["mood"] == "calm"


def test_undo_takes_back_one_grade_after_the_other(deck, clock, file):
    deck.grade(SIX[0], 3)
    deck.grade(SIX[1], 1)
    assert deck.undo() == SIX[1]
    assert (deck.done, ids(deck.unmet())[:3]) == (1, ["b1", "a2", "b2"])
    assert deck.undo() == SIX[0]
    assert deck.undo() is None
    assert deck.unmet() == make(clock).unmet() == mixed(SIX)
    log = stored(file)
    assert [(review["grade"], review["undone"]) for review in log] == [(3, True), (1, True)]


def test_undo_leaves_the_grade_of_the_other_notebook(clock):
    mine, theirs, alone = make(clock), make(clock), make(clock, cards=[SIX[1]])
    mine.grade(SIX[0], 4)
    clock.forward(MINUTE)
    theirs.grade(SIX[0], 3)
    mine.undo()
    alone.grade(SIX[1], 3)  # what one review of Good makes of a card
    assert mine.preview(SIX[0]) == alone.preview(SIX[1])


@pytest.mark.parametrize("broken", [b"{", b'{"format": 1, "reviews": 3}'])
def test_a_damaged_file_is_set_aside_and_its_grades_are_not_lost(deck, clock, file, broken):
    deck.grade(SIX[0], 3)
    file.write_bytes(broken)
    deck.grade(SIX[1], 3)
    assert [review["card"] for review in stored(file)] == ["a1", "a2"]
    (aside,) = file.parent.glob("*.damaged-*")
    assert aside.read_bytes() == broken
    assert str(aside) in deck.notices[0]
    file.write_bytes(broken)
    deck.refresh()
    assert ids(deck.unmet()) == ["b1", "b2", "a3", "b3"]
    assert deck.save()
    assert [review["card"] for review in stored(file)] == ["a1", "a2"]


# --- A file that somebody else replaces ---


def test_an_older_file_put_back_takes_no_grade_away(deck, clock, file):
    deck.grade(SIX[0], 3)
    deck.grade(SIX[1], 3)
    older = file.read_bytes()
    deck.grade(SIX[2], 2)
    deck.grade(SIX[3], 1)
    file.write_bytes(older)
    deck.grade(SIX[4], 4)
    assert [review["card"] for review in stored(file)] == ["a1", "a2", "a3", "b1", "b2"]
    assert make(clock).due() == deck.due()
    assert deck.good == 3


def test_a_grade_taken_back_stays_so_in_an_older_file(deck, file):
    deck.grade(SIX[0], 3)
    older = file.read_bytes()
    deck.undo()
    file.write_bytes(older)
    deck.grade(SIX[1], 3)
    assert [review.get("undone") for review in stored(file)] == [True, None]


@pytest.mark.parametrize("way", ["older", "deleted"])
def test_what_the_file_lacks_is_saved_again(deck, clock, file, way):
    deck.grade(SIX[0], 3)
    older = file.read_bytes()
    deck.grade(SIX[1], 3)
    make(clock).grade(SIX[3], 2)  # another notebook's grade, seen and then lost with the file
    deck.refresh()
    file.unlink() if way == "deleted" else file.write_bytes(older)
    deck.refresh()
    assert ids(deck.unmet()) == ["b2", "a3", "b3"]
    assert deck.unsaved == (3 if way == "deleted" else 2)
    assert deck.save()
    assert [review["card"] for review in stored(file)] == ["a1", "a2", "b1"]
    assert deck.unsaved == 0


def test_undo_of_what_the_file_has_lost(deck, file):
    deck.grade(SIX[0], 3)
    file.unlink()
    deck.refresh()
    assert deck.undo() == SIX[0]
    assert stored(file)[0]["undone"] is True


# --- Clocks that were wrong ---


def write_reviews(file, *given):
    """The file as it is after these (card, grade, time)."""
    file.parent.mkdir()
    log = [
        {"id": str(number), "card": each.id, "at": at, "grade": grade, "seconds": 3.0}
        for number, (each, grade, at) in enumerate(given)
    ]
    file.write_text(json.dumps({"format": 1, "reviews": log}), encoding="utf-8")


@pytest.mark.parametrize("year", ["0001", "1970", "2126", "9999"])
@pytest.mark.parametrize("day", ["01-01T00:00:00", "12-31T23:59:59.999999"])
def test_no_year_is_too_absurd(clock, file, year, day):
    write_reviews(file, (SIX[0], 3, f"{year}-{day}+00:00"), (SIX[0], 4, NOON.isoformat()))
    before = file.read_bytes()
    for zone in (UTC, timezone(14 * HOUR), timezone(-12 * HOUR)):
        deck = Deck(SIX, now=clock, zone=zone)
        flashcards = Flashcards(deck=deck)
        assert (deck.problem, deck.notices) == ("", [])
        assert deck.preview(SIX[0])
        assert flashcards.state["card"] == "b1"
    assert file.read_bytes() == before


def test_a_review_of_a_clock_a_century_ahead_keeps_no_card_away(clock, file):
    ahead = NOON.replace(year=2126)
    write_reviews(
        file,
        (SIX[0], 1, (NOON - 9 * DAY).isoformat()),
        (SIX[0], 4, ahead.isoformat()),
        (SIX[1], 3, (NOON - 8 * DAY).isoformat()),  # after the clock was set right
        (SIX[2], 4, (ahead + HOUR).isoformat()),
    )
    deck = make(clock)
    assert deck._histories["a1"] == ((NOON - 9 * DAY, 1), (NOON - 8 * DAY, 4))
    assert deck._histories["a3"] == ((NOON - DAY, 4),)
    assert deck.next_due() < NOON
    clock.forward(8 * DAY)
    deck.grade(SIX[3], 3)  # from now on it is known when the last one was at the latest
    clock.forward(9 * DAY)
    assert SIX[2] in make(clock).due()


def test_a_sitting_with_a_wrong_clock_leaves_today_its_new_cards(clock, file):
    ahead = NOON.replace(year=2126).isoformat()
    write_reviews(file, *((each, 4, ahead) for each in SIX[:3]))
    assert len(make(clock, new_per_day=2).new()) == 2


def test_a_clock_an_hour_ahead_changes_nothing(clock, file):
    at = NOON + HOUR
    write_reviews(file, (SIX[0], 4, at.isoformat()))
    assert make(clock)._histories["a1"] == ((at, 4),)


@pytest.mark.parametrize(
    "change",
    [
        {"grade": 5},
        {"grade": "3"},
        {"at": "2026-03-02T12:00:00"},
        {"at": "2026-03-02T12:00:00+01:00"},
        {"at": "yesterday"},
        {"card": 7},
        {"id": None},
    ],
)
def test_a_review_that_cannot_be_is_damage(deck, clock, file, change):
    deck.grade(SIX[0], 3)
    content = json.loads(file.read_text(encoding="utf-8"))
    content["reviews"][0].update(change)
    file.write_text(json.dumps(content), encoding="utf-8")
    assert len(make(clock).notices) == 1
    assert not file.exists()


def test_a_failed_save_is_kept_and_tried_again(deck, clock, file, monkeypatch):
    deck.grade(SIX[0], 3)
    with monkeypatch.context() as patch:
        jam(file, patch)
        deck.grade(SIX[1], 3)
        deck.grade(SIX[3], 1)
        assert deck.unsaved == 2
        assert "No space left on device" in deck.problem
        assert not deck.save()
        assert ids(deck.unmet()) == ["b2", "a3", "b3"]
        deck.undo()
        assert deck.unsaved == 1
    deck.grade(SIX[4], 3)
    assert (deck.unsaved, deck.problem) == (0, "")
    assert [review["card"] for review in stored(file)] == ["a1", "a2", "b2"]
    assert make(clock).unmet() == deck.unmet()


def test_a_grade_that_was_saved_is_not_saved_twice(deck, file, monkeypatch):
    """As when the disk fails after the file was already replaced."""

    def replace(old, new, really=store.os.replace):
        really(old, new)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(store.os, "replace", replace)
        deck.grade(SIX[0], 3)
        assert deck.problem
    assert deck.save()
    assert len(stored(file)) == 1


def test_an_undo_that_cannot_be_saved_is_tried_again(deck, file, monkeypatch):
    deck.grade(SIX[0], 3)
    with monkeypatch.context() as patch:
        jam(file, patch)
        deck.undo()
        assert deck.problem
    assert SIX[0] in deck.new()
    assert deck.save()
    assert stored(file)[0]["undone"] is True


def test_a_file_of_a_newer_version_is_left_alone(clock, file):
    file.parent.mkdir()
    content = json.dumps({"format": 99, "reviews": "in another form"})
    file.write_text(content)
    deck = make(clock)
    assert "newer version" in deck.problem
    deck.grade(deck.next(), 3)
    assert deck.unsaved == 1
    assert file.read_text() == content


def test_a_clock_that_goes_back_breaks_nothing(deck, clock):
    deck.grade(SIX[0], 4)
    clock.forward(-3 * DAY)
    deck.grade(SIX[0], 3)
    deck.grade(SIX[1], 1)
    assert deck.preview(SIX[0])


# --- On the screen ---


@pytest.fixture
def flashcards(deck):
    return Flashcards(deck=deck)


def front(flashcards):
    return re.sub(r"<[^>]*>", "", flashcards._front.value).strip()


def test_keys_lead_through_a_sitting(flashcards, clock, file):
    assert flashcards.state == {
        "card": "a1", "side": "front", "due": 0, "new": 6, "done": 0, "unsaved": 0,
    }  # fmt: skip
    assert "0 due, 6 new today, 0 done in this sitting" in flashcards.words
    assert "Why √d_k in a1?" in flashcards.words
    assert "first of a1" not in flashcards.words
    for key in ("1", "3", "u", "n", "x"):
        flashcards.press(key)
    assert (flashcards.state["side"], flashcards.state["done"]) == ("front", 0)
    flashcards.press(" ")
    assert flashcards.state["side"] == "back"
    for words in (
        "1. first of a1",
        "Because of a1.",
        "“I do not know a1.” One should.",
        "Taught in Lesson 2, section 1: The experiment.",
        "1  Again: 1 min | 2  Hard: 6 min | 3  Good: 10 min | 4  Easy: 8 days",
    ):
        assert words in flashcards.words
    clock.forward(timedelta(seconds=20))
    flashcards.press("3")
    assert stored(file)[0]["seconds"] == 20
    assert "Good: that card comes back in 10 min." in flashcards.words
    assert (flashcards.state["card"], flashcards.state["side"]) == ("b1", "front")
    flashcards.press("Enter")
    flashcards.press("1")
    assert flashcards.state["card"] == "a2"
    flashcards.press("u")
    assert (flashcards.state["card"], flashcards.state["side"]) == ("b1", "back")
    assert flashcards.state["done"] == 1
    flashcards.press("4")
    assert [review["grade"] for review in stored(file)] == [3, 1, 4]
    assert "2 done in this sitting" in flashcards.words


def test_clicks_do_the_same(flashcards, clock):
    controls = flashcards.controls
    assert controls["undo"].disabled
    controls["show"].click()
    assert controls["show"].layout.display == "none"
    assert controls["easy"].description == "4  Easy\n8 days"
    clock.forward(HOUR)
    controls["easy"].click()
    controls["easy"].click()  # of a double click, which meets the next card
    assert flashcards.state["done"] == 1
    assert flashcards.state["side"] == "front"
    assert not controls["undo"].disabled
    controls["undo"].click()
    assert flashcards.state["card"] == "a1"


@pytest.mark.parametrize("gap", [0, 0.09, 0.22, 0.39])
def test_a_double_click_grades_nothing(flashcards, clock, gap):
    """The second click lands on the grade that the first has put under the pointer."""
    controls = flashcards.controls
    controls["show"].click()
    clock.forward(timedelta(seconds=gap))
    controls["hard"].click()
    assert (flashcards.state["side"], flashcards.state["done"]) == ("back", 0)
    clock.forward(timedelta(seconds=0.4 - gap))
    controls["hard"].click()
    clock.forward(timedelta(seconds=gap))
    controls["show"].click()  # nor does one on a grade turn the next card over
    assert (flashcards.state["side"], flashcards.state["done"]) == ("front", 1)


def test_a_double_click_stops_no_key_and_no_undo(flashcards, clock):
    controls = flashcards.controls
    controls["show"].click()
    flashcards.press("3")
    flashcards.press(" ")
    flashcards.press("3")
    assert flashcards.state["done"] == 2
    controls["undo"].click()
    controls["undo"].click()
    assert flashcards.state["done"] == 0
    clock.forward(-HOUR)  # a clock that is set back locks nobody out
    controls["good"].click()
    assert flashcards.state["done"] == 1


def test_the_end_is_shown_when_the_file_is_gone(flashcards, clock, file):
    for grade in (4, 4, 4, 4, 4, 1):
        flashcards.press(" ")
        flashcards.press(str(grade))
    file.unlink()
    flashcards.press(" ")
    flashcards.press(" ")
    assert flashcards.state["side"] == "back"
    flashcards.press("4")
    assert flashcards.state["side"] == "end"
    assert "7 grades in this sitting, 6 of them Good or Easy" in flashcards.words
    file.unlink()
    flashcards.press(" ")
    assert "Nothing is due yet." in flashcards.words
    assert flashcards._trouble.value == ""
    assert len(stored(file)) == 7


def test_the_end_says_when_the_next_is_due(flashcards, clock):
    for grade in (3, 4, 3, 4, 4, 1):
        flashcards.press(" ")
        flashcards.press(str(grade))
    assert flashcards.state["side"] == "end"
    assert "Done for now: 6 grades in this sitting, 5 of them Good or Easy." in flashcards.words
    assert "The next one is due in 1 min." in flashcards.words
    assert "Go on with 3 cards: Space" in flashcards.words
    flashcards.press(" ")
    assert (flashcards.state["card"], flashcards.state["side"]) == ("b3", "front")
    for _ in range(3):
        flashcards.press(" ")
        flashcards.press("4")
    assert flashcards.state["side"] == "end"
    assert re.search(r"due in 1 day, on \w+ \d+ March at", flashcards.words)
    flashcards.press(" ")
    assert "Nothing is due yet." in flashcards.words
    clock.forward(30 * DAY)
    flashcards.press(" ")
    assert flashcards.state["side"] == "front"
    assert flashcards.state["due"] == 6


def test_more_new_cards_than_a_day_has(clock):
    many = [card(f"c{i:02}") for i in range(12)]
    flashcards = Flashcards(deck=make(clock, many, new_per_day=1))
    flashcards.press(" ")
    flashcards.press("4")
    assert flashcards.state["side"] == "end"
    assert "5 more new cards: n" in flashcards.words
    flashcards.press("n")
    assert flashcards.state["new"] == 5
    for _ in range(5):
        flashcards.press(" ")
        flashcards.press("4")
    assert flashcards.state["side"] == "end"
    assert flashcards.state["done"] == 6


def test_filters(flashcards):
    topic, level = flashcards.controls["topic"], flashcards.controls["level"]
    assert [value for _, value in topic.options] == ["", "variance", "masks"]
    assert [value for _, value in level.options] == ["", *LEVELS]
    topic.value = "masks"
    assert flashcards.state["card"] == "b1"
    assert flashcards.state["new"] == 3
    flashcards.press(" ")
    level.value = "screen"  # the card on show is among them: it stays, turned over
    assert (flashcards.state["card"], flashcards.state["side"]) == ("b1", "back")
    level.value = "onsite"
    assert (flashcards.state["card"], flashcards.state["side"]) == ("b2", "front")
    topic.value = "variance"
    assert flashcards.state["side"] == "end"
    assert "No card has this topic at this level." in flashcards.words
    topic.value = level.value = ""
    assert flashcards.state["new"] == 6


def test_a_failed_save_is_said_and_tried_again(flashcards, file, monkeypatch):
    controls = flashcards.controls
    with monkeypatch.context() as patch:
        jam(file, patch)
        flashcards.press(" ")
        flashcards.press("3")
        assert "Not saved yet, and kept here: 1 grade." in flashcards.words
        assert "No space left on device" in flashcards.words
        assert controls["retry"].layout.display == ""
        controls["retry"].click()
        assert flashcards.state["unsaved"] == 1
    controls["retry"].click()
    assert flashcards.state["unsaved"] == 0
    assert "Everything is saved now." in flashcards.words
    assert "Not saved yet" not in flashcards.words
    assert controls["retry"].layout.display == "none"
    assert len(stored(file)) == 1


def test_a_file_set_aside_is_said(clock, file):
    file.parent.mkdir()
    file.write_bytes(b"{")
    assert "It was set aside as" in Flashcards(deck=make(clock)).words


def test_what_goes_wrong_is_said(flashcards, monkeypatch):
    monkeypatch.setattr(flashcards.deck, "grade", lambda *_: 1 / 0)
    flashcards.press(" ")
    flashcards.press("3")
    assert "ZeroDivisionError" in flashcards._trouble.value
    assert flashcards._trouble_row.layout.display == ""


def test_formulas_go_to_mathjax_and_words_to_screen_readers(flashcards):
    assert front(flashcards) == "Why $\\sqrt{d_k}$ in a1?"
    assert 'role="status"' in flashcards._spoken.value
    assert "Why √d_k in a1?" in flashcards._spoken.value
    flashcards.press(" ")
    assert "first of a1 second of a1" in flashcards._spoken.value
    (output,) = flashcards._link.outputs
    assert 'href="02_why_sqrt_dk.ipynb#1.-The-experiment"' in output["data"]["text/html"]


def test_every_card_of_the_bank_can_be_shown():
    flashcards = Flashcards()
    for each in flashcards.deck.cards:
        flashcards._turn_to(each, "back")
        assert each.id == flashcards.state["card"]
        assert "$" not in flashcards.words
        assert each.place in flashcards.words


# --- Without a kernel ---


def static(flashcards):
    data, _ = flashcards._repr_mimebundle_()
    return {mime: data[mime] for mime in ("text/plain", "text/html")}


def test_nothing_is_written_before_the_first_grade(file):
    flashcards = Flashcards()
    static(flashcards)
    flashcards.press(" ")
    assert not file.parent.exists()


def test_the_static_form_does_not_depend_on_progress(file):
    fresh = static(Flashcards())
    assert f"{len(cards())} flashcards" in fresh["text/plain"]
    assert fresh["text/html"].count("<details>") == 3
    assert "$" not in fresh["text/html"]
    flashcards = Flashcards()
    for grade in "1234":
        flashcards.press(" ")
        flashcards.press(grade)
    assert len(stored(file)) == 4
    assert static(flashcards) == static(Flashcards()) == fresh
    file.write_bytes(b"{")
    assert static(Flashcards()) == fresh
    assert str(file.parent) not in "".join(fresh.values())


def test_a_long_history_stays_quick(clock, file):
    """Bounded work, not time: a grade makes the scheduler look at one card's reviews only."""
    many = [card(f"c{i:03}") for i in range(150)]
    deck = make(clock, many, new_per_day=150)
    file.parent.mkdir()
    log = [
        {"id": f"{i}-{n}", "card": each.id, "grade": 3, "seconds": 9.0,
         "at": (NOON - (20 - n) * DAY).isoformat()}
        for i, each in enumerate(many)
        for n in range(20)
    ]  # fmt: skip
    file.write_text(json.dumps({"format": 1, "reviews": log}), encoding="utf-8")
    deck.refresh()
    deck.counts()
    calls = []
    really = deck._scheduler.review_card
    deck._scheduler.review_card = lambda *given: calls.append(1) or really(*given)
    deck.grade(many[0], 3)
    deck.counts()
    assert len(calls) == 21
