"""The cheapest worker counts whose capacity holds what arrives in each tick: exact, whatever the capacity's shape."""

from __future__ import annotations

import numpy as np

from penstock.solvers.schedule import ROUNDING, Floats, Ints, Task, unavoidable
from penstock.solvers.schedule_tube import Prices

FAR = 1e18


def least_rate_cost(task: Task, prices: Prices) -> float:
    """The least cost beyond what is always paid."""
    return float(_sweep(task, prices, _fewest_before(task))[-1].min())


def cheapest_rate(task: Task, prices: Prices) -> Ints:
    """The workers that serve from within each tick on, at that cost."""
    fewest = _fewest_before(task)
    return _back(task, _sweep(task, prices, fewest), fewest, _price_first(task, prices))


def _sweep(task: Task, prices: Prices, fewest: Ints) -> Floats:
    """By tick, the least cost with so many workers. Backlog does not matter, so that is the whole state."""
    rows = fewest.shape[1]
    costs = np.full((task.ticks, rows), FAR)
    costs[0, min(max(task.at_start - task.least, 0), rows - 1)] = 0.0
    first, after = _price_first(task, prices), np.arange(rows)
    second = prices.hold[:, task.least : task.least + rows] - first
    for tick in range(1, task.ticks):
        middle = np.minimum.accumulate(costs[tick - 1, ::-1])[::-1] + first[tick]
        # The first request is made after the first tick, so nothing starts before `whole` more have passed.
        before = fewest[tick] if tick > task.delay[0] else np.maximum(fewest[tick], after)
        costs[tick] = least_between(middle, before) + second[tick]
    return costs


def _price_first(task: Task, prices: Prices) -> Floats:
    """Up to the starts within a tick; they are charged as what one has more afterwards."""
    levels = slice(task.least, _top(task) + 1)
    return np.asarray(task.delay[1] * prices.hold[:, levels] - prices.start[:, levels])


def least_between(values: Floats, begins: Ints) -> Floats:
    """For each i the least of values[begins[i]] … values[i]; far where that is none."""
    # lowest[p][i] is the least of the 2^p values up to i; two of them cover any stretch.
    lowest = [values]
    for power in range(len(values).bit_length() - 1):
        grown = lowest[-1].copy()
        np.minimum(grown[2**power :], lowest[-1][: -(2**power)], out=grown[2**power :])
        lowest.append(grown)
    ends = np.arange(len(values))
    lengths = np.maximum(ends - begins + 1, 1)
    powers = np.frexp(lengths)[1] - 1
    table, there = np.stack(lowest), np.minimum(begins, ends) + 2**powers - 1
    least = np.minimum(table[powers, ends], table[powers, there])
    return np.where(begins > ends, FAR, least)


def _fewest_before(task: Task) -> Ints:
    """By tick and workers after its starts: the fewest before them that let it hold what arrives."""
    whole, part = task.delay
    rows = _top(task) - task.least + 1
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
        begin = int(fewest[tick, row]) if tick > task.delay[0] else row
        middle = np.minimum.accumulate(costs[tick - 1, ::-1])[::-1] + first[tick]
        came = middle[begin : row + 1]
        middle_row = row if came[-1] <= came.min() else begin + int(came.argmin())
        above = costs[tick - 1, middle_row:]
        row = middle_row + (0 if above[0] <= above.min() else int(above.argmin()))
    return wanted
