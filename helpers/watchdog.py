"""Run somebody's function so that whatever it does, the caller gets an answer in time.

SIGALRM is missing on Windows and works in the main thread only, and widget callbacks run in
another one. So the function runs in a thread of its own; when its time is up, an exception is
raised inside that thread. One that keeps catching it is put to sleep for good.

Limits. A loop inside C code cannot be interrupted from Python: its thread is left behind and ends
when the loop does. C code that also keeps the interpreter's lock (10**10**9) holds up everything,
this module included. `os._exit` and a crash end the kernel.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import ctypes
import io
import linecache
import re
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SECONDS = 2.0  # for one call
_POLITE, _FIRM = 0.3, 0.7  # how long to ask, then to insist, before a thread is left behind
_PRINTED = 2_000  # characters kept of what a function prints
_MESSAGE = 300  # characters kept of an error message

_one_at_a_time = threading.Lock()  # sys.stdout and input() are everybody's
_watched: set[int] = set()  # idents of the threads whose output is swallowed


class TimeIsUp(SystemExit):
    """Raised inside a function that ran too long; a thread that a SystemExit ends is silent."""


class NoInput(EOFError):
    """Raised by input(): nobody is there to type while a function is being checked."""


@dataclass(frozen=True)
class Fault:
    """An exception, told without paths and addresses, so that it reads the same in every run.

    line : number of the deepest line of the function's own code, as its cell or file counts it;
        None when the exception came from the call itself.
    code : that line's text.
    """

    name: str
    message: str
    line: int | None
    code: str

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        line, code = _own_line(error)
        try:
            message = str(error)
        except BaseException:  # their own __str__ may raise anything
            message = "(its message cannot be shown)"
        return cls(type(error).__name__, _clean(message), line, code)

    def __str__(self) -> str:
        where = "" if self.line is None else f" in line {self.line}"
        where += f", `{self.code}`" if self.code else ""
        return f"{self.name}{where}" + (f": {self.message}" if self.message else "")


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    ended : "returned"; "raised"; "stopped" (its time was up and it ended); "left behind" (its
        time was up and it could not be ended).
    value : what it returned. fault : what it raised. printed : what it printed, shortened.
    """

    ended: str
    value: object = None
    fault: Fault | None = None
    printed: str = ""

    @property
    def in_time(self) -> bool:
        return self.ended in ("returned", "raised")


def run(call: Callable[[], object], seconds: float = SECONDS) -> Outcome:
    """Call `call()` and say how it ended, at most about a second after its time is up.

    What it prints is kept, what it displays is dropped; input() raises `NoInput`; NumPy warns of
    nothing. Every exception is caught, SystemExit and KeyboardInterrupt too. One call runs at a
    time.

    Raises RuntimeError when called from inside a call that is being watched, which would wait for
    itself.
    """
    if _thread.get_ident() in _watched:
        raise RuntimeError("a checked function called check() again; call it from a cell instead.")
    box: dict[str, object] = {}
    started, done = threading.Event(), threading.Event()

    def work():
        try:
            try:
                box["ident"] = _thread.get_ident()
                _watched.add(box["ident"])
                started.set()
                _hide_displays()
                with np.errstate(all="ignore"):  # of this thread alone
                    box["value"] = call()
            except BaseException as error:  # whatever it is, it must not end the kernel
                box["fault"] = Fault.of(error)
            finally:
                done.set()
        finally:
            done.set()  # again: the exception that stops a thread can hit the line above
            _watched.discard(_thread.get_ident())

    with _one_at_a_time, _quiet() as printed:
        _thread.start_new_thread(work, ())
        started.wait()
        ended = "returned"
        try:
            if not done.wait(seconds):
                ended = "left behind"
        finally:  # an interrupt of the kernel must not leave the thread running either
            if not done.is_set() and _stop(box["ident"], done):
                ended = "stopped"
    if ended == "returned" and "fault" in box:
        ended = "raised"
    if ended in ("stopped", "left behind"):
        return Outcome(ended, printed=printed.text())
    return Outcome(ended, box.get("value"), box.get("fault"), printed.text())


def _stop(ident: int, done: threading.Event) -> bool:
    """End the thread, or put it to sleep; False when it is out of Python's reach."""
    asleep = threading.Event()

    class Asleep(SystemExit):
        """Raised in a thread that swallows TimeIsUp. Catching it creates it: then it waits."""

        def __init__(self):
            asleep.set()
            threading.Event().wait()

    for exception, patience in ((TimeIsUp, _POLITE), (Asleep, _FIRM)):
        until = time.monotonic() + patience
        while time.monotonic() < until:
            _raise_in(ident, exception)
            if done.wait(0.005) or asleep.is_set():
                return True
    _raise_in(ident, TimeIsUp)  # waits for it, should it ever come back from C
    return False


def _raise_in(ident: int, exception: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(exception))


class _Swallow(io.TextIOBase):
    """Stands in for a stream: keeps what watched threads write, passes on what others do."""

    def __init__(self, stream):
        self._stream = stream
        self._kept: list[str] = []
        self._room = _PRINTED

    def write(self, text):
        if _thread.get_ident() not in _watched:
            return self._stream.write(text)
        if self._room > 0:
            self._kept.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def flush(self):
        if _thread.get_ident() not in _watched:
            self._stream.flush()

    def text(self) -> str:
        return "".join(self._kept)

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextlib.contextmanager
def _quiet():
    """Swallow what watched threads print, and refuse them input(). Yields the stdout stand-in."""
    before = sys.stdout, sys.stderr, builtins.input
    out, err = _Swallow(sys.stdout), _Swallow(sys.stderr)

    def no_input(*args, **kwargs):
        if _thread.get_ident() in _watched:
            raise NoInput("input() has nobody to ask here")
        return before[2](*args, **kwargs)

    sys.stdout, sys.stderr, builtins.input = out, err, no_input
    try:
        yield out
    finally:
        sys.stdout, sys.stderr, builtins.input = before


def _hide_displays() -> None:
    """Drop what this thread displays (`display`, `plt.show`); Jupyter has such hooks per thread."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    publisher = getattr(shell, "display_pub", None)
    if hasattr(publisher, "register_hook"):
        publisher.register_hook(lambda message: None)


_NOT_THEIRS = tuple(
    str(Path(folder))
    for folder in {
        *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
        Path(__file__).parent,
    }
)


def _own_line(error: BaseException) -> tuple[int | None, str]:
    """Number and text of the deepest line that is neither a library's nor ours."""
    line, name = None, ""
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith((*_NOT_THEIRS, "<frozen")):
            line, name = step.tb_lineno, file
        step = step.tb_next
    return line, linecache.getline(name, line).strip() if line else ""


def _clean(message: str) -> str:
    """The message in one line of bounded length, without addresses and paths."""
    message = re.sub(r"0x[0-9A-Fa-f]{4,}", "0x…", message)
    message = re.sub(r"(?<![\w.])(?:[A-Za-z]:)?(?:[\\/]{1,2}[\w.~-]+){2,}", "…", message)
    message = " ".join(message.split())
    return message if len(message) <= _MESSAGE else message[:_MESSAGE] + " …"
