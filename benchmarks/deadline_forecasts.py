"""`deadline` by each forecaster: `scripts/bench deadline_forecasts --traces DIR [--start 300] [--only NAME]`.

Cost is a multiple of what the default outlook costs on the same trace; the time missed stands beside it. A tick is a
minute, of longer traces the last two weeks count; the bound is 120 s,
so that with longer starts nobody who waits for a rise keeps it.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

from benchmarks.bound_traces import TRACES
from penstock.core.objective import Objective
from penstock.core.score import Score, score
from penstock.models.forecast_outlook import DEFAULT, NAMES
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario

TICK_S, TICKS_MOST = 60.0, 20_160


def main(*words: str) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench deadline_forecasts")
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--start", type=float, default=90.0, help="seconds that a worker takes to start (90)")
    parser.add_argument("--only", help="a part of a trace's name")
    options = parser.parse_args(words)
    print(f"| trace, a start of {options.start:g} s | {' | '.join(NAMES)} |\n|---|{'---|' * len(NAMES)}", flush=True)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
    for trace in TRACES:
        if options.only and options.only not in trace.path:
            continue
        for label, _, world in replace(trace, ticks_s={"second": (TICK_S,)}).rows(options.traces, "second"):
            shaped = _shaped(world, options.start)
            runs = {name: _run(shaped, name) for name in NAMES}
            for name, run in runs.items():
                found[name].append((run.cost / runs[DEFAULT].cost, run.violation_share))
            print(
                f"| {label} | {' | '.join(f'{c:.3f}, {m:.3%}' for c, m in (e[-1] for e in found.values()))} |",
                flush=True,
            )
    if not options.only:
        print(f"| mean: geometric, and of the time missed | {' | '.join(map(_mean, found.values()))} |", flush=True)


def _mean(pairs: list[tuple[float, float]]) -> str:
    cost = math.exp(sum(math.log(each) for each, _ in pairs) / len(pairs))
    return f"{cost:.3f}, {sum(missed for _, missed in pairs) / len(pairs):.3%}"


def _run(world: Scenario, name: str) -> Score:
    policy = Named.parse("deadline" if name == DEFAULT else f"deadline:forecast={name}")
    return score(replay(world, policy.build(world.job())), world.objective, world.price)


def _shaped(world: Scenario, start_s: float) -> Scenario:
    load, worker = world.load, replace(world.worker, start_s=start_s)
    if len(load.arrivals) > TICKS_MOST:
        load = replace(load, arrivals=load.arrivals[-TICKS_MOST:], times_s=load.times_s[-TICKS_MOST:])
    return replace(world, load=load, worker=worker, objective=Objective(120.0))


if __name__ == "__main__":
    main()
