"""A CPU quota as it is: a token bucket that is filled once a period, not a slower server (cgroups' cpu.max).

Within a period the operator runs at full speed until its quota is used up, then it stands still until the next one.
With a period of 100 ms short queues vanish that a server of that share would have; with 5 ms it is nearer to one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.compiled import compiled
from penstock.models.markov.chains import Floats
from penstock.models.markov.map import Map
from penstock.models.markov.phase_type import PhaseType

# Arrivals drawn for an estimate, and the part of them that is not counted while the queue fills.
DRAWN, SETTLING = 400_000, 0.05
BLOCKS = 20
# Linux: what a core that falls idle keeps of its quota over the end of the period (at most 1 ms, and half of that tells
# the measured p95 best: `scripts/bench quota`), and the least quota that a period may have.
KEPT_S, LEAST_S = 0.0005, 0.001
# With the usual 100 ms short queues are served at full speed before the quota runs out: see docs/arrivals.md.
PERIOD_S = 0.005


@dataclass(frozen=True, slots=True)
class Quota:
    """`share` of a core, handed out once a period."""

    share: float
    period_s: float = PERIOD_S
    kept_s: float = 0.0
    """What an idle operator keeps of the last period's quota; 0: an ideal bucket."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise BadInput(f"quota: a share of {self.share:g} of a core; it must be above 0 and at most 1")
        if not (self.period_s > 0 and math.isfinite(self.period_s)):
            raise BadInput(f"quota: a period of {self.period_s:g} s; it must be above 0")
        if not (self.kept_s >= 0 and math.isfinite(self.kept_s)):
            raise BadInput(f"quota: {self.kept_s:g} s are kept; it must be 0 or more")

    @classmethod
    def of_linux(cls, share: float) -> Quota:
        """About 5 ms, longer where the least quota asks for it.

        >>> Quota.of_linux(0.5).period_s, Quota.of_linux(0.1).period_s
        (0.005, 0.01)
        """
        return cls(share, max(PERIOD_S, LEAST_S / share), KEPT_S)

    def finish(self, times_s: Floats, demands_s: Floats) -> Floats:
        """When each arrival is done, first come first served; demands are CPU time at full speed."""
        return finish(times_s, demands_s, (self.share * self.period_s, self.period_s, self.kept_s))


@dataclass(frozen=True, eq=False)
class DrawnResponse:
    """Estimated from drawn arrivals."""

    utilisation: float
    """Of the quota."""
    mean_s: float
    error_s: float
    """Standard error of the mean, by means of 20 blocks."""
    responses_s: Floats
    """In ascending order."""

    @property
    def is_stable(self) -> bool:
        return self.utilisation < 1

    def percentile_s(self, p: float) -> float:
        if not 0 < p < 1:
            raise BadInput(f"percentile {p:g}: it is a share above 0 and below 1, such as 0.95")
        return float(self.responses_s[int(p * len(self.responses_s))]) if self.is_stable else math.inf


def under_quota(
    arrivals: Map, service: PhaseType, quota: Quota, rng: np.random.Generator | None = None, drawn: int = DRAWN
) -> DrawnResponse:
    """Response times under a quota; `service` is CPU time at full speed. The same rng gives the same answer.

    >>> whole = under_quota(Map([[-50.0]], [[50.0]]), PhaseType.exponential(0.01), Quota(1.0))
    >>> abs(whole.mean_s - 0.02) < 5 * whole.error_s  # the whole core: M/M/1 at half load
    True
    """
    load = arrivals.rate * service.mean_s / quota.share
    if load >= 1:
        return DrawnResponse(load, math.inf, math.inf, np.empty(0))
    rng = rng or np.random.default_rng(0)
    times = np.cumsum(arrivals.sample(drawn, rng))
    ends = quota.finish(times, service.sample(drawn, rng))
    responses = (ends - times)[int(SETTLING * drawn) :]
    blocks = [float(block.mean()) for block in np.array_split(responses, BLOCKS)]
    error = float(np.std(blocks, ddof=1)) / math.sqrt(BLOCKS)
    return DrawnResponse(load, float(responses.mean()), error, np.sort(responses))


@compiled
def finish(times_s: Floats, demands_s: Floats, terms: tuple[float, float, float]) -> Floats:
    """CPU runs at full speed while its period has quota left. `terms`: quota and period in seconds, what is kept."""
    quota_s, period_s, kept_s = terms
    ends = np.empty(len(times_s))
    clock, period, used, rounding = 0.0, 0.0, 0.0, 1e-12 * period_s
    for k in range(len(times_s)):
        clock = max(clock, times_s[k])
        if np.floor(clock / period_s) > period:
            period, used = np.floor(clock / period_s), -min(quota_s - used, kept_s)
        left = demands_s[k]
        while True:
            # What can be done before the quota or the period ends, whichever is first.
            runs = min(quota_s - used, (period + 1) * period_s - clock)
            if left <= runs + rounding:
                clock, used = clock + left, used + left
                break
            runs = max(runs, 0.0)
            left -= runs
            period, used = period + 1, -min(quota_s - used - runs, kept_s)
            clock = period * period_s
        ends[k] = clock
    return ends
