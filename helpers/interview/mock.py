"""The mock interview on the screen: a lobby, the round, a report."""

from __future__ import annotations

import html
import secrets
import time
from collections.abc import Callable

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.interview import bank as bank_module
from helpers.interview import by_hand, debug, look, markup, panels, record, report_page, rounds
from helpers.interview.clock import ClockFace, Stopwatch
from helpers.interview.keyboard import Keyboard
from helpers.interview.panels import base
from helpers.interview.rounds import Entry, Step
from helpers.interview.store import StoreError
from helpers.practice import style

_KINDS = {
    rounds.QUESTION: "Question",
    rounds.FOLLOW_UP: "Follow-up",
    rounds.BY_HAND: "By hand",
    rounds.KERNEL: "Read a kernel",
    rounds.CODE: "Whiteboard",
}


class MockInterview:
    """A timed round of questions, with a computation, a broken kernel and a coding task.

    level : "screen", "onsite" or "expert"; minutes : 10, 20 or 45: what is chosen at first.
    seed : makes the choice of questions repeatable. now : a clock in seconds, for tests.

    controls : name → widget: "level", "minutes", "start", "resume", "old" in the lobby; "pause",
    "skip", "next", "end" and those of the panel in a round; "report" and "go on" when time is over;
    "again" under a report.
    state : {"at": "lobby", "round" or "report", "step": the step's kind and ref, "left": seconds,
    "running", "answered"}. words : everything on show.

    Everything that is entered is kept at once in the user's data folder, and comes back: see
    `helpers.interview.record`. When time is over the reader decides whether to go on. Raises
    ValueError for another level or length.
    """

    def __init__(
        self,
        level: str = "screen",
        minutes: int = 10,
        seed: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ):
        rounds.levels_of(level, 1)
        if minutes not in rounds.MINUTES:
            raise ValueError(f"minutes={minutes!r}: a round has {_or(rounds.MINUTES)} minutes.")
        self._bank = bank_module.bank()
        self._seed, self._now = seed, now
        self._records = record.Records()
        self._round: record.Round | None = None
        self._panel: panels.Panel | None = None
        self._watch = Stopwatch(now=now)
        self._trouble = ""
        self._skip_asked = -1
        self._overtime = False
        self._keyboard = Keyboard("Mock interview")
        self._clock = ClockFace(self._times)
        self._body = widgets.VBox()
        self._head, self._said, self._hint = base.page(""), base.page(""), base.page("")
        self._controls = {
            "level": self._choice(bank_module.LEVELS, level, "Level"),
            "minutes": self._choice([f"{m} minutes" for m in rounds.MINUTES],
                                    f"{minutes} minutes", "Length"),
            "old": widgets.Dropdown(options=[("choose one", None)], description="Read an old one"),
            "start": self._button("Start", self.start),
            "resume": self._button("Go on with it", self.resume),
            "pause": self._button("Pause", self.pause),
            "skip": self._button("Skip", self.skip),
            "next": self._button("Next", self.next),
            "end": self._button(_END, self._end_by_click),
            "report": self._button("Report", self.end),
            "go on": self._button("Go on anyway", self.go_on),
            "again": self._button("Another round", self.lobby),
        }  # fmt: skip
        bar = widgets.HBox([self._clock, self._controls["pause"], self._controls["end"]])
        self._bar = bar.add_class("iv-top")
        move = widgets.HBox([self._controls["next"], self._controls["skip"]])
        self._move = move.add_class("iv-row")
        self.view = style.panel(
            look.sheet(look.PANELS),
            self._head,
            self._bar,
            self._body,
            self._move,
            self._said,
            self._hint,
            self._keyboard,
        ).add_class("iv-panel")
        self._history: list[record.Round] = []
        self._old_page = base.page("")
        self._controls["old"].observe(self._guarded(self._show_old), "value")
        self._controls["old"].style.description_width = "initial"
        self.lobby()

    # --- What buttons and keys do ---

    def lobby(self) -> None:
        """Choose a level and a length, or go on with a round that was interrupted."""
        self._round = self._panel = None
        self._watch = Stopwatch(now=self._now)
        self._read_history()
        self._show()

    def start(self) -> None:
        """Begin a round."""
        self._overtime = False
        level = self._controls["level"].value
        minutes = int(self._controls["minutes"].value.split()[0])
        seed = secrets.randbits(32) if self._seed is None else self._seed
        steps = rounds.plan(self._bank, level, minutes, seed, record.asked(self._history))
        self._round = self._records.new(level, minutes, steps)
        self._ask(self._round.steps.pop(0))

    def resume(self) -> None:
        """Go on with the newest round that is not finished."""
        self._read_history()  # another notebook may have gone on with it meanwhile
        unfinished = self._unfinished
        if unfinished is None:
            self._show()
            self.say("There is no unfinished round any more.")
            return
        self._round, self._overtime = unfinished, False
        if unfinished.entries:
            self._open(unfinished.entries[-1])
        elif unfinished.steps:
            self._ask(unfinished.steps.pop(0))

    def pause(self) -> None:
        """Stop the clock and cover the question, or go on."""
        (self._watch.stop if self._watch.running else self._watch.start)()
        self._keep()
        self._show()
        self._keyboard.focus()

    def _skip_by_key(self) -> None:
        """Skip when s is pressed twice in a row: a letter that was meant for a text field must not
        take a question away."""
        if self._keyboard.presses == self._skip_asked + 1:
            self.skip()
        else:
            self._skip_asked = self._keyboard.presses
            self.say("Press s again to skip this one.")

    def skip(self) -> None:
        """Leave this step without a score. What was written there stays."""
        self._close(skipped=True)
        self._advance()

    def next(self) -> None:
        """Go on: to a follow-up, to the next step, or to the report."""
        if self._panel.score is None:
            self.say(self._panel.what_is_missing)
            return
        self._close()
        self._advance()

    def _end_by_click(self) -> None:
        button = self._controls["end"]
        if button.description == _END:
            button.description = _END_NOW
        else:
            self.end()

    def end(self) -> None:
        """End the round and show the report."""
        if self._panel is not None:
            self._close()
        self._finish()

    # --- From step to step ---

    @property
    def _entry(self) -> Entry:
        return self._round.entries[-1]

    def _ask(self, step: Step, root: str = "", lead: str = "") -> None:
        self._round.entries.append(Entry(step, root, lead))
        self._open(self._entry)

    def _open(self, entry: Entry) -> None:
        self._panel, self._watch = None, Stopwatch(entry.seconds, self._now)
        try:
            panel = self._make_panel(entry.step, entry.lead)
        except (ValueError, IndexError):
            entry.skipped = True
            self._records.notices.append(f"“{entry.step.ref}” is no longer asked; it was skipped.")
            return self._advance()
        try:
            panel.restore(entry.answer)
        except (KeyError, TypeError, ValueError, OverflowError):
            # Not what this panel ever wrote. It stays in the record as it is; one begins anew.
            entry.skipped, entry.score = True, None
            return self._ask(entry.step, entry.root, entry.lead)
        self._panel = panel
        self._watch.start()
        self._keep()
        self._show()
        return self._keyboard.focus(panel.focus or "panel")

    def _make_panel(self, step: Step, lead: str) -> panels.Panel:
        if step.kind == rounds.QUESTION:
            return panels.Talk(self._bank[step.ref], self._changed, lead)
        if step.kind == rounds.FOLLOW_UP:
            id, _, number = step.ref.partition("#")
            return panels.FollowUp(self._bank[id], int(number), self._changed, lead)
        if step.kind == rounds.BY_HAND:
            return panels.Compute(rounds.problem(step.ref), self._changed)
        if step.kind == rounds.KERNEL:
            return panels.ReadKernel(debug.case(step.ref), self._changed)
        return panels.WriteCode(rounds.coding_task(step.ref), self._changed)

    def _ticked(self, id: str) -> list[int]:
        """The points that the answer to that question had in this round."""
        for entry in self._round.entries:
            if (entry.step.kind, entry.step.ref) == (rounds.QUESTION, id):
                return entry.answer.get("ticked", [])
        return []

    def _close(self, skipped: bool = False) -> None:
        """Take the panel's answer, its score and its time into the record."""
        self._watch.stop()
        self._take()
        if skipped:
            self._entry.skipped, self._entry.score = True, None

    def _take(self) -> None:
        entry = self._entry
        entry.answer = self._panel.answer
        entry.score = self._panel.score
        entry.seconds = self._watch.seconds

    def _advance(self) -> None:
        """Go on from a step that is done: a follow-up if there is time for one, or the next."""
        self._round.steps = rounds.in_time(self._round.steps, self._left / 60)
        follow_up = self._follow_up()
        if not (follow_up or self._round.steps):
            self._finish()
        elif self._left <= 0 and not self._overtime:
            self._stop_at_time()
        elif follow_up:
            self._ask(*follow_up)
        else:
            self._ask(self._round.steps.pop(0))

    def _follow_up(self) -> tuple[Step, str, str] | None:
        """What is asked next about the planned question that this step belongs to.

        Step, root and lead of its entry; None if there is nothing, or no time.
        """
        entry = self._entry
        root = entry.root or (entry.step.ref if entry.step.kind == rounds.QUESTION else "")
        planned = sum(step.minutes for step in self._round.steps)
        if not root or entry.skipped or self._left / 60 < planned + _SHORTEST:
            return None
        done = sum(each.root == root for each in self._entries)
        found = rounds.follow_up(
            self._bank[root],
            self._ticked(root),
            rounds.most_follow_ups(self._round.minutes) - done,
            asked={each.step.ref for each in self._entries},
            planned={step.ref for step in self._round.steps},
        )
        return found and (found[0], root, found[1])

    def _stop_at_time(self) -> None:
        """Time is over: the reader says whether the round is."""
        self._panel = None
        self._keep()
        self._show()
        self._keyboard.focus()

    def go_on(self) -> None:
        """Go on although time is over."""
        self._overtime = True
        self._advance()

    def _finish(self) -> None:
        self._round.finished = True
        self._panel = None
        self._keep()
        self._show()
        self._keyboard.focus()

    # --- Keeping ---

    def _changed(self) -> None:
        """Something was entered in the panel."""
        if self._panel is not None:
            self._keep()
            self._mean_keys()
            self._show_way()

    def _keep(self) -> None:
        """Write the round; if that fails, say so, and try again with the next change."""
        if self._panel is not None:
            self._take()
        try:
            self._records.save(self._round)
            self._trouble = ""
        except StoreError as error:
            self._trouble = f"{error} Until then everything is kept here, as long as it runs."
        self._tell()

    def _read_history(self) -> None:
        try:
            self._history = self._records.all()
            self._trouble = ""
        except StoreError as error:
            self._history, self._trouble = [], str(error)

    @property
    def _unfinished(self) -> record.Round | None:
        return next((each for each in self._history if not each.finished), None)

    # --- What is on show ---

    @property
    def controls(self) -> dict[str, widgets.Widget]:
        if self._round is None:
            names = ["level", "minutes", "start"] + ["resume"] * (self._unfinished is not None)
            names += ["old"] * any(each.finished for each in self._history)
        elif self._round.finished:
            names = ["again"]
        elif self._panel is None:
            names = ["report", "go on"]
        else:
            names = ["pause", "skip", "next", "end"]
        own = {name: self._controls[name] for name in names}
        return {**own, **(self._panel.controls if self._panel else {})}

    @property
    def state(self) -> dict:
        at = "lobby" if self._round is None else "report" if self._round.finished else "round"
        return {
            "at": at,
            "step": (self._entry.step.kind, self._entry.step.ref) if self._panel else None,
            "left": self._left if self._round else None,
            "running": self._watch.running,
            "answered": sum(each.score is not None for each in self._entries),
        }

    @property
    def _entries(self) -> list[Entry]:
        return self._round.entries if self._round else []

    @property
    def words(self) -> str:
        if self._round is None:
            return _lobby_words(self._bank)
        if self._round.finished:
            return report_page.text(self._report_of(self._round), self._round)
        if self._panel is None:
            return self._over
        covered = "Paused." if not self._watch.running else self._panel.words
        return f"{self._title}\n{covered}"

    @property
    def _over(self) -> str:
        count = len(self._round.steps)
        left = f"{count} planned step{'s are' if count != 1 else ' is'} left" if count else ""
        return f"The {self._round.minutes} minutes are over{', and ' * bool(left)}{left}."

    def _report_of(self, round: record.Round) -> rounds.Report:
        return rounds.report(round.entries, len(round.steps), self._bank)

    @property
    def _left(self) -> float:
        before = sum(entry.seconds for entry in self._entries[:-1])
        return self._round.minutes * 60 - before - self._watch.seconds

    def _times(self) -> dict:
        if self._panel is None:
            return {"left": 0.0, "spent": 0.0, "planned": 0.0, "running": False}
        return {
            "left": self._left,
            "spent": self._watch.seconds,
            "planned": self._entry.step.minutes * 60,
            "running": self._watch.running,
        }

    @property
    def _title(self) -> str:
        entry, more = self._entry, len(self._round.steps)
        kind = _KINDS[rounds.FOLLOW_UP if entry.lead else entry.step.kind]
        plan = f"{more} more planned" if more else "the last one planned"
        return f"{kind} · step {len(self._entries)}, {plan}"

    def _show(self) -> None:
        in_round = self._panel is not None
        base.show(self._bar, in_round)
        base.show(self._move, in_round and self._watch.running)
        if self._round is None:
            self._show_lobby()
        elif in_round:
            self._head.value = base.title(self._title)
            paused = base.page("<p>Paused. The question is covered, and everything is kept.</p>")
            self._body.children = [self._panel.view if self._watch.running else paused]
        elif self._round.finished:
            self._head.value = base.title("Report")
            page = report_page.page(self._report_of(self._round), self._round, self._bank)
            self._body.children = [base.page(page), widgets.HBox([self._controls["again"]])]
        else:
            self._head.value = base.title("Time")
            row = widgets.HBox([self._controls["report"], self._controls["go on"]])
            self._body.children = [base.page(f"<p>{self._over}</p>"), row.add_class("iv-row")]
        self._controls["end"].description = _END
        self._controls["pause"].description = "Pause" if self._watch.running else "Go on"
        self._clock.refresh()
        self._show_way()
        self._mean_keys()
        self._tell()

    def _show_lobby(self) -> None:
        self._head.value = base.title("Mock interview")
        parts = [base.page(f"<p>{html.escape(_LOBBY)}</p>")]
        style.mark(self._controls["start"], "iv-main", self._unfinished is None)
        style.mark(self._controls["resume"], "iv-main", self._unfinished is not None)
        if round := self._unfinished:
            parts += [
                base.page(f"<p>{html.escape(report_page.unfinished(round))}</p>"),
                widgets.HBox([self._controls["resume"]]).add_class("iv-row"),
            ]
        parts += [
            self._controls["level"],
            self._controls["minutes"],
            widgets.HBox([self._controls["start"]]).add_class("iv-row"),
            base.page(report_page.history(self._history, self._records.folder)),
        ]
        if finished := [each for each in self._history if each.finished]:
            choices = [(report_page.named(each), each.id) for each in finished]
            self._controls["old"].options = [("choose one", None), *choices]
            parts += [self._controls["old"], self._old_page]
        self._body.children = parts

    def _show_old(self) -> None:
        """Show the report of the old round that is chosen."""
        chosen = next((r for r in self._history if r.id == self._controls["old"].value), None)
        page = ""
        if chosen is not None:
            page = report_page.page(self._report_of(chosen), chosen, self._bank)
        self._old_page.value = f'<div class="abh">{page}</div>'

    def _show_way(self) -> None:
        """Colour the button that leads on: Next once there is a score, the panel's own before."""
        if self._panel is None:
            return
        style.mark(self._controls["next"], "iv-main", self._panel.is_done)
        style.mark(self._panel.main, "iv-main", not self._panel.is_done)

    def _mean_keys(self) -> None:
        """Give the keys the meaning that they have now, and say it."""
        if self._panel is None:
            if self._round is None and self._unfinished is not None:
                what, action = "goes on with it", self.resume
            elif self._round is None:
                what, action = "starts", self.start
            elif self._round.finished:
                what, action = "leads to another round", self.lobby
            else:
                what, action = "shows the report", self.end
            self._keyboard.mean({"n": self._guarded(action)})
            self._hint.value = base.keys_line("Tab and Space choose", f"n {what}")
            return
        if not self._watch.running:
            self._keyboard.mean({"p": self._guarded(self.pause)})
            self._hint.value = base.keys_line("p goes on")
            return
        own = {"n": self.next, "p": self.pause, "s": self._skip_by_key}
        self._keyboard.mean(
            {**self._panel.keys, **{key: self._guarded(action) for key, action in own.items()}}
        )
        self._hint.value = base.keys_line(
            self._panel.say_keys, "n next", "s s skips", "p pauses", "Esc leaves a field"
        )

    def say(self, text: str) -> None:
        """Say something under the panel, until the next change."""
        self._said.value = style.live(markup.html(text))

    def _tell(self) -> None:
        """What the reader must know about keeping."""
        notices = [*self._records.notices, *([self._trouble] if self._trouble else [])]
        text = " ".join(html.escape(each) for each in notices)
        self._said.value = style.live(text, "no" if self._trouble else "")

    def _guarded(self, action: Callable[[], object]) -> Callable[..., None]:
        return style.guarded(action, self.say)

    def _button(self, description: str, action: Callable[[], object]) -> widgets.Button:
        button = widgets.Button(description=description)
        button.on_click(self._guarded(action))
        return button

    @staticmethod
    def _choice(options, value, description: str) -> widgets.ToggleButtons:
        return widgets.ToggleButtons(
            options=list(options), value=value, description=description
        ).add_class("iv-choice")

    def _repr_mimebundle_(self, include=None, exclude=None):
        # Not what is going on: the same in every run, whatever a reader's history is.
        words = _lobby_words(self._bank)
        lines = "".join(f"<p>{html.escape(line)}</p>\n" for line in words.split("\n"))
        return mimebundle(self.view, words, html=lines)


_END, _END_NOW = "End the round", "Really end it"
_SHORTEST = 0.5  # minutes that a follow-up needs at least
_LOBBY = (
    "Say your answers aloud, as you would there; then look at the points that a good answer has, "
    "and tick what yours had. Be strict: nobody else sees it. A second try counts half; a hint or "
    "a failed check costs a little. Time is shown; when it is over, you decide whether to go on. "
    "Everything you enter is kept as you enter it."
)


def _lobby_words(bank: bank_module.Bank) -> str:
    return (
        f"Mock interview: rounds of {_or(rounds.MINUTES)} minutes at the level "
        f"{_or(bank_module.LEVELS)}, from {len(bank.questions)} questions with their follow-ups, "
        f"{len(by_hand.KINDS)} kinds of computation by hand, {len(debug.cases())} functions to "
        f"diagnose and {len(rounds.coding_tasks())} coding tasks.\n{_LOBBY}\n"
        "It is live where this notebook runs."
    )


def _or(items) -> str:
    *most, last = map(str, items)
    return f"{', '.join(most)} or {last}"
