"""Durations as the time through a few exponential phases: Erlang, hyperexponential, or fitted to moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats

# More phases cost time and change little: a queue's response differs by under 1 % from that of constant service.
PHASES_MAX = 50


@dataclass(frozen=True, eq=False)
class PhaseType:
    """The time until a chain that begins in `alpha` and moves by `S` is absorbed.

    >>> PhaseType.erlang(2, 0.5).moment(2)  # 1.5 of the squared mean
    0.375
    """

    alpha: Floats
    S: Floats

    def __init__(self, alpha: npt.ArrayLike, S: npt.ArrayLike) -> None:  # noqa: N803
        try:
            begin, moves = np.array(alpha, dtype=np.float64), np.array(S, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadInput("phase type: alpha and S must be numbers") from None
        begin.flags.writeable = moves.flags.writeable = False
        object.__setattr__(self, "alpha", begin)
        object.__setattr__(self, "S", moves)
        _need_valid(begin, moves)

    @classmethod
    def exponential(cls, mean_s: float) -> PhaseType:
        return cls.erlang(1, mean_s)

    @classmethod
    def erlang(cls, phases: int, mean_s: float) -> PhaseType:
        """So many equal phases in a row: SCV 1 / phases. Paper 4 serves with two."""
        if not (phases >= 1 and phases == int(phases)):
            raise BadInput(f"Erlang with {phases:g} phases: at least one, and whole ones")
        rate = phases / _positive(mean_s)
        return cls(np.eye(phases)[0], rate * (np.eye(phases, k=1) - np.eye(phases)))

    @classmethod
    def hyperexponential(cls, shares: npt.ArrayLike, means_s: npt.ArrayLike) -> PhaseType:
        """One of several exponential times, each with its share."""
        means = np.asarray(means_s, dtype=np.float64)
        if not (np.isfinite(means).all() and (means > 0).all()):
            raise BadInput("hyperexponential: every mean service time must be above 0")
        return cls(shares, -np.diag(1 / means))

    @property
    def phases(self) -> int:
        return len(self.alpha)

    @cached_property
    def exits(self) -> Floats:
        """Rates of ending, by phase."""
        return np.asarray(np.maximum(-self.S.sum(axis=1), 0.0), dtype=np.float64)

    @cached_property
    def in_phases(self) -> Floats:
        """α(−S)⁻¹: expected times in each phase."""
        return np.asarray(np.linalg.solve(-self.S.T, self.alpha), dtype=np.float64)

    def moment(self, k: int) -> float:
        """E[S^k] = k! α (−S)⁻ᵏ e."""
        v = self.in_phases if k else self.alpha
        for _ in range(k - 1):
            v = np.asarray(np.linalg.solve(-self.S.T, v), dtype=np.float64)
        return math.factorial(k) * float(v.sum())

    @property
    def mean_s(self) -> float:
        return self.moment(1)

    @property
    def scv(self) -> float:
        return self.moment(2) / self.moment(1) ** 2 - 1

    def with_mean(self, mean_s: float) -> PhaseType:
        """The same shape with another mean: a CPU share of x makes every time 1/x as long."""
        return PhaseType(self.alpha, self.S * (self.mean_s / _positive(mean_s)))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """So many durations: all walk through the phases at once, those that have ended drop out."""
        total = np.zeros(count)
        alive = np.arange(count)
        state = rng.choice(self.phases, size=count, p=self.alpha / self.alpha.sum())
        ladders = np.cumsum(np.hstack([self.S - np.diag(np.diag(self.S)), self.exits[:, np.newaxis]]), axis=1)
        ladders /= ladders[:, -1:]
        while len(alive):
            total[alive] += rng.standard_exponential(len(alive)) / -self.S[state, state]
            state = (ladders[state] <= rng.random((len(alive), 1))).sum(axis=1)
            stays = state < self.phases
            alive, state = alive[stays], state[stays]
        return total


def fitted_service(mean_s: float, scv: float, third: float | None = None) -> PhaseType:
    """A phase type with this mean and squared coefficient of variation; above SCV 1 the third moment too, if it can.

    Below 1 it is an Erlang mixture of k − 1 and k equal phases (Tijms), at most 50; from 1 on two exponentials.
    """
    _positive(mean_s)
    if not scv >= 0:
        raise BadInput(f"service times with a squared coefficient of variation of {scv:g}: it must be 0 or more")
    if scv < 1 - 1e-9:
        return _mixed_erlang(mean_s, max(scv, 1 / PHASES_MAX))
    if scv <= 1 + 1e-9:
        return PhaseType.exponential(mean_s)
    r = (1 + scv) / 2
    t = third / (6 * mean_s**3) if third is not None else 0.0
    if t > r**2 * (1 + 1e-9):
        long, short, share = two_exponentials(r, t)
    else:  # balanced: both branches carry half of the load
        share = (1 - math.sqrt((scv - 1) / (scv + 1))) / 2
        long, short = 1 / (2 * share), 1 / (2 * (1 - share))
    return PhaseType.hyperexponential([share, 1 - share], [long * mean_s, short * mean_s])


def two_exponentials(r: float, t: float) -> tuple[float, float, float]:
    """Means a > b and the share of a, for mean 1, m2 = 2r and m3 = 6t; needs r > 1 and t > r²."""
    s, q = (t - r) / (r - 1), (t - r * r) / (r - 1)
    a = (s + math.sqrt(max(s * s - 4 * q, 0.0))) / 2
    b = q / a  # not by subtraction: b is near 0 where t is near r²
    return a, b, (1 - b) / (a - b)


def _mixed_erlang(mean_s: float, scv: float) -> PhaseType:
    phases = math.ceil(1 / scv - 1e-9)
    p = (phases * scv - math.sqrt(max(phases * (1 + scv) - phases**2 * scv, 0.0))) / (1 + scv)
    p = min(max(p, 0.0), 1.0)
    rate = (phases - p) / mean_s
    alpha = np.zeros(phases)
    alpha[0] = 1 - p
    alpha[min(1, phases - 1)] += p
    return PhaseType(alpha, rate * (np.eye(phases, k=1) - np.eye(phases)))


def _positive(mean_s: float) -> float:
    if not (mean_s > 0 and math.isfinite(mean_s)):
        raise BadInput(f"a mean service time of {mean_s:g} s: it must be above 0")
    return mean_s


def _need_valid(alpha: Floats, s: Floats) -> None:
    if alpha.ndim != 1 or s.shape != (len(alpha), len(alpha)) or not alpha.size:
        raise BadInput(f"phase type: alpha has the shape {alpha.shape} and S {s.shape}; they must be n and n × n")
    if not (np.isfinite(alpha).all() and np.isfinite(s).all()):
        raise BadInput("phase type: alpha and S have values that are no finite numbers")
    if (alpha < 0).any() or abs(alpha.sum() - 1) > 1e-9:
        raise BadInput(f"phase type: alpha sums to {alpha.sum():.6g}; it must be probabilities that sum to 1")
    off = s - np.diag(np.diag(s))
    if (off < 0).any() or (np.diag(s) >= 0).any() or (s.sum(axis=1) > 1e-9 * -np.diag(s)).any():
        raise BadInput(
            "phase type: S must have rates off its diagonal, a negative diagonal, and rows that sum to 0 or less"
        )
    if np.linalg.cond(s) > 1e14:
        raise BadInput("phase type: S has phases that never end")
