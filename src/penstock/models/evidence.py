"""What a journal shows of its plant: starts of workers, batches and on what they ran, CPU, arrivals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from penstock.core.journal import Header
from penstock.core.loop import Step
from penstock.core.observation import Observation
from penstock.core.score import Score, Scorer
from penstock.models.seen_batches import SeenBatch, Served
from penstock.models.throughput_curves import Floats
from penstock.models.worker_starts import Joins, Start

# A step that comes later than this many spans after the one before has lost some between.
GAP = 1.5


@dataclass(frozen=True, slots=True)
class Ticks:
    """The steps as columns."""

    time_s: Floats
    span_s: Floats
    arrivals: Floats
    """Work that came within the interval."""
    arrived: Floats
    processed: Floats
    backlog: Floats
    """Not a number where nobody knew it; so is the latency."""
    latency_s: Floats
    capacity: Floats
    input_rate: Floats
    """As it was seen."""
    workers: Floats
    cpu: Floats
    """The workers' mean."""
    cpu_scatter: Floats
    """The sum of squares around the workers' mean."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that one journal shows."""

    header: Header
    score: Score
    ticks: Ticks
    starts: tuple[Start, ...]
    batches: tuple[SeenBatch, ...]
    trigger_s: float | None
    """None: the job has no batches; 0: as fast as it can."""
    workers_at_start: int
    given_up: int = 0
    """Workers that were asked for and never ran."""
    lost: int = 0
    """Workers that went without being told to."""
    drains: bool = False
    """Did workers that were given up run on for a while?"""

    @property
    def tasks(self) -> int:
        """How many tasks a batch has, as far as the header tells; 0 where it does not."""
        told = self.header.facts.get("partitions")
        return told if isinstance(told, int) else 0

    def arrivals(self) -> Floats:
        """What arrived in each interval of the header's length, spread evenly over the steps as they really were."""
        tick_s, clock_s = self.header.tick_s, np.cumsum(self.ticks.span_s)
        edges_s = np.arange(max(1, round(float(clock_s[-1]) / tick_s)) + 1) * tick_s
        total = np.interp(edges_s, np.append(0.0, clock_s), np.append(0.0, np.cumsum(self.ticks.arrivals)))
        return np.asarray(np.diff(total), dtype=np.float64)


def evidence_of(header: Header, steps: Iterable[Step]) -> Evidence | None:
    """The evidence in some steps; None where there is no step."""
    reader = _Reader(header)
    for step in steps:
        reader.add(step)
    return reader.result() if reader.rows else None


class _Reader:
    """Goes through the steps once; memory grows with them by some hundred bytes a step."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._scorer = Scorer(header.objective, header.price, header.kinds)
        self.rows: list[tuple[float, ...]] = []
        self._fleet = Joins()
        self._served = Served(self._fleet, header.origin_s)
        self._last: Observation | None = None
        self._at_start = 0

    def add(self, step: Step) -> None:
        seen, last = step.seen, self._last
        self._scorer.add(step)
        gap = last is not None and seen.time_s - last.time_s > GAP * max(seen.span_s, self._header.tick_s)
        if last is None:
            self._at_start = len(seen.target.workers)
        self._fleet.add(step, gap)
        self._served.add(seen)
        self.rows.append(_row(seen, _new_work(seen, last, gap)))
        self._last = seen

    def result(self) -> Evidence:
        columns = np.array(self.rows, dtype=np.float64).T
        fleet = self._fleet
        return Evidence(
            header=self._header,
            score=self._scorer.result(),
            ticks=Ticks(*columns),
            starts=tuple(fleet.starts),
            batches=tuple(each for each in self._served.batches if fleet.drains or not each.crew.has_drained),
            trigger_s=self._served.trigger_s,
            workers_at_start=self._at_start,
            given_up=fleet.given_up + len(fleet.asked_s),
            lost=fleet.lost,
            drains=fleet.drains,
        )


def _new_work(seen: Observation, last: Observation | None, gap: bool) -> float:
    """Arrivals of an interval. Over a gap (steps lost, or a restart) only what is left of them, and what was done."""
    if last is None:
        is_whole = seen.time_s <= GAP * seen.span_s
        return seen.arrived if is_whole else (seen.backlog or 0.0) + seen.input_rate * seen.span_s
    if not gap:
        return max(0.0, seen.arrived - last.arrived)
    done = min(seen.processed - last.processed, seen.input_rate * seen.span_s)
    return max(0.0, (seen.backlog or 0.0) - (last.backlog or 0.0) + done)


def _row(seen: Observation, arrivals: float) -> tuple[float, ...]:
    """In the order of `Ticks`."""
    cpu = np.atleast_1d(np.asarray(seen.workers.columns.get("cpu", math.nan), dtype=np.float64))
    cpu = cpu if len(cpu) else np.array([math.nan])
    mean = float(cpu.mean())
    return (
        seen.time_s,
        seen.span_s,
        arrivals,
        seen.arrived,
        seen.processed,
        math.nan if seen.backlog is None else seen.backlog,
        math.nan if seen.latency_s is None else seen.latency_s,
        seen.capacity,
        seen.input_rate,
        float(len(seen.running.workers)),
        mean,
        float(((cpu - mean) ** 2).sum()),
    )
