"""The best configuration for a recorded window: of the whole space of Table 1, or by recursive random search."""

from __future__ import annotations

import math

import numpy as np

from penstock.policies.fugu_kernel import evaluate
from penstock.policies.fugu_packing import Arrays, Ints
from penstock.policies.fugu_settings import HOST, SPACE, Settings
from penstock.solvers.packing import VARIANTS
from penstock.solvers.space import size

WHOLE = size(SPACE) or 0
# Rows of a few MB at a time.
AT_ONCE = 20_000
Best = tuple[int, int, int]
"""Violations, host intervals, and the number of the configuration, in the order of `grid(SPACE)`."""


def rows(begin: int, end: int) -> Ints:
    """Some configurations of the space as the compiled form takes them, in the order of `grid(SPACE)`.

    >>> rows(0, 2).tolist()[0] == list(settings_at(0).row())
    True
    """
    sizes = [len(axis.values()) for axis in SPACE.values()]
    places = dict(zip(SPACE, np.unravel_index(np.arange(begin, end), sizes), strict=True))
    ways = np.array([(int(way.best), int(way.decreasing), int(way.neighbours)) for way in VARIANTS.values()])

    def column(key: str, unit: int) -> Ints:
        values = np.array([round(unit * float(value)) for value in SPACE[key].values()], dtype=np.int64)
        return values[places[key]]

    thresholds = [column(key, HOST) for key in ("upper", "lower")]
    ticks = [column(key, 1) for key in ("upper_ticks", "lower_ticks", "grace_ticks")]
    return np.ascontiguousarray(np.column_stack([*thresholds, *ticks, ways[places["packing"]]]), dtype=np.int64)


def settings_at(number: int) -> Settings:
    """The configuration with a number."""
    sizes = [len(axis.values()) for axis in SPACE.values()]
    places = np.unravel_index(number, sizes)
    return Settings.at({key: axis.values()[place] for (key, axis), place in zip(SPACE.items(), places, strict=True)})


def best(window: Arrays, begin: int = 0, end: int = WHOLE) -> Best:
    """The best of some configurations, the first of equals: the fewest violations, then the fewest host intervals."""
    found: Best = (2**62, 2**62, -1)
    for first in range(begin, end, AT_ONCE):
        outcomes = evaluate(rows(first, min(end, first + AT_ONCE)), window)
        at = int(np.lexsort((outcomes[:, 0], outcomes[:, 1]))[0])
        found = min(found, (int(outcomes[at, 1]), int(outcomes[at, 0]), first + at))
    return found


def spans(parts: int, end: int = WHOLE) -> list[tuple[int, int]]:
    """The space in so many parts."""
    step = math.ceil(end / parts)
    return [(begin, min(end, begin + step)) for begin in range(0, end, step)]
