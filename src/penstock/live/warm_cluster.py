"""Executors that are warm, and fewer of them with each count: where the meter takes its samples."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.core.errors import ExternalError
from penstock.live.batches import Split
from penstock.live.cluster import Cluster
from penstock.live.executors import kill, request, task_seconds, wait_for
from penstock.live.feed import BatchPlan
from penstock.live.meter_plan import COOL_S, WARM_CPU_S, MeterPlan
from penstock.live.sampler import Bench, Sample, sample
from penstock.models.samples import NOT_SETTLED

LIFTED_CORES = 1.0  # a JVM that starts on a quarter of a core takes a minute, and still compiles after 150 s
WARM_ROWS = 1_000
LONG_S = 2.0
WARM_BATCHES = 10  # of a query: a topic must be filled with all of them
EXECUTORS_S = 600.0  # 12 to 18 s on a quarter of a core that nobody else wants
PILOT_S = 90.0
FIXED_S = 1.0  # what a batch takes before its first row on a quarter of a core, 0.9 to 1.8 s; a first guess
HELPED_BY_REPEATING = {"source ran dry", "lost an executor", NOT_SETTLED}

OnProgress = Callable[[float, str], None]


@dataclass(slots=True)
class Pace:
    """Tells how far it has come, by the time that it should take."""

    told: OnProgress
    total_s: float
    doing: str = "starting"
    begun: float = field(default_factory=time.monotonic)

    def tell(self) -> None:
        self.told(min(0.99, (time.monotonic() - self.begun) / self.total_s), self.doing)


@dataclass(slots=True)
class WarmCluster:
    """A cluster, its session and a source, on which counts of workers are measured."""

    plan: MeterPlan
    bench: Bench
    cluster: Cluster | None
    pace: Pace
    guess: Split = field(default_factory=lambda: Split(FIXED_S, 10_000.0))
    """Of one worker."""

    def warm(self) -> None:
        """Let executors compile what they run: on whole cores where their quota is ours to lift."""
        workers = len(task_seconds(self.bench.spark))
        lifted = min(LIFTED_CORES, (os.cpu_count() or 1) / workers) if self.cluster else 1.0
        self.pace.doing = f"warming {workers} workers"
        self._limit(LIFTED_CORES)
        rows = self._grown_while_warming(workers, self.plan.warm_cpu_s / lifted)
        self._limit(self.plan.cores)
        slowed = min(1.0, self.plan.cores / lifted) if self.cluster and self.cluster.is_limited else 1.0
        self.guess = self._pilot(round(2 * rows * slowed), workers)

    def _grown_while_warming(self, workers: int, warm_s: float) -> int:
        """Rows of batches that take 2 s when warm: short ones leave the inner loops uncompiled.

        Cold batches take ten times as long, so the size is judged again after every few.
        """
        rows, begun, before_s = WARM_ROWS * workers, time.monotonic(), 0.0
        while (spent_s := time.monotonic() - begun) < 2.5 * warm_s:
            batches = self.bench.run(self._helping(rows, workers), lambda seen: len(seen) >= 4, WARM_CPU_S)
            if not batches:
                rows = max(workers, rows // 8)
                continue
            quickest_s = min(batch.seconds for batch in batches)
            if quickest_s < 0.8 * LONG_S:
                rows, before_s = round(rows * min(10.0, LONG_S / quickest_s * 1.5)), 0.0
            elif spent_s > warm_s and quickest_s > 0.95 * before_s > 0:
                break  # no faster than a round ago
            else:
                before_s = quickest_s
        return rows

    def _run_for(self, seconds: float, rows: int, workers: int) -> None:
        """Keep executors busy for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.bench.run(self._helping(rows, workers), lambda _: time.monotonic() > deadline, WARM_CPU_S)

    def _pilot(self, rows: int, workers: int) -> Split:
        """A rough idea of one worker, from a few long batches on the quota that is measured."""
        self.pace.doing = "first look"
        batches = self.bench.run(self._helping(rows, workers), lambda seen: len(seen) >= 3, PILOT_S)
        if not batches:
            raise ExternalError(f"no batch of {rows:,} rows ended within {PILOT_S:.0f} s: is the machine busy?")
        seconds = sorted(batch.seconds for batch in batches)[len(batches) // 2]
        return Split(FIXED_S, batches[-1].rows / max(seconds - FIXED_S, seconds / 2) / workers)

    def _helping(self, rows: int, workers: int) -> BatchPlan:
        return BatchPlan(rows, WARM_BATCHES, self.plan.partitions_for(workers))

    def shrink(self, workers: int) -> None:
        """End executors until so many are left, the youngest first."""
        there = sorted(task_seconds(self.bench.spark), key=int)
        kill(self.bench.spark, there[workers:])
        # A kill lowers what Spark asks the cluster for, from 0 where nothing was asked; a lost one must come back.
        request(self.bench.spark, workers)
        wait_for(self.bench.spark, workers, EXECUTORS_S)

    def sampled(self, workers: int) -> dict[str, Any]:
        """A sample as it goes to disk; one that went wrong in a way that may pass is taken once more."""
        taken = self._sample(workers)
        if HELPED_BY_REPEATING & set(taken.flags) and not self.plan.quick:
            self.shrink(workers)
            rows = round(LONG_S * self.guess.rows_per_s * workers)
            self._run_for(WARM_CPU_S / 3, rows, workers)  # an executor that was lost has come back cold
            taken = self._sample(workers)
        if taken.split:
            self.guess = Split(taken.split.fixed_s, taken.split.rows_per_s / workers)
        # The speed of other machines is not to be seen from here, so there nothing is corrected.
        corrected = taken.corrected if self.cluster else None
        return self._about(workers) | {
            "rows_per_s": taken.split and taken.split.rows_per_s,
            "fixed_s": taken.split and taken.split.fixed_s,
            "flags": ", ".join(taken.flags),
            "speed": taken.speed if self.cluster else None,
            "rows_per_s_corrected": corrected and corrected.rows_per_s,
            "fixed_s_corrected": corrected and corrected.fixed_s,
        }

    def _about(self, workers: int) -> dict[str, Any]:
        return {
            "source": self.bench.feed.kind,
            "workers": workers,
            "bytes_per_row": self.bench.feed.bytes_per_row,
            "cores": self.plan.cores,
            "partitions": self.plan.partitions,
            "partitions_per_worker": None if self.plan.partitions else float(self.plan.partitions_per_worker),
            "limited": self.cluster.is_limited if self.cluster else None,
        }

    def _sample(self, workers: int) -> Sample:
        guess = Split(self.guess.fixed_s, self.guess.rows_per_s * workers)
        found = sample(self.bench, self.plan.sampling, self.plan.partitions_for(workers), guess)
        if not self.plan.quick:
            time.sleep(COOL_S)
        return found

    def _limit(self, cores: float) -> None:
        if self.cluster:
            self.cluster.set_cores(cores)
