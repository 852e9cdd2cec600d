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
  let root, observer, keeping, dead, inside = false, byHand = false, passing = false;
  const isText = (target) => target.matches("textarea, select, input:not([type=checkbox])");
  const send = (key) => { try { model.send({ key }); } catch { died(); } };
  const submit = () => setTimeout(() => send("Ctrl+Enter"), 150);  // after what was typed last
  // A letter or digit, whatever the layout and Caps Lock make of it.
  const named = ({ key, code }) => {
    if (/^[0-9a-z ]$/i.test(key) || key.length > 1) return key.length > 1 ? key : key.toLowerCase();
    return (code.match(/^(?:Digit|Key)(.)$/)?.[1] ?? key).toLowerCase();
  };
  const pressed = (event) => {
    const { target, key } = event;
    if (event.isComposing || event.keyCode === 229) return;  // belongs to an input method
    byHand = false;
    const command = event.ctrlKey || event.metaKey;
    if (command && key === "Enter") {
      event.preventDefault(); event.stopPropagation();
      if (!event.repeat) submit();
      return;
    }
    if (key === "Escape") passing = true;
    else if (key !== "Tab" && key !== "Shift") passing = false;
    if (command || event.altKey) return;
    if (isText(target)) {
      if (key === "Escape") { event.preventDefault(); root.focus(); }
      if (target.closest(".iv-code")) indent(event, target);
      else if (key === "Enter" && target.matches("input") && !event.repeat) submit();
      return;
    }
    if (target.matches("button, summary, a, input") && (key === " " || key === "Enter")) return;
    if (key.length > 1 && key !== "Enter") return;  // Tab and the like
    event.preventDefault(); event.stopPropagation();
    // Writing begins at once: the next letter must not be a command.
    const field = named(event) === "t" && root.querySelector("textarea, .abh-entry input");
    if (field) field.focus();
    else if (!event.repeat) send(named(event));  // a key held down is pressed once
  };
  const indent = (event, field) => {
    if (event.key !== "Tab" && event.key !== "Enter") return;
    if (event.key === "Tab" && passing) return;  // after Escape, Tab goes on as everywhere
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
      if (field.title) field.setAttribute("aria-label", field.title);
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
    if (message.alive) { clearTimeout(dead); dead = undefined; return; }
    if (!inside) return;  // it is about another view of the same panel
    if (message.reveal) setTimeout(() => root.scrollIntoView({ block: "nearest" }), 60);
    if (message.focus) setTimeout(() => {
      const writing = root.contains(document.activeElement) && isText(document.activeElement);
      if (writing && document.activeElement.isConnected) return;  // somebody was faster
      (message.focus === "panel" ? root : root.querySelector(message.focus))?.focus();
    }, 60);
  };
  const label = () => root.setAttribute("aria-label", model.get("label"));
  // The kernel has stopped or was restarted: nothing that is typed here is kept any more.
  const died = () => {
    if (!root || root.querySelector(".iv-dead")) return;
    for (const field of root.querySelectorAll("textarea, input")) field.readOnly = true;
    const said = document.createElement("div");
    said.className = "abh abh-note abh-no iv-dead";
    said.setAttribute("role", "alert");
    said.textContent = "The kernel has stopped, so nothing is kept any more. Run this cell " +
      "again: what you entered before is there. Text in a field here can still be copied.";
    root.prepend(said);
  };
  const doubt = () => {
    try { model.send({ alive: true }); } catch { return died(); }
    dead ??= setTimeout(died, 3000);
  };
  const start = () => {
    root = el.closest(".ex-root");
    if (!root) { timer = setTimeout(start, 50); return; }
    root.tabIndex = 0;
    root.setAttribute("role", "group");
    root.setAttribute("data-lm-suppress-shortcuts", "true");
    label();
    root.addEventListener("keydown", pressed, true);  // text fields stop it on its way up
    root.addEventListener("change", chosen);
    document.addEventListener("focusin", entered);
    document.addEventListener("pointerdown", entered);
    observer = new MutationObserver(mend);
    observer.observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
    model.on("change:label", label);
    model.on("comm_live_update", doubt);
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
    model.off("change:label", label);
    model.off("comm_live_update", doubt);
    clearTimeout(dead);
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
        self.presses = 0  # so far, with and without a meaning
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
        self.presses += 1
        if action := self._actions.get(key):
            action()

    def focus(self, selector: str = "panel") -> None:
        """Move the focus to the first element that fits a CSS selector, or to the panel itself."""
        self.send({"focus": selector})

    def reveal(self) -> None:
        """Scroll the panel into view if its top is not: what was long has become short."""
        self.send({"reveal": True})

    def _received(self, _widget, content, _buffers) -> None:
        if not isinstance(content, dict):
            return
        if isinstance(content.get("key"), str):
            self.press(content["key"])
        if content.get("alive"):
            self.send({"alive": True})
