"""Paper 4's worlds: a log analysis of three operators, and three streams that arrive in bursts.

Service times, rates and the synthetic trace's processes are not published: these give the paper's relations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.objective import Limits, Objective
from penstock.models.arrivals import Map, compose, poisson
from penstock.models.arrivals.gap_files import read_gaps
from penstock.models.capacity import linear
from penstock.models.markov.chains import Floats
from penstock.models.markov.map2 import map2
from penstock.sim.scenario import Scenario
from penstock.sim.specs import EventSpec
from penstock.sim.workloads import Load

TICK_S = 10.0
# Demand of the three, the matcher's as 1.
DEMANDS = {"parser": 0.3, "counter": 0.2, "matcher": 1.0}
REPORTED = "matcher"
LEAST = 0.4
MMPP2 = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]])
H2 = Map([[-0.4, 0.0], [0.0, -2.0]], [[0.385, 0.015], [0.025, 1.975]])
# Bursts of 8 s at 250/s every half minute, 60/s between them.
SLOW = Map([[-250.125, 0.125], [1 / 24, -60 - 1 / 24]], [[250.0, 0.0], [0.0, 60.0]])


@dataclass(frozen=True, slots=True)
class Stream:
    """A trace of the paper's."""

    name: str
    rate: float
    load: float
    """Of the matcher at the least share."""
    duration_s: float
    means_s: tuple[float, ...]
    """Bounds of Table I."""
    p95_s: tuple[float, ...]
    """Bounds of Table II."""
    gaps: Callable[[np.random.Generator], Floats]

    def times(self, seed: int, recorded: Floats | None = None) -> Floats:
        """When events arrive; a recorded trace is the same for every seed."""
        gaps = self.gaps(np.random.default_rng([seed, 4])) if recorded is None else recorded
        times = np.cumsum(gaps)
        return np.asarray(times[times < self.duration_s], dtype=np.float64)


def _synthetic(rng: np.random.Generator) -> Floats:
    """Calm, bursty, calm, bursty in another way: four times 350 s at one rate."""
    parts = []
    for process in (poisson(1.0), MMPP2, poisson(1.0), compose(MMPP2, H2)):
        gaps = process.with_rate(300.0).sample(150_000, rng)
        parts.append(gaps[np.cumsum(gaps) < 350.0])
    return np.concatenate(parts)


def _packets(rng: np.random.Generator) -> Floats:
    """Like packets: SCV 3.2, ρ₁ 0.24, and memory over thousands of arrivals."""
    r = 2.11 ** (1 / 3)
    parts = [map2(1.0, 2 * r, 6 * r * r * 1.2, gamma).map for gamma in (0.3, 0.95, 0.9995)]
    return compose(*parts).with_rate(318.0).sample(500_000, rng)


STREAMS: Mapping[str, Stream] = {
    "SYNT": Stream("SYNT", 300.0, 0.85, 1400.0, (0.1, 0.2, 0.3), (0.5, 0.75), _synthetic),
    "BC": Stream("BC", 318.0, 0.76, 1300.0, (0.3, 0.5, 0.75), (0.5, 1.0), _packets),
    "LM": Stream("LM", 107.5, 0.75, 1800.0, (1.5, 3.0, 5.0), (7.0, 10.0), lambda rng: SLOW.sample(260_000, rng)),
}


def flow_of(stream: Stream) -> Dataflow:
    """Parser, then counter and matcher, each of which gets a copy of every row."""
    matcher_s = stream.load * LEAST / stream.rate
    cost = {name: demand * matcher_s for name, demand in DEMANDS.items()}
    return Dataflow(
        (
            Operator("parser", cost["parser"]),
            Operator("counter", cost["counter"], after=("parser",)),
            Operator("matcher", cost["matcher"], after=("parser",)),
        )
    )


def scenario(stream: Stream, seed: int, recorded: Floats | None = None, bound_s: float = 1.0) -> Scenario:
    """One run's world: what arrives, and what each row needs, whatever the shares are."""
    flow, times = flow_of(stream), stream.times(seed, recorded)
    rng = np.random.default_rng([seed, 5])
    work = {name: rng.standard_gamma(2.0, len(times)) * flow.costs_s[name] / 2 for name in flow.order}
    spec = EventSpec(times, work_s=work)
    load = Load.of(spec.counts(TICK_S, stream.duration_s), TICK_S)
    return Scenario(
        stream.name, load, flow, linear(stream.rate / stream.load), Limits(1, 1),
        objective=Objective(bound_s), events=spec, workers_at_start=1, seed=seed,
    )  # fmt: skip


def read_packets(path: Path, unit: str = "us") -> Floats:
    """Gaps of a recorded trace, which must last as long as the run does."""
    gaps, _ = read_gaps(path, "iat", unit)
    if float(gaps.sum()) < STREAMS["BC"].duration_s:
        has, needs = float(gaps.sum()), STREAMS["BC"].duration_s
        raise BadInput(f"{path} has gaps of {has:.4g} s in all: {needs:.4g} s are needed, gaps in microseconds")
    return gaps
