"""A window that is as long as nothing changes: ADWIN (Bifet and Gavaldà 2007; paper 2 §4)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from penstock.core.bounds import between

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# All cuts of 4,096 values are compared in 20 µs, and a value costs two such looks at most (one as it comes, one as it
# is dropped): more than 10,000 values a second.
LONGEST = 4096
# Sums over twice the longest window are then known to 10⁻⁶ at least.
VALUE_MOST = 1e6


def threshold(first: int, second: int, delta: float, as_cited: bool = False) -> float:
    """The difference of two means that is a change: ε = √(ln(4/δ′) / (2m)), δ′ = δ/n, for parts of these sizes.

    As printed in paper 2, m is the harmonic mean 2/(1/n₁ + 1/n₂); in the cited work it is 1/(1/n₁ + 1/n₂), half of
    it: there a change must be √2 times as large.

    >>> round(threshold(50, 50, delta=0.2), 4), round(threshold(50, 50, delta=0.2, as_cited=True), 4)
    (0.2757, 0.3899)
    """
    m = (1 if as_cited else 2) / (1 / first + 1 / second)
    return math.sqrt(math.log(4 * (first + second) / delta) / (2 * m))


class Adwin:
    """The newest values among which no cut divides different means; the oldest are dropped until that is so.

    Exact: every cut is looked at, by running sums. Made for values from 0 to 1; others are compared with the same ε.

    >>> window = Adwin(delta=0.2)
    >>> dropped = [window.add(value) for value in [0.1] * 50 + [0.9] * 20]
    >>> sum(dropped) + window.size, window.size < 30, window.mean > 0.6
    (70, True, True)
    """

    def __init__(self, delta: float = 0.2, shortest: int = 1, longest: int = LONGEST, as_cited: bool = False) -> None:
        between("adaptive window: delta", delta, 1e-12, 1)
        between("adaptive window: shortest", shortest, 1, longest)
        between("adaptive window: longest", longest, 2, 1_000_000)
        self._delta, self._shortest, self._longest, self._as_cited = delta, shortest, longest, as_cited
        # Sums up to each value; the window is what lies between two of them.
        self._sums: Floats = np.zeros(2 * longest + 2)
        self._begin = self._end = 0
        self._counts: Ints = np.arange(longest + 1)

    @property
    def size(self) -> int:
        """How many of the newest values are in the window."""
        return self._end - self._begin

    @property
    def mean(self) -> float | None:
        """Of the values in the window; None: there are none."""
        return float(self._sums[self._end] - self._sums[self._begin]) / self.size if self.size else None

    def add(self, value: float) -> int:
        """How many old values do not belong to this one: above 0 is a change.

        The window stays at least `shortest` long, so a change that is still in it is told again with the next value.
        One that would become longer than `longest` forgets its oldest value, which is no change.
        """
        between("a value of an adaptive window", value, -VALUE_MOST, VALUE_MOST)
        self._append(value)
        before = self.size
        while self.size > self._shortest and self._is_divided():
            self._begin += 1
        return before - self.size

    def recall(self, value: float, size: int) -> None:
        """A value after which the window was so long once: what divided it then may not be told again."""
        between("a value of an adaptive window", value, -VALUE_MOST, VALUE_MOST)
        self._append(value)
        self._begin = max(self._begin, self._end - max(1, size))

    def _append(self, value: float) -> None:
        if self._end + 1 == len(self._sums):
            # Sums begin anew with the window: after 10⁹ values they would have lost 9 digits.
            kept = self._sums[self._begin : self._end + 1] - self._sums[self._begin]
            self._sums[: len(kept)] = kept
            self._begin, self._end = 0, len(kept) - 1
        self._sums[self._end + 1] = self._sums[self._end] + value
        self._end += 1
        if self.size > self._longest:
            self._begin += 1

    def _is_divided(self) -> bool:
        """Does any cut divide means that differ by more than its threshold?

        With d = S₁ − n₁μ the means differ by d·n/(n₁n₂), so |μ₁ − μ₂| > ε is 2d²n·(2 or 1) > ln(4n/δ)·n₁n₂: neither
        roots nor divisions for each cut.
        """
        n = self.size
        first = self._counts[1:n]
        away = self._sums[self._begin + 1 : self._end] - self._sums[self._begin]
        away -= first * ((self._sums[self._end] - self._sums[self._begin]) / n)
        away *= away
        least = math.log(4 * n / self._delta) / (2 * n * (1 if self._as_cited else 2))
        return bool((away > least * (first * (n - first))).any())
