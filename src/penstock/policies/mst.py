"""Elastic scheduling by maximum sustainable throughput, with some over-provisioning (paper 1 §6)."""

from __future__ import annotations

import math
from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.solvers.space import Range, Space


class Mst:
    """The fewest workers whose modelled capacity sustains the rate that is seen, and a share more."""

    source: ClassVar[str] = "paper 1 §6.1, eq 11"
    space: ClassVar[Space] = {"spare": Range(0.0, 1.0, 0.02)}
    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self, job: Job, spare: float = 0.2) -> None:
        if not 0 <= spare < 10:
            raise BadInput(f"mst:spare={spare:g}: over-provisioning is a share from 0 to 10, as in spare=0.2")
        self._job = job
        self._spare = spare

    def decide(self, seen: Observation) -> Decision:
        needed = self._job.workers_for(seen.input_rate)
        wanted = self._job.limits.clamp(with_spare(needed, self._spare))
        reason = f"{seen.input_rate:.4g}/s needs {needed} workers; with {100 * self._spare:g} % more, {wanted}"
        return Decision(seen.target.resized(wanted), reason, {"needed": float(needed)})


def with_spare(workers: int, spare: float) -> int:
    """⌈(1 + x) · m⌉, where 1.2 · 5 is 6 and not 7, whatever floats make of it."""
    return math.ceil((1 + spare) * workers - 1e-9)
