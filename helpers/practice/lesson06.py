"""Lesson 6's whiteboard tasks, in the order of the lesson. (They are in `board_attention` and
`board_rows`, the lesson's questions in `questions06`.)"""

from __future__ import annotations

from helpers.practice import board_attention, board_rows
from helpers.practice.questions06 import PREDICTIONS, QUIZ

__all__ = ["EXERCISES", "PREDICTIONS", "QUIZ"]

EXERCISES = tuple(
    sorted((*board_rows.EXERCISES, *board_attention.EXERCISES), key=lambda exercise: exercise.id)
)
