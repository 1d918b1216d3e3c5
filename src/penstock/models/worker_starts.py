"""When workers were asked for and when they ran, slot by slot; and which of them ran a batch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.allocation import Allocation
from penstock.core.loop import Step
from penstock.core.observation import Observation

# Ticks that are remembered until a batch that began long ago has ended.
TICKS_KEPT = 2000
# In the last tenth of a batch all its tasks are dealt out.
DEALT = 0.9


@dataclass(frozen=True, slots=True)
class Start:
    """How long a worker took from the request until it ran: between two ticks, or exactly where both are one."""

    least_s: float
    most_s: float


@dataclass(frozen=True, slots=True)
class Crew:
    """Who ran a batch."""

    ages_s: tuple[float, ...]
    """How long each worker that had served before had run when it began; infinite for those of the beginning."""
    fresh_s: tuple[float, ...]
    """When after its begin each new one was there; 0 for those that waited for it."""
    has_drained: bool
    """One was given up about then; so it was, if workers leave between batches."""


@dataclass(frozen=True, slots=True)
class _Tick:
    time_s: float
    running: frozenset[str]
    wanted: frozenset[str]


class Joins:
    """Follows the slots: when each was asked for, when it ran."""

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self.asked_s: dict[str, float] = {}
        self.given_up = self.lost = 0
        self.drains = False
        """Did one that was given up run on for a while?"""
        self._running: frozenset[str] = frozenset()
        self._between_s: dict[str, tuple[float, float]] = {}
        """When a worker came; also of one that has gone, for the batch that it ran."""
        self._past: deque[_Tick] = deque(maxlen=TICKS_KEPT)

    def add(self, step: Step, gap: bool) -> None:
        seen = step.seen
        tick = _Tick(seen.time_s, _names(seen.running), _names(seen.target))
        before_s = self._past[-1].time_s if self._past and not gap else None
        if gap:
            self._past.clear()
            self.asked_s.clear()
        self.drains = self.drains or not tick.wanted >= tick.running
        self._note_joins(seen, tick, before_s)
        self._past.append(tick)
        self._note_wishes(step)

    def crew(self, before_s: float, begun_s: float, ended_s: float) -> Crew | None:
        """Who ran a batch, and for whom it was the first: who came after `before_s`, when no task of the last was left.

        None where a tick hides it, or a worker was lost meanwhile.
        """
        later: list[_Tick] = []
        for tick in reversed(self._past):
            if tick.time_s <= begun_s:
                return self._crew(tick, later[::-1], (before_s, begun_s, ended_s)) if later else None
            if tick.time_s >= ended_s:
                later = [tick]
            else:
                later.append(tick)
        return None

    @staticmethod
    def gone_s(begun_s: float, ended_s: float) -> float:
        """When a batch has no task left for a worker that comes."""
        return begun_s + DEALT * (ended_s - begun_s)

    def _crew(self, earlier: _Tick, later: Sequence[_Tick], times_s: tuple[float, float, float]) -> Crew | None:
        """From the last tick before the batch, those within it and the first one after it."""
        first, last = later[0], later[-1]
        here, left = earlier.running & first.running, earlier.running - last.running
        # One that was given up left before the batch, or after it if a tick within it still shows it.
        if left & last.wanted or not all(here <= tick.running for tick in later[:-1]):
            return None
        came = here.union(*(tick.running - earlier.running for tick in later))
        before_s, begun_s, gone_s = times_s[0], times_s[1], self.gone_s(*times_s[1:])
        ages_s, fresh_s = [], []
        for least_s, most_s in (self._between_s[name] for name in came):
            middle_s = (least_s + most_s) / 2
            if most_s <= before_s or math.isinf(most_s):
                ages_s.append(begun_s - middle_s)
            elif before_s <= least_s <= most_s <= begun_s or begun_s <= least_s <= most_s <= gone_s:
                fresh_s.append(max(0.0, middle_s - begun_s))
            elif least_s < gone_s:
                return None
        return Crew(tuple(ages_s), tuple(fresh_s), bool(left)) if ages_s or fresh_s else None

    def _note_joins(self, seen: Observation, tick: _Tick, before_s: float | None) -> None:
        if before_s is not None:
            self.lost += len((self._running - tick.running) & tick.wanted)
        came, self._running = sorted(tick.running - self._running), tick.running
        for name in came:
            if before_s is None:
                self._between_s[name] = (-math.inf, -math.inf)
                continue
            asked_s = self.asked_s.pop(name, None)
            least_s, most_s = _joined_between(seen, name, before_s, asked_s)
            self._between_s[name] = (least_s, most_s)
            if asked_s is not None and most_s > asked_s:
                self.starts.append(Start(max(0.0, least_s - asked_s), most_s - asked_s))

    def _note_wishes(self, step: Step) -> None:
        wanted, known = _names(step.target), _names(step.seen.target)
        for name in [name for name in self.asked_s if name not in wanted]:
            del self.asked_s[name]
            self.given_up += 1
        for name in wanted - known - self._running:
            self.asked_s.setdefault(name, step.seen.time_s)


def _names(allocation: Allocation) -> frozenset[str]:
    return frozenset(worker.name for worker in allocation.workers)


def _joined_between(seen: Observation, name: str, before_s: float, asked_s: float | None) -> tuple[float, float]:
    """A live plant tells since when an executor lives; else it came at some time since the last tick.

    One that lived before its slot was asked for did not start: it was to leave from another, and stayed.
    """
    since_s = -math.inf
    if name in seen.workers.names:
        worker = seen.workers[name]
        # In journals of earlier versions a live worker was paid from when it ran.
        since_s = worker.paid_since_s if worker.runs_since_s is None else worker.runs_since_s
    if asked_s is not None and 0 < since_s < asked_s:
        return since_s, since_s
    return (since_s, since_s) if before_s < since_s <= seen.time_s else (before_s, seen.time_s)
