"""How a plant's meters show it: the CPU idle and busy, its noise, whether a latency counts the service to come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.models.evidence import Evidence, Ticks
from penstock.models.throughput_curves import Floats

Bools = npt.NDArray[np.bool_]
TICKS_LEAST = 20
# Without this much between quiet and busy ticks, a line through them is a guess.
LOADS_APART = 0.2
CALM_S = 30.0
RATE_TICKS = (1, 2, 3, 4, 6)
NOISE_LEAST = 1e-3
# Near 0 and 1 a meter is cut off, and its noise with it.
CLEAR = (0.15, 0.85)


@dataclass(frozen=True, slots=True)
class CpuMeter:
    """What the workers' CPU shows while nothing is worked on, and while all work."""

    idle: float
    busy: float
    noise: float
    """Standard deviation of one worker's meter; below, the part of its variance that all workers have in common."""
    shared: float
    seen: int
    """Ticks whose batches are all known."""
    noise_seen: int
    """Ticks with several workers whose meters were not cut off."""


def learn_cpu(evidence: Sequence[Evidence]) -> CpuMeter | None:
    """A line through (share of the tick in which workers had tasks, mean CPU).

    What workers side by side differ by is noise of their own; what their mean is off by beyond that, they share.
    """
    columns = (np.concatenate(column) for column in zip(*(_loads(each) for each in evidence), strict=True))
    loads, cpus, workers = _calm(*columns)
    if len(loads) < TICKS_LEAST or float(np.ptp(loads)) < LOADS_APART:
        return None
    slope, idle = np.polyfit(loads, cpus, 1)
    kept = _clear(loads, cpus, idle + slope * loads)
    slope, idle = np.polyfit(loads[kept], cpus[kept], 1)
    own, noise_seen = _own_noise(evidence)
    left = float(np.var((cpus - idle - slope * loads)[kept])) - own * float(np.mean(1 / workers[kept]))
    total = own + max(0.0, left)
    idle = min(max(float(idle), 0.0), 0.9)
    busy = min(max(idle + float(slope), idle + 0.05), 1.0)
    noise, shared = (math.sqrt(total), max(0.0, left) / total) if total > NOISE_LEAST**2 else (0.0, 0.0)
    return CpuMeter(round(idle, 3), round(busy, 3), round(noise, 4), round(shared, 3), int(kept.sum()), noise_seen)


def _calm(loads: Floats, cpus: Floats, workers: Floats, calm_s: Floats) -> tuple[Floats, Floats, Floats]:
    """Ticks without new workers, if there are enough: those are busy with themselves, whatever the load."""
    calm = calm_s >= (CALM_S if (calm_s >= CALM_S).sum() >= TICKS_LEAST else 0.0)
    return loads[calm], cpus[calm], workers[calm]


def _clear(loads: Floats, cpus: Floats, predicted: Floats) -> Bools:
    """Ticks that tell most, if there are enough: not far off (a collection, a neighbour), and not cut off.

    Where noise is cut off at 0 or 1, idle looks busier and busy idler than it is.
    """
    errors = np.abs(cpus - predicted)
    kept = errors <= 6 * float(np.median(errors)) + 1e-3
    clear = kept & (predicted > CLEAR[0]) & (predicted < CLEAR[1])
    is_enough = clear.sum() >= TICKS_LEAST and float(np.ptp(loads[clear])) >= LOADS_APART
    return np.asarray(clear if is_enough else kept, dtype=np.bool_)


def _loads(evidence: Evidence) -> tuple[Floats, Floats, Floats, Floats]:
    """Ticks whose batches are all known: load, CPU, workers, time since their number changed."""
    ticks = evidence.ticks
    ends = np.array([batch.ended_s for batch in evidence.batches])
    rows = np.append(0.0, np.cumsum([batch.rows for batch in evidence.batches]))
    # Executors are busy from the end of planning on, with tasks before rows.
    begins = np.minimum(np.array([batch.begun_s + batch.fixed_s for batch in evidence.batches]), ends)
    before_s = ticks.time_s - ticks.span_s
    worked = _worked_until(ticks.time_s, begins, ends) - _worked_until(before_s, begins, ends)
    # While a batch waits for a new worker's first task, the others idle: that is not the meter's doing.
    first = np.array([bool(batch.crew.fresh_s) for batch in evidence.batches], dtype=np.bool_)
    held = _worked_until(ticks.time_s, begins[first], ends[first]) > _worked_until(before_s, begins[first], ends[first])
    told = rows[np.searchsorted(ends, ticks.time_s, side="right")] - rows[np.searchsorted(ends, before_s, side="right")]
    done = np.diff(ticks.processed, prepend=ticks.processed[0])
    known = np.abs(told - done) <= 1e-6 * np.maximum(done, 1.0)
    # The next batch that ends may have begun in this tick: it must be known, too.
    ending = np.flatnonzero((done > 0) | (told > 0))
    next_known = np.append(known[ending], False)[np.searchsorted(ending, np.arange(len(known)), side="right")]
    # Of the first tick nobody knows what was done in it.
    chosen = known & next_known & ~held & np.isfinite(ticks.cpu) & (ticks.workers > 0) & (np.arange(len(known)) > 0)
    load = worked / ticks.span_s
    return load[chosen], ticks.cpu[chosen], ticks.workers[chosen], _calm_s(ticks)[chosen]


