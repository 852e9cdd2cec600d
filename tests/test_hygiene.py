"""What every lesson and every file must keep to, and proof that each rule catches its mistake.

A rule takes one notebook (as parsed JSON) and yields a sentence for each thing that is wrong.
"""

import ast
import base64
import copy
import json
import math
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import nbformat.v4 as v4
import pytest
from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))

LARGEST_LESSON = 500_000  # bytes
LARGEST = {}  # lesson -> bytes, where a lesson has a reason to be larger (or must be smaller)
LARGEST_PNG = 60_000
ABOUT_TORCH = ("04", "05")  # lessons that train and run kernels; the others start without it

# --- Reading a notebook --------------------------------------------------------------------------


def text_of(source) -> str:
    return source if isinstance(source, str) else "".join(source)


def code_cells(notebook):
    """(number, cell, source) of each code cell, counted from 1 as in its prompt."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        yield number, cell, text_of(cell["source"])


def markdown_cells(notebook):
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] == "markdown":
            yield number, text_of(cell["source"])


def bundles(notebook):
    """(code cell number, {MIME type: content}) of each rich output."""
    for number, cell, _ in code_cells(notebook):
        for output in cell["outputs"]:
            if "data" in output:
                yield number, output["data"]


def words_in_outputs(notebook):
    """(code cell number, text) of everything in outputs that is words."""
    for number, cell, _ in code_cells(notebook):
        for output in cell["outputs"]:
            yield number, text_of(output.get("text", ""))
            for mime, content in output.get("data", {}).items():
                if mime.startswith("text/") or mime.endswith("+xml"):
                    yield number, text_of(content)


def parsed(source):
    """The cell's Python, IPython's own syntax translated; None if it is no Python."""
    try:
        return ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError:
        return None


def length(source) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


# --- The rules for a lesson ----------------------------------------------------------------------


def was_executed(notebook, name):
    counts = [cell.get("execution_count") for _, cell, _ in code_cells(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"execution counts are {counts}, not 1, 2, 3, …: run make notebooks"
    if counts and not any(cell["outputs"] for _, cell, _ in code_cells(notebook)):
        yield "no cell has an output: the notebook was stripped"


# Calls that end a cell and show nothing, because they return None.
SILENT = {"append", "extend", "update", "add", "seed", "backward", "step", "zero_grad", "sort"}
SILENT |= {"set_printoptions", "setattr", "show", "close"}


def shows_something(source) -> bool:
    """Whether running the cell must leave an output: it prints, displays, or ends in a value."""
    tree = parsed(source)
    if tree is None or not tree.body:
        return False
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = getattr(node.value.func, "id", None)
            if called in ("print", "display"):
                return True
    last = tree.body[-1]
    if not isinstance(last, ast.Expr) or isinstance(last.value, ast.Constant):
        return False
    if isinstance(last.value, ast.Call):
        function = last.value.func
        return getattr(function, "id", getattr(function, "attr", None)) not in SILENT
    return True


def has_its_outputs(notebook, name):
    for number, cell, source in code_cells(notebook):
        if not source.strip():
            yield f"code cell {number} is empty"
        elif not cell["outputs"] and shows_something(source):
            yield f"code cell {number} shows something when run, but has no output here"
        elif source.rstrip().endswith(";"):
            yield f"code cell {number} ends in ';', which nbval does not see: assign to _ instead"


def has_no_errors(notebook, name):
    for number, cell, _ in code_cells(notebook):
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                yield f"code cell {number} holds an error: {output.get('ename')}"
            if output.get("name") == "stderr":
                yield f"code cell {number} holds a warning or other stderr"


PLACE = re.compile(
    r"(?<![\w.~/:-])/(?:home|Users|root|work|tmp|opt|usr|var|private|mnt)/[\w.-]"
    r"|\b[A-Za-z]:\\+(?:Users|Program|Windows)\b|file://|<ipython-input-|ipykernel_\d"
)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
TIME = re.compile(
    r"\b20\d\d-\d\d-\d\d\b|\b\d{1,2}:\d\d:\d\d\b|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d"
)


def is_the_same_everywhere(notebook, name):
    machine = platform.node()
    # A host called "lesson" would be found in any text; one with a digit or a hyphen is a name.
    told_apart = len(machine) > 3 and re.search(r"[\d.-]", machine)
    for number, text in words_in_outputs(notebook):
        for what, pattern in (("path", PLACE), ("object address", ADDRESS), ("time", TIME)):
            if found := pattern.search(text):
                yield f"code cell {number} shows a {what}: {found[0]!r}"
        if told_apart and machine in text:
            yield f"code cell {number} shows the name of this machine"
    for number, _, source in code_cells(notebook):
        if found := PLACE.search(source):
            yield f"code cell {number} names a path of one machine: {found[0]!r}"


def keeps_no_live_state(notebook, name):
    if "widgets" in notebook["metadata"]:
        yield "the metadata holds widget state, which leaves a page blank offline"
    for number, data in bundles(notebook):
        for mime in data:
            if mime.startswith("application/vnd.jupyter.widget-"):
                yield f"code cell {number} keeps the id of a live widget ({mime})"
            if mime in ("image/svg+xml", "application/javascript"):
                yield f"code cell {number} holds {mime}, which JupyterLab and GitHub do not show"


KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def has_clean_metadata(notebook, name):
    metadata = notebook["metadata"]
    if extra := set(metadata) - {"kernelspec", "language_info", "measured", "widgets"}:
        yield f"metadata that belongs to nobody: {sorted(extra)}"
    if metadata.get("kernelspec") != KERNEL:
        yield f"kernelspec is {metadata.get('kernelspec')}"
    if "version" in metadata.get("language_info", {}):
        yield "language_info holds the version of the Python that ran it"
    if (notebook["nbformat"], notebook["nbformat_minor"]) != (4, 5):
        yield "the format is not 4.5"
    ids = [cell.get("id") for cell in notebook["cells"]]
    if None in ids or len(set(ids)) < len(ids):
        yield "cells without an id of their own"
    for number, cell in enumerate(notebook["cells"], start=1):
        allowed = {"tags", "jupyter", "slideshow", "editable", "deletable"}
        if extra := set(cell["metadata"]) - allowed:
            yield f"cell {number} has metadata that belongs to nobody: {sorted(extra)}"


def is_small(notebook, name):
    limit = LARGEST.get(name, LARGEST_LESSON)
    size = len(json.dumps(notebook, indent=1, ensure_ascii=False).encode())
    if size > limit:
        yield f"{size:,} bytes, over {limit:,}"
    for number, data in bundles(notebook):
        size = len(base64.b64decode(text_of(data.get("image/png", ""))))
        if size > LARGEST_PNG:
            yield f"code cell {number} has a PNG of {size:,} bytes, over {LARGEST_PNG:,}"


def says_what_pictures_show(notebook, name):
    for number, data in bundles(notebook):
        if not any(mime.startswith("image/") for mime in data):
            continue
        words = text_of(data.get("text/plain", "")).strip()
        if words.startswith("<") or len(words.split()) < 5:
            yield f"code cell {number} has a picture whose text/plain says only {words[:40]!r}"


def has_short_cells(notebook, name):
    lengths = sorted(length(source) for _, _, source in code_cells(notebook))
    if not lengths:
        yield "there is no code cell"
        return
    if (median := statistics.median(lengths)) > 8:
        yield f"the median code cell has {median} lines, over 8"
    if (p95 := lengths[math.ceil(0.95 * len(lengths)) - 1]) > 25:
        yield f"the 95th percentile of code cells has {p95} lines, over 25"
    if lengths[-1] > 40:
        yield f"the longest code cell has {lengths[-1]} lines, over 40"


def begins_with_imports(notebook, name):
    _, _, source = next(code_cells(notebook), (0, {}, ""))
    tree = parsed(source)
    if tree is None or not all(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body):
        yield "the first code cell holds more than imports"
    elif not name.startswith(ABOUT_TORCH) and any(
        module.split(".")[0] == "torch" for module in imported(tree)
    ):
        yield "the first code cell imports torch, which costs each reader seconds and 200 MB"
    if length(source) > 8:
        yield f"the first code cell has {length(source)} lines, over 8"


def leaves_the_environment_alone(notebook, name):
    for number, _, source in code_cells(notebook):
        if found := re.search(r"sys\s*\.\s*path|[%!]\s*(?:pip|conda|uv)\b|os\.chdir", source):
            yield f"code cell {number} says {found[0]!r}"


def folds_so_that_markdown_works(notebook, name):
    for number, text in markdown_cells(notebook):
        if re.search(r"</summary>(?!\s*?\n[ \t]*\n)", text):
            yield f"cell {number}: an empty line must follow </summary>"
        if text.count("<details") != text.count("</details>"):
            yield f"cell {number}: a <details> is not closed"


LINK = re.compile(r"""\]\(\s*<?([^)\s>]+)>?(?:\s+["'][^)]*)?\)|(?:href|src)=["']([^"']+)["']""")


