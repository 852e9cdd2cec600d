"""What ipywidgets leave out for keyboards and screen readers.

ipywidgets give a slider's handle no name and a toggle button no state, and JupyterLab takes
letters and arrows typed on a control for its own shortcuts ("b" adds a cell). These are attributes
of the page's elements, which Python cannot set: hence the only lines of JavaScript in the series.
They also select the number in an entry when it is entered, so that typing replaces it, and bring
it back on Escape. Where they do not run, the figures work all the same.
"""

from __future__ import annotations

import anywidget

_MODULE = """
function mend(root) {
  for (const slider of root.querySelectorAll(".widget-hslider, .widget-vslider")) {
    const label = slider.querySelector(".widget-label")?.textContent;
    const handle = slider.querySelector("[role=slider]");
    if (label && handle) handle.setAttribute("aria-label", label);
  }
  for (const toggle of root.querySelectorAll(".widget-toggle-button"))
    toggle.setAttribute("aria-pressed", toggle.classList.contains("mod-active"));
  for (const control of root.querySelectorAll("button, input, [role=slider], [contenteditable]"))
    control.setAttribute("data-lm-suppress-shortcuts", "true");
}
const isEntry = (target) => target.matches(".ex-entry input");
function entered({ target }) {
  if (!isEntry(target)) return;
  target.dataset.before = target.value;
  setTimeout(() => target.select(), 0);
}
function typed({ target, key }) {
  if (!isEntry(target)) return;
  if (key === "Escape") target.value = target.dataset.before;
  if (key === "Enter") target.dataset.before = target.value;
  if (key === "Escape" || key === "Enter") setTimeout(() => target.select(), 0);
}
function render({ el }) {
  let observer;
  const start = () => {
    const root = el.closest(".ex-root");
    if (!root) { timer = setTimeout(start, 50); return; }  // not on the page yet
    // A new picture, which is most of what happens here, brings no new control.
    const isPicture = (change) => change.target.closest(".ex-picture, .ex-words");
    observer = new MutationObserver((changes) => { if (!changes.every(isPicture)) mend(root); });
    observer.observe(root, { childList: true, subtree: true, attributeFilter: ["class"] });
    root.addEventListener("focusin", entered);
    root.addEventListener("keydown", typed, true);  // the widgets stop it on its way up
    mend(root);
  };
  let timer = setTimeout(start, 0);
  return () => { clearTimeout(timer); observer?.disconnect(); };
}
export default { render };
"""


class Access(anywidget.AnyWidget):
    """Put one into a figure: it names the sliders around it and keeps their keys."""

    _esm = _MODULE
