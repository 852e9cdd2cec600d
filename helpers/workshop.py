"""Everything one does with this repository, as one program that any Python can start.

    python helpers/workshop.py COMMAND [more arguments]

Standard library only, so that it runs before anything is installed; `make COMMAND ARGS="..."`
calls it. It keeps to what Python 3.6 can read, so that a Python too old for the lessons can say so.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

NEEDS = (3, 11)


def python_complaint(version, which=shutil.which):
    """The sentence for a Python that is too old, or None. `version` is like `sys.version_info`."""
    if tuple(version[:2]) >= NEEDS:
        return None
    newer = [name for name in ("python3.13", "python3.12", "python3.11") if which(name)]
    advice = f"add PYTHON={newer[0]} after make" if newer else "install a newer one"
    return (
        f"The lessons need Python {NEEDS[0]}.{NEEDS[1]} or newer, and this is Python "
        f"{version[0]}.{version[1]}: {advice}, or start this file with the newer one."
    )


if python_complaint(sys.version_info):
    sys.exit(python_complaint(sys.version_info))

ROOT = Path(__file__).resolve().parent.parent
FIRST_LESSON = "01_three_tokens_by_hand.ipynb"
READERS_FOLDER = "my-lessons"
RECORD = ".originals.json"  # in the reader's folder: what each original was when it was copied
READY = "ready.json"  # in .venv: what was installed, written when it is complete
UNFINISHED = "unfinished"  # in .venv: an installation began and has not ended
READER, TESTS = "requirements.txt", "tests/requirements.txt"


class Stop(Exception):
    """Ends a command with one sentence instead of a traceback."""


def say(text):
    print(text, flush=True)


# --- The environment -----------------------------------------------------------------------------


def venv_python(root):
    folder = root / ".venv"
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def clean_environment():
    """Our variables for a child: another project's paths and pip settings must not leak in."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")
    }
    environment.update(PIP_USER="0", PYTHONIOENCODING="utf-8", JUPYTER_PREFER_ENV_PATH="1")
    return environment


