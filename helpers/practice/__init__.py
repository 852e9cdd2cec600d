"""Predictions, exercises with a checker, hints, solutions, quizzes and drills by hand.

    predict("1.1")      a question to answer before looking
    check("1.1", fn)    run your function on many inputs and say what is wrong with it
    hint("1.1")         hints, one at a time
    solution("1.1")     a solution, on request
    quiz("1")           a lesson's quiz
    Drill(seed)         attention worked out by hand, checked number by number

The content of lesson n is in the module `lesson0n`. An unknown id raises ValueError and names the
known ones.
"""

from __future__ import annotations

from collections.abc import Callable

from helpers.practice import exercises, lessons, trials
from helpers.practice.drill_view import Drill
from helpers.practice.questions import Prediction, Quiz
from helpers.practice.reveal import Hints, Solution
from helpers.practice.verdict import Verdict

__all__ = ["Drill", "Verdict", "check", "hint", "predict", "quiz", "solution"]


def predict(id: str) -> Prediction:
    """The prediction with that id, such as "1.1"."""
    return Prediction(lessons.prediction(id))


def check(id: str, fn: Callable) -> Verdict:
    """Run `fn` on the inputs of the exercise with that id, and say whether it is right.

    Whatever `fn` does (raise, loop, return nonsense), a verdict comes back within six seconds,
    and what it takes to import torch where an exercise needs it.
    """
    exercise = lessons.exercise(id)
    kind = trials if isinstance(exercise, trials.Trial) else exercises
    return kind.check(exercise, fn)


def hint(id: str) -> Hints:
    """The hints of the exercise with that id."""
    return Hints(lessons.exercise(id))


def solution(id: str) -> Solution:
    """The solution of the exercise with that id."""
    return Solution(lessons.exercise(id))


def quiz(lesson: str) -> Quiz:
    """The quiz of a lesson, such as "1"."""
    return Quiz(str(lesson), lessons.questions(lesson))
