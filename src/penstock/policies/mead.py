"""Shares of a core by the response times that bursty arrivals lead to (paper 4, MEAD)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import ClassVar, cast

import numpy as np

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.dataflow import Dataflow
from penstock.core.errors import BadInput, unknown
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.models.arrivals import METHODS, fit_maps, poisson
from penstock.models.arrivals.spaced import SpacedArrivals
from penstock.models.arrivals.window import ARRIVALS_LEAST, Window
from penstock.models.markov.chains import Floats
from penstock.policies.mead_plan import Goal, Markovian, Plan, Predictor, Queue, ResponseModel, independent, plan
from penstock.policies.mead_quota import QuotaPredictor, need_plain_paths
from penstock.policies.share_levels import Levels, by_operator

Fit = Callable[[Floats], list[Queue]]
SERVICES = ("core", "quota")


class Mead:
    """The least shares whose predicted response keeps the bound; arrivals are fitted as bursty processes.

    The gaps between the latest arrivals are kept. Every `every_s` MAPs are fitted to all of them and to the latest
    half, and each operator is a queue; the worst prediction counts. Shares go up at once and down by one level.
    """

    source: ClassVar[str] = "paper 4, Figure 5"
    needs = frozenset({Knob.CPU_SHARE})

    def __init__(  # noqa: PLR0913  what can be set is what the paper varies
        self,
        job: Job,
        model: str = "map",
        percentile: float = 0.0,
        bound_s: float = 0.0,
        bounds: str = "",
        safety: float = 1.0,
        every_s: float = 60.0,
        delay_s: float = 0.0,
        window: int = 50_000,
        windows: int = 2,
        best: int = 5,
        method: str = "calibrated",
        service: str = "core",
        cores: str = "",
        levels: int = 5,
        least: float = 0.4,
        delta: float = 0.05,
        down_at_once: bool = False,
    ) -> None:
        between("mead: delay_s", delay_s, 0)
        between("mead: every_s", every_s, 0)
        between("mead: window", window, ARRIVALS_LEAST, 10_000_000)
        between("mead: windows", windows, 1, 8)
        self._levels, self._operators = Levels(levels, least), job.dataflow.order
        self._goal = goal_of(job, percentile, _bounds(job, bound_s, bounds), safety, delta)
        self._every_s, self._delay_s, self._at_once = every_s, delay_s, down_at_once
        self._gaps, self._sizes = Gaps(window), [window >> halved for halved in range(windows)]
        self.fit: Fit = fitting(model, method, best, percentile)
        """From a window of gaps to queues; policies that see the same stream may share what was fitted."""
        self._model: Callable[[list[Queue]], ResponseModel] = serving(job.dataflow, service, cores, model)
        self.memory_s = every_s + delay_s
        self._last_s: float | None = None
        self._plans: deque[tuple[float, Plan]] = deque()
        self._reason, self._model_s = "no analysis yet", 0.0

    def decide(self, seen: Observation) -> Decision:
        if isinstance(seen.arrivals, SpacedArrivals):
            self._gaps.add(seen.arrivals.gaps_s)
        if self._last_s is None:
            self._last_s = seen.time_s - seen.span_s
        if seen.time_s - self._last_s >= self._every_s - 1e-9:
            self._last_s = seen.time_s
            self._analyse(seen.time_s)
        now = self._levels.seen(seen.target, self._operators)
        while self._plans and self._plans[0][0] <= seen.time_s + 1e-9:
            now = self._adopt(now, self._plans.popleft()[1])
        target = self._levels.asked(seen.target, now)
        share = sum(self._levels.shares[level] for level in now.values()) / len(now)
        signals = {"cpu_share": share, "bound_s": min(self._goal.bounds_s.values())}
        if math.isfinite(self._model_s):
            signals["expected_s"] = self._model_s
        return Decision(target, self._reason, signals)

    def _analyse(self, now_s: float) -> None:
        windows = self._gaps.windows(self._sizes)
        if not windows:
            self._reason = f"{len(self._gaps)} gaps between arrivals are known: {ARRIVALS_LEAST} are needed"
            return
        try:
            queues = [queue for window in windows for queue in self.fit(window)]
            found = plan(self._model(queues), self._levels.shares, self._goal)
        except BadInput as error:  # a window that no process fits: what runs stays
            self._reason = f"no analysis: {error}"
            return
        self._plans.append((now_s + self._delay_s, found))

    def _adopt(self, now: dict[str, int], planned: Plan) -> dict[str, int]:
        """Up at once, down by one level: a window that has just forgotten a burst may see the next one soon."""
        steps = {name: level if self._at_once else max(level, now[name] - 1) for name, level in planned.levels.items()}
        self._model_s = max(planned.expected_s.values(), default=0.0)
        what = f"the {self._goal.percentile:.0%} quantile" if self._goal.percentile else "the mean"
        told = ", ".join(f"{name} {self._levels.shares[level]:.0%}" for name, level in planned.levels.items())
        bound_s = min(self._goal.bounds_s.values())
        self._reason = f"{told}: {what} would be {self._model_s:.3g} s, planned for {bound_s:.3g} s"
        return steps


class Gaps:
    """The latest gaps between arrivals, so many at most (paper 4 §IV-C)."""

    def __init__(self, most: int) -> None:
        self._most, self._parts, self._count = most, deque[Floats](), 0

    def __len__(self) -> int:
        return min(self._count, self._most)

    def add(self, gaps_s: Floats) -> None:
        self._parts.append(gaps_s)
        self._count += len(gaps_s)
        while self._parts and self._count - len(self._parts[0]) >= self._most:
            self._count -= len(self._parts.popleft())

    def windows(self, sizes: list[int]) -> list[Floats]:
        """The latest of each size; sizes that there are not enough gaps for are one window. None of too few."""
        if len(self) < ARRIVALS_LEAST:
            return []
        every = np.concatenate(list(self._parts))
        sizes = sorted({min(size, len(self)) for size in sizes if size >= ARRIVALS_LEAST}, reverse=True)
        return [every[-size:] for size in sizes]


def goal_of(job: Job, percentile: float, bounds_s: dict[str, float], safety: float, delta: float) -> Goal:
    """What is planned for: `safety` of each bound. An accurate fit of a load that drifts needs a margin."""
    between("mead: percentile", percentile, 0, 0.9999)
    between("mead: safety", safety, 1e-3, 10)
    between("mead: delta", delta, 0, 1)
    if not bounds_s:
        raise BadInput(f"mead needs a bound on the response: the objective is {job.objective}; give bound_s")
    return Goal({end: bound * safety for end, bound in bounds_s.items()}, percentile, delta)


def _bounds(job: Job, bound_s: float, bounds: str) -> dict[str, float]:
    """By the end of each path: what is named, else one for all, else the objective's."""
    between("mead: bound_s", bound_s, 0)
    ends = [sink.name for sink in job.dataflow.sinks]
    for_all = bound_s or job.objective.latency_s
    every = dict.fromkeys(ends, for_all) if for_all else {}
    return every | by_operator(bounds, ends, "mead: bounds")


