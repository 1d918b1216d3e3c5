"""A forecaster that knows what comes, and errs as much as it is told to (paper 3 §VI-A2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from penstock.core.bounds import SEED_MOST, between
from penstock.core.errors import BadInput
from penstock.models.forecast import Bounds, Forecast, checked, seen

# The least that is forecast, as a part of the truth: the literal reading has a deviation of 45 % at an error of 20 %,
# so one draw in eighty would be below zero, and a speed of zero would ask for endless workers.
LEAST = 0.01
Z_90 = 1.6448536269514722


class Spread(Enum):
    """How "variance equal to e_i / 2" is read."""

    VARIANCE = "as printed: the variance is e/2, the deviation √(e/2)"
    DEVIATION = "the deviation is e/2"


@dataclass(frozen=True, slots=True)
class Errors:
    """How an oracle errs, in parts of the truth."""

    mean: float = 0.0
    """ê: the bound grows linearly from 0 in the first step of the interval to 2ê in the last."""
    bias: float = 0.0
    """Added to each error. On rates and speeds together it cancels: give it to the speeds alone."""
    spread: Spread = Spread.VARIANCE

    def __post_init__(self) -> None:
        between("error", self.mean, 0, 1)
        between("bias", self.bias, -0.99, 1)

    def bound(self, step: int, steps: int) -> float:
        """e_i of the step i = 0 … n of an interval: 2ê · i / n.

        >>> [Errors(0.1).bound(step, 5) for step in range(5)]
        [0.0, 0.05, 0.1, 0.15000000000000002, 0.2]
        """
        return 2 * self.mean * step / (steps - 1) if steps > 1 else 0.0

    def deviation(self, step: int, steps: int) -> float:
        """Of the error that is drawn for a step."""
        half = self.bound(step, steps) / 2
        return math.sqrt(half) if self.spread is Spread.VARIANCE else half


class KnownFuture:
    """The truth, one error for each step of the interval asked for: truth · (1 + bias + error), above zero.

    The errors are a function of seed and step, so that asking twice gives the same answer. Values that are noted
    only count the steps. Beyond the end of the truth its last value holds.

    >>> oracle = KnownFuture([5.0, 6.0, 7.0, 8.0])
    >>> oracle.note(5.0)
    >>> list(oracle.ahead(2))
    [6.0, 7.0]
    """

    def __init__(self, truth: Sequence[float], errors: Errors | None = None, seed: int = 0) -> None:
        if not len(truth):
            raise BadInput("an oracle needs at least one value that it may know")
        between("seed", seed, 0, SEED_MOST)
        self._truth = tuple(checked(value) for value in truth)
        self._errors, self._seed, self._next = errors or Errors(), seed, 0

    def note(self, value: float) -> None:
        checked(value)
        self._next += 1

    def ahead(self, steps: int) -> Forecast:
        """From the step after the last one noted on; an oracle can do so before the first."""
        seen(self._truth, steps)
        last = len(self._truth) - 1
        deviations = [self._errors.deviation(step, steps) for step in range(steps)]
        drawn = [0.0] * steps
        if self._errors.mean:
            drawn = np.random.default_rng((self._seed, self._next)).standard_normal(steps).tolist()
        values = []
        for step, (deviation, unit) in enumerate(zip(deviations, drawn, strict=True)):
            factor = 1 + self._errors.bias + deviation * unit
            values.append(self._truth[min(last, self._next + step)] * max(LEAST, factor))
        return Forecast(tuple(values), _bounds(values, deviations, 1), _bounds(values, deviations, -1))


def _bounds(values: Sequence[float], deviations: Sequence[float], sign: int) -> Bounds:
    """Where the truth lies with 90 %, for one who knows the spread and not the bias: forecast / (1 ± z·deviation)."""
    factors = [1 + sign * Z_90 * deviation for deviation in deviations]
    return tuple(value / factor if factor > LEAST else None for value, factor in zip(values, factors, strict=True))
