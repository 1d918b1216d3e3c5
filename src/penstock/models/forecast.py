"""What comes next: forecasters of a rate or of a worker's speed, one step at a time (paper 3 §V-B)."""

from __future__ import annotations

import bisect
import math
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, overload

from penstock.core.bounds import SPAN_MOST_S, between
from penstock.core.errors import BadInput

Bounds = tuple[float | None, ...]
"""One for each step; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Forecast(Sequence[float]):
    """Expected values of the next steps, the nearest first, and where known an interval around each.

    >>> list(Forecast((3.0, 4.0))), Forecast((3.0, 4.0)).lower
    ([3.0, 4.0], (None, None))
    """

    values: tuple[float, ...]
    lower: Bounds = ()
    upper: Bounds = ()

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bounds = getattr(self, name) or (None,) * len(self.values)
            if len(bounds) != len(self.values):
                raise BadInput(f"a forecast of {len(self.values)} steps has {len(bounds)} {name} bounds")
            object.__setattr__(self, name, bounds)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: int | slice) -> float | Sequence[float]:
        return self.values[index]


class Forecaster(Protocol):
    """Told one value a step; asked for the next ones at any time. Asking changes nothing."""

    def note(self, value: float) -> None:
        """One step more, with what was measured in it."""

    def ahead(self, steps: int) -> Forecast:
        """The next steps; BadInput before the first value."""


def checked(value: float) -> float:
    """A value that can be a rate or a speed."""
    if not 0 <= value < math.inf:
        raise BadInput(f"a forecaster was told {value:g}: rates and speeds are finite and at least 0")
    return float(value)


def seen(values: Sequence[float] | deque[float], steps: int) -> None:
    """Refuse what nobody can forecast: from nothing, or no step at all."""
    between("steps ahead", steps, 1)
    if not values:
        raise BadInput("a forecast needs at least one value that was measured")


class WindowMean:
    """The mean of the last values for all steps to come: WAAF of paper 3 over 3 steps, CAF over 1.

    >>> forecaster = WindowMean(3)
    >>> for value in (1.0, 4.0, 6.0, 8.0): forecaster.note(value)
    >>> list(forecaster.ahead(2))
    [6.0, 6.0]
    """

    def __init__(self, window: int) -> None:
        between("window", window, 1)
        self._values: deque[float] = deque(maxlen=window)

    def note(self, value: float) -> None:
        self._values.append(checked(value))

    def ahead(self, steps: int) -> Forecast:
        seen(self._values, steps)
        return Forecast((statistics.fmean(self._values),) * steps)


class SeasonalNaive:
    """What was measured one season before; until a season is full, the last value.

    >>> forecaster = SeasonalNaive(season=3)
    >>> for value in (1.0, 2.0, 9.0, 1.5): forecaster.note(value)
    >>> list(forecaster.ahead(5))
    [2.0, 9.0, 1.5, 2.0, 9.0]
    """

    def __init__(self, season: int) -> None:
        between("season", season, 1)
        self._values: deque[float] = deque(maxlen=season)
        self._season = season

    def note(self, value: float) -> None:
        self._values.append(checked(value))

    def ahead(self, steps: int) -> Forecast:
        seen(self._values, steps)
        values = tuple(self._values) if len(self._values) == self._season else (self._values[-1],)
        return Forecast(tuple(values[step % len(values)] for step in range(steps)))


class Quantity(Enum):
    """What is forecast: of a rate less is favourable, of a speed more."""

    RATE = "rate"
    SPEED = "speed"


def average(forecast: Sequence[float]) -> float:
    return statistics.fmean(forecast)


def peak(forecast: Sequence[float]) -> float:
    return max(forecast)


def trough(forecast: Sequence[float]) -> float:
    return min(forecast)


Reading = Callable[[Sequence[float]], float]

OPTIMISTIC: Mapping[Quantity, Reading] = {Quantity.RATE: trough, Quantity.SPEED: peak}
PESSIMISTIC: Mapping[Quantity, Reading] = {Quantity.RATE: peak, Quantity.SPEED: trough}


class Flat:
    """One value for all steps to come, read from another forecaster's.

    >>> forecaster = Flat(SeasonalNaive(2), peak)
    >>> forecaster.note(3.0), forecaster.note(5.0)
    (None, None)
    >>> list(forecaster.ahead(3))
    [5.0, 5.0, 5.0]
    """

    def __init__(self, inner: Forecaster, reading: Reading) -> None:
        self._inner, self._reading = inner, reading

    def note(self, value: float) -> None:
        self._inner.note(value)

    def ahead(self, steps: int) -> Forecast:
        return Forecast((self._reading(self._inner.ahead(steps)),) * steps)


def caf() -> Forecaster:
    """Current after-the-fact: the last value, as a reactive scheduler has it."""
    return WindowMean(1)


def waaf(window: int = 3) -> Forecaster:
    """Windowed average after-the-fact: the plain mean of the last steps."""
    return WindowMean(window)


def wpa(inner: Forecaster) -> Forecaster:
    """Windowed predictive average: the mean of what is forecast."""
    return Flat(inner, average)


def wpo(inner: Forecaster, quantity: Quantity) -> Forecaster:
    """Windowed predictive optimistic: the lowest rate, or the highest speed, that is forecast."""
    return Flat(inner, OPTIMISTIC[quantity])


def wpp(inner: Forecaster, quantity: Quantity) -> Forecaster:
    """Windowed predictive pessimistic: the highest rate, or the lowest speed, that is forecast."""
    return Flat(inner, PESSIMISTIC[quantity])


class Banded:
    """Any forecaster with an interval around each step, learnt from its own errors at that distance.

    Half of the rest lies above and half below (split conformal quantiles). With n errors a bound is known from
    n + 1 ≥ 2 / (1 − share) on: 19 of them for 90 %. It holds as far as errors to come are like those of late.

    >>> forecaster = Banded(WindowMean(1), steps=1)
    >>> for step in range(40): forecaster.note(10.0 + step % 2)
    >>> forecaster.ahead(1).lower, forecaster.ahead(1).upper
    ((10.0,), (12.0,))
    """

    def __init__(self, inner: Forecaster, steps: int, share: float = 0.9, window: int = 500) -> None:
        between("steps", steps, 1, 100_000)
        between("share", share, 0.01, 0.999)
        between("window", window, 1, SPAN_MOST_S)
        self._inner, self._steps, self._rest = inner, steps, (1 - share) / 2
        self._made: deque[Forecast] = deque(maxlen=steps)
        self._errors: list[deque[float]] = [deque() for _ in range(steps)]
        self._sorted: list[list[float]] = [[] for _ in range(steps)]
        self._window = window

    def note(self, value: float) -> None:
        for distance, made in enumerate(reversed(self._made)):
            self._learn(distance, value - made[distance])
        self._inner.note(value)
        self._made.append(self._inner.ahead(self._steps))

    def _learn(self, distance: int, error: float) -> None:
        # Kept in order as they come: 500 of them sorted anew for each step took half of a backtest.
        errors, in_order = self._errors[distance], self._sorted[distance]
        errors.append(error)
        bisect.insort(in_order, error)
        if len(errors) > self._window:
            del in_order[bisect.bisect_left(in_order, errors.popleft())]

    def ahead(self, steps: int) -> Forecast:
        values = self._inner.ahead(steps)
        pairs = [self._bounds(step, value) for step, value in enumerate(values)]
        return Forecast(values.values, tuple(low for low, _ in pairs), tuple(high for _, high in pairs))

    def _bounds(self, step: int, value: float) -> tuple[float | None, float | None]:
        errors = self._sorted[step] if step < self._steps else []
        # The k-th smallest of n errors is undercut by the next one with a chance of k / (n + 1).
        rank = math.floor(self._rest * (len(errors) + 1) + 1e-9)
        if rank < 1:
            return None, None
        return max(0.0, value + errors[rank - 1]), max(0.0, value + errors[-rank])
