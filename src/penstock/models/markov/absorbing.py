"""Chains that end, without a subtraction: exact also where a chain is almost stuck.

A sub-generator is kept as its rates between states and its rates of ending; its diagonal follows from them.
Elimination after Grassmann, Taksar and Heyman then only adds, multiplies and divides what is not negative, so that
every figure keeps its digits: the 95th percentile at a utilisation of 0.9999 is met to 2e-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.models.compiled import compiled
from penstock.models.markov.chains import Floats

# Terms of the exponential's series, where rates times the step are at most 1/2: 0.5^18 / 18! is 6e-22.
TERMS = 18


@compiled
def solve_m(rates: Floats, ends: Floats, right: Floats) -> Floats:
    """X with A X = right, for A = diag(rates·e + ends) − rates: an M-matrix given by its row sums, `ends`."""
    a, v, x = rates.copy(), ends.copy(), right.copy()
    n, width = x.shape
    pivots = np.empty(n)
    for k in range(n):
        pivot = v[k]
        for j in range(k + 1, n):
            pivot += a[k, j]
        pivots[k] = pivot
        for i in range(k + 1, n):
            share = a[i, k] / pivot
            v[i] += share * v[k]
            for j in range(k + 1, n):
                a[i, j] += share * a[k, j]
            for j in range(width):
                x[i, j] += share * x[k, j]
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            for j in range(width):
                x[k, j] += a[k, i] * x[i, j]
        for j in range(width):
            x[k, j] /= pivots[k]
    return x


@dataclass(frozen=True, eq=False)
class Absorbing:
    """The time until a chain ends: it begins in `begin`, moves by `rates` (diagonal not read), ends by `ends`."""

    begin: Floats
    rates: Floats
    ends: Floats

    def moment(self, k: int) -> float:
        """E[X^k] = k! β (−A)⁻ᵏ e."""
        x = np.ones((len(self.begin), 1))
        for _ in range(k):
            x = solve_m(self.rates, self.ends, x)
        return math.factorial(k) * float(self.begin @ x[:, 0])

    def then(self, after: Absorbing) -> Absorbing:
        """This time plus an independent one."""
        n, m = len(self.begin), len(after.begin)
        rates = np.zeros((n + m, n + m))
        rates[:n, :n], rates[n:, n:] = self.rates, after.rates
        rates[:n, n:] = np.outer(self.ends, after.begin)
        begin, ends = np.append(self.begin, np.zeros(m)), np.append(np.zeros(n), after.ends)
        return Absorbing(begin, rates, ends)

    @cached_property
    def generator(self) -> Floats:
        """The sub-generator with its diagonal."""
        return with_diagonal(self.rates, self.ends)

    @property
    def decay(self) -> float:
        """The tail falls like e^(decay·t)."""
        return float(np.linalg.eigvals(self.generator).real.max())

    def tail(self, t: float) -> float:
        """P(X > t)."""
        step, steps = self._step, self._steps_to(t)
        v, left = self.begin, t
        for k in range(len(steps) - 1, -1, -1):
            if left >= step * 2.0**k:
                v, left = v @ steps[k], left - step * 2.0**k
        return _horner(self._series(v), left / step)[0]

    def percentile(self, p: float) -> float:
        """t with P(X > t) = 1 − p: up a ladder of doubled steps, down it, the rest by Newton on the series."""
        step, tail, high = self._step, 1 - p, 0
        steps = self._steps_to(step)
        while float((self.begin @ steps[high]).sum()) > tail:
            high += 1
            steps = self._steps_to(step * 2.0**high)
        v, t = self.begin, 0.0
        for k in range(high, -1, -1):
            on = v @ steps[k]
            if on.sum() > tail:
                v, t = on, t + step * 2.0**k
        series, part = self._series(v), 0.5
        for _ in range(8):
            value, slope = _horner(series, part)
            part = min(max(part - (value - tail) / slope, 0.0), 1.0)
        return t + part * step

    @cached_property
    def _step(self) -> float:
        """Short enough for the series: half of the shortest stay."""
        return 0.5 / -float(np.diag(self.generator).min())

    @cached_property
    def _ladder(self) -> list[tuple[Floats, Floats]]:
        """e^(A·step·2^k) for k = 0, 1, … and the probability of having ended; more are added as they are needed."""
        n, full = len(self.begin), np.zeros((len(self.begin) + 1, len(self.begin) + 1))
        full[:n, :n], full[:n, n] = self.generator, self.ends
        # Rates times the step are at most 1/2, so that with 1/2 added nothing in the series is negative.
        full = full * self._step + 0.5 * np.eye(n + 1)
        power = total = np.eye(n + 1)
        for k in range(1, TERMS):
            power = power @ full / k
            total = total + power
        total *= math.exp(-0.5)
        return [(_complete(total[:n, :n], total[:n, n]), total[:n, n])]

    def _steps_to(self, t: float) -> list[Floats]:
        """The ladder's steps up to the longest that is not longer than t."""
        high = max(0, math.floor(math.log2(t / self._step))) if t > 0 else 0
        while len(self._ladder) <= high:
            p, ended = self._ladder[-1]
            ended_later = ended + p @ ended
            self._ladder.append((_complete(p @ p, ended_later), ended_later))
        return [p for p, _ in self._ladder[: high + 1]]

    def _series(self, v: Floats) -> list[float]:
        """Coefficients of v e^(A·x·step) e in x."""
        a, values = self.generator * self._step, [float(v.sum())]
        for k in range(1, TERMS):
            v = v @ a / k
            values.append(float(v.sum()))
        return values


def _horner(series: list[float], x: float) -> tuple[float, float]:
    """A polynomial's value and slope."""
    value = slope = 0.0
    for coefficient in reversed(series):
        slope = slope * x + value
        value = value * x + coefficient
    return value, slope


def _complete(p: Floats, ended: Floats) -> Floats:
    """Rows that sum to 1 with what has ended: rounding goes to the diagonal, never to the small rates that decide."""
    p = p.copy()
    np.fill_diagonal(p, 0.0)
    np.fill_diagonal(p, np.maximum(1 - ended - p.sum(axis=1), 0.0))
    return p


def with_diagonal(rates: Floats, ends: Floats | float = 0.0) -> Floats:
    """The generator with these rates between states (their diagonal is not read) and these rates of ending."""
    a = rates.copy()
    np.fill_diagonal(a, 0.0)
    np.fill_diagonal(a, -a.sum(axis=1) - ends)
    return a
