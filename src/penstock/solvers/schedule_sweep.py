"""Sweeps over a tube: forward for the least cost, and back for the worker counts that reach it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.solvers.schedule import Floats, Ints, OnProgress, silent
from penstock.solvers.schedule_tube import Prices, Tube

FAR = 1e18
# 128 ticks share one array: shorter ones cost more set-up, longer ones are as wide as their widest tick.
STRETCH = 128


def least_cost(tube: Tube, prices: Prices, told: OnProgress = silent) -> float:
    """The least cost of serving all in time, without the least number of workers, which is always paid."""
    state = opening(tube)
    for begin in range(1, tube.task.ticks, STRETCH):
        stretch = Stretch(tube, prices, begin)
        state = stretch.run(state)
        told(stretch.end / tube.task.ticks)
    return float(state[:, -1].min())


def cheapest(tube: Tube, prices: Prices, told: OnProgress = silent) -> tuple[float, Ints]:
    """The same least cost, and the workers that serve from within each tick on."""
    begins = range(1, tube.task.ticks, STRETCH)
    states = [opening(tube)]
    for begin in begins:
        states.append(Stretch(tube, prices, begin).run(states[-1]))
        told(0.5 * begin / tube.task.ticks)
    wanted = np.full(tube.task.ticks, tube.task.at_start, dtype=np.int64)
    last = states.pop()
    row, cells = int(last[:, -1].argmin()), last.shape[1] - 1
    cost = float(last[row, cells])
    for begin in reversed(begins):
        stretch = Stretch(tube, prices, begin)
        stretch.kept = []
        stretch.run(states[-1])
        for tick in range(stretch.end - 1, begin - 1, -1):
            wanted[tick] = tube.task.least + row
            row, cells = stretch.before(tick, row, cells)
        row, cells = stretch.entered(states.pop(), row, cells)
        told(1 - 0.5 * begin / tube.task.ticks)
    return cost, wanted


def states(tube: Tube) -> float:
    """How many states a sweep looks at."""
    cuts = range(1, tube.task.ticks, STRETCH) or [0]
    rows = np.maximum.reduceat(tube.tops, cuts) - tube.task.least + 1.0
    cells = np.maximum.reduceat(tube.room, cuts) + np.maximum.reduceat(tube.arrivals, cuts) + 1.0
    return float(STRETCH * (rows * cells).sum())


def opening(tube: Tube) -> Floats:
    """After the first tick: the workers at the start, and what they left."""
    task = tube.task
    state = np.full((task.most - task.least + 1, int(tube.room[0]) + 1), FAR)
    row = min(max(task.at_start, task.least), task.most) - task.least
    state[row, min(tube.backlog, int(tube.room[0])) :] = 0.0
    return state


@dataclass(frozen=True, eq=False)
class Kept:
    """Costs before a tick, and within it before its starts."""

    source: Floats
    middle: Floats


class Stretch:
    """Some ticks that share their arrays. `costs[workers, backlog]` is the least cost with so much backlog or less.

    Within a tick: stop workers (free); serve the first part; start workers; serve the second part.
    """

    def __init__(self, tube: Tube, prices: Prices, begin: int) -> None:
        self.tube, self.begin = tube, begin
        self.end = end = min(tube.task.ticks, begin + STRETCH)
        ticks = slice(begin, end)
        low = tube.task.least
        top = int(tube.tops[ticks].max())
        self.rows = rows = top - low + 1
        self.width = max(int(tube.room[begin - 1 : end].max()), tube.blank) + 1
        # Room on the left stands for backlogs below zero: no state at all.
        self.pad = int(tube.arrivals[ticks].max())
        self.reach = self.width + self.pad
        self.costs = np.full((rows, self.pad + self.width), FAR)
        self.middle = np.empty((rows, self.reach))
        self.middle_ends = np.arange(1, rows + 1)[:, None] * self.reach - 1
        self.columns, self.index = np.arange(self.reach), np.empty((rows, self.reach), dtype=np.int64)
        self.kept: list[Kept] | None = None
        first, second = (gain[:, :rows] for gain in tube.gains(ticks))
        offsets = np.arange(rows) * self.costs.shape[1] + self.pad
        self.from_before = offsets + first - tube.arrivals[ticks, None]
        self.limits = offsets + np.maximum(tube.room[begin - 1 : end - 1], tube.blank)[:, None]
        self.from_middle = np.arange(rows) * self.reach + second
        _, part = tube.task.delay
        hold, start = (price[ticks, low : top + 1] for price in (prices.hold, prices.start))
        self.price_first = part * hold - start
        self.price_second = (1 - part) * hold + start
        self.first_start = tube.task.delay[0] + 1

    def run(self, state: Floats) -> Floats:
        """From the costs before the first tick to those after the last."""
        costs = self.costs[:, self.pad :]
        if len(state) > self.rows:
            # More workers than are of use here: they stop before the first tick.
            state = state.copy()
            self._switch(state[self.rows - 1 :][::-1])
        rows, width = min(self.rows, state.shape[0]), min(self.width, state.shape[1])
        costs[:rows, :width] = state[:rows, :width]
        for tick in range(self.begin, self.end):
            self._step(tick)
        return costs[:, : int(self.tube.room[self.end - 1]) + 1].copy()

    def _step(self, tick: int) -> None:
        at, costs, middle = tick - self.begin, self.costs[:, self.pad :], self.middle
        room = int(self.tube.room[tick - 1])
        if self.tube.blank:
            self._count_empty_as_waiting(costs, room)
        elif not self.tube.exact:
            costs[:, room + 1 : room + 2] = costs[:, room : room + 1]
        source = self.costs.copy() if self.kept is not None else self.costs
        self._switch(costs[::-1])
        index = np.add(self.columns, self.from_before[at][:, None], out=self.index)
        np.minimum(index, self.limits[at][:, None], out=index)
        self.costs.reshape(-1).take(index, out=middle, mode="clip")
        middle += self.price_first[at][:, None]
        if self.kept is not None:
            self.kept.append(Kept(source, middle.copy()))
        if tick >= self.first_start:
            self._switch(middle)
        index = np.minimum(self.columns[: self.width] + self.from_middle[at][:, None], self.middle_ends)
        np.add(middle.reshape(-1).take(index, mode="clip"), self.price_second[at][:, None], out=costs)
        if self.tube.sign < 0:
            self._revive(costs[:, int(self.tube.room[tick])], at)

    def _switch(self, costs: Floats) -> None:
        """The least cost over all rows so far: workers stop or start."""
        if self.tube.exact:
            np.minimum.accumulate(costs, axis=0, out=costs)
            return
        # A change of the worker count moves the rounding of the work by up to a cell.
        others = np.minimum.accumulate(costs, axis=0)[:-1]
        if self.tube.sign > 0:
            np.minimum(costs[1:, :-1], others[:, 1:], out=costs[1:, :-1])
            np.minimum(costs[1:, -1], others[:, -1], out=costs[1:, -1])
        else:
            np.minimum(costs[1:, 1:], others[:, :-1], out=costs[1:, 1:])

    def _count_empty_as_waiting(self, costs: Floats, room: int) -> None:
        blank = self.tube.blank
        if room < blank:
            costs[:, room + 1 : blank + 1] = costs[:, room][:, None]
        costs[:, :blank] = FAR

    def _revive(self, costs: Floats, at: int) -> None:
        """Go on where the rounding alone leaves no way; whether it holds is checked afterwards."""
        if costs.min() >= FAR:
            costs[:] = self.middle[:, -1] + self.price_second[at]

    def before(self, tick: int, row: int, cells: int) -> tuple[int, int]:
        """Workers and backlog before a tick that ends with these, at the least cost."""
        assert self.kept is not None
        at, kept = tick - self.begin, self.kept[tick - self.begin]
        here = min(cells + int(self.from_middle[at, row]) - row * self.reach, self.reach - 1)
        rows = slice(0, row + 1) if tick >= self.first_start else slice(row, row + 1)
        came, here = self._came(kept.middle[rows], here, row - rows.start)
        came += rows.start
        there = min(here + int(self.from_before[at, came]), int(self.limits[at, came])) - came * self.costs.shape[1]
        begun, there = self._came(kept.source[came:], there, 0)
        # An empty queue was counted as waiting, where there may have been no room for that.
        return came + begun, min(max(0, there - self.pad), int(self.tube.room[tick - 1]))

    def entered(self, state: Floats, row: int, cells: int) -> tuple[int, int]:
        """Where the state before the first tick stood, given what was made of it."""
        cells = min(cells, state.shape[1] - 1)
        begun, cells = self._came(state[row:], cells, 0)
        return row + begun, cells

    def _came(self, costs: Floats, column: int, stay: int) -> tuple[int, int]:
        """The cheapest row to have come from, and its column; to stay where that costs no more."""
        move = 0 if self.tube.exact else self.tube.sign
        other = min(max(column + move, 0), costs.shape[1] - 1)
        best = int(costs[:, other].argmin())
        if costs[stay, column] <= costs[best, other]:
            return stay, column
        return best, other
