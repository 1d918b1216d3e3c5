"""What a person should know of a plant, once: sources that stop or begin to tell what waits, executors that went."""

from __future__ import annotations

from collections.abc import Iterable


class PlantNotes:
    """Compares how a plant stands with how it stood at the last look.

    >>> notes = PlantNotes()
    >>> notes.take({"RateStream"}, lost=0), notes.take({"RateStream"}, lost=1)
    (['RateStream does not tell what waits in it: the backlog is unknown'], ['1 executors were lost, not ended by us'])
    >>> notes.take([], lost=1)
    ['RateStream now tells what waits in it']
    """

    def __init__(self) -> None:
        self._silent: set[str] = set()
        self._lost = 0
        self._wrong = ""

    def take(self, silent: Iterable[str], lost: int, wrong: str = "") -> list[str]:
        """What is new of the sources that do not tell what waits, of executors lost so far, and of what goes wrong."""
        before, self._silent = self._silent, set(silent)
        what = "does not tell what waits in it: the backlog is unknown"
        notes = [f"{name} {what}" for name in sorted(self._silent - before)]
        notes += [f"{name} now tells what waits in it" for name in sorted(before - self._silent)]
        if lost > self._lost:
            notes.append(f"{lost - self._lost} executors were lost, not ended by us")
        if wrong and wrong != self._wrong:
            notes.append(wrong)
        self._lost, self._wrong = lost, wrong
        return notes
