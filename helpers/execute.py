"""Run the lessons and write their outputs back, the same way every time.

    python -m helpers.execute [--measure] [notebook ...]     (or: make notebooks)

Twice in a row changes nothing: what differs from run to run (ids of live widgets, times, the
micro version of Python) is left out, and a cell marked `# NBVAL_IGNORE_OUTPUT`, whose numbers were
measured once, keeps them until some code of its notebook changes or `--measure` asks again.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import re
import sys
from pathlib import Path

import ipykernel.kernelspec
import nbformat
import zmq
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SECONDS_PER_CELL = 600

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
CELL_METADATA = {"tags", "jupyter", "slideshow", "editable", "deletable"}
MEASURED = "measured"  # notebook metadata: the code that the measured outputs belong to


class LessonError(Exception):
    """A lesson that does not run, in one sentence."""


class _ThisPython(KernelSpecManager):
    """Only the kernel of the Python that runs this file, whatever else is installed."""

    def get_kernel_spec(self, kernel_name):
        spec = ipykernel.kernelspec.get_kernel_dict()
        return self.kernel_spec_class(resource_dir=ipykernel.kernelspec.RESOURCES, **spec)


def is_measured(cell) -> bool:
    """Whether nbval is told to ignore the cell's output, by a comment or by a tag."""
    comment = re.search(r"^\s*#\s*NBVAL_IGNORE_OUTPUT\s*$", cell.source, re.MULTILINE)
    return bool(comment) or "nbval-ignore-output" in cell.metadata.get("tags", [])


def code_hash(notebook) -> str:
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:16]


def _clean_output(output):
    """One output without what differs from run to run, or None if nothing is left."""
    if output.output_type in ("display_data", "execute_result"):
        for key in list(output.data):
            if key.startswith("application/vnd.jupyter.widget-"):
                del output.data[key]  # a random id; the live view comes back when the cell runs
        kept = {key: value for key, value in output.metadata.items() if key in output.data}
        output.metadata = nbformat.from_dict(kept)
        if not output.data:
            return None
    output.pop("transient", None)
    return output


def clean(notebook):
    """Bring a notebook into the one form in which lessons are kept. Changes and returns it."""
    measured = notebook.metadata.get(MEASURED)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    if measured:
        notebook.metadata[MEASURED] = measured
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: set[str] = set()
    count = 0
    for number, cell in enumerate(notebook.cells, start=1):
        if not cell.get("id") or cell.id in seen:
            cell.id = f"cell-{number}-{hashlib.sha256(cell.source.encode()).hexdigest()[:8]}"
        seen.add(cell.id)
        kept = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type != "code":
            continue
        if cell.execution_count is not None:
            count += 1
            cell.execution_count = count
        cell.outputs = [out for out in map(_clean_output, cell.outputs) if out is not None]
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    return notebook


def _first_line(cell) -> str:
    return cell.source.strip().splitlines()[0] if cell.source.strip() else ""


def _run(notebook, name: str, folder: Path) -> None:
    """Execute in place, in a new kernel whose working directory is `folder`."""
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
    )
    at = None

    def remember(cell, cell_index, **_):
        nonlocal at
        at = cell_index

    client.on_cell_start = remember
    client.km = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=_ThisPython(),
        transport_encryption="auto" if zmq.has("curve") else "disabled",
    )
    try:
        client.execute()
    except CellExecutionError as error:
        what = f"{error.ename}: {error.evalue}".splitlines()[0]
    except CellTimeoutError:
        what = f"no end after {SECONDS_PER_CELL} seconds"
    except DeadKernelError:
        what = "the kernel died"
    else:
        return
    if at is None:
        raise LessonError(f"{name}: {what}. The file is as it was.")
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: at + 1])
    where = f"code cell {number} ({_first_line(notebook.cells[at])!r})"
    raise LessonError(f"{name}, {where}: {what}. The file is as it was.")


def execute(path: Path, measure: bool = False) -> bool:
    """Run one notebook and write it back if that changes it. Returns whether it changed.

    Raises LessonError, with the file left as it was, when a cell fails.
    """
    before = path.read_bytes()
    try:
        old = nbformat.reads(before.decode("utf-8"), as_version=4)
    except (ValueError, nbformat.reader.NotJSONError) as error:
        raise LessonError(f"{path.name} is not a notebook that can be read: {error}") from None
    notebook = copy.deepcopy(old)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    _run(notebook, path.name, path.parent)

    keep = not measure and old.metadata.get(MEASURED) == code_hash(old)
    notebook.metadata.pop(MEASURED, None)
    for was, cell in zip(old.cells, notebook.cells, strict=True):
        if cell.cell_type == "code" and is_measured(cell):
            notebook.metadata[MEASURED] = code_hash(notebook)
            if keep:
                cell.outputs = was.outputs
    clean(notebook)
    nbformat.validate(notebook)
    after = (nbformat.writes(notebook).rstrip("\n") + "\n").encode("utf-8")
    if after == before:
        return False
    draft = path.with_name(path.name + ".new")
    draft.write_bytes(after)
    os.replace(draft, path)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Execute the notebooks named, or all lessons. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Run the lessons and write their outputs back.")
    parser.add_argument("--measure", action="store_true", help="also measure again what was timed")
    parser.add_argument("notebook", nargs="*", type=Path, help="default: all in notebooks")
    wanted = parser.parse_args(arguments)
    paths = wanted.notebook or sorted(FOLDER.glob("*.ipynb"))
    if not paths:
        print("There is no lesson in the folder notebooks yet.", file=sys.stderr)
        return 1
    for path in paths:
        print(f"{path.name} ...", end=" ", flush=True)
        try:
            changed = execute(path.resolve(), wanted.measure)
        except (LessonError, OSError) as error:
            print(f"stopped\n{error}", file=sys.stderr)
            return 1
        print("written" if changed else "unchanged")
    return 0


if __name__ == "__main__":
    sys.exit(main())
