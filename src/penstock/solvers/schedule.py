"""Worker counts over time, as pure numbers: what a schedule serves, misses and costs.

Time is counted in ticks, money in ticks of one worker. A schedule says how many workers are paid in each tick.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

OnProgress = Callable[[float], None]
"""Is told the share that is done."""

# As in the objective: a rounding must not look like a miss.
ROUNDING = 1e-9


def silent(_: float) -> None:
    """Nobody wants to know how far it is."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be served, and with what.

    >>> task = Task(np.array([5.0, 25.0, 0.0]), capacity=10.0 * np.arange(4), at_start=1, most=3, within=1.0)
    >>> bill(task, np.array([1, 2, 1])), violated(task, np.array([1, 2, 1])).tolist()
    (4.0, [False, False, False])
    """

    arrivals: Floats
    """Events in each tick, evenly spread within it."""
    capacity: Floats
    """Events that 0, 1, 2, … workers serve in a tick; never falls."""
    at_start: int
    most: int
    least: int = 0
    start: float = 0.0
    """Ticks from a request until the worker serves; it is paid from the request on."""
    within: float | None = None
    """Ticks after which an event must be served; None: what arrives in a tick must fit its capacity."""
    unit: float = 1.0
    """Ticks in a unit of billing: each started unit of a rental is paid in full."""
    fixed: float = 0.0
    """Ticks that each micro-batch takes before its first event; 0: events are served as they come."""
    drains: bool = False
    """May a worker that was given up serve, and be paid, for a part of the next tick?"""
    excused: Bools | None = None
    """The ticks that may be missed, where they are known already."""

    @property
    def ticks(self) -> int:
        return len(self.arrivals)

    @property
    def delay(self) -> tuple[int, float]:
        """The start in whole ticks, and the part of a tick beyond."""
        # 90 s in ticks of 60 s are exactly 1.5, but 0.3 s in ticks of 0.1 s are 2.9999999999999996.
        whole = math.floor(self.start + ROUNDING)
        return whole, max(0.0, self.start - whole)


def arrived_by(task: Task, times: Floats) -> Floats:
    """Events that have arrived by some times."""
    ends = np.arange(task.ticks + 1, dtype=np.float64)
    return np.asarray(np.interp(times, ends, np.concatenate([[0.0], np.cumsum(task.arrivals)])))


def due(task: Task, tolerance: float = ROUNDING) -> Floats:
    """Events that must have been served by the end of each tick."""
    within = max(0.0, task.within or 0.0) * (1 + tolerance)
    return arrived_by(task, np.arange(1.0, task.ticks + 1.0) - within)


def serving(task: Task, paid: Ints) -> tuple[Ints, Ints]:
    """Workers that serve in the first and in the second part of each tick; starts are over in between.

    The youngest worker goes first, so those that serve now are the fewest that were paid during a start.
    """
    whole, _ = task.delay
    return _fewest(task, paid, whole + 2), _fewest(task, paid, whole + 1)


def _fewest(task: Task, paid: Ints, ticks: int) -> Ints:
    before = np.full(ticks, task.at_start)
    # The filter looks at `ticks` entries around each; shifted, at those up to it.
    lowest = minimum_filter1d(np.concatenate([before, paid]), ticks, origin=(ticks - 1) // 2)
    return np.asarray(lowest[ticks:], dtype=np.int64)


def could_serve(task: Task, paid: Ints) -> Floats:
    """Events that the schedule could serve in each tick."""
    _, part = task.delay
    early, late = serving(task, paid)
    return np.asarray(part * task.capacity[early] + (1 - part) * task.capacity[late])


def served(task: Task, paid: Ints) -> Floats:
    """Events served by the end of each tick: S_k = min(A_k, S_{k-1} + C_k)."""
    capacity = np.cumsum(could_serve(task, paid))
    spare = np.minimum.accumulate(np.cumsum(task.arrivals) - capacity)
    return np.asarray(capacity + np.minimum(0.0, spare))


def violated(task: Task, paid: Ints) -> Bools:
    """The ticks that miss the objective."""
    if task.within is None:
        return np.asarray(task.arrivals > could_serve(task, paid) * (1 + ROUNDING))
    arrived = np.cumsum(task.arrivals)
    # Sums of 10⁵ terms are known to about 10⁻¹² of themselves.
    missed = served(task, paid) < due(task) - 1e-12 * arrived
    # A service longer than the bound misses it whenever anything comes.
    return np.asarray(missed | (task.arrivals > 0)) if task.within < 0 else np.asarray(missed)


def unavoidable(task: Task) -> Bools:
    """The ticks that miss the objective whatever one does: with all workers from the first decision on."""
    return violated(task, full(task)) if task.excused is None else task.excused


def full(task: Task) -> Ints:
    """All workers from the first decision on; the first tick runs with those at the start."""
    paid = np.full(task.ticks, task.most, dtype=np.int64)
    paid[0] = task.at_start
    return paid


def by_time(task: Task) -> bool:
    """Is every tick a whole number of units, so that no rental is rounded?"""
    return abs(1 / task.unit - round(1 / task.unit)) < ROUNDING * max(1.0, 1 / task.unit)


def bill(task: Task, paid: Ints) -> float:
    """What the schedule costs: each rental in whole units, the youngest worker given up first."""
    if by_time(task):
        return float(paid.sum())
    change = np.diff(paid, prepend=0, append=0)
    begun: list[int] = []
    total = 0.0
    for tick in np.flatnonzero(change).tolist():
        more = int(change[tick])
        begun.extend([tick] * more)
        for _ in range(-more):
            total += math.ceil((tick - begun.pop()) / task.unit - ROUNDING) * task.unit
    return total


def workers_paid(task: Task, wanted: Ints) -> Ints:
    """The schedule with which at least so many workers serve from within each tick on.

    A worker is paid a start ahead: the most that any tick up to a start later wants.
    """
    whole, _ = task.delay
    ahead = np.concatenate([wanted, np.zeros(whole, dtype=np.int64)])
    paid = -minimum_filter1d(-ahead, whole + 1, origin=-((whole + 1) // 2))[: task.ticks]
    paid = np.clip(paid, task.least, task.most)
    paid[0] = task.at_start
    return np.asarray(paid, dtype=np.int64)