def requirements_key(root, name, version):
    """Changes when the installation called `name` would change."""
    import tomllib  # not in the Pythons that only come here to hear that they are too old

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    # Settings of the linter and of pytest are in there too, and install nothing.
    parts = [version, project.get("build-system"), project.get("project")]
    parts.append(project.get("tool", {}).get("setuptools"))
    for file in dict.fromkeys([READER, name]):
        parts.append((root / file).read_text(encoding="utf-8").splitlines())
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_json(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_json(path, content):
    """Whole or not at all."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(draft, path)


def venv_version(root):
    """'3.12' when the environment's Python runs and is new enough, else None."""
    code = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix != sys.base_prefix)"
    try:
        answer = subprocess.run(
            [str(venv_python(root)), "-I", "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=60,
        ).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    if len(answer) != 2 or answer[1] != "True":
        return None
    return answer[0] if tuple(map(int, answer[0].split("."))) >= NEEDS else None


def pip(root):
    return [str(venv_python(root)), "-I", "-m", "pip"]


def pip_runs(root):
    try:
        return subprocess.run([*pip(root), "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def why_rebuild(root):
    """Why the environment that is there cannot be used or repaired, or None."""
    folder = root / ".venv"
    if not os.path.lexists(folder):
        return "there is none yet"
    if (folder / UNFINISHED).exists():
        return "the last set-up was interrupted"
    if venv_version(root) is None:
        return "its Python does not run any more"
    ready = read_json(folder / READY)
    if ready and ready.get("folder") != str(folder):
        return "this folder was moved or copied"
    if not ready and not pip_runs(root):
        return "it is incomplete"
    return None


def disk_is_full(text):
    return bool(re.search(r"No space left on device|not enough space on the disk|quota exc", text))


def no_room(root):
    free = shutil.disk_usage(root).free / 1e9
    return Stop(
        f"The disk is full ({free:.1f} GB free in {root}; the lessons' packages take about 2 GB, "
        "several with a CUDA build of torch): free some space, also where temporary files go, "
        "then run the same command again."
    )


def make_venv(root):
    """Make .venv anew, with the Python that runs this file."""
    folder = root / ".venv"
    inside = Path(sys.prefix).resolve() == folder.resolve()
    # Run with the environment's own Python: what it was made from makes the next one.
    python = getattr(sys, "_base_executable", sys.executable) if inside else sys.executable
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    (folder / UNFINISHED).touch()
    done = subprocess.run(
        [python, "-m", "venv", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=clean_environment(),
    )
    if done.returncode != 0:
        say(last_lines(done.stdout))
        raise why_no_venv(root, done.stdout)


def why_no_venv(root, output):
    """The failure of `python -m venv` in one sentence."""
    if disk_is_full(output) or shutil.disk_usage(root).free < 50e6:
        return no_room(root)
    if re.search(r"ensurepip is not|No module named '?(venv|ensurepip)", output):
        return Stop(
            "This Python cannot make a virtual environment, because its venv module is not "
            "complete: install it (Debian, Ubuntu: sudo apt install python3-venv), "
            "then run the same command again."
        )
    return Stop(f"No virtual environment could be made in {root / '.venv'}: see the lines above.")


def last_lines(text, count=8):
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    short = [line if len(line) <= 160 else line[:157] + "..." for line in lines[-count:]]
    return "\n".join("  | " + line for line in short)


NETWORK = re.compile(
    r"NewConnectionError|Failed to establish a new connection|ConnectTimeoutError|Read timed out"
    r"|ReadTimeoutError|name resolution|getaddrinfo failed|Network is unreachable|ProxyError"
    r"|Max retries exceeded|Connection refused|ConnectionResetError|Could not fetch URL"
    r"|SSLError|CERTIFICATE_VERIFY_FAILED|Remote end closed connection|IncompleteRead"
)


def why_pip_failed(root, output):
    """pip's failure in one sentence."""
    if disk_is_full(output):
        return no_room(root)
    if NETWORK.search(output):
        return Stop(
            "pip could not reach the package index: check the network (or the proxy) and run the "
            "same command again; what was downloaded is kept."
        )
    missing = re.search(r"No matching distribution found for (\S+)", output)
    if missing:
        return Stop(
            f"There is no build of {missing[1]} for this system's Python {sys.version_info[0]}."
            f"{sys.version_info[1]}: use Python 3.11, 3.12 or 3.13 (64 bit)."
        )
    return Stop("pip could not install what the lessons need: see its lines above.")


def run_pip(root, arguments, said):
    """Run pip, show what takes long, collect its lines in `said`, return its exit code."""
    environment = dict(clean_environment(), PYTHONUNBUFFERED="1")
    process = subprocess.Popen(
        [*pip(root), "--disable-pip-version-check", "--no-input", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env=environment,
        cwd=str(root),
    )
    try:
        for line in process.stdout:
            said.append(line)
            text = line.strip()
            if re.match(r"Downloading .*\d [MG]B\)", text):
                say("  " + text)
            elif text.startswith("Installing collected packages"):
                say(f"  Installing {text.count(',') + 1} packages")
    except BaseException:
        stop_child(process)
        raise
    return process.wait()


def stop_child(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def install(root, name, ready, key):
    """pip install -r `name`. Until that has ended well, nothing claims that it is installed."""
    folder = root / ".venv"
    (folder / UNFINISHED).touch()
    (folder / READY).unlink(missing_ok=True)
    said, code = [], None
    try:
        code = run_pip(root, ["install", "--progress-bar", "off", "-r", name], said)
        if code == 0:
            ready = dict(ready, **{name: key})
        else:
            say(last_lines("".join(said)))
            raise why_pip_failed(root, "".join(said))
    finally:
        # Until pip says this it has only looked and downloaded: all is as it was.
        touched = any(line.startswith("Installing collected packages") for line in said)
        if code == 0 or not touched:
            write_json(folder / READY, ready)
            (folder / UNFINISHED).unlink(missing_ok=True)
    return ready


def set_up(root=ROOT, tests=False):
    """Make or repair .venv; at once when nothing has changed. Returns its Python."""
    folder = root / ".venv"
    reason = why_rebuild(root)
    if reason:
        say(f"Making the environment .venv ({reason}).")
        make_venv(root)
    version = venv_version(root)
    if version is None:
        raise Stop(f"The Python in {folder} does not run: remove that folder and try again.")
    ready = read_json(folder / READY)
    ready["folder"] = str(folder)
    for name in [READER, TESTS] if tests else [READER]:
        key = requirements_key(root, name, version)
        if ready.get(name) != key:
            say(f"Installing what {name} lists; the first time takes some minutes.")
            ready = install(root, name, ready, key)
    return str(venv_python(root))


# --- The reader's copies -------------------------------------------------------------------------


def lessons(root):
    found = sorted((root / "notebooks").glob("*.ipynb"))
    if not found:
        raise Stop("There is no lesson in the folder notebooks yet.")
    return found


def load_lesson(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise Stop(f"{path} is not a notebook that can be read (no valid JSON).") from None


def what_was_written(notebook):
    """A hash of a lesson's words and code. Outputs may change without troubling a reader."""
    cells = [
        [cell.get("cell_type"), "".join(cell.get("source", ""))]
        for cell in notebook.get("cells", [])
    ]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def tags_of(cell):
    return cell.get("metadata", {}).get("tags", [])


def for_the_reader(notebook):
    """The lesson as a reader gets it: what answers a prediction appears when they run it."""
    for cell in notebook.get("cells", []):
        if cell.get("cell_type") == "code" and "reveal" in tags_of(cell):
            cell["outputs"] = []
            cell["execution_count"] = None
    return notebook


def write_new(path, notebook):
    """Write a file that must not exist yet. Returns whether it was written."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except BaseException:
        path.unlink()  # ours, and half written
        raise
    return True


def copy_lessons(root=ROOT):
    """Copy each lesson that the reader does not have yet. Returns (copied, changed) names.

    `changed` are the lessons whose original says something else than when it was copied.
    """
    folder = root / READERS_FOLDER
    originals = lessons(root)
    folder.mkdir(exist_ok=True)
    record = read_json(folder / RECORD)
    copied, changed = [], []
    for original in originals:
        notebook = load_lesson(original)
        now = what_was_written(notebook)
        if write_new(folder / original.name, for_the_reader(notebook)):
            copied.append(original.name)
            record[original.name] = now
        elif record.setdefault(original.name, now) != now:
            changed.append(original.name)
    write_json(folder / RECORD, record)
    return copied, changed


def fresh_copies(wanted=(), root=ROOT):
    """Put a fresh copy beside the reader's own. Returns [(lesson, new name)].

    `wanted`: beginnings of lesson names ("01"); none means each lesson that has changed.
    """
    _, changed = copy_lessons(root)
    names = [path.name for path in lessons(root)]
    if wanted:
        changed = []
        for beginning in wanted:
            number = beginning.zfill(2) + "_" if beginning.isdigit() else beginning
            matches = [name for name in names if name.startswith(number)]
            if not matches:
                raise Stop(f"No lesson begins with {beginning!r}; there are: {', '.join(names)}.")
            changed += matches
    folder = root / READERS_FOLDER
    record = read_json(folder / RECORD)
    made = []
    for name in dict.fromkeys(changed):
        notebook = load_lesson(root / "notebooks" / name)
        record[name] = what_was_written(notebook)
        number = 1
        new = f"{Path(name).stem}-fresh-{number}.ipynb"
        while not write_new(folder / new, for_the_reader(notebook)):
            number += 1
            new = f"{Path(name).stem}-fresh-{number}.ipynb"
        made.append((name, new))
    write_json(folder / RECORD, record)
    return made


# --- The commands --------------------------------------------------------------------------------


# Flags alone leave the question whether one wants news; settings alone leave the rest.
LAB_SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}


def lab_settings_folder(root):
    return root / ".venv" / "share" / "jupyter" / "lab" / "settings"


def write_lab_settings(root):
    """Defaults for this environment's JupyterLab; what a reader sets themselves wins."""
    folder = lab_settings_folder(root)
    if read_json(folder / "overrides.json") != LAB_SETTINGS:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "overrides.json", LAB_SETTINGS)


def lab_command(python, root, arguments):
    """How JupyterLab is started: on the reader's copy, on this machine only, with a token."""
    copies = sorted(path.name for path in (root / READERS_FOLDER).glob("*.ipynb"))
    first = FIRST_LESSON if FIRST_LESSON in copies else "".join(copies[:1])
    settings = {
        "--ServerApp.ip": "127.0.0.1",
        "--ServerApp.root_dir": str(root),
        "--FileContentsManager.preferred_dir": str(root / READERS_FOLDER),
        # /doc rather than /lab: one document, which gets all the width.
        "--LabApp.default_url": f"/doc/tree/{READERS_FOLDER}/{first}",
        "--LabApp.app_settings_dir": str(lab_settings_folder(root)),
        # No news, no look for updates, no list of extensions: nothing asks the internet.
        "--LabApp.news_url": "None",
        "--LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager": "readonly",
        # On a shared machine nobody reads along; without it each kernel warns about that.
        "--MappingKernelManager.transport_encryption": "auto",
        "--log-level": "WARN",
    }
    given = {argument.split("=")[0] for argument in arguments}
    for theirs, name in (("--ip", "--ServerApp.ip"), ("--debug", "--log-level")):
        if theirs in given:
            del settings[name]
    ours = [f"{name}={value}" for name, value in settings.items() if name not in given]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in given:
        ours.append("--allow-root")  # in a container one often is root; Jupyter insists on the word
    return [python, "-m", "jupyterlab", *ours, *arguments]


def run(command, root=ROOT):
    """Run a program to its end, pass Ctrl-C and a termination on, return its exit code."""
    process = subprocess.Popen(command, cwd=str(root), env=clean_environment())
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    interrupted = False
    try:
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:
                interrupted = True  # the child got it too, and may want to ask something
    finally:
        signal.signal(signal.SIGTERM, before)
    return 130 if interrupted and code else code


def setup_command(arguments):
    """make the environment .venv and install what a reader needs"""
    set_up()
    say("The environment .venv is ready.")
    return 0


def lab(arguments):
    """open JupyterLab on your own copy of the lessons, in my-lessons"""
    copied, changed = copy_lessons()
    python = set_up()
    write_lab_settings(ROOT)
    if copied:
        say(f"Copied {len(copied)} lesson(s) to {READERS_FOLDER}: write in them, they are yours.")
    if changed:
        say(
            f"Newer than your copy: {', '.join(changed)}. "
            "To put the new one beside yours: make fresh (or python helpers/workshop.py fresh)"
        )
    say("Starting JupyterLab. To stop it: Ctrl-C here, then y.")
    code = run(lab_command(python, ROOT, arguments))
    if code not in (0, 130, -signal.SIGTERM):
        raise Stop(
            f"JupyterLab ended with an error (exit code {code}): see its lines above. "
            "If a port is taken, name another: --port 9999; if a module is missing: "
            "python helpers/workshop.py clean, then lab again."
        )
    return 0


def fresh(arguments):
    """put a fresh copy of a lesson beside yours: each changed one, or those named (ARGS=01)"""
    made = fresh_copies(arguments)
    for name, new in made:
        say(f"{READERS_FOLDER}/{new} is {name} as it is now; your own copy is untouched.")
    if not made:
        say("No lesson has changed since your copy. To start one over: make fresh ARGS=01")
    return 0


def ruff(python):
    found = run([python, "-m", "ruff", "check", "."])
    return run([python, "-m", "ruff", "format", "--check", "."]) or found


def lint(arguments):
    """check style and format (ruff)"""
    return ruff(set_up(tests=True))


def pytest_arguments(arguments, root=ROOT):
    """What pytest is called with: the lessons, strictly, and the tests, in one run."""
    options = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout", "600"]
    options += ["-n", "2", "--dist", "loadfile"]
    named = [a for a in arguments if not a.startswith("-") and (root / a.split("::")[0]).exists()]
    everything = [name for name in ("notebooks", "tests") if (root / name).exists()]
    return [*options, *([] if named else everything), *arguments]


def test(arguments):
    """check everything: style, the lessons' printed numbers, the tests"""
    python = set_up(tests=True)
    untidy = ruff(python)
    code = run([python, "-m", "pytest", *pytest_arguments(arguments)])
    if untidy and not code:
        raise Stop("The tests passed, but ruff found something: see the lines at the top.")
    return code


def test_all(arguments):
    """the same, and the Triton kernels compiled for every chip: some minutes more"""
    return test(["-m", "slow or not slow", *arguments])


def gpu(arguments):
    """on a machine with an NVIDIA GPU: check the Triton kernels there and time them (--out DIR)"""
    return run([set_up(tests=True), str(ROOT / "tests" / "gpu_flash.py"), *arguments])


def notebooks(arguments):
    """for authors: run the lessons and write their outputs back (--measure: timings too)"""
    return run([set_up(), "-m", "helpers.execute", *arguments])


def bench(arguments):
    """measure how fast the live pictures answer, and how fast the model trains"""
    python = set_up(tests=True)
    programs = [ROOT / "tests" / f"bench_{what}.py" for what in ("explorers", "training")]
    return max(run([python, str(program), *arguments]) for program in programs)


def sweep(arguments):
    """record the training runs that lesson 4 speaks about: 2-3 core-hours, can be interrupted"""
    return run([set_up(), "-m", "helpers.training", *arguments])


def anki(arguments):
    """write attention-interview.apkg, all questions for Anki (ARGS=FILE: under another name)"""
    return run([set_up(), "-m", "helpers.interview", "anki", *arguments])


def sheet(arguments):
    """write attention-cheat-sheet.html, one page to print (ARGS=FILE: under another name)"""
    return run([set_up(), "-m", "helpers.interview", "sheet", *arguments])


def clean(arguments):
    """remove the environment and all caches, never your lessons"""
    folders = [ROOT / name for name in (".venv", "build", ".pytest_cache", ".ruff_cache")]
    folders += [ROOT / ".hypothesis", *ROOT.glob("*.egg-info")]
    for part in ("helpers", "tests", "notebooks"):
        folders += [*(ROOT / part).rglob("__pycache__"), *(ROOT / part).rglob(".ipynb_checkpoints")]
    for folder in folders:
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
    say(f"Removed the environment and the caches. Your lessons in {READERS_FOLDER} are untouched.")
    return 0


COMMANDS = {
    "lab": lab,
    "fresh": fresh,
    "setup": setup_command,
    "test": test,
    "test-all": test_all,
    "gpu": gpu,
    "lint": lint,
    "notebooks": notebooks,
    "bench": bench,
    "sweep": sweep,
    "anki": anki,
    "sheet": sheet,
    "clean": clean,
}


def usage():
    lines = [f"  {name:10} {command.__doc__}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "With make:    make COMMAND               or  make COMMAND ARGS='...'",
            "Without make: python helpers/workshop.py COMMAND ...",
            "",
            *lines,
            "",
            "More words go on to the program behind the command, for instance:",
            '  make lab ARGS="--no-browser --port 9999"',
        ]
    )


def main(arguments):
    name = arguments[0] if arguments else "help"
    if name in ("help", "-h", "--help"):
        say(usage())
        return 0
    if name not in COMMANDS:
        print(f"There is no command {name!r}.\n\n{usage()}", file=sys.stderr)
        return 2
    try:
        return COMMANDS[name](arguments[1:])
    except Stop as stop:
        complaint = str(stop)
    except KeyboardInterrupt:
        print("\nInterrupted. Run the same command again to go on.", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            complaint = str(no_room(ROOT))
        else:
            place = error.filename or "a file"
            complaint = f"{place} cannot be used: {error.strerror or error}."
    print(complaint, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
