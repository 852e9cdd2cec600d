"""The cheat sheet as a page: one HTML file that asks nobody for anything and prints on one sheet.

The same body stands in the file, in the notebook's live view, and on paper. On a screen it takes
the width that it gets; on paper (A4 or US letter) two columns over a band of three.
"""

from __future__ import annotations

import html
import re

from helpers.interview import markup, sheet_fonts
from helpers.interview.bank import Bank, bank
from helpers.interview.sheet_data import Sheet, minutes, sheet
from helpers.pictures.formula import formula
from helpers.pictures.palette import PAPER, QUIET, ROLES, RULE, TEXT, tint

_CSS = f"""
.sheet {{ container-type: inline-size; background: {PAPER}; color: {TEXT};
  font-family: '{sheet_fonts.FAMILY}', 'STIX Two Text', 'Times New Roman', serif;
  font-size: 15px; line-height: 1.36; padding: 22px 24px; border-radius: 4px; text-align: left;
  font-kerning: normal; }}
.sheet *, .sheet *::before {{ box-sizing: border-box; }}
/* A root or an exponent must not push the lines of a paragraph apart. */
.sheet svg {{ overflow: visible; margin-top: -0.4em; }}
.sheet h1, .sheet h2, .sheet h3, .sheet p, .sheet ul, .sheet ol, .sheet table, .sheet pre {{
  margin: 0; padding: 0; color: inherit; font-size: 1em; font-weight: normal; }}
.sheet code {{ font-family: '{sheet_fonts.MONO}', Menlo, Consolas, monospace; font-size: 0.78em;
  background: none; color: inherit; padding: 0; }}

.sheet-head {{ display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 1em;
  border-bottom: 0.12em solid {TEXT}; padding-bottom: 0.35em; margin-bottom: 0.9em; }}
.sheet .sheet-head h1 {{ font-size: 1.75em; font-weight: bold; letter-spacing: -0.005em;
  line-height: 1.1; }}
.sheet-head p {{ font-style: italic; color: {QUIET}; }}

.sheet h2 {{ font-weight: bold; font-size: 1.14em; line-height: 1.3; margin-bottom: 0.4em; }}
.sheet h3 {{ font-weight: bold; line-height: 1.25; margin-bottom: 0.3em; }}
.sheet-aside {{ float: right; font-weight: normal; font-size: 0.78em; color: {QUIET}; }}
.sheet-keep {{ white-space: nowrap; }}
.sheet-quiet {{ color: {QUIET}; }}
.sheet-small {{ font-size: 0.92em; }}

.sheet-top {{ display: grid; grid-template-columns: 1fr; gap: 0.8em 2.2em; align-items: center;
  margin-bottom: 1.1em; }}
.sheet-formula {{ text-align: center; }}
.sheet-formula > svg {{ margin: 0; max-width: 100%; }}
.sheet-formula p {{ margin-top: 0.6em; text-align: left; }}
.sheet table {{ border-collapse: collapse; width: 100%; border: none; font-size: 1em; }}
.sheet tr {{ background: none !important; }}
.sheet td, .sheet th {{ border: none; padding: 0.13em 0.7em 0.13em 0; text-align: left;
  vertical-align: baseline; font-weight: normal; font-size: 1em; line-height: inherit; }}
.sheet td:last-child {{ padding-right: 0; }}
.sheet-shapes th {{ border-left: 0.32em solid; padding-left: 0.6em; white-space: nowrap; }}
.sheet-shapes td:nth-child(2) {{ white-space: nowrap; }}

.sheet-columns {{ display: grid; grid-template-columns: 1fr; gap: 1.1em 2.2em; }}
.sheet-column > section + section {{ margin-top: 1em; }}
.sheet-steps td:last-child {{ color: {QUIET}; }}
.sheet-steps td:first-child {{ white-space: nowrap; padding-right: 1.2em; }}
.sheet-steps tr + tr td:first-child {{ padding-left: 3.1em; }}
.sheet-half {{ border-left: 0.16em solid {RULE}; padding-left: 0.75em; margin-top: 0.5em; }}
.sheet-half b {{ font-weight: bold; }}
.sheet p, .sheet li {{ text-wrap: pretty; }}
.sheet p + p {{ margin-top: 0.3em; }}
.sheet pre {{ font-family: '{sheet_fonts.MONO}', Menlo, Consolas, monospace; font-size: 0.76em;
  line-height: 1.55; background: {tint(TEXT, 0.0)}; padding: 0.6em 0.8em; margin-bottom: 0.5em;
  overflow-x: auto; border-radius: 0.3em; white-space: pre; word-break: normal; }}
.sheet ul {{ list-style: none; }}
.sheet li {{ padding-left: 0.9em; text-indent: -0.9em; margin: 0 0 0.24em; }}
.sheet li::before {{ content: "–"; display: inline-block; width: 0.9em; text-indent: 0;
  color: {QUIET}; }}
.sheet-numbers tr + tr > * {{ border-top: 0.05em solid {RULE}; }}
.sheet-numbers td, .sheet-numbers th {{ padding-top: 0.24em; padding-bottom: 0.24em;
  line-height: 1.28; text-wrap: balance; }}
.sheet-numbers th {{ width: 45%; color: {QUIET}; }}
.sheet-numbers td:last-child {{ text-align: right; color: {QUIET}; font-size: 0.86em;
  width: 1.8em; }}
.sheet-minutes {{ border-top: 0.06em solid {TEXT}; margin-top: 1.1em; padding-top: 0.7em; }}
.sheet-three {{ display: grid; grid-template-columns: 1fr; gap: 0.9em 1.8em; }}

.sheet-top > *, .sheet-column, .sheet-three > * {{ min-width: 0; }}

@container (max-width: 540px) {{
  .sheet-steps td {{ display: block; }}
  .sheet-steps tr td:first-child, .sheet-steps tr + tr td:first-child {{ padding-left: 0; }}
  .sheet-shapes td:nth-child(2) {{ display: none; }}
  .sheet code {{ overflow-wrap: anywhere; }}
}}
@container (min-width: 720px) {{
  .sheet-top {{ grid-template-columns: 46.5% 1fr; }}
  .sheet-columns {{ grid-template-columns: 46.5% 1fr; }}
  .sheet-three {{ grid-template-columns: 1fr 1fr 1fr; }}
}}
"""

