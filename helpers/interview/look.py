"""How the interview room looks, on top of what `practice.style` gives every panel.

`SHARED` is for all of its displays; each display adds a constant of its own to it with `sheet`.
"""

from __future__ import annotations

import html

import ipywidgets as widgets

SHARED = """
.abh-panel.widget-box:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2);
  outline-offset: 2px; }
.iv-spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
.iv-row.widget-box { overflow: visible; flex-flow: row wrap; align-items: center; gap: 4px 10px; }
.iv-row > .widget-html { margin: 0; flex: 1 1 auto; }
.iv-row .widget-dropdown { width: auto; }
.iv-row .widget-dropdown .widget-label { width: auto; }
.iv-row .widget-dropdown > select { width: auto; max-width: 220px; }
.iv-link { overflow: visible; }
.iv-link .jp-OutputArea-prompt { display: none; }
.iv-link .jp-RenderedHTMLCommon { padding: 0; margin: 0; font-size: 15px; }
.abh kbd { border: 1px solid var(--jp-border-color1, #8888); border-radius: 4px; padding: 0 5px;
  font: inherit; font-size: 12px; background: var(--jp-layout-color2, transparent); }
"""

CARDS = """
.abh-panel.iv-cards { max-width: 800px; border: none; padding: 4px 4px 0; }
.abh-panel.iv-cards.widget-box:focus-visible { outline: none; }
.iv-cards:focus-visible .iv-card { outline: 2px solid var(--jp-brand-color1, #1976d2);
  outline-offset: 3px; }
.iv-cards .iv-said.widget-box { min-height: 38px; }
.iv-cards .iv-said button.jupyter-button { font-size: 13px; min-height: 28px; padding: 3px 10px; }
.iv-card.widget-box { overflow: visible; margin: 6px 2px 14px; padding: 0; border-radius: 12px;
  border: 1px solid var(--jp-border-color1, #8888); background: var(--jp-layout-color1, #fff);
  box-shadow: 0 1px 2px rgba(0, 0, 0, 0.16), 0 6px 18px rgba(0, 0, 0, 0.12); }
.iv-card > .widget-html, .iv-card > .widget-htmlmath { margin: 0; width: 100%; height: auto;
  overflow: visible; }
.iv-card .widget-html-content, .iv-card .widget-htmlmath-content { overflow: visible; flex: 1 1 0;
  min-width: 0; }
.iv-card .iv-head { display: flex; justify-content: space-between; gap: 16px; padding: 12px 22px 0;
  font-size: 13px; color: var(--jp-content-font-color2, inherit); }
.iv-card .iv-front { display: flex; align-items: center; min-height: 104px; padding: 6px 40px 18px;
  font-size: 21px; line-height: 1.45; }
.iv-card .iv-front p { margin: 0; max-width: 34em; text-wrap: pretty; }
.iv-bar.widget-box { overflow: visible; flex-flow: row nowrap; gap: 10px; padding: 0 22px 16px;
  margin: 0; min-height: 74px; align-items: stretch; }
.abh-panel .iv-bar button.jupyter-button { flex: 1 1 0; margin: 0; min-width: 0; min-height: 58px;
  border-radius: 8px; background: var(--jp-layout-color1, #fff); white-space: pre-line;
  padding: 6px 4px; font-size: 14px; }
.abh-panel .iv-bar button.jupyter-button::first-line { font-weight: 600; font-size: 15px; }
.abh-panel .iv-bar button.jupyter-button:hover { background: var(--jp-layout-color2, #eee); }
.abh-panel .iv-bar button.iv-grade { border-bottom-width: 3px; }
.abh-panel .iv-bar button.iv-grade-1 { border-bottom-color: #c8502d; }
.abh-panel .iv-bar button.iv-grade-2 { border-bottom-color: #b08a10; }
.abh-panel .iv-bar button.iv-grade-3 { border-bottom-color: #2f8f6f; }
.abh-panel .iv-bar button.iv-grade-4 { border-bottom-color: #2b86c5; }
.iv-card .iv-back { border-top: 1px solid var(--jp-border-color2, #8886); padding: 12px 40px 8px;
  font-size: 15px; line-height: 1.55; }
.iv-card .iv-back.iv-short { font-size: 21px; line-height: 1.45; }
.iv-card .iv-back h4 { margin: 11px 0 3px; font-size: 13px; font-weight: 600; letter-spacing: 0;
  color: var(--jp-content-font-color2, inherit); }
.iv-card .iv-back h4:first-child { margin-top: 0; }
.iv-card .iv-back ol { margin: 0; padding-left: 1.5em; }
.iv-card .iv-back li { margin: 0 0 2px; }
.iv-card .iv-back p { margin: 0 0 4px; }
.iv-card .iv-back .iv-says { font-style: italic; }
.iv-card .iv-link { margin: 0; padding: 0 40px 16px; }
.iv-cards .iv-foot { font-size: 12.5px; overflow-wrap: anywhere;
  color: var(--jp-content-font-color2, inherit); }
.iv-card .iv-link .jp-RenderedHTMLCommon a { text-decoration: underline; }
.iv-card mjx-container { font-size: 105% !important; }
"""

