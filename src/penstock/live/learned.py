"""How much workers can do where nobody measured it: learnt from the batches that run."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.core.loop import Step

FORGET = 0.2
# A batch with less work than this beside its fixed time tells little, and counts for less.
WORK_S = 0.5


class Learned:
    """A capacity model that follows the job: as many rows a second of work for each worker as its batches show.

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
        self._fixed_s = 0.0
        self._crew: frozenset[str] = frozenset()

    def note(self, rows: float, work_s: float, fixed_s: float, crew: Collection[str]) -> None:
        """Take in a batch that ended on these workers."""
        is_cold = self.per_worker > 0 and not self._crew.issuperset(crew)
        self._crew = frozenset(crew)
        if is_cold or not crew or work_s <= 0 or rows <= 0:
            return
        share = FORGET * min(1.0, work_s / WORK_S) if self.per_worker else 1.0
        self.per_worker += share * (rows / work_s / len(crew) - self.per_worker)
        self._fixed_s += share * (fixed_s - self._fixed_s)

    def remember(self, past: Iterable[Step]) -> None:
        """What an earlier controller saw."""
        processed = -1.0
        for seen in (step.seen for step in past):
            batch = seen.batch
            if batch is not None and seen.processed > processed:
                names = [worker.name for worker in seen.running.workers]
                self.note(batch.rows, batch.execution_s - batch.fixed_s, batch.fixed_s, names)
            processed = seen.processed

    def capacity(self, workers: float) -> float:
        return self.per_worker * workers

    def fixed_s(self, workers: float) -> float:  # noqa: ARG002
        return self._fixed_s

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        share = 1.0 if trigger_s is None else max(0.0, 1.0 - self._fixed_s / trigger_s)
        return self.capacity(workers) * share
