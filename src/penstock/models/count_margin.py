"""How many will come, hardly more: a quantile of the counts of a bursty process, fitted to those of the ticks."""

from __future__ import annotations

import math

HOUR_S = 3600.0
# A correlation that does not fade would make the variance of a long stretch endless.
FADES_MOST = 0.98
TICKS_LEAST = 20
LEAST = 1e-9


class CountMargin:
    """A Markov-modulated Poisson process of two states, by the variance and covariances of counts of the last hours.

    Counts that lie j ticks apart have the covariance c·γʲ⁻¹, so m ticks have m·v + 2·Σ (m − j)·c·γʲ⁻¹. The quantile
    is a gamma's with that mean and variance (Wilson and Hilferty); `kappa` is its place among a normal's deviations.

    >>> margin = CountMargin(tick_s=10.0, ahead_s=100.0)
    >>> for count in [90, 110, 95, 105] * 50: margin.note(count)
    >>> 10.0 < margin.upper(rate=10.0, kappa=1.5) < 11.0
    True
    """

    def __init__(self, tick_s: float, ahead_s: float) -> None:
        self._tick_s, self._ahead = tick_s, max(1, round(ahead_s / tick_s))
        self._fading = min(0.5, tick_s / HOUR_S)
        self._mean = self._variance = self._one = self._two = 0.0
        self._before = self._earlier = 0.0
        self._ticks = 0

    def note(self, arrived: float) -> None:
        """One tick more, in which so many arrived."""
        self._ticks += 1
        weight = max(self._fading, 1.0 / self._ticks)
        self._mean += weight * (arrived - self._mean)
        off = arrived - self._mean
        self._variance += weight * (off * off - self._variance)
        self._one += weight * (off * self._before - self._one)
        self._two += weight * (off * self._earlier - self._two)
        self._earlier, self._before = self._before, off

    def variance(self, mean: float) -> float:
        """Of the count of all ticks ahead; never below a Poisson stream's of this mean."""
        ahead, apart = self._ahead, max(0.0, self._one)
        if self._ticks < TICKS_LEAST:
            return 4.0 * mean
        fades = min(FADES_MOST, max(0.0, self._two / apart)) if apart > LEAST else 0.0
        # Σ (m − j) γʲ⁻¹ for j from 1 to m − 1.
        pairs = (ahead - (1 - fades**ahead) / (1 - fades)) / (1 - fades)
        found = ahead * self._variance + 2 * apart * pairs
        # Bursts grow with the rate: what was seen is of the mean rate of the last hour.
        scale = mean / max(LEAST, self._mean * ahead)
        return max(mean, found * scale * scale)

    def upper(self, rate: float, kappa: float) -> float:
        """Events a second that are hardly exceeded over the ticks ahead, where `rate` is expected."""
        ahead_s = self._ahead * self._tick_s
        mean = max(LEAST, rate * ahead_s)
        shape = mean * mean / max(LEAST, self.variance(mean))
        root = 1 - 1 / (9 * shape) + kappa / (3 * math.sqrt(shape))
        return max(rate, mean * max(0.0, root) ** 3 / ahead_s)
