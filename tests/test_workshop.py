"""The house: setting up, the reader's copies, and notebooks that are written back stably."""

import ast
import errno
import hashlib
import json
import re
import subprocess
import sys
import venv
from pathlib import Path

import nbformat
import nbformat.v4 as v4
import pytest

from helpers import execute, workshop

LESSON = "01_three_tokens_by_hand.ipynb"
SOURCE = Path(workshop.__file__)


def write_lesson(root, name=LESSON, question="How large is it?"):
    answer = v4.new_code_cell("print(4)", metadata={"tags": ["reveal"]}, id="answer")
    answer.outputs = [v4.new_output("stream", text="4\n")]
    answer.execution_count = 2
    shown = v4.new_code_cell("print(3)", id="shown", execution_count=1)
    shown.outputs = [v4.new_output("stream", text="3\n")]
    cells = [v4.new_markdown_cell(question, id="question"), shown, answer]
    path = root / "notebooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(v4.new_notebook(cells=cells)), encoding="utf-8")
    return path


@pytest.fixture
def root(tmp_path):
    """A repository with one lesson and nothing to install."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "requirements.txt").write_text("something==1\n")
    (tmp_path / "tests" / "requirements.txt").write_text("something-else==1\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.ruff]\nline-length = 9\n'
    )
    write_lesson(tmp_path)
    return tmp_path


# --- Setting up ----------------------------------------------------------------------------------


class FakePip:
    """Stands in for pip: says `lines`, ends with `code`, and counts its calls."""

    def __init__(self):
        self.calls = []
        self.lines, self.code = ["Installing collected packages: a, b"], 0

    def command(self, root):
        self.calls.append(root)
        code = f"import sys; print({chr(10).join(self.lines)!r}); sys.exit({self.code})"
        return [sys.executable, "-c", code]


@pytest.fixture
def fake_pip(monkeypatch):
    fake = FakePip()

    def quick_venv(root):
        folder = root / ".venv"
        venv.create(folder, clear=True)
        (folder / workshop.UNFINISHED).touch()

    monkeypatch.setattr(workshop, "make_venv", quick_venv)
    monkeypatch.setattr(workshop, "pip", fake.command)
    monkeypatch.setattr(workshop, "pip_runs", lambda root: True)
    return fake


def installs(fake, root, tests=False):
    """How often one set-up calls pip."""
    before = len(fake.calls)
    workshop.set_up(root, tests)
    return len(fake.calls) - before


def test_setting_up_installs_once(fake_pip, root):
    assert installs(fake_pip, root) == 1
    assert installs(fake_pip, root) == 0
    assert installs(fake_pip, root, tests=True) == 1, "what only tests need has its own mark"
    assert installs(fake_pip, root, tests=True) == 0
    assert Path(workshop.set_up(root)).exists()


def test_changed_requirements_are_installed(fake_pip, root):
    workshop.set_up(root, tests=True)
    (root / "tests" / "requirements.txt").write_text("something-else==2\n")
    assert installs(fake_pip, root) == 0
    assert installs(fake_pip, root, tests=True) == 1
    (root / "requirements.txt").write_text("something==2\n")
    assert installs(fake_pip, root) == 1


def test_only_what_installs_something_counts_in_pyproject(fake_pip, root):
    workshop.set_up(root)
    project = root / "pyproject.toml"
    project.write_text(project.read_text().replace("line-length = 9", "line-length = 8"))
    assert installs(fake_pip, root) == 0
    project.write_text(project.read_text().replace('"x"', '"y"'))
    assert installs(fake_pip, root) == 1


def test_line_endings_do_not_count(fake_pip, root):
    workshop.set_up(root)
    (root / "requirements.txt").write_bytes(b"something==1\r\n")
    assert installs(fake_pip, root) == 0


def test_an_interrupted_installation_is_made_anew(fake_pip, root, monkeypatch, capsys):
    with monkeypatch.context() as patch:

        def interrupted(root, arguments, said):
            said.append("Installing collected packages: a, b\n")
            raise KeyboardInterrupt

        patch.setattr(workshop, "run_pip", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workshop.set_up(root)
    assert not (root / ".venv" / workshop.READY).exists()
    assert installs(fake_pip, root) == 1
    assert "the last set-up was interrupted" in capsys.readouterr().out
    assert installs(fake_pip, root) == 0


def test_an_interrupted_download_touches_nothing(fake_pip, root, monkeypatch):
    workshop.set_up(root)
    (root / "requirements.txt").write_text("something==2\n")
    with monkeypatch.context() as patch:

        def interrupted(root, arguments, said):
            said.append("Collecting something==2\n")
            raise KeyboardInterrupt

        patch.setattr(workshop, "run_pip", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workshop.set_up(root)
    assert workshop.why_rebuild(root) is None
    assert installs(fake_pip, root) == 1


def test_a_moved_folder_is_made_anew(fake_pip, root):
    workshop.set_up(root)
    moved = root.with_name(root.name + "-moved")
    root.rename(moved)
    assert "moved" in workshop.why_rebuild(moved)
    assert installs(fake_pip, moved) == 1
    assert workshop.why_rebuild(moved) is None


def test_an_environment_whose_python_is_gone_is_made_anew(fake_pip, root):
    workshop.set_up(root)
    workshop.venv_python(root).unlink()
    assert "Python" in workshop.why_rebuild(root)


NO_NETWORK = [
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'",
    "ERROR: No matching distribution found for something==1",
]
NO_ROOM = [
    "Installing collected packages: a, b",
    "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
]
NO_BUILD = ["ERROR: No matching distribution found for something==1"]


@pytest.mark.parametrize(
    ("lines", "sentence", "again"),
    [
        (NO_NETWORK, "could not reach the package index", None),
        (NO_ROOM, "The disk is full", "the last set-up was interrupted"),
        (NO_BUILD, "no build of something==1", None),
        (["ERROR: some other thing"], "pip could not install", None),
    ],
)
def test_a_failing_pip_ends_in_one_sentence(fake_pip, root, capsys, lines, sentence, again):
    fake_pip.lines, fake_pip.code = lines, 1
    with pytest.raises(workshop.Stop, match=sentence):
        workshop.set_up(root)
    assert lines[-1] in capsys.readouterr().out, "pip's own last lines are shown"
    assert workshop.why_rebuild(root) == again
    fake_pip.__init__()
    assert installs(fake_pip, root) == 1, "the next call repairs it"


def test_no_network_leaves_a_working_environment_alone(fake_pip, root):
    workshop.set_up(root)
    (root / "requirements.txt").write_text("something==2\n")
    fake_pip.lines, fake_pip.code = NO_NETWORK, 1
    with pytest.raises(workshop.Stop):
        workshop.set_up(root)
    (root / "requirements.txt").write_text("something==1\n")
    assert installs(fake_pip, root) == 0


def test_a_python_without_venv_ends_in_one_sentence(root):
    debian = "not created successfully because ensurepip is not\navailable. On Debian/Ubuntu"
    for output in (debian, "/usr/bin/python3: No module named venv"):
        assert "python3-venv" in str(workshop.why_no_venv(root, output))


@pytest.mark.parametrize("version", [(3, 6, 15), (3, 9, 1), (3, 10, 13)])
def test_an_old_python_is_told_so(version):
    complaint = workshop.python_complaint(version, which=lambda name: None)
    assert complaint.startswith("The lessons need Python 3.11 or newer, and this is Python 3.")
    assert complaint.count(".") - complaint.count("3.") == 1, "one sentence"
    assert "PYTHON=python3.12" in workshop.python_complaint(version, lambda n: n == "python3.12")


def test_a_new_python_is_not():
    assert workshop.python_complaint((3, 11, 0)) is None
    assert workshop.python_complaint((4, 0)) is None


def test_old_pythons_can_read_the_program():
    ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 7))


# --- The reader's copies -------------------------------------------------------------------------


def test_a_reader_gets_each_lesson_without_the_revealed_answers(root):
    write_lesson(root, "02_second.ipynb")
    copied, changed = workshop.copy_lessons(root)
    assert copied == [LESSON, "02_second.ipynb"]
    assert changed == []
    copy = json.loads((root / "my-lessons" / LESSON).read_text(encoding="utf-8"))
    _, shown, answer = copy["cells"]
    assert shown["outputs"]
    assert shown["execution_count"] == 1
    assert answer["outputs"] == []
    assert answer["execution_count"] is None
    nbformat.validate(nbformat.read(root / "my-lessons" / LESSON, as_version=4))


def test_what_a_reader_wrote_is_never_overwritten(root):
    workshop.copy_lessons(root)
    mine = root / "my-lessons" / LESSON
    mine.write_text("mine", encoding="utf-8")
    write_lesson(root, question="How large is it now?")
    assert workshop.copy_lessons(root) == ([], [LESSON])
    made = workshop.fresh_copies(root=root)
    assert made == [(LESSON, "01_three_tokens_by_hand-fresh-1.ipynb")]
    assert mine.read_text(encoding="utf-8") == "mine"
    assert "now?" in (root / "my-lessons" / made[0][1]).read_text(encoding="utf-8")
    assert workshop.copy_lessons(root) == ([], []), "the reader has the new one and knows"
    assert workshop.fresh_copies(root=root) == []


def test_fresh_copies_take_names_that_are_free(root):
    workshop.copy_lessons(root)
    taken = root / "my-lessons" / "01_three_tokens_by_hand-fresh-1.ipynb"
    taken.write_text("also mine", encoding="utf-8")
    for beginning, number in (("1", 2), ("01", 3), (LESSON, 4)):
        made = workshop.fresh_copies([beginning], root)
        assert made == [(LESSON, f"01_three_tokens_by_hand-fresh-{number}.ipynb")]
    assert taken.read_text(encoding="utf-8") == "also mine"
    with pytest.raises(workshop.Stop, match="No lesson begins with '7'"):
        workshop.fresh_copies(["7"], root)


def test_new_outputs_alone_are_no_new_lesson(root):
    workshop.copy_lessons(root)
    path = root / "notebooks" / LESSON
    path.write_text(path.read_text().replace('"4\\n"', '"5\\n"'), encoding="utf-8")
    assert workshop.copy_lessons(root) == ([], [])


def test_a_lost_record_harms_nothing(root):
    workshop.copy_lessons(root)
    (root / "my-lessons" / workshop.RECORD).write_text("not json", encoding="utf-8")
    assert workshop.copy_lessons(root) == ([], [])
    write_lesson(root, question="New?")
    assert workshop.copy_lessons(root) == ([], [LESSON])


def test_a_copy_that_fails_leaves_no_half_file(root, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    (root / "my-lessons").mkdir()
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        workshop.copy_lessons(root)
    assert list((root / "my-lessons").iterdir()) == []


# --- The commands --------------------------------------------------------------------------------


def call(root, *words):
    """The program as a reader starts it, in a repository of its own."""
    program = root / "helpers" / "workshop.py"
    program.parent.mkdir(exist_ok=True)
    program.write_bytes(SOURCE.read_bytes())
    return subprocess.run([sys.executable, str(program), *words], capture_output=True, text=True)


def test_without_lessons_lab_says_so(root):
    (root / "notebooks" / LESSON).unlink()
    done = call(root, "lab")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["There is no lesson in the folder notebooks yet."]


def test_fresh_from_the_command_line(root):
    assert "make fresh ARGS=01" in call(root, "fresh").stdout
    done = call(root, "fresh", "01")
    assert done.returncode == 0
    assert "my-lessons/01_three_tokens_by_hand-fresh-1.ipynb" in done.stdout


def test_help_names_every_command_and_a_wrong_one_fails(root):
    done = call(root)
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in workshop.COMMANDS)
    wrong = call(root, "lap")
    assert wrong.returncode == 2
    assert "There is no command 'lap'." in wrong.stderr


def test_make_knows_every_command():
    listed = re.search(
        r"^COMMANDS = (.*)$", (workshop.ROOT / "Makefile").read_text(), re.MULTILINE
    )[1]
    assert listed.split() == ["help", *workshop.COMMANDS]


@pytest.mark.parametrize("name", ["anki", "sheet"])
def test_the_interview_rooms_files_are_made_by_its_own_program(monkeypatch, name):
    ran = []
    monkeypatch.setattr(workshop, "set_up", lambda: "python")
    monkeypatch.setattr(workshop, "run", lambda command: ran.append(command) or 0)
    assert workshop.main([name, "here.file"]) == 0
    assert ran == [["python", "-m", "helpers.interview", name, "here.file"]]


def test_a_full_disk_anywhere_ends_in_one_sentence(monkeypatch, capsys):
    def full(arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(workshop.COMMANDS, "lab", full)
    assert workshop.main(["lab"]) == 1
    assert capsys.readouterr().err.startswith("The disk is full")


def test_jupyterlab_listens_on_this_machine_only_unless_told_otherwise(root):
    workshop.copy_lessons(root)
    command = workshop.lab_command("python", root, ["--no-browser", "--port", "9999"])
    assert "--ServerApp.ip=127.0.0.1" in command
    assert f"--LabApp.default_url=/doc/tree/my-lessons/{LESSON}" in command
    assert command[-3:] == ["--no-browser", "--port", "9999"]
    assert not any(".token" in word for word in command), "Jupyter makes its own, and keeps it on"
    elsewhere = workshop.lab_command("python", root, ["--ip=0.0.0.0"])
    assert not any(word.startswith("--ServerApp.ip") for word in elsewhere)


def test_jupyterlab_gets_its_settings_even_where_they_were_broken(root):
    settings = workshop.lab_settings_folder(root) / "overrides.json"
    for broken in (None, "not json"):
        if broken:
            settings.write_text(broken, encoding="utf-8")
        workshop.write_lab_settings(root)
        assert json.loads(settings.read_text(encoding="utf-8")) == workshop.LAB_SETTINGS


def test_one_pytest_run_holds_the_lessons_and_the_tests(root):
    arguments = workshop.pytest_arguments(["-x"], root)
    assert arguments[-3:] == ["notebooks", "tests", "-x"]
    assert "--nbval" in arguments
    (root / "tests" / "test_a.py").touch()
    named = workshop.pytest_arguments(["tests/test_a.py::test_b"], root)
    assert "notebooks" not in named
    assert "tests" not in named


# --- Notebooks that are written back -------------------------------------------------------------


def notebook(*sources):
    cells = [v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    return v4.new_notebook(cells=[v4.new_markdown_cell("# A lesson", id="title"), *cells])


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_running_a_lesson_twice_changes_nothing(tmp_path):
    path = write(
        tmp_path / LESSON,
        notebook(
            "import time\nfrom pathlib import Path\nimport ipywidgets as widgets",
            "print('in', Path.cwd().name)\nprint('again')",
            "widgets.IntSlider(description='d_k')",
            "# NBVAL_IGNORE_OUTPUT\nprint(time.perf_counter_ns())",
        ),
    )
    assert execute.execute(path) is True
    first = path.read_bytes()
    assert execute.execute(path) is False
    assert path.read_bytes() == first
    ran = json.loads(first)
    code = [cell for cell in ran["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4]
    assert [cell["id"] for cell in code] == ["c0", "c1", "c2", "c3"]
    assert "".join(code[1]["outputs"][0]["text"]) == f"in {tmp_path.name}\nagain\n"
    assert list(code[2]["outputs"][0]["data"]) == ["text/plain"], "no ids of live widgets"
    assert "version" not in ran["metadata"]["language_info"]
    assert all(cell["metadata"] == {} for cell in code)
    assert first.endswith(b"}\n")
    assert execute.execute(path, measure=True) is True, "measured again when asked"


def test_a_lesson_that_fails_says_where_and_stays_as_it_was(tmp_path):
    path = write(tmp_path / LESSON, notebook("a = 0", "1 / a", "print('never')"))
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(execute.LessonError) as caught:
        execute.execute(path)
    assert str(caught.value) == (
        f"{LESSON}, code cell 2 ('1 / a'): ZeroDivisionError: division by zero. "
        "The file is as it was."
    )
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [file.name for file in tmp_path.iterdir()] == [LESSON]


def test_cleaning_removes_what_editors_leave_behind():
    dirty = notebook("1")
    dirty.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {}}
    dirty.metadata.language_info = {"name": "python", "version": "3.11.7"}
    dirty.cells[1].metadata = {"tags": ["reveal"], "execution": {"iopub.status.busy": "now"}}
    dirty.cells[1].execution_count = 17
    result = v4.new_output("execute_result", data={"text/plain": "1"}, execution_count=17)
    view = v4.new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {}})
    dirty.cells[1].outputs = [result, view]
    clean = execute.clean(dirty)
    assert set(clean.metadata) == {"kernelspec", "language_info"}
    assert "version" not in clean.metadata.language_info
    assert clean.cells[1].metadata == {"tags": ["reveal"]}
    assert clean.cells[1].execution_count == 1
    assert [out.execution_count for out in clean.cells[1].outputs] == [1], "the empty view is gone"


def test_a_measured_output_lasts_until_some_code_changes():
    lesson = notebook("x = 1", "# NBVAL_IGNORE_OUTPUT\nprint(x)")
    before = execute.code_hash(lesson)
    assert execute.is_measured(lesson.cells[2])
    assert not execute.is_measured(lesson.cells[1])
    lesson.cells[0].source = "# Other words"
    assert execute.code_hash(lesson) == before
    lesson.cells[1].source = "x = 2"
    assert execute.code_hash(lesson) != before
