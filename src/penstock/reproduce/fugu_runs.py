"""Paper 2's experiment: every configuration, tuner and learner in nine scenarios, as one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from penstock.core.errors import ExternalError
from penstock.core.loop import Step
from penstock.core.observation import Observation
from penstock.pipeline.spread import spread
from penstock.policies.fugu_learning import SETTINGS as LEARNING
from penstock.policies.fugu_scaler import Layout
from penstock.policies.fugu_settings import SPACE, TABLE_2, Settings
from penstock.policies.registry import Named
from penstock.reproduce.fugu_worlds import BOUND_S, MOVES, PER_HOUR, TICK_S, scenarios
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario

PER_MINUTE = round(60 / TICK_S)
# The first minute places the operators for the first time: that is no policy's doing.
SETTLED = 6
LATENCIES_S = (2.0, 4.0, 5.0, 6.0)
OURS, PRINTED = "ours", "as printed"
BASE = Settings(0.8, 0.35)


@dataclass(frozen=True, slots=True)
class Result:
    """One run in the paper's figures."""

    cost: float
    """Dollars: in each minute the largest number of hosts."""
    violations: int
    """Measurements in which the mean latency of the queries was above 3 s."""
    moves: int
    """Decisions that moved operators."""


Cell = tuple[str, str, str]
"""Scenario, what it is called here, and the policy."""
Results = Mapping[tuple[str, str], Result]


def policies(seeds: int, frontier: int) -> dict[str, str]:
    """Every policy by what it is called here."""
    found = {name(each): f"fugu:{each.text()},{MOVES}" for each in TABLE_2}
    for seed in range(seeds):
        found[f"{OURS} {seed}"] = f"fugu-tuned:{MOVES},seed={seed * 100_000}"
        found[f"{PRINTED} {seed}"] = f"fugu-tuned:{MOVES},goal=printed,any_host=false,seed={seed * 100_000}"
    for latency_s in LATENCIES_S:
        found[f"bound {latency_s:g}"] = f"fugu-tuned:{MOVES},latency_s={latency_s:g}"
    found["printed, any"] = f"fugu-tuned:{MOVES},goal=printed,any_host=true"
    found["first, mean"] = f"fugu-tuned:{MOVES},goal=first,any_host=false"
    found["long window"] = f"fugu-tuned:{MOVES},shortest=36,longest=90"
    for rate, discount in LEARNING:
        found[f"rl {rate:g} {discount:g}"] = f"fugu-rl:rate={rate:g},discount={discount:g}"
    found |= {f"fixed {what}": f"fugu:{each.text()},{MOVES}" for what, each in FIXED.items()}
    return found | {f"static {n}": f"fugu:{each.text()},{MOVES}" for n, each in enumerate(_drawn(frontier))}


FIXED = {
    "as given": BASE,
    "lower_ticks=3": Settings(0.8, 0.35, lower_ticks=3),
    "upper_ticks=4": Settings(0.8, 0.35, upper_ticks=4),
    "grace_ticks=5": Settings(0.8, 0.35, grace_ticks=5),
    "best-fit-decreasing": Settings(0.8, 0.35, packing="best-fit-decreasing"),
}


def name(settings: Settings) -> str:
    return f"({settings.upper:g}, {settings.lower:g})"


def _drawn(count: int) -> list[Settings]:
    """Static configurations from all over the tuned space."""
    rng = np.random.default_rng(2015)
    return [Settings.at({key: axis.at(rng.random()) for key, axis in SPACE.items()}) for _ in range(count)]


def run(
    traces: Path | None, seeds: int, frontier: int, done: Callable[[float], None] | None = None, each: int = 3
) -> tuple[Results, dict[str, bool]]:
    """Every run by scenario and name, in so many of each workload's; and which scenarios have a real load."""
    worlds = [pair for place, pair in enumerate(scenarios(traces)) if place % 3 < each]
    known = {scenario.name: is_real for scenario, is_real in worlds}
    cells = [(world, called, text) for world in known for called, text in policies(seeds, frontier).items()]
    folder = None if traces is None else str(traces.resolve())
    found = spread(lambda cell: _result(folder, cell), cells, done=done, per_task=2)
    for cell, result in zip(cells, found, strict=True):
        if isinstance(result, str):
            raise ExternalError(f"{cell[0]}, {cell[2]}: {result}")
    return {cell[:2]: each for cell, each in zip(cells, found, strict=True) if isinstance(each, Result)}, known


@cache
def _worlds(folder: str | None) -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario, _ in scenarios(None if folder is None else Path(folder))}


def _result(folder: str | None, cell: Cell) -> Result | str:
    try:
        scenario = _worlds(folder)[cell[0]]
        return measured(scenario, replay(scenario, Named.parse(cell[2]).build(scenario.job())))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def measured(scenario: Scenario, steps: Iterable[Step]) -> Result:
    """A run in the paper's figures."""
    layout, hosts = Layout.of(scenario.dataflow), list[int]()
    late = moves = 0
    for number, step in enumerate(steps):
        hosts.append(len(step.target.workers))
        if number >= SETTLED:
            late += _latency_s(step.seen, layout) > BOUND_S
            moves += step.target.instances != step.seen.target.instances
    minutes = [max(hosts[begin : begin + PER_MINUTE]) for begin in range(0, len(hosts), PER_MINUTE)]
    return Result(sum(minutes) * PER_HOUR / 60, late, moves)


def _latency_s(seen: Observation, layout: Layout) -> float:
    """The mean over all queries of their mean latency; of one that answered nothing, the age of what waits."""
    each = []
    for query, ends in enumerate(layout.sinks):
        means = [path.mean for end in ends if (path := seen.paths[end]).count]
        if not means:
            own = [name for name, of in layout.queries.items() if of == query]
            means = [max(seen.operators[name].latency_s or 0.0 for name in own)]
        each.append(max(means))
    return sum(each) / len(each)
