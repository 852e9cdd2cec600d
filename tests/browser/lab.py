"""A real JupyterLab, started as `make lab` starts it, and its page in a real browser.

`LabServer` is the server, on a copy of the lessons; `LabPage` is one browser page on it, with what
a test does there: open a notebook, run it, find a control, read what the screen says. Nothing here
waits for a fixed time: each step waits for the state that it needs.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlsplit

import nbformat
import nbformat.v4 as v4

from helpers import workshop
from helpers.execute import KERNELSPEC

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without these a browser looks up its maker's hosts at every start.
QUIET = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-gpu",
]
SERVER_START = 120  # seconds
STEP = 60_000  # milliseconds for one step in the page, on a machine with other things to do
RUN = 300_000  # milliseconds for all cells of a lesson
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
ROLES = ["slider", "button", "spinbutton", "textbox", "combobox", "checkbox", "radio", "tab"]
ROLES += ["img", "status"]


def find_browser():
    """The path of a Chromium or Chrome on this machine, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class LabServer:
    """JupyterLab in a process of its own, on the folder `root`."""

    def __init__(self, root: Path, private: Path):
        """`private`: an empty folder for Jupyter's files, so that no setting of yours counts."""
        self.root, self.private = root, private
        self.log = private / "jupyterlab.log"
        self.process = None
        self.url = self.token = ""
        self._pages = 0

    def start(self) -> "LabServer":
        environment = workshop.clean_environment()
        for name, folder in {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }.items():
            (self.private / folder).mkdir(parents=True, exist_ok=True)
            environment[name] = str(self.private / folder)
        workshop.write_lab_settings(self.root)
        # The reader's command, with a handle by which a test can ask the page about its state.
        options = ["--no-browser", "--port=0", "--LabApp.expose_app_in_browser=True"]
        command = workshop.lab_command(sys.executable, self.root, options)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait_until_it_answers()
        return self

    def _wait_until_it_answers(self):
        # It writes its address and its token to a file of its own.
        note = self.private / "runtime" / f"jpserver-{self.process.pid}.json"
        end = time.monotonic() + SERVER_START
        while time.monotonic() < end and self.process.poll() is None:
            try:
                told = json.loads(note.read_text(encoding="utf-8"))
                self.url, self.token = told["url"].rstrip("/"), told["token"]
                self.ask("/api/status")
                return
            except (OSError, ValueError):
                time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text()[-3000:]}")

    def ask(self, path: str, method: str = "GET"):
        """The server's answer to a request that carries its token."""
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(self.url + path, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def address(self, path: str) -> str:
        """Where a notebook opens, in a workspace of its own: nothing of another test's is there."""
        self._pages += 1
        place = f"/lab/workspaces/test-{self._pages}/tree/{quote(path)}"
        return f"{self.url}{place}?token={self.token}"

    def shut_down_kernels(self):
        for session in self.ask("/api/sessions"):
            self.ask(f"/api/sessions/{session['id']}", "DELETE")

    def stop(self):
        """End this process, by its id; it ends its kernels."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def write_notebook(self, path: str, *sources: str) -> str:
        """A notebook of code cells, where a lesson would lie; "# ..." is a heading. Its path."""
        cells = [
            v4.new_markdown_cell(text) if text.startswith("# ") else v4.new_code_cell(text)
            for text in sources
        ]
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(v4.new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), target)
        return path


# The notebook in front, and what must be true of it. `jupyterapp` is JupyterLab itself.
PANEL = "window.jupyterapp?.shell?.currentWidget"
OPEN = f"""path => {{
  const panel = {PANEL};
  return panel?.context?.path === path && panel.context.isReady && panel.content?.model &&
    panel.content.widgets.length === panel.content.model.cells.length;
}}"""
IDLE = f"() => {PANEL}?.sessionContext?.session?.kernel?.status === 'idle'"
DIALOG = "() => document.querySelector('.jp-Dialog')?.innerText ?? ''"
START_RUN = """() => {
  window.testRun = 'running';
  jupyterapp.commands.execute('notebook:run-all-cells').then(
    done => { window.testRun = done === false ? 'stopped' : 'done'; },
    error => { window.testRun = String(error); });
}"""
IN_VIEW = """area => {
  const box = area.getBoundingClientRect();
  return box.top < innerHeight - 100 && box.bottom > 150;
}"""
CELLS = f"""() => {PANEL}.content.widgets.map(cell => ({{
  type: cell.model.type,
  source: cell.model.sharedModel.getSource(),
  count: cell.model.executionCount ?? null,
  outputs: cell.model.type === 'code' ? cell.model.outputs.toJSON() : [],
}}))"""


class LabPage:
    """One page of the browser: JupyterLab with one notebook."""

    def __init__(self, server: LabServer, page):
        self.server, self.page = server, page
        self.console: list[str] = []  # "error: ..." and everything else that it said
        self.hosts: set[str] = set()  # every host that was asked for anything
        page.set_default_timeout(STEP)
        page.on("console", lambda said: self.console.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        page.on("request", lambda request: self._remember(request.url))
        page.on("websocket", lambda socket: self._remember(socket.url))

    def _remember(self, url):
        host = urlsplit(url).hostname  # None for data: and blob:, which ask nobody
        if host:
            self.hosts.add(host)

    # What a test does.

    def open(self, path: str, theme: str = "light") -> "LabPage":
        """Open a notebook and wait until its kernel is ready."""
        self.page.goto(self.server.address(path))
        self._wait(OPEN, path)
        self.set_theme(theme)
        self.wait_until_idle()
        return self

    def set_theme(self, theme: str):
        """ "light" or "dark"."""
        change = "name => jupyterapp.commands.execute('apputils:change-theme', {theme: name})"
        self.page.evaluate(change, THEMES[theme])
        light = "true" if theme == "light" else "false"
        self._wait("light => document.body.dataset.jpThemeLight === light", light)

    def wait_until_idle(self):
        self._wait(IDLE)

    def run_all(self, allow_errors: bool = False) -> list[dict]:
        """Run every cell and wait until all have finished. Returns `cells()`."""
        self.page.evaluate(START_RUN)
        self._wait("() => window.testRun !== 'running'", timeout=RUN)
        self.wait_until_idle()
        cells = self.cells()
        for cell in cells:
            for output in cell["outputs"]:
                if output["output_type"] == "error" and not allow_errors:
                    error = f"{output['ename']}: {output['evalue']}"
                    raise AssertionError(f"{error}\nin the cell\n{cell['source']}")
        waiting = [c["source"] for c in cells if c["type"] == "code" and c["count"] is None]
        if (waiting or self.page.evaluate("window.testRun") != "done") and not allow_errors:
            raise AssertionError(f"cells that did not run: {waiting}")
        return cells

    def cells(self) -> list[dict]:
        """type, source, count and outputs of each cell, as JupyterLab has them now."""
        return self.page.evaluate(CELLS)

    def cell(self, number: int):
        """The code cell with this number, counted from 1, with its output."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number - 1)

    def output(self, number: int):
        """What is under that cell."""
        return self.cell(number).locator(".jp-OutputArea").first

    def output_of(self, source: str):
        """The output of the one code cell that starts with `source`, scrolled into view."""
        code = [cell["source"] for cell in self.cells() if cell["type"] == "code"]
        (number,) = [i for i, text in enumerate(code, start=1) if text.startswith(source)]
        area = self.output(number)
        # Cells that come into view get their true height and push the others away: scroll again.
        for _ in range(10):
            area.scroll_into_view_if_needed()
            self.page.wait_for_timeout(200)
            if area.evaluate(IN_VIEW):
                return area
        raise AssertionError(f"the output of {source!r} does not stay in view")

    def control(self, name: str, role: str | None = None, within=None):
        """The one control with this accessible name: what a screen reader would call it.

        `within`: a locator to look in; else the outputs of the notebook.
        """
        place = within or self.page.locator(".jp-Notebook .jp-OutputArea")
        found = None
        for each in [role] if role else ROLES:
            one = place.get_by_role(each, name=name, exact=True)
            found = found.or_(one) if found else one
        return found

    def widget(self, label: str, within=None):
        """The ipywidget whose visible label is `label`, whatever its parts are called."""
        place = within or self.page.locator(".jp-Notebook .jp-OutputArea")
        exactly = re.compile(rf"^\s*{re.escape(label)}\s*$")
        own_label = self.page.locator(":scope > .widget-label", has_text=exactly)
        return place.locator(".jupyter-widgets").filter(has=own_label)

    # What must hold at the end.

    @property
    def errors(self) -> list[str]:
        """What the console called an error."""
        return [line for line in self.console if line.startswith("error")]

    @property
    def foreign_hosts(self) -> set[str]:
        """Hosts outside this machine that the page asked for something."""
        return self.hosts - {"127.0.0.1", "localhost"}

    def assert_quiet(self):
        """No request left this machine, and the console names no error."""
        assert self.foreign_hosts == set()
        assert self.errors == []

    def save_evidence(self, folder: Path):
        """The screen and all that was said, for whoever looks into a failure."""
        folder.mkdir(parents=True, exist_ok=True)
        said = "\n".join([*self.console, "", f"hosts: {sorted(self.hosts)}"])
        (folder / "console.txt").write_text(said, encoding="utf-8")
        shutil.copy(self.server.log, folder / "jupyterlab.txt")
        self.page.screenshot(path=folder / "screen.png", timeout=20_000)

    def _wait(self, condition: str, argument=None, timeout=STEP):
        """Until `condition` holds in the page; if not, say what the page says instead."""
        from playwright.sync_api import TimeoutError as TooLate

        try:
            self.page.wait_for_function(condition, arg=argument, timeout=timeout)
        except TooLate:
            dialog = self.page.evaluate(DIALOG)
            because = f"; a dialog is open: {dialog!r}" if dialog else ""
            raise AssertionError(f"never true in the page: {condition}{because}") from None
