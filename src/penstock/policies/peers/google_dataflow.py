"""Google Dataflow's streaming autoscaling, as its older documentation describes it."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import Measured, Meter, up


class GoogleDataflow:
    """With a backlog and busy workers, as many as clear it in 150 s; without one, as many as bring the CPU to 75 %."""

    source: ClassVar[str] = "Google Dataflow, as documented"
    is_peer: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})
    needs_lag = True

    def __init__(  # noqa: PLR0913  its rules
        self,
        job: Job,
        cpu_target: float = 0.75,
        cpu_least: float = 0.2,
        backlog_s: float = 10.0,
        clear_s: float = 150.0,
        stable_s: float = 120.0,
    ) -> None:
        between("dataflow:cpu_target", cpu_target, 0.01, 1)
        between("dataflow:cpu_least", cpu_least, 0, 1)
        between("dataflow:clear_s", clear_s, 0.01)
        self._limits, self._target, self._least = job.limits, cpu_target, cpu_least
        self._backlog_s, self._clear_s, self._stable_s = backlog_s, clear_s, stable_s
        self.memory_s = stable_s
        self._meter = Meter()
        self._high_s = self._low_s = 0.0

    def decide(self, seen: Observation) -> Decision:
        measured = self._meter.note(seen)
        if measured is None or not seen.running.workers:
            return Decision(seen.target, "one reading tells no rate")
        cpu, lag = measured.busy, seen.backlog or 0.0
        waits_s = lag * measured.span_s / measured.processed if measured.processed else 0.0
        is_backlogged = waits_s > self._backlog_s or (lag > 0 and not measured.processed)
        is_high, is_low = is_backlogged and cpu > self._least, not is_backlogged and cpu < self._target
        self._high_s = self._high_s + seen.span_s if is_high else 0.0
        self._low_s = self._low_s + seen.span_s if is_low else 0.0
        wanted = self._wanted(seen, measured, lag)
        reason = f"{waits_s:.0f} s of backlog, CPU {cpu:.0%}: {wanted} workers"
        return Decision(seen.target.resized(wanted), reason, {"load": cpu, "backlog": lag})

    def _wanted(self, seen: Observation, measured: Measured, lag: float) -> int:
        asked, running = len(seen.target.workers), len(seen.running.workers)
        if self._high_s >= self._stable_s - 1e-6 and measured.true_rate:
            rate = measured.arrived / measured.span_s + lag / self._clear_s
            return max(asked, self._limits.clamp(up(rate / (measured.true_rate / running))))
        if self._low_s >= self._stable_s - 1e-6:
            return min(asked, self._limits.clamp(max(1, up(running * measured.busy / self._target))))
        return asked
