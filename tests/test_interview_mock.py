"""The mock interview as a reader drives it, without a browser: nothing entered is ever lost."""

import pytest

from helpers.interview import atomic, by_hand, debug, mock, panels, record, rounds, store
from helpers.interview.bank import bank
from helpers.interview.library import Library
from helpers.interview.mock import MockInterview
from helpers.interview.series import Ask, ByHand, DebugThis


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data"


class Clock:
    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


def start(clock, minutes=10, seed=1, level="onsite"):
    interview = MockInterview(level, minutes, seed=seed, now=clock)
    interview.controls["start"].click()
    return interview


def answer(interview):
    """Answer the step on show, as well as can be."""
    panel = interview._panel
    controls = interview.controls
    if isinstance(panel, panels.Talk):
        controls["reveal"].click()
        controls["point 1"].value = True
    elif isinstance(panel, panels.FollowUp):
        controls["reveal"].click()
        controls["partly"].click()
    elif isinstance(panel, panels.Compute):
        for label, number in zip(panel.problem.labels, panel.problem.answer):
            controls[label].value = f"{number:.6g}"
        controls["check"].click()
    elif isinstance(panel, panels.ReadKernel):
        right = next(x for x, option in panel.broken.question.lettered if option.right)
        controls["show"].click()
        controls[right].click()
    else:
        controls["solution"].click()


def go_to(interview, kind):
    """Answer what is asked until a step of that kind is on show."""
    for _ in range(30):
        if interview.state["step"][0] == kind:
            return interview._panel
        answer(interview)
        interview.controls["next"].click()
    raise AssertionError(f"no step of the kind {kind}")


# --- A whole round ---


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("minutes", rounds.MINUTES)
@pytest.mark.parametrize("level", ["screen", "onsite", "expert"])
def test_a_round_at_planned_pace_comes_to_the_kernels_and_the_code(clock, level, minutes, seed):
    interview = start(clock, minutes, seed, level)
    planned = [step.kind for step in interview._round.steps]
    while interview.state["step"] is not None:
        clock.seconds += 60 * interview._entry.step.minutes
        answer(interview)
        interview.controls["next"].click()
    entries = interview._round.entries
    kinds = [entry.step.kind for entry in entries]
    for kind in ("by-hand", "kernel", "code"):
        assert kinds.count(kind) == planned.count(kind)
    roots = [entry.root for entry in entries if entry.root]
    assert max(roots.count(root) for root in roots) <= rounds.most_follow_ups(minutes)
    assert clock.seconds - 1000 <= 60 * (minutes + 4)


def test_rounds_of_one_reader_do_not_repeat_themselves(clock):
    refs = []
    for _ in range(4):
        interview = start(clock, 20, seed=None)
        refs += [interview._entry.step.ref, *(step.ref for step in interview._round.steps)]
        while interview.state["step"] is not None:
            interview.skip()
    assert len(set(refs)) == len(refs)


def test_an_old_report_can_be_read_again(clock):
    interview = start(clock)
    interview.controls["answer"].value = "my <words>"
    interview.controls["reveal"].click()
    interview.end()
    again = MockInterview(now=clock)
    assert again._old_page.value.count("<p>") == 0
    again.controls["old"].value = again._history[0].id
    assert "my &lt;words&gt;" in again._old_page.value
    assert "Score" in again._old_page.value


@pytest.mark.parametrize("level", ["screen", "onsite", "expert"])
def test_a_round_goes_from_the_lobby_to_a_report(clock, level):
    interview = start(clock, level=level)
    kinds = []
    while interview.state["at"] == "round":
        kinds.append(interview.state["step"][0])
        clock.seconds += 30
        answer(interview)
        interview.controls["next"].click()
    assert set(kinds) == {"question", "follow-up", "by-hand", "kernel", "code"} or (
        set(kinds) == {"question", "by-hand", "kernel", "code"}  # a follow-up was a question
    )
    assert interview.state["at"] == "report"
    assert interview.state["answered"] == len(kinds)
    assert "%" in interview.words
    assert "Lesson" in interview.words
    (kept,) = record.Records().all()
    assert kept.finished
    assert [each.seconds for each in kept.entries] == [30] * len(kinds)
    interview.controls["again"].click()
    assert interview.state["at"] == "lobby"
    assert any("Your rounds" in getattr(part, "value", "") for part in interview._body.children)


