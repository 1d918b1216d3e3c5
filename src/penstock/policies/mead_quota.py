"""Response times where a share is a quota, as cgroups have it: arrivals are drawn once and served operator by operator.

A line runs on a whole core until its period's quota is used up. As a slower core the same share was predicted 1.7 to
2.7 times too slow at the 95th percentile (docs/live/shares).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.core.dataflow import Dataflow
from penstock.models.markov.chains import Floats
from penstock.models.queues.quota import Quota
from penstock.policies.mead_plan import PHASES, Markovian, Path

DRAWN, SETTLING = 100_000, 0.05
Ints = NDArray[np.int64]
Given = tuple[tuple[str, float], ...]
"""Operators in the order in which a row meets them, each with its share."""


@dataclass(eq=False)
class QuotaPredictor:
    """The same draws at all shares: more of a share is never predicted to be slower by chance."""

    flow: Dataflow
    models: Sequence[Markovian]
    cores: Mapping[str, float] = field(default_factory=dict)
    """What a share of 1 is, by operator; 1 where it is not named."""

    def along(self, path: Path, shares: Mapping[str, float], percentile: float) -> float:
        given = tuple((name, shares[name]) for name in path)
        if max((self._load(name, share) for name, share in given), default=0.0) >= 1:
            return math.inf
        return max((_told(each.responses(given), percentile) for each in self._draws), default=0.0)

    def slowness(self, name: str, share: float, by_load: bool) -> float:
        load = self._load(name, share)
        if by_load or load >= 1:
            return load if by_load else math.inf
        return max(_told(each.responses(((name, share),)), 0.0) for each in self._draws)

    def _load(self, name: str, share: float) -> float:
        rate = max(each.arrivals.rate for each in self.models)
        return rate * self.flow.visits[name] * self.flow.costs_s[name] / share

    @cached_property
    def _draws(self) -> list[Draws]:
        return [Draws(each, self.flow, self.cores) for each in self.models]


class Draws:
    """Rows of one arrival process, and the CPU time that each needs at each operator."""

    def __init__(self, model: Markovian, flow: Dataflow, cores: Mapping[str, float]) -> None:
        rng = np.random.default_rng(0)
        self._times_s = np.cumsum(model.arrivals.sample(DRAWN, rng))
        self._flow, self._cores, self._dice = flow, cores, rng.random(DRAWN)
        self._rngs = dict(zip(flow.order, rng.spawn(len(flow.order)), strict=True))
        self._work_s: dict[str, tuple[Ints, Floats]] = {}
        self._ends_s: dict[Given, Floats] = {(): self._times_s}

    def responses(self, given: Given) -> Floats:
        """From the source to the end of the last operator, of the rows that reach it, once the queues have filled."""
        copies, _ = self._work(given[-1][0])
        took = (self._ends(given) - self._times_s)[copies > 0]
        return np.asarray(took[int(SETTLING * len(took)) :])

    def _ends(self, given: Given) -> Floats:
        """When the last operator is done with each row; with one that does not reach it, when it came."""
        if given not in self._ends_s:
            (name, share), came = given[-1], self._ends(given[:-1])
            copies, work_s = self._work(name)
            quota = Quota.of_linux(share * self._cores.get(name, 1.0))
            done = quota.finish(np.repeat(came, copies), work_s)
            ends = came.copy()
            ends[copies > 0] = done[np.cumsum(copies)[copies > 0] - 1]
            self._ends_s[given] = ends
        return self._ends_s[given]

    def _work(self, name: str) -> tuple[Ints, Floats]:
        """How often each row reaches an operator, and the CPU time that each of these needs."""
        if name not in self._work_s:
            copies = np.floor(self._flow.visits[name] + self._dice).astype(np.int64)
            mean_s = self._flow.costs_s[name] * self._cores.get(name, 1.0)
            drawn = self._rngs[name].standard_gamma(PHASES, int(copies.sum())) * mean_s / PHASES
            self._work_s[name] = copies, drawn
        return self._work_s[name]


def _told(responses_s: Floats, percentile: float) -> float:
    if not percentile:
        return float(responses_s.mean())
    place = int(percentile * len(responses_s))
    return float(np.partition(responses_s, place)[place])
