"""Steps per second of a replay with 64 workers: scored in memory, and with the journal written."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from penstock.core.journal import Journal, JournalWriter
from penstock.core.loop import Step
from penstock.core.score import Scorer, score
from penstock.policies.registry import Named
from penstock.runs.compare import header_of
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, NoiseSpec, WorkerSpec
from penstock.sim.workloads import Jitter, Sine, make_load

DAYS = 20
WORLDS = {
    "plain": {},
    "noisy": {"noise": NoiseSpec(cpu=0.05, memory=0.02, rate=0.02, correlation_s=300.0)},
    "micro-batches": {"batch": BatchSpec(trigger_s=10.0)},
}
# Which policy in which world, and the steps per second that are asked for, scored in memory.
ROWS = (
    ("plain", "threshold", 30_000),
    ("noisy", "threshold", 30_000),
    ("micro-batches", "threshold", 20_000),
    ("micro-batches", "static:workers=40", 20_000),
    ("plain", "deadline", 10_000),
)


def main() -> None:
    load = make_load((Sine(200.0, 2500.0), Jitter(0.1, 300.0)), DAYS * 86400.0, 60.0, seed=1)
    still = replace(Scenario.constant(1.0, 50.0), load=load, worker=WorkerSpec(start_s=90.0))
    print(f"{len(load.arrivals):,} steps, up to 64 workers; target with a journal: 10,000 steps/s")
    for name, named, asked in ROWS:
        scenario, policy = replace(still, **WORLDS[name]), Named.parse(named)  # type: ignore[arg-type]
        scored = best(lambda world=scenario, by=policy: run(world, by))  # type: ignore[misc]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.jsonl"
            written = best(lambda world=scenario, by=policy, at=path: run(world, by, at))  # type: ignore[misc]
            size = path.stat().st_size / len(load.arrivals)
            begun = time.perf_counter()
            score(Journal.open(path), scenario.objective, scenario.price)
            read = len(load.arrivals) / (time.perf_counter() - begun)
        print(
            f"{name:14} {named:18} {scored:8,.0f} steps/s scored ({scored / asked:.2f} × target), "
            f"{written:8,.0f} with a journal ({written / 10_000:.2f} × target), "
            f"{read:8,.0f} read back; {size:.0f} bytes a step, {size * 129_600 / 1e6:.0f} MB for three months"
        )


def run(scenario: Scenario, policy: Named, journal: Path | None = None) -> int:
    scorer = Scorer(scenario.objective, scenario.price)
    steps = replay(scenario, policy.build(scenario.job()))
    if journal is None:
        return drain(steps, scorer.add)
    with JournalWriter.at(journal, header_of(scenario, policy, {})) as writer:

        def both(step: Step) -> None:
            scorer.add(step)
            writer.write(step)

        return drain(steps, both)


def drain(steps: Iterator[Step], take: Callable[[Step], None]) -> int:
    count = 0
    for step in steps:
        take(step)
        count += 1
    return count


def best(work: Callable[[], int], times: int = 3) -> float:
    """The most steps per second of a few runs: noise only ever slows."""
    rates = []
    for _ in range(times):
        begun = time.perf_counter()
        steps = work()
        rates.append(steps / (time.perf_counter() - begun))
    return max(rates)
