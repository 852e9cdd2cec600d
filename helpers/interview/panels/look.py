"""How panels look: a large prompt, a field for code, points to tick, the clock above them."""

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
