"""A load at another interval: longer ones add up, shorter ones share evenly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.core.bounds import INTERVALS_MOST, TICK_LEAST_S, between
from penstock.core.errors import BadInput
from penstock.core.units import show_duration
from penstock.sim.workloads import Load


def resampled(load: Load, tick_s: float, what: str = "--tick") -> tuple[Load, str | None]:
    """The load in intervals of `tick_s`, and what a reader should know of it.

    >>> load, note = resampled(Load.of(np.array([60.0, 120.0, 30.0, 0.0]), 60.0), 120.0)
    >>> load.arrivals.tolist(), note
    ([180.0, 30.0], 'intervals of 60 s were added up to 2 min')
    """
    between(what, tick_s, TICK_LEAST_S)
    coarser = tick_s >= load.tick_s
    ratio = tick_s / load.tick_s if coarser else load.tick_s / tick_s
    whole = round(ratio)
    if abs(ratio - whole) > 1e-6 * ratio:
        near_s = load.tick_s * whole if coarser else load.tick_s / whole
        raise BadInput(
            f"{what} {show_duration(tick_s)}: the load's intervals are {show_duration(load.tick_s)}, and neither is a "
            f"multiple of the other: {near_s:g} s is"
        )
    if whole == 1:
        return load, None
    return _added(load, tick_s, whole) if coarser else _shared(load, tick_s, whole)


def _added(load: Load, tick_s: float, whole: int) -> tuple[Load, str]:
    # The first interval begins where the load does; one of which nothing is known stays a gap.
    places = np.round(load.times_s / load.tick_s - 1).astype(np.int64) // whole
    found, firsts, counts = np.unique(places, return_index=True, return_counts=True)
    arrivals = np.add.reduceat(load.arrivals, firsts)
    note = f"intervals of {show_duration(load.tick_s)} were added up to {show_duration(tick_s)}"
    short = int((counts < whole).sum())
    if short:
        note += f"; {short} of {len(found)} lack some, so that their arrivals are a lower bound"
    times_s = (found.astype(np.float64) + 1.0) * tick_s
    return replace(load, arrivals=arrivals, times_s=times_s, tick_s=tick_s), note


def _shared(load: Load, tick_s: float, whole: int) -> tuple[Load, str]:
    if len(load.arrivals) * whole > INTERVALS_MOST:
        raise BadInput(
            f"--tick {show_duration(tick_s)} makes {len(load.arrivals) * whole:,} intervals: "
            f"a replay takes {INTERVALS_MOST:,} at most"
        )
    ends_s = np.arange(1 - whole, 1) * tick_s
    times_s = (load.times_s[:, None] + ends_s).ravel()
    note = f"arrivals of {show_duration(load.tick_s)} were spread evenly over {show_duration(tick_s)}: bursts are lost"
    arrivals = np.repeat(load.arrivals / whole, whole)
    return replace(load, arrivals=arrivals, times_s=times_s, tick_s=tick_s), note