def test_the_same_by_keyboard_alone(clock):
    interview = MockInterview("screen", 10, seed=1, now=clock)
    press = interview._keyboard.press
    press("n")
    for _ in range(20):
        if interview.state["at"] == "report":
            break
        panel = interview._panel
        if isinstance(panel, panels.Talk | panels.FollowUp):
            press("t")
            press(" ")
            press("2")
        elif isinstance(panel, panels.ReadKernel):
            press(" ")
            press("a")
            press("b")
        elif isinstance(panel, panels.Compute):
            for label in panel.problem.labels:
                interview.controls[label].value = "1"  # typed; then Enter
            press("Ctrl+Enter")
            press("s")
            press("s")
            continue
        else:
            interview.controls["code"].value = "def nothing(): pass"
            press("Ctrl+Enter")
            press("s")
            press("s")
            continue
        press("n")
    assert interview.state["at"] == "report"
    press("n")
    assert interview.state["at"] == "lobby"


def test_next_waits_for_a_score_and_skip_does_not(clock):
    interview = start(clock)
    step = interview.state["step"]
    interview.controls["answer"].value = "I would say"
    interview.controls["next"].click()
    assert interview.state["step"] == step
    assert "tick yours first, or skip" in interview._said.value
    interview.controls["skip"].click()
    assert interview.state["step"] != step
    kept = record.Records().all()[0].entries[0]
    assert kept.skipped
    assert kept.score is None
    assert kept.answer["written"] == "I would say"


# --- Nothing is lost ---


def test_every_key_that_is_typed_is_kept_at_once(clock):
    interview = start(clock)
    for text in ("T", "Th", "The"):
        interview.controls["answer"].value = text
        assert record.Records().all()[0].entries[0].answer["written"] == text


@pytest.mark.parametrize("kind", ["question", "by-hand", "kernel", "code"])
def test_a_round_goes_on_after_the_kernel_died(clock, kind):
    first = start(clock, seed=5)
    panel = go_to(first, kind)
    if kind == "code":
        first.controls["code"].value = "# what I had\n" + panel.stub
        first.controls["hint"].click()
    else:
        answer(first)
    clock.seconds += 45
    first.pause()
    before = panel.answer, panel.score, first.state["left"], panel.words
    second = MockInterview(now=clock)
    assert "not finished" in second._body.children[1].value
    second.controls["resume"].click()
    assert second.state["step"] == first.state["step"]
    after = second._panel.answer, second._panel.score, second.state["left"], second._panel.words
    assert after == before


@pytest.mark.parametrize("goes_on", [True, False])
def test_when_time_is_over_the_reader_decides(clock, goes_on):
    interview = start(clock)
    interview.controls["answer"].value = "half an ans"
    clock.seconds += 11 * 60
    assert interview.state["left"] == -60
    interview.controls["answer"].value = "half an answer, and the rest"
    assert interview.state["at"] == "round"
    interview.controls["reveal"].click()
    interview.controls["point 1"].value = True
    interview.controls["next"].click()
    assert "The 10 minutes are over, and 3 planned steps are left." in interview.words
    assert set(interview.controls) == {"report", "go on"}
    if goes_on:
        interview.controls["go on"].click()
        assert interview.state["step"] is not None
        interview.end()
    else:
        interview._keyboard.press("n")
    assert interview.state["at"] == "report"
    assert "not reached" in interview.words
    kept = record.Records().all()[0].entries[0]
    assert kept.answer["written"] == "half an answer, and the rest"
    assert kept.seconds == 11 * 60


