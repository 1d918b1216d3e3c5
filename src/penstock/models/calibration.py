"""A simulator's parameters from what journals show together: starts, slow first minutes, batches, the CPU's meter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.errors import BadInput
from penstock.core.text import some_of
from penstock.models.capacity import Capacity
from penstock.models.evidence import Evidence
from penstock.models.meters import CpuMeter, latency_includes_service, learn_cpu, rate_over_s
from penstock.models.service import Service, learn_service
from penstock.models.throughput_curves import Linear, Table
from penstock.models.worker_starts import Start

# A start that takes this many times the median is an accident.
SLOW = 3.0


@dataclass(frozen=True, slots=True)
class Starts:
    """How long workers take to start: evenly between two bounds."""

    low_s: float
    high_s: float
    seen: int
    odd: int
    """Left out, because they took more than three times the median."""


def learn_starts(starts: Sequence[Start]) -> Starts | None:
    """Bounds from mean and spread; a tick hides when within it a worker came, which adds its square / 12.

    >>> learn_starts([Start(10.0, 10.0), Start(14.0, 14.0), Start(18.0, 18.0)])
    Starts(low_s=10.0, high_s=18.0, seen=3, odd=0)
    """
    if not starts:
        return None
    middles = np.array([(start.least_s + start.most_s) / 2 for start in starts])
    kept = middles <= SLOW * np.median(middles)
    good = [start for start, is_kept in zip(starts, kept, strict=True) if is_kept]
    hidden = float(np.mean([(start.most_s - start.least_s) ** 2 for start in good])) / 12
    spread = math.sqrt(3 * max(0.0, float(np.var(middles[kept])) - hidden) * len(good) / max(1, len(good) - 1))
    mean = float(np.mean(middles[kept]))
    low = max(mean - spread, min(start.least_s for start in good), 0.0)
    high = min(mean + spread, max(start.most_s for start in good))
    return Starts(round(low, 3), round(max(low, high), 3), len(good), len(starts) - len(good))


def learn_capacity(evidence: Sequence[Evidence]) -> Capacity | None:
    """Where there are no batches: what the plant itself said that so many workers can do."""
    workers = np.concatenate([each.ticks.workers for each in evidence])
    rates = np.concatenate([each.ticks.capacity for each in evidence])
    known = (workers > 0) & (rates > 0)
    counts = [int(count) for count in np.unique(workers[known])]
    if not counts:
        return None
    middles = [float(np.median(rates[known & (workers == count)])) for count in counts]
    slopes = [rate / count for count, rate in zip(counts, middles, strict=True)]
    # Flat beyond what was seen is right for a table that bends, and wrong for a line.
    if max(slopes) <= 1.01 * min(slopes):
        return Capacity(Linear(float(np.median(slopes))))
    return Capacity(Table(tuple(counts), tuple(middles)))


@dataclass(frozen=True, slots=True)
class Calibration:
    """A simulator's parameters, and from how much they come."""

    capacity: Capacity
    starts: Starts | None
    service: Service | None
    """None: the job has no batches, and the capacity is what the plant said of itself."""
    cpu: CpuMeter | None
    trigger_s: float | None
    latency_includes_service: bool
    drains: bool
    tasks: int
    """How many a batch has; 0 where the journals do not tell."""
    rate_over_s: float
    """The rate that is seen is a mean over this long; 0 for a tick."""
    given_up: int
    """Workers that were asked for and never ran: they tell no start time."""
    lost: int
    unknown: tuple[str, ...]
    """What could not be learnt, and what holds instead."""


def calibrate(evidence: Sequence[Evidence]) -> Calibration:
    """All that some journals of one job teach together."""
    _need_one_job(evidence)
    most = max(each.header.limits.workers_max for each in evidence)
    service = learn_service([batch for each in evidence for batch in each.batches], most)
    capacity = service.capacity if service else learn_capacity(evidence)
    if capacity is None:
        raise BadInput("the journals show neither a batch with rows nor a capacity: let the job run under load first")
    starts = learn_starts([start for each in evidence for start in each.starts])
    cpu = learn_cpu(evidence) if service else None
    triggers = [each.trigger_s for each in evidence if each.trigger_s is not None]
    found = Calibration(
        capacity=capacity,
        starts=starts,
        service=service,
        cpu=cpu,
        trigger_s=triggers[0] if triggers else None,
        latency_includes_service=latency_includes_service(evidence),
        rate_over_s=rate_over_s(evidence),
        drains=any(each.drains for each in evidence),
        tasks=max(each.tasks for each in evidence),
        given_up=sum(each.given_up for each in evidence),
        lost=sum(each.lost for each in evidence),
        unknown=(),
    )
    return replace(found, unknown=tuple(_unknown(found, evidence)))


def _need_one_job(evidence: Sequence[Evidence]) -> None:
    jobs = sorted({each.header.job for each in evidence})
    if len(jobs) > 1:
        raise BadInput(f"the journals are of different jobs ({some_of(jobs)}): calibrate each job by itself")


def _unknown(found: Calibration, evidence: Sequence[Evidence]) -> Iterator[str]:
    if found.starts is None:
        asked = f"{found.given_up} were asked for and none came" if found.given_up else "none was asked for"
        yield f"start times: no worker started in the journals ({asked}); workers start at once"
    service = found.service
    if service is None:
        yield "batches: the journals show none; the capacity is what the plant said of itself, the fixed time 0"
    elif isinstance(service.capacity.curve, Linear):
        count = next(iter(service.seen), 1)
        yield f"capacity of other worker counts: only {count} was seen; each worker is taken to add the same"
    if service is not None and not service.warm_seen and not service.first_seen:
        yield "slow first minutes: no batch ran on a new worker; workers are taken to be fast at once"
    if service is not None and service.first_s and not found.tasks:
        yield "tasks of a batch: the journals do not tell how many; a worker that joins always finds one"
    if found.cpu is None:
        yield "the CPU's meter: too few ticks whose batches are all known; it shows exactly the work done"
    if found.lost:
        yield f"failures: {found.lost} workers were lost; the simulation loses none"
    for name in ("limits", "objective", "price", "tick_s"):
        if len({str(getattr(each.header, name)) for each in evidence}) > 1:
            yield f"one {name}: the journals differ; the file has the first one's, each replay its own"
    yield "memory, network, cores of a worker, speeds that vary: left at the simulator's defaults"
