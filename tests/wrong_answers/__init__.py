"""Wrong answers to each lesson's exercises, and the name that the checker must give them.

WRONG, HOSTILE and RIGHT are those of all modules here, one a lesson.
"""

import importlib
import pkgutil

_LESSONS = [
    importlib.import_module(f"{__name__}.{module.name}")
    for module in pkgutil.iter_modules(__path__)
]
WRONG = [answer for lesson in _LESSONS for answer in lesson.WRONG]
HOSTILE = [answer for lesson in _LESSONS for answer in lesson.HOSTILE]
RIGHT = [answer for lesson in _LESSONS for answer in lesson.RIGHT]