def test_a_pause_stops_the_clock_and_covers_the_question(clock):
    interview = start(clock)
    clock.seconds += 20
    prompt = interview._panel.words
    assert prompt in interview.words
    interview.controls["pause"].click()
    clock.seconds += 1000
    assert interview.state["left"] == 580
    assert not interview.state["running"]
    assert prompt not in interview.words
    interview._keyboard.press("n")  # means nothing now
    interview.controls["pause"].click()
    clock.seconds += 10
    assert interview.state["left"] == 570
    assert prompt in interview.words


def test_a_round_can_be_ended_at_any_time(clock):
    interview = start(clock)
    interview.controls["answer"].value = "something"
    interview.controls["end"].click()
    assert interview.state["at"] == "round"  # once is not enough
    interview.controls["end"].click()
    assert interview.state["at"] == "report"
    assert "Nothing was scored" in interview.words
    assert record.Records().all()[0].entries[0].answer["written"] == "something"


def test_letters_that_were_meant_for_a_field_take_no_question_away(clock):
    interview = start(clock)
    step = interview.state["step"]
    for letter in "because score":
        interview._keyboard.press(letter)
    assert interview.state["step"] == step
    interview._keyboard.press("s")
    assert "Press s again" in interview._said.value
    interview._keyboard.press("x")
    interview._keyboard.press("s")
    assert interview.state["step"] == step
    interview._keyboard.press("s")
    assert interview.state["step"] != step


def test_a_lobby_that_is_out_of_date_spoils_nothing(clock):
    first = start(clock)
    first.controls["answer"].value = "A0"
    stale = MockInterview(now=clock)
    assert "resume" in stale.controls
    first.controls["answer"].value = "A0, and the last words"
    first.controls["end"].click()
    first.controls["end"].click()
    stale.controls["resume"].click()
    assert stale.state["at"] == "lobby"
    assert "no unfinished round" in stale._said.value
    (kept,) = record.Records().all()
    assert kept.finished
    assert kept.entries[0].answer["written"] == "A0, and the last words"


def test_a_first_save_that_fails_makes_no_second_round(clock, folder, monkeypatch):
    first = start(clock)
    first.controls["answer"].value = "A0"
    second = MockInterview(now=clock)

    def fails(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "replace", fails)
        second.controls["resume"].click()
        assert "No space left" in second._said.value
    second.controls["answer"].value = "A0 and more"
    (kept,) = record.Records().all()
    assert kept.entries[0].answer["written"] == "A0 and more"


@pytest.mark.parametrize(
    ("kind", "ref"),
    [
        ("question", "gone"),
        ("follow-up", "gone#0"),
        ("follow-up", "why-not-d-k#99"),
        ("by-hand", "gone:1"),
        ("by-hand", "no number"),
        ("kernel", "gone"),
        ("code", "6.99"),
    ],
)
def test_what_the_lessons_no_longer_have_is_skipped(clock, kind, ref):
    interview = start(clock)
    interview.controls["answer"].value = "before"
    left = len(interview._round.steps)
    interview._ask(rounds.Step(kind, ref, 2.0))
    assert interview.state["at"] == "round"
    assert len(interview._round.steps) == left - 1
    assert "no longer asked" in interview._said.value
    interview.end()
    assert "Another round" in interview.controls["again"].description
    kept = record.Records().all()[0]
    assert [entry.step.ref for entry in kept.entries][1] == ref
    assert kept.entries[0].answer["written"] == "before"
    again = MockInterview(now=clock)
    again.lobby()


def test_half_an_emoji_is_kept_too(clock):
    interview = start(clock)
    interview.controls["answer"].value = "\ud83d and more"
    assert record.Records().all()[0].entries[0].answer["written"] == "\ud83d and more"


