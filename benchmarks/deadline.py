"""What the default policy costs on real traces: `scripts/bench deadline --traces DIR [--kind batches] [--policy NAME]`.

The traces are not part of the repository: DIR holds a folder for each source, and what is not there is left out. Cost
is a multiple of the certified lower bound. Starts take 90 s, the objective is latency<=120s unless given.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

from benchmarks.bound_traces import TRACES
from penstock.core.objective import Objective
from penstock.core.score import score
from penstock.models.capacity import Capacity, Fixed
from penstock.models.throughput_curves import Linear
from penstock.policies.clairvoyant import lower_alone
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, PauseSpec

TICKS_S = (60.0, 30.0, 10.0)
TICKS_MOST = 130_000  # the last part of a longer series: three months of minutes, two weeks of tens of seconds


def main(*words: str) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench deadline")
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kind", choices=("second", "batches", "disturbed"), default="second")
    parser.add_argument("--fixed", type=float, default=1.5, help="seconds of a batch before its first row (1.5)")
    parser.add_argument("--objective", type=Objective.parse, default=Objective(120.0), help="(latency<=120s)")
    parser.add_argument("--policy", action="append", metavar="NAME")
    parser.add_argument("--tick", action="append", type=float)
    options = parser.parse_args(words)
    names = options.policy or ["deadline", "threshold", "filtered", "mst"]
    print(f"| trace | tick | ticks | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}", flush=True)
    ratios: dict[str, list[float]] = {name: [] for name in names}
    kept = dict.fromkeys(names, 0)
    for label, tick_s, world in worlds(options):
        lower = lower_alone(world.job())[0]
        cells = []
        for name in names:
            run = score(replay(world, Named.parse(name).build(world.job())), world.objective, world.price)
            ratios[name].append(run.cost / lower)
            kept[name] += run.violation_share <= 0.001
            cells.append(f"{run.cost / lower:.3f}, {run.violation_share:.3%}")
        print(f"| {label} | {tick_s:g} s | {len(world.load.arrivals):,} | {' | '.join(cells)} |", flush=True)
    for name in names:
        mean = math.exp(sum(map(math.log, ratios[name])) / len(ratios[name]))
        print(f"{name}: {mean:.3f} in the geometric mean, {kept[name]} of {len(ratios[name])} within 0.1 %", flush=True)


def worlds(options: argparse.Namespace) -> list[tuple[str, float, Scenario]]:
    found = []
    for trace in TRACES:
        same = replace(trace, ticks_s={"second": tuple(options.tick or TICKS_S)})
        for name, tick_s, world in same.rows(options.traces, "second"):
            found.append((name, tick_s, _shaped(world, options)))
    return found


def _shaped(world: Scenario, options: argparse.Namespace) -> Scenario:
    load, count = world.load, len(world.load.arrivals)
    if count > TICKS_MOST:
        load = replace(load, arrivals=load.arrivals[-TICKS_MOST:], times_s=load.times_s[-TICKS_MOST:])
    world = replace(world, load=load, objective=options.objective)
    if options.kind == "batches":
        one = Capacity(Linear(world.capacity.capacity(1)), Fixed(options.fixed))
        return replace(world, capacity=one, batch=BatchSpec(trigger_s=10.0))
    if options.kind == "disturbed":  # believed 10 % too much, speeds and starts that spread, pauses: all at once
        believed = Capacity(Linear(1.1 * world.capacity.capacity(1)))
        worker = replace(world.worker, start_s=(60.0, 120.0), speed_spread=0.1)
        return replace(world, believed=believed, worker=worker, pause=PauseSpec(reconfigure_s=5.0))
    return world


if __name__ == "__main__":
    main()