def slug(heading) -> str:
    """A heading as its anchor, the same for JupyterLab's and GitHub's way of writing it."""
    return re.sub(r"[^\w]+", "", unquote(heading)).lower()


def anchors(markdown):
    return {slug(h) for h in re.findall(r"^#+\s+(.*?)\s*#*\s*$", markdown, re.MULTILINE)} | {
        slug(a) for a in re.findall(r"""(?:id|name)=["']([^"']+)["']""", markdown)
    }


def broken_links(markdown, own_anchors, folder):
    """Links to files that are not in this repository, and to headings that do not exist."""
    without_code = re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)
    for match in LINK.finditer(without_code):
        link = match[1] or match[2]
        if re.match(r"[a-z][a-z0-9+.-]*:", link, re.IGNORECASE):
            continue
        file, _, anchor = link.partition("#")
        if file:
            target = (folder / unquote(file)).resolve()
            found = target.exists() and target.is_relative_to(ROOT)
        else:
            found = not anchor or slug(anchor) in own_anchors
        if not found:
            yield link


def links_somewhere(notebook, name):
    everything = "\n".join(text for _, text in markdown_cells(notebook))
    for number, text in markdown_cells(notebook):
        for link in broken_links(text, anchors(everything), ROOT / "notebooks"):
            yield f"cell {number}: the link {link!r} leads nowhere"


