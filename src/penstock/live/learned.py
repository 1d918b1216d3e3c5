"""How much workers can do where nobody measured it: learnt from the batches that run."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.core.loop import Step

FORGET = 0.2
# A batch with less work than this beside its fixed time tells little, and counts for less.
WORK_S = 0.5
# Batches that differ in size by this much, as a standard deviation, tell what is work on rows and what tasks as such;
# the latter are at most this share of the work.
APART, TASKS_MOST = 0.3, 0.8


class Learned:
    """A capacity model that follows the job: as many rows a second of work for each worker as its batches show.

    Small batches are mostly tasks as such (live, 120 rows took 6 s, 2,800 rows 20 s): a line through them tells both.

    >>> model = Learned()
    >>> model.note(rows=8000.0, work_s=4.0, fixed_s=1.0, crew=("w1", "w2"))
    >>> model.capacity(4), model.sustainable(4, trigger_s=10.0)
    (4000.0, 3600.0)

    A batch that waits for a new worker's first task tells nothing of its workers:

    >>> model.note(rows=8000.0, work_s=40.0, fixed_s=1.0, crew=("w1", "w2", "w3"))
    >>> model.capacity(4)
    4000.0
    """

    def __init__(self) -> None:
        self.per_worker = 0.0
        self._fixed_s = self._tasks_s = 0.0
        self._rows = self._work_s = self._variance = self._covariance = 0.0  # rows of one worker
        self._crew: frozenset[str] = frozenset()

    def note(self, rows: float, work_s: float, fixed_s: float, crew: Collection[str]) -> None:
        """Take in a batch that ended on these workers."""
        is_cold = self.per_worker > 0 and not self._crew.issuperset(crew)
        self._crew = frozenset(crew)
        if is_cold or not crew or work_s <= 0 or rows <= 0:
            return
        share = FORGET * min(1.0, work_s / WORK_S) if self.per_worker else 1.0
        self._fixed_s += share * (fixed_s - self._fixed_s)
        more, longer_s = rows / len(crew) - self._rows, work_s - self._work_s
        self._rows += share * more
        self._work_s += share * longer_s
        self._variance = (1 - share) * (self._variance + share * more * more)
        self._covariance = (1 - share) * (self._covariance + share * more * longer_s)
        # What sizes far apart have told is kept while they are alike.
        if self._variance > (APART * self._rows) ** 2:
            self._tasks_s = max(0.0, self._work_s - self._covariance / self._variance * self._rows)
        self.per_worker = self._rows / (self._work_s - min(self._tasks_s, TASKS_MOST * self._work_s))

    def remember(self, past: Iterable[Step]) -> None:
        """What an earlier controller saw."""
        processed = -1.0
        for seen in (step.seen for step in past):
            batch = seen.batch
            if batch is not None and seen.processed > processed:
                ended_s = seen.time_s - batch.age_s
                crew = [name for name, worker in seen.workers.items() if worker.paid_since_s < ended_s]
                self.note(batch.rows, batch.execution_s - batch.fixed_s, batch.fixed_s, crew)
            processed = seen.processed

    def capacity(self, workers: float) -> float:
        return self.per_worker * workers

    def fixed_s(self, workers: float) -> float:  # noqa: ARG002
        return self._fixed_s + self._tasks_s

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        share = 1.0 if trigger_s is None else max(0.0, 1.0 - self.fixed_s(workers) / trigger_s)
        return self.capacity(workers) * share
