"""Keys for a panel: it keeps them from JupyterLab, and works without a mouse.

Inside a panel a single key is an action ("1" grades a card), while JupyterLab would make the cell a
heading. Text fields keep their keys; Escape leaves them. When a control with the focus disappears,
the panel takes the focus, so that the next key is not JupyterLab's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anywidget
import traitlets

_MODULE = """
function render({ model, el }) {
  let root, observer, keeping, inside = false, byHand = false;
  const isText = (target) => target.matches("textarea, select, input:not([type=checkbox])");
  const pressed = (event) => {
    const { target, key } = event;
    byHand = false;
    const command = event.ctrlKey || event.metaKey;
    if (command && key === "Enter") {
      event.preventDefault(); event.stopPropagation();
      model.send({ key: "Ctrl+Enter" });
      return;
    }
    if (command || event.altKey) return;
    if (isText(target)) {
      if (key === "Escape") { event.preventDefault(); root.focus(); }
      if (target.closest(".iv-code")) indent(event, target);
      else if (key === "Enter" && target.matches("input")) model.send({ key: "Ctrl+Enter" });
      return;
    }
    if (target.matches("button, summary, a, input") && (key === " " || key === "Enter")) return;
    if (key.length > 1 && key !== "Enter") return;  // Tab and the like
    event.preventDefault(); event.stopPropagation();
    if (!event.repeat) model.send({ key });  // a key held down is pressed once
  };
  const indent = (event, field) => {
    if (event.key !== "Tab" && event.key !== "Enter") return;
    const line = field.value.slice(0, field.selectionStart).split("\\n").pop();
    let text = "    ";
    if (event.key === "Enter")
      text = "\\n" + line.match(/^ */)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
    else if (event.shiftKey) return;
    event.preventDefault();
    document.execCommand("insertText", false, text);
  };
  const mend = () => {
    for (const field of root.querySelectorAll("textarea")) {
      field.setAttribute("data-lm-suppress-shortcuts", "true");
      if (field.closest(".iv-code")) field.spellcheck = false;
    }
    // The browser takes the focus from a control that is gone a moment after it is gone.
    clearTimeout(keeping);
    keeping = setTimeout(keep, 30);
  };
  const keep = () => {
    const lost = document.activeElement === document.body || document.activeElement.disabled;
    if (inside && lost) root.focus({ preventScroll: true });
  };
  const entered = ({ target, type }) => {
    inside = root.contains(target);
    if (type === "pointerdown") byHand = true;
  };
  // Who has chosen from a list by hand goes on with the panel's keys, not with the list's.
  const chosen = ({ target }) => {
    if (byHand && target.matches("select")) root.focus({ preventScroll: true });
  };
  const asked = (message) => {
    if (message.reveal) setTimeout(() => root.scrollIntoView({ block: "nearest" }), 60);
    if (message.focus) setTimeout(() => {
      (message.focus === "panel" ? root : root.querySelector(message.focus))?.focus();
    }, 60);
  };
  const named = () => root.setAttribute("aria-label", model.get("label"));
  const start = () => {
    root = el.closest(".ex-root");
    if (!root) { timer = setTimeout(start, 50); return; }
    root.tabIndex = 0;
    root.setAttribute("role", "group");
    root.setAttribute("data-lm-suppress-shortcuts", "true");
    named();
    root.addEventListener("keydown", pressed, true);  // text fields stop it on its way up
    root.addEventListener("change", chosen);
    document.addEventListener("focusin", entered);
    document.addEventListener("pointerdown", entered);
    observer = new MutationObserver(mend);
    observer.observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
    model.on("change:label", named);
    model.on("msg:custom", asked);
    mend();
  };
  let timer = setTimeout(start, 0);
  return () => {
    clearTimeout(timer);
    clearTimeout(keeping);
    observer?.disconnect();
    root?.removeEventListener("keydown", pressed, true);
    root?.removeEventListener("change", chosen);
    document.removeEventListener("focusin", entered);
    document.removeEventListener("pointerdown", entered);
    model.off("change:label", named);
    model.off("msg:custom", asked);
  };
}
export default { render };
"""


class Keyboard(anywidget.AnyWidget):
    """Put one into a panel (`practice.style.panel`): keys pressed in it become actions.

    label : what a screen reader calls the panel.
    """

    _esm = _MODULE
    label = traitlets.Unicode().tag(sync=True)

    def __init__(self, label: str = ""):
        super().__init__(label=label)
        self._actions: dict[str, Callable[[], object]] = {}
        self.on_msg(self._received)

    def mean(self, actions: Mapping[str, Callable[[], object]]) -> None:
        """From now on these keys, and no others, do these actions.

        Keys are called as browsers call them: "1", " ", "n", "Enter".
        "Ctrl+Enter" is pressed in a text field too, where Enter in a single line counts as it. An
        action catches what goes wrong in it (`practice.style.guarded`).
        """
        self._actions = dict(actions)

    def press(self, key: str) -> None:
        """What pressing that key does; nothing if it means nothing."""
        if action := self._actions.get(key):
            action()

    def focus(self, selector: str = "panel") -> None:
        """Move the focus to the first element that fits a CSS selector, or to the panel itself."""
        self.send({"focus": selector})

    def reveal(self) -> None:
        """Scroll the panel into view if its top is not: what was long has become short."""
        self.send({"reveal": True})

    def _received(self, _widget, content, _buffers) -> None:
        if isinstance(content, dict) and isinstance(content.get("key"), str):
            self.press(content["key"])
