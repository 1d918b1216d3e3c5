"""Elastic-Scaling, a listener for Structured Streaming (Amadeus)."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import Meter, up

MEMORY = 0.6
# What was seen longer ago weighs less than 0.6¹² = 0.2 %.
BATCHES_MOST = 12


class ElasticScaling:
    """The moving mean of batches by their interval: above 1 or below 0.75, workers in proportion, 10 at most."""

    source: ClassVar[str] = "Elastic-Scaling (Amadeus)"
    is_peer: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})

    def __init__(self, job: Job, upper: float = 1.0, lower: float = 0.75, executors_max: int = 10) -> None:
        between("elastic-scaling:lower", lower, 0, upper)
        between("elastic-scaling:executors_max", executors_max, 1, 10_000)
        self._limits, self._upper, self._lower, self._most = job.limits, upper, lower, executors_max
        self.memory_s = BATCHES_MOST * max(job.tick_s, job.trigger_s or 0.0)
        self._sum = self._weight = 1.0
        self._meter = Meter()
        self._number: int | None = None

    def decide(self, seen: Observation) -> Decision:
        ended = self._note(seen)
        mean, asked, running = self._sum / self._weight, len(seen.target.workers), len(seen.running.workers)
        signals = {"ratio": mean, "upper": self._upper, "lower": self._lower}
        if not ended:
            return Decision(seen.target, f"decides when a batch has ended: {asked} stay", signals)
        if running != asked:
            return Decision(seen.target, "the cluster is being resized", signals)
        if self._lower <= mean <= self._upper:
            return Decision(seen.target, f"batches take {mean:.0%} of their interval: {asked} stay", signals)
        wanted = self._limits.clamp(min(self._most, max(1, up(asked * mean))))
        return Decision(seen.target.resized(wanted), f"batches take {mean:.0%} of their interval: {wanted}", signals)

    def _note(self, seen: Observation) -> int:
        """Batches that ended. The mean is not begun anew after a change: it still holds what fewer or more took."""
        measured, batch = self._meter.note(seen), seen.batch
        if batch is None or batch.trigger_s <= 0:
            used, times = (measured.utilisation, 1) if measured is not None else (0.0, 0)
        else:
            before, self._number = self._number, batch.number
            ended = 1 if before is None or batch.number is None else batch.number - before
            used, times = batch.execution_s / batch.trigger_s, min(BATCHES_MOST, ended)
        for _ in range(times):
            self._sum, self._weight = MEMORY * self._sum + used, MEMORY * self._weight + 1
        return times
