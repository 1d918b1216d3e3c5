"""How well a forecaster would have done: each forecast made from what lay before it, errors by distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.core.bounds import between
from penstock.core.errors import BadInput
from penstock.models.forecast import Forecast, Forecaster, checked


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors of forecasts some steps ahead. Ratios, not percent; None: it cannot be told."""

    step: int | None
    """How far ahead, from 1; None: all distances together."""
    count: int
    mae: float
    """Mean absolute error, in the unit of the series."""
    mape: float | None
    """Mean of |error| / truth, over the steps in which the truth was above zero."""
    wape: float | None
    """Sum of |error| over the sum of the truth: steps with little count little."""
    mase: float | None
    """Mean absolute error, to that of "the last value" one step ahead before the backtest begins."""
    coverage: float | None
    """Part of the truth that lay within its interval, where both bounds were known."""
    banded: int
    """Forecasts that had such an interval."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """What was found, by distance and over all."""

    begin: int
    """The first value that was forecast."""
    by_step: tuple[Accuracy, ...]
    total: Accuracy


def backtest(
    series: Sequence[float], forecaster: Forecaster, ahead: int, begin: int | None = None, every: int = 1
) -> Backtest:
    """Accuracy of a fresh forecaster on a series: without `begin`, on its last third; a forecast `every` some steps.

    >>> from penstock.models.forecast import caf
    >>> found = backtest([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], caf(), ahead=2)
    >>> found.begin, [each.mae for each in found.by_step], found.total.count
    (4, [1.0, 2.0], 3)
    """
    values = [checked(value) for value in series]
    begin = _begin(len(values), ahead, begin)
    between("every", every, 1)
    made: list[tuple[int, Forecast]] = []
    for position, value in enumerate(values, start=1):
        forecaster.note(value)
        if begin <= position < len(values) and (position - begin) % every == 0:
            made.append((position, forecaster.ahead(ahead)))
    steps = [abs(after - before) for before, after in pairwise(values[:begin])]
    scale = sum(steps) / len(steps) if steps else 0.0
    pairs = [_pairs(values, made, step) for step in range(ahead)]
    by_step = tuple(_accuracy(step + 1, found, scale) for step, found in enumerate(pairs) if found)
    return Backtest(begin, by_step, _accuracy(None, [pair for found in pairs for pair in found], scale))


_Pair = tuple[float, float, float | None, float | None]
"""Truth, forecast, and the bounds of its interval."""


def _begin(length: int, ahead: int, begin: int | None) -> int:
    between("steps ahead", ahead, 1)
    begin = math.ceil(length * 2 / 3) if begin is None else begin
    if not 1 <= begin < length:
        raise BadInput(f"a series of {length} values cannot be forecast from value {begin} on: from 1 to {length - 1}")
    return begin


def _pairs(values: Sequence[float], made: Sequence[tuple[int, Forecast]], step: int) -> list[_Pair]:
    return [
        (values[position + step], forecast[step], forecast.lower[step], forecast.upper[step])
        for position, forecast in made
        if position + step < len(values)
    ]


def _accuracy(step: int | None, pairs: Sequence[_Pair], scale: float) -> Accuracy:
    truth, forecast = (np.array([pair[part] for pair in pairs], dtype=float) for part in (0, 1))
    errors, positive = np.abs(forecast - truth), truth > 0
    mae = float(errors.mean())
    mape = float((errors[positive] / truth[positive]).mean()) if positive.any() else None
    wape = float(errors.sum() / truth.sum()) if positive.any() else None
    within = [low <= true <= high for true, _, low, high in pairs if low is not None and high is not None]
    coverage = sum(within) / len(within) if within else None
    return Accuracy(step, len(pairs), mae, mape, wape, mae / scale if scale else None, coverage, len(within))
