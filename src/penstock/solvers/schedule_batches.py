"""What micro-batches cannot but lose: each pays its fixed time f, and two in a row last at most the bound L together.

The first event after the begin of one batch waits for the end of the next, so from begin to begin but one there are at
most L seconds of work, 2f of them fixed. Workers that run all that time therefore do at most (1 - 2f/L) of their
capacity. Only at the begin and at the end of a rental, and of the time looked at, may more be done, by 2f of a worker
each. Time of f' = f / (1 - 2f/L) makes up for that: whatever batches do in time, a fluid of capacity (1 - 2f/L) does
with deadlines 4f' later and workers that stay 4f' longer than they are paid. In linear programmes of averages, workers
may stay for parts of ticks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d

from penstock.solvers.schedule import ROUNDING, Bools, Floats, Task, due, unavoidable

# Where fixed times eat half of the bound, next to nothing can be served, and nothing is gained by knowing how little.
SHARE_LEAST = 0.5


@dataclass(frozen=True, eq=False)
class Eased:
    """A fluid that can do whatever the batches of a task can."""

    task: Task
    share: float
    """Of the capacity that is left."""
    free: float
    """Ticks that each worker stays unpaid."""
    wanted: Floats
    """Events that must have been served by the end of each tick."""
    unsure: Bools
    """Ticks for which the argument does not hold: nobody waits, or deadlines are missed."""

    def credit(self) -> float:
        """Ticks of one worker that a part of the series may cost less: workers that were there when it began."""
        return self.task.most * self.free


def eased(task: Task) -> Eased | None:
    """The fluid for a task in batches; None where fixed times are not known to cost anything."""
    within, linear = task.within, np.allclose(task.capacity, task.capacity[1] * np.arange(len(task.capacity)), 1e-9)
    share = 1 - 2 * task.fixed / within if within and within > 0 else 0.0
    if within is None or task.fixed <= 0 or share < SHARE_LEAST or not linear:
        return None
    free = 4 * task.fixed / share
    if task.start < free:
        return None
    # Twice as many workers as there may be: those that stay longer, and those that follow them.
    fluid = replace(task, start=task.start - free, within=within + free, at_start=2 * max(task.most, task.at_start))
    quiet = (task.arrivals <= 0) | unavoidable(task)
    unsure = maximum_filter1d(quiet, 4 * math.ceil(within) + 3)
    return Eased(fluid, share, free, due(fluid) * (1 - ROUNDING), np.asarray(unsure, dtype=np.bool_))
