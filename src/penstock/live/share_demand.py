"""What a line costs each operator: CPU seconds against lines over short intervals, once it is warm (paper 4 §VII)."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from penstock.apps.logs import MATCHED, OPERATORS, PARSED
from penstock.core.errors import BadInput, ExternalError
from penstock.live.log_records import Records
from penstock.live.share_plant import Fleet, Reader
from penstock.models.queues.demand import Demand, learn_demand

EVERY_S = 1.0
LINES_LEAST = 100
ERROR_MOST = 0.25
# A cost has settled where two windows show no less than this part of the least before them: what compiled the code used
# 2.7 times a parser's own CPU in the first half minute; by that it was predicted 100 times too slow at a share of 40 %.
SETTLED, WINDOWS_LEAST, WINDOWS_MOST = 0.9, 3, 8
DONE_AT = {"parser": PARSED, "matcher": MATCHED}


def settled_demand(
    fleet: Fleet, reader: Reader, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Demand]:
    """The same in window after window, until an operator's lines get no cheaper; the last one's."""
    seen: dict[str, list[float]] = {name: [] for name in DONE_AT}
    for window in range(1, WINDOWS_MOST + 1):
        found = measured_demand(fleet, reader, seconds, sleep)
        for name, demand in found.items():
            seen[name].append(demand.mean_s)
        if window >= WINDOWS_LEAST and all(min(each[-2:]) >= SETTLED * min(each[:-2]) for each in seen.values()):
            break
    return found


def measured_demand(
    fleet: Fleet, reader: Reader, seconds: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Demand]:
    """Of the operators that take lines one by one; those that count in batches are no queue of lines."""
    reader.take()
    times_s, used = [time.time()], [fleet.cpu_seconds()]
    while times_s[-1] - times_s[0] < seconds:
        sleep(EVERY_S)
        times_s.append(time.time())
        used.append(fleet.cpu_seconds())
    new = reader.take()
    came = min(len(new[role].time_s) for role in DONE_AT.values())
    if came < LINES_LEAST:
        raise ExternalError(
            f"{came} lines were matched within {seconds:.0f} s: {LINES_LEAST} are needed to learn costs"
        )
    return {name: _demand([each[name] for each in used], times_s, new[role]) for name, role in DONE_AT.items()}


def _demand(used: Sequence[float], times_s: Sequence[float], records: Records) -> Demand:
    rows, _ = np.histogram(records.time_s, bins=times_s)
    span_s = float(np.mean(np.diff(times_s)))
    error_s = math.inf
    with contextlib.suppress(BadInput):  # CPU that falls as lines grow: what compiled the code used more than they did
        lined = learn_demand([float(each) for each in rows], list(np.diff(used)), span_s)
        if lined.error_s <= ERROR_MOST * lined.mean_s:
            return lined
        error_s = lined.error_s
    # Too steady a rate, or too busy a machine: all CPU is put down to the lines, which errs on the safe side.
    return Demand((used[-1] - used[0]) / float(rows.sum()), error_s, 0.0)


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