RULES = [
    was_executed,
    has_its_outputs,
    has_no_errors,
    is_the_same_everywhere,
    keeps_no_live_state,
    has_clean_metadata,
    is_small,
    says_what_pictures_show,
    has_short_cells,
    begins_with_imports,
    leaves_the_environment_alone,
    folds_so_that_markdown_works,
    links_somewhere,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson(lesson, rule):
    notebook = json.loads(lesson.read_text(encoding="utf-8"))
    assert list(rule(notebook, lesson.name)) == []


# --- Each rule catches its mistake ---------------------------------------------------------------


def good_lesson():
    """A small notebook to which no rule objects."""
    code = [
        ("import numpy as np", []),
        ("print(np.arange(3))", [v4.new_output("stream", text="[0 1 2]\n")]),
        ("x = 1", []),
        ("x", [v4.new_output("execute_result", data={"text/plain": "1"}, execution_count=4)]),
    ]
    cells = [
        v4.new_markdown_cell("# A lesson\n\n[down](#The-end) [readme](../pyproject.toml)", id="a")
    ]
    for number, (source, outputs) in enumerate(code, start=1):
        cell = v4.new_code_cell(source, id=f"c{number}", execution_count=number, outputs=outputs)
        cells.append(cell)
    folded = "## The end\n\n<details><summary>More</summary>\n\nwords\n</details>"
    cells.append(v4.new_markdown_cell(folded, id="z"))
    notebook = v4.new_notebook(cells=cells, metadata={"kernelspec": dict(KERNEL)})
    notebook.nbformat_minor = 5
    return json.loads(json.dumps(notebook))


def png(size=100, words="a picture of three bars: 1, 2 and 3"):
    picture = base64.b64encode(bytes(size)).decode()
    return {
        "output_type": "display_data",
        "data": {"image/png": picture, "text/plain": words},
        "metadata": {},
    }


def strip(nb):
    for cell in nb["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)


def say(text):
    def change(nb):
        nb["cells"][2]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]

    return change


def source(text, number=3):
    def change(nb):
        nb["cells"][number]["source"] = text

    return change


def output(content):
    def change(nb):
        nb["cells"][2]["outputs"].append(content)

    return change


def data(mime):
    bundle = {"output_type": "display_data", "metadata": {}, "data": {mime: "x"}}
    return output(bundle)


def put(path, value):
    def change(nb):
        *keys, last = path
        place = nb
        for key in keys:
            place = place[key]
        place[last] = value

    return change


MISTAKES = [
    (was_executed, strip, "not 1, 2, 3"),
    (was_executed, strip, "stripped"),
    (was_executed, put(["cells", 2, "execution_count"], 7), "not 1, 2, 3"),
    (has_its_outputs, strip, "code cell 2 shows something"),
    (has_its_outputs, strip, "code cell 4 shows something"),
    (has_its_outputs, source("np.exp(x)"), "code cell 3 shows something"),
    (has_its_outputs, source("print(x)\ny = 2"), "code cell 3 shows something"),
    (has_its_outputs, source("  \n"), "empty"),
    (has_its_outputs, source("x = 1;"), "';'"),
    (has_no_errors, output({"output_type": "error", "ename": "ValueError"}), "ValueError"),
    (has_no_errors, output({"output_type": "stream", "name": "stderr", "text": ""}), "stderr"),
    (is_the_same_everywhere, say("saved in /home/" + "me/x"), "path"),
    (is_the_same_everywhere, say("saved in C:\\Users\\me"), "path"),
    (is_the_same_everywhere, say("<Slider object at 0x7f69a7449220>"), "object address"),
    (is_the_same_everywhere, say("run on 2026-01-31"), "time"),
    (is_the_same_everywhere, say("took 00:01:17"), "time"),
    (is_the_same_everywhere, source("open('/tm" + "p/x')"), "path of one machine"),
    (keeps_no_live_state, put(["metadata", "widgets"], {}), "widget state"),
    (keeps_no_live_state, data("application/vnd.jupyter.widget-view+json"), "live widget"),
    (keeps_no_live_state, data("image/svg+xml"), "svg"),
    (has_clean_metadata, put(["metadata", "toc"], {}), "toc"),
    (has_clean_metadata, put(["metadata", "kernelspec", "name"], "myenv"), "kernelspec"),
    (has_clean_metadata, put(["metadata", "language_info"], {"version": "3.11.7"}), "version"),
    (has_clean_metadata, put(["cells", 1, "metadata"], {"execution": {}}), "execution"),
    (has_clean_metadata, put(["cells", 1, "id"], "c2"), "id of their own"),
    (has_clean_metadata, put(["nbformat_minor"], 4), "4.5"),
    (is_small, put(["cells", 0, "source"], "word " * 110_000), "over 500,000"),
    (is_small, output(png(size=61_000)), "over 60,000"),
    (says_what_pictures_show, output(png(words="<Figure size 640x480 with 1 Axes>")), "<Figure"),
    (says_what_pictures_show, output(png(words="")), "says only ''"),
    (has_short_cells, source("x = 1\n" * 41), "longest"),
    (has_short_cells, source("x = 1\n" * 26), "95th percentile"),
    (
        has_short_cells,
        lambda nb: [source("x = 1\n" * 9, n)(nb) for n in (2, 3, 4)],
        "median",
    ),
    (begins_with_imports, source("import numpy as np\nx = 1", 1), "more than imports"),
    (begins_with_imports, source("import torch.nn as nn", 1), "torch"),
    (begins_with_imports, source("import os\n" * 9, 1), "over 8"),
    (leaves_the_environment_alone, source("import sys\nsys.path.append('..')"), "sys.path"),
    (leaves_the_environment_alone, source("%pip install numpy"), "pip"),
    (
        folds_so_that_markdown_works,
        source("<details><summary>More</summary>\nwords</details>", 0),
        "empty line",
    ),
    (folds_so_that_markdown_works, source("<details>", 0), "not closed"),
    (links_somewhere, source("[there](02_missing.ipynb)", 0), "02_missing.ipynb"),
    (links_somewhere, source("![there](../../outside.png)", 0), "outside.png"),
    (links_somewhere, source("[there](#No-such-heading)", 0), "No-such-heading"),
]


def test_no_rule_objects_to_a_good_lesson():
    assert [problem for rule in RULES for problem in rule(good_lesson(), "good.ipynb")] == []


@pytest.mark.parametrize(("rule", "mistake", "sentence"), MISTAKES)
def test_a_rule_catches_its_mistake(rule, mistake, sentence):
    notebook = copy.deepcopy(good_lesson())
    mistake(notebook)
    assert sentence in "\n".join(rule(notebook, "bad.ipynb"))


def test_every_rule_is_tried():
    assert {rule for rule, _, _ in MISTAKES} == set(RULES)


@pytest.mark.parametrize(
    "quiet",
    [
        "rng.shuffle = 3",
        "values.append(3)",
        "def f():\n    print(3)",
        "'''a note'''",
        "if x:\n    x",
    ],
)
def test_a_cell_that_shows_nothing_needs_no_output(quiet):
    assert not shows_something(quiet)


# --- The whole repository ------------------------------------------------------------------------


def files():
    """Every text file that is, or would be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):  # an archive without its history
        parts = ["helpers", "notebooks", "tests", ".ci", ".github"]
        found = [*ROOT.glob("*.*"), *(path for part in parts for path in (ROOT / part).rglob("*"))]
    else:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    for path in sorted(found):
        if path.is_file() and "__pycache__" not in path.parts:
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


# What IPython calls the file of a cell is the same on all machines.
HERE = re.compile(
    r"(?<![\w.~/:)-])/(?!tmp/ipykernel_)(?:home|Users|root|work|tmp|private|var/folders)/[\w.-]"
)
# Written in parts, so that this file does not name them.
INDEXES = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.", "deb." + "debian.org"]
INDEXES += [
    "download." + "pytorch.org",
    "conda." + "anaconda.org",
    "cdn." + "jsdelivr",
    "un" + "pkg.",
]
OUTSIDE = ["../" + "shared"]


def foreign_places(text):
    """What only makes sense on one machine, or fetches from a host that a reader may not reach."""
    # Pictures and icons inside a notebook are letters and slashes that mean nothing.
    text = re.sub(r"[A-Za-z0-9+/=\\n]{200,}", "", text)
    yield from (match[0] for match in HERE.finditer(text))
    yield from (word for word in INDEXES + OUTSIDE if word in text)


def test_no_file_names_a_place_on_one_machine():
    found = {
        str(path.relative_to(ROOT)): places
        for path, text in files()
        if (places := sorted(set(foreign_places(text))))
    }
    assert found == {}


@pytest.mark.parametrize("text", ["see /wo" + "rk/main", "'/roo" + "t/x'", INDEXES[0], OUTSIDE[0]])
def test_a_foreign_place_is_found(text):
    assert list(foreign_places(text))


@pytest.mark.parametrize("text", ["notebooks/tmp/x", "https://example.org/home/x", "../work/x"])
def test_an_ordinary_path_is_not(text):
    assert not list(foreign_places(text))


def test_links_in_the_pages_lead_somewhere():
    pages = [(path, text) for path, text in files() if path.suffix == ".md"]
    broken = {
        str(path.relative_to(ROOT)): links
        for path, text in pages
        if (links := list(broken_links(text, anchors(text), path.parent)))
    }
    assert broken == {}


# --- The package: imports go one way -------------------------------------------------------------

MATHEMATICS = {"attention", "experiments", "flash"}
NEEDS_TORCH = {"training", "monitor", "flash_triton", "ring", "memory_wall"}

# Room -> the rooms of ours that it may import, besides itself. A room whose name begins with an
# underscore serves all the others, and needs nothing but the mathematics below it.
ROOMS = {
    "_inputs": set(),
    "attention": {"_inputs"},
    "experiments": MATHEMATICS,
    "flash": MATHEMATICS,
    "training": MATHEMATICS | NEEDS_TORCH,
    "monitor": MATHEMATICS | NEEDS_TORCH | {"pictures"},
    "flash_triton": MATHEMATICS | NEEDS_TORCH,
    "ring": MATHEMATICS | NEEDS_TORCH,
    "memory_wall": MATHEMATICS | NEEDS_TORCH,
    "watchdog": set(),
    "doctor": MATHEMATICS | {"watchdog", "pictures"},
    "pictures": MATHEMATICS,
    "explorers": MATHEMATICS | {"pictures"},
    "practice": MATHEMATICS | {"pictures", "explorers", "doctor", "watchdog"},
    "interview": MATHEMATICS | {"pictures", "explorers", "doctor", "practice", "watchdog"},
    "workshop": set(),
    "execute": set(),
}
LIVE = {"explorers", "practice", "interview"}  # only these may need ipywidgets


def imported(tree, *, at_import=False, package=""):
    """Names of the modules that `tree` imports; `at_import`: only those that importing it loads."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        waits = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if not (at_import and (waits or typing)):
            stack.extend(ast.iter_child_nodes(node))


def crossings(modules):
    """What breaks the one-way rule. `modules`: dotted name -> (source, whether it is a package)."""
    for name, (text, is_package) in modules.items():
        room = (name + ".").split(".")[1]  # "" for helpers itself
        private = room.startswith("_")
        if room and not private and room not in ROOMS:
            yield f"{name}: say in ROOMS (tests/test_hygiene.py) what it may import"
            continue
        rooms = ROOMS.get(room, {"attention"} if private else set()) | {room}
        uses_private = room and room not in ("_inputs", "attention")
        tree = ast.parse(text)
        package = name if is_package else name.rpartition(".")[0]
        for other in sorted(set(imported(tree, package=package))):
            parts = other.split(".")
            if parts[0] == "helpers" and len(parts) > 1:
                served = uses_private and parts[1].startswith("_")
                if parts[1] not in rooms and not served:
                    yield f"{name} imports {other}"
            if other.startswith(("matplotlib.pyplot", "pylab")):
                yield f"{name} imports {other}, whose current figure a running cell may steal"
            if parts[0] == "ipywidgets" and room not in LIVE:
                yield f"{name} imports ipywidgets"
        for other in sorted(set(imported(tree, package=package, at_import=True))):
            if other.split(".")[0] in ("torch", "triton") and room not in NEEDS_TORCH:
                yield f"{name} imports {other} at once; import it where it is needed"


def our_modules():
    for path in sorted((ROOT / "helpers").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield name, (path.read_text(encoding="utf-8"), is_package)


def test_imports_go_one_way():
    assert list(crossings(dict(our_modules()))) == []


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("helpers.pictures.svg", "from helpers.explorers import live", "helpers.explorers"),
        ("helpers.pictures.svg", "from ..practice import check", "helpers.practice"),
        ("helpers.pictures.svg", "from helpers import explorers", "helpers.explorers"),
        ("helpers.explorers.base", "def f():\n    import helpers.practice", "helpers.practice"),
        ("helpers.attention", "from helpers import experiments", "helpers.experiments"),
        ("helpers._inputs", "from .attention import softmax", "helpers.attention"),
        ("helpers.attention", "from helpers import _table", "helpers._table"),
        ("helpers._table", "from helpers.flash import merge", "helpers.flash"),
        ("helpers", "from . import attention", "helpers.attention"),
        ("helpers.experiments", "import torch", "torch at once"),
        ("helpers.doctor", "try:\n    from torch import nn\nexcept ImportError: pass", "torch"),
        ("helpers.pictures.curves", "def f():\n    import matplotlib.pyplot as plt", "pyplot"),
        ("helpers.pictures.curves", "from matplotlib import pyplot", "pyplot"),
        ("helpers.pictures.curves", "import ipywidgets as widgets", "ipywidgets"),
        ("helpers.somewhere", "", "ROOMS"),
    ],
)
def test_a_crossing_is_found(name, text, sentence):
    assert sentence in "\n".join(crossings({name: (text, name == "helpers")}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "helpers.practice.checks",
            "from helpers import attention\nfrom helpers.explorers import x",
        ),
        ("helpers.pictures.svg", "from . import colours\nfrom .._table import t"),
        ("helpers.doctor", "def f():\n    import torch"),
        ("helpers.monitor", "import torch"),
    ],
)
def test_an_import_inwards_is_fine(name, text):
    assert list(crossings({name: (text, False)})) == []


def test_importing_the_package_costs_nothing():
    heavy = ["numpy", "torch", "matplotlib", "ipywidgets", "IPython"]
    code = f"import sys, helpers; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
