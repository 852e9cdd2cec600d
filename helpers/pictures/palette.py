"""One colour for each of Q, K, V, scores, weights and output, the same in every lesson.

The six fills were searched for so that any two differ by at least 14 (CIEDE2000) for normal
vision and under simulated protanopia, deuteranopia and tritanopia (Machado et al. 2009). Colour
is never the only sign: every matrix also carries its letter, and every cell its number.
"""

from __future__ import annotations

from dataclasses import dataclass

PAPER = "#ffffff"
INK = "#05060a"  # darkest text; light enough tints take it, darker ones take PAPER
TEXT = "#1f2430"
QUIET = "#5b6270"  # secondary text, still 6:1 on paper
RULE = "#c9ced8"
ERROR = "#b3261e"


@dataclass(frozen=True)
class Role:
    """What a matrix is for.

    name : as prose calls it.
    symbol : as a formula calls it.
    fill : colour of its largest cell, its outline and its title in pictures.
    text : a shade of it for running text on paper.
    formula : the same hue at a lightness that reads on white and on a dark theme alike.
    """

    name: str
    symbol: str
    fill: str
    text: str
    formula: str


ROLES = {
    role.name: role
    for role in (
        Role("Q", "Q", "#1f7fbf", "#18689f", "#1a81c4"),
        Role("K", "K", "#932b0a", "#932b0a", "#dd4916"),
        Role("V", "V", "#1d6652", "#1d6652", "#268d6f"),
        Role("scores", "S", "#543894", "#543894", "#8f6bdb"),
        Role("weights", "A", "#a27e08", "#7c6006", "#9a7708"),
        Role("output", "O", "#df3d7b", "#bf1f5b", "#db2f71"),
    )
}


# What is none of the six, such as the input X, is drawn in grey.
ROLES["X"] = Role("X", "X", "#5b6270", "#5b6270", "#7b8394")


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb", 0 for black to 1 for white (WCAG 2.2)."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2; ordinary text needs 4.5)."""
    lighter, darker = sorted((luminance(a), luminance(b)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def tint(fill: str, amount: float) -> str:
    """`fill` mixed with paper: amount 0 gives the lightest tint a cell has, 1 the fill itself."""
    share = 0.07 + 0.93 * min(max(amount, 0.0), 1.0)
    channels = (round(255 + (int(fill[i : i + 2], 16) - 255) * share) for i in (1, 3, 5))
    return "#" + "".join(f"{c:02x}" for c in channels)


def ink_on(background: str) -> str:
    """The text colour on `background`: dark wherever that reads well, so that it changes seldom."""
    return INK if contrast(INK, background) >= 4.5 else PAPER
