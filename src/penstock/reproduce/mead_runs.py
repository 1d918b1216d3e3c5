"""Paper 4's experiment: every model, bound and baseline on three streams, as one Spark job."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from penstock.core.allocation import Allocation
from penstock.core.errors import ExternalError
from penstock.core.loop import Policy
from penstock.core.objective import Objective
from penstock.core.responses import Responses
from penstock.models.markov.chains import Floats
from penstock.pipeline.spread import spread
from penstock.policies.mead import Fit, Mead
from penstock.policies.mead_plan import Queue
from penstock.policies.share_levels import Levels
from penstock.policies.shares import ShareThreshold, StaticShare
from penstock.reproduce.mead_worlds import REPORTED, STREAMS, Stream, read_packets, scenario
from penstock.runs.replayed import replay
from penstock.sim.engine import Segment
from penstock.sim.scenario import Scenario

SAFETIES = (0.7, 0.5, 0.3, 0.2)
ONE_WINDOW = (25_000, 50_000, 100_000)
# Analysed every 10 s, a stream takes six times as many fits: these few seeds of them.
OFTEN_SEEDS, SIDE_SEEDS = 2, 3
# Stretches of which the arrays stay in a core's cache.
STRETCH_S = 50.0
OFTEN_S, DELAY_S, QUOTA_S = 10.0, 30.0, 0.005


@dataclass(frozen=True, slots=True)
class Goal:
    """A row of Table I (percentile 0) or II."""

    percentile: float
    bound_s: float

    def __str__(self) -> str:
        return f"{'p95' if self.percentile else 'mean'} {self.bound_s:g}"

    def of(self, responses: Responses) -> float:
        return responses.percentile(self.percentile) if self.percentile else responses.mean

    def is_kept(self, responses: Responses) -> bool:
        if not self.percentile:
            return responses.mean <= self.bound_s
        return responses.later_than(self.bound_s) <= (1 - self.percentile) * responses.count


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: response times along both paths, and the share of the CPU that the operators had, start included."""

    responses: Mapping[str, Responses]
    cpu: float

    def keeps(self, goal: Goal) -> bool:
        return all(goal.is_kept(each) for each in self.responses.values())

    def response_s(self, goal: Goal) -> float:
        """Along the matcher's path, as the paper reports it."""
        return goal.of(self.responses[REPORTED])


Cell = tuple[str, tuple[int, ...], bool]
"""Stream, seeds, and whether it is analysed every 10 s."""
Results = Mapping[tuple[str, int, str], Outcome]
"""By stream, seed and what the run is called."""


def goals(stream: Stream) -> list[Goal]:
    return [Goal(0.0, bound) for bound in stream.means_s] + [Goal(0.95, bound) for bound in stream.p95_s]


def middle(stream: Stream) -> Goal:
    """The bound of Table III."""
    return Goal(0.0, stream.means_s[1])


def run(
    trace: Path | None, seeds: int, often: int = OFTEN_SEEDS, done: Callable[[float], None] | None = None
) -> Results:
    """Every run. With a trace, BC is that one: its arrivals are the same for all seeds, service times are not."""
    cells: list[Cell] = []
    for name in STREAMS:
        groups = [tuple(range(seeds))] if name == "BC" and trace else [(seed,) for seed in range(seeds)]
        cells += [(name, group, False) for group in groups]
        fewer = range(min(often, seeds))
        cells += [(name, tuple(fewer), True)] if name == "BC" and trace else [(name, (n,), True) for n in fewer]
    # The longest first, so that none is left over at the end.
    cells.sort(key=lambda cell: (not cell[2], cell[0] != "BC"))
    where = None if trace is None else str(trace.resolve())
    results: dict[tuple[str, int, str], Outcome] = {}
    for cell, found in zip(cells, spread(lambda each: _cell(where, each), cells, done=done), strict=True):
        if isinstance(found, str):
            raise ExternalError(f"{cell[0]}, seeds {cell[1]}: {found}")
        results |= found
    return results


def _cell(where: str | None, cell: Cell) -> dict[tuple[str, int, str], Outcome] | str:
    try:
        return dict(cell_runs(cell, _recorded(where) if where and cell[0] == "BC" else None))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@cache
def _recorded(where: str) -> Floats:
    return read_packets(Path(where))


def cell_runs(cell: Cell, recorded: Floats | None) -> Iterator[tuple[tuple[str, int, str], Outcome]]:
    """All runs of a cell; what is fitted to a window serves all policies that see it."""
    name, seeds, is_often = cell
    stream, known = STREAMS[name], dict[bytes, list[Queue]]()
    for seed in seeds:
        world = scenario(stream, seed, recorded)
        asked = often_runs(stream) if is_often else mead_runs(stream) | (side_runs(stream) if seed < SIDE_SEEDS else {})
        for called, parameters in asked.items():
            own = _in_quota(world) if called.startswith("quota") else world
            policy = Mead(own.job(), **parameters)
            policy.fit = shared(policy.fit, known, f"{parameters.get('model')} {parameters.get('method')}")
            yield (name, seed, called), outcome(own, policy)
        if not is_often:
            for called, run in plain_runs(world, stream).items():
                yield (name, seed, called), run


