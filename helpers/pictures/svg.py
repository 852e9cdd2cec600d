"""The few SVG elements that the pictures are drawn with, and numbers written for people.

Every function returns a string. Coordinates are CSS pixels, rounded to a tenth, so that the same
data always gives the same string.
"""

from __future__ import annotations

import re
from html import escape

import numpy as np

from helpers.pictures.palette import INK, PAPER

SANS = "DejaVu Sans, Verdana, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
SERIF = "DejaVu Serif, Georgia, serif"
_ADVANCE = {".": 0.32, "·": 0.32, "−": 0.84}  # of SANS, in ems; a digit has 0.64


def px(value: float) -> str:
    """A coordinate: one decimal at most, no trailing zeros."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def number(value: float, decimals: int) -> str:
    """A number as the pictures print it: fixed decimals, a true minus sign, never "−0"."""
    if not np.isfinite(value):
        return {np.inf: "∞", -np.inf: "−∞"}.get(value, "NaN")
    if abs(value) >= 1e5:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}·10{superscript(int(exponent))}".replace("-", "−")
    printed = f"{value:.{decimals}f}"
    return printed.replace("-", "−" if float(printed) else "")


def superscript(value: int) -> str:
    """An exponent in Unicode superscripts, for plain text: 5 gives "⁵"."""
    return str(value).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def decimals_needed(values) -> int:
    """How many decimals print all finite `values` exactly: at most 3, fewer beside long numbers."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    largest = np.abs(finite).max(initial=0)
    most = 3 if largest < 10 else 2 if largest < 100 else 1
    for decimals in range(most):
        if np.allclose(finite, np.round(finite, decimals), rtol=0, atol=1e-9):
            return decimals
    return most


def text_width(content: str) -> float:
    """Width of a printed number in SANS, in ems."""
    return sum(_ADVANCE.get(character, 0.64) for character in content)


def text(
    x: float, y: float, content: str, *, size: float = 13, fill: str = INK, anchor: str = "start",
    family: str = SANS, weight: str = "normal", style: str = "normal",
) -> str:  # fmt: skip
    """One line of text, its baseline at (x, y). `content` is SVG: pass words through `words`."""
    extra = "" if weight == "normal" else f' font-weight="{weight}"'
    extra += "" if style == "normal" else f' font-style="{style}"'
    return (
        f'<text x="{px(x)}" y="{px(y)}" font-family="{family}" font-size="{px(size)}"'
        f' fill="{fill}" text-anchor="{anchor}"{extra} xml:space="preserve">{content}</text>'
    )


words = escape


def span(content: str, fill: str, *, bold: bool = False) -> str:
    """A coloured part of a line of text."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<tspan fill="{fill}"{weight}>{content}</tspan>'


def formula(name: str, size: float) -> str:
    """Words with symbols as plain text writes them, "Kᵀ" or "÷ √d_k", small letters moved."""
    lowered = re.sub(r"([A-Za-z])_(\w+)", lambda m: sub(m[1], m[2], size), words(name))
    return re.sub(r"(\w)ᵀ", lambda m: sup(m[1], "T", size), lowered)


def sub(base: str, index: str, size: float) -> str:
    """`base` with a subscript. `size` is the font size of the line."""
    return _shifted(base, index, size, 0.25)


def sup(base: str, exponent: str, size: float) -> str:
    """`base` with a superscript. `size` is the font size of the line."""
    return _shifted(base, exponent, size, -0.35)


def _shifted(base: str, small: str, size: float, ems: float) -> str:
    # Renderers disagree about baseline-shift and about Unicode's raised letters, so move by hand:
    # an empty tspan would not move the pen back, hence the zero-width space.
    down = px(size * ems)
    up = px(-float(down))
    return (
        f'{base}<tspan dy="{down}" font-size="{px(size * 0.72)}">{small}</tspan>'
        f'<tspan dy="{up}">\u200b</tspan>'
    )


def rect(
    x: float, y: float, width: float, height: float, *, fill: str = "none", stroke: str = "none",
    radius: float = 6, line: float = 1, dash: str = "",
) -> str:  # fmt: skip
    """A rectangle with rounded corners; (x, y) is its top left corner."""
    outline = "" if stroke == "none" else f' stroke="{stroke}" stroke-width="{px(line)}"'
    outline += f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<rect x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}"'
        f' rx="{px(radius)}" fill="{fill}"{outline}/>'
    )


def path(d: str, *, stroke: str, line: float = 1.5, fill: str = "none", dash: str = "") -> str:
    """An SVG path; `d` and `dash` as in SVG."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<path d="{d}" fill="{fill}" stroke="{stroke}" stroke-width="{px(line)}"'
        f' stroke-linecap="round" stroke-linejoin="round"{dashes}/>'
    )


def arrow_head(x: float, y: float, direction: str, colour: str) -> str:
    """The tip of an arrow that points "right" or "down", at (x, y)."""
    turn = {"right": "-6,-4 l6,4 l-6,4", "down": "-4,-6 l4,6 l4,-6"}[direction]
    dx, rest = turn.split(",", 1)
    dy, strokes = rest.split(" ", 1)
    return path(f"M{px(x + float(dx))},{px(y + float(dy))} {strokes}", stroke=colour)


def document(width: float, height: float, title: str, description: str, body: list[str]) -> str:
    """A whole picture: an opaque background (dark themes do not reach into it), named for
    screen readers, scaling with its column down to any width."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {px(width)} {px(height)}"'
        f' style="display:block;width:100%;max-width:{px(width)}px;height:auto" role="img">'
        f"<title>{words(title)}</title><desc>{words(description)}</desc>"
        f'<rect width="{px(width)}" height="{px(height)}" rx="10" fill="{PAPER}"/>'
        f"{''.join(body)}</svg>"
    )