def test_what_cannot_be_kept_is_said_and_tried_again(clock, folder):
    interview = start(clock)
    real = folder / "rounds"
    away = folder / "away"
    real.rename(away)
    real.write_text("a file where the folder was")
    interview.controls["answer"].value = "while nothing can be written"
    assert "Could not" in interview._said.value
    assert store.VARIABLE in interview._said.value
    real.unlink()
    away.rename(real)
    interview.controls["answer"].value += ", and after"
    assert "Could not" not in interview._said.value
    kept = record.Records().all()[0].entries[0].answer["written"]
    assert kept == "while nothing can be written, and after"


# --- Panels ---


def test_ticks_are_the_score_and_lead_the_follow_up(clock):
    interview = start(clock)
    question = interview._panel.question
    interview.controls["reveal"].click()
    assert interview._panel.score == 0
    interview.controls["point 2"].value = True
    assert interview._panel.score == pytest.approx(1 / len(question.points))
    interview._keyboard.press("2")
    assert interview._panel.score == 0


def test_a_follow_up_is_scored_by_whoever_answered():
    question = bank()["why-not-d-k"]
    said = panels.FollowUp(question, 0, lead="You said: “this”.")
    assert said.words.startswith("You said: “this”.")
    assert said.score is None
    said.controls["reveal"].click()
    for name, score in panels.FollowUp.GRADES:
        said.controls[name].click()
        assert said.score == score


@pytest.mark.parametrize("kind", list(by_hand.KINDS))
def test_a_computation_is_worth_less_at_the_second_try(kind):
    problem = by_hand.make(kind, 2)
    panel = panels.Compute(problem)
    for label in problem.labels:
        panel.controls[label].value = "-12345"
    panel.controls["check"].click()
    assert panel.score is None
    for label, number in zip(problem.labels, problem.answer):
        panel.controls[label].value = f"{number:.6g}"
    panel.controls["check"].click()
    assert panel.score == 0.5
    panel.controls["solution"].click()
    assert panel.score == 0.5
    assert panel.words.count("\n") > len(problem.labels)


@pytest.mark.parametrize("kind", ["kv-cache-bytes", "bytes-moved", "flops-of-scores"])
def test_a_unit_is_asked_for_and_may_be_typed(kind):
    problem = by_hand.make(kind, 2)
    panel = panels.Compute(problem)
    unit = problem.unit.split()[0]
    for label, number in zip(problem.labels, problem.answer):
        assert f"{label}, in {unit}" in panel.controls[label].description
        panel.controls[label].value = f"{number:.6g} {unit}"
    panel.controls["check"].click()
    assert panel.score == 1


def test_a_solution_that_was_shown_is_worth_nothing():
    problem = by_hand.make(next(iter(by_hand.KINDS)), 2)
    panel = panels.Compute(problem)
    panel.controls["solution"].click()
    for label, number in zip(problem.labels, problem.answer):
        panel.controls[label].value = f"{number:.6g}"
    panel.controls["check"].click()
    assert panel.score == 0


def test_a_kernel_is_shown_to_the_doctor_once_it_is_understood():
    broken = debug.cases()[0]
    panel = panels.ReadKernel(broken)
    letters = [letter for letter, option in broken.question.lettered if not option.right]
    panel.controls[letters[0]].click()
    assert panel.score == 0
    assert "What the doctor says" not in panel._report.value
    right = next(letter for letter, option in broken.question.lettered if option.right)
    panel.controls[right].click()
    assert panel.score == 0.5
    assert "What the doctor says" in panel._report.value
    assert broken.disease.split("|")[0] in panel._report.value


class Code:
    """A whiteboard with code on it."""

    def __init__(self, code):
        (task,) = (task for task in rounds.coding_tasks() if task.id == "6.1")
        self.panel = panels.WriteCode(task)
        self.panel.controls["code"].value = code
        self.panel.controls["run"].click()
        self.said = self.panel._said.value + self.panel._verdict.value


