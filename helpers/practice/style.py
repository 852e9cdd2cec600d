"""How everything in `practice` looks: one style sheet, and the HTML pieces shared by its displays.

Colours are JupyterLab's own variables, so light and dark themes both work; the fallbacks inherit
what the page around has. The static forms (GitHub, an untrusted notebook) get no style sheet,
which those viewers strip: their HTML must read well without.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import ipywidgets as widgets
import numpy as np

from helpers.explorers.access import Access
from helpers.pictures.palette import ROLES

CSS = """
.abh { color: var(--jp-content-font-color1, inherit); font-size: 14px; line-height: 1.5; }
.abh p { margin: 0 0 6px; }
.abh .abh-title { font-weight: 600; font-size: 15px; margin: 0 0 8px; }
.abh .abh-quiet { color: var(--jp-content-font-color2, inherit); }
.abh code { background: var(--jp-layout-color2, transparent); padding: 1px 4px;
  border-radius: 3px; }
.abh pre { background: var(--jp-layout-color2, transparent); padding: 10px 12px; margin: 4px 0;
  border-radius: 4px; overflow-x: auto; line-height: 1.45; }
.abh pre code { background: none; padding: 0; white-space: pre; }
.abh-box, .abh-panel.widget-box { border: 1px solid var(--jp-border-color1, #8888);
  border-radius: 6px; padding: 12px 14px; margin: 6px 0; max-width: 860px; box-sizing: border-box; }
.abh-panel.widget-box { overflow: visible; }
.abh-panel .widget-html, .abh-panel .widget-html-content { height: auto; line-height: 1.5; }
.abh-note { border-left: 4px solid var(--jp-border-color1, #8888); padding: 4px 0 4px 12px;
  margin: 6px 0; }
.abh-yes { border-left-color: var(--jp-success-color1, #2e7d32); }
.abh-no { border-left-color: var(--jp-error-color1, #c62828); }
.abh-word { font-weight: 600; }

.abh-panel button.jupyter-button { height: auto; min-height: 32px; padding: 5px 14px; width: auto;
  border: 1px solid var(--jp-border-color1, #8888); border-radius: 5px; font-size: 14px;
  line-height: 1.4; color: var(--jp-ui-font-color1, inherit); overflow: visible; }
.abh-panel button.jupyter-button:hover { border-color: var(--jp-brand-color1, #1976d2);
  box-shadow: none; }
.abh-panel button.jupyter-button:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2);
  outline-offset: 2px; }
.abh-panel button.jupyter-button:disabled { opacity: 0.55; }
.abh-panel button.abh-option { display: block; width: calc(100% - 8px); margin: 4px;
  padding: 8px 12px; text-align: left; white-space: pre-wrap; overflow-wrap: anywhere;
  background: var(--jp-layout-color1, transparent); }
.abh-panel button.abh-option:hover { background: var(--jp-layout-color2, transparent); }
.abh-panel button.jupyter-button.abh-chosen-right,
.abh-panel button.jupyter-button.abh-chosen-right:hover { padding: 7px 11px;
  border: 2px solid var(--jp-success-color1, #2e7d32); }
.abh-panel button.jupyter-button.abh-chosen-wrong,
.abh-panel button.jupyter-button.abh-chosen-wrong:hover { padding: 7px 11px;
  border: 2px solid var(--jp-error-color1, #c62828); }

.abh-tables { display: flex; flex-wrap: wrap; gap: 8px 28px; align-items: flex-start; }
.abh table { border-collapse: collapse; margin: 4px 0; font-variant-numeric: tabular-nums;
  border: none; font-size: 14px; }
.abh table caption { caption-side: top; text-align: left; padding: 2px 0;
  color: var(--jp-content-font-color1, inherit); white-space: nowrap; font-weight: 600; }
.abh table td, .abh table th { text-align: right; padding: 3px 8px; min-width: 1.2em;
  border: 1px solid var(--jp-border-color2, #8886); background: none; font-weight: normal; }
.abh table td.abh-zero { color: var(--jp-content-font-color2, inherit); }
.abh table th { border: none; min-width: 84px; color: var(--jp-content-font-color2, inherit); }
.abh table tr { background: none !important; }
.abh table td.abh-off { outline: 2px solid var(--jp-error-color1, #c62828); outline-offset: -2px;
  font-weight: 600; }
.abh table tr.abh-chosen td { font-weight: 600; border-top: 2px solid currentColor;
  border-bottom: 2px solid currentColor; }
.abh table tr.abh-chosen th { font-weight: 600; color: inherit; }

.abh .abh-worked { border-top: 1px solid var(--jp-border-color2, #8886); margin-top: 10px;
  padding-top: 8px; }
.abh .abh-worked sup { line-height: 0; }
.abh-step { border-top: 1px solid var(--jp-border-color2, #8886); padding: 6px 0 2px; }
.abh-panel .abh-step.widget-box { overflow: visible; }
.abh-entries.widget-box { overflow: visible; flex-wrap: wrap; gap: 2px 6px; }
.abh-entry.widget-text { width: 118px; flex-direction: column; align-items: stretch; height: auto;
  margin: 2px; }
.abh-entry.widget-text .widget-label { width: auto; text-align: left; font-size: 12px;
  color: var(--jp-content-font-color2, inherit); height: 18px; line-height: 18px; }
.abh-entry.widget-text input { font-size: 14px; height: 30px; }
.abh-entry.abh-chosen-right input {
  border: 2px solid var(--jp-success-color1, #2e7d32) !important; }
.abh-entry.abh-chosen-wrong input {
  border: 2px solid var(--jp-error-color1, #c62828) !important; }
"""

_TINTS = "".join(
    f".abh table.abh-role-{role.name} caption, .abh .abh-word.abh-role-{role.name}"
    f" {{ color: {role.formula}; }}\n"
    for role in ROLES.values()
)
SHEET = f"<style>{CSS}{_TINTS}</style>"


_STRONG = r"\*\*(?=\S)([^*]+)(?<=\S)\*\*"  # not the powers in x ** 2 and y ** 2


def lowered(text: str) -> str:
    """d_k with its k low, in HTML."""
    low = r"(?<![a-zA-Z]{2})([a-zA-ZΣσμ∂])_(k|v|q|head|model|i|W|Q|K|V)\b"
    return re.sub(low, r"\1<sub>\2</sub>", text)


def rich(text: str) -> str:
    """Plain text as HTML: escaped, `code` as <code>, **strong** as <strong>, d_k with its k low."""
    escaped = html.escape(text, quote=False)
    parts = re.split(r"`([^`]+)`", escaped)
    parts[::2] = map(lowered, parts[::2])
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    escaped = "".join(parts)
    return re.sub(_STRONG, r"<strong>\1</strong>", escaped)


def plain(text: str) -> str:
    """The same text for a terminal and a screen reader: without the ** signs around words."""
    return re.sub(_STRONG, r"\1", text)


def folded(summary: str, body: str) -> str:
    """`body` (HTML) behind a line that unfolds it, without any script."""
    return f"<details><summary>{rich(summary)}</summary>\n{body}\n</details>"


def live(text: str, kind: str = "") -> str:
    """HTML that a screen reader speaks when it changes. kind: "yes", "no" or ""."""
    look = f' class="abh-note abh-{kind}"' if kind else ""
    return f'<div class="abh"><div role="status"{look}>{text}</div></div>'


def decimals(*arrays: np.ndarray) -> int:
    """How many decimals show these numbers well: as many as they have, at most three."""
    finite = np.concatenate([a[np.isfinite(a)].ravel() for a in arrays]) if arrays else np.empty(0)
    if finite.size == 0 or finite.dtype == bool:
        return 0
    most = 3 if np.abs(finite).max() < 1000 else 1
    exact = (n for n in range(most) if (np.abs(finite - np.round(finite, n)) < 1e-9).all())
    return next(exact, most)


def number(x: float, places: int) -> str:
    """One number at fixed precision; no negative zero, no endless digits. True stays "True"."""
    if isinstance(x, np.bool_):
        return str(x)
    if not np.isfinite(x):
        return str(float(x))
    if abs(x) >= 1e7:
        return f"{x:.3g}"
    shown = f"{x:.{places}f}"
    return shown[1:] if shown.startswith("-") and float(shown) == 0 else shown


MOST = 8  # rows and columns shown of a table


def cells(array: np.ndarray, places: int) -> list[list[str]]:
    """A table's entries as text, the far ones left out. A single number or row becomes one row."""
    table = np.atleast_2d(array)
    rows = [[number(x, places) for x in row[:MOST]] for row in table[:MOST]]
    if table.shape[1] > MOST:
        rows = [[*row, "…"] for row in rows]
    if table.shape[0] > MOST:
        rows.append(["…"] * len(rows[0]))
    return rows


def text_table(title: str, rows: list[list[str]]) -> list[str]:
    """A titled table as aligned lines of equal length."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [title] + [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    width = max(map(len, lines))
    return [line.ljust(width) for line in lines]


def beside(*tables: list[str], width: int = 96, gap: str = "     ") -> str:
    """Text tables side by side, or one under the other where a line would be too long."""
    if sum(len(t[0]) for t in tables) + len(gap) * (len(tables) - 1) > width and len(tables) > 1:
        half = len(tables) // 2 if len(tables) > 3 else len(tables) - 1
        parts = tables[:half], tables[half:]
        return "\n\n".join(beside(*part, width=width, gap=gap) for part in parts)
    height = max(map(len, tables))
    padded = [t + [" " * len(t[0])] * (height - len(t)) for t in tables]
    return "\n".join(gap.join(line).rstrip() for line in zip(*padded, strict=True))


def html_table(
    title: str,
    rows: list[list[str]],
    *,
    off: np.ndarray | None = None,
    chosen: int | None = None,
    heads: list[str] | None = None,
    role: str = "",
) -> str:
    """A titled table. off : where entries are wrong (outlined, and said in their title).

    chosen : the row that stands out. heads : what to write before each row. role : "Q", "K", "V",
    "scores", "weights" or "output", for the style sheet to tint.
    """
    lines = []
    off = None if off is None else np.atleast_2d(off)
    for i, row in enumerate(rows):
        tds = []
        for j, cell in enumerate(row):
            wrong = off is not None and i < off.shape[0] and j < off.shape[1] and off[i, j]
            if wrong:
                tds.append(f'<td class="abh-off" title="differs"><strong>{cell}</strong></td>')
            else:
                tds.append(f"<td{' class=abh-zero' if cell == '0' else ''}>{cell}</td>")
        head = "" if heads is None else f'<th scope="row">{html.escape(heads[i])}</th>'
        lines.append(f"<tr{' class=abh-chosen' if i == chosen else ''}>{head}{''.join(tds)}</tr>")
    kind = f' class="abh-role-{role}"' if role else ""
    return f"<table{kind}><caption>{rich(title)}</caption>{''.join(lines)}</table>"


def panel(*parts: widgets.Widget) -> widgets.VBox:
    """The frame of a live display, with the style sheet in it.

    `Access` keeps JupyterLab from taking letters typed on a button for its own shortcuts ("b" adds
    a cell); it looks for the class "ex-root".
    """
    sheet = widgets.HTML(SHEET, layout={"display": "none"})
    box = widgets.VBox([sheet, *parts, Access()])
    return box.add_class("abh-panel").add_class("ex-root")


def mark(widget: widgets.DOMWidget, name: str, applies: bool) -> None:
    """Give a widget a CSS class, or take it away."""
    (widget.add_class if applies else widget.remove_class)(name)


def guarded(action: Callable[[], object], say: Callable[[str], object]) -> Callable[..., None]:
    """A callback that runs `action` and says it when that fails; a traceback would vanish there."""

    def callback(*_):
        try:
            action()
        except Exception as error:
            say(f"Something failed here, and not through you: {type(error).__name__}: {error}")

    return callback
