"""The cheapest worker counts that serve every event in time: a dynamic programme over workers and backlog.

A worker is paid for what it serves plus one start, so the state is (workers that serve, backlog): the paid ones
need no memory. Backlog is counted in cells. Everything is rounded one way: in favour of the schedule, and the
result is a lower bound; against it, and the result is a schedule that holds. Cumulated work is rounded, never
work by work, so the error stays below a few cells however long the series is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d

from penstock.solvers.schedule import ROUNDING, Floats, Ints, Task, due, served, unavoidable

# Cumulated sums are known better than this part of a cell.
CELL_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Prices:
    """What it costs to have 0, 1, 2, … workers serve for a tick, and to start them."""

    hold: Floats
    """By tick and workers."""
    start: Floats

    @classmethod
    def by_time(cls, task: Task, waste: float = 0.0) -> Prices:
        """Every tick costs the same; a start costs its own time, and what it wastes besides."""
        extra = np.maximum(0.0, np.arange(task.most + 1.0) - task.least)
        shape = (task.ticks, task.most + 1)
        return cls(np.broadcast_to(extra, shape), np.broadcast_to((task.start + waste) * extra, shape))


@dataclass(frozen=True, eq=False)
class Tube:
    """The task in cells. `arrivals[k]` come in tick k, `room[k]` may wait at its end."""

    task: Task
    arrivals: Ints
    room: Ints
    tops: Ints
    """More workers than this are never of use in the tick."""
    cell: float
    sign: int
    """1: rounded in favour of the schedule; -1: against it."""
    exact: bool
    """Every capacity is a whole number of cells, so only arrivals are rounded."""
    backlog: int
    """After the first tick, which runs as it is."""

    @property
    def blank(self) -> int:
        """Cells that an empty queue counts as waiting, where rounding goes against the schedule."""
        return 0 if self.sign > 0 else 1 if self.exact else 2

    def narrowed(self) -> Tube:
        """The same without worker counts that a good schedule hardly ever needs: two above the busiest tick's."""
        wanted = np.searchsorted(self.task.capacity[: self.task.most + 1], self.task.arrivals) + 2
        busiest = maximum_filter1d(wanted, 2 * _bridge(self.task) + 1)
        return replace(self, tops=np.minimum(self.tops, np.maximum(busiest, max(self.task.least, 1))))

    def gains(self, ticks: slice) -> tuple[Ints, Ints]:
        """Cells that each number of workers serves in the first and second part of some ticks."""
        task = self.task
        whole, part = task.delay
        ends = np.arange(ticks.start, ticks.stop)[:, None]
        later = task.capacity[None, task.least : task.most + 1] / self.cell
        # Before the first request has started, the least number of workers may not be there yet.
        early = later.copy()
        early[0, 0] = min(early[0, 0], task.capacity[task.at_start] / self.cell)
        first = np.where(ends < whole + 2, early, later)
        second = np.where(ends < whole + 1, early, later)
        begun, split = self._whole(first * ends), self._whole(first * (ends + part))
        return split - begun, self._whole(second * (ends + 1)) - self._whole(second * (ends + part))

    def _whole(self, cells: Floats) -> Ints:
        if self.exact:
            return np.rint(cells).astype(np.int64)
        return rounded(cells, self.sign)


def rounded(cells: Floats, sign: int) -> Ints:
    """Whole cells, up or down."""
    return (np.ceil(cells - CELL_ROUNDING) if sign > 0 else np.floor(cells + CELL_ROUNDING)).astype(np.int64)


def needed(task: Task) -> Floats:
    """Events that must have been served by the end of each tick to meet this and all later deadlines."""
    wanted = np.where(unavoidable(task), 0.0, due(task))
    ahead = np.arange(task.ticks) * task.capacity[task.most]
    back = np.maximum.accumulate((wanted - ahead)[::-1])[::-1] + ahead
    return np.asarray(np.maximum.accumulate(np.maximum(back, 0.0)))


def tube(task: Task, cell: float, sign: int) -> Tube:
    """The task in cells, rounded in favour of the schedule (1) or against it (-1)."""
    exact = fits(task, cell)
    arrived = np.ceil(np.cumsum(task.arrivals) / cell - CELL_ROUNDING).astype(np.int64)
    if sign > 0 and not exact:
        arrived += 1
    wanted = np.ceil(needed(task) / cell - sign * CELL_ROUNDING).astype(np.int64)
    first = float(served(task, np.array([task.at_start], dtype=np.int64))[0]) if task.ticks else 0.0
    arrivals = np.diff(arrived, prepend=0)
    room = np.maximum(0, arrived - np.minimum(wanted, arrived))
    # Two cells more where capacities are rounded too: one for the first worker count, one for a forced first start.
    done = int(rounded(np.array([first / cell]), sign)[0]) + (0 if exact else 2 * sign)
    backlog = max(0, int(arrived[0]) - done)
    return Tube(task, arrivals, room, _tops(task, (room, arrivals), cell), cell, sign, exact, backlog)


@dataclass(frozen=True)
class Grid:
    """How finely backlog is counted."""

    cell: float
    """Events."""
    parts: int = 0
    """The start is rounded to so many parts of a tick, to make all capacities whole numbers of cells; 0: it is not."""

    def rounded(self, task: Task, sign: int) -> Task:
        """The task with a start that fits, shorter (1, in favour of a schedule) or longer (-1, against it).

        A worker that starts sooner serves no less and costs no more, so a bound for it holds for the task.
        """
        if not self.parts:
            return replace(task, excused=unavoidable(task))
        exact = self.parts * task.start
        start = math.floor(exact + ROUNDING) if sign > 0 else math.ceil(exact - ROUNDING)
        return replace(task, start=start / self.parts, excused=unavoidable(task))


def fits(task: Task, cell: float) -> bool:
    """Are all capacities whole numbers of cells?"""
    _, part = task.delay
    cells = np.concatenate([task.capacity * part, task.capacity]) / cell
    return bool(np.all(np.abs(cells - np.rint(cells)) < ROUNDING))


def _tops(task: Task, flow: tuple[Ints, Ints], cell: float) -> Ints:
    """As many workers as could serve all there is in what is left of a tick; more only to bridge a gap.

    A gap longer than a unit of billing and a start is never bridged: to stop and start again costs less.
    """
    room, arrivals = flow
    _, part = task.delay
    before = np.concatenate([room[:1], room[:-1]])
    wanted = (before + arrivals + 2) * cell / (1 - part)
    tops = np.minimum(np.searchsorted(task.capacity[: task.most + 1], wanted), task.most)
    return np.asarray(np.maximum(maximum_filter1d(tops, 2 * _bridge(task) + 1), max(task.least, 1)))


def _bridge(task: Task) -> int:
    return math.ceil(max(1.0, task.unit) + task.start) + 1
