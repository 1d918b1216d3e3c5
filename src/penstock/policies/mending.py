"""A schedule made good by trying it: where it misses, workers stay longer or come before, and it is tried again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d

from penstock.core.job import Job, Trial
from penstock.solvers.schedule import ROUNDING, Bools, Ints, OnProgress, Task, bill, full, silent, unavoidable
from penstock.solvers.schedule_bound import schedule

# To go back costs the ticks up to the last place saved; to save takes as long as a dozen ticks.
SAVED_EVERY = 16
# Further back than this no worker helps: 10 KB a place.
SAVED_MOST = 8192
# A tick that is missed after so many tries is missed for good.
TRIES_MOST = 12
HOLDS_MOST = 4
# A schedule that must be mended at every fourth tick was planned too tightly: another one will be cheaper. In a short
# series that is no matter of time.
MENDED_MOST = 0.25
MENDED_FEW = 2000
# The fluid may take this part of the bound: batches that follow each other take two of their lengths to answer. Most
# of 7 tried on four traces cost within 2 % of each other; none of them was always the cheapest.
PARTS_OF_BOUND = (0.42, 0.25)
# Batches as long as this part of the bound pay their fixed time.
BATCH_PART = 0.4


@dataclass(frozen=True)
class Reach:
    """How far before a miss workers can help, in ticks; and how many there may be."""

    start: int
    batch: int
    most: int


class Mending:
    """Tries a schedule and mends it, from the first tick to the last; `missed` counts what could not be mended."""

    def __init__(self, trial: Trial, paid: Ints, reach: Reach, may_miss: Bools) -> None:
        self._trial, self._reach, self._may_miss = trial, reach, may_miss.copy()
        self._paid: list[int] = paid.tolist()
        self._tried: Counter[int] = Counter()
        self._saved: dict[int, bytes] = {}
        self._mended = 0
        self._lost = -1
        self.missed = 0

    @property
    def paid(self) -> Ints:
        return np.asarray(self._paid, dtype=np.int64)

    def run(self, told: OnProgress = silent, share_most: float = MENDED_MOST) -> bool:
        """False where there was so much to mend that it was given up."""
        trial, paid, most = self._trial, self._paid, share_most * len(self._paid) + MENDED_FEW
        while trial.tick < len(paid) and self._mended <= most:
            tick = trial.tick
            if tick % SAVED_EVERY == 0:
                self._saved[tick] = trial.saved()
                self._saved.pop(tick - SAVED_MOST, None)
                told(tick / len(paid))
            late_s = trial.step(paid[tick])
            if late_s > ROUNDING and not self._may_miss[tick]:
                self._mend(tick)
        return self._mended <= most

    def _mend(self, tick: int) -> None:
        tried = self._tried[tick]
        self._tried[tick] += 1
        changed = self._held(tick, tried) if tried < HOLDS_MOST else None
        # A stretch that cannot be mended is tried at its begin only.
        lost = tick > 0 and self._lost == tick - 1
        if changed is None and tried < TRIES_MOST and not lost:
            changed = self._added(tick, max(0, tried - HOLDS_MOST))
        if changed is None:
            self.missed += 1
            self._may_miss[tick] = True
            self._lost = tick
            return
        self._mended += 1
        back = changed // SAVED_EVERY * SAVED_EVERY
        for later in [each for each in self._saved if each > back]:
            del self._saved[later]
        self._trial.restored(self._saved[back])

    def _held(self, tick: int, tried: int) -> int | None:
        """Keep a worker that was given up while the late batch could have used it; the tick that changes first."""
        paid, reach = self._paid, self._reach
        for end in range(tick, max(0, tick - 2 * reach.batch), -1):
            if paid[end] < paid[end - 1]:
                for each in range(end, min(tick + 1, end + 1 + tried * max(1, reach.batch // 4))):
                    paid[each] += 1
                return end
        return None

    def _added(self, tick: int, tried: int) -> int | None:
        """Workers more, asked for early enough to serve before the miss; after some tries for longer, and more."""
        paid, reach = self._paid, self._reach
        serves, workers = max(1, reach.batch // 4) * 2 ** (tried // 3), 2 ** (tried // 2)
        begin = max(1, tick - SAVED_MOST + SAVED_EVERY, tick - reach.start - serves)
        fewer = [each for each in range(begin, tick + 1) if paid[each] < reach.most]
        for each in fewer:
            paid[each] = min(paid[each] + workers, reach.most)
        return fewer[0] if fewer else None


def batch_schedule(job: Job, task: Task, careful: Task, told: OnProgress = silent) -> Ints:
    """The cheapest schedule found for micro-batches: the fluid's with some slack, tried in the replay and mended.

    `careful` lets no backlog stand; it is planned where what is tighter cannot be mended.
    """
    assert job.oracle is not None
    assert job.oracle.trial is not None
    latency_s = job.objective.latency_s or 0.0
    batch = max(1, math.ceil(latency_s / 2 / job.tick_s))
    reach = Reach(math.ceil(careful.start), batch, task.most)
    may_miss = unavoidable(task) | _missed_by_all(job.oracle.trial(), task, batch)
    found: list[tuple[int, float, Ints]] = []
    for fluid in _fluids(job, task, careful):
        if fluid is careful and any(missed == 0 for missed, _, _ in found):
            break
        mending = Mending(job.oracle.trial(), schedule(fluid), reach, may_miss)
        if mending.run(told, math.inf if fluid is careful else MENDED_MOST):
            found.append((mending.missed, bill(task, mending.paid), mending.paid))
    return min(found, key=lambda each: each[:2])[2]


def mended_schedule(job: Job, task: Task, careful: Task, told: OnProgress = silent) -> Ints:
    """The fluid's schedule, mended where the replay misses: a plan looks at the ends of ticks, and a bound that is no
    whole number of ticks is missed between them (12 % of the time, at a bound of half a tick).
    """
    assert job.oracle is not None
    assert job.oracle.trial is not None
    assert task.within is not None
    may_miss = unavoidable(task) | _missed_by_all(job.oracle.trial(), task, 0)
    reach = Reach(math.ceil(careful.start), max(1, math.ceil(task.within)), task.most)
    mending = Mending(job.oracle.trial(), schedule(careful, lambda share: told(share / 2)), reach, may_miss)
    mending.run(lambda share: told((1 + share) / 2), math.inf)
    return mending.paid


def _missed_by_all(trial: Trial, task: Task, batch: int) -> Bools:
    """What all workers miss, and what lies within a batch of it: batches that begin at other times miss others."""
    missed = np.array([trial.step(workers) > ROUNDING for workers in full(task).tolist()])
    return np.asarray(maximum_filter1d(missed, 2 * batch + 1), dtype=np.bool_)


def _fluids(job: Job, task: Task, careful: Task) -> Iterator[Task]:
    assert job.oracle is not None
    latency_s, truth = job.objective.latency_s or 0.0, job.oracle.capacity or job.capacity
    fixed_s = np.array([0.0, *(truth.fixed_s(workers) for workers in range(1, len(task.capacity)))])
    share = np.maximum(1 - fixed_s / (BATCH_PART * latency_s), 0.0) * job.oracle.speed_least
    capacity = np.maximum.accumulate(task.capacity * share)
    # Batches begin when the trigger's clock strikes: what waits for that has no time left to wait for workers.
    slack_s = min(latency_s, max(0.0, 2 * (latency_s - (job.trigger_s or 0.0))))
    # Not in whole ticks, as a plan without trial needs it: in ticks of 60 s that alone cost 4 %.
    start = min(max(task.start, job.oracle.start_s[1] / job.tick_s), careful.start)
    for part in PARTS_OF_BOUND:
        yield replace(task, capacity=capacity, start=start, within=part * slack_s / job.tick_s)
    yield careful
