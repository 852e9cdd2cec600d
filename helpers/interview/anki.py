r"""The question bank and the numbers of the cheat sheet as a deck for Anki.

    python -m helpers.interview anki       # writes attention-interview.apkg

Anki tells notes apart by their guid, and ours comes from the question's id alone: whoever imports
a newer export gets the mended texts and keeps what Anki knows of each card. Formulas are in the
form that Anki sets itself, between \( and \).
"""

from __future__ import annotations

import hashlib
import html
import io
from pathlib import Path

import genanki
import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.interview import markup, saving
from helpers.interview.bank import Bank, FollowUp, Question, bank
from helpers.interview.sheet_data import Number, Sheet, sheet
from helpers.practice import style

NAME = "attention-interview.apkg"
DECK = "Attention interview"
NUMBERS = "Numbers to remember"

_CSS = """
.card { font-family: -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-size: 18px; line-height: 1.5; text-align: left; color: #1f2430; background: #ffffff;
  max-width: 40em; margin: 0 auto; padding: 0.6em 1em 1.5em; }
.question { font-size: 1.15em; font-weight: 600; }
hr { border: none; border-top: 1px solid #c9ced8; margin: 1em 0; }
h2 { font-size: 0.95em; font-weight: 600; color: #5b6270; margin: 1.1em 0 0.3em; }
ul { margin: 0; padding-left: 1.2em; }
li { margin-bottom: 0.25em; }
p { margin: 0 0 0.5em; }
dl { margin: 0; }
dt { font-style: italic; margin-top: 0.5em; }
dd { margin: 0 0 0 1.2em; }
code { font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 0.88em;
  background: #eef0f4; padding: 0.05em 0.3em; border-radius: 3px; }
details summary { cursor: pointer; color: #5b6270; margin-top: 0.9em; }
.where { color: #5b6270; font-size: 0.85em; margin-top: 1.3em; }
.nightMode.card, .night_mode.card, .nightMode .card { color: #e6e8ee; background: #23262d; }
.nightMode h2, .nightMode summary, .nightMode .where,
.night_mode h2, .night_mode summary, .night_mode .where { color: #a9b1c0; }
.nightMode hr, .night_mode hr { border-top-color: #4a505c; }
.nightMode code, .night_mode code { background: #343943; color: inherit; }
"""

_FRONT = '<div class="question">{{Question}}</div>'
_QUESTION_BACK = f"""{_FRONT}
<hr id="answer">
<h2>A good answer has</h2>
{{{{Points}}}}
<details open><summary>Aloud, in a minute</summary>{{{{Answer}}}}</details>
<details><summary>What weak answers say</summary>{{{{Weak answers}}}}</details>
<details><summary>What is asked next</summary>{{{{Follow-ups}}}}</details>
<div class="where">{{{{Where}}}}</div>"""
_NUMBER_BACK = f"""{_FRONT}
<hr id="answer">
{{{{Answer}}}}
<div class="where">{{{{Where}}}}</div>"""


def _id(name: str) -> int:
    """A number for Anki that depends on the name alone, in the range that it uses for its own."""
    digest = hashlib.sha256(f"attention-by-hand/{name}".encode()).digest()
    return (1 << 30) + int.from_bytes(digest[:4], "big") % (1 << 30)


def _guid(kind: str, id: str) -> str:
    """What Anki knows a note by. Never change this: learners' history hangs on it."""
    return genanki.guid_for("attention-by-hand", kind, id)


def _model(name: str, fields: list[str], back: str) -> genanki.Model:
    return genanki.Model(
        _id(f"model/{name}"),
        name,
        fields=[{"name": field} for field in fields],
        templates=[{"name": "Card", "qfmt": _FRONT, "afmt": back}],
        css=_CSS,
    )


QUESTION = _model(
    "Attention interview: question",
    ["Question", "Points", "Answer", "Weak answers", "Follow-ups", "Where"],
    _QUESTION_BACK,
)
NUMBER = _model("Attention interview: number", ["Question", "Answer", "Where"], _NUMBER_BACK)


