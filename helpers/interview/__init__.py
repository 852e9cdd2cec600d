"""The interview room: a question bank, flashcards, a mock interview, and what goes with them.

    Library()            all questions to leaf through
    Ask(id)              one question, to be answered aloud
    Flashcards()         questions and numbers when they are due
    ByHand(seed)         short computations
    DebugThis()          attention functions to diagnose
    MockInterview()      a timed round, with a report
    CheatSheet()         one page to print
    AnkiExport()         the cards for Anki

On the command line: python -m helpers.interview anki, python -m helpers.interview sheet
"""

from helpers.interview.anki import AnkiExport
from helpers.interview.flashcards import Flashcards
from helpers.interview.library import Library
from helpers.interview.mock import MockInterview
from helpers.interview.series import Ask, ByHand, DebugThis
from helpers.interview.sheet import CheatSheet

__all__ = [
    "AnkiExport",
    "Ask",
    "ByHand",
    "CheatSheet",
    "DebugThis",
    "Flashcards",
    "Library",
    "MockInterview",
]
