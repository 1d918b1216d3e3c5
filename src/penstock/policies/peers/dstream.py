"""Dynamic allocation of Spark's older DStreams, and the PID controller that limits their rate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from penstock.core.allocation import Allocation, BatchRule, Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Batch, Observation
from penstock.policies.peers.measured import Meter

# spark.streaming.backpressure.pid.*
PROPORTIONAL, INTEGRAL, RATE_LEAST = 1.0, 0.2, 100.0


class DStream:
    """Every minute: batches that take 90 % of their interval want more, those of 30 % one less; a PID limits rows."""

    source: ClassVar[str] = "spark.streaming.dynamicAllocation"
    is_peer: ClassVar[bool] = True

    def __init__(
        self,
        job: Job,
        scaling_interval_s: float = 60.0,
        scaling_up_ratio: float = 0.9,
        scaling_down_ratio: float = 0.3,
        backpressure: bool = True,
    ) -> None:
        between("dstream:scaling_interval_s", scaling_interval_s, 0.01)
        between("dstream:scaling_down_ratio", scaling_down_ratio, 0, scaling_up_ratio)
        self._limits, self._every_s = job.limits, scaling_interval_s
        self._up, self._down = scaling_up_ratio, scaling_down_ratio
        self._pid = Pid() if backpressure and Knob.BATCH_SIZE in job.knobs else None
        self.needs = frozenset({Knob.WORKERS, Knob.BATCH_SIZE} if self._pid else {Knob.WORKERS})
        self.memory_s = scaling_interval_s
        self._meter = Meter()
        self._ratios: list[float] = []
        self._since_s = 0.0
        self._number: int | None = None

    def decide(self, seen: Observation) -> Decision:
        measured, batch = self._meter.note(seen), seen.batch
        target = self._paced(seen)
        self._since_s += seen.span_s
        if batch is not None and batch.trigger_s > 0:
            is_new = batch.number is None or batch.number != self._number
            self._ratios += [batch.execution_s / batch.trigger_s] if is_new else []
            self._number = batch.number
        elif measured is not None:
            self._ratios.append(measured.utilisation)
        if self._since_s < self._every_s - 1e-6 or not self._ratios:
            return Decision(target, f"decides every {self._every_s:g} s, by the batches that ended")
        ratio = sum(self._ratios) / len(self._ratios)
        self._ratios, self._since_s = [], 0.0
        wanted, asked = self._wanted(ratio, len(seen.running.workers)), len(seen.target.workers)
        wanted = asked if wanted is None else self._limits.clamp(wanted)
        reason = f"a batch takes {ratio:.0%} of its interval: {wanted} workers"
        return Decision(target.resized(wanted), reason, {"ratio": ratio})

    def _wanted(self, ratio: float, running: int) -> int | None:
        """Counted from the executors that run, as Spark counts them; None: as many as were asked for."""
        if ratio >= self._up:
            return running + max(1, math.floor(ratio + 0.5))  # Scala rounds halves up
        return max(1, running - 1) if ratio <= self._down else None

    def _paced(self, seen: Observation) -> Allocation:
        rate = self._pid.note(seen.batch) if self._pid and seen.batch is not None else None
        if rate is None or seen.batch is None:
            return seen.target
        interval_s, workers = max(1e-3, seen.batch.trigger_s), max(1, len(seen.running.workers))
        # Of equal shortest and longest time, and no fixed one, the rule is a plain rate limit.
        rule = BatchRule(0.0, 0.0, rate / workers, interval_s, interval_s)
        return seen.target if rule == seen.target.batch else replace(seen.target, batch=rule)


class Pid:
    """What the next batch may read, from how fast the last was (no derivative, as by default)."""

    def __init__(self) -> None:
        self._rate: float | None = None
        self._number: int | None = None
        self._is_paced = False

    def note(self, batch: Batch) -> float | None:
        """Rows per second after this batch; None before the second one."""
        if batch.execution_s <= 0 or batch.rows <= 0 or (batch.number is not None and batch.number == self._number):
            return self._rate if self._is_paced else None
        self._number = batch.number
        did = batch.rows / batch.execution_s
        if self._rate is None:
            self._rate = did
            return None
        self._is_paced = True
        late_s = max(0.0, batch.execution_s - batch.trigger_s)
        history = late_s * did / batch.trigger_s if batch.trigger_s > 0 else 0.0
        self._rate = max(RATE_LEAST, self._rate - PROPORTIONAL * (self._rate - did) - INTEGRAL * history)
        return self._rate
