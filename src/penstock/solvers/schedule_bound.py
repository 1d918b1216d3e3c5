"""The least that serving in time can cost: a lower bound, and a schedule that comes close to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.solvers.schedule import ROUNDING, Ints, Task, bill, full, unavoidable, violated, workers_paid
from penstock.solvers.schedule_rate import cheapest_rate
from penstock.solvers.schedule_sweep import cheapest, least_cost, states
from penstock.solvers.schedule_tube import Prices, fits, tube

# 1.5e8 states take about 3 s in one sweep; three sweeps are made.
STATES_MOST = 1.5e8


@dataclass(frozen=True, eq=False)
class Plan:
    """In ticks of one worker: no schedule that misses no more costs less than `lower`; `paid` costs `cost`."""

    lower: float
    cost: float
    paid: Ints
    note: str = ""


def plan(task: Task) -> Plan:
    """The bound, and the schedule."""
    lower, wanted = _rate(task) if task.within is None else _latency(task)
    paid = holding(task, workers_paid(task, wanted))
    return Plan(lower * (1 - ROUNDING), bill(task, paid), paid)


def _rate(task: Task) -> tuple[float, Ints]:
    least, wanted = cheapest_rate(task, Prices.even(task))
    return least + always(task), wanted


def _latency(task: Task) -> tuple[float, Ints]:
    prices = Prices.even(task)
    cell = cell_for(task)
    lower = least_cost(tube(task, cell, 1), prices) + always(task)
    return lower, cheapest(tube(task, cell, -1), prices)


def cell_for(task: Task) -> float:
    """The smallest cell that keeps the work within bounds, if possible one of which all capacities are multiples."""
    worker = float(task.capacity[task.most]) / task.most or 1.0
    whole = [worker / parts for parts in (48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)]
    rough = [worker * 2.0**power for power in range(-5, 40)]
    for cell in [cell for cell in whole if fits(task, cell)] + rough:
        if states(tube(task, cell, 1)) <= STATES_MOST:
            return cell
    return rough[-1]


def holding(task: Task, paid: Ints) -> Ints:
    """The schedule, with workers added wherever it misses what could be met."""
    may_miss = unavoidable(task)
    while (missed := np.flatnonzero(violated(task, paid) & ~may_miss)).size:
        first = int(missed[0])
        reach = slice(max(1, first - math.ceil(task.start) - 1), first + 1)
        if (paid[reach] >= task.most).all():
            return full(task)
        paid[reach] = np.minimum(paid[reach] + 1, task.most)
    return paid


def always(task: Task) -> float:
    """What is paid whatever one does: the first tick, and the least number of workers in all others."""
    return float(task.at_start + (task.ticks - 1) * task.least)
