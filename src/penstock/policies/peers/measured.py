"""What the peers measure: what is processed, how busy the workers are, what they could truly do."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.core.observation import Observation


@dataclass(frozen=True, slots=True)
class Measured:
    """One interval as the rate-based peers see it."""

    span_s: float
    arrived: float
    """Events that came in the interval."""
    processed: float
    """Events that were served in it."""
    busy: float
    """0…1."""
    true_rate: float | None
    """Events per second of the workers that ran, were they as busy as the busiest all the time; None where nothing was
    processed."""
    useful_rate: float | None = None
    """The same as the sum of the workers: each had its part of the events by its part of the useful time."""

    @property
    def utilisation(self) -> float:
        """What arrives, of what could be done; above 1 where work is left over."""
        return self.arrived / self.span_s / self.true_rate if self.true_rate else self.busy


class Meter:
    """Differences of the exact counters. The first interval only seeds it: live counters may have run for months."""

    def __init__(self) -> None:
        self._before: Observation | None = None

    def note(self, seen: Observation) -> Measured | None:
        """What was measured since the last time, if there was one."""
        before, self._before = self._before, seen
        if before is None:
            return None
        arrived, processed = max(0.0, seen.arrived - before.arrived), max(0.0, seen.processed - before.processed)
        busy, batch = cpu_most(seen), seen.batch
        if batch is not None and batch.execution_s > 0:
            # Of micro-batches: rows over what the trigger took, and that over the trigger's length.
            busy = min(1.0, batch.execution_s / batch.trigger_s) if batch.trigger_s > 0 else busy
            rate = useful = batch.rows / batch.execution_s
        else:
            rate = processed / seen.span_s / busy if busy > 0 else 0.0
            mean = seen.workers.mean("cpu")
            useful = processed / seen.span_s / mean if mean > 0 else 0.0
        return Measured(seen.span_s, arrived, processed, busy, rate or None, useful or None)


def cpu_most(seen: Observation) -> float:
    """The busiest worker's CPU."""
    column = seen.workers.columns.get("cpu", 0.0)
    if isinstance(column, (int, float)):
        return column if seen.workers.names else 0.0
    return max(column, default=0.0)


def up(number: float) -> int:
    """Rounded up, where 1.2 · 5 is 6 and not 7, whatever floats make of it."""
    return math.ceil(number - 1e-9)
