"""A round's clock: Python keeps the time, the browser counts the seconds down.

Time is shown, and that is all: what happens when it is over is for the interview to say, and no
answer is ever cut off by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import anywidget
import traitlets

_MODULE = """
const shown = (seconds) => {
  const whole = Math.floor(Math.abs(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
};
function render({ model, el }) {
  let at = performance.now();
  const round = document.createElement("span"), item = document.createElement("span");
  round.className = "iv-left";
  item.className = "iv-item";
  el.classList.add("iv-clock");
  el.setAttribute("role", "timer");
  const said = document.createElement("span");
  said.className = "iv-spoken";
  said.setAttribute("role", "status");
  el.append(round, item, said);
  let before = model.get("left");
  const draw = () => {
    const running = model.get("running"), planned = model.get("planned");
    const passed = running ? (performance.now() - at) / 1000 : 0;
    const left = model.get("left") - passed;
    // What is left is rounded up, so that a round of ten minutes begins with 10:00.
    const words = left > 0 ? `${shown(Math.ceil(left))} left` : `${shown(left)} over time`;
    round.textContent = running ? words : `${words}, paused`;
    round.classList.toggle("iv-over", left <= 0);
    const due = [300, 60, 0].find((mark) => before > mark && left <= mark);
    if (due !== undefined)
      said.textContent = due ? `${due / 60} minute${due > 60 ? "s" : ""} left` : "Time is over";
    before = left;
    item.hidden = !planned;
    item.textContent =
      `this one: ${shown(model.get("spent") + passed)} of about ${shown(planned)}`;
  };
  const stopped = () => {
    clearInterval(timer);
    if (!/stopped/.test(round.textContent)) round.textContent += ", stopped";
  };
  const sync = () => { at = performance.now(); before = model.get("left"); draw(); };
  model.on("change:stamp", sync);
  const timer = setInterval(draw, 250);
  model.send({ sync: true });  // a page that was opened later does not know what time it is
  draw();
  model.on("comm_live_update", stopped);
  return () => {
    clearInterval(timer);
    model.off("change:stamp", sync);
    model.off("comm_live_update", stopped);
  };
}
export default { render };
"""


class Stopwatch:
    """Seconds that have passed while it ran. now : a clock that only goes forward, in seconds."""

    def __init__(self, seconds: float = 0.0, now: Callable[[], float] = time.monotonic):
        self._before, self._now = seconds, now
        self._since: float | None = None

    @property
    def running(self) -> bool:
        return self._since is not None

    @property
    def seconds(self) -> float:
        return self._before + (self._now() - self._since if self.running else 0.0)

    def start(self) -> None:
        if not self.running:
            self._since = self._now()

    def stop(self) -> None:
        self._before, self._since = self.seconds, None


class ClockFace(anywidget.AnyWidget):
    """Shows two times: what is left of the round, and what one answer has taken.

    left : seconds, negative over time. spent, planned : of this answer; planned 0 hides it.
    """

    _esm = _MODULE
    left = traitlets.Float().tag(sync=True)
    spent = traitlets.Float().tag(sync=True)
    planned = traitlets.Float().tag(sync=True)
    running = traitlets.Bool().tag(sync=True)
    stamp = traitlets.Int().tag(sync=True)  # one more with each message: times count from there

    def __init__(self, ask: Callable[[], Mapping[str, float | bool]]):
        """ask : tells left, spent, planned and running, as they are now."""
        super().__init__()
        self._ask = ask
        self.on_msg(lambda *_: self.refresh())

    def refresh(self) -> None:
        """Send the browser the times as they are now."""
        with self.hold_sync():
            for name, value in self._ask().items():
                setattr(self, name, value)
            self.stamp += 1