def _calm_s(ticks: Ticks) -> Floats:
    """How long the number of workers had been what it was."""
    changed = np.diff(ticks.workers, prepend=ticks.workers[0]) != 0
    since_s = np.maximum.accumulate(np.where(changed, ticks.time_s, -np.inf))
    return np.asarray(ticks.time_s - since_s, dtype=np.float64)


def _worked_until(times_s: Floats, begins: Floats, ends: Floats) -> Floats:
    """Seconds of work before each time; batches do not overlap."""
    total = np.append(0.0, np.cumsum(ends - begins))
    ended = np.searchsorted(ends, times_s, side="right")
    begun_s = np.append(begins, math.inf)[ended]
    return np.asarray(total[ended] + np.maximum(0.0, times_s - begun_s), dtype=np.float64)


def _own_noise(evidence: Sequence[Evidence]) -> tuple[float, int]:
    """The variance of a worker's meter around the others', and in how many ticks it was seen."""
    found: list[Floats] = []
    for each in evidence:
        ticks = each.ticks
        clear = (ticks.workers > 1) & (ticks.cpu > CLEAR[0]) & (ticks.cpu < CLEAR[1]) & (_calm_s(ticks) >= CALM_S)
        others = ticks.workers[clear] - 1
        # A median, because one worker that compiles would outweigh all; and that of χ² lies below its mean.
        found.append(ticks.cpu_scatter[clear] / others / (1 - 2 / (9 * others)) ** 3)
    variances = np.concatenate(found)
    return (float(np.median(variances)) if len(variances) else 0.0), len(variances)


def latency_includes_service(evidence: Sequence[Evidence]) -> bool:
    """Does the latency seen count the service to come, or only how long the oldest event has waited already?"""
    extra = [_beyond_age(each) for each in evidence]
    beyond = np.concatenate(extra)
    execution_s = [batch.execution_s for each in evidence for batch in each.batches]
    if not len(beyond) or not execution_s:
        return True
    # What is to come is on average more than half a batch; the tick blurs an age by less than that.
    return float(np.median(beyond)) > 0.25 * float(np.median(execution_s))


def _beyond_age(evidence: Evidence) -> Floats:
    """Latency minus the age of the oldest event, which is when as many had arrived as are processed now."""
    ticks = evidence.ticks
    oldest_s = np.interp(ticks.processed, ticks.arrived, ticks.time_s)
    waiting = (ticks.backlog > 0) & (ticks.processed >= ticks.arrived[0])
    return np.asarray((ticks.latency_s - (ticks.time_s - oldest_s))[waiting], dtype=np.float64)


def rate_over_s(evidence: Sequence[Evidence]) -> float:
    """Over how long the rate that is seen is a mean: as many ticks as explain it best; 0 for the tick itself."""
    if all(len(each.ticks.span_s) <= max(RATE_TICKS) for each in evidence):
        return 0.0
    errors = [float(np.concatenate([_rate_errors(each, ticks) for each in evidence]).mean()) for ticks in RATE_TICKS]
    best = int(np.argmin(errors))
    return RATE_TICKS[best] * evidence[0].header.tick_s if errors[best] < 0.8 * errors[0] else 0.0


def _rate_errors(evidence: Evidence, ticks: int) -> Floats:
    seen, over = evidence.ticks, np.ones(ticks)
    # The first ticks of a journal have no past of their own.
    rates = np.convolve(seen.arrivals, over)[: len(seen.span_s)] / np.convolve(seen.span_s, over)[: len(seen.span_s)]
    return np.asarray(np.abs(rates - seen.input_rate)[max(RATE_TICKS) :], dtype=np.float64)


def trigger_offset_s(evidence: Evidence) -> float:
    """When after the journal's beginning the trigger's clock struck first: as batches that waited for it tell."""
    trigger_s = evidence.trigger_s or 0.0
    begins = np.array([batch.begun_s for batch in evidence.batches if batch.waited])
    if not trigger_s or not len(begins):
        return 0.0
    mean = complex(np.mean(np.exp(2j * np.pi * begins / trigger_s)))
    around_s = math.atan2(mean.imag, mean.real) / (2 * math.pi) * trigger_s
    # Batches that began late drag a mean along, not a median.
    apart_s = (begins - around_s + trigger_s / 2) % trigger_s - trigger_s / 2
    return round((around_s + float(np.median(apart_s))) % trigger_s, 3) % trigger_s
