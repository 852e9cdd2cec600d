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
    assert talk >= {10: 1, 20: 2, 45: 6}[minutes]


@pytest.mark.parametrize(("level", "minutes"), PLANS)
def test_questions_rise_in_level_and_change_their_topic(level, minutes):
    steps = rounds.plan(bank(), level, minutes, seed=3)
    questions = [bank()[step.ref] for step in steps if step.kind == rounds.QUESTION]
    ranks = [LEVELS.index(question.level) for question in questions]
    assert ranks == sorted(ranks)
    assert level in {question.level for question in questions}
    if len(questions) >= 4 and level != LEVELS[-1]:
        assert questions[-1].level == LEVELS[LEVELS.index(level) + 1]
    kernels = [debug.case(step.ref) for step in steps if step.kind == rounds.KERNEL]
    assert {kernel.level for kernel in kernels} == {level}
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
    kernels = [ref for ref in asked if ref in {case.id for case in debug.cases()}]
    assert len(kernels) == 5
    assert len([ref for ref in asked if ref.startswith("6.")]) >= 4


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
        assert lead.startswith("Your answer had: “")
        assert question.points[point] in lead
    # Nothing was said: then one is asked about what was missing.
    _, lead = rounds.follow_up(question, (), 1, set())
    assert lead.startswith("Your answer lacked: “")


def test_no_follow_up_is_asked_twice_or_too_often():
    question = bank()["why-not-d-k"]
    first, _ = rounds.follow_up(question, (), 2, set())
    second, _ = rounds.follow_up(question, (), 1, {first.ref})
    assert second.ref != first.ref
    assert rounds.follow_up(question, (), 0, {first.ref}) is None
    # Nor is what is planned for later.
    assert rounds.follow_up(question, (), 1, set(), planned={first.ref})[0].ref != first.ref


def test_who_is_late_leaves_out_questions_first():
    question = [Step(rounds.QUESTION, id, 2.0) for id in ("one", "two", "three")]
    kernel, code = Step(rounds.KERNEL, "k", 1.5), Step(rounds.CODE, "c", 4.0)
    steps = [question[0], kernel, question[1], code, question[2]]
    assert rounds.in_time(steps, 11.5) == steps
    assert rounds.in_time(steps, 9.6) == [*steps[:4], question[2]]
    assert rounds.in_time(steps, 8) == [question[0], kernel, code, question[1], question[2]]
    assert rounds.in_time(steps, 1) == [kernel, code, *question]
    assert rounds.in_time([], 5) == []


@pytest.mark.parametrize(
    ("level", "minutes", "difficulties"),
    [
        ("screen", 10, {"easy"}),
        ("screen", 45, {"easy", "medium"}),
        ("onsite", 10, {"easy", "medium"}),
        ("onsite", 20, {"medium"}),
        ("onsite", 45, {"medium", "hard"}),
        ("expert", 20, {"hard"}),
        ("expert", 45, {"hard"}),
    ],
)
def test_the_coding_task_is_as_hard_as_the_level(level, minutes, difficulties):
    plans = [rounds.plan(bank(), level, minutes, seed)[-1] for seed in range(30)]
    tasks = [rounds.coding_task(step.ref) for step in plans]
    assert {task.difficulty for task in tasks} == difficulties
    assert len({task.id for task in tasks}) >= 2


# --- The report ---


def entry(kind, ref, score, minutes=2.0, seconds=60.0, skipped=False):
    step = Step(kind, ref, minutes)
    return Entry(step, score=score, seconds=seconds, skipped=skipped)


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
