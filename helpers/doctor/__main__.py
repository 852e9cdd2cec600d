"""The doctor as a command: python -m helpers.doctor mymodule:my_attention

Exit codes: 0 sound; 1 not sound; 2 the function could not be found or an option is wrong.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from helpers.doctor import CATALOGUE, Diagnosis, examine
from helpers.doctor.conventions import LAYOUTS, SCALES
from helpers.doctor.precision import EPS

SOUND, NOT_SOUND, UNUSABLE = 0, 1, 2
_LISTED = 8  # functions of a module that are named where the wanted one is missing


class NotFound(Exception):
    """There is no such function; the message says what is missing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine the function that is named, print what is found, return the exit code."""
    options = _parser().parse_args(arguments)
    if options.catalogue:
        for disease in CATALOGUE.values():
            print(f"{disease.id}\n    {disease.sentence}")
        return SOUND
    try:
        if options.function is None:
            raise NotFound("Name a function: python -m helpers.doctor mymodule:my_attention")
        fn = load(options.function)
        said = {name: getattr(options, name) for name in _CONVENTIONS}
        diagnosis = examine(fn, **said)
    except (NotFound, TypeError, ValueError, ImportError) as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    print(diagnosis)
    if options.picture:
        _draw(diagnosis, options.picture)
    return SOUND if diagnosis.sound else NOT_SOUND


def _draw(diagnosis: Diagnosis, file: Path) -> None:
    """Write the picture, or say why there is none; the verdict stands in either case."""
    if diagnosis.difference is None:
        why = "nothing is wrong" if diagnosis.sound else "there is no output that could be compared"
        print(f"{file} is not written: {why}.", file=sys.stderr)
        return
    try:
        file.write_text(diagnosis.picture().svg, encoding="utf-8")
    except OSError as error:
        print(
            f"{file} cannot be written: {error.strerror}. Name a file in a folder that exists.",
            file=sys.stderr,
        )


def load(name: str) -> Callable:
    """The function that "module:function" or "file.py:function" names. Raises NotFound."""
    place, colon, path = name.rpartition(":")
    if not colon or not place or not path:
        raise NotFound(f"{name!r} names no function: write mymodule:my_attention.")
    found = _module(place)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise NotFound(f"{place} has no {path}. {_hint(part, found)}") from None
    if not callable(found):
        raise NotFound(f"{name} is no function, but an object of type {type(found).__name__}.")
    return found


def _hint(name: str, found: object) -> str:
    """What may be meant by a name that is not there."""
    known = vars(found) if hasattr(found, "__dict__") else {}
    names = [n for n, x in known.items() if callable(x) and not n.startswith("__")]
    near = difflib.get_close_matches(name, names, 3, 0.5)
    if near:
        return f"Is one of these meant: {', '.join(near)}?"
    own = [n for n in names if not n.startswith("_")]
    more = f", and {len(own) - _LISTED} more" if len(own) > _LISTED else ""
    return f"It has: {', '.join(own[:_LISTED])}{more}." if own else "It has no function at all."


def _module(place: str):
    if place.endswith(".py") and not Path(place).is_file():
        near = difflib.get_close_matches(place, [p.name for p in Path().glob("*.py")], 3, 0.8)
        hint = f"Is one of these meant: {', '.join(near)}?" if near else "Give its path from here."
        raise NotFound(f"There is no file {place}. {hint}")
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:  # a module may fail in any way
        raise NotFound(f"{place} cannot be imported: {type(error).__name__}: {error}") from None


_CONVENTIONS = (
    "scale", "causal", "causal_alignment", "mask_true_means", "layout", "framework", "dtype",
    "device", "d_k", "d_v", "empty_rows", "gradients", "seconds",
)  # fmt: skip


def _scale(text: str) -> float | str:
    if text in SCALES:
        return text
    return _number(text, float, f"a number, or one of {', '.join(SCALES)}")


def _width(text: str) -> int:
    return _number(text, int, "a whole number, such as 64")


def _seconds(text: str) -> float:
    return _number(text, float, "a number of seconds, such as 10 or 0.5")


def _number(text: str, kind: type, wanted: str) -> float:
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m helpers.doctor",
        description="What is wrong with this attention function?",
        epilog="Exit codes: 0 sound, 1 not sound, 2 not found or a wrong option.",
    )
    add = parser.add_argument
    add("function", nargs="?", metavar="module:function", help="or file.py:function")
    add(
        "--scale",
        type=_scale,
        help=f"what scores are multiplied by: a number, or {', '.join(SCALES)}",
    )
    add("--causal", action="store_true", help="it hides the future without being asked")
    add("--causal-alignment", default="upper_left", choices=("upper_left", "lower_right"))
    add("--mask-true-means", default="attend", choices=("attend", "masked"))
    add("--layout", default="BHTD", choices=LAYOUTS, help="order of the axes")
    add("--framework", choices=("numpy", "torch"))
    add("--dtype", choices=tuple(EPS), help="of the inputs")
    add("--device", help='for torch, such as "cuda"')
    add("--d-k", type=_width, dest="d_k", help="the width of queries and keys that it is made for")
    add("--d-v", type=_width, dest="d_v", help="the width of values that it is made for")
    add("--empty-rows", default="zeros", choices=("zeros", "any"))
    add("--no-gradients", action="store_false", dest="gradients")
    add("--seconds", type=_seconds, help="for one call")
    add("--picture", type=Path, metavar="FILE.svg", help="draw where the output is wrong")
    add("--catalogue", action="store_true", help="list all diseases and end")
    return parser


if __name__ == "__main__":
    sys.exit(main())
