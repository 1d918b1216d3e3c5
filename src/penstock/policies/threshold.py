"""Plain thresholds on the workers' CPU: what most autoscalers do."""

from __future__ import annotations

import math
from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.solvers.space import Range, Space


class Threshold:
    """Above the upper or below the lower mean CPU, as many workers as bring it to the middle."""

    source: ClassVar[str] = "rule-based scaling, as in papers 2 and 5"
    space: ClassVar[Space] = {"upper": Range(0.4, 0.98, 0.02), "lower": Range(0.1, 0.9, 0.02)}
    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self, job: Job, upper: float = 0.8, lower: float = 0.5) -> None:
        if not 0 < lower < upper <= 1:
            raise BadInput(f"threshold:upper={upper:g},lower={lower:g}: it must be 0 < lower < upper <= 1")
        self._limits = job.limits
        self._upper, self._lower = upper, lower
        # The geometric middle is as far, in workers, from growing as from shrinking.
        self._middle = math.sqrt(upper * lower)

    def decide(self, seen: Observation) -> Decision:
        load, running = seen.workers.mean("cpu"), len(seen.running.workers)
        signals = {"load": load, "upper": self._upper, "lower": self._lower}
        if running and self._lower <= load <= self._upper:
            return Decision(seen.target, f"load {load:.0%} within {self._lower:.0%} … {self._upper:.0%}", signals)
        # The load was measured on the workers that run, so it is scaled by their number.
        # With seen.target instead, every tick of a slow start would ask for more.
        wanted = self._limits.clamp(max(1, math.ceil(running * load / self._middle)))
        which = f"above {self._upper:.0%}" if load > self._upper else f"below {self._lower:.0%}"
        reason = f"load {load:.0%} of {running} workers is {which}; for {self._middle:.0%} it takes {wanted}"
        return Decision(seen.target.resized(wanted), reason, signals)
