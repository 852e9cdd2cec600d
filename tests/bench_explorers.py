"""How fast an explorer follows a slider, beside the same figure made in the usual way.

Usual way: `ipywidgets.interact` around a function that draws with matplotlib and calls
`plt.show()`. The very same figure: the explorer's SVG, replayed element by element. Both run in
one JupyterLab in a real browser, one after the other; from the key that moves the slider to the
frame in which the new picture is painted.

    python tests/bench_explorers.py [moves]
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "browser"))

from lab import QUIET, LabPage, LabServer, find_browser

from helpers import workshop

# explorer → (how it is made, the slider that is moved)
EXPLORERS = {
    "AttentionByHand": ("AttentionByHand(step=1)", "step"),
    "DotProductSpread": ("DotProductSpread()", "d_k"),
    "SoftmaxSaturation": ("SoftmaxSaturation()", "gain"),
}
TARGET = 5  # times faster than interact

EXPLORER = """
from helpers.explorers import {name}
explorer = {made}
explorer
"""

# The control's own widget would draw the explorer too: a twin takes its place.
INTERACT = """
import sys
sys.path.insert(0, {tests!r})
import ipywidgets
from helpers.explorers import {name}
from replay import show
explorer = {made}
twin = type(explorer.controls[{slider!r}])(**{{
    key: getattr(explorer.controls[{slider!r}], key)
    for key in ("value", "base", "min", "max", "step", "options", "description")
    if hasattr(explorer.controls[{slider!r}], key)}})
def draw(value):
    explorer.controls[{slider!r}].value = value
    show(explorer.picture)
_ = ipywidgets.interact(draw, value=twin)
"""

# A key goes down; the picture is there when its element has changed, is decoded, and the next frame
# is painted: a task posted from an animation frame runs just after that frame.
MOVE = """
async ({cell, picture, key}) => {
  const area = document.querySelectorAll('.jp-Notebook .jp-CodeCell')[cell]
    .querySelector('.jp-OutputArea');
  const handle = area.querySelector('[role=slider]');
  const seen = () => {
    const shown = area.querySelector(picture);
    return shown ? (shown.src ?? shown.outerHTML) : null;
  };
  const before = seen();
  const painted = () => new Promise(resolve => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
  }));
  const changed = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the picture did not change')), 15000);
    new MutationObserver((_, observer) => {
      const now = seen();
      if (now === null || now === before) return;
      observer.disconnect(); clearTimeout(timer); resolve();
    }).observe(area, {subtree: true, childList: true, attributes: true, characterData: true});
  });
  handle.focus();
  const start = performance.now();
  handle.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  await changed;
  const image = area.querySelector('img');
  if (image) await image.decode();
  await painted();
  return performance.now() - start;
}
"""


def measure(lab: LabPage, path: str, picture: str, moves: int) -> list[float]:
    """Milliseconds of each move: right, left, right, ... after two that do not count."""
    lab.open(path).run_all()
    lab.page.wait_for_selector(f".jp-OutputArea {picture}")
    lab.page.wait_for_timeout(1000)
    keys = [("ArrowRight", "ArrowLeft")[i % 2] for i in range(moves + 2)]
    times = []
    for key in keys:
        times.append(lab.page.evaluate(MOVE, {"cell": 0, "picture": picture, "key": key}))
        lab.page.wait_for_timeout(150)
    return times[2:]


def main(moves: int = 28) -> int:
    from playwright.sync_api import sync_playwright

    browser_path = find_browser()
    if browser_path is None:
        print("The benchmark needs Chromium or Chrome on the PATH.")
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        root, private = Path(folder, "root"), Path(folder, "private")
        (root / workshop.READERS_FOLDER).mkdir(parents=True)
        private.mkdir()
        server = LabServer(root, private).start()
        browser = driver.chromium.launch(executable_path=browser_path, args=QUIET)
        print(f"Slider to painted picture, milliseconds, {moves} moves each: median (fastest)")
        try:
            for name, (made, slider) in EXPLORERS.items():
                words = {"name": name, "made": made, "slider": slider}
                words["tests"] = str(Path(__file__).parent)
                medians = []
                for way, source, picture in (
                    ("interact", INTERACT, ".jp-OutputArea-output img"),
                    ("explorer", EXPLORER, ".ex-picture svg"),
                ):
                    path = f"{workshop.READERS_FOLDER}/{name}-{way}.ipynb"
                    server.write_notebook(path, source.format(**words).strip())
                    page = browser.new_page(viewport={"width": 1280, "height": 800})
                    times = measure(LabPage(server, page), path, picture, moves)
                    page.close()
                    server.shut_down_kernels()
                    medians.append(statistics.median(times))
                    print(f"  {name:18} {way:9} {medians[-1]:6.0f} ({min(times):.0f})")
                ratio = medians[0] / medians[1]
                print(f"  {name:18} {ratio:.1f} times faster (target: {TARGET})")
        finally:
            browser.close()
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
