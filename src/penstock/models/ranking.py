"""Forecasters ranked on a series: each forecast made from what lay before it, each with a 90 % interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.errors import BadInput
from penstock.models.backtest import backtest
from penstock.models.forecast import Banded, Forecast, Forecaster, SeasonalNaive, WindowMean, checked, seen
from penstock.models.holt_winters import HoltWinters, Season
from penstock.models.outlook import Outlook

SHARE = 0.9
DAY_S, WEEK_S = 86400.0, 604800.0


class OutlookForecaster:
    """What the `deadline` policy expects of the same time: one rate for all of it (an online autoregression).

    >>> forecaster = OutlookForecaster(step_s=60.0, steps=5)
    >>> for _ in range(30): forecaster.note(10.0)
    >>> [round(value, 3) for value in forecaster.ahead(2)]
    [10.0, 10.0]
    """

    def __init__(self, step_s: float, steps: int) -> None:
        self._outlook, self._step_s = Outlook(step_s, steps * step_s), step_s
        self._values: list[float] = []

    def note(self, value: float) -> None:
        self._values = [checked(value)]
        self._outlook.note(value * self._step_s)

    def ahead(self, steps: int) -> Forecast:
        seen(self._values, steps)
        return Forecast((self._outlook.rate,) * steps)


@dataclass(frozen=True, slots=True)
class Ranked:
    """One forecaster on the last third of a series."""

    name: str
    mae: float
    """In the unit of the series, over all steps up to the horizon."""
    mase: float | None
    """To the error of "the last value" one step ahead before the backtest; None: that was always right."""
    wape: float | None
    coverage: float | None
    """Part of the truth within its 90 % interval; None: it never had one."""
    forecasts: int


def candidates(step_s: float, steps: int) -> Mapping[str, Callable[[], Forecaster]]:
    """Forecasters of a series of rates, by name."""
    day, week = max(1, round(DAY_S / step_s)), max(1, round(WEEK_S / step_s))
    return {
        "caf": lambda: WindowMean(1),
        "waaf": lambda: WindowMean(3),
        "outlook": lambda: OutlookForecaster(step_s, steps),
        "seasonal-naive": lambda: SeasonalNaive(day),
        "seasonal-naive-week": lambda: SeasonalNaive(week),
        "holt": lambda: HoltWinters(1, Season.NONE),
        "holt-winters": lambda: HoltWinters(day),
        "holt-winters-multiplicative": lambda: HoltWinters(day, Season.MULTIPLICATIVE),
    }


def ranked(
    values: Sequence[float], step_s: float, steps: int, done: Callable[[float], None] = lambda _: None
) -> list[Ranked]:
    """All forecasters, the least mean absolute error first; measured on the last third.

    >>> [each.name for each in ranked([5.0, 1.0, 9.0, 2.0] * 20, step_s=21600.0, steps=2)][:1]
    ['seasonal-naive']
    """
    begin = math.ceil(len(values) * 2 / 3)
    if len(values) - begin < steps:
        raise BadInput(
            f"{len(values)} steps of {step_s:g} s are too few: a third of them must be longer than the horizon "
            f"of {steps}; give a longer series, a shorter horizon or a shorter step"
        )
    found = []
    known = candidates(step_s, steps)
    for number, (name, make) in enumerate(known.items()):
        total = backtest(values, Banded(make(), steps, SHARE), steps).total
        found.append(Ranked(name, total.mae, total.mase, total.wape, total.coverage, total.count))
        done((number + 1) / len(known))
    return sorted(found, key=lambda each: each.mae)
