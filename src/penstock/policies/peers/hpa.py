"""Kubernetes' Horizontal Pod Autoscaler (autoscaling/v2) on CPU."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import up
from penstock.policies.peers.replicas import Behavior, Replicas


class Hpa:
    """As many workers as bring their mean CPU to the target; not within the tolerance; down after 5 minutes."""

    source: ClassVar[str] = "Kubernetes, autoscaling/v2"
    is_peer: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})

    def __init__(
        self,
        job: Job,
        target: float = 0.8,
        tolerance: float = 0.1,
        scale_down_stabilization_s: float = 300.0,
        scale_up_stabilization_s: float = 0.0,
    ) -> None:
        between("hpa:target", target, 0.01, 1)
        between("hpa:tolerance", tolerance, 0, 1)
        self._target, self._tolerance = target, tolerance
        self._replicas = Replicas(Behavior(scale_up_stabilization_s, scale_down_stabilization_s), job.limits)
        self.memory_s = self._replicas.memory_s

    def decide(self, seen: Observation) -> Decision:
        ready, cpu = len(seen.running.workers), seen.workers.mean("cpu")
        wanted = self._replicas.follow(seen, lambda asked, _: self._wish(cpu, ready, asked))
        wish = self._wish(cpu, ready, len(seen.target.workers))
        reason = f"CPU {cpu:.0%} of {ready} for {self._target:.0%}: {wish} wanted, {wanted} after windows and limits"
        return Decision(seen.target.resized(wanted), reason, {"load": cpu, "load to keep": self._target})

    def _wish(self, cpu: float, ready: int, asked: int) -> int:
        """⌈ratio · ready⌉; to grow, those that do not run yet count as idle, so that no start is counted twice."""
        ratio, unready = cpu / self._target, max(0, asked - ready)
        if not ready:
            return asked
        if ratio <= 1 or not unready:
            return asked if abs(ratio - 1) <= self._tolerance + 1e-9 else up(ratio * ready)
        calm = ratio * ready / (ready + unready)
        if calm <= 1 + self._tolerance + 1e-9:
            return asked
        return max(asked, up(calm * (ready + unready)))
