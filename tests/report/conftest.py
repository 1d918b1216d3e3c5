"""A small plant and a flapping policy: enough of a run to draw, without the simulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.core.allocation import Allocation
from penstock.core.journal import Header, JournalWriter
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Observation, WorkerTable
from penstock.core.score import Scorer
from penstock.runs.comparison import Run
from penstock.runs.run_curves import Curves

EACH = 100.0
"""Events per second that a worker does."""


@dataclass(frozen=True)
class Made:
    """How to make a run: steps of `span_s`, a rate by time, workers by rate."""

    count: int = 300
    span_s: float = 60.0
    policy: str = "steady"
    margin: float = 1.3
    flap_every: int = 0
    gap_after: int | None = None
    reason: str = "rate {rate:.0f}/s needs {workers} workers of 100/s"
    signals: bool = False
    origin_s: float | None = 804_556_800.0
    objective: Objective = Objective(latency_s=120.0)

    def header(self) -> Header:
        facts = {"trace": "made up", "capacity": "100/s a worker", "start": "2 min"}
        price = Price(0.10)
        return Header(
            "orders", self.policy, Limits(1, 32), self.objective, price, self.span_s, 7, self.origin_s, {}, facts
        )

    def rate(self, step: int) -> float:
        day = math.sin(2 * math.pi * step * self.span_s / 86_400.0 - 1.5)
        burst = 900.0 if step % 4000 in range(1200, 1230) else 0.0
        return 900.0 + 700.0 * day + 60.0 * math.sin(step * 1.7) + burst

    def steps(self) -> Iterator[Step]:
        """Workers arrive one step after they were asked for; what cannot be done waits."""
        running = target = Allocation.of(2)
        arrived = processed = late_s = 0.0
        for step in range(self.count):
            rate, capacity = self.rate(step), EACH * len(running.workers)
            arrived += rate * self.span_s
            done = min(arrived - processed, capacity * self.span_s)
            processed += done
            backlog = arrived - processed
            if self.gap_after is not None and step >= self.gap_after:
                late_s = 40 * self.span_s
            seen = Observation(
                time_s=(step + 1) * self.span_s + late_s,
                span_s=self.span_s,
                arrived=arrived,
                processed=processed,
                delivered=processed,
                deliverable=arrived,
                input_rate=rate,
                backlog=backlog,
                latency_s=0.8 + backlog / max(capacity, 1.0),
                capacity=capacity,
                running=running,
                target=target,
                workers=WorkerTable(
                    tuple(worker.name for worker in running.workers),
                    {"cpu": done / (capacity * self.span_s), "memory_mb": 512.0},
                ),
            )
            running = target
            decision = self._decision(seen, step)
            target = decision.target
            yield Step(seen, decision, target)

    def _decision(self, seen: Observation, step: int) -> Decision:
        wanted = math.ceil(self.margin * seen.input_rate / EACH + 0.2 * (seen.backlog or 0.0) / EACH / self.span_s)
        if self.flap_every and step % self.flap_every == 0:
            wanted += 3
        current = len(seen.target.workers)
        # A dead band of one worker, so that the steady run does not follow each wiggle.
        workers = current if wanted in (current, current - 1) and not self.flap_every else min(32, max(1, wanted))
        signals = {"raw rate": seen.input_rate, "filtered rate": 0.9 * seen.input_rate} if self.signals else {}
        reason = self.reason.replace("{rate:.0f}", f"{seen.input_rate:.0f}").replace("{workers}", str(workers))
        return Decision(seen.target.resized(workers), reason, signals)

    def run(self) -> Run:
        header = self.header()
        scorer, curves = Scorer(header.objective, header.price), Curves(header.objective)
        for step in self.steps():
            scorer.add(step)
            curves.add(step)
        return Run(header, scorer.result(), curves)

    def journal(self, path: Path) -> Path:
        with JournalWriter.at(path, self.header()) as writer:
            for step in self.steps():
                writer.write(step)
        return path


@pytest.fixture(scope="session")
def made() -> Callable[..., Made]:
    """`made(count=30).run()`: a run of 30 steps."""
    return Made
