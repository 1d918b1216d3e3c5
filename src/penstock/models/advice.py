"""How many workers for a rate, and what goes with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.core.errors import BadInput
from penstock.models.capacity import About, Capacity

OTHER_TRIGGERS = (0.5, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Need:
    """What is asked."""

    rate: float
    """Rows per second."""
    trigger_s: float = 10.0
    confidence: float = 0.95
    workers_max: int = 128


@dataclass(frozen=True, slots=True)
class Advice:
    """What to run. Rates are rows per second."""

    workers: int
    rate: float
    capacity: float
    capacity_low: float | None
    """What it does at least, as sure as was asked; None where the measurements have no repeats to tell."""
    headroom: float
    """How much more could come, as a share of the rate."""
    trigger_s: float
    max_offsets_per_trigger: int
    other_triggers: dict[float, int | None]
    """Workers that another trigger would take; None: no number suffices."""
    warnings: tuple[str, ...]


def advise(model: Capacity, need: Need) -> Advice:
    """The fewest workers whose lower bound of the interval sustains the rate; without one, their point estimate."""
    workers = _workers(model, need, need.trigger_s)
    if workers is None:
        raise BadInput(_impossible(model, need))
    bounds = model.interval(workers, need.trigger_s, need.confidence)
    capacity = model.sustainable(workers, need.trigger_s)
    others = {factor * need.trigger_s: _workers(model, need, factor * need.trigger_s) for factor in OTHER_TRIGGERS}
    return Advice(
        workers=workers,
        rate=need.rate,
        capacity=capacity,
        capacity_low=bounds[0] if bounds else None,
        headroom=capacity / need.rate - 1,
        trigger_s=need.trigger_s,
        # What such a batch can hold: more would overrun the trigger, and after a stop the backlog comes at once.
        max_offsets_per_trigger=math.floor(capacity * need.trigger_s),
        other_triggers=others,
        warnings=tuple(_warnings(model, workers)),
    )


def _workers(model: Capacity, need: Need, trigger_s: float) -> int | None:
    for workers in range(1, need.workers_max + 1):
        if _least(model, workers, trigger_s, need.confidence) >= need.rate * (1 - 1e-12):
            return workers
    return None


def _least(model: Capacity, workers: int, trigger_s: float, confidence: float) -> float:
    bounds = model.interval(workers, trigger_s, confidence)
    return bounds[0] if bounds else model.sustainable(workers, trigger_s)


def _impossible(model: Capacity, need: Need) -> str:
    known = model.interval(need.workers_max, need.trigger_s, need.confidence) is not None
    least = _least(model, need.workers_max, need.trigger_s, need.confidence)
    how = ("do at least", f" ({need.confidence:.0%} confidence)") if known else ("do", "")
    return (
        f"a rate of {need.rate:,.0f} rows/s is above every capacity: {need.workers_max} workers {how[0]} "
        f"{least:,.0f} rows/s with a trigger of {need.trigger_s:g} s{how[1]}"
    )


def doubts(about: About) -> list[str]:
    """Said wherever a model is used: what its samples do not tell surely."""
    found = []
    if about.unsettled:
        found.append(f"not known to have settled: samples of {_list(about.unsettled)} workers; measure without --quick")
    if about.short:
        rows = "a batch of five times the rows took hardly longer"
        found.append(f"too short to tell: batches of {_list(about.short)} workers; {rows}, so capacity may be far off")
    if about.limited is False:
        found.append("no CPU limit held while measuring: a worker here is one with whole cores of its own")
    return found


def _list(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts))


def _warnings(model: Capacity, workers: int) -> list[str]:
    about, found = model.about, []
    if about.workers and not min(about.workers) <= workers <= max(about.workers):
        measured = f"{min(about.workers)} to {max(about.workers)}"
        found.append(f"{workers} workers are beyond what was measured ({measured}): measure nearer to it")
    if about.workers and model.interval(workers, None, 0.95) is None:
        found.append("no confidence interval: one sample per count; measure with --repeat 3")
    found += doubts(about)
    slots = workers * max(1.0, about.cores or 1.0)
    if about.partitions is not None and slots > about.partitions:
        found.append(f"{workers} workers have {slots:g} slots for {about.partitions} partitions: the rest idle")
    return found
