"""What an exercise and a trial have in common: what the reader is told, and what is shown."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Task:
    """A function for the reader to write.

    id : "lesson.number". signature : how it is called and what it returns, shapes included.
    hints : each tells more than the one before. solution : an ordinary function, shown from its
    source. names : of its arguments.
    """

    id: str
    title: str
    minutes: int
    difficulty: str
    statement: str
    signature: str
    hints: tuple[str, ...]
    solution: Callable
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "names", tuple(inspect.signature(self.solution).parameters))

    @property
    def source(self) -> str:
        """The code of the solution."""
        return inspect.getsource(self.solution).rstrip()

    @property
    def heading(self) -> str:
        return f"{self.id} {self.title}"
