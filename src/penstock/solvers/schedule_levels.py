"""Billing in units longer than a tick: what each level of workers must cost by itself.

The youngest worker goes first, so level i (the i-th worker of the stack) is rented whenever at least i workers
are paid, and the bill is the sum over the levels. A level may be off only while i - 1 workers can still meet the
deadlines; how long that is depends on the load alone.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.solvers.schedule import ROUNDING, Bools, Floats, Ints, Task, unavoidable
from penstock.solvers.schedule_tube import needed


def level_bound(task: Task) -> float:
    """At least this is billed: the sum of what each level costs when all other levels adapt to it."""
    allowed = _RateGaps(task) if task.within is None else _LatencyGaps(task)
    above = max(0, task.at_start - task.most) * _billed(task, 1)
    fixed = sum(_billed(task, task.ticks - (level > task.at_start)) for level in range(1, task.least + 1))
    levels = range(task.least + 1, task.most + 1)
    return above + fixed + sum(_level_cost(task, level, allowed(level)) for level in levels)


def _billed(task: Task, ticks: float) -> float:
    return math.ceil(ticks / task.unit - ROUNDING) * task.unit


def _level_cost(task: Task, level: int, off_until: Ints) -> float:
    """The fewest units: each rental begins as late as possible and lasts whole units.

    That is the best, because to be given up later, for the same money, never hurts.
    """
    whole, _ = task.delay
    given_up, units = (task.unit, 1) if level <= task.at_start else (0.0, 0)
    while given_up < task.ticks:
        latest = int(off_until[min(task.ticks, math.ceil(given_up - ROUNDING))])
        if latest >= task.ticks:
            break
        given_up = max(given_up, latest - whole, 1.0) + task.unit
        units += 1
    return units * task.unit


class _LatencyGaps:
    """For a level: until which tick may it be off, if it is given up at tick 0, 1, …?

    With q events a tick from the workers below, it may be off from k to m if no deadline j ≤ m is missed even when
    all was served at k: A_l - q·l >= R_j - q·j for all k <= l < j <= m.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._times = np.arange(task.ticks + 1.0)
        self._arrived = np.concatenate([[0.0], np.cumsum(task.arrivals)])
        wanted = np.concatenate([[0.0], needed(task)])
        self._wanted = wanted - 1e-9 * (wanted + float(task.capacity[1]))

    def __call__(self, level: int) -> Ints:
        drain = float(self._task.capacity[level - 1]) * self._times
        missed_from = last_below(self._arrived - drain, self._wanted - drain)
        return _off_until(missed_from)


class _RateGaps:
    """The same where what arrives in a tick must fit its capacity: off until the next tick that needs the level."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._must = ~unavoidable(task)

    def __call__(self, level: int) -> Ints:
        task = self._task
        short: Bools = self._must & (task.arrivals > task.capacity[level - 1] * (1 + 2 * ROUNDING))
        ends = np.arange(1, task.ticks + 1)
        return _off_until(np.concatenate([[-1], np.where(short, ends - 1, -1)]))


def _off_until(missed_from: Ints) -> Ints:
    """For each k the tick before the first j whose deadline is missed by being off from k on."""
    latest = np.maximum.accumulate(missed_from)
    return np.asarray(np.searchsorted(latest, np.arange(len(latest))) - 1, dtype=np.int64)


def last_below(values: Floats, limits: Floats) -> Ints:
    """For each j the last l < j with values[l] < limits[j]; -1 without one."""
    # lowest[p][l] is the least of the 2^p values up to l: the search halves its stride, for all j at once.
    lowest = [values]
    while (stride := 2 ** (len(lowest) - 1)) < len(values):
        grown = lowest[-1].copy()
        grown[stride:] = np.minimum(grown[stride:], lowest[-1][:-stride])
        lowest.append(grown)
    at = np.arange(len(values)) - 1
    for power in reversed(range(len(lowest))):
        above = (at >= 0) & (lowest[power][np.maximum(at, 0)] >= limits)
        at = np.where(above, at - 2**power, at)
    return np.maximum(at, -1)


def bridged(task: Task, paid: Ints) -> Ints:
    """The schedule with gaps closed where keeping a worker costs no more than renting it again."""
    kept = np.zeros_like(paid)
    above = np.zeros(len(paid), dtype=np.bool_)
    for level in range(int(paid.max(initial=0)), 0, -1):
        # What is above a level cannot be kept without it, so the levels are closed from the top.
        above = _bridged_level(task, above | (paid >= level))
        kept += above
    return kept


def _bridged_level(task: Task, on: Bools) -> Bools:
    """The rentals of one level, joined so that the fewest units are billed."""
    change = np.diff(on.astype(np.int8), prepend=0, append=0)
    begins, ends = np.flatnonzero(change > 0).tolist(), np.flatnonzero(change < 0).tolist()
    least, joined = [0.0], [0]
    for last in range(len(begins)):
        first, best, choice = last, math.inf, last
        while first >= 0 and (first == last or begins[first + 1] - ends[first] <= task.unit):
            cost = least[first] + _billed(task, ends[last] - begins[first])
            if cost < best:
                best, choice = cost, first
            first -= 1
        least.append(best)
        joined.append(choice)
    on, last = on.copy(), len(begins)
    while last > 0:
        first = joined[last]
        on[begins[first] : ends[last - 1]] = True
        last = first
    return on
