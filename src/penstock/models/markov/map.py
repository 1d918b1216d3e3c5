"""Markovian arrival processes (paper 4 §IV-A): a hidden chain, some of whose jumps are arrivals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats, is_irreducible, stationary
from penstock.models.markov.phase_type import PhaseType
from penstock.models.markov.sampling import sample_gaps

# A row's sum is rounding up to this share of its rate.
ROW_SUM = 1e-9


@dataclass(frozen=True, eq=False)
class Map:
    """Arrivals by a hidden chain: `D0` has the rates of jumps without an arrival, `D1` of those with one.

    >>> bursty = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]])
    >>> round(bursty.rate, 6), round(bursty.scv, 3), bursty.autocorrelation([1, 10]).round(3).tolist()
    (1.0, 5.776, [0.37, 0.137])
    """

    D0: Floats
    D1: Floats

    def __init__(self, D0: npt.ArrayLike, D1: npt.ArrayLike) -> None:  # noqa: N803
        object.__setattr__(self, "D0", _matrix(D0, "D0"))
        object.__setattr__(self, "D1", _matrix(D1, "D1"))
        _need_valid(self.D0, self.D1)

    @property
    def states(self) -> int:
        return len(self.D0)

    @cached_property
    def stays(self) -> Floats:
        """(−D0)⁻¹: expected times in each state until the next arrival."""
        return np.asarray(np.linalg.inv(-self.D0), dtype=np.float64)

    @cached_property
    def embedded(self) -> Floats:
        """P = (−D0)⁻¹ D1: from the state after an arrival to that after the next."""
        p = np.maximum(self.stays @ self.D1, 0.0)
        return np.asarray(p / p.sum(axis=1, keepdims=True), dtype=np.float64)

    @cached_property
    def in_time(self) -> Floats:
        """How often each state is met at a random time."""
        return stationary(self.D0 + self.D1)

    @cached_property
    def at_arrivals(self) -> Floats:
        """π: how often each state is met right after an arrival."""
        flow = self.in_time @ self.D1
        return np.asarray(flow / flow.sum(), dtype=np.float64)

    @cached_property
    def rate(self) -> float:
        """Arrivals per second."""
        return float((self.in_time @ self.D1).sum())

    @property
    def mean_s(self) -> float:
        return 1 / self.rate

    def moment(self, k: int) -> float:
        """E[X^k] = k! π (−D0)⁻ᵏ e (paper 4, eq 1)."""
        v = self.at_arrivals
        for _ in range(k):
            v = v @ self.stays
        return math.factorial(k) * float(v.sum())

    @property
    def scv(self) -> float:
        """Variance of the gaps over their squared mean: 1 for Poisson."""
        return self.moment(2) / self.moment(1) ** 2 - 1

    @property
    def skewness(self) -> float:
        m1, m2, m3 = (self.moment(k) for k in (1, 2, 3))
        return float((m3 - 3 * m1 * m2 + 2 * m1**3) / (m2 - m1**2) ** 1.5)

    def autocorrelation(self, lags: Sequence[int]) -> Floats:
        """ρ_k of the gaps, k ≥ 1 (paper 4, eq 2; it misprints E[X²] for E[X]² in the numerator)."""
        if any(lag < 1 for lag in lags):
            raise BadInput(f"autocorrelation of lags {list(lags)}: lags are 1 and more")
        # Pᵏ − eπ = (P − eπ)ᵏ: taking the mean out of the powers keeps the small values at long lags exact.
        away = self.embedded - self.at_arrivals
        first, last = self.at_arrivals @ self.stays, self.stays.sum(axis=1)
        variance = self.moment(2) - self.moment(1) ** 2
        return np.array([first @ np.linalg.matrix_power(away, lag) @ last / variance for lag in lags])

    def joint_moment(self, lags: Sequence[int], powers: Sequence[int] | None = None) -> float:
        """E[X_0^a X_i^b X_{i+l}^c …] for lags (i, l, …): a! b! c! π Mᵃ Pⁱ Mᵇ Pˡ Mᶜ e."""
        powers = powers or (1,) * (len(lags) + 1)
        v = self.at_arrivals
        for position, power in enumerate(powers):
            if position:
                v = v @ np.linalg.matrix_power(self.embedded, lags[position - 1])
            for _ in range(power):
                v = v @ self.stays
        return math.prod(math.factorial(power) for power in powers) * float(v.sum())

    def dispersion(self, arrivals: int | None = None) -> float:
        """Var(X_1 + … + X_n) / (n E[X]²): burstiness over n arrivals; without n, the limit (1 for Poisson)."""
        away = self.embedded - self.at_arrivals
        first, last = self.at_arrivals @ self.stays, self.stays.sum(axis=1)
        z = np.linalg.inv(np.eye(self.states) - away)
        total = away @ z
        if arrivals is not None:
            # Σ_{k<n} (1 − k/n) Aᵏ = A Z − A (I − Aⁿ) Z² / n
            total -= away @ (np.eye(self.states) - np.linalg.matrix_power(away, arrivals)) @ z @ z / arrivals
        return self.scv + 2 * float(first @ total @ last) / self.moment(1) ** 2

    def with_rate(self, rate: float) -> Map:
        """The same process, faster or slower: variability and autocorrelation stay."""
        factor = rate / self.rate
        if not (factor > 0 and math.isfinite(factor)):
            raise BadInput(f"MAP: a rate of {rate:g}; it must be above 0")
        # Not checked again: what was valid stays so.
        made = object.__new__(Map)
        object.__setattr__(made, "D0", self.D0 * factor)
        object.__setattr__(made, "D1", self.D1 * factor)
        return made

    def thinned(self, share: float) -> Map:
        """What is left when each arrival is kept with this probability."""
        if not 0 < share <= 1:
            raise BadInput(f"thinning to a share of {share:g}: it must be above 0 and at most 1")
        return Map(self.D0 + (1 - share) * self.D1, share * self.D1)

    def in_batches(self, tied: float, step_s: float) -> Map:
        """Each arrival is followed at once by another with this probability: after a clock's step in the mean."""
        # Each state in which an arrival can end has a copy: there the batch goes on.
        ends, states = np.flatnonzero(self.D1.any(axis=0)), self.states
        total, here = states + len(ends), np.eye(states)[ends] / step_s
        d0, d1 = np.zeros((total, total)), np.zeros((total, total))
        d0[:states, :states], d0[states:, states:] = self.D0, -np.eye(len(ends)) / step_s
        d1[:states, :states], d1[:states, states:] = (1 - tied) * self.D1, tied * self.D1[:, ends]
        d1[states:, :states], d1[states:, states:] = (1 - tied) * here, tied * here[:, ends]
        return Map(d0, d1)

    def superposed(self, other: Map) -> Map:
        """Both streams together, if they are independent."""
        here, there = np.eye(self.states), np.eye(other.states)
        d0 = np.kron(self.D0, there) + np.kron(here, other.D0)
        return Map(d0, np.kron(self.D1, there) + np.kron(here, other.D1))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """So many gaps in seconds, from the stationary start; the same rng gives the same gaps."""
        return sample_gaps(self.D0, self.D1, self.at_arrivals, count, rng)


