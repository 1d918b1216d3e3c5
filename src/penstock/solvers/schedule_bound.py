"""The least that serving in time can cost: a lower bound that is proven, and a schedule that comes close to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from penstock.solvers.schedule import (
    ROUNDING,
    Ints,
    OnProgress,
    Task,
    bill,
    by_time,
    silent,
    unavoidable,
    violated,
    workers_paid,
)
from penstock.solvers.schedule_coarse import coarse_bound, merged
from penstock.solvers.schedule_levels import bridged, level_bound
from penstock.solvers.schedule_rate import cheapest_rate, least_rate_cost
from penstock.solvers.schedule_sweep import cheapest, least_cost, states
from penstock.solvers.schedule_tube import Grid, Prices, fits, tube

# A sweep looks at 4e7 to 6e7 states a second; three are made.
STATES_MOST = 2e8
# For a schedule, two sweeps without the worker counts that are hardly ever needed: up to a minute for a long series.
STATES_LONG = 1.2e9
STATES_FEW = 1e7
# Starts are some 5 % of the cost: 3 % of a tick matters no more.
START_ERROR = 0.03
# Half a percent of the gap is left with 12 cells of room on average, a quarter of it with 24.
CELLS_ENOUGH = 12.0
# Each tick of a sweep takes some 40 µs, however few its states are: 20 s for so many.
TICKS_MOST = 520_000
WORKERS_MANY = 96
# Before a miss 1, 2 and 4 workers more are tried, then the same twice as early, then all.
TRIES = 3


@dataclass(frozen=True, eq=False)
class Plan:
    """In ticks of one worker: no schedule that misses no more costs less than `lower`; `paid` costs `cost`."""

    lower: float
    cost: float
    paid: Ints
    note: str = ""


def plan(task: Task) -> Plan:
    """The bound, and the best schedule found.

    >>> best = plan(Task(np.array([5.0, 25.0, 5.0]), 10.0 * np.arange(4), at_start=1, most=3, within=1.0))
    >>> round(best.lower, 6), best.cost, best.paid.tolist()
    (4.0, 4.0, [1, 2, 1])
    """
    lower, note = lower_bound(task)
    paid = schedule(task)
    cost = bill(task, paid)
    return Plan(min(lower * (1 - ROUNDING), cost), cost, paid, note)


def lower_bound(task: Task, told: OnProgress = silent) -> tuple[float, str]:
    """At least this must be paid, and how it was found where that is not the usual way.

    Billed by units longer than a tick it holds for plans that give up the youngest worker first.
    """
    # One that drains is paid for parts of ticks: the averages of the linear programme allow for that.
    if task.drains and task.within is not None:
        return coarse_bound(task, told)[0], "the bound is computed on averages, for workers drain"
    grid = grid_for(task)
    if task.within is None and task.ticks <= TICKS_MOST:
        lower, note = least_rate_cost(task, Prices.by_time(task)) + always(task), ""
    else:
        lower, note = _swept(task, grid, told)
        if grid is None or not grid.parts or task.fixed > 0 or _starts_sooner(task, grid) > START_ERROR:
            coarse, ticks = coarse_bound(task, told)
            said = f"the bound is computed in steps of {ticks} ticks" if ticks > 1 else ""
            lower, note = max((lower, note), (coarse, said))
    if not by_time(task) and task.ticks <= TICKS_MOST:
        lower = max(lower, level_bound(task))
    return lower, note


def _starts_sooner(task: Task, grid: Grid) -> float:
    """Ticks by which the start is rounded: 90 s in ticks of 60 s were 60 s, and 1.4 % of the bound."""
    return task.start - grid.rounded(task, 1).start


def _swept(task: Task, grid: Grid | None, told: OnProgress) -> tuple[float, str]:
    if grid is None:
        return 0.0, ""
    easier = grid.rounded(task, 1)
    return least_cost(tube(easier, grid.cell, 1), Prices.by_time(easier), told) + always(task), ""


def schedule(task: Task, told: OnProgress = silent) -> Ints:
    """The cheapest schedule found that misses no more than is unavoidable."""
    return min((holding(task, paid) for paid in _candidates(task, told)), key=lambda paid: bill(task, paid))


def _candidates(task: Task, told: OnProgress) -> Iterator[Ints]:
    grid = grid_for(task) or long_grid(task)
    if task.within is not None and grid is None and task.most > WORKERS_MANY:
        yield _by_groups(task, math.ceil(2 * task.most / WORKERS_MANY))
    elif task.ticks > TICKS_MOST or (task.within is not None and grid is None):
        yield _by_steps(task, max(2, math.ceil(task.ticks / TICKS_MOST)), told)
    else:
        # A start wastes half a unit of billing on average, less where gaps are bridged: fewer starts cost less.
        for waste in (0.0,) if by_time(task) else (task.unit / 4, task.unit / 2):
            for paid in _swept_back(task, grid, waste, told):
                yield paid if by_time(task) else bridged(task, paid)


def _swept_back(task: Task, grid: Grid | None, waste: float, told: OnProgress) -> Iterator[Ints]:
    if grid is None:
        yield workers_paid(task, cheapest_rate(task, Prices.by_time(task, waste)))
        return
    harder = grid.rounded(task, -1)
    against = tube(harder, grid.cell, -1)
    yield workers_paid(harder, cheapest(against.narrowed(), Prices.by_time(harder, waste), told)[1])
    if states(against) <= STATES_FEW:
        # Short series leave time for a second try: rounded in favour, then mended.
        easier = grid.rounded(task, 1)
        yield workers_paid(task, cheapest(tube(easier, grid.cell, 1), Prices.by_time(easier, waste))[1])


def _by_steps(task: Task, ticks: int, told: OnProgress) -> Ints:
    """Decided at every so many ticks only; fewer decisions, where there are still too many states."""
    return np.repeat(schedule(merged(task, ticks), told), ticks)[: task.ticks]


def _by_groups(task: Task, workers: int) -> Ints:
    """Decided for groups of workers that come and go together."""
    groups = replace(
        task,
        capacity=task.capacity[::workers],
        at_start=task.at_start // workers,
        least=min(math.ceil(task.least / workers), task.most // workers),
        most=task.most // workers,
    )
    paid = np.clip(schedule(groups) * workers, task.least, task.most)
    paid[0] = task.at_start
    return paid


def always(task: Task) -> float:
    """What is paid whatever one does: the first tick, and the least number of workers in all others."""
    return float(task.at_start + (task.ticks - 1) * task.least)


def grid_for(task: Task) -> Grid | None:
    """Cells that are small against the room for backlog, but not so small that a sweep takes long; None: no such.

    Where all capacities are whole numbers of cells, only arrivals and the start are rounded.
    """
    if task.within is None or task.ticks > TICKS_MOST:
        return None
    worker, linear = _worker(task)
    best: Grid | None = None
    most, error = STATES_MOST, math.inf
    for parts in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 60) if linear else (2, 4, 8, 16, 32):
        grid = Grid(worker / parts, parts if linear else 0)
        here = tube(grid.rounded(task, 1), grid.cell, 1)
        wrong = abs(task.start - here.task.start)
        if states(here) > most:
            break
        if wrong <= error + ROUNDING:
            best, error = grid, wrong
        if here.room.mean() >= CELLS_ENOUGH and error <= START_ERROR:
            most = STATES_FEW
    return best


def long_grid(task: Task) -> Grid | None:
    """The coarsest cells, for a schedule of a series with too many states for a bound; None: still too many."""
    if task.within is None or task.ticks > TICKS_MOST:
        return None
    worker, linear = _worker(task)
    grid = Grid(worker, 1) if linear else Grid(worker / 2)
    against = tube(grid.rounded(task, -1), grid.cell, -1).narrowed()
    return grid if states(against) <= STATES_LONG else None


def _worker(task: Task) -> tuple[float, bool]:
    """What one of all workers does in a tick, and whether each does the same."""
    worker = float(task.capacity[task.most]) / task.most or 1.0
    return worker, fits(replace(task, start=0.0), worker)


def holding(task: Task, paid: Ints) -> Ints:
    """The schedule, with workers added before each tick that misses what could be met."""
    may_miss, near = unavoidable(task), math.ceil(task.start + (task.within or 0.0)) + 1
    tried: Counter[int] = Counter()
    while (missed := np.flatnonzero(violated(task, paid) & ~may_miss)).size:
        # Misses that lie apart are mended together: each look at the whole series takes a while.
        for first in missed[np.diff(missed, prepend=-near - 1) > near].tolist():
            # The same tick again: more workers, then also earlier, at last as many as there may be.
            earlier, more = divmod(tried[first], TRIES)
            reach = slice(max(1, first - (math.ceil(task.start) + 1) * 2**earlier), first + 1)
            paid[reach] = task.most if earlier > 1 else np.minimum(paid[reach] + 2**more, task.most)
            tried[first] += 1
    return paid
