"""What a queue does with the very arrivals that were seen (Lindley's recursion), without a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.models.markov.chains import Floats


@dataclass(frozen=True, slots=True)
class Driven:
    """Response over a window, in mean service times."""

    mean: float
    p95: float


def responses(gaps_s: Floats, services_s: Floats) -> Floats:
    """The response time of each arrival, from an empty queue; `gaps_s[0]` is before the first.

    W_{k+1} = max(0, W_k + S_k − X_{k+1}) is a walk minus the least it ever was.

    >>> responses(np.array([1.0, 1.0, 5.0]), np.array([3.0, 1.0, 1.0])).tolist()
    [3.0, 3.0, 1.0]
    """
    walk = np.append(0.0, np.cumsum(services_s[:-1] - gaps_s[1:]))
    return np.asarray(walk - np.minimum.accumulate(walk) + services_s, dtype=np.float64)


def driven(gaps: Floats, loads: Sequence[float], seeds: Sequence[np.random.Generator]) -> list[Driven]:
    """Means and 95th percentiles at each load, Erlang-2 service, over as many draws of it as there are generators."""
    unit = [rng.standard_gamma(2.0, len(gaps)) / 2 for rng in seeds]
    mean = float(gaps.mean())
    found = []
    for load in loads:
        runs = [responses(gaps, services * (load * mean)) for services in unit]
        means = [run.mean() for run in runs]
        tails = [np.partition(run, int(0.95 * len(run)))[int(0.95 * len(run))] for run in runs]
        found.append(Driven(float(np.mean(means)) / (load * mean), float(np.mean(tails)) / (load * mean)))
    return found
