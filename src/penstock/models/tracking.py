"""What a policy learns from what it sees alone: how long starts take, and what workers really do."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.core.allocation import Worker
from penstock.core.job import CapacityModel
from penstock.core.observation import Observation

# Where nobody said how long a worker takes to start: a virtual machine with a JVM on it.
START_S = 90.0


class StartTimes:
    """How long a worker takes from the request until it serves: the longest of late, slowly forgotten.

    >>> starts = StartTimes(None)
    >>> starts.expected_s
    90.0
    """

    def __init__(self, declared_s: float | None) -> None:
        self.expected_s = START_S if declared_s is None else declared_s
        self.were_seen = False
        """Has a worker come that was asked for? Until then nobody knows what it costs to get one back."""
        self._pending: Mapping[str, float] = {}
        self._crew: tuple[Worker, ...] | None = None
        self._last_s: float | None = None
        self._lost: set[str] = set()
        """Workers that were pending over a gap in what was seen."""

    def note(self, seen: Observation) -> None:
        # Over a gap in what was seen (a night that a trace leaves out, a machine that slept) nobody knows what it took.
        is_whole = self._last_s is None or seen.time_s - self._last_s <= 1.5 * seen.span_s
        self._last_s = seen.time_s
        if not is_whole:
            self._lost = {*seen.pending, *self._pending}
        crew = seen.running.workers
        if self._crew is not None and crew != self._crew:
            there = {worker.name for worker in self._crew}
            for place, worker in enumerate(crew):
                if worker.name not in there and worker.name not in self._lost and is_whole:
                    self._learn(self._took_s(seen, place, worker.name))
        self._crew, self._pending = crew, seen.pending
        self._lost &= self._pending.keys()

    def _took_s(self, seen: Observation, place: int, name: str) -> float | None:
        """From its request until it ran: told, or else seen tick by tick."""
        ran, paid = (_told(seen, column, place) for column in ("runs_since_s", "paid_since_s"))
        if ran is not None and paid is not None:
            # One that is paid from the moment it runs was not asked for: nobody knows what it took.
            return ran - paid if ran > paid or not self.expected_s else None
        if name in self._pending:  # it came within the interval: in its middle, for all that is known
            return max(0.0, seen.time_s - seen.span_s / 2 - self._pending[name])
        return None

    def _learn(self, took_s: float | None) -> None:
        if took_s is not None:
            self.were_seen = True
            self.expected_s += (took_s - self.expected_s) * (0.5 if took_s > self.expected_s else 0.1)


def _told(seen: Observation, column: str, place: int) -> float | None:
    values = seen.workers.columns.get(column)
    return values if values is None or isinstance(values, (int, float)) else values[place]


class Stalls:
    """How long a batch is held up by a worker that is new in it: its first task loads and compiles what others have.

    On a quarter of a core that took 51 s (docs/live): more than a bound of a minute leaves.
    """

    def __init__(self) -> None:
        self.expected_s = 0.0
        self._number: int | None = None
        self._began_s = math.inf

    def note(self, seen: Observation, model: CapacityModel) -> None:
        """Look at a batch that has just ended: did a worker join since the one before began?"""
        batch = seen.batch
        if batch is None or batch.number == self._number:
            return
        began_before_s, self._number = self._began_s, batch.number
        ended_s = seen.time_s - batch.age_s
        self._began_s = ended_s - batch.execution_s
        since = seen.workers.columns.get("runs_since_s", ())
        if isinstance(since, (int, float)) or not any(began_before_s < each < ended_s for each in since):
            return
        # Those that joined may have come at its very end: without them it would have taken no longer than this.
        crew = max(1, sum(each <= began_before_s for each in since))
        held_s = max(0.0, batch.execution_s - model.fixed_s(crew) - batch.rows / model.capacity(crew))
        self.expected_s += (held_s - self.expected_s) * (0.5 if held_s > self.expected_s else 0.1)


class TrackedCapacity:
    """What workers really do, as a multiple of what the model says: learnt while they had enough to do.

    A tick with nothing left at its end says nothing: the workers may have waited for events.
    """

    def __init__(self, fading: float = 0.1) -> None:
        self.ratio = 1.0
        self._fading = fading
        self._before: Observation | None = None

    def note(self, seen: Observation, model: CapacityModel) -> None:
        """One interval more."""
        before, self._before = self._before, seen
        if before is None or seen.running.workers != before.running.workers or not seen.running.workers:
            return
        sample = self._of_batch(seen, before, model) if seen.batch else self._of_tick(seen, before, model)
        if sample is not None:
            self.ratio += self._fading * (min(1.5, max(0.3, sample)) - self.ratio)

    def _of_tick(self, seen: Observation, before: Observation, model: CapacityModel) -> float | None:
        done = seen.processed - before.processed
        busy = done and min(before.backlog or 0.0, seen.backlog or 0.0) > 0.1 * done
        return done / (model.capacity(len(seen.running.workers)) * seen.span_s) if busy else None

    def _of_batch(self, seen: Observation, before: Observation, model: CapacityModel) -> float | None:
        """Of one that began when the crew was as it is, and long enough to tell rows from what comes before them."""
        batch, workers = seen.batch, len(seen.running.workers)
        if batch is None or (before.batch is not None and batch.number == before.batch.number):
            return None
        fixed_s = model.fixed_s(workers)
        if batch.age_s + batch.execution_s > seen.span_s or batch.execution_s < 2 * fixed_s:
            return None
        return batch.rows / model.capacity(workers) / (batch.execution_s - fixed_s)
