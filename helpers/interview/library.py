"""The question bank to leaf through: by topic, by level, by word."""

from __future__ import annotations

import html

import ipywidgets as widgets

from helpers.explorers.live import mimebundle
from helpers.interview import bank as bank_module
from helpers.interview import look, markup
from helpers.interview.bank import Question
from helpers.interview.panels import base, talk
from helpers.practice import style

_ALL = "all"


class Library:
    """All questions; a click on one unfolds its points, its answer, and what it leads to.

    controls : "topic", "level", "words" (shows questions that hold all of these words). state :
    {"shown": ids}. words : what is on show, in words.
    """

    def __init__(self):
        self._bank = bank_module.bank()
        topics = [("all topics", _ALL), *((topic.title, topic.id) for topic in self._bank.topics)]
        levels = [("all levels", _ALL), *((level, level) for level in bank_module.LEVELS)]
        self.controls = {
            "topic": widgets.Dropdown(options=topics, value=self._bank.topics[0].id,
                                      description="Topic"),
            "level": widgets.Dropdown(options=levels, value=_ALL, description="Level"),
            "words": widgets.Text(description="Words", placeholder="such as: bfloat16"),
        }  # fmt: skip
        for control in self.controls.values():
            control.observe(style.guarded(self._show, self._say), "value")
        self._count, self._list = base.page(""), base.page("")
        self.view = style.panel(
            look.sheet(look.PANELS),
            widgets.HBox(list(self.controls.values())).add_class("iv-filters"),
            self._count,
            self._list,
        ).add_class("iv-panel")
        self._show()

    @property
    def shown(self) -> list[Question]:
        """The questions that fit what is chosen; words are looked for in all topics."""
        topic, level = self.controls["topic"].value, self.controls["level"].value
        wanted = self.controls["words"].value.lower().split()
        found = self._bank.select(
            bank_module.LEVELS if level == _ALL else [level],
            () if topic == _ALL or wanted else [topic],
        )
        hits = [q for q in found if all(word in _searched(q) for word in wanted)]
        # Those whose own words hold what is looked for come first.
        return sorted(hits, key=lambda q: not all(word in _prompt(q) for word in wanted))

    @property
    def state(self) -> dict:
        return {"shown": [question.id for question in self.shown]}

    @property
    def words(self) -> str:
        return "\n".join([self._said, *(markup.plain(question.prompt) for question in self.shown)])

    @property
    def _said(self) -> str:
        count, whole = len(self.shown), len(self._bank.questions)
        everywhere = ", all topics searched" * bool(self.controls["words"].value.split())
        return f"{count} of {whole} questions{everywhere}"

    def _show(self) -> None:
        self._say(self._said)
        self._list.value = f'<div class="abh iv-library">{"".join(map(_entry, self.shown))}</div>'

    def _say(self, text: str) -> None:
        self._count.value = style.live(html.escape(text))

    def _repr_mimebundle_(self, include=None, exclude=None):
        questions = self._bank.questions
        lines = [f"{len(questions)} questions on {len(self._bank.topics)} topics."]
        pages = [f"<p>{lines[0]}</p>"]
        for topic in self._bank.topics:
            lines += ["", topic.title]
            lines += [f"  {markup.plain(q.prompt)} ({q.level})" for q in topic.questions]
            entries = "\n".join(map(_short_entry, topic.questions))
            pages.append(f"<hr>\n<p><strong>{html.escape(topic.title)}</strong></p>\n{entries}")
        return mimebundle(self.view, "\n".join(lines), html="\n".join(pages))


def _prompt(question: Question) -> str:
    return f"{question.id} {question.prompt} {markup.plain(question.prompt)}".lower()


def _searched(question: Question) -> str:
    texts = bank_module.texts_of(question)
    return " ".join([question.id, *texts, *map(markup.plain, texts)]).lower()


def _entry(question: Question) -> str:
    """A question that unfolds, with everything about it."""
    return (
        f"<details><summary>{markup.html(question.prompt)} "
        f'<span class="abh-quiet">{question.level}</span></summary>'
        f'<p class="iv-head">A good answer has</p>{markup.bullets(question.points)}'
        f"{talk.model_answer(question)}"
        f"{talk.leads_to(question)}"
        f'<p class="abh-quiet">To answer it aloud: <code>interview.Ask("{question.id}")</code></p>'
        "</details>"
    )


def _short_entry(question: Question) -> str:
    """The same for a page without a kernel: points and answer."""
    return (
        f"<details><summary>{markup.html(question.prompt)} ({question.level})</summary>\n"
        f"{markup.bullets(question.points)}<p>{markup.html(question.answer)}</p>"
        f"<p>{html.escape(question.place)}</p></details>"
    )
