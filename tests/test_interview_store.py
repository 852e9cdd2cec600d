"""Progress on the disk: always whole, shared by processes, and never lost."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from filelock import FileLock

from helpers.interview import store
from helpers.interview.store import Document, StoreError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def path(folder):
    folder.mkdir()
    return folder / "cards.json"


def add(number):
    return lambda content: content.setdefault("numbers", []).append(number)


def start(code, *arguments):
    """A process of its own that runs this code; it says a line once it has begun."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


# --- The folder ---


def test_the_variable_names_the_folder(folder, monkeypatch):
    assert store.folder() == folder
    monkeypatch.delenv(store.VARIABLE)
    assert "attention-lessons" in store.folder().parts


def test_reading_makes_no_file(folder):
    assert Document(folder / "cards.json").read() == {}
    assert not folder.exists()


def test_a_change_makes_the_folder_and_says_its_format(folder):
    document = Document(folder / "deep" / "cards.json")
    document.change(add(1))
    assert document.read() == {"format": store.FORMAT, "numbers": [1]}


def test_a_change_returns_what_the_edit_returns(path):
    assert Document(path).change(lambda content: "done") == "done"


def test_an_edit_that_fails_changes_nothing(path):
    document = Document(path)
    document.change(add(1))
    before = path.read_bytes()

    def fail(content):
        content["numbers"].append(2)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        document.change(fail)
    assert path.read_bytes() == before
    with pytest.raises(TypeError):  # what JSON does not know
        document.change(add(object()))
    assert path.read_bytes() == before


@pytest.mark.parametrize("words", ["√d_k, 注意, ü, \u2028", "half a pair \ud83d", "😀"])
def test_every_language_and_lone_signs_survive(path, words):
    Document(path).change(add(words))
    assert Document(path).read()["numbers"] == [words]
    path.read_bytes().decode("ascii")


def test_the_mark_of_an_editor_sets_nothing_aside(path):
    path.write_bytes(b"\xef\xbb\xbf" + b'{"format": 1, "numbers": [1]}')
    document = Document(path)
    document.change(add(2))
    assert document.read()["numbers"] == [1, 2]
    assert document.notices == []


@pytest.mark.parametrize("named", ["data", "."])
def test_a_relative_folder_stays_where_python_began(tmp_path, monkeypatch, named):
    monkeypatch.setenv(store.VARIABLE, named)
    began = store.folder()
    assert began.is_absolute()
    monkeypatch.chdir(tmp_path)
    assert store.folder() == began