def fitting(model: str, method: str, best: int, percentile: float) -> Fit:
    """How a window becomes queues: by MAPs, or by the models that paper 4 compares with."""
    if model not in MODELS:
        raise unknown("mead: model", model, MODELS)
    if method not in METHODS:
        raise unknown("mead: method", method, METHODS)
    between("mead: best", best, 1, 100)
    if model == "gi" and percentile:
        raise BadInput("mead:model=gi: Kingman's GI/G/1 gives a mean only; use model=map or model=m for a percentile")
    return partial(MODELS[model], method, best)


def serving(flow: Dataflow, service: str, cores: str, model: str) -> Callable[[list[Queue]], ResponseModel]:
    """What a share is: a core that is slower by so much, or a quota of one, as cgroups have it."""
    if service not in SERVICES:
        raise unknown("mead: service", service, SERVICES)
    if service == "core":
        if cores:
            raise BadInput("mead:cores says what a share of 1 is of a quota: give service=quota as well")
        return lambda queues: Predictor(flow, queues)
    if model == "gi":
        raise BadInput("mead:service=quota: Kingman's GI/G/1 has no arrivals to draw; use model=map or model=m")
    need_plain_paths(flow)
    whole = by_operator(cores, flow.order, "mead: cores")
    for name, each in whole.items():
        between(f"mead: cores of {name}", each, 1e-3, 1)
    return lambda queues: QuotaPredictor(flow, cast("list[Markovian]", queues), whole)


def _map(method: str, best: int, gaps_s: Floats) -> list[Queue]:
    # The same window is always fitted alike: a restarted policy decides the same.
    return [Markovian(each) for each in fit_maps(gaps_s, method, best, rng=np.random.default_rng(0))]


def _m(_method: str, _best: int, gaps_s: Floats) -> list[Queue]:
    return [Markovian(poisson(Window.of(gaps_s).rate))]


def _gi(_method: str, _best: int, gaps_s: Floats) -> list[Queue]:
    window = Window.as_seen(gaps_s)
    return [independent(window.rate, window.scv)]


MODELS: dict[str, Callable[[str, int, Floats], list[Queue]]] = {"map": _map, "m": _m, "gi": _gi}
"""By Markovian processes (MEAD), as M/G/1, and as GI/G/1."""
