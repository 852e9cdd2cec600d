"""Wrong answers to each lesson's exercises, and the name that the checker must give them.

WRONG : (exercise id, function, mistakes one of which must be named).
HOSTILE : the same, for functions that misbehave. RIGHT : (exercise id, function).
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from wrong_answers.book import HOSTILE, RIGHT, WRONG  # noqa: E402

__all__ = ["HOSTILE", "RIGHT", "WRONG"]
