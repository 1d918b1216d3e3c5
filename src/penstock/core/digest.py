"""How arrivals are spaced, in a few sums that merge: enough for moments and autocorrelations of the gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Bursts of a second to minutes show at these distances, at tens to thousands of events a second.
LAGS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class ArrivalDigest:
    """Sums over the gaps between consecutive arrivals.

    >>> digest = ArrivalDigest.of([1.0, 3.0, 1.0, 3.0, 1.0])
    >>> digest.mean_s, round(digest.variance, 3), round(digest.autocorrelation(1), 3)
    (1.8, 0.96, -0.25)
    """

    count: int = 0
    powers: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Sums of the gaps, their squares and their cubes."""
    pairs: tuple[int, ...] = (0,) * len(LAGS)
    """For each of `LAGS`, how many pairs of gaps lie so far apart."""
    products: tuple[float, ...] = (0.0,) * len(LAGS)
    """For each of `LAGS`, the sum of the products of those pairs."""

    @classmethod
    def of(cls, gaps_s: Sequence[float]) -> ArrivalDigest:
        """Of some consecutive gaps."""
        powers = (sum(gaps_s), sum(gap * gap for gap in gaps_s), sum(gap**3 for gap in gaps_s))
        pairs = tuple(max(0, len(gaps_s) - lag) for lag in LAGS)
        products = tuple(sum(a * b for a, b in zip(gaps_s, gaps_s[lag:], strict=False)) for lag in LAGS)
        return cls(len(gaps_s), powers, pairs, products)

    @classmethod
    def merged(cls, parts: Iterable[ArrivalDigest]) -> ArrivalDigest:
        """All of them together; pairs that reach from one part into the next are not known."""
        total = cls()
        for part in parts:
            one, two, three = (a + b for a, b in zip(total.powers, part.powers, strict=True))
            pairs = tuple(a + b for a, b in zip(total.pairs, part.pairs, strict=True))
            products = tuple(a + b for a, b in zip(total.products, part.products, strict=True))
            total = cls(total.count + part.count, (one, two, three), pairs, products)
        return total

    @property
    def mean_s(self) -> float:
        return self.powers[0] / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        return max(0.0, self.powers[1] / self.count - self.mean_s**2) if self.count else 0.0

    def autocorrelation(self, lag: int) -> float | None:
        """How alike gaps are that lie `lag` apart; None where no two do, or all are alike."""
        at = LAGS.index(lag)
        if not self.pairs[at] or not self.variance:
            return None
        return (self.products[at] / self.pairs[at] - self.mean_s**2) / self.variance