def shared(fit: Fit, known: dict[bytes, list[Queue]], how: str) -> Fit:
    """The same fit, made once for each window."""

    def looked_up(gaps_s: Floats) -> list[Queue]:
        key = hashlib.blake2b(gaps_s.tobytes() + how.encode()).digest()
        if key not in known:
            known[key] = fit(gaps_s)
        return known[key]

    return looked_up


def mead_runs(stream: Stream) -> dict[str, dict[str, Any]]:
    """Parameters of each run with a model, by its name."""
    found: dict[str, dict[str, Any]] = {}
    for goal in goals(stream):
        own: dict[str, Any] = {"percentile": goal.percentile, "bound_s": goal.bound_s}
        for model in ("m", "map") if goal.percentile else ("m", "gi", "map"):
            found[f"{model} {goal}"] = own | {"model": model}
        found |= {f"safety-{safety:g} {goal}": own | {"safety": safety} for safety in SAFETIES}
    return found


def side_runs(stream: Stream) -> dict[str, dict[str, Any]]:
    """One window (Table III), a late decision, a quota for a slower core, and the paper's way of fitting."""
    one: dict[str, Any] = {"bound_s": middle(stream).bound_s}
    found = {
        f"kpc {goal}": {"percentile": goal.percentile, "bound_s": goal.bound_s, "method": "kpc"}
        for goal in goals(stream)
    }
    found |= {f"window-{size} {middle(stream)}": one | {"window": size, "windows": 1} for size in ONE_WINDOW}
    found[f"delay {middle(stream)}"] = one | {"delay_s": DELAY_S}
    found[f"quota {middle(stream)}"] = dict(one)
    return found


def often_runs(stream: Stream) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for goal in goals(stream):
        own: dict[str, Any] = {"percentile": goal.percentile, "bound_s": goal.bound_s, "every_s": OFTEN_S}
        found[f"often {goal}"] = dict(own)
        found[f"often-0.5 {goal}"] = own | {"safety": 0.5}
        found[f"often-delay {goal}"] = own | {"delay_s": DELAY_S}
    return found


def plain_runs(world: Scenario, stream: Stream) -> dict[str, Outcome]:
    """Without a model: all of the CPU, thresholds, and for each goal the cheapest fixed shares in hindsight."""
    job = world.job()
    found = {"static": outcome(world, StaticShare(job)), "threshold": outcome(world, ShareThreshold(job))}
    fixed = [fixed_run(world, shares) for shares in product(Levels().shares, repeat=len(world.dataflow.order))]
    for goal in goals(stream):
        kept = [each for each in fixed if each.keeps(goal)]
        if kept:
            found[f"fixed {goal}"] = min(kept, key=lambda each: (round(each.cpu, 9), each.response_s(goal)))
    return found


def fixed_run(world: Scenario, shares: tuple[float, ...]) -> Outcome:
    """The whole run in one stretch: shares that stay need no ticks."""
    engine, end_s = world.engine(), len(world.load.arrivals) * world.tick_s
    engine.apply(replace(Allocation.of(1), cpu_share=dict(zip(world.dataflow.order, shares, strict=True))))
    # What still waits at the end is answered, too.
    edges, taken = [*np.arange(0.0, end_s, STRETCH_S).tolist(), end_s, 10 * end_s], []
    for begin_s, until_s in pairwise(edges):
        engine.advance(Segment(begin_s, until_s, 1.0, speeds={"w1": 1.0}), {})
        taken.append(engine.take(until_s).paths)
    paths = {name: Responses.merged(part[name] for part in taken) for name in taken[0]}
    return Outcome(paths, sum(shares) / len(shares))


def outcome(world: Scenario, policy: Policy) -> Outcome:
    """A run in the paper's figures."""
    parts: dict[str, list[Responses]] = {sink.name: [] for sink in world.dataflow.sinks}
    shares, steps, operators = 0.0, 0, world.dataflow.order
    for step in replay(world, policy):
        for name, path in step.seen.paths.items():
            parts[name].append(path)
        # The target that was in force in the interval, not the one for the next.
        shares += sum(step.seen.target.cpu_share.get(name, 1.0) for name in operators) / len(operators)
        steps += 1
    return Outcome({name: Responses.merged(each) for name, each in parts.items()}, shares / max(1, steps))


def _in_quota(world: Scenario) -> Scenario:
    assert world.events is not None
    return replace(world, events=replace(world.events, quota_period_s=QUOTA_S), objective=Objective(1.0))
