"""How close the bound and its schedule are on real traces: `scripts/bench bound_traces --traces DIR [--kind batches]`.

The traces are not part of the repository: DIR holds a folder for each source, and what is not there is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.objective import Objective, Price
from penstock.core.score import score
from penstock.models.capacity import Capacity, Fixed
from penstock.models.throughput_curves import Linear
from penstock.policies.clairvoyant import Clairvoyant
from penstock.runs.replayed import replay
from penstock.sim.derive import Given, World
from penstock.sim.scenario import Scenario
from penstock.sim.series import SeriesOptions, read_series
from penstock.sim.specs import BatchSpec

FIXED_S = 1.5
KINDS = ("second", "hour", "batches")


@dataclass(frozen=True)
class Trace:
    """A file, and the intervals that it is looked at with."""

    path: str
    column: str | None
    every_s: float | None
    ticks_s: dict[str, tuple[float, ...]]
    """For each kind of row."""

    def rows(self, folder: Path, kind: str) -> Iterator[tuple[str, float, Scenario]]:
        path = folder / self.path
        if not path.exists():
            return
        series = read_series(path, SeriesOptions(self.column, self.every_s, "counts"))
        for tick_s in self.ticks_s.get(kind, ()):
            given = Given(start_s=90.0, objective=Objective(120.0), price=Price(0.10, "second"), tick_s=tick_s)
            yield self.path.rpartition("/")[2], tick_s, World.of_series(self.path, series, given).scenario()


TRACES = (
    Trace(
        "wc98/wc98_requests_per_minute.csv.gz",
        None,
        None,
        {"second": (60.0, 30.0), "hour": (60.0,), "batches": (60.0,)},
    ),
    Trace(
        "nasa_http/nasa_http_1995_requests_per_minute.csv.gz",
        None,
        None,
        {"second": (60.0, 30.0, 10.0), "hour": (60.0,), "batches": (60.0,)},
    ),
    Trace(
        "aws_cloudwatch/elb_request_count_8c0756.csv",
        None,
        None,
        {"second": (60.0, 10.0), "hour": (60.0,), "batches": (60.0, 10.0)},
    ),
    Trace(
        "twitter/nab_twitter_mentions_5min.csv.gz",
        "AAPL",
        None,
        {"second": (60.0, 10.0), "hour": (60.0,), "batches": (60.0,)},
    ),
    Trace(
        "twitter/archiveteam_twitter_2021_08_per_second.csv.gz",
        None,
        1.0,
        {"second": (60.0, 10.0, 1.0), "hour": (60.0,), "batches": (60.0, 10.0)},
    ),
    Trace(
        "us_equity_ticks_2013/us_equity_ticks_per_second.csv.gz",
        "spy_trades",
        None,
        {"second": (10.0, 1.0), "hour": (10.0,), "batches": (10.0,)},
    ),
    Trace("nasa_http/nasa_http_1995_requests_per_second.csv.gz", None, 1.0, {"second": (10.0,)}),
)


def main(*words: str) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench bound_traces")
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose name has this in it")
    options = parser.parse_args(words)
    print("| trace | tick | ticks | kind | lower | cost | gap | missed | CPU |\n|---|---|---|---|---|---|---|---|---|")
    for kind in options.kind or KINDS:
        for trace in TRACES:
            if options.only in trace.path:
                for name, tick_s, world in trace.rows(options.traces, kind):
                    print(row(name, tick_s, kind, world), flush=True)


def row(name: str, tick_s: float, kind: str, world: Scenario) -> str:
    if kind == "hour":
        world = replace(world, price=Price(0.10, "hour"))
    if kind == "batches":
        one = Capacity(Linear(world.capacity.capacity(1)), Fixed(FIXED_S))
        world = replace(world, capacity=one, batch=BatchSpec(trigger_s=10.0))
    begun = time.process_time()
    policy = Clairvoyant(world.job())
    bound = policy.bound
    took_s = time.process_time() - begun
    run = score(replay(world, policy), world.objective, world.price)
    return (
        f"| {name} | {tick_s:g} s | {len(world.load.arrivals):,} | {kind} | {bound.lower:.2f} | {run.cost:.2f} "
        f"| {run.cost / bound.lower - 1:.1%} | {run.violation_share:.3%} | {took_s:.0f} s |"
    )


if __name__ == "__main__":
    main()
