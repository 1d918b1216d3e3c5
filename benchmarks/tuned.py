"""What the online tuner is worth around a policy: `scripts/bench tuned --traces DIR [--days 5] [--settings TEXT]`.

The last days of each trace, in minutes; a peak of 32 workers that start in 90 s, latency <= 120 s. Cost is a multiple
of the certified lower bound.
"""

from __future__ import annotations

import argparse
import math
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from benchmarks.deadline import worlds
from penstock.core.score import score
from penstock.policies.clairvoyant import lower_alone
from penstock.policies.registry import Named
from penstock.runs.replayed import replay

TICK_S = 60.0
INSIDE = ("deadline", "threshold")


def main(*words: str) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench tuned")
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--days", type=float, default=5.0)
    parser.add_argument("--inside", action="append", metavar="NAME")
    parser.add_argument(
        "--settings", default="", metavar="TEXT", help="of the tuner, such as shortest=360,longest=1440"
    )
    options = parser.parse_args(words)
    inside = options.inside or list(INSIDE)
    names = [name for each in inside for name in (each, f"tuned:{each}:{options.settings}".rstrip(":"))]
    print(f"| trace | ticks | {' | '.join(names)} |\n|---|--:|{'---|' * len(names)}", flush=True)
    ratios: dict[str, list[float]] = {name: [] for name in names}
    missed: dict[str, list[float]] = {name: [] for name in names}
    searched, took_s = 0.0, 0.0
    ticks = int(options.days * 86400 / TICK_S)
    for label, _, world in worlds(Namespace(traces=options.traces, tick=[TICK_S], latency=120.0, kind="second")):
        load = world.load
        world = replace(world, load=replace(load, arrivals=load.arrivals[-ticks:], times_s=load.times_s[-ticks:]))
        lower, cells = lower_alone(world.job())[0], []
        for name in names:
            job, named, begun = world.job(), Named.parse(name), time.process_time()
            steps = list(replay(world, named.build(job, named.rules(job))))
            run = score(steps, world.objective, world.price)
            signals = steps[-1].decision.signals
            ratios[name].append(run.cost / lower)
            missed[name].append(run.violation_share)
            adopted = ""
            if "searches" in signals:
                searched, took_s = searched + signals["searches"], took_s + time.process_time() - begun
                adopted = f" ({signals['adopted']:.0f} of {signals['searches']:.0f})"
            cells.append(f"{run.cost / lower:.3f}, {run.violation_share:.3%}{adopted}")
        print(f"| {label} | {len(world.load.arrivals):,} | {' | '.join(cells)} |", flush=True)
    for name in names:
        mean = math.exp(sum(map(math.log, ratios[name])) / len(ratios[name]))
        late = sum(missed[name]) / len(missed[name])
        print(f"{name}: {mean:.3f} in the geometric mean, {late:.3%} missed on average", flush=True)
    if searched:
        print(f"a search: {took_s / searched:.2f} s of CPU, the replay around it included", flush=True)


if __name__ == "__main__":
    main()
