"""Arrivals of an interval with every gap between them: what a MAP is fitted to."""

from __future__ import annotations

import numpy as np

from penstock.core.digest import LAGS, ArrivalDigest
from penstock.models.markov.chains import Floats


class SpacedArrivals(ArrivalDigest):
    """A digest that still has its gaps. A journal keeps the digest alone: 3,000 gaps a step would be most of it.

    >>> spaced = SpacedArrivals.of_gaps(np.array([1.0, 3.0, 1.0, 3.0, 1.0]))
    >>> spaced == ArrivalDigest.of([1.0, 3.0, 1.0, 3.0, 1.0]), spaced.gaps_s.tolist()
    (True, [1.0, 3.0, 1.0, 3.0, 1.0])
    """

    # No __slots__: the gaps are no field of the digest, for a journal reads those of the class.
    gaps_s: Floats

    @classmethod
    def of_gaps(cls, gaps_s: Floats) -> SpacedArrivals:
        count, squares = len(gaps_s), gaps_s * gaps_s
        # Not by `@`: from 10,000 gaps on BLAS would share that out to threads, which took 20 times as long.
        powers = (float(gaps_s.sum()), float(squares.sum()), _dot(squares, gaps_s))
        products = tuple(_dot(gaps_s[:-lag], gaps_s[lag:]) if lag < count else 0.0 for lag in LAGS)
        made = cls(count, powers, tuple(max(0, count - lag) for lag in LAGS), products)
        object.__setattr__(made, "gaps_s", gaps_s)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrivalDigest) and _plain(self) == _plain(other)

    __hash__ = ArrivalDigest.__hash__


def _dot(a: Floats, b: Floats) -> float:
    return float(np.einsum("i,i", a, b))


def _plain(digest: ArrivalDigest) -> tuple[object, ...]:
    return digest.count, digest.powers, digest.pairs, digest.products
