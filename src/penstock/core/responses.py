"""Response times that merge: a count, a sum and a histogram in logarithmic bins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# 5 % wide: a percentile is then off by 2.5 % at most, and 1 ms … 1 day needs 375 bins.
RATIO = 1.05
_LOG_RATIO = math.log(RATIO)
LEAST = 1e-9
MOST = 1e12
# A time of exactly the unit belongs below it, whatever a logarithm makes of its last digit.
_ROUNDING = 1e-9


# The bin of all that was answered at once: its middle is a time that nobody waited.
AT_ONCE = math.ceil(math.log(LEAST) / _LOG_RATIO - _ROUNDING)


@dataclass(frozen=True, slots=True)
class Responses:
    """Response times of some events. Percentiles do not merge; these do.

    Bin k holds times above unit · 1.05ᵏ⁻¹ and up to unit · 1.05ᵏ. With the objective's bound as the unit,
    the events in bins above 0 are just the late ones.

    >>> both = Responses.merged([Responses.spread(0.1, 0.1, 90), Responses.spread(5.0, 5.0, 10)])
    >>> both.count, round(both.sum_s, 6), round(both.percentile(0.5), 2), round(both.percentile(0.95), 1)
    (100.0, 59.0, 0.1, 4.9)
    >>> round(Responses.spread(100.0, 200.0, 100, unit_s=120.0).later_than(120.0), 6)
    80.0
    """

    count: float = 0.0
    sum_s: float = 0.0
    bins: Mapping[int, float] = field(default_factory=dict)
    unit_s: float = 1.0

    @classmethod
    def spread(cls, low_s: float, high_s: float, count: float, unit_s: float = 1.0) -> Responses:
        """Events whose response times lie evenly between two values."""
        bins = dict(binned(low_s / unit_s, high_s / unit_s, count))
        return cls(count, count * (low_s + high_s) / 2, bins, unit_s)

    @classmethod
    def merged(cls, parts: Iterable[Responses]) -> Responses:
        """All of them together; they must have one unit."""
        count = total = 0.0
        unit_s = 1.0
        bins: dict[int, float] = {}
        for part in parts:
            count += part.count
            total += part.sum_s
            unit_s = part.unit_s
            for number, events in part.bins.items():
                bins[number] = bins.get(number, 0.0) + events
        return cls(count, total, bins, unit_s)

    @property
    def mean(self) -> float:
        return self.sum_s / self.count if self.count else 0.0

    def percentile(self, share: float) -> float:
        """The time within which this share of the events was answered; 0 without events."""
        wanted = share * sum(self.bins.values())
        for number in sorted(self.bins):
            wanted -= self.bins[number]
            if wanted <= 1e-9:
                if number <= AT_ONCE:
                    return 0.0
                return self.unit_s * float(RATIO ** (number - 0.5))
        return 0.0

    def later_than(self, bound_s: float) -> float:
        """Events that took longer; exact for the unit, else the bin that holds the bound counts in part."""
        bound = bound_s / self.unit_s
        edge = bin_of(bound)
        late = sum(events for number, events in self.bins.items() if number > edge)
        low, high = RATIO ** (edge - 1), RATIO**edge
        part = (high - bound) / (high - low)
        return late + self.bins.get(edge, 0.0) * part if part > _ROUNDING else late


def bin_of(time: float) -> int:
    """The bin of a time in units."""
    return math.ceil(math.log(min(time, MOST) if time > LEAST else LEAST) / _LOG_RATIO - _ROUNDING)


def binned(low: float, high: float, count: float) -> Iterable[tuple[int, float]]:
    """Spread a count evenly between two times, in units, over the bins."""
    if low > high:
        low, high = high, low
    first, last = bin_of(low), bin_of(high)
    if first == last:
        return [(first, count)]
    density = count / (high - low)
    edges = [low, *(RATIO**number for number in range(first, last)), high]
    return [(first + i, density * (edges[i + 1] - edges[i])) for i in range(last - first + 1)]


class Collected:
    """Response times as they come, in bins when they are asked for.

    A stretch of ages covers 15 bins on average: only its ends are noted, and all bins between them are filled at once.

    >>> times = Collected(unit_s=1.0)
    >>> times.add(0.5, 2.0, 30.0)
    >>> round(times.taken().later_than(1.0), 6), times.taken().count
    (20.0, 0.0)
    """

    __slots__ = ("_bins", "_changes", "_count", "_sum_s", "_unit_s")

    def __init__(self, unit_s: float = 1.0) -> None:
        self._unit_s = unit_s
        self._count = self._sum_s = 0.0
        self._bins: dict[int, float] = {}
        self._changes: list[tuple[int, int, float]] = []  # bin, stretches that begin or end there, their density

    def add(self, low_s: float, high_s: float, events: float) -> None:
        """Events whose response times lie evenly between two values."""
        self._count += events
        self._sum_s += events * (low_s + high_s) / 2
        bins = self._bins
        if low_s == high_s:
            number = bin_of(low_s / self._unit_s)
            bins[number] = bins.get(number, 0.0) + events
            return
        low, high = low_s / self._unit_s, high_s / self._unit_s
        if low > high:
            low, high = high, low
        first, last = bin_of(low), bin_of(high)
        if first == last:
            bins[first] = bins.get(first, 0.0) + events
            return
        density = events / (high - low)
        bins[first] = bins.get(first, 0.0) + density * (RATIO**first - low)
        bins[last] = bins.get(last, 0.0) + density * (high - RATIO ** (last - 1))
        if last - first > 1:
            self._changes += ((first + 1, 1, density), (last, -1, -density))

    def taken(self) -> Responses:
        """What came since the last call."""
        if self._changes:
            self._fill()
        found = Responses(self._count, self._sum_s, self._bins, self._unit_s)
        self._count = self._sum_s = 0.0
        self._bins = {}
        return found

    def _fill(self) -> None:
        """Fill the bins that lie wholly within stretches: density · width."""
        bins, here = self._bins, 0
        # Each by itself: where 10⁹ events a second have come and gone, a running sum is off by whole events.
        densities: list[float] = []
        for number, more, change in sorted(self._changes):
            if densities:
                # A bin is as wide as 1 - 1/1.05 of its upper edge.
                within = sum(densities) * (1 - 1 / RATIO) * RATIO**here
                for between in range(here, number):
                    bins[between] = bins.get(between, 0.0) + within
                    within *= RATIO
            if more > 0:
                densities.append(change)
            else:
                densities.remove(-change)
            here = number
        self._changes = []
