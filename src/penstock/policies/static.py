"""The same number of workers all the time: for the peak, for the average, or as told (paper 1 §6)."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput
from penstock.core.job import Job, Oracle
from penstock.core.loop import Decision
from penstock.core.observation import Observation


class Static:
    """A fixed number of workers."""

    source: ClassVar[str] = "what most jobs run with"
    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self, job: Job, workers: int) -> None:
        low, high = job.limits.workers_min, job.limits.workers_max
        if not low <= workers <= high:
            raise BadInput(f"static:workers={workers}: the limits allow from {low} to {high} workers")
        self._workers = workers
        self._reason = f"always {self._workers} workers"

    def decide(self, seen: Observation) -> Decision:
        return Decision(seen.target.resized(self._workers), self._reason)


class StaticPeak(Static):
    """As many workers as the busiest interval needs; knows it beforehand."""

    source: ClassVar[str] = "paper 1 §6"

    def __init__(self, job: Job) -> None:
        peak = _oracle(job, "static-peak").peak(job.tick_s)
        super().__init__(job, job.workers_for(peak))
        self._reason = f"always {self._workers} workers, for the peak of {peak:.4g}/s"


class StaticAverage(Static):
    """As many workers as the average rate needs; knows it beforehand."""

    source: ClassVar[str] = "paper 1 §6"

    def __init__(self, job: Job) -> None:
        mean = _oracle(job, "static-average").mean(job.tick_s)
        super().__init__(job, job.workers_for(mean))
        self._reason = f"always {self._workers} workers, for the average of {mean:.4g}/s"


def _oracle(job: Job, name: str) -> Oracle:
    if job.oracle is None:
        raise BadInput(f"{name} knows the future only in a replay: on a live job use static:workers=N")
    return job.oracle