RIGHT = """
def softmax(x):
    m = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(m), m, 0))
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1, s)
"""


def test_a_failed_check_costs_a_little():
    board = Code("def softmax(x): return x")
    assert board.panel.score == 0
    board.panel.controls["code"].value = RIGHT
    board.panel.controls["run"].click()
    assert board.panel.score == pytest.approx(0.9)
    assert "Worth 90%, after 1 failed check." in board.panel._said.value


def test_code_is_checked():
    board = Code(RIGHT)
    assert "✓ passed" in board.said
    assert board.panel.score == 1
    board.panel.controls["code"].value = "def softmax(x): return x"
    board.panel.controls["run"].click()
    assert board.panel.score == 1  # what passed once has passed


def test_hints_cost_a_little_and_the_solution_all():
    board = Code("")
    for _ in range(10):
        board.panel.controls["hint"].click()
    board.panel.controls["code"].value = RIGHT
    board.panel.controls["run"].click()
    assert 0.5 <= board.panel.score < 1
    board = Code("")
    board.panel.controls["solution"].click()
    board.panel.controls["code"].value = RIGHT
    board.panel.controls["run"].click()
    assert board.panel.score == 0


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def softmax(x)\n    return x", "cannot read it in line 1"),
        ("1 / 0", "ZeroDivisionError in line 1, <code>1 / 0</code>"),
        ("while True: pass", "does not finish"),
        ("def other(x): return x", "no function <code>softmax</code>"),
        ("softmax = 3", "no function <code>softmax</code>"),
        ("def softmax(x):\n    return x[0", "cannot read it in line 2"),
        ("def softmax(x):\n    raise KeyError('x')", "KeyError"),
        ("def softmax(x):\n    return np.exp(x) / np.exp(x).sum(axis=0)", "✗ not yet"),
        ("x = '\0'", "cannot read it"),
    ],
)
def test_code_that_does_not_work_is_told_why(code, said):
    board = Code(code)
    assert said in board.said, board.said
    assert not board.panel.score


def test_a_stub_is_not_attempted():
    (task,) = (task for task in rounds.coding_tasks() if task.id == "6.1")
    panel = panels.WriteCode(task)
    assert panel.answer == {}
    panel.controls["code"].value += "return None"
    panel.controls["run"].click()
    assert panel.score is None
    assert "not attempted" in panel._verdict.value


def test_every_coding_task_can_be_written_at_the_whiteboard():
    for task in rounds.coding_tasks():
        panel = panels.WriteCode(task)
        compile(panel.stub + "pass", "stub", "exec")
        panel.controls["solution"].click()
        assert task.solution.__name__ in panel._help.value


def test_a_question_of_the_bank_can_follow_another(clock):
    interview = start(clock)
    interview._ask(
        rounds.Step("question", "why-mup-divides-by-d-k", 2.0), "why-not-d-k", "You said: “this”."
    )
    assert interview._title.startswith("Follow-up")
    assert "You said: “this”." in interview.words
    interview.pause()
    second = MockInterview(now=clock)
    second.controls["resume"].click()
    assert "You said: “this”." in second.words


def test_the_way_on_is_coloured(clock):
    interview = start(clock)
    classes = lambda name: interview.controls[name]._dom_classes  # noqa: E731
    assert "iv-main" in classes("reveal")
    assert "iv-main" not in classes("next")
    interview.controls["reveal"].click()
    assert "iv-main" in classes("next")


@pytest.mark.parametrize("entered", [{"x": 1}, {"written": 1}, {"tried": 3}, {"code": None}])
def test_an_answer_of_another_kind_spoils_nothing(clock, entered):
    interview = start(clock)
    interview._entry.answer = entered
    interview._records.save(interview._round)
    second = MockInterview(now=clock)
    second.controls["resume"].click()
    assert second.state["at"] == "round"
    assert record.Records().all()[0].entries[0].answer == entered