# What belongs to the file alone: the page around the sheet, and the paper.
_PAGE_CSS = f"""
html {{ background: {tint(TEXT, 0.02)}; }}
body {{ margin: 0; }}
.sheet {{ max-width: 1160px; margin: 24px auto; padding: 34px 42px 30px; font-size: 16.5px;
  box-shadow: 0 1px 8px #0002; box-sizing: border-box; }}
@media (max-width: 640px) {{
  .sheet {{ margin: 0; padding: 18px; box-shadow: none; border-radius: 0; }}
}}
@page {{ margin: 9mm 11mm; }}
@media print {{
  html {{ background: none; }}
  .sheet {{ font-size: 8.1pt; line-height: 1.33; max-width: none; margin: 0; padding: 0;
    box-shadow: none; container-type: normal; print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }}
  .sheet-top, .sheet-columns {{ grid-template-columns: 46.5% 1fr; }}
  .sheet-three {{ grid-template-columns: 1fr 1fr 1fr; }}
  .sheet pre {{ overflow: hidden; }}
}}
"""


def page(of: Sheet | None = None, questions: Bank | None = None) -> str:
    """The whole page as text. `of`, `questions`: another sheet and bank than the series' own.

    Raises SheetError if the sheet names a question that the bank does not have.
    """
    of = of or sheet()
    content = body(of, questions)
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(markup.plain(of.title))}: one page</title>\n"
        f"<style>{_style(content)}{_PAGE_CSS}</style>\n</head>\n<body>\n{content}\n</body>\n</html>\n"
    )


def fragment(of: Sheet | None = None, questions: Bank | None = None) -> str:
    """The same for the inside of another page, such as a notebook's output."""
    content = body(of or sheet(), questions)
    return f"<style>{_style(content)}</style>{content}"


