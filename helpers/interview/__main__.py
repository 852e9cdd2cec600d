"""The interview room's files from a terminal: the deck for Anki and the cheat sheet.

    python -m helpers.interview anki [FILE]
    python -m helpers.interview sheet [FILE]

Without FILE they go into the current folder. Exit codes: 0 written; 1 not written; 2 a wrong
option, or a text of the bank or of the sheet that cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from helpers.interview import anki, sheet
from helpers.interview.bank import BankError
from helpers.interview.saving import SaveError
from helpers.interview.sheet_data import SheetError

WRITTEN, NOT_WRITTEN, UNUSABLE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file that is asked for, say where it is, return the exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        # A path may hold signs that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    make, then = {
        "anki": (anki.export, "Import it in Anki: menu File, Import."),
        "sheet": (sheet.save, "Open it in a browser and print it: one page, A4 or US letter."),
    }[options.what]
    try:
        where = make(options.file)
    except SaveError as error:
        print(error, file=sys.stderr)
        return NOT_WRITTEN
    except (BankError, SheetError) as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    print(f"{where}\n{then}")
    return WRITTEN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m helpers.interview",
        description="Write the interview room's files.",
        epilog="Exit codes: 0 written, 1 not written, 2 a wrong option or a broken text.",
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="anki | sheet")
    for what, name, words in (
        ("anki", anki.NAME, "all questions and numbers as a deck for Anki"),
        ("sheet", sheet.NAME, "the one-page cheat sheet as an HTML page"),
    ):
        command = commands.add_parser(what, help=words, description=words)
        command.add_argument(
            "file",
            nargs="?",
            type=Path,
            default=Path(name),
            metavar="FILE",
            help=f"where to write it; {name} in the current folder unless given",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
