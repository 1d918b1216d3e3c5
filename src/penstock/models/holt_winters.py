"""Level, damped trend and season, smoothed exponentially (Holt and Winters); weights are chosen as it goes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from penstock.core.bounds import between
from penstock.core.errors import BadInput
from penstock.models.forecast import Forecast, checked, seen

Floats = npt.NDArray[np.float64]
# The least level and the least factor of a season: what a product divides by.
LEAST = 1e-6
# How fast the errors of old steps are forgotten when weights are compared: half after 700 steps, 2½ days of 5 minutes.
FADING = 0.001


class Season(Enum):
    """How a season and the level make a value."""

    NONE = "none"
    ADDITIVE = "level + season"
    MULTIPLICATIVE = "level · season"


@dataclass(frozen=True, slots=True)
class Weights:
    """How much the newest value counts: for the level α, the trend β, the season γ. The trend fades by φ a step."""

    level: float
    trend: float = 0.0
    season: float = 0.0
    damping: float = 0.98

    def __post_init__(self) -> None:
        for name in ("level", "trend", "season", "damping"):
            between(f"weight of the {name}", getattr(self, name), 0, 1)


# 5 · 3 · 3 candidates. Finer ones gain little: neighbours differ by less than the noise of a day.
CANDIDATES = tuple(
    Weights(*each) for each in itertools.product((0.05, 0.15, 0.3, 0.6, 0.9), (0.0, 0.02, 0.1), (0.02, 0.1, 0.3))
)


class HoltWinters:
    """Forecasts (level + (φ + … + φ^h) · trend) with the season's part of step h, never below zero.

    All candidates are updated with each value, and the one with the least squared error one step ahead (old errors
    fade) has the word: no fit over the history, and every step costs the same. The first season, or without one the
    first value, sets the level with no trend; until then the last value is forecast.

    >>> forecaster = HoltWinters(4, candidates=(Weights(0.5),))
    >>> for value in (1.0, 2.0, 3.0, 2.0) * 3: forecaster.note(value)
    >>> [round(value, 6) for value in forecaster.ahead(5)]
    [1.0, 2.0, 3.0, 2.0, 1.0]
    """

    def __init__(self, season: int, kind: Season = Season.ADDITIVE, candidates: Sequence[Weights] = CANDIDATES) -> None:
        between("season", season, 1, 1_000_000)
        if not candidates:
            raise BadInput("Holt–Winters needs at least one set of weights")
        self._kind, self._season = kind, 1 if kind is Season.NONE else season
        self._alpha, self._beta, self._gamma, self._phi = np.array(
            [(each.level, each.trend, each.season, each.damping) for each in candidates]
        ).T
        self._begin: list[float] = []
        self._level: Floats = np.zeros(len(candidates))
        self._trend: Floats = np.zeros(len(candidates))
        self._seasons: Floats = np.zeros((self._season, len(candidates)))
        self._error: Floats = np.zeros(len(candidates))
        self._steps = 0
        self._candidates = tuple(candidates)

    @property
    def weights(self) -> Weights:
        """Those that have the word now."""
        return self._candidates[int(np.argmin(self._error))]

    def note(self, value: float) -> None:
        value = checked(value)
        if len(self._begin) < self._season:
            self._begin.append(value)
            if len(self._begin) == self._season:
                self._start()
            return
        base = self._level + self._phi * self._trend
        season = self._seasons[self._steps % self._season]
        self._error += FADING * ((value - self._joined(base, season)) ** 2 - self._error)
        before, self._level = self._level, self._alpha * self._without(value, season) + (1 - self._alpha) * base
        self._trend = self._beta * (self._level - before) + (1 - self._beta) * self._phi * self._trend
        if self._kind is not Season.NONE:
            fresh = self._without(value, base)
            self._seasons[self._steps % self._season] = self._gamma * fresh + (1 - self._gamma) * season
        self._steps += 1

    def ahead(self, steps: int) -> Forecast:
        seen(self._begin, steps)
        if len(self._begin) < self._season:
            return Forecast((self._begin[-1],) * steps)
        best = int(np.argmin(self._error))
        damped = np.cumsum(self._phi[best] ** np.arange(1, steps + 1))
        base = self._level[best] + damped * self._trend[best]
        season = self._seasons[(self._steps + np.arange(steps)) % self._season, best]
        return Forecast(tuple(np.maximum(0.0, self._joined(base, season)).tolist()))

    def _start(self) -> None:
        mean = sum(self._begin) / self._season
        self._level[:] = mean
        values = np.array(self._begin)
        if self._kind is Season.MULTIPLICATIVE:
            parts = np.maximum(LEAST, values / mean) if mean else np.ones(self._season)
        else:
            parts = values - mean
        self._seasons[:] = parts[:, np.newaxis]

    def _joined(self, base: Floats, season: Floats) -> Floats:
        return base * season if self._kind is Season.MULTIPLICATIVE else base + season

    def _without(self, value: float, part: Floats) -> Floats:
        """What is left of a value without its level, or without its season."""
        if self._kind is Season.MULTIPLICATIVE:
            return np.maximum(LEAST, value / np.maximum(LEAST, part))
        return value - part
