"""What a number may be: beyond these, somebody mistyped, and a program would ask for terabytes or hours."""

from __future__ import annotations

import math

from penstock.core.errors import BadInput

WORKERS_MOST = 10_000
TICK_LEAST_S = 0.01
SPAN_MOST_S = 1e9
"""Thirty years: the longest of anything that takes time."""
INTERVALS_MOST = 10_000_000
"""Nineteen years of minutes; a replay of so many takes five minutes or more."""
BATCHES_MOST = 20_000_000
"""Micro-batches of one replay: six years of one every 10 s, half an hour of work."""
EVENTS_MOST = 1e15
"""Events of one interval, or per second: sums of so many are still exact to one."""
EVENTS_LEAST = 1e-9
SEED_MOST = 2**53
PORT_MOST = 65535
PRICE_MOST = 1e9


def between(key: str, value: float, low: float, high: float = SPAN_MOST_S) -> None:
    """Refuse an impossible value, naming its key.

    >>> between("worker.cores", 0, 0.001, 1024)
    Traceback (most recent call last):
    penstock.core.errors.BadInput: worker.cores is 0: it must be from 0.001 to 1024
    """
    if not low <= value <= high or not math.isfinite(value):
        allowed = f"at least {low:g}" if value < low and high >= SPAN_MOST_S else f"from {low:g} to {high:g}"
        raise BadInput(f"{key} is {value:g}: it must be {allowed}")
