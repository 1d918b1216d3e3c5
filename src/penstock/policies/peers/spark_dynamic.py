"""Spark's dynamic allocation: executors for the tasks that wait, and none given up that ran one of late."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Batch, Observation
from penstock.policies.peers.measured import up

PARTITIONS = 200
"""Tasks of a stage: `spark.sql.shuffle.partitions`."""


class SparkDynamic:
    """Executors for tasks that wait: 1, 2, 4, 8 … a second. One is given up after 60 s without a task, or never."""

    source: ClassVar[str] = "spark.dynamicAllocation"
    is_peer: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0
    stages: ClassVar[int] = 1

    def __init__(  # noqa: PLR0913  what can be set is what spark.dynamicAllocation sets
        self,
        job: Job,
        partitions: int = PARTITIONS,
        executor_allocation_ratio: float = 1.0,
        scheduler_backlog_timeout_s: float = 1.0,
        executor_idle_timeout_s: float = 60.0,
        shuffle_tracking: bool = True,
    ) -> None:
        between("spark-dynamic:partitions", partitions, 1, 1_000_000)
        between("spark-dynamic:executor_allocation_ratio", executor_allocation_ratio, 0.01, 1)
        between("spark-dynamic:scheduler_backlog_timeout_s", scheduler_backlog_timeout_s, 0.001)
        self._limits, self._tasks = job.limits, partitions * self.stages
        self._slots = max(1, int(job.kinds[0].cores))
        self._ratio, self._timeout_s = executor_allocation_ratio, scheduler_backlog_timeout_s
        self._idle_s, self._tracks = executor_idle_timeout_s, shuffle_tracking
        self._number: int | None = None

    @property
    def _needed(self) -> int:
        """Executors for all tasks of a batch, as it begins."""
        return max(1, up(self._tasks * self._ratio / self._slots))

    def decide(self, seen: Observation) -> Decision:
        asked, batch = len(seen.target.workers), seen.batch
        if batch is None and seen.in_work is None:
            # A stream without batches is a stage that never ends: its tasks want their executors for good.
            wanted = self._limits.clamp(self._needed)
            return Decision(seen.target.resized(wanted), f"{self._tasks} tasks that never end take {wanted}")
        if batch is not None and self._gives_up(seen, batch):
            return self._fewer(seen, batch)
        wanted, running = asked, len(seen.running.workers)
        for _ in range(self._batches(batch)):
            wanted = self._after(wanted, running, batch.execution_s if batch else 0.0)
        if seen.in_work is not None:
            lasts_s = seen.time_s - seen.in_work.begun_s
            wanted = self._after(wanted, running, min(seen.span_s, lasts_s), goes_on=lasts_s > seen.span_s)
        wanted = self._limits.clamp(wanted)
        reason = f"{self._tasks} tasks a batch on {running} executors: {wanted} asked for"
        return Decision(seen.target.resized(wanted), reason, {"tasks": float(self._tasks)})

    def _batches(self, batch: Batch | None) -> int:
        """Batches that ended since the last time; each asks anew."""
        if batch is None or batch.number is None:
            return 1
        before, self._number = self._number, batch.number
        return min(1000, batch.number - before) if before is not None else 1

    def _after(self, asked: int, running: int, execution_s: float, goes_on: bool = False) -> int:
        """What is asked for after one batch. Its tasks wait until the last of them has found a slot.

        Between two batches no task waits: the target falls to the least, though who is there stays. The first step up
        from there is larger than what was to be added, so that the second adds 1 again and not 2.
        """
        waits_s = execution_s * max(0.0, 1 - running * self._slots / self._tasks)
        add, there, target = 1, max(asked, running), asked if goes_on else self._limits.workers_min
        for _ in range(int(waits_s / self._timeout_s + 1e-9)):
            target, before = min(self._needed, max(target, there) + add), target
            if target <= before:
                break
            add = add * 2 if target - before == add else 1
        return max(asked, target)

    def _gives_up(self, seen: Observation, batch: Batch) -> bool:
        """Every task resets the clock of the executor that ran it: with a batch in less than 60 s, none is ever idle.

        Those that hold shuffle files are kept for ever (`shuffleTracking.timeout`).
        """
        return not self._tracks and seen.in_work is None and batch.age_s >= self._idle_s

    def _fewer(self, seen: Observation, batch: Batch) -> Decision:
        wanted = self._limits.clamp(0)
        idle = f"no task for {batch.age_s:.0f} s: all that are idle go"
        return Decision(seen.target.resized(wanted), f"{idle}, {wanted} stay")
