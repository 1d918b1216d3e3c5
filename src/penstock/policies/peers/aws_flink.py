"""Automatic scaling of Amazon Managed Service for Apache Flink."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import cpu_most, up


class AwsFlink:
    """Twice as many after 15 minutes of 75 % CPU, half after six hours below 10 %, never below the first number."""

    source: ClassVar[str] = "Amazon Managed Service for Apache Flink"
    is_peer: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})

    def __init__(  # noqa: PLR0913  its rules, which its users cannot set
        self,
        job: Job,
        upper: float = 0.75,
        up_after_s: float = 900.0,
        lower: float = 0.1,
        down_after_s: float = 21600.0,
        parallelism: int = 0,
    ) -> None:
        between("aws-flink:upper", upper, 0, 1)
        between("aws-flink:lower", lower, 0, upper)
        between("aws-flink:parallelism", parallelism, 0, 10_000)
        self._limits, self._upper, self._lower = job.limits, upper, lower
        self._up_s, self._down_s = up_after_s, down_after_s
        self._least = parallelism or job.workers_at_start
        self.memory_s = max(up_after_s, down_after_s)
        self._hot_s = self._cold_s = 0.0

    def decide(self, seen: Observation) -> Decision:
        cpu, asked = cpu_most(seen), len(seen.target.workers)
        self._hot_s = self._hot_s + seen.span_s if cpu >= self._upper else 0.0
        self._cold_s = self._cold_s + seen.span_s if cpu < self._lower else 0.0
        wanted, why = asked, f"CPU {cpu:.0%}"
        if self._hot_s >= self._up_s - 1e-6:
            wanted, why = 2 * asked, f"CPU at {self._upper:.0%} for {self._hot_s / 60:.0f} minutes"
        elif self._cold_s >= self._down_s - 1e-6:
            wanted, why = max(min(asked, self._least), up(asked / 2)), f"CPU below {self._lower:.0%} for hours"
        wanted = self._limits.clamp(max(1, wanted))
        if wanted != asked:
            self._hot_s = self._cold_s = 0.0
        return Decision(seen.target.resized(wanted), f"{why}: {wanted} workers", {"load": cpu})
