"""A mock interview's plan, its follow-ups, its sums, and the file that keeps it."""

import json
import os

import pytest

from helpers.interview import by_hand, debug, record, rounds, store
from helpers.interview.bank import LEVELS, bank
from helpers.interview.rounds import Entry, Step


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data"


PLANS = [(level, minutes) for level in LEVELS for minutes in rounds.MINUTES]


@pytest.mark.parametrize(("level", "minutes"), PLANS)
@pytest.mark.parametrize("seed", range(5))
def test_a_round_has_everything_and_fits_its_time(level, minutes, seed):
    steps = rounds.plan(bank(), level, minutes, seed)
    kinds = [step.kind for step in steps]
    assert kinds[0] == rounds.QUESTION
    assert kinds[-1] == rounds.CODE
    assert kinds.count(rounds.CODE) == kinds.count(rounds.BY_HAND) == 1
    assert kinds.count(rounds.KERNEL) >= 1
    talk = kinds.count(rounds.QUESTION)
    follow_ups = talk * rounds.most_follow_ups(minutes)
    planned = sum(step.minutes for step in steps) + follow_ups
    assert planned <= minutes
    assert planned >= minutes - 5  # nor is half of it empty
    assert talk >= {10: 1, 20: 3, 45: 6}[minutes]


@pytest.mark.parametrize(("level", "minutes"), PLANS)
def test_questions_rise_in_level_and_change_their_topic(level, minutes):
    steps = rounds.plan(bank(), level, minutes, seed=3)
    questions = [bank()[step.ref] for step in steps if step.kind == rounds.QUESTION]
    ranks = [LEVELS.index(question.level) for question in questions]
    assert ranks == sorted(ranks)
    assert level in {question.level for question in questions} or len(questions) == 1
    assert len({question.topic for question in questions}) == len(questions)


