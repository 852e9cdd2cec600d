"""The drill on the screen: a problem, fields to fill in, and what is said about each row."""

from __future__ import annotations

import html
import re

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.practice import drill, drill_words, grading, style

_FORMULA = {
    "scores": "q · k for each key",
    "scaled": "scores ÷ √d_k",
    "weights": "e to the power of each scaled score, divided by the sum of these",
    "output": "the rows of V, each times its weight, added up",
}
_ROLE = {"scores": "scores", "scaled": "scores", "weights": "weights", "output": "output"}
_SIGN = {"right": "✓ ", "wrong": "✗ ", "unreadable": "? ", "carried": "↳ ", "blank": ""}
_LOOK = {"right": "abh-chosen-right", "wrong": "abh-chosen-wrong", "unreadable": "abh-chosen-wrong"}


class _Sheet:
    """One problem with its fields. It is kept when another is shown, so nothing typed is lost."""

    def __init__(self, problem: drill.Problem, on_commit):
        self.problem = problem
        self.solution_shown = False
        self.status = ("", "")  # words, kind
        self.fields: dict[str, list[widgets.Text]] = {
            step: [self._field(on_commit) for _ in range(problem.width(step))]
            for step in drill.STEPS
        }
        self.notes = {step: widgets.HTML(style.live("")) for step in drill.STEPS}
        self.rows = [self._row(step) for step in drill.STEPS]
        self.show_marks()

    @staticmethod
    def _field(on_commit) -> widgets.Text:
        field = widgets.Text(continuous_update=False, style={"description_width": "initial"})
        field.add_class("abh-entry")
        field.observe(on_commit, "value")
        return field

    def _row(self, step: str) -> widgets.VBox:
        heading = (
            f'<div class="abh"><span class="abh-word abh-role-{_ROLE[step]}">{step}</span> '
            f'<span class="abh-quiet">{_FORMULA[step]}</span></div>'
        )
        entries = widgets.HBox(self.fields[step])
        entries.add_class("abh-entries")
        row = widgets.VBox([widgets.HTML(heading), entries, self.notes[step]])
        row.add_class("abh-step")
        return row

    @property
    def typed(self) -> dict[str, list[str]]:
        return {step: [field.value for field in fields] for step, fields in self.fields.items()}

    @property
    def named_fields(self) -> dict[str, widgets.Text]:
        return {
            f"{drill.ENTRY[step]} {j}": field
            for step, fields in self.fields.items()
            for j, field in enumerate(fields, start=1)
        }

    def show_marks(self) -> dict[str, grading.Graded]:
        """Grade what is typed and show it beside each field and under each row."""
        graded = grading.grade(self.problem, self.typed)
        for step, fields in self.fields.items():
            for j, (field, mark) in enumerate(zip(fields, graded[step].marks, strict=True), 1):
                field.description = f"{_SIGN[mark]}{drill.ENTRY[step]} {j}"
                for look in set(_LOOK.values()):
                    add = _LOOK.get(mark) == look
                    style.mark(field, look, add)
            row = graded[step]
            is_off = {"wrong", "unreadable"} & set(row.marks)
            kind = "yes" if row.is_right else "no" if is_off else ""
            lines = "".join(f"<div>{style.rich(line)}</div>" for line in row.sentences)
            self.notes[step].value = style.live(lines, kind)
        return graded