@pytest.mark.skipif(os.name != "posix", reason="users have no names like this here")
@pytest.mark.parametrize("named", ["~nosuchuser", "~nosuchuser/data"])
def test_a_home_folder_that_is_not_known(tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(store.VARIABLE, named)
    document = Document(store.folder() / "cards.json")
    for act in (document.read, lambda: document.change(add(1))):
        with pytest.raises(StoreError, match=f"home folder that is not known.* {store.VARIABLE}"):
            act()
    assert list(tmp_path.iterdir()) == []


# --- Crashes and several processes ---

WRITER = """
    import sys
    from pathlib import Path
    from helpers.interview.store import Document

    document = Document(Path(sys.argv[1]))
    print("begun", flush=True)
    for number in range(1_000_000):
        document.change(lambda content: content.update(number=number, text="x" * 200_000))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_process_killed_while_it_writes_leaves_a_whole_file(path):
    for _ in range(6):
        writer = start(WRITER, path)
        writer.stdout.readline()
        before = path.read_bytes() if path.exists() else b""
        while not path.exists() or path.read_bytes() == before:
            assert writer.poll() is None
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        content = json.loads(path.read_bytes())
        assert content["text"] == "x" * 200_000
        document = Document(path)
        assert document.read() == content  # the lock of the dead does not hold
        document.change(lambda content: content.update(number=-1))
        assert document.notices == []


def test_an_interrupt_before_the_replacement_leaves_the_old_file(path, monkeypatch):
    document = Document(path)
    document.change(add(1))
    before = path.read_bytes()

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        document.change(add(2))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*.new"))
    document.change(add(3))
    assert document.read()["numbers"] == [1, 3]


ADDER = """
    import sys
    from pathlib import Path
    from helpers.interview.store import Document

    print("begun", flush=True)
    sys.stdin.readline()
    for number in range(40):
        Document(Path(sys.argv[1])).change(
            lambda content: content.setdefault("numbers", []).append([sys.argv[2], number])
        )
"""


def test_two_processes_at_once_lose_nothing(path):
    command = [sys.executable, "-c", textwrap.dedent(ADDER), str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, name], cwd=ROOT, **pipes) for name in "ab"]
    for writer in writers:
        writer.stdout.readline()
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.wait() == 0
    numbers = Document(path).read()["numbers"]
    assert sorted(numbers) == [[name, number] for name in "ab" for number in range(40)]


def test_who_waits_too_long_is_told(path, monkeypatch):
    document = Document(path)
    document.change(add(1))
    monkeypatch.setattr(store, "_SECONDS", 0.05)
    with FileLock(str(path) + ".lock"):
        with pytest.raises(StoreError, match="in use by another notebook"):
            document.change(add(2))
        assert document.read()["numbers"] == [1]  # what stands there is whole
    document.change(add(3))
    assert document.read()["numbers"] == [1, 3]


def test_drafts_of_the_killed_are_removed(path):
    def draft(name, hours):
        made = path.parent / name
        made.write_bytes(b"{")
        at = time.time() - hours * 3600
        os.utime(made, (at, at))
        return made

    old = draft(".cards.json.0123abcd.new", hours=2)
    kept = [
        draft(".cards.json.89abcdef.new", hours=0),  # perhaps being written now
        draft(".other.json.0123abcd.new", hours=2),
        draft(".cards.json.my-notes.new", hours=2),
    ]
    Document(path).change(add(1))
    assert not old.exists()
    assert all(each.exists() for each in kept)


# --- Links ---


@pytest.fixture
def linked(path, tmp_path):
    """The file that `path` is a link to, in another folder."""
    real = tmp_path / "synchronised" / "mine.json"
    real.parent.mkdir()
    try:
        path.symlink_to(real)
    except OSError:
        pytest.skip("no links may be made here")
    return real


def test_a_link_stays_a_link(path, linked):
    for number in (1, 2):
        Document(path).change(add(number))
        assert path.is_symlink()
        assert json.loads(linked.read_bytes())["numbers"] == list(range(1, number + 1))
    assert Document(path).read() == Document(linked).read()


def test_a_damaged_file_is_set_aside_and_the_link_stays(path, linked):
    linked.write_bytes(b"{")
    Document(path).change(add(1))
    assert path.is_symlink()
    (aside,) = linked.parent.glob("mine.damaged-*")
    assert aside.read_bytes() == b"{"
    assert json.loads(linked.read_bytes())["numbers"] == [1]


# --- Damaged files, and those of another version ---


def positive(content):
    if content.get("number", 1) < 0:
        raise ValueError("the number is negative")


DAMAGED = [
    b"",
    b"{",
    b'{"format": 1, "numbers": [1',
    b"\xff\xfe\x00broken",
    b"[1, 2]",
    b'"words"',
    b"null",
    b"{}",
    b'{"format": "one"}',
    b'{"format": 1, "number": -1}',
    b'{"format": 1, "number": "many"}',
    b"[" * 100_000,
    bytes(1000),
]


@pytest.mark.parametrize("content", DAMAGED, ids=lambda content: repr(content[:24]))
@pytest.mark.parametrize("way", ["read", "change"])
def test_a_damaged_file_is_set_aside_unchanged(path, content, way):
    path.write_bytes(content)
    document = Document(path, positive)
    if way == "read":
        assert document.read() == {}
        assert not path.exists()
    else:
        document.change(add(1))
        assert document.read() == {"format": 1, "numbers": [1]}
    (aside,) = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == content
    (notice,) = document.notices
    assert str(aside) in notice
    assert "nothing in it was changed" in notice
    assert document.read() == Document(path).read()
    assert len(document.notices) == 1


def test_files_set_aside_in_the_same_second_are_all_kept(path, monkeypatch):
    monkeypatch.setattr(store.time, "strftime", lambda _: "20260101-120000")
    document = Document(path)
    for content in (b"one", b"two", b"three", b"four"):
        path.write_bytes(content)
        document.read()
    kept = {each.read_bytes() for each in path.parent.glob("*.damaged-*")}
    assert kept == {b"one", b"two", b"three", b"four"}


def test_a_file_of_a_newer_version_is_left_alone(path):
    content = json.dumps({"format": store.FORMAT + 1, "numbers": {"new": "form"}}).encode()
    path.write_bytes(content)
    document = Document(path, positive)
    for act in (document.read, lambda: document.change(add(1))):
        with pytest.raises(StoreError, match="newer version"):
            act()
    assert path.read_bytes() == content
    assert not list(path.parent.glob("*.damaged-*"))


# --- Where one may not write ---


def test_a_file_in_place_of_the_folder(folder):
    folder.write_text("something else")
    document = Document(folder / "cards.json")
    assert document.read() == {}
    with pytest.raises(StoreError, match=f"no folder stands where .* {store.VARIABLE}"):
        document.change(add(1))
    assert folder.read_text() == "something else"


def test_a_folder_in_place_of_the_file(path):
    path.mkdir()
    document = Document(path)
    for act in (document.read, lambda: document.change(add(1))):
        with pytest.raises(StoreError, match=r"cards\.json"):
            act()
    assert path.is_dir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_what_is_no_ordinary_file_is_left_alone(path):
    os.mkfifo(path)
    document = Document(path)
    for act in (document.read, lambda: document.change(add(1))):
        with pytest.raises(StoreError, match=r"cards\.json is no ordinary file"):
            act()
    assert path.is_fifo()


@pytest.mark.skipif(os.name != "posix", reason="elsewhere it is a folder that is not there")
def test_a_folder_with_a_name_too_long(folder):
    document = Document(folder / ("d" * 5000) / "cards.json")
    for act in (document.read, lambda: document.change(add(1))):
        with pytest.raises(StoreError, match=store.VARIABLE):
            act()


@pytest.fixture
def forbid(monkeypatch):
    """Raise as in somebody else's folder; permissions themselves do not bind every tester."""

    def make(owner, name, concerned):
        really = getattr(owner, name)

        def refuse(*given, **options):
            if concerned(*given):
                raise PermissionError(13, "Permission denied")
            return really(*given, **options)

        monkeypatch.setattr(owner, name, refuse)

    return make


def test_a_folder_that_may_not_be_read(path, forbid):
    Document(path).change(add(1))
    forbid(os, "stat", lambda at, *_: Path(str(at)) == path)
    document = Document(path)
    for act in (document.read, lambda: document.change(add(1))):
        with pytest.raises(StoreError, match=f"Permission denied.* {store.VARIABLE}"):
            act()


def test_a_folder_that_may_only_be_read_shows_what_it_has(path, forbid):
    Document(path).change(add(1))
    forbid(FileLock, "acquire", lambda *_: True)
    document = Document(path)
    assert document.read()["numbers"] == [1]
    with pytest.raises(StoreError, match=f"Permission denied.* {store.VARIABLE}"):
        document.change(add(2))
    path.write_bytes(b"{")
    with pytest.raises(StoreError, match=r"could not be read \(Expecting.* Permission denied"):
        document.read()
    assert path.read_bytes() == b"{"


@pytest.mark.skipif(
    os.name != "posix" or getattr(os, "geteuid", lambda: 0)() == 0,
    reason="permissions do not bind here",
)
def test_a_read_only_folder(path):
    Document(path).change(add(0))
    (path.parent / "cards.json.lock").unlink(missing_ok=True)
    path.parent.chmod(0o500)
    try:
        assert Document(path).read()["numbers"] == [0]
        with pytest.raises(StoreError, match=store.VARIABLE):
            Document(path).change(add(1))
    finally:
        path.parent.chmod(0o700)


def test_a_full_disk(path, monkeypatch):
    document = Document(path)
    document.change(add(1))
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left on device"):
            document.change(add(2))
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*.new"))
    document.change(add(3))
    assert document.read()["numbers"] == [1, 3]
