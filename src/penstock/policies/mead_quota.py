"""Response times where a share is a quota, as cgroups have it: a row has a whole core until its period's part is used.

What that changes is drawn: the same rows are served by slower cores and by quotas, and a response of the one stands for
the response of the other that as many rows exceed. So the exact queues of `Predictor` are corrected, which know of
bursts that are too rare to be drawn. `scripts/bench mead` holds both against millions of rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.core.dataflow import Dataflow
from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats
from penstock.models.queues.quota import Quota
from penstock.policies.mead_plan import PHASES, Markovian, Path, Predictor, timed_paths

DRAWN, SETTLING = 50_000, 0.05
REACH_LEAST = 500  # rows that an operator must get of those drawn
ABOVE_LEAST = 50  # rows that must have taken longer than a response, or it is taken as slower cores have it
Ints = NDArray[np.int64]
Given = tuple[tuple[str, float], ...]
"""Operators in the order in which a row meets them, each with its share."""


def need_plain_paths(flow: Dataflow) -> None:
    """Rows are followed from one source through forks; where streams join, or hardly any row comes, nothing is told."""
    first, *more = [each.name for each in flow.operators if not each.after]
    if more:
        raise BadInput(f"mead:service=quota: {first} and {more[0]} are both sources; use service=core")
    for each in flow.operators:
        if len(each.after) > 1:
            raise BadInput(f"mead:service=quota: streams join at {each.name}; use service=core")
    rows = rows_drawn(flow)
    for name in {name for path in timed_paths(flow) for name in path}:
        if (few := rows * flow.visits[name]) < REACH_LEAST:
            raise BadInput(
                f"mead:service=quota: of {rows:,} rows only {few:.0f} reach {name}, and {REACH_LEAST} are needed; "
                "use service=core"
            )


def rows_drawn(flow: Dataflow) -> int:
    """Of the source: fewer where operators make many of one, so that none is followed through more than `DRAWN`."""
    return int(DRAWN / max(1.0, *flow.visits.values()))


@dataclass(eq=False)
class QuotaPredictor:
    """The same draws at all shares, so that chance does not make more of a share look slower."""

    flow: Dataflow
    models: Sequence[Markovian]
    cores: Mapping[str, float] = field(default_factory=dict)
    """What a share of 1 is, by operator; 1 where it is not named."""

    def along(self, path: Path, shares: Mapping[str, float], percentile: float) -> float:
        return max(self._by_model(path, shares, percentile), default=0.0)

    def slowness(self, path: Path, shares: Mapping[str, float], by_load: bool) -> float:
        if by_load:
            return max(each.slowness(path, shares, by_load) for each in self._exact)
        whole, before = self._by_model(path, shares, 0.0), self._by_model(path[:-1], shares, 0.0)
        return max(one - other for one, other in zip(whole, before, strict=True))

    def _by_model(self, path: Path, shares: Mapping[str, float], percentile: float) -> list[float]:
        if not path:
            return [0.0] * len(self.models)
        given = tuple((name, shares[name]) for name in path)
        return [
            rows.corrected_s(given, percentile, exact.along(path, shares, percentile))
            for exact, rows in zip(self._exact, self._rows, strict=True)
        ]

    @cached_property
    def _exact(self) -> list[Predictor]:
        return [Predictor(self.flow, [each]) for each in self.models]

    @cached_property
    def _rows(self) -> list[Rows]:
        count = rows_drawn(self.flow)
        drawn = [np.cumsum(each.arrivals.sample(count, np.random.default_rng(0))) for each in self.models]
        return [Rows(times_s, self.flow, self.cores) for times_s in drawn]


def _ranked(values: Floats, place: int) -> float:
    return float(np.partition(values, place)[place])


def _at_same_rank(slower: Floats, quota: Floats, slower_s: float) -> float:
    """By value, not by percentile: a burst that 5 % of all rows meet may be 1 % of those drawn, or none."""
    below = int(np.count_nonzero(slower <= slower_s))
    return _ranked(quota, below) if len(quota) - below >= ABOVE_LEAST else slower_s


def _of_means(slower: Floats, quota: Floats, slower_s: float) -> float:
    """What was not drawn are bursts: a backlog is worked off as fast by a quota as by a slower core of that share."""
    drawn_s, quota_s = float(slower.mean()), float(quota.mean())
    return quota_s + slower_s - drawn_s if slower_s > drawn_s else quota_s * slower_s / drawn_s


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """The rows that one operator of a path gets."""

    parent: Ints
    """Which row of the operator before it each comes from."""
    origin: Ints
    """Which row of the source."""
    work_s: Floats
    """The CPU time that each needs."""


class Rows:
    """Rows that come at given times, followed along paths; what an operator drops or doubles is drawn once."""

    def __init__(self, times_s: Floats, flow: Dataflow, cores: Mapping[str, float]) -> None:
        self._times_s, self._flow, self._cores = times_s, flow, cores
        everything = np.arange(len(times_s))
        self._stages: dict[Path, _Stage] = {(): _Stage(everything, everything, np.empty(0))}
        # The last ones alone: a plan changes one share at a time, and all ends of 100 levels took 200 MB.
        self._ends_s: dict[tuple[int, bool], tuple[Given, Floats]] = {}
        self._corrected_s: dict[tuple[Given, float], float] = {}

    def corrected_s(self, given: Given, percentile: float, slower_s: float) -> float:
        """The response with quotas, where with slower cores it is exactly this one; the mean for percentile 0."""
        if not math.isfinite(slower_s):
            return slower_s
        if (given, percentile) not in self._corrected_s:
            slower, quota = self._responses_s(given, is_slower=True), self._responses_s(given)
            corrected = _at_same_rank(slower, quota, slower_s) if percentile else _of_means(slower, quota, slower_s)
            self._corrected_s[given, percentile] = corrected
        return self._corrected_s[given, percentile]

    def response_s(self, given: Given, percentile: float) -> float:
        """With quotas, of these rows alone; the mean for percentile 0."""
        took = self._responses_s(given)
        return _ranked(took, int(percentile * len(took))) if percentile else float(took.mean())

    def _responses_s(self, given: Given, is_slower: bool = False) -> Floats:
        """From the source to the end of the last operator, once the queues have filled."""
        stage = self._stage(tuple(name for name, _ in given))
        took = self._ends(given, is_slower) - self._times_s[stage.origin]
        return took[int(SETTLING * len(took)) :]

    def _ends(self, given: Given, is_slower: bool) -> Floats:
        """When the last operator is done with each row that it gets."""
        if not given:
            return self._times_s
        kept, ends = self._ends_s.get((len(given), is_slower), ((), self._times_s))
        if kept != given:
            (name, share), stage = given[-1], self._stage(tuple(name for name, _ in given))
            cores = share * self._cores.get(name, 1.0)
            came = self._ends(given[:-1], is_slower)[stage.parent]
            quota, work_s = (Quota(1.0), stage.work_s / cores) if is_slower else (Quota.of_linux(cores), stage.work_s)
            ends = quota.finish(came, work_s)
            self._ends_s[len(given), is_slower] = given, ends
        return ends

    def _stage(self, path: Path) -> _Stage:
        if path not in self._stages:
            before, visits = self._stage(path[:-1]), self._flow.visits
            # Not the stream of the arrivals, whatever the place of the operator.
            rng = np.random.default_rng([1, *(self._flow.order.index(name) for name in path)])
            reach = visits[path[-1]] / (visits[path[-2]] if len(path) > 1 else 1.0)
            copies = np.floor(reach + rng.random(len(before.origin))).astype(np.int64)
            parent = np.repeat(np.arange(len(before.origin)), copies)
            mean_s = self._flow.costs_s[path[-1]] * self._cores.get(path[-1], 1.0)
            work_s = rng.standard_gamma(PHASES, len(parent)) * mean_s / PHASES
            self._stages[path] = _Stage(parent, before.origin[parent], work_s)
        return self._stages[path]
