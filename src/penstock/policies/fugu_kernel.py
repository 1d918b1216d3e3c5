"""Paper 2's cost function as one compiled loop: what `fugu_scaler` does, on whole numbers by column.

A test holds it against the control loop over the same window: both must agree to the last digit.
"""

from __future__ import annotations

import numpy as np

from penstock.models.compiled import compiled_with
from penstock.policies.fugu_packing import (
    GRACE,
    LOWER,
    LOWER_TICKS,
    PARTS,
    UPPER,
    UPPER_TICKS,
    WORDS,
    Arrays,
    Fill,
    Ints,
    Work,
    fresh,
    keep,
    pack,
)
from penstock.policies.fugu_settings import MEMORY_LIMIT, NETWORK_LIMIT, SATURATED

_HOSTS, _HOSTS_LEAST, _HOSTS_MOST, _BOUND, _ANY, _MORE = range(6)


def _leave(host: int, row: Ints, hard: Ints, work: Work) -> None:
    """Mark who leaves an overloaded host."""
    which = 0
    while work.over[which, host] < row[UPPER_TICKS]:
        which += 1
    room, count = work.fill.limits[which] * 9 // 10, 0
    for operator in hard:
        if work.fill.place[operator] != host:
            continue
        if fresh(operator, work.fill):
            work.items[count] = operator
            work.weights[count] = work.fill.now[which, operator]
            count += 1
        else:
            room -= work.fill.now[which, operator]
    keep(work.weights, count, max(room, 0), work.bits, work.kept)
    for index in range(count):
        if not work.kept[index]:
            work.leaving[work.items[index]] = 1


def _close_hot(hosts: int, row: Ints, work: Work) -> int:
    """Close the hosts that are overloaded and may be touched; how many?"""
    hot = 0
    for host in range(hosts):
        work.fill.closed[host] = 0
        longest = max(work.over[0, host], work.over[1, host], work.over[2, host])
        if work.free[host] and longest >= row[UPPER_TICKS]:
            work.fill.closed[host] = 1
            hot += 1
    return hot


def _relieve(hosts: int, row: Ints, t: int, window: Arrays, work: Work) -> tuple[int, int]:
    """Operators leave overloaded hosts; returns the hosts there are then, and how many operators moved."""
    if not _close_hot(hosts, row, work):
        return hosts, 0
    work.leaving[:] = 0
    for host in range(hosts):
        if work.fill.closed[host]:
            _leave(host, row, window.hard[t], work)
    work.many[0] = 0
    for operator in range(len(work.fill.place)):
        if work.leaving[operator]:
            work.moved[work.many[0]] = operator
            work.many[0] += 1
    hosts, placed = pack(hosts, window.facts[_HOSTS_MOST], row, window, work)
    for operator in range(len(work.fill.place)):
        if work.fill.place[operator] != work.before[operator]:
            work.resting[work.fill.place[operator]] = row[GRACE]
            work.resting[work.before[operator]] = row[GRACE]
    return hosts, placed


def _least_loaded(hosts: int, work: Work) -> int:
    """The host that is closed to be released, the youngest of equals, or -1."""
    least = -1
    for host in range(hosts - 1, -1, -1):
        work.fill.closed[host] = 0
        if work.free[host] and (least < 0 or work.fill.load[0, host] < work.fill.load[0, least]):
            least = host
    if least >= 0:
        work.fill.closed[least] = 1
    return least


def _release(hosts: int, row: Ints, t: int, window: Arrays, work: Work) -> int:
    """The host that goes, or -1; its operators are placed elsewhere then."""
    least = _least_loaded(hosts, work)
    if least < 0:
        return -1
    count, peak, queries = 0, 0, 0
    work.touched[:] = 0
    for operator in range(len(work.fill.place)):
        if work.fill.place[operator] == least:
            work.moved[count] = operator
            count += 1
            peak = max(peak, window.peaks[t, operator])
            queries += 1 - work.touched[window.query[operator]]
            work.touched[window.query[operator]] = 1
    late = window.latency[t].sum() + peak * queries
    if count and window.facts[_BOUND] >= 0 and late >= window.facts[_BOUND] * len(work.touched):
        return -1
    work.many[0] = count
    _, placed = pack(hosts, hosts, row, window, work)
    if placed < count:
        work.fill.place[:] = work.before
        return -1
    for index in range(count):
        work.resting[work.fill.place[work.moved[index]]] = row[GRACE]
    return least


def _without(gone: int, hosts: int, work: Work) -> int:
    """Close the gap that a released host leaves."""
    for host in range(gone, hosts - 1):
        work.over[:, host] = work.over[:, host + 1]
        work.resting[host] = work.resting[host + 1]
    for operator in range(len(work.fill.place)):
        work.fill.place[operator] -= work.fill.place[operator] > gone
    return hosts - 1


