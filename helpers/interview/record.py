"""What happened in mock interviews: a file for each round, written at every key that is typed.

A round that was interrupted, by a crash or a closed lid, goes on where it was. If two notebooks go
on with the same round, the second to write gets a file of its own: neither loses an answer.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from helpers.interview import rounds, store
from helpers.interview.rounds import Entry, Step


@dataclass
class Round:
    """One mock interview.

    steps : what is still planned. entries : what was asked, the last one may be going on.
    finished : whether it is over. owner : who wrote it last.
    """

    id: str
    started: datetime
    level: str
    minutes: int
    steps: list[Step]
    entries: list[Entry] = field(default_factory=list)
    finished: bool = False
    owner: str = ""

    @property
    def seconds(self) -> float:
        return sum(entry.seconds for entry in self.entries)

    @property
    def score(self) -> float | None:
        scored = [entry for entry in self.entries if entry.score is not None]
        return rounds.mean(scored) if scored else None

    def to_json(self) -> dict:
        return {
            "started": self.started.isoformat(),
            "level": self.level,
            "minutes": self.minutes,
            "steps": [asdict(step) for step in self.steps],
            "entries": [asdict(entry) for entry in self.entries],
            "finished": self.finished,
            "owner": self.owner,
        }


def from_json(id: str, content: Mapping) -> Round:
    """Raises KeyError, TypeError or ValueError for what `to_json` never wrote."""
    if content["minutes"] not in rounds.MINUTES:
        raise ValueError(f"no round has {content['minutes']!r} minutes")
    started = datetime.fromisoformat(content["started"])
    if started.tzinfo is None or not 2000 <= started.year <= 9000:
        raise ValueError(f"no round began at {started}")
    return Round(
        id,
        started,
        str(content["level"]),
        content["minutes"],
        [rounds.step_from_json(step) for step in content["steps"]],
        [rounds.from_json(entry) for entry in content["entries"]],
        bool(content["finished"]),
        str(content["owner"]),
    )


def now() -> datetime:
    return datetime.now(UTC)


class Records:
    """All rounds of a reader. notices : what the reader should know, such as a file set aside."""

    def __init__(self, now: Callable[[], datetime] = now):
        self._folder = store.folder() / "rounds"
        self._now = now
        self.owner = secrets.token_hex(8)
        self.notices: list[str] = []

    @property
    def folder(self) -> Path:
        return self._folder

    def new(self, level: str, minutes: int, steps: list[Step]) -> Round:
        """A round that begins now. It is not written before something happens in it."""
        started = self._now()
        id = f"{started.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}"
        return Round(id, started, level, minutes, steps, owner=self.owner)

    def save(self, round: Round) -> None:
        """Write a round. If another notebook went on with it meanwhile, under a name of its own.

        Raises StoreError if it cannot be kept.
        """
        document = self._document(round.id)

        mine = {**round.to_json(), "owner": self.owner}

        def edit(content: dict) -> bool:
            # Whoever wrote what this round was read from may have been followed by somebody else.
            if content and content["owner"] != round.owner:
                return False
            content.update(mine)
            return True

        if not document.change(edit):
            round.id = f"{round.id}-{secrets.token_hex(2)}"
            self.notices.append(
                "Another notebook goes on with this round too: what you answer here is kept as a "
                f"round of its own, {round.id}."
            )
            self._document(round.id).change(lambda content: content.update(mine))
        round.owner = self.owner
        self.notices += document.notices

    def all(self) -> list[Round]:
        """Every round that can be read, the newest first; `notices` tells of the others.

        Raises StoreError if the folder cannot be looked into.
        """
        found = []
        for path in self._files():
            document = self._document(path.stem)
            try:
                content = document.read()
            except store.StoreError as error:
                self.notices.append(str(error))
                continue
            self.notices += document.notices
            if content:
                found.append(from_json(path.stem, content))
        return sorted(found, key=lambda round: round.started, reverse=True)

    def _files(self) -> list[Path]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise store.StoreError(
                f"{self._folder} cannot be read: {error.strerror or error}. Earlier rounds are not "
                "shown."
            ) from None
        names = [name for name in names if name.endswith(".json") and ".damaged-" not in name]
        return [self._folder / name for name in sorted(names) if not name.startswith(".")]

    def _document(self, id: str) -> store.Document:
        return store.Document(
            self._folder / f"{id}.json", check=lambda content: from_json(id, content)
        )


def asked(history: list[Round]) -> dict[str, int]:
    """How often each ref came up."""
    counts: dict[str, int] = {}
    for round in history:
        for entry in round.entries:
            counts[entry.step.ref] = counts.get(entry.step.ref, 0) + 1
    return counts
