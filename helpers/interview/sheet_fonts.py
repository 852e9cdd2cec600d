"""The letters of the cheat sheet, put into its page, so that it fills one sheet of paper anywhere.

With the reader's own fonts every line would break elsewhere, and a second page would begin on some
machines. STIX and DejaVu come with matplotlib; only the signs that the page shows go into it.
"""

from __future__ import annotations

import base64
import io
from functools import cache
from importlib.util import find_spec
from pathlib import Path

FAMILY, MONO = "Attention Sheet", "Attention Sheet Mono"  # names that no installed font has
_FACES = (
    (FAMILY, "STIXGeneral.ttf", "normal", "normal"),
    (FAMILY, "STIXGeneralBol.ttf", "bold", "normal"),
    (FAMILY, "STIXGeneralItalic.ttf", "normal", "italic"),
    (MONO, "DejaVuSansMono.ttf", "normal", "normal"),
)


@cache
def faces(signs: str) -> str:
    """CSS @font-face rules that hold the fonts themselves, for a page that shows these signs."""
    return "\n".join(
        f"@font-face {{ font-family: '{family}'; font-weight: {weight}; font-style: {style};"
        f" src: url(data:font/woff;base64,{_subset(file, signs)}) format('woff'); }}"
        for family, file, weight, style in _FACES
    )


def _subset(file: str, signs: str) -> str:
    from fontTools import subset

    options = subset.Options(
        flavor="woff", hinting=False, layout_features=["kern", "liga"], recalc_timestamp=False
    )
    options.drop_tables += ["FFTM"]  # a time stamp; nothing can be cut from it
    font = subset.load_font(str(_folder() / file), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=signs)
    subsetter.subset(font)
    held = io.BytesIO()
    subset.save_font(font, held, options)
    return base64.b64encode(held.getvalue()).decode("ascii")


def _folder() -> Path:
    package = find_spec("matplotlib").submodule_search_locations[0]
    return Path(package) / "mpl-data" / "fonts" / "ttf"