def _style(content: str) -> str:
    signs = "".join(sorted({sign for sign in html.unescape(content) if sign.isprintable()}))
    return f"{sheet_fonts.faces(signs)}{_CSS}"


def body(of: Sheet, questions: Bank | None = None) -> str:
    """The sheet itself, without style."""
    questions = questions or bank()
    return (
        '<main class="sheet">\n'
        f'<header class="sheet-head"><h1>{_text(of.title)}</h1>'
        f"<p>{_text(of.tagline)}</p></header>\n"
        f'<div class="sheet-top">{_formula(of)}{_shapes(of)}</div>\n'
        '<div class="sheet-columns">'
        f'<div class="sheet-column">{_derivation(of)}{_code(of)}{_traps(of)}</div>'
        f'<div class="sheet-column">{_numbers(of)}</div></div>\n'
        f"{_minutes(of, questions)}\n</main>"
    )


def _text(text: str) -> str:
    """HTML with drawn formulas; a line does not break between a formula and a comma after it."""
    kept = r'<span class="sheet-keep">\1</span>'
    drawn = re.sub(r"(\(?<svg .*?</svg>[,.;:?)]+)", kept, markup.drawn(text))
    return re.sub(r"(\d) (?=[KMG]iB\b)", "\\1\u00a0", drawn)  # nor between a number and its unit


def _formula(of: Sheet) -> str:
    tints = tuple((letter, ROLES[letter].text) for letter in "QKV")
    drawn = formula(of.tex, markup.in_words(of.tex), 21, tints)
    note = f'<p class="sheet-quiet sheet-small">{_text(of.formula_note)}</p>'
    return f'<div class="sheet-formula">{drawn}{note}</div>'


def _shapes(of: Sheet) -> str:
    rows = "".join(
        f'<tr><th scope="row" style="color:{ROLES[each.role].text};'
        f'border-left-color:{ROLES[each.role].fill}">{_text(each.name)}</th>'
        f'<td>{_text(each.shape)}</td><td class="sheet-quiet">{_text(each.words)}</td></tr>'
        for each in of.shapes
    )
    return f'<table class="sheet-shapes">{rows}</table>'


def _derivation(of: Sheet) -> str:
    steps = "".join(
        f"<tr><td>{_text(step.formula)}</td><td>{_text(step.because)}</td></tr>"
        for step in of.steps
    )
    half = "".join(f"<p>{_text(each)}</p>" for each in of.half_true)
    return (
        f"<section><h2>{_text(of.derivation_title)}</h2><p>{_text(of.given)}</p>"
        f'<table class="sheet-steps">{steps}</table><p>{_text(of.therefore)}</p>'
        f'<div class="sheet-half"><p><b>Where this is only half true</b></p>{half}</div></section>'
    )


def _code(of: Sheet) -> str:
    return (
        f"<section><h2>{_text(of.code_title)}</h2><pre>{html.escape(of.code, quote=False)}</pre>"
        f'<p class="sheet-quiet sheet-small">{_text(of.code_note)}</p></section>'
    )


def _traps(of: Sheet) -> str:
    return f"<section><h2>{_text(of.traps_title)}</h2>{markup.bullets(of.traps, _text)}</section>"


def _numbers(of: Sheet) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_text(number.ask)}</th><td>{_text(number.say)}</td>'
        f'<td title="{html.escape(number.place)}">{number.short_place}</td></tr>'
        for number in of.numbers
    )
    return (
        f"<section><h2>{_text(of.numbers_title)}"
        f'<span class="sheet-aside">{_text(of.numbers_note)}</span></h2>'
        f'<table class="sheet-numbers">{rows}</table></section>'
    )


def _minutes(of: Sheet, questions: Bank) -> str:
    parts = "".join(
        f"<section><h3>{_text(question.prompt)}</h3>"
        f"{markup.bullets(question.points, _text)}</section>"
        for question in minutes(of, questions)
    )
    return (
        f'<div class="sheet-minutes"><h2>{_text(of.minutes_title)}</h2>'
        f'<div class="sheet-three">{parts}</div></div>'
    )
