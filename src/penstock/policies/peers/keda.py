"""KEDA's Kafka scaler: the HPA on lag."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import up
from penstock.policies.peers.replicas import Behavior, Replicas


class Keda:
    """A worker for every `lag_threshold` events that wait; none after `cooldown_period_s` without any."""

    source: ClassVar[str] = "KEDA, Apache Kafka scaler"
    is_peer: ClassVar[bool] = True
    counts_events: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})
    needs_lag = True

    def __init__(  # noqa: PLR0913  what can be set is what a ScaledObject sets
        self,
        job: Job,
        lag_threshold: float = 10.0,
        partitions: int = 0,
        max_replica_count: int = 100,
        cooldown_period_s: float = 300.0,
        tolerance: float = 0.1,
        scale_down_stabilization_s: float = 300.0,
    ) -> None:
        between("keda:lag_threshold", lag_threshold, 1e-6)
        between("keda:partitions", partitions, 0)
        between("keda:max_replica_count", max_replica_count, 1)
        between("keda:tolerance", tolerance, 0, 1)
        self._limits, self._threshold, self._tolerance = job.limits, lag_threshold, tolerance
        self._partitions = partitions
        self._cooldown_s = cooldown_period_s
        most = max(job.limits.workers_min, min(max_replica_count, job.limits.workers_max))
        limits = replace(job.limits, workers_max=most)
        self._replicas = Replicas(Behavior(scale_down_s=scale_down_stabilization_s), limits)
        self.memory_s = max(self._replicas.memory_s, cooldown_period_s)
        self._idle_s = 0.0
        self._lag: float | None = None

    def decide(self, seen: Observation) -> Decision:
        lag = seen.backlog or 0.0
        before, self._lag = lag if self._lag is None else self._lag, lag
        self._idle_s = 0.0 if lag > 0 else self._idle_s + seen.span_s
        asked = len(seen.target.workers)
        if self._limits.workers_min == 0 and (asked == 0 or self._idle_s >= self._cooldown_s):
            wanted = min(1, self._limits.workers_max) if lag > 0 else 0
            return Decision(seen.target.resized(wanted), f"lag {lag:.4g}: active or not", {"lag": lag})
        wanted = self._replicas.follow(seen, lambda asked, part: self._wish(before + part * (lag - before), asked))
        reason = f"lag {lag:.4g} at {self._threshold:g} each: {self._wish(lag, asked)} wanted, {wanted} after windows"
        return Decision(seen.target.resized(wanted), reason, {"lag": lag})

    def _wish(self, lag: float, asked: int) -> int:
        """⌈lag / threshold⌉, no more than there are partitions; not within the tolerance."""
        if self._partitions and lag // self._threshold > self._partitions:
            lag = self._partitions * self._threshold
        ratio = lag / (self._threshold * max(1, asked))
        return asked if abs(ratio - 1) <= self._tolerance + 1e-9 else up(lag / self._threshold)