# A large prompt, a field for code, points to tick, the clock above them.
PANELS = """
.abh-panel.iv-panel.widget-box:focus-visible { outline-offset: -2px; }
.iv-panel a, .iv-panel a:hover, .iv-panel a:focus { text-decoration: underline;
  color: var(--jp-content-link-color, inherit); }
.iv-panel .abh-entry.widget-text { width: auto; min-width: 118px; }
.iv-panel .abh-entry.widget-text .widget-label { max-width: none; overflow: visible; }
.iv-panel .abh-entry.widget-text input { max-width: 140px; }
.abh.iv-prompt { font-size: 18px; line-height: 1.45; margin: 6px 0 8px; }
.abh.iv-prompt p { margin: 0 0 8px; }
.abh .iv-head { font-weight: 600; margin: 12px 0 4px; }
.abh .iv-answer { font-size: 15px; line-height: 1.55; max-width: 68ch; }
.abh .iv-keys { font-size: 12px; margin: 8px 0 0; }
.abh ul { margin: 0 0 8px; padding-left: 22px; }
.iv-notes.widget-textarea, .iv-code.widget-textarea { width: auto; height: auto; margin: 2px; }
.iv-notes textarea { font-family: inherit; font-size: 14px; line-height: 1.5; resize: vertical;
  field-sizing: content; min-height: 76px; max-height: 320px; }
.iv-code textarea { font-family: var(--jp-code-font-family, monospace); font-size: 13px;
  line-height: 1.45; tab-size: 4; white-space: pre; overflow-x: auto; resize: vertical; }
.iv-point.widget-checkbox { width: auto; height: auto; margin: 3px 2px; }
.iv-point.widget-checkbox label { display: flex; align-items: flex-start; gap: 8px; width: auto;
  height: auto; white-space: normal; line-height: 1.45; font-size: 14px; }
.iv-point.widget-checkbox input { flex: none; margin: 3px 0 0; }
.iv-top.widget-box { align-items: center; flex-wrap: wrap; overflow: visible; gap: 2px 6px;
  border-bottom: 1px solid var(--jp-border-color2, #8886); padding: 0 0 6px; margin: 0 0 6px; }
.iv-clock { flex: 1; font-variant-numeric: tabular-nums; font-size: 14px; padding: 0 4px;
  color: var(--jp-content-font-color1, inherit); }
.iv-clock .iv-left { font-weight: 600; margin-right: 18px; }
.iv-clock .iv-over { color: var(--jp-warn-color0, #b26a00); }
.iv-clock .iv-item { color: var(--jp-content-font-color2, inherit); }
.iv-choice.widget-toggle-buttons { display: flex; width: auto; align-items: center;
  margin: 4px 2px; }
.iv-choice.widget-toggle-buttons > .widget-label { width: 60px; }
.iv-choice .widget-toggle-button { width: auto; padding: 0 14px; }
.iv-choice .widget-toggle-button.mod-active, .iv-choice .widget-toggle-button.mod-active:hover {
  background: #543894; color: #ffffff; box-shadow: none; }
.abh-panel button.jupyter-button.iv-main { background: #543894; color: #ffffff;
  border-color: #543894; }
.abh pre.iv-written { white-space: pre-wrap; overflow-wrap: anywhere;
  word-break: normal; font-family: inherit; font-size: 14px; }
.iv-filters.widget-box { flex-wrap: wrap; overflow: visible; gap: 2px 10px; }
.iv-filters .widget-label { width: auto; min-width: 44px; }
.abh details > p { margin-left: 16px; max-width: 68ch; }
.iv-library > details > .iv-head { margin-left: 16px; }
.abh summary { cursor: pointer; margin: 3px 0; }
.iv-library > details { border-top: 1px solid var(--jp-border-color2, #8886); padding: 7px 0; }
.iv-library > details > summary { cursor: pointer; font-size: 15px; }
.iv-library > details > :not(summary) { margin-left: 16px; }
.abh table.iv-history td { text-align: left; padding: 3px 12px; }
"""


def sheet(*styles: str) -> widgets.HTML:
    """SHARED and a display's own rules, as a part of its panel that takes no room."""
    return widgets.HTML(f"<style>{SHARED}{''.join(styles)}</style>", layout={"display": "none"})


def lesson_link() -> widgets.Output:
    """A place for a link to a lesson; `point` fills it.

    JupyterLab opens a link beside the notebook, and goes to its heading if the lesson is open
    already, only where it has rendered the HTML itself, as it does in an output. A link in
    `widgets.HTML` opens a second JupyterLab, which forgets the heading.
    """
    return widgets.Output().add_class("iv-link")


def point(output: widgets.Output, link: str, words: str) -> None:
    """Have a `lesson_link` lead there; "" empties it."""
    page = f'<a href="{html.escape(link)}" target="_blank">{html.escape(words)}</a>'
    bundle = {"text/html": page, "text/plain": words}
    output.outputs = (
        ({"output_type": "display_data", "data": bundle, "metadata": {}},) if link else ()
    )