class Drill:
    """Attention worked out by hand, checked number by number; another problem for every seed.

    seed : number of the first problem, from 0; the same seed gives the same problem anywhere.
    problem : the one on show. controls : name → widget: "score 1", "scaled 1", "weight 1",
    "output 1" and so on, and "check", "back", "another", "solution". state : {"seed", "typed",
    "marks", "solved", "solution_shown"}. words : the problem and all that is said about answers.
    """

    def __init__(self, seed: int = 0):
        self._first = drill.make(seed).seed
        self._sheets: dict[int, _Sheet] = {}
        self._title, self._status, self._solution = (widgets.HTML() for _ in range(3))
        self._rows = widgets.VBox()
        self._buttons = {
            "check": widgets.Button(description="Check"),
            "solution": widgets.Button(),
            "back": widgets.Button(description="Back"),
            "another": widgets.Button(description="Give me another"),
        }
        for name, action in (
            ("check", self.check),
            ("solution", self.toggle_solution),
            ("back", self.back),
            ("another", self.another),
        ):
            self._buttons[name].on_click(style.guarded(action, self._say))
        buttons = widgets.HBox(list(self._buttons.values()))
        buttons.add_class("abh-entries")
        self.view = style.panel(self._title, self._rows, self._status, buttons, self._solution)
        self._open(seed)

    # --- What the buttons and fields do ---

    def check(self) -> None:
        """Grade everything and say how much is right, and what is missing."""
        self._tell(name_blanks=True)

    def _tell(self, name_blanks: bool) -> None:
        graded = self._sheet.show_marks()
        marks = [mark for step in drill.STEPS for mark in graded[step].marks]
        rights = marks.count("right")
        if rights == len(marks):
            return self._say(f"✓ All {rights} numbers are right.", "yes")
        sentence = f"{rights} of {len(marks)} numbers are right."
        names = zip(self._sheet.named_fields, marks, strict=True)
        blank = [name for name, mark in names if mark == "blank"]
        if blank and name_blanks:
            sentence += f" Still empty: {', '.join(blank)}."
        return self._say(sentence)

    def toggle_solution(self) -> None:
        """Show the worked solution, or hide it."""
        self._sheet.solution_shown = not self._sheet.solution_shown
        self._show_solution()

    def back(self) -> None:
        """The problem before, with everything typed there."""
        if self._seed > self._first:
            self._open(self._seed - 1)

    def another(self) -> None:
        """The next problem. What is typed in this one stays, and Back leads to it."""
        self._open(self._seed + 1)

    def _committed(self, _change) -> None:
        """Enter, or leaving the field, checks what was typed."""
        style.guarded(lambda: self._tell(name_blanks=False), self._say)()

    # --- What is on show ---

    @property
    def _sheet(self) -> _Sheet:
        return self._sheets[self._seed]

    @property
    def problem(self) -> drill.Problem:
        return self._sheet.problem

    @property
    def controls(self) -> dict[str, widgets.Widget]:
        return {**self._sheet.named_fields, **self._buttons}

    @property
    def state(self) -> dict:
        graded = grading.grade(self.problem, self._sheet.typed)
        return {
            "seed": self._seed,
            "typed": self._sheet.typed,
            "marks": {step: list(row.marks) for step, row in graded.items()},
            "solved": all(row.is_right for row in graded.values()),
            "solution_shown": self._sheet.solution_shown,
        }

    @property
    def words(self) -> str:
        graded = grading.grade(self.problem, self._sheet.typed)
        said = [f"{step}: {line}" for step in drill.STEPS for line in graded[step].sentences]
        solution = [_solution_text(self.problem)] if self._sheet.solution_shown else []
        return "\n".join(
            [_problem_text(self.problem), *said, *solution, self._sheet.status[0]]
        ).strip()

    def _open(self, seed: int) -> None:
        if seed not in self._sheets:
            self._sheets[seed] = _Sheet(drill.make(seed), self._committed)
        self._seed = seed
        self._title.value = f'<div class="abh">{_problem_html(self.problem)}</div>'
        self._rows.children = self._sheet.rows
        self._buttons["back"].disabled = seed == self._first
        self._say(*self._sheet.status)
        self._show_solution()

    def _say(self, words: str, kind: str = "") -> None:
        self._sheet.status = (words, kind)
        self._status.value = style.live(style.rich(words), kind)

    def _show_solution(self) -> None:
        shown = self._sheet.solution_shown
        verb = "Hide" if shown else "Show"
        self._buttons["solution"].description = f"{verb} the worked solution"
        self._solution.value = (
            f'<div class="abh">{_solution_html(self.problem)}</div>' if shown else ""
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        first = drill.make(self._first)  # not what was typed since: the same in every run
        page = _problem_html(first) + style.folded("Worked solution", _solution_html(first))
        return mimebundle(self.view, _problem_text(first), html=page)


# --- A problem as text and as a page ---


def _title(problem: drill.Problem) -> str:
    return f"Attention by hand, problem {problem.seed}"


def _matrices(problem: drill.Problem):
    """(letter, size, what its rows are called, its entries as text, the row asked for)"""
    for letter, name, rows, chosen in (
        ("Q", "query", problem.q, problem.row),
        ("K", "key", problem.k, None),
        ("V", "value", problem.v, None),
    ):
        entries = [[drill_words.shown(x, 0) for x in row] for row in rows]
        yield letter, f"{len(rows)}×{len(rows[0])}", name, entries, chosen


def _problem_text(problem: drill.Problem) -> str:
    tables = []
    for letter, size, name, entries, chosen in _matrices(problem):
        rows = [
            [f"{'→ ' if i == chosen else '  '}{name} {i + 1}", *row]
            for i, row in enumerate(entries)
        ]
        tables.append(style.text_table(f"  {letter} ({size})", rows))
    return "\n".join([f"{_title(problem)}.", drill_words.task(problem), "", style.beside(*tables)])


def _problem_html(problem: drill.Problem) -> str:
    tables = "".join(
        style.html_table(
            f"{letter} ({size})",
            entries,
            chosen=chosen,
            heads=[f"{'→ ' if i == chosen else ''}{name} {i + 1}" for i in range(len(entries))],
            role=letter,
        )
        for letter, size, name, entries, chosen in _matrices(problem)
    )
    return (
        f'<p class="abh-title"><strong>{_title(problem)}</strong></p>\n'
        f"<p>{style.rich(drill_words.task(problem))}</p>\n"
        f'<div class="abh-tables">{tables}</div>\n'
    )


def _solution_text(problem: drill.Problem) -> str:
    return "\n".join(
        "\n".join([f"{step}:", *(f"  {line}" for line in lines)])
        for step, lines in drill_words.worked(problem)
    )


def _solution_html(problem: drill.Problem) -> str:
    steps = "".join(
        f'<p><strong class="abh-word abh-role-{_ROLE[step]}">{step}</strong><br>'
        + "<br>".join(_powers(line) for line in lines)
        + "</p>"
        for step, lines in drill_words.worked(problem)
    )
    return f'<div class="abh-worked">{steps}</div>'


def _powers(line: str) -> str:
    return re.sub(r"e\^\(([^)]*)\)", r"e<sup>\1</sup>", html.escape(line))
