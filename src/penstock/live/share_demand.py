"""What a line costs each operator: CPU seconds against lines over short intervals, once it is warm (paper 4 §VII)."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.apps.logs import MATCHED, OPERATORS, PARSED
from penstock.core.errors import BadInput, ExternalError
from penstock.live.share_plant import Fleet, Reader
from penstock.models.queues.demand import Demand, learn_demand

log = logging.getLogger("penstock")
EVERY_S = 1.0
LINES_LEAST = 100
ERROR_MOST = 0.25
# A cost has settled where two windows show no less than this part of the least before them: what compiled the code used
# 2.7 times a parser's own CPU in the first half minute; by that it was predicted 100 times too slow at a share of 40 %.
SETTLED, WINDOWS_LEAST, WINDOWS_MOST = 0.9, 3, 8
DONE_AT = {"parser": PARSED, "matcher": MATCHED}


@dataclass(frozen=True, slots=True)
class Interval:
    """What one operator did between two looks."""

    lines: float
    cpu_s: float
    span_s: float


def settled_demand(
    fleet: Fleet, reader: Reader, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Demand]:
    """Of window after window, until an operator's lines get no cheaper; of the last two together."""
    costs: dict[str, list[float]] = {name: [] for name in DONE_AT}
    windows: list[dict[str, list[Interval]]] = []
    while len(windows) < WINDOWS_MOST:
        windows.append(watched(fleet, reader, seconds, sleep))
        for name, intervals in windows[-1].items():
            costs[name].append(demand_of(intervals).mean_s)
        if len(windows) >= WINDOWS_LEAST and all(min(c[-2:]) >= SETTLED * min(c[:-2]) for c in costs.values()):
            break
    else:
        log.warning(
            "costs of a line are still falling after %.0f s: the last ones are taken, which errs on the safe side",
            WINDOWS_MOST * seconds,
        )
    return {name: demand_of([*windows[-2][name], *windows[-1][name]]) for name in DONE_AT}


def watched(
    fleet: Fleet, reader: Reader, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, list[Interval]]:
    """Of the operators that take lines one by one; those that count in batches are no queue of lines."""
    reader.take()
    times_s, used = [time.time()], [fleet.cpu_seconds()]
    while times_s[-1] - times_s[0] < seconds:
        sleep(EVERY_S)
        times_s.append(time.time())
        used.append(fleet.cpu_seconds())
    new, found = reader.take(), {}
    for name, role in DONE_AT.items():
        lines, _ = np.histogram(new[role].time_s, bins=times_s)
        if (came := int(lines.sum())) < LINES_LEAST:
            raise ExternalError(
                f"{came} lines were {role} within {seconds:.0f} s: {LINES_LEAST} are needed to learn costs"
            )
        cpu_s = np.diff([each[name] for each in used])
        found[name] = [Interval(*map(float, each)) for each in zip(lines, cpu_s, np.diff(times_s), strict=True)]
    return found


def demand_of(intervals: Sequence[Interval]) -> Demand:
    """The line through lines and CPU; where there is none, all CPU is put down to the lines."""
    # A second's worth of each: a look that came late is an interval of two, not a second with twice the idle CPU.
    rates, cores = [each.lines / each.span_s for each in intervals], [each.cpu_s / each.span_s for each in intervals]
    error_s = math.inf
    with contextlib.suppress(BadInput):  # CPU that falls as lines grow: what compiled the code used more than they did
        lined = learn_demand(rates, cores, span_s=1.0)
        if lined.error_s <= ERROR_MOST * lined.mean_s:
            return lined
        error_s = lined.error_s
    # Too steady a rate, or too busy a machine: that errs on the safe side.
    return Demand(sum(each.cpu_s for each in intervals) / sum(each.lines for each in intervals), error_s, 0.0)


def costs_s(demands: Mapping[str, Demand], least: float) -> dict[str, float]:
    """Seconds of a line at an operator that has its whole share.

    What it uses without lines is not there for lines: right at the least share, and above it on the safe side.

    >>> costs_s({"matcher": Demand(0.002, 0.0, 0.02)}, least=0.4)
    {'matcher': 0.004444444444}
    """
    found = {}
    for name, demand in demands.items():
        whole = OPERATORS[name].cores
        left = least * whole - demand.idle
        if left <= 0:
            raise BadInput(f"{name} uses {demand.idle:.3f} cores without lines: the least share, {least:.0%}, is less")
        found[name] = round(demand.mean_s / whole * least * whole / left, 12)
    return found
