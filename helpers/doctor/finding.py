"""Something that is wrong, and the answers that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from helpers.doctor.catalogue import CATALOGUE, Disease
from helpers.doctor.patient import Seen


@dataclass(frozen=True)
class Finding:
    """diseases : more than one where they cannot be told apart. seen : all answers of the kind
    that shows it. candidates : what the shown answer is compared with. lines : more evidence.
    compare : whether errors say something."""

    diseases: tuple[Disease, ...]
    seen: tuple[Seen, ...] = ()
    candidates: tuple[Disease, ...] = ()
    lines: tuple[str, ...] = ()
    compare: bool = True

    @property
    def name(self) -> str:
        return "|".join(disease.id for disease in self.diseases)

    @property
    def ids(self) -> set[str]:
        return {disease.id for disease in self.diseases}


def found(id: str, seen: Sequence[Seen] = (), *lines: str, **more) -> Finding:
    """One disease, by its identifier."""
    return Finding((CATALOGUE[id],), tuple(seen), lines=lines, **more)
