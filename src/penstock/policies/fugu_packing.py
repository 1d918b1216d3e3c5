"""The loops of paper 2's cost function that choose: who stays on a host (subset sum), where the others go (packing).

They are compiled with `fugu_kernel`, whose machine code is kept by the time of that file alone: after a change here,
touch it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]
WORDS = 16  # of 64 bits: sums up to a host's 1000 thousandths
UPPER, LOWER, UPPER_TICKS, LOWER_TICKS, GRACE, BEST, DECREASING, NEIGHBOURS = range(8)
"""The columns of a configuration (`Settings.row`)."""


class Arrays(NamedTuple):
    """A window by column."""

    loads: Ints
    """[snapshot, resource, operator]: CPU, memory, network."""
    peaks: Ints
    """[snapshot, operator], ms."""
    latency: Ints
    """[snapshot, query], ms."""
    query: Ints
    hard: Ints
    """[snapshot]: operators, the largest state first."""
    near_from: Ints
    near: Ints
    """Neighbours of operator i are near[near_from[i] : near_from[i + 1]]."""
    places: Ints
    facts: Ints
    """Hosts, the fewest, the most, the bound in ms (-1: none), any overloaded host counts, more than CPU counts."""


class Fill(NamedTuple):
    """How full the hosts are; apart from the rest, as it goes to the innermost loops.

    A call counts references to each array of its arguments: with all of `Work` a ramp took a quarter longer.
    """

    place: Ints
    load: Ints
    """[resource, host]"""
    now: Ints
    """[resource, operator]: the loads of this snapshot."""
    limits: Ints
    closed: Ints
    """Hosts that take nothing now: overloaded, or to be released."""


class Work(NamedTuple):
    """What one evaluation writes on."""

    fill: Fill
    before: Ints
    """Where the operators were before this snapshot."""
    over: Ints
    resting: Ints
    free: Ints
    leaving: Ints
    moved: Ints
    """Operators to place, and how many."""
    many: Ints
    items: Ints
    weights: Ints
    kept: Ints
    slowed: Ints
    touched: Ints
    bits: Bits
    """For the last 0, 1, 2, … of some weights: the sums that they can reach."""


def _reach(weight: int, row: int, words: int, bits: Bits) -> None:
    """The sums that one more weight can reach: those without it, and the same shifted by it."""
    skip, shift = min(weight >> 6, words), np.uint64(weight & 63)
    few, more = bits[row], bits[row + 1]
    for word in range(skip):
        more[word] = few[word]
    if skip < words:
        more[skip] = few[skip] | few[0] << shift
    # Twice by half, as a shift by 64 is none.
    back = np.uint64(63) - shift
    for word in range(skip + 1, words):
        more[word] = few[word] | few[word - skip] << shift | few[word - skip - 1] >> np.uint64(1) >> back


def _has(bits: Bits, row: int, total: int) -> bool:
    found: bool = (bits[row, total >> 6] >> np.uint64(total & 63)) & np.uint64(1) != 0
    return found


def keep(weights: Ints, count: int, limit: int, bits: Bits, kept: Ints) -> None:
    """Subset sum: kept[i] = 1 for the largest sum within the limit that keeps the earlier ones.

    What few of the last weights can reach, more can, too. So a row is made only when the rows so far lack a sum:
    of 35 weights a dozen usually do.
    """
    words, made, left = (limit >> 6) + 1, 0, limit
    bits[0, :words] = 0
    bits[0, 0] = 1
    while made < count and not _has(bits, made, limit):
        _reach(weights[count - 1 - made], made, words, bits)
        made += 1
    while not _has(bits, made, left):
        left -= 1
    for index in range(count):
        kept[index], later = 0, count - 1 - index
        rest = left - weights[index]
        if rest < 0:
            continue
        while made < later and not _has(bits, made, rest):
            _reach(weights[count - 1 - made], made, words, bits)
            made += 1
        if _has(bits, min(made, later), rest):
            kept[index] = 1
            left = rest


def _fits(operator: int, host: int, fill: Fill) -> bool:
    load, now, limits = fill.load, fill.now, fill.limits
    cpu: bool = load[0, host] + now[0, operator] <= limits[0]
    memory: bool = load[1, host] + now[1, operator] <= limits[1]
    network: bool = load[2, host] + now[2, operator] <= limits[2]
    return cpu and memory and network


def _beside(operator: int, best: int, near: Ints, fill: Fill) -> int:
    """The host for an operator among those that run a neighbour of it, or -1."""
    load, found = fill.load[0], -1
    for neighbour in near:
        host = fill.place[neighbour]
        if fill.closed[host] or not _fits(operator, host, fill):
            continue
        if found < 0:
            found = host
        elif best and load[host] != load[found]:
            found = host if load[host] > load[found] else found
        else:
            found = min(found, host)
    return found


def _choose(operator: int, hosts: int, best: int, fill: Fill) -> int:
    """The open host for an operator, or -1."""
    load, found = fill.load[0], -1
    for host in range(hosts):
        if not fill.closed[host] and _fits(operator, host, fill):
            if not best:
                return host
            if found < 0 or load[host] > load[found]:
                found = host
    return found


def fresh(operator: int, fill: Fill) -> bool:
    """Would it fit on an empty host?"""
    now, limits = fill.now, fill.limits
    cpu: bool = now[0, operator] <= limits[0]
    return cpu and now[1, operator] <= limits[1] and now[2, operator] <= limits[2]


def _sort(work: Work) -> None:
    """The largest CPU first; of equals, the first in order."""
    moved, cpu = work.moved, work.fill.now[0]
    for index in range(1, work.many[0]):
        operator, at = moved[index], index
        while at and cpu[moved[at - 1]] < cpu[operator]:
            moved[at] = moved[at - 1]
            at -= 1
        moved[at] = operator


def pack(hosts: int, most: int, row: Ints, window: Arrays, work: Work) -> tuple[int, int]:
    """Place the operators of `moved`; returns the hosts there are then, and how many were placed."""
    if row[DECREASING]:
        _sort(work)
    fill, placed = work.fill, 0
    for index in range(work.many[0]):
        operator, host = work.moved[index], -1
        if row[NEIGHBOURS]:
            near = window.near[window.near_from[operator] : window.near_from[operator + 1]]
            host = _beside(operator, row[BEST], near, fill)
        if host < 0:
            host = _choose(operator, hosts, row[BEST], fill)
        if host < 0 and hosts < most and fresh(operator, fill):
            host = hosts
            hosts += 1
            for resource in range(3):
                fill.load[resource, host] = work.over[resource, host] = 0
            work.resting[host] = fill.closed[host] = 0
        if host >= 0:
            placed += 1
            fill.place[operator] = host
            for resource in range(3):
                fill.load[resource, host] += fill.now[resource, operator]
    return hosts, placed


PARTS = (_reach, _has, keep, _fits, _beside, _choose, fresh, _sort, pack)
