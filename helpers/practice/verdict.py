"""What a checker says: a sentence, and the smallest input that shows what it means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helpers.practice import style
from helpers.practice.answers import Argument


@dataclass(frozen=True)
class Evidence:
    """One input, what should come back for it, and what did.

    actual : the numbers that came back, or words for what came instead.
    off : where they differ, if the shapes agree.
    """

    label: str
    inputs: tuple[tuple[str, Argument], ...]
    expected: np.ndarray
    actual: np.ndarray | str
    off: np.ndarray | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of `check`.

    passed : every input was answered rightly.
    attempted : the function returns something.
    mistake : an identifier of what is wrong, such as "softmax-wrong-axis"; several joined by "|"
        when the checker cannot tell them apart; None if passed or not attempted.
    message : the same in a sentence or two.
    remarks : further things that were seen.
    """

    title: str
    passed: bool
    attempted: bool
    mistake: str | None
    message: str
    evidence: Evidence | None = None
    remarks: tuple[str, ...] = ()

    @property
    def _head(self) -> str:
        word = "✓ passed" if self.passed else "✗ not yet" if self.attempted else "not attempted yet"
        return f"{self.title} {word}" if self.title.endswith("?") else f"{self.title}: {word}"

    def __str__(self) -> str:
        lines = [self._head, style.plain(self.message), *self.remarks]
        if self.evidence:
            lines += ["", f"Smallest input that shows it ({self.evidence.label}):"]
            lines.append(_evidence_text(self.evidence))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self), "text/html": self._html()}

    def _html(self) -> str:
        kind = "yes" if self.passed else "no" if self.attempted else "wait"
        parts = [f'<p class="abh-title"><strong>{style.rich(self._head)}</strong></p>']
        parts += [f"<p>{style.rich(sentence)}</p>" for sentence in (self.message, *self.remarks)]
        if self.evidence:
            label = style.rich(self.evidence.label)
            parts.append(f'<p class="abh-quiet">Smallest input that shows it ({label}):</p>')
            parts.append(_evidence_html(self.evidence))
        body = "\n".join(parts)
        return f'{style.SHEET}<div class="abh"><div class="abh-note abh-{kind}">{body}</div></div>'


def _tables(evidence: Evidence):
    """(title, rows, off) of each table to show: the inputs, the expected result, the actual one."""
    actual = evidence.actual
    shown = _is_shown(evidence)
    places = style.decimals(evidence.expected, *([actual] if shown else []))
    for name, value in evidence.inputs:
        if isinstance(value, np.ndarray):
            yield from _sheets(name, value, style.decimals(value), evidence)
        else:
            yield name, [[f"{value:.12g}"]], None
    yield from _sheets("expected", evidence.expected, places, evidence)
    if shown:
        yield from _sheets("your result", actual, places, evidence, evidence.off)


def _is_shown(evidence: Evidence) -> bool:
    """Whether what came back is shown in numbers, not in words."""
    actual = evidence.actual
    if not isinstance(actual, np.ndarray) or actual.size == 0:
        return False
    return actual.ndim <= max(2, evidence.expected.ndim)


_MOST_SHEETS = 2


def _sheets(title: str, array: np.ndarray, places: int, evidence: Evidence, off=None):
    """(title, rows, off) of a table; of a stack of tables, those of the first that are wrong."""
    if array.ndim < 3:
        yield f"{title}  {_shape(array)}", style.cells(array, places), off
        return
    leading = array.shape[:-2]
    wrong = sheets = list(np.ndindex(leading))
    if evidence.off is not None and evidence.off.shape[: len(leading)] == leading:
        wrong = [i for i in sheets if evidence.off[i].any()] or sheets
    for i in wrong[:_MOST_SHEETS]:
        name = f"{title}[{', '.join(map(str, i))}]  of {_shape(array)}"
        yield name, style.cells(array[i], places), None if off is None else off[i]


def _instead(evidence: Evidence) -> str:
    """What came back, in words, where it is no table, or where the table ends too early."""
    if isinstance(evidence.actual, str):
        return f"your result: {evidence.actual}"
    if not _is_shown(evidence):
        return f"your result: an array of shape {evidence.actual.shape}"
    off = evidence.off
    if off is None or off.ndim < 2 or not off.any() or off[..., : style.MOST, : style.MOST].any():
        return ""
    first = tuple(np.argwhere(off)[0])
    return (
        f"The first entry that differs is [{', '.join(map(str, first))}], beyond these tables: "
        f"expected {evidence.expected[first]:.4g}, your result {evidence.actual[first]:.4g}."
    )


def _evidence_text(evidence: Evidence) -> str:
    tables = [style.text_table(title, rows) for title, rows, _ in _tables(evidence)]
    return "\n".join(filter(None, [style.beside(*tables), _instead(evidence)]))


def _evidence_html(evidence: Evidence) -> str:
    tables = [style.html_table(title, rows, off=off) for title, rows, off in _tables(evidence)]
    instead = _instead(evidence)
    return f'<div class="abh-tables">{"".join(tables)}</div>' + (
        f"<p>{style.rich(instead)}</p>" if instead else ""
    )


def _shape(array: np.ndarray) -> str:
    if array.ndim == 1:
        return f"{len(array)} number{'s' * (len(array) != 1)}"
    return "×".join(map(str, array.shape)) if array.ndim else "one number"
