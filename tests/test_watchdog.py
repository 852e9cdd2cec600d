"""The watchdog: whatever a function does, the caller goes on."""

import builtins
import contextlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from helpers import watchdog


def loops():
    while True:
        pass


def loops_and_swallows():
    while True:
        try:  # noqa: SIM105 (as readers write it)
            sum(range(50))
        except BaseException:
            pass


def loops_in_loops_and_swallows():
    while True:
        with contextlib.suppress(BaseException):
            while True:
                with contextlib.suppress(BaseException):
                    time.sleep(0.001)


def loops_in_its_clean_up():
    try:
        loops()
    finally:
        loops()


ENDLESS = [loops, loops_and_swallows, loops_in_loops_and_swallows, loops_in_its_clean_up]


@pytest.mark.parametrize("fn", ENDLESS)
def test_an_endless_loop_ends(fn):
    start = time.monotonic()
    outcome = watchdog.run(fn, seconds=0.1)
    assert outcome.ended == "stopped"
    assert not outcome.in_time
    assert time.monotonic() - start < 1.5
    busy = time.process_time()
    time.sleep(0.1)
    assert time.process_time() - busy < 0.08, "its thread still uses the processor"


def test_it_works_in_another_thread_and_beside_a_busy_one():
    """Widget callbacks run in a thread of their own while a cell runs in the main one."""
    box = []
    thread = threading.Thread(target=lambda: box.append(watchdog.run(loops, seconds=0.1)))
    thread.start()
    until = time.monotonic() + 5
    while thread.is_alive() and time.monotonic() < until:
        sum(range(1000))
    assert box[0].ended == "stopped"


def test_what_sits_in_c_is_left_behind_and_ends_later():
    ended = threading.Event()

    def sleeps():
        try:
            time.sleep(1.6)
        finally:
            ended.set()

    outcome = watchdog.run(sleeps, seconds=0.05)
    assert outcome.ended == "left behind"
    assert ended.wait(2)
    assert watchdog.run(lambda: 1).value == 1


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError("no room")])
def test_every_exception_is_caught(error):
    def raises():
        raise error

    outcome = watchdog.run(raises)
    assert outcome.ended == "raised"
    assert outcome.fault.name == type(error).__name__
    assert outcome.fault.code == "raise error"


def test_endless_recursion_is_caught():
    def again():
        return again()

    assert watchdog.run(again).fault.name == "RecursionError"


def test_an_exception_names_the_line_and_neither_path_nor_address():
    def raises():
        values = object(), "/tmp/ipykernel_123/456.py", r"C:\Users\me\x.py"
        raise ValueError(values)

    fault = watchdog.run(raises).fault
    assert fault.code == "raise ValueError(values)"
    assert fault.line == raises.__code__.co_firstlineno + 2
    assert "<object object at 0x…>" in fault.message
    assert "ipykernel" not in str(fault)
    assert "Users" not in str(fault)


def test_a_division_is_not_taken_for_a_path():
    def raises():
        raise ValueError("shapes (2,3) / (4,) and 1/2 do not fit")

    assert watchdog.run(raises).fault.message == "shapes (2,3) / (4,) and 1/2 do not fit"


def test_the_line_is_the_readers_own_and_not_the_librarys():
    def raises():
        return np.linalg.inv(np.zeros((2, 3)))

    assert watchdog.run(raises).fault.code == "return np.linalg.inv(np.zeros((2, 3)))"


def test_long_and_broken_messages_are_survived():
    class Rude(Exception):
        def __str__(self):
            raise KeyError

    def long():
        raise ValueError("x" * 10_000)

    def rude():
        raise Rude

    assert len(watchdog.run(long).fault.message) < 400
    assert watchdog.run(rude).fault.name == "Rude"


def test_what_it_prints_is_kept_back_and_what_others_print_is_not(capsys):
    def prints():
        for i in range(10_000):
            print("line", i)
        print("to stderr", file=sys.stderr)
        return 1

    outcome = watchdog.run(prints)
    print("mine")
    assert outcome.value == 1
    assert outcome.printed.startswith("line 0\nline 1\n")
    assert len(outcome.printed) <= 2_000
    assert capsys.readouterr() == ("mine\n", "")


def test_another_thread_prints_as_ever(capsys):
    def slow():
        time.sleep(0.2)

    watched = threading.Thread(target=watchdog.run, args=(slow,))
    watched.start()
    time.sleep(0.05)
    print("from a cell")
    watched.join()
    assert capsys.readouterr().out == "from a cell\n"


def test_what_it_displays_is_dropped(monkeypatch):
    class Publisher:
        """As in ipykernel: a hook that returns None keeps the message from being sent."""

        def __init__(self):
            self.local = threading.local()

        def register_hook(self, hook):
            self.local.hook = hook

        def publish(self, message):
            return getattr(self.local, "hook", lambda message: message)(message)

    class Shell:
        display_pub = Publisher()

    monkeypatch.setattr("IPython.get_ipython", Shell)
    assert watchdog.run(lambda: Shell.display_pub.publish("a picture")).value is None
    assert Shell.display_pub.publish("a picture") == "a picture"


def test_input_is_refused_and_everything_is_put_back():
    before = sys.stdout, sys.stderr, builtins.input
    assert watchdog.run(lambda: input("your answer? ")).fault.name == "NoInput"
    watchdog.run(loops, seconds=0.05)
    assert (sys.stdout, sys.stderr, builtins.input) == before


def test_numpy_warns_of_nothing(recwarn):
    value = watchdog.run(lambda: np.exp(np.array([1e4])) / np.inf).value
    assert np.isnan(value).all()
    assert not recwarn.list


def test_it_cannot_be_called_from_inside():
    outcome = watchdog.run(lambda: watchdog.run(lambda: 1))
    assert outcome.fault.name == "RuntimeError"
    assert "from a cell" in outcome.fault.message


def test_calls_from_two_threads_take_turns():
    box = []
    threads = [
        threading.Thread(target=lambda n=n: box.append(watchdog.run(lambda: n).value))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(box) == list(range(8))


def test_an_interrupt_of_the_caller_stops_the_function_too(monkeypatch):
    """ctrl-C in JupyterLab raises KeyboardInterrupt where the caller waits."""
    running = threading.Event()
    beats = []

    def beats_on():
        running.set()
        while True:
            beats.append(1)
            time.sleep(0.001)

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            if timeout == 30:
                running.wait()
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(watchdog.threading, "Event", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        watchdog.run(beats_on, seconds=30)
    monkeypatch.undo()
    count = len(beats)
    time.sleep(0.05)
    assert len(beats) == count


def test_a_thread_left_behind_does_not_keep_the_interpreter():
    code = (
        "import time; from helpers import watchdog;"
        "print(watchdog.run(lambda: time.sleep(60), seconds=0.05).ended)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left behind\n", "")
