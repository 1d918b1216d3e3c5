"""What will arrive within the next while: the expected rate, and one that is hardly exceeded."""

from __future__ import annotations

import math
from collections import deque

from penstock.models.count_margin import CountMargin

RECENT_S = 120.0
HOUR_S = 3600.0
DAY_S = 86400.0
MEMORY_S = 3 * HOUR_S  # of the deviation
# The least that a logarithm is taken of, in events a second: a stream that stands still comes back as one event.
LEAST = 1e-3
# How far each correction may be from 0 before anything was learnt, as a variance.
UNSURE = 0.05
# Weight of a constant error in the logarithm, among the corrections.
BIAS = 0.1
# A stream that stops, or comes back, is off by 10 and more in the logarithm: it tells nothing of one that runs, and
# what was learnt of one such step outweighed months (Twitter, 592 minutes of it without any: 8 % dearer).
FAR = 2.0


class Outlook:
    """Arrivals of the next `ahead_s` seconds, from the rates of the last minutes, the last hour and the day before.

    The logarithm of the rate to come is that of the last two minutes, corrected by what helped so far (recursive least
    squares). The upper rate adds `kappa` deviations of the square root of the count, of which a Poisson stream has ½.

    >>> outlook = Outlook(tick_s=60.0, ahead_s=120.0)
    >>> for _ in range(200): outlook.note(600.0)
    >>> round(outlook.rate, 2), 10 < outlook.upper < 11
    (10.0, True)
    """

    def __init__(
        self,
        tick_s: float,
        ahead_s: float,
        kappa: float = 1.5,
        learns: bool = True,
        counts: CountMargin | None = None,
    ) -> None:
        """Without learning, what is expected is the mean of the last two minutes; `counts` tells the upper rate."""
        self._tick_s, self._ahead = tick_s, max(1, round(ahead_s / tick_s))
        self._recent, self._hour, self._day = (max(1, round(each / tick_s)) for each in (RECENT_S, HOUR_S, DAY_S))
        self._kappa, self._learns, self._counts = kappa, learns, counts
        self._totals = [0.0]
        """Arrivals up to each tick; those older than a day and what is looked ahead are cut off."""
        self._fading = min(0.5, tick_s / MEMORY_S)
        self._corrections = _Corrections()
        self._made: deque[tuple[_Features, float, float]] = deque()
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
        if self._counts is not None:
            return self._counts.upper(self.rate, self._kappa)
        ahead_s = self._ahead * self._tick_s
        return (math.sqrt(self.rate * ahead_s) + self._kappa * self.deviation) ** 2 / ahead_s

    def note(self, arrived: float) -> None:
        """One tick more, in which so many arrived."""
        if self._counts is not None:
            self._counts.note(arrived)
        totals = self._totals
        totals.append(totals[-1] + arrived)
        if len(totals) > 2 * (self._day + self._hour):
            del totals[: len(totals) - self._day - self._hour]
        if len(self._made) >= self._ahead:
            self._learn(*self._made.popleft())
        features, base = self._seen()
        self.rate = self._expected(arrived, features, base)
        self._made.append((features, base, self.rate))

    def _expected(self, arrived: float, features: _Features, base: float) -> float:  # noqa: ARG002
        return math.exp(base + self._corrections.of(features))

    def _mean(self, begin: int, end: int) -> float:
        """Events a second between two ticks, counted from the last one back."""
        totals = self._totals
        newest = len(totals) - 1
        first, last = max(0, newest - begin), max(0, newest - end)
        return max(LEAST, (totals[last] - totals[first]) / (max(1, last - first) * self._tick_s))

    def _seen(self) -> tuple[_Features, float]:
        base = math.log(self._mean(self._recent, 0))
        last, hour, growth = math.log(self._mean(1, 0)), math.log(self._mean(self._hour, 0)), 0.0
        if len(self._totals) > self._day + self._recent:
            then = self._mean(self._day + self._recent, self._day)
            growth = math.log(self._mean(self._day, self._day - self._ahead) / then)
        return (_near(last - base), _near(hour - base), _near(growth), BIAS), base

    def _learn(self, features: _Features, base: float, rate: float) -> None:
        """Hold what was expected against what came."""
        ahead_s, came = self._ahead * self._tick_s, self._mean(self._ahead, 0)
        missed = math.sqrt(came * ahead_s) - math.sqrt(rate * ahead_s)
        # Fewer than expected cost little: half of that counts.
        size = missed if missed > 0 else missed / 2
        self._variance += self._fading * (size * size - self._variance)
        if self._learns:
            self._corrections.learn(features, _near(math.log(came) - base))


def _near(logarithm: float) -> float:
    return min(FAR, max(-FAR, logarithm))


_Features = tuple[float, float, float, float]


class _Corrections:
    """Recursive least squares over four features; plain floats, as arrays of four cost a replay three times as much."""

    def __init__(self) -> None:
        self._weights = [0.0] * 4
        self._spread = [[UNSURE if row == column else 0.0 for column in range(4)] for row in range(4)]

    def of(self, features: _Features) -> float:
        a, b, c, d = self._weights
        return a * features[0] + b * features[1] + c * features[2] + d * features[3]

    def learn(self, features: _Features, right: float) -> None:
        w, x, y, z = features
        through = [row[0] * w + row[1] * x + row[2] * y + row[3] * z for row in self._spread]
        certain = 1.0 + through[0] * w + through[1] * x + through[2] * y + through[3] * z
        off = (right - self.of(features)) / certain
        self._weights = [weight + each * off for weight, each in zip(self._weights, through, strict=True)]
        for row, each in zip(self._spread, through, strict=True):
            part = each / certain
            row[:] = [value - part * other for value, other in zip(row, through, strict=True)]
