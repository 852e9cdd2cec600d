"""What a round came to, and what rounds there were, in words and as a page."""

from __future__ import annotations

import html
from pathlib import Path

from helpers.interview import markup, rounds
from helpers.interview.bank import Bank
from helpers.interview.panels.talk import where
from helpers.interview.record import Round
from helpers.interview.rounds import Entry, Report

_MOST = 10  # rounds that the lobby lists


def _lines(report: Report, round: Round) -> list[str]:
    """The report's sentences, but for what to read."""
    if report.score is None:
        return ["Nothing was scored in this round, so there is nothing to report."]
    steps = f"{report.scored} step{'s' * (report.scored != 1)}"
    others = [(report.skipped, "skipped"), (report.unreached, "not reached")]
    rest = "".join(f", {count} {what}" for count, what in others if count)
    lines = [
        f"Score {report.score:.0%} over {steps}{rest}. Longer steps count more. Level "
        f"{round.level}, {_minutes(report.seconds)} of {round.minutes} minutes used."
    ]
    if report.pace is not None:
        lines.append(
            f"A spoken answer took {report.pace:.0f} seconds on average, scoring included."
        )
    if report.strengths:
        lines.append(f"Strong: {_titles(report.strengths)}.")
    if report.weaknesses:
        lines.append(f"Weak: {_titles(report.weaknesses)}.")
    lines.append("You scored the spoken answers yourself: the numbers are as strict as you were.")
    return lines


def text(report: Report, round: Round) -> str:
    """The report in words."""
    lines = _lines(report, round)
    if report.read:
        lines.append("Read next:")
    for reading in report.read:
        lines.append(f"  {reading.place} ({reading.score:.0%})")
        lines += [f"    missed: {markup.plain(text)}" for text in reading.missed]
    return "\n".join(lines)


def page(report: Report, round: Round, bank: Bank) -> str:
    """The report as HTML."""
    paragraphs = "".join(f"<p>{html.escape(line)}</p>" for line in _lines(report, round))
    return f"{paragraphs}{_read(report)}{_answers(round, bank)}"


def _read(report: Report) -> str:
    if not report.read:
        return ""
    items = "".join(
        f"<li>{where(reading.place, reading.link)} "
        f'<span class="abh-quiet">({reading.score:.0%})</span>'
        f"{markup.bullets(reading.missed) if reading.missed else ''}</li>"
        for reading in report.read
    )
    return f'<p class="iv-head">Read next, the weakest first</p><ul>{items}</ul>'


def _answers(round: Round, bank: Bank) -> str:
    """Everything that was asked and written, to unfold."""
    items = "".join(
        f"<p><strong>{_percent(entry.score)}</strong> "
        f"{markup.html(rounds.about(entry.step, bank).asked)}</p>{_written(entry)}"
        for entry in round.entries
    )
    return f"<details><summary>What was asked, and what you wrote</summary>{items}</details>"


def _written(entry: Entry) -> str:
    """What somebody wrote at a step, as HTML; "" for nothing."""
    answer = entry.answer
    if code := answer.get("code"):
        return f"<pre><code>{html.escape(str(code))}</code></pre>"
    typed = answer.get("written") or ", ".join(
        map(str, answer.get("typed", answer.get("tried", ())))
    )
    # A $ of the reader's is no formula.
    return f'<pre class="iv-written">{html.escape(str(typed))}</pre>' if typed.strip(", ") else ""


def history(kept: list[Round], folder: Path) -> str:
    """The finished rounds as HTML, the newest first; "" if there is none."""
    finished = [round for round in kept if round.finished]
    if not finished:
        return ""
    lines = "".join(_row(round) for round in finished[:_MOST])
    more = f"; {len(finished) - _MOST} older ones" * (len(finished) > _MOST)
    return (
        '<p class="iv-head">Your rounds</p><table class="iv-history"><tr><td>begun</td>'
        f"<td>level</td><td>minutes</td><td>score</td></tr>{lines}</table>"
        f'<p class="abh-quiet">Every answer is kept in <code>{html.escape(str(folder))}</code>'
        f"{more}.</p>"
    )


def _row(round: Round) -> str:
    used = f"{_minutes(round.seconds)} of {round.minutes}"
    cells = _when(round), html.escape(round.level), used, _percent(round.score)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def named(round: Round) -> str:
    """A round in a line, to choose it."""
    return f"{_when(round)}: {round.level}, {round.minutes} minutes, {_percent(round.score)}"


def unfinished(round: Round) -> str:
    """A round that can go on, in a sentence."""
    answered = sum(entry.score is not None for entry in round.entries)
    return (
        f"A round is not finished: {round.level}, {round.minutes} minutes, begun {_when(round)}, "
        f"{answered} answered."
    )


def _titles(titles) -> str:
    return ", ".join(f"{title} ({score:.0%})" for title, score in titles)


def _when(round: Round) -> str:
    return round.started.astimezone().strftime("%d %b %Y, %H:%M")


def _minutes(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"


def _percent(score: float | None) -> str:
    return "–" if score is None else f"{score:.0%}"