def poisson(rate: float) -> Map:
    """Arrivals without memory."""
    return Map([[-rate]], [[rate]])


def renewal(gap: PhaseType) -> Map:
    """Independent gaps, all with this distribution."""
    return Map(gap.S, np.outer(gap.exits, gap.alpha))


def _matrix(given: npt.ArrayLike, name: str) -> Floats:
    try:
        matrix = np.array(given, dtype=np.float64) + 0.0  # what was -0.0 is shown as 0
    except (TypeError, ValueError):
        raise BadInput(f"MAP: {name} is not a matrix of numbers") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise BadInput(f"MAP: {name} has the shape {matrix.shape}, it must be square")
    if not np.isfinite(matrix).all():
        raise BadInput(f"MAP: {name} has values that are no finite numbers")
    matrix.flags.writeable = False
    return matrix


def _need_valid(d0: Floats, d1: Floats) -> None:
    if d0.shape != d1.shape:
        raise BadInput(
            f"MAP: D0 is {d0.shape[0]} × {d0.shape[0]} and D1 {d1.shape[0]} × {d1.shape[0]}; they must match"
        )
    if (d1 < 0).any() or (d0 - np.diag(np.diag(d0)) < 0).any() or (np.diag(d0) >= 0).any():
        raise BadInput("MAP: rates must not be negative (D1, and D0 off its diagonal), D0's diagonal must be")
    sums = (d0 + d1).sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums) > ROW_SUM * -np.diag(d0))
    if len(wrong):
        raise BadInput(f"MAP: row {wrong[0] + 1} of D0 + D1 sums to {sums[wrong[0]]:.3g}; every row must sum to zero")
    if not d1.any():
        raise BadInput("MAP: D1 is all zero, so nothing ever arrives")
    if not is_irreducible(d0 + d1):
        raise BadInput("MAP: some states of D0 + D1 cannot be reached from others; it must be irreducible")
