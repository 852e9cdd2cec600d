"""The one-page cheat sheet: the formula, the derivation, the numbers to remember.

    from helpers.interview.sheet import CheatSheet
    CheatSheet()                          # in a notebook, with a button that saves the page
    python -m helpers.interview sheet     # in a terminal

Its text is in `sheet.toml`; the sixty-second answers are the points of the question bank. The page
is one HTML file that needs no network; printed from a browser it fills one sheet, A4 or US letter.
"""

from __future__ import annotations

import html
from pathlib import Path

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.interview import markup, saving, sheet_data, sheet_page
from helpers.interview.bank import Bank, bank, link, place
from helpers.interview.sheet_data import Sheet, sheet
from helpers.practice import style

NAME = "attention-cheat-sheet.html"
_THEN = "Open it in a browser; it prints on one page, A4 or US letter."

page = sheet_page.page


def save(path: str | Path = NAME) -> Path:
    """Write the page to a file, replacing one that is there. Returns its absolute path.

    Raises `saving.SaveError` where that cannot be.
    """
    return saving.write(path, page().encode("utf-8"))


class CheatSheet:
    """The cheat sheet in a notebook: to read, and to save as a page that prints well.

    controls : "save", the button that writes `attention-cheat-sheet.html` into the working folder.
    state : {"saved": the path of that file, "" before}. words : the sheet, and what the button
    said.
    """

    def __init__(self):
        self._saver = saving.SaveButton("Save as a page to print", NAME, save, _THEN)
        sheet_view = widgets.HTML(sheet_page.fragment())
        self.view = style.panel(self._saver.view, sheet_view)

    @property
    def controls(self) -> dict[str, widgets.Widget]:
        return {"save": self._saver.button}

    @property
    def state(self) -> dict:
        return {"saved": str(self._saver.saved or "")}

    @property
    def words(self) -> str:
        return "\n\n".join(filter(None, [in_words(), self._saver.words]))

    def _repr_mimebundle_(self, include=None, exclude=None):
        return mimebundle(self.view, in_words(), html=as_html())


# --- Without a kernel ---

_TD = '<td style="text-align: left">'  # JupyterLab sets cells to the right; others drop the style

_SAVES = (
    f"Where this notebook runs, a button saves it as {NAME}, a page that prints on one sheet of "
    "paper; or: `python -m helpers.interview sheet`."
)


def as_html(of: Sheet | None = None, questions: Bank | None = None) -> str:
    """The sheet for a static viewer that sets formulas between dollars, without any style."""
    of, questions = of or sheet(), questions or bank()
    text = markup.html
    shapes = _table([(each.name, each.shape, each.words) for each in of.shapes])
    steps = _table([(step.formula, step.because) for step in of.steps])
    numbers = "".join(
        f"<tr>{_TD}{text(number.ask)}</td>{_TD}{text(number.say)}</td>"
        f'{_TD}<a href="{number.link}">{text(number.place)}</a></td></tr>'
        for number in of.numbers
    )
    minutes = "".join(
        f"<h4>{text(question.prompt)}</h4>{markup.bullets(question.points)}"
        for question in sheet_data.minutes(of, questions)
    )
    where = f'<a href="{link(of.lesson, of.section)}">{text(place(of.lesson, of.section))}</a>'
    return "\n".join(
        [
            f"<h3>{text(of.title)}</h3>",
            f"<p>{text(f'${of.tex}$')}</p>{shapes}<p>{text(of.formula_note)}</p>",
            f"<h4>{text(of.derivation_title)}</h4><p>{text(of.given)}</p>{steps}",
            f"<p>{text(of.therefore)} ({where})</p>",
            f"<p><strong>Where this is only half true</strong></p>{markup.bullets(of.half_true)}",
            f"<h4>{text(of.code_title)}</h4>",
            f"<pre><code>{html.escape(of.code, quote=False)}</code></pre>",
            f"<p>{text(of.code_note)}</p>",
            f"<h4>{text(of.traps_title)}</h4>{markup.bullets(of.traps)}",
            f"<h4>{text(of.numbers_title)}</h4><table>{numbers}</table>",
            f"<h3>{text(of.minutes_title)}</h3>{minutes}",
            f"<p>{text(_SAVES)}</p>",
        ]
    )


def _table(rows) -> str:
    cells = ("".join(f"{_TD}{markup.html(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def in_words(of: Sheet | None = None, questions: Bank | None = None) -> str:
    """The sheet for a terminal and a screen reader."""
    of, questions = of or sheet(), questions or bank()
    text = markup.plain
    lines = [
        text(of.title),
        f"  {markup.in_words(of.tex)}",
        *(f"  {text(e.name)}  {text(e.shape)}: {text(e.words)}" for e in of.shapes),
        f"  {text(of.formula_note)}",
        "",
        text(of.derivation_title),
        f"  {text(of.given)}",
        *(f"  {text(step.formula)}  ({text(step.because)})" for step in of.steps),
        f"  {text(of.therefore)}",
        *(f"  Only half true: {text(each)}" for each in of.half_true),
        "",
        text(of.code_title),
        *(f"  {line}" for line in of.code.splitlines()),
        f"  {text(of.code_note)}",
        "",
        text(of.traps_title),
        *(f"  - {text(each)}" for each in of.traps),
        "",
        text(of.numbers_title),
        *(f"  {text(n.ask)}: {text(n.say)} ({n.place})" for n in of.numbers),
        "",
        text(of.minutes_title),
    ]
    for question in sheet_data.minutes(of, questions):
        lines += [f"  {text(question.prompt)}", *(f"  - {text(each)}" for each in question.points)]
    return "\n".join(lines)
