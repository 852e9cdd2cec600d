r"""A TeX formula as a small picture that stands in a line of text, for pages without MathJax.

matplotlib's mathtext sets it, in the STIX fonts that come with matplotlib; the letters become
paths, so that the page looks the same on every machine and asks the network for nothing.
"""

from __future__ import annotations

import re
import threading
from functools import cache
from html import escape

_UNITS = 480  # of the viewBox to one em: a whole number of them is exact enough to print
_LINE_EM = 14.0  # pixels to one em of the text around, against which `size` counts
_DISPLAY = 20.0  # from this size on a fraction is set in full letters, as on a line of its own
_MISSING = 0xA4  # what mathtext sets in place of a sign that it does not have
_lock = threading.Lock()  # JupyterLab runs callbacks beside cells, and FreeType's fonts are shared


class FormulaError(ValueError):
    """This TeX cannot be drawn: which formula, and where it stops making sense."""


@cache
def formula(
    tex: str, words: str, size: float = _LINE_EM, tints: tuple[tuple[str, str], ...] = ()
) -> str:
    """One formula as an inline SVG element that sits on the baseline of the text around it.

    tex : what stands between dollars, in the TeX of `helpers.interview.markup`.
    words : the same in words, for screen readers.
    size : of its letters in pixels where the text around has 14; it grows with that text.
    tints : pairs of one letter and its colour; all else has the text's colour.

    Raises FormulaError (a ValueError) for TeX that mathtext does not know.
    """
    width, height, depth, marks = _set(tex, size >= _DISPLAY)
    colours = dict(tints)
    drawn: dict[str, list[str]] = {}  # colour → its paths: a formula in one colour is one element
    for letter, path in marks:
        drawn.setdefault(colours.get(letter, "currentColor"), []).append(path)
    paths = "".join(
        f'<path fill="{colour}" d="{"".join(parts)}"/>' for colour, parts in drawn.items()
    )
    em = size / _LINE_EM / _UNITS
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(words)}"'
        f' viewBox="0 0 {width} {height}" width="{width * em:.3f}em" height="{height * em:.3f}em"'
        f' style="vertical-align:{-depth * em:.3f}em">{paths}</svg>'
    )


def _known(tex: str, display: bool) -> str:
    r"""The TeX without the names that mathtext does not know, or sets with a gap (\top)."""
    tex = tex.replace(r"\frac", r"\dfrac") if display else tex
    tex = re.sub(r"\\(le|ge)(?![a-zA-Z])", r"\\\1q", tex)
    if not display:  # in a line of text the index of a sum stands beside it, not below
        tex = re.sub(r"\\sum_(\{[^{}]*\}|\w)", r"{\\sum}_\1\\,", tex)
    return re.sub(r"\\top(?![a-zA-Z])", r"{\\mathsf{T}}", tex)


def _set(tex: str, display: bool) -> tuple[int, int, int, list[tuple[str, str]]]:
    """(width, height, depth below the baseline, [(letter, path)]), in units, y downwards."""
    import numpy as np
    from matplotlib.font_manager import FontProperties
    from matplotlib.ft2font import LoadFlags
    from matplotlib.mathtext import MathTextParser

    with _lock:
        try:
            # At a size where the ceilings that mathtext takes of width and height do not show.
            box = MathTextParser("path").parse(
                f"${_known(tex, display)}$", 72, FontProperties(size=_UNITS, math_fontfamily="stix")
            )
        except ValueError as error:
            reason = str(error).strip().splitlines()[-1]
            raise FormulaError(f"the formula ${tex}$ cannot be drawn: {reason}.") from None
        shapes = []
        for font, size, code, glyph, x, y in box.glyphs:
            font.clear()
            font.set_size(size, 72)
            font.load_glyph(glyph, flags=LoadFlags.NO_HINTING)
            vertices, codes = font.get_path()
            if code == _MISSING:
                raise FormulaError(f"the formula ${tex}$ holds a sign that no font here has.")
            shapes.append((chr(code), vertices + np.array([x, y]), codes))
    if not shapes and not box.rects:
        raise FormulaError(f"the formula ${tex}$ shows nothing: write something between dollars.")

    # The baseline is at y = 0. Letters may reach out of their box (an italic f, a tall root): the
    # picture must hold them all.
    corners = [vertices for _, vertices, _ in shapes]
    corners += [[(x, y), (x + w, y + h)] for x, y, w, h in box.rects]
    left = min(0, *(min(x for x, _ in each) for each in corners))
    right = max(box.width, *(max(x for x, _ in each) for each in corners))
    bottom = min(-box.depth, *(min(y for _, y in each) for each in corners))
    top = max(box.height - box.depth, *(max(y for _, y in each) for each in corners))
    left, bottom, right, top = (round(v) for v in (left - 1, bottom - 1, right + 1, top + 1))

    def place(point) -> tuple[int, int]:
        return round(float(point[0])) - left, top - round(float(point[1]))

    marks = [(letter, _path(vertices, codes, place)) for letter, vertices, codes in shapes]
    for x, y, w, h in box.rects:  # lines of fractions and roots
        (x0, y0), (x1, y1) = place((x, y + h)), place((x + w, y))
        marks.append(("", f"M{x0} {y0}H{x1}V{max(y1, y0 + 1)}H{x0}z"))
    return right - left, top - bottom, -bottom, marks


_POINTS = {1: ("m", 1), 2: ("l", 1), 3: ("q", 2), 4: ("c", 3), 79: ("z", 0)}  # matplotlib's codes


def _path(vertices, codes, place) -> str:
    """An outline in SVG's relative commands, which need half the characters."""
    parts, at, i = [], (0, 0), 0
    start = at
    while i < len(codes):
        command, count = _POINTS[int(codes[i])]
        points = [place(vertices[i + n]) for n in range(count)]
        i += max(count, 1)
        if command == "z":
            parts.append("z")
            at = start
            continue
        if command == "m":
            parts.append(f"M{points[0][0]} {points[0][1]}")
            start = at = points[0]
            continue
        steps = [f"{x - at[0]} {y - at[1]}" for x, y in points]
        parts.append(command + " ".join(steps).replace(" -", "-"))
        at = points[-1]
    return "".join(parts)
