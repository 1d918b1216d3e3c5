"""What will arrive within the next while: the expected rate, and one that is hardly exceeded."""

from __future__ import annotations

import math

import numpy as np

RECENT_S = 120.0
HOUR_S = 3600.0
DAY_S = 86400.0
# The least that a logarithm is taken of, in events a second: a stream that stands still comes back as one event.
LEAST = 1e-3
_FEATURES = 4


class Outlook:
    """Arrivals of the next `ahead_s` seconds, from the rates of the last minutes, the last hour and the day before.

    The logarithm of the rate to come is that of the last two minutes, corrected by what helped so far (recursive least
    squares). The upper rate adds `kappa` deviations of the square root of the count, of which a Poisson stream has ½.

    >>> outlook = Outlook(tick_s=60.0, ahead_s=120.0)
    >>> for _ in range(200): outlook.note(600.0)
    >>> round(outlook.rate, 2), 10 < outlook.upper < 11
    (10.0, True)
    """

    def __init__(self, tick_s: float, ahead_s: float, kappa: float = 2.5, memory_s: float = 3 * HOUR_S) -> None:
        self._tick_s, self._ahead = tick_s, max(1, round(ahead_s / tick_s))
        self._recent, self._hour, self._day = (max(1, round(each / tick_s)) for each in (RECENT_S, HOUR_S, DAY_S))
        self.kappa = kappa
        self._totals = [0.0]
        """Arrivals up to each tick; those older than a day and what is looked ahead are cut off."""
        self._fading = min(0.5, tick_s / memory_s)
        self._weights = np.zeros(_FEATURES)
        self._spread = np.eye(_FEATURES) * 0.05
        self._made: list[tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float, float]] = []
        self._variance = 0.25
        self.rate = 0.0
        """Events a second that are expected."""

    @property
    def deviation(self) -> float:
        """Of the square root of the count to come."""
        return math.sqrt(self._variance)

    @property
    def upper(self) -> float:
        """Events a second that are hardly exceeded: (√(λH) + κσ)² / H."""
        ahead_s = self._ahead * self._tick_s
        return (math.sqrt(self.rate * ahead_s) + self.kappa * self.deviation) ** 2 / ahead_s

    def note(self, arrived: float) -> None:
        """One tick more, in which so many arrived."""
        totals = self._totals
        totals.append(totals[-1] + arrived)
        if len(totals) > 2 * (self._day + self._ahead):
            del totals[: len(totals) - self._day - self._ahead - 2]
        if len(self._made) >= self._ahead:
            self._learn(*self._made.pop(0))
        features, base = self._seen()
        self.rate = math.exp(base + float(features @ self._weights))
        self._made.append((features, base, self.rate))

    def _mean(self, begin: int, end: int) -> float:
        """Events a second between two ticks, counted from the last one back."""
        totals = self._totals
        first, last = max(0, len(totals) - 1 - begin), max(0, len(totals) - 1 - end)
        span_s = max(1, last - first) * self._tick_s
        return max(LEAST, (totals[last] - totals[first]) / span_s)

    def _seen(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
        base = math.log(self._mean(self._recent, 0))
        last, hour = math.log(self._mean(1, 0)), math.log(self._mean(self._hour, 0))
        growth = 0.0
        if len(self._totals) > self._day + self._recent:
            then = self._mean(self._day + self._recent, self._day)
            growth = math.log(self._mean(self._day, self._day - self._ahead) / then)
        return np.array([last - base, hour - base, growth, 0.1]), base

    def _learn(self, features: np.ndarray[tuple[int], np.dtype[np.float64]], base: float, rate: float) -> None:
        """Hold what was expected against what came."""
        ahead_s = self._ahead * self._tick_s
        came = self._mean(self._ahead, 0)
        missed = math.sqrt(came * ahead_s) - math.sqrt(rate * ahead_s)
        # Fewer than expected cost little: half of that counts.
        size = missed if missed > 0 else missed / 2
        self._variance += self._fading * (size * size - self._variance)
        spread = self._spread
        gain = spread @ features / (1.0 + float(features @ spread @ features))
        self._weights = self._weights + gain * (math.log(came) - base - float(features @ self._weights))
        self._spread = spread - np.outer(gain, features @ spread)