def export(
    path: str | Path = NAME, questions: Bank | None = None, numbers: Sheet | None = None
) -> Path:
    """Write the .apkg, replacing one that is there. Returns its absolute path.

    questions, numbers : another bank and sheet than the series' own. The notes depend on the texts
    alone; only Anki's time of change, by which it tells a newer export, is the time of this call.

    Raises `saving.SaveError` if the file cannot be written.
    """
    held = io.BytesIO()
    genanki.Package(decks(questions or bank(), numbers or sheet())).write_to_file(held)
    return saving.write(path, held.getvalue())


def decks(questions: Bank, numbers: Sheet) -> list[genanki.Deck]:
    """A deck for each topic, and one for the numbers, under one parent."""
    found = []
    for topic in questions.topics:
        deck = genanki.Deck(_id(f"deck/{topic.id}"), f"{DECK}::{markup.plain(topic.title)}")
        for place, question in enumerate(topic.questions, start=1):
            deck.add_note(_question_note(question, questions, place))
        found.append(deck)
    deck = genanki.Deck(_id("deck/numbers-to-remember"), f"{DECK}::{NUMBERS}")
    for place, number in enumerate(numbers.numbers, start=1):
        deck.add_note(_number_note(number, place))
    return [*found, deck]


def _question_note(question: Question, questions: Bank, place: int) -> genanki.Note:
    """place : which one of its deck it is, so that new cards come in the bank's order."""
    return genanki.Note(
        QUESTION,
        [
            markup.anki(question.prompt),
            markup.bullets(question.points, markup.anki),
            _paragraphs(question.answer),
            _pairs((f"“{weak.says}”", weak.because) for weak in question.weak),
            _pairs(_asked(each, questions) for each in question.follow_ups),
            html.escape(question.place, quote=False),
        ],
        guid=_guid("question", question.id),
        tags=[f"level::{question.level}", f"topic::{question.topic}"],
        due=place,
    )


def _number_note(number: Number, place: int) -> genanki.Note:
    return genanki.Note(
        NUMBER,
        [
            markup.anki(number.ask),
            markup.anki(number.say),
            html.escape(number.place, quote=False),
        ],
        guid=_guid("number", number.id),
        tags=["level::screen", "topic::numbers"],
        due=place,
    )


def _asked(follow_up: FollowUp, questions: Bank) -> tuple[str, str]:
    if follow_up.to:
        return questions[follow_up.to].prompt, "This question has a card of its own."
    return follow_up.ask, follow_up.answer


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{markup.anki(each)}</p>" for each in text.split("\n\n"))


def _pairs(pairs) -> str:
    """What is said or asked, and under it what is said about that."""
    entries = (f"<dt>{markup.anki(a)}</dt><dd>{markup.anki(b)}</dd>" for a, b in pairs)
    return f"<dl>{''.join(entries)}</dl>"


# --- In a notebook ---

_THEN = (
    "Open it with Anki (File → Import). Import a later export the same way: the texts are "
    "updated, and what Anki knows of your cards stays."
)


class AnkiExport:
    """A button that writes the deck for Anki.

    controls : "export", the button that writes `attention-interview.apkg` into the working folder.
    state : {"saved": the path of that file, "" before}. words : what it is, and what the button
    said.
    """

    def __init__(self):
        self._saver = saving.SaveButton("Export for Anki", NAME, export, _THEN)
        about = widgets.HTML(f'<div class="abh"><p>{markup.html(_about())}</p></div>')
        self.view = style.panel(about, self._saver.view)

    @property
    def controls(self) -> dict[str, widgets.Widget]:
        return {"export": self._saver.button}

    @property
    def state(self) -> dict:
        return {"saved": str(self._saver.saved or "")}

    @property
    def words(self) -> str:
        return "\n".join(filter(None, [markup.plain(_about()), self._saver.words]))

    def _repr_mimebundle_(self, include=None, exclude=None):
        said = f"{_about()} {_HOW}"
        return mimebundle(self.view, markup.plain(said), html=f"<p>{markup.html(said)}</p>")


_HOW = (
    f"Where this notebook runs, a button writes them as {NAME}; or: "
    f"`python -m helpers.interview anki`. {_THEN}"
)


def _about() -> str:
    return (
        f"All {len(bank().questions)} questions and the {len(sheet().numbers)} numbers of the "
        "cheat sheet as cards for Anki, in a deck for each topic."
    )