def test_the_same_seed_asks_the_same_and_another_does_not():
    plans = [rounds.plan(bank(), "onsite", 45, seed) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_what_was_asked_is_not_asked_again_as_long_as_there_is_more():
    asked: dict[str, int] = {}
    refs = []
    for seed in range(5):
        steps = rounds.plan(bank(), "onsite", 20, seed, asked)
        refs += [step.ref for step in steps if step.kind == rounds.QUESTION]
        for step in steps:
            asked[step.ref] = asked.get(step.ref, 0) + 1
    assert len(set(refs)) == len(refs)


@pytest.mark.parametrize(("level", "minutes"), [("senior", 20), ("onsite", 30), ("onsite", "20")])
def test_another_level_or_length_is_refused(level, minutes):
    with pytest.raises(ValueError, match=r"no level 'senior'|a round of .* minutes"):
        rounds.plan(bank(), level, minutes, 0)


def test_a_follow_up_comes_from_what_was_said():
    question = bank()["why-not-d-k"]
    points = [each.point for each in question.follow_ups]
    assert len(set(points)) >= 2
    for number, point in enumerate(points):
        step, lead = rounds.follow_up(question, {point}, 1, set())
        chosen = question.follow_ups[number]
        assert step.ref == (chosen.to or f"why-not-d-k#{number}")
        assert lead.startswith("You said: “")
        assert question.points[point] in lead
    # Nothing was said: then one is asked about what was missing.
    _, lead = rounds.follow_up(question, (), 1, set())
    assert lead.startswith("You did not say: “")


def test_no_more_follow_ups_than_there_is_time_for():
    question = bank()["why-not-d-k"]
    asked: set[str] = set()
    for _ in range(2):
        asked.add(rounds.follow_up(question, (), 2, asked)[0].ref)
    assert len(asked) == 2
    assert rounds.follow_up(question, (), 2, asked) is None
    assert rounds.follow_up(question, (), 1, {next(iter(asked))}) is None
    # What is planned for later is not asked twice, and does not count as asked.
    step, _ = rounds.follow_up(question, (), 1, set(), planned=asked)
    assert step.ref not in asked


# --- The report ---


def entry(kind, ref, score, minutes=2.0, seconds=60.0, skipped=False):
    return Entry(Step(kind, ref, minutes), "", {}, score, seconds, skipped)


def test_a_report_says_what_was_strong_and_what_to_read():
    entries = [
        entry(rounds.QUESTION, "why-not-d-k", 1.0),
        entry(rounds.QUESTION, "what-does-flashattention-change", 0.25, seconds=120),
        entry(rounds.KERNEL, debug.cases()[0].id, 0.5),
        entry(rounds.QUESTION, "is-the-scale-ever-different", None, skipped=True),
        entry(rounds.CODE, "6.1", 0.0, minutes=4.0),
    ]
    found = rounds.report(entries, unreached=2, bank=bank())
    assert found.score == pytest.approx((2 * 1 + 2 * 0.25 + 2 * 0.5 + 4 * 0) / 10)
    assert [title for title, _ in found.strengths] == [bank().topic("divisors").title]
    assert [score for _, score in found.weaknesses] == [0.0, 0.25, 0.5]
    assert [reading.score for reading in found.read][:3] == [0.0, 0.25, 0.5]
    flash = bank()["what-does-flashattention-change"]
    assert found.read[1].link == flash.link
    assert found.read[1].missed == flash.points  # nothing was ticked
    assert "softmax" in found.read[0].missed[0]
    assert (found.scored, found.skipped, found.unreached) == (4, 1, 2)
    assert found.pace == 90
    assert found.seconds == 60 * 4 + 120


def test_nothing_scored_is_no_score():
    found = rounds.report([entry(rounds.QUESTION, "why-not-d-k", None)], 0, bank())
    assert found.score is None
    assert found.read == found.strengths == ()


@pytest.mark.parametrize("level", LEVELS)
def test_every_step_of_a_plan_is_about_something(level):
    for seed in range(10):
        for step in rounds.plan(bank(), level, 45, seed):
            topic = rounds.about(step, bank())
            assert topic.title
            assert topic.place
            assert ".ipynb#" in topic.link or step.kind == rounds.CODE


# --- The file that keeps a round ---


def some_round(records):
    round = records.new("onsite", 20, rounds.plan(bank(), "onsite", 20, 1))
    round.entries.append(entry(rounds.QUESTION, round.steps.pop(0).ref, 0.5))
    round.entries[0].answer = {"written": "√d_k, weil …", "revealed": True, "ticked": [0, 2]}
    return round


def test_a_round_comes_back_as_it_was():
    records = record.Records()
    round = some_round(records)
    records.save(round)
    assert record.Records().all() == [round]
    assert record.asked([round]) == {round.entries[0].step.ref: 1}


def test_two_notebooks_with_one_round_lose_nothing():
    first = record.Records()
    round = some_round(first)
    first.save(round)
    second = record.Records()
    (copy,) = second.all()
    copy.entries[0].answer = {"written": "of the second", "revealed": False, "ticked": []}
    second.save(copy)  # it takes the round over …
    round.entries[0].answer = {"written": "of the first", "revealed": False, "ticked": []}
    first.save(round)  # … so the first goes on under another name
    first.save(round)
    second.save(copy)
    kept = [each.entries[0].answer["written"] for each in record.Records().all()]
    assert sorted(kept) == ["of the first", "of the second"]
    assert "round of its own" in first.notices[0]
    assert len(first.notices) == 1
    assert second.notices == []


def test_a_damaged_round_is_set_aside_and_the_others_stay(folder):
    records = record.Records()
    records.save(some_round(records))
    bad = folder / "rounds" / "20200101T000000-aaaa.json"
    bad.write_text('{"format": 1, "minutes": 7}', encoding="utf-8")
    again = record.Records()
    assert len(again.all()) == 1
    assert "20200101T000000-aaaa.json could not be read" in again.notices[0]
    (aside,) = (folder / "rounds").glob("*.damaged-*.json")
    assert aside.read_text(encoding="utf-8") == '{"format": 1, "minutes": 7}'
    assert len(record.Records().all()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"started": "2026-01-01T12:00:00"},  # without a time zone
        {"started": "0001-01-01T12:00:00+00:00"},
        {"entries": [{"step": {"kind": "question", "ref": "x", "minutes": 0}}]},
        {"entries": [{"step": {"kind": "question", "ref": "x", "minutes": 2}, "score": "good"}]},
        {"entries": [{"step": {"kind": "question", "ref": "x", "minutes": 2}, "seconds": None}]},
        {"entries": [{"step": {"kind": "question", "ref": "x", "minutes": 2}, "answer": "x"}]},
        {"entries": [{"step": {"kind": "song", "ref": "x", "minutes": 2}}]},
        {"steps": [{"kind": "question"}]},
    ],
)
def test_a_round_that_was_edited_by_hand_is_set_aside(folder, change):
    records = record.Records()
    round = some_round(records)
    records.save(round)
    path = folder / "rounds" / f"{round.id}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **change}), encoding="utf-8")
    again = record.Records()
    assert again.all() == []
    assert "set aside" in again.notices[0]


def test_a_round_of_a_newer_version_hides_no_other(folder):
    records = record.Records()
    records.save(some_round(records))
    newer = folder / "rounds" / "20990101T000000-aaaa.json"
    newer.write_text('{"format": 99}', encoding="utf-8")
    again = record.Records()
    assert len(again.all()) == 1
    assert "newer version" in again.notices[0]
    assert newer.exists()


def test_what_is_kept_is_plain_json(folder):
    records = record.Records()
    round = some_round(records)
    records.save(round)
    content = json.loads((folder / "rounds" / f"{round.id}.json").read_text(encoding="utf-8"))
    assert content["entries"][0]["answer"]["written"] == "√d_k, weil …"
    assert not [name for name in os.listdir(folder / "rounds") if name.endswith(".new")]


def test_a_computation_is_found_again_by_its_ref():
    for kind in by_hand.KINDS:
        assert rounds.problem(f"{kind}:7") == by_hand.make(kind, 7)
