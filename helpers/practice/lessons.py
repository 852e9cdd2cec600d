"""Find a lesson's exercises and questions by id: "1.2" is number 2 of the module `lesson01`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from types import ModuleType

from helpers import practice
from helpers.practice.exercises import Exercise
from helpers.practice.questions import Question
from helpers.practice.trials import Trial


@cache
def _lessons() -> dict[str, str]:
    """Lesson number → module name, of every lesson there is; none is imported for this."""
    names = (module.name for module in pkgutil.iter_modules(practice.__path__))
    found = (re.fullmatch(r"lesson0*(\d+)", name) for name in names)
    return {match[1]: match[0] for match in found if match}


def numbers() -> list[str]:
    """The lessons that have practice, in order."""
    return sorted(_lessons(), key=int)


def every(attribute: str) -> list:
    """The EXERCISES, PREDICTIONS or QUIZ of all lessons, in order."""
    return [item for number in numbers() for item in getattr(_module(number), attribute, ())]


def _module(lesson: str) -> ModuleType | None:
    name = _lessons().get(lesson)
    return name and importlib.import_module(f"helpers.practice.{name}")


def exercise(id: str) -> Exercise | Trial:
    """The exercise with that id, or ValueError."""
    return _find("exercise", "EXERCISES", id)


def prediction(id: str) -> Question:
    """The prediction with that id, or ValueError."""
    return _find("prediction", "PREDICTIONS", id)


def questions(lesson: str) -> tuple[Question, ...]:
    """The quiz of that lesson, or ValueError."""
    found = getattr(_module(str(lesson)), "QUIZ", ())
    if found:
        return found
    known = [number for number in numbers() if getattr(_module(number), "QUIZ", ())]
    raise ValueError(f"no quiz for lesson {lesson!r}; there is one for: {', '.join(known)}.")


def _find(kind: str, attribute: str, id: str):
    if not isinstance(id, str):
        raise ValueError(f'write the id of the {kind} in quotes, "1.1"; got {type(id).__name__}.')
    module = _module(id.strip().partition(".")[0])
    for item in getattr(module, attribute, ()):
        if item.id == id.strip():
            return item
    known = ", ".join(item.id for item in every(attribute))
    raise ValueError(f"no {kind} {id!r}; there are: {known}.")