def _late(t: int, is_full: bool, window: Arrays, work: Work) -> int:
    """Are the queries late on average (§3.3)?"""
    bound = window.facts[_BOUND]
    if bound < 0:
        return 0
    work.touched[:] = 0
    peak = 0
    for operator in range(len(work.fill.place)):
        if work.fill.place[operator] != work.before[operator]:
            work.touched[window.query[operator]] = 1
            peak = max(peak, window.peaks[t, operator])
    total = 0
    for query in range(len(work.touched)):
        latency = window.latency[t, query]
        slow = bound if is_full and work.slowed[query] else latency
        total += max(slow, latency + peak * work.touched[query])
    return 1 if total >= bound * len(work.touched) else 0


def _measure(hosts: int, window: Arrays, work: Work) -> bool:
    """Loads, counts and grace periods of one snapshot; is a host so full that its queries are late?"""
    resources = 3 if window.facts[_MORE] else 1
    is_full = False
    for resource in range(resources):
        now, load = work.fill.now[resource], work.fill.load[resource]
        load[:hosts] = 0
        for operator in range(len(work.fill.place)):
            load[work.fill.place[operator]] += now[operator]
        for host in range(hosts):
            work.over[resource, host] = work.over[resource, host] + 1 if load[host] > work.fill.limits[resource] else 0
    for host in range(hosts):
        work.free[host] = work.resting[host] == 0
        work.resting[host] -= work.resting[host] > 0
        is_full |= work.fill.load[0, host] > SATURATED
    if is_full:
        work.slowed[:] = 0
        for operator in range(len(work.fill.place)):
            if work.fill.load[0, work.fill.place[operator]] > SATURATED:
                work.slowed[window.query[operator]] = 1
    return is_full


def _run(row: Ints, window: Arrays, work: Work) -> tuple[int, int]:
    """Host intervals and violations of one configuration."""
    hosts, under, total, late = window.facts[_HOSTS], 0, 0, 0
    least, bound = max(1, window.facts[_HOSTS_LEAST]), window.facts[_BOUND]
    work.fill.place[:] = window.places
    work.over[:] = 0
    work.resting[:] = 0
    work.fill.limits[0] = row[UPPER]
    resources, queries = 3 if window.facts[_MORE] else 1, window.latency.shape[1]
    for t in range(len(window.loads)):
        work.fill.now[:resources] = window.loads[t, :resources]
        is_full = _measure(hosts, window, work)
        under = under + 1 if work.fill.load[0, :hosts].sum() <= row[LOWER] * hosts else 0
        work.before[:] = work.fill.place
        hosts, moved = _relieve(hosts, row, t, window, work)
        gone = -1
        if not moved and under >= row[LOWER_TICKS] and hosts > least:
            gone = _release(hosts, row, t, window, work)
        if is_full and window.facts[_ANY] and bound >= 0:
            late += 1
        elif is_full or moved or gone >= 0:
            late += _late(t, is_full, window, work)
        elif bound >= 0:
            late += window.latency[t].sum() >= bound * queries
        if gone >= 0:
            under, hosts = 0, _without(gone, hosts, work)
        total += hosts
    return total, late


_OWN = (_leave, _close_hot, _relieve, _least_loaded, _release, _without, _late, _measure, _run)


@compiled_with(*PARTS, *_OWN)
def evaluate(rows: Ints, window: Arrays) -> Ints:
    """Host intervals and violations of each configuration (`Settings.row`)."""
    operators, queries = len(window.places), window.latency.shape[1]
    # Nobody opens a host while an empty one has room, so there are never more than this.
    most = max(window.facts[_HOSTS], min(window.facts[_HOSTS_MOST], window.facts[_HOSTS] + 2 * operators))
    fill = Fill(
        place=np.zeros(operators, np.int64),
        load=np.zeros((3, most), np.int64),
        now=np.zeros((3, operators), np.int64),
        limits=np.array([0, MEMORY_LIMIT, NETWORK_LIMIT]),
        closed=np.zeros(most, np.int64),
    )
    work = Work(
        fill=fill,
        before=np.zeros(operators, np.int64),
        over=np.zeros((3, most), np.int64),
        resting=np.zeros(most, np.int64),
        free=np.zeros(most, np.int64),
        leaving=np.zeros(operators, np.int64),
        moved=np.zeros(operators, np.int64),
        many=np.zeros(1, np.int64),
        items=np.zeros(operators, np.int64),
        weights=np.zeros(operators, np.int64),
        kept=np.zeros(operators, np.int64),
        slowed=np.zeros(queries, np.int64),
        touched=np.zeros(queries, np.int64),
        bits=np.zeros((operators + 1, WORDS), np.uint64),
    )
    found = np.zeros((len(rows), 2), np.int64)
    for number in range(len(rows)):
        found[number, 0], found[number, 1] = _run(rows[number], window, work)
    return found
