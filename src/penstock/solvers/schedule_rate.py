"""The cheapest worker counts whose capacity holds what arrives in each tick: exact, whatever the capacity's shape."""

from __future__ import annotations

import numpy as np

from penstock.solvers.schedule import ROUNDING, Floats, Ints, Task, unavoidable
from penstock.solvers.schedule_tube import Prices

FAR = 1e18


def cheapest_rate(task: Task, prices: Prices) -> tuple[float, Ints]:
    """The least cost beyond what is always paid, and the workers that serve from within each tick on.

    Backlog does not matter, so the state is the number of workers that serve.
    """
    rows = _top(task) - task.least + 1
    fewest = _fewest_before(task, rows)
    hold, start = (price[:, task.least : task.least + rows] for price in (prices.hold, prices.start))
    costs = np.full((task.ticks, rows), FAR)
    costs[0, min(max(task.at_start - task.least, 0), rows - 1)] = 0.0
    _, part = task.delay
    first, second = part * hold - start, (1 - part) * hold + start
    for tick in range(1, task.ticks):
        stopped = np.minimum.accumulate(costs[tick - 1, ::-1])[::-1]
        costs[tick] = _served(task, tick, fewest[tick], stopped + first[tick]).min(axis=1) + second[tick]
    return float(costs[-1].min()), _back(task, costs, fewest, first)


def _served(task: Task, tick: int, fewest: Ints, costs: Floats) -> Floats:
    """Costs by workers after the tick's starts (rows) and before them (columns); far where it cannot be."""
    before = np.arange(len(costs))
    after = before[:, None]
    # The first request is made after the first tick, so nothing starts before `whole` more have passed.
    starts = before <= after if tick > task.delay[0] else before == after
    return np.where(starts & (before >= fewest[:, None]), costs, FAR)


def _fewest_before(task: Task, rows: int) -> Ints:
    """By tick and workers after its starts: the fewest before them that let it hold what arrives."""
    whole, part = task.delay
    capacity = task.capacity[task.least : task.least + rows]
    wanted = np.where(unavoidable(task), 0.0, task.arrivals / (1 + ROUNDING))[:, None] - (1 - part) * capacity
    wanted -= 1e-12 * capacity[-1]
    fewest = np.searchsorted(part * capacity, wanted.ravel()).reshape(wanted.shape)
    fewest[wanted <= 0] = 0
    if task.at_start < task.least and whole + 1 < task.ticks:
        # The first start is forced; before it there are fewer workers than the least number.
        there = part * task.capacity[task.at_start]
        fewest[whole + 1] = np.where(wanted[whole + 1] <= there, 0, rows)
    return np.asarray(fewest, dtype=np.int64)


def _top(task: Task) -> int:
    """More workers than this hold everything even in what is left of a tick after a start."""
    _, part = task.delay
    wanted = float(task.arrivals.max(initial=0.0)) / (1 - part)
    return max(task.least, min(task.most, int(np.searchsorted(task.capacity, wanted))))


def _back(task: Task, costs: Floats, fewest: Ints, first: Floats) -> Ints:
    wanted = np.full(task.ticks, task.at_start, dtype=np.int64)
    row = int(costs[-1].argmin())
    for tick in range(task.ticks - 1, 0, -1):
        wanted[tick] = task.least + row
        stopped = np.minimum.accumulate(costs[tick - 1, ::-1])[::-1]
        came = _served(task, tick, fewest[tick], stopped + first[tick])[row]
        middle = row if came[row] <= came.min() else int(came.argmin())
        above = costs[tick - 1, middle:]
        row = middle + (0 if above[0] <= above.min() else int(above.argmin()))
    return wanted
