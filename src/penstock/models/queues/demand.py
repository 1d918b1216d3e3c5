"""Service time of an operator: a line through CPU seconds and rows of many intervals (paper 4 §VII)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats

# Rows that vary less than this share of their mean tell nothing of CPU that is used without rows.
VARIES = 0.02


@dataclass(frozen=True, slots=True)
class Demand:
    """CPU seconds = idle · seconds + mean · rows."""

    mean_s: float
    """CPU time of a row."""
    error_s: float
    """Its standard error; infinite for a single interval."""
    idle: float
    """Cores that are busy without rows; 0 where the rows do not vary enough to tell."""


def learn_demand(rows: Sequence[float], cpu_s: Sequence[float], span_s: float) -> Demand:
    """Least squares over intervals of `span_s` seconds.

    >>> learn_demand([0, 100, 200], [0.1, 1.1, 2.1], span_s=10.0)
    Demand(mean_s=0.01, error_s=0.0, idle=0.01)
    """
    x, y = np.asarray(rows, dtype=np.float64), np.asarray(cpu_s, dtype=np.float64)
    _check(x, y, span_s)
    if len(x) < 3 or x.std() < VARIES * x.mean():
        slope, base = float(x @ y / (x @ x)), 0.0
    else:
        slope = float(((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) @ (x - x.mean())))
        base = float(y.mean() - slope * x.mean())
        if base < 0:  # no CPU comes back while nothing is done
            slope, base = float(x @ y / (x @ x)), 0.0
    if not slope > 0:
        raise BadInput("demand: CPU time does not grow with the rows; give intervals with more and with fewer rows")
    spread = x - x.mean() if base else x
    free = len(x) - (2 if base else 1)
    rest = y - base - slope * x
    error = math.sqrt(float(rest @ rest) / free / float(spread @ spread)) if free > 0 else math.inf
    return Demand(round(slope, 12), round(error, 12), round(base / span_s, 12))


def _check(x: Floats, y: Floats, span_s: float) -> None:
    if len(x) != len(y):
        raise BadInput(f"demand: {len(x)} counts of rows and {len(y)} CPU times; they must be as many")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (x >= 0).all() and (y >= 0).all()):
        raise BadInput("demand: rows and CPU seconds must be finite and not negative")
    if not x.any():
        raise BadInput("demand: no rows in any interval")
    if not span_s > 0:
        raise BadInput(f"demand: intervals of {span_s:g} s; they must be above 0")