# --- A question on its own ---


def test_a_minute_starts_stops_and_starts_again(clock):
    ask = Ask("why-not-d-k", now=clock)
    ask.controls["minute"].click()
    clock.seconds += 20
    ask.controls["answer"].value = "the spread"
    ask.controls["reveal"].click()
    assert ask._clock.left == 40
    assert not ask._clock.running
    assert "It leads to" in ask._more.value
    ask.controls["point 1"].value = True
    ask._keyboard.press("m")
    assert ask._clock.left == 60
    assert ask.panel.answer == {}
    assert "It leads to" not in ask._more.value


def test_series_go_forth_and_back_and_keep_what_was_entered():
    series = ByHand(seed=3)
    assert series.state["of"] == len(by_hand.KINDS)
    first = series.problems[0]
    series.controls[first.labels[0]].value = f"{first.answer[0]:.6g}"
    series.controls["check"].click()
    series._keyboard.press("n")
    series.controls["next"].click()
    series.controls["solution"].click()
    assert series.state == {"at": 2, "of": len(by_hand.KINDS), "done": 2, "right": 1}
    series._keyboard.press("p")
    series.controls["back"].click()
    series.controls["back"].click()  # nothing lies before the first
    assert series.state["at"] == 0
    assert series.controls[first.labels[0]].value == f"{first.answer[0]:.6g}"


def test_every_kernel_can_be_read():
    series = DebugThis()
    for case in debug.cases():
        assert case.promise in series.words
        answered = next(x for x, option in case.question.lettered if option.right)
        series._keyboard.press(" ")
        series._keyboard.press(answered.lower())
        series._keyboard.press("n")
    assert series.state["right"] == len(debug.cases())


def test_static_forms_of_series_hold_every_item():
    words = DebugThis()._repr_mimebundle_()[0]["text/plain"]
    assert all(case.code in words for case in debug.cases())
    page = ByHand()._repr_mimebundle_()[0]["text/html"]
    assert page.count("Worked out") == len(by_hand.KINDS)
    assert "In MiB (2²⁰ bytes)." in page
    with pytest.raises(ValueError, match="no question 'nonsense'"):
        Ask("nonsense")


def test_the_library_finds_words_and_puts_prompts_first():
    library = Library()
    assert len(library.shown) == len(bank().topics[0].questions)
    library.controls["words"].value = "KV cache"
    first, *others = library.shown
    assert "kv cache" in first.prompt.lower()
    assert len(others) > 3
    library.controls["level"].value = "expert"
    assert {question.level for question in library.shown} == {"expert"}
    library.controls["words"].value = "xyzzy"
    assert library.shown == []
    assert "0 of" in library.words
    library.controls["words"].value = ""
    library.controls["topic"].value = "variance"
    assert {question.topic for question in library.shown} == {"variance"}


# --- The static form ---


def test_the_static_form_says_nothing_of_the_reader(clock):
    before = MockInterview()._repr_mimebundle_()[0]
    interview = start(clock)
    interview.controls["answer"].value = "my answer"
    for shown in (interview, MockInterview("expert", 45)):
        data = shown._repr_mimebundle_()[0]
        assert data["text/plain"] == before["text/plain"]
        assert data["text/html"] == before["text/html"]
    assert str(len(bank().questions)) in before["text/plain"]


def test_looking_writes_nothing(folder):
    MockInterview()._repr_mimebundle_()
    assert not folder.exists()


@pytest.mark.parametrize(("level", "minutes"), [("senior", 20), ("onsite", 15)])
def test_another_level_or_length_is_refused(level, minutes):
    with pytest.raises(ValueError, match=r"there are: screen|10, 20 or 45 minutes"):
        MockInterview(level, minutes)


def test_kinds_have_a_name():
    assert set(mock._KINDS) == {"question", "follow-up", "by-hand", "kernel", "code"}
