"""Dynamic allocation for Structured Streaming as it was proposed (SPARK-24815, pull request 42352, not merged)."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Batch, Observation
from penstock.policies.peers.measured import up
from penstock.policies.peers.spark_dynamic import PARTITIONS, SparkDynamic


class Spark24815(SparkDynamic):
    """As `spark-dynamic`, but counts the tasks of all stages of a batch, and gives up a share of the idle at a time."""

    source: ClassVar[str] = "SPARK-24815, pull request 42352"
    stages: ClassVar[int] = 2

    def __init__(  # noqa: PLR0913  what can be set is what the proposal sets
        self,
        job: Job,
        partitions: int = PARTITIONS,
        executor_idle_timeout_s: float = 60.0,
        executor_deallocation_ratio: float = 1.0,
        executor_deallocation_timeout_s: float | None = None,
        shuffle_tracking: bool = True,
    ) -> None:
        between("spark-24815:executor_deallocation_ratio", executor_deallocation_ratio, 0.001, 1)
        super().__init__(
            job, partitions, executor_idle_timeout_s=executor_idle_timeout_s, shuffle_tracking=shuffle_tracking
        )
        wait_s = executor_deallocation_timeout_s
        self._share, self._wait_s = executor_deallocation_ratio, executor_idle_timeout_s if wait_s is None else wait_s
        self.memory_s = self._wait_s
        self._gave_s: float | None = None

    def _fewer(self, seen: Observation, batch: Batch) -> Decision:
        asked = len(seen.target.workers)
        if self._gave_s is not None and seen.time_s < self._gave_s + self._wait_s - 1e-6:
            return Decision(seen.target, f"gave some up less than {self._wait_s:g} s ago")
        wanted = self._limits.clamp(asked - up(self._share * asked))
        if wanted != asked:
            self._gave_s = seen.time_s
        reason = f"no task for {batch.age_s:.0f} s: {self._share:.0%} of the idle go, {wanted} stay"
        return Decision(seen.target.resized(wanted), reason)
