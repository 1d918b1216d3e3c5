"""Events through one server, first come, first served, and their response times in bins: loops that are compiled.

The server's state is an array, so that a stretch of time can end within a service: `FREE` when it is done with the
event before, `SPENT` core-seconds that the first event in line has had already, `WORKED` core-seconds in all, and of a
quota the number of its `PERIOD` and what of it is `USED`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from penstock.core.responses import LEAST, RATIO, bin_of
from penstock.models.compiled import compiled
from penstock.models.markov.chains import Floats

Numbers = npt.NDArray[np.int64]
Cells = tuple[Numbers, Floats, int, int]
Terms = tuple[float, float, float, float]
"""Speed while it runs, until when; of a quota, its seconds in each period, and the period."""

FREE, SPENT, WORKED, PERIOD, USED = range(5)
# A cell is an exponent and the first 7 bits of a mantissa: 0.8 % wide at most, so it has one edge of a bin of 5 %.
SHIFT = 52 - 7
# From a nanosecond's part of the unit to 30,000 years of seconds.
MOST = 1e12
BLOCK = 1024
_ROUNDING = 1e-9


@compiled
def at_speed(came_s: Floats, work_s: Floats, state: Floats, terms: Terms, ends_s: Floats) -> int:
    """Serve at a speed until a time; `ends_s` gets when each is done. Returns how many are."""
    speed, until_s, _, _ = terms
    free, spent, worked, pace = state[0], state[1], state[2], 1 / speed
    for k in range(len(came_s)):
        begin = max(free, came_s[k])
        left = work_s[k] - spent
        end = begin + left * pace
        if end > until_s:
            had = max(0.0, until_s - begin) * speed
            state[0], state[1], state[2] = max(until_s, free), spent + had, worked + had
            return k
        ends_s[k] = free = end
        worked += left
        spent = 0.0
    state[0], state[1], state[2] = free, spent, worked
    return len(came_s)


@compiled
def in_quota(came_s: Floats, work_s: Floats, state: Floats, terms: Terms, ends_s: Floats) -> int:
    """The same with a quota: within a period it runs until its seconds are used up, then it stands still."""
    speed, until_s, quota_s, period_s = terms
    rounding = 1e-12 * period_s
    clock, spent, worked, period, used = state
    done = 0
    while done < len(came_s):
        clock = max(clock, came_s[done])
        if np.floor(clock / period_s) > period:
            period, used = np.floor(clock / period_s), 0.0
        left_s, next_s = (work_s[done] - spent) / speed, (period + 1) * period_s
        can_s = max(0.0, min(quota_s - used, next_s - clock))
        ends = left_s <= can_s + rounding
        runs_s = left_s if ends else can_s
        if clock + runs_s > until_s:
            runs_s, ends = max(0.0, until_s - clock), False
            clock, next_s = until_s, until_s
        else:
            clock = clock + runs_s if ends else next_s
        spent, worked, used = spent + runs_s * speed, worked + runs_s * speed, used + runs_s
        if ends:
            ends_s[done] = clock
            done, spent = done + 1, 0.0
        elif clock >= until_s:
            break
        else:
            period, used = period + 1, 0.0
    state[:] = np.array([clock, spent, worked, period, used])
    return done


@compiled
def bin_responses(ends_s: Floats, since: tuple[Numbers, Floats, float], table: Cells, counts: Numbers) -> float:
    """Count responses by bin; returns their sum in seconds. `since`: who each is, when each arrived, the unit."""
    who, times_s, unit_s = since
    bins, edges, first_cell, first_bin = table
    least, most, total, per_unit = LEAST, MOST, 0.0, 1 / unit_s
    block = np.empty(BLOCK)
    cells = block.view(np.int64)
    for begin in range(0, len(ends_s), BLOCK):
        size = min(BLOCK, len(ends_s) - begin)
        for k in range(size):
            took = ends_s[begin + k] - times_s[who[begin + k]]
            total += took
            block[k] = min(max(took * per_unit, least), most)
        for k in range(size):
            cell = (cells[k] >> SHIFT) - first_cell
            counts[bins[cell] - first_bin + (block[k] > edges[cell])] += 1
    return total


@cache
def bin_table() -> Cells:
    """For each cell the bin of its low end and that bin's upper edge; the first cell's number, and the first bin's."""
    low, high = (int(np.array([value]).view(np.int64)[0]) >> SHIFT for value in (LEAST, MOST))
    starts = (np.arange(low, high + 1, dtype=np.int64) << SHIFT).view(np.float64)
    bins = np.array([bin_of(start) for start in np.maximum(starts, LEAST).tolist()], dtype=np.int64)
    # `bin_of` rounds a logarithm: its edges lie this much above powers of 1.05.
    edges = np.exp((bins + _ROUNDING) * math.log(RATIO))
    return bins, edges, low, int(bins[0])


def bin_counts() -> Numbers:
    """No responses yet."""
    bins, _, _, first = bin_table()
    return np.zeros(int(bins[-1]) - first + 2, dtype=np.int64)


def by_bin(counts: Numbers) -> dict[int, float]:
    """Counts by the number of their bin."""
    first = bin_table()[3]
    return {first + int(place): float(counts[place]) for place in np.flatnonzero(counts)}
