"""Coarser steps, for long series and wide tubes: a linear programme whose value stays a lower bound.

Averages over a step are fractions of workers: they serve at least as much (the capacity's concave hull), pay the
same, and rise no more often. Deadlines within a step are dropped.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, diags_array, eye_array, identity

from penstock.solvers.schedule import ROUNDING, Floats, Ints, OnProgress, Task, silent, unavoidable
from penstock.solvers.schedule_batches import eased
from penstock.solvers.schedule_tube import needed

# HiGHS solves 8,000 steps in 0.7 to 3 s, and more of them at once no faster each.
STEPS_AT_ONCE = 8000
# In batches a tick that nobody waits in spoils its part; each part costs 0.1 % of so many.
STEPS_IN_BATCHES = 2000
# 200,000 steps take half a minute.
STEPS_MOST = 200_000


def coarse_bound(task: Task, told: OnProgress = silent) -> tuple[float, int]:
    """At least this is paid, and the ticks in a step. The first tick is left out: it runs as it is.

    A long series is cut: a part may begin with as many workers as there may be, and with nothing waiting, so it costs
    no less by itself than within the whole.
    """
    ticks = math.ceil(max(1, task.ticks - 1) / STEPS_MOST)
    if task.ticks < 2:
        return float(task.at_start), ticks
    worker = float(task.capacity[task.most]) / task.most or 1.0
    ends = np.minimum(np.arange(1, task.ticks, ticks) + ticks - 1, task.ticks - 1)
    arrived = np.cumsum(task.arrivals)
    wanted, least = np.zeros(task.ticks), np.full(task.ticks, float(min(task.least, task.at_start)))
    lines = hull(task.capacity[: task.most + 1] / worker)
    if task.within is None:
        held = np.where(unavoidable(task), 0.0, task.arrivals / worker * (1 - 2 * ROUNDING))
        least = np.max([least, *((held - height) / slope for slope, height in lines if slope > 0)], axis=0)
    else:
        wanted = np.minimum(needed(task) * (1 - ROUNDING), arrived)
    lengths = np.diff(ends, prepend=0).astype(np.float64)
    steps = Steps(lengths, wanted[ends] / worker, arrived[ends] / worker, _sums(least, ends) / lengths)
    return task.at_start + _in_parts(task, steps, ends, told), ticks


def _in_parts(task: Task, steps: Steps, ends: Ints, told: OnProgress) -> float:
    """The sum over parts of the series; those after the first begin with as many workers as they like."""
    worker = float(task.capacity[task.most]) / task.most or 1.0
    lines, fluid, total = hull(task.capacity[: task.most + 1] / worker), eased(task), 0.0
    first = min(float(task.arrivals[0]), float(task.capacity[task.at_start])) / worker
    free = replace(task, at_start=max(task.most, task.at_start))
    many = min(STEPS_AT_ONCE, STEPS_IN_BATCHES) if fluid else STEPS_AT_ONCE
    for begin in range(0, len(ends), many):
        some = slice(begin, begin + many)
        part, before = steps.part(some), float(steps.arrived[begin - 1]) if begin else float(task.arrivals[0]) / worker
        ticks = slice(int(ends[begin - 1]) + 1 if begin else 0, int(ends[some][-1]) + 1)
        if fluid is not None and not fluid.unsure[ticks].any():
            later = replace(part, wanted=np.minimum(fluid.wanted[ends[some]] / worker, part.arrived))
            total += max(0.0, _solved(fluid.task, later, before, [(fluid.share, 0.0)]) - fluid.credit())
        else:
            total += _solved(free, part, before, lines) if begin else _solved(task, part, first, lines)
        told(min(1.0, some.stop / len(ends)))
    return total


def _sums(values: Floats, ends: Ints) -> Floats:
    """Sums over steps that end with these ticks; the first tick belongs to none."""
    return np.diff(np.cumsum(values)[ends], prepend=values[0])


@dataclass(frozen=True, eq=False)
class Steps:
    """Ticks in each step; work that must and that can have been done by its end, in ticks of one worker."""

    ticks: Floats
    wanted: Floats
    arrived: Floats
    least: Floats
    """Workers that must serve on average."""

    def part(self, some: slice) -> Steps:
        return Steps(self.ticks[some], self.wanted[some], self.arrived[some], self.least[some])


def _solved(task: Task, steps: Steps, first: float, lines: list[tuple[float, float]]) -> float:
    """Variables by step: workers that serve, workers started before it, work done by its end."""
    count = len(steps.ticks)
    one, before = identity(count, format="csr"), eye_array(count, k=-1, format="csr")
    first_only = np.zeros(count)
    first_only[0] = 1.0
    blocks = [[one - before, -one, None]]
    limits = [first_only * task.at_start]
    for slope, offset in lines:
        blocks.append([diags_array(-slope * steps.ticks), None, one - before])
        limits.append(steps.ticks * offset + first_only * first)
    most = max(task.most, task.at_start)
    low = np.concatenate([np.minimum(steps.least, most), np.zeros(count), steps.wanted])
    high = np.concatenate([np.full(2 * count, float(most)), steps.arrived])
    costs = np.concatenate([steps.ticks, np.full(count, task.start), np.zeros(count)])
    matrix, limit = block_array(blocks, format="csr"), np.concatenate(limits)
    found = linprog(costs, A_ub=matrix, b_ub=limit, bounds=np.column_stack([low, high]), method="highs")
    prices = np.zeros(len(limit)) if found.x is None else np.maximum(0.0, -found.ineqlin.marginals)
    # Whatever the solver's tolerance was: any prices that are not negative prove a bound.
    rest = costs + matrix.T @ prices
    return float(np.minimum(rest * low, rest * high).sum() - prices @ limit)


def hull(capacity: Floats) -> list[tuple[float, float]]:
    """Straight lines (slope, height at 0) above a capacity: its concave hull, of at most eight pieces."""
    corners = [0]
    for workers in range(1, len(capacity)):
        while len(corners) > 1 and _rises_to(capacity, corners[-2], corners[-1], workers):
            corners.pop()
        corners.append(workers)
    lines = []
    for left, right in itertools.pairwise(corners):
        slope = float(capacity[right] - capacity[left]) / (right - left)
        lines.append((slope, float(capacity[left]) - slope * left))
    # A line less leaves a bound valid, and a hull of 64 lines would take minutes.
    return [lines[at] for at in sorted({round(x) for x in np.linspace(0, len(lines) - 1, 8)})]


def _rises_to(capacity: Floats, left: int, middle: int, right: int) -> bool:
    """Is the middle corner on or below the line from left to right?"""
    here = (capacity[middle] - capacity[left]) * (right - left)
    return bool(here <= (capacity[right] - capacity[left]) * (middle - left) * (1 + ROUNDING))


def merged(task: Task, ticks: int) -> Task:
    """The task in steps of some ticks, such that a schedule for it holds for the task, too.

    What is in time at the ends of steps that are two steps stricter is in time within them, however uneven.
    """
    cuts = np.arange(0, task.ticks, ticks)
    if task.within is not None and task.within >= 3 * ticks:
        arrivals, within = np.add.reduceat(task.arrivals, cuts), task.within / ticks - 2
    else:
        # Steps longer than the bound: capacity for the busiest tick of each.
        arrivals, within = np.maximum.reduceat(task.arrivals, cuts) * ticks, None
    return replace(
        task,
        arrivals=arrivals,
        capacity=task.capacity * ticks,
        start=task.start / ticks,
        within=within,
        unit=task.unit / ticks,
    )
