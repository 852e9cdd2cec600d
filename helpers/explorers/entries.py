"""Numbers that a reader types: what is accepted, and what is said when one is refused."""

from __future__ import annotations

import math
from fractions import Fraction


def parse_number(entry: str, *, low: float = -math.inf, high: float = math.inf) -> float:
    """The number that `entry` says: "3", "-0.5", "0,5" or "1/2".

    Raises ValueError, in a sentence that names the entry and the limits, for anything else.
    """
    cleaned = entry.strip().replace("−", "-").replace(",", ".")
    shown = cleaned if len(cleaned) <= 20 else f"{cleaned[:20]}…"
    try:
        value = float(Fraction(cleaned))
    except ZeroDivisionError:
        raise ValueError(f"“{shown}” divides by zero.") from None
    except (ValueError, OverflowError):
        what = f"“{shown}” is not a number" if cleaned else "The cell is empty"
        raise ValueError(f"{what}. Write one such as 2, −0.5 or 1/2.") from None
    if not low <= value <= high:
        raise ValueError(f"{shown} is outside {low:g} … {high:g}.".replace("-", "−"))
    return value
