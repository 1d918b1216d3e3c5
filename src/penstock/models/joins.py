"""When workers were asked for and when they ran, slot by slot; and which of them ran a batch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.loop import Step
from penstock.core.observation import Observation

# Ticks that are remembered until a batch that began long ago has ended.
TICKS_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Start:
    """How long a worker took from the request until it ran: between two ticks, or exactly where both are one."""

    least_s: float
    most_s: float


class Joins:
    """Follows the slots: when each was asked for, when it ran."""

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self.asked_s: dict[str, float] = {}
        self.given_up = self.lost = 0
        self.drains = False
        """Did one that was given up run on for a while?"""
        self._between_s: dict[str, tuple[float, float]] = {}
        self._past: deque[tuple[float, tuple[str, ...]]] = deque(maxlen=TICKS_KEPT)

    def add(self, step: Step, gap: bool) -> None:
        seen = step.seen
        running = tuple(sorted(worker.name for worker in seen.running.workers))
        before_s = self._past[-1][0] if self._past and not gap else None
        if gap:
            self._past.clear()
            self.asked_s.clear()
        self.drains = self.drains or not {worker.name for worker in seen.target.workers}.issuperset(running)
        self._note_joins(seen, running, before_s)
        self._past.append((seen.time_s, running))
        self._note_wishes(step)

    def ages_s(self, begun_s: float, ended_s: float) -> list[float]:
        """The ages of the workers that a batch had; none where one left meanwhile, or a tick hides who took part.

        Who came while it ran counts from the next batch on: the tasks of this one were dealt out.
        """
        later: list[set[str]] = []
        for time_s, running in reversed(self._past):
            if time_s >= ended_s:
                later = [set(running)]
            elif time_s > begun_s:
                later.append(set(running))
            if time_s <= begun_s:
                crew = self._crew(set(running), later, begun_s)
                return [begun_s - sum(self._between_s[name]) / 2 for name in crew]
        return []

    def _crew(self, before: set[str], later: Sequence[set[str]], begun_s: float) -> set[str]:
        if not all(before <= running for running in later):
            return set()
        fresh = set().union(*later) - before
        if any(name not in self._between_s for name in fresh):
            return set()  # it came and went
        between_s = {name: self._between_s[name] for name in fresh}
        if any(least_s < begun_s < most_s for least_s, most_s in between_s.values()):
            return set()
        return before | {name for name, (_, most_s) in between_s.items() if most_s <= begun_s}

    def has_come_between(self, after_s: float, until_s: float) -> bool | None:
        """Has a worker joined between two batches' begins? None where the tick hides it."""
        spans_s = [span_s for span_s in self._between_s.values() if span_s[0] < until_s]
        if any(least_s >= after_s and most_s <= until_s for least_s, most_s in spans_s):
            return True
        return None if any(most_s > after_s for _, most_s in spans_s) else False

    def _note_joins(self, seen: Observation, running: Sequence[str], before_s: float | None) -> None:
        wanted = {worker.name for worker in seen.target.workers}
        for name in [name for name in self._between_s if name not in running]:
            del self._between_s[name]
            self.lost += name in wanted and before_s is not None
        for name in running:
            if name in self._between_s:
                continue
            if before_s is None:
                self._between_s[name] = (-math.inf, -math.inf)
                continue
            least_s, most_s = _joined_between(seen, name, before_s)
            self._between_s[name] = (least_s, most_s)
            if name in self.asked_s:
                asked_s = self.asked_s.pop(name)
                self.starts.append(Start(max(0.0, least_s - asked_s), most_s - asked_s))

    def _note_wishes(self, step: Step) -> None:
        wanted = {worker.name for worker in step.target.workers}
        known = {worker.name for worker in step.seen.target.workers}
        for name in [name for name in self.asked_s if name not in wanted]:
            del self.asked_s[name]
            self.given_up += 1
        for name in wanted - known - self._between_s.keys():
            self.asked_s.setdefault(name, step.seen.time_s)


def _joined_between(seen: Observation, name: str, before_s: float) -> tuple[float, float]:
    """A live plant tells since when an executor lives; else it came at some time since the last tick."""
    since_s = seen.workers[name].paid_since_s if name in seen.workers.names else -math.inf
    return (since_s, since_s) if before_s < since_s <= seen.time_s else (before_s, seen.time_s)
