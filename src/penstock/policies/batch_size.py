"""Back-pressure on a cluster of fixed size: the rows of each micro-batch follow the workers and the age of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from penstock.core.allocation import Allocation, BatchRule, Knob
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.models.learned import Learned
from penstock.models.tracking import TrackedCapacity

# Numbers that differ by less are no decision.
ALIKE = 0.05
# A late job gets short batches, but none of which the fixed time would take more than a quarter: with 5.7 s of fixed
# time, batches of 10 s served less than came, and the job never caught up.
SHORTEST_S, LONGEST_S, WORTH = 10.0, 60.0, 4.0


class BatchSize:
    """Leaves the workers as they are. A late job gets short batches, so that no row waits for too many others."""

    source: ClassVar[str] = "Penstock's own"
    needs = frozenset({Knob.BATCH_SIZE})
    memory_s = 3600.0

    def __init__(self, job: Job) -> None:
        if not job.objective.latency_s:
            raise BadInput("policy batch-size needs a bound on latency: give an objective such as latency<=120s")
        self._job, self._tracked = job, TrackedCapacity()

    def decide(self, seen: Observation) -> Decision:
        self._tracked.note(seen, self._job.capacity)
        target = with_batches(seen, seen.target, self._job, self._tracked.ratio)
        rule = target.batch
        if rule is None:
            return Decision(target, "no batch has ended yet")
        reason = f"{rule.rows_per_worker_s:.4g} rows/s a worker, {rule.fixed_s:.2g} s before the first row of a batch"
        return Decision(target, reason, {"capacity ratio": self._tracked.ratio})


def with_batches(seen: Observation, target: Allocation, job: Job, ratio: float) -> Allocation:
    """The target with a rule for its batches; `ratio` is what workers really do of what the model says."""
    capacity, workers, old = job.capacity, max(1, len(seen.running.workers)), target.batch
    if isinstance(capacity, (Learned, AlternateCapacity)) and not capacity.is_known:
        return target
    rate, fixed_s = capacity.capacity(workers) * ratio / workers, capacity.fixed_s(workers)
    shortest_s = min(LONGEST_S, max(SHORTEST_S, WORTH * fixed_s))
    rule = BatchRule(job.objective.latency_s or 0.0, fixed_s, rate, shortest_s, LONGEST_S)
    return target if old is not None and _alike(old, rule) else replace(target, batch=rule)


def _alike(old: BatchRule, new: BatchRule) -> bool:
    fixed = abs(new.fixed_s - old.fixed_s) <= ALIKE * old.fixed_s + 0.01
    return fixed and abs(new.rows_per_worker_s - old.rows_per_worker_s) <= ALIKE * old.rows_per_worker_s
