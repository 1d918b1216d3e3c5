"""What a comparison replays: comparable worlds, and settings of each policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.core.units import show_duration
from penstock.models.capacity import linear
from penstock.policies.clairvoyant import lower_alone
from penstock.sim.derive import World
from penstock.sim.workloads import Load

PER_WORKER = 100.0
"""Events a second of a worker that nobody described: thresholds in events then mean the same on every trace."""
# What each policy's own users turn, around its default; the bare name is the default itself.
SETTINGS = (
    "static-peak",
    "hpa",
    "hpa:target=0.4|0.5|0.6|0.7|0.9",
    "keda",
    "keda:lag_threshold=500|1500|3000|6000|9000|18000|36000",
    "flink",
    "flink:utilization_target=0.5|0.7|0.9,metrics_window_s=2m,stabilization_interval_s=1m,scale_down_interval_s=10m",
    "ds2",
    "ds2:scaling_factor=0.2|0.5|1.0",
    "dhalion",
    "dhalion:lag_rate=10|100|200|300,lag_low=1000|5000",
    "spark-dynamic",
    "spark-24815",
    "dstream",
    "dstream:scaling_up_ratio=0.5|0.7,scaling_down_ratio=0.3",
    "dstream:scaling_up_ratio=0.9,scaling_down_ratio=0.6",
    "elastic-scaling",
    "elastic-scaling:upper=0.6|0.8|1.0,lower=0.5,executors_max=64",
    "elastic-scaling:upper=1.0,lower=0.75,executors_max=64",
    "aws-flink",
    "dataflow",
    "dataflow:cpu_target=0.5|0.6|0.75|0.9,stable_s=60s",
    "deadline",
)


def comparable(world: World, peak_workers: int) -> World:
    """The world with its load scaled so that the peak takes this many workers, and twice as many at most.

    Without a capacity, a worker does 100 events a second. 0 leaves the world as it is.
    """
    if not peak_workers:
        return world
    given, scenario = world.given, world.scenario()
    capacity = linear(PER_WORKER) if "capacity" in scenario.assumed else scenario.capacity
    if not scenario.load.peak:
        return world
    scale = given.scale * capacity.sustainable(peak_workers, scenario.trigger_s) / scenario.load.peak
    if "capacity" in scenario.assumed:
        given = replace(given, per_worker=PER_WORKER)
    most = given.workers_max or (2 * peak_workers if "max" in scenario.assumed else None)
    return replace(world, given=replace(given, scale=scale, workers_max=most))


def parted(world: World, share: float) -> tuple[World, World]:
    """The world before and after this share of its series. Both keep its capacity, scale and limits."""
    assert world.series is not None
    at = round(len(world.series.arrivals) * share)
    first = replace(world, name=f"{world.name}, first {share:.0%}", series=_cut(world.series, 0, at))
    return first, replace(world, series=_cut(world.series, at, None))


def bound_of(world: World) -> float | None:
    """What no plan within the objective costs less than; None where that is not proven."""
    job = world.scenario().job()
    if len(job.kinds) > 1 or job.objective.throughput is not None:
        return None
    return lower_alone(job)[0]


def setting(world: World, train: float | None, seeds: int, bare: bool) -> list[str]:
    """What all policies of a comparison were held to, in words."""
    scenario = world.scenario()
    limits, price, worker = scenario.limits, scenario.price, scenario.worker
    one = scenario.capacity.capacity(1)
    said = [
        f"objective {scenario.objective}",
        f"{limits.workers_min} to {limits.workers_max} workers of {one:.4g}/s, the peak {scenario.load.peak:.4g}/s",
        f"a start of {worker.start_s if isinstance(worker.start_s, tuple) else show_duration(worker.start_s)}",
        f"${price.per_hour:g} per worker-hour, billed by the {price.billing}",
        *([f"a batch every {show_duration(scenario.trigger_s)}"] if scenario.trigger_s else []),
        *([f"means of {seeds} seeds"] if seeds > 1 else []),
    ]
    part = f"all figures are of what follows the first {train:.0%}; tuned: chosen on that first part" if train else ""
    rules = "ours, too, without safety rules" if bare else "ours with the safety rules of a live run, peers as they are"
    return [", ".join(said), *filter(None, (part,)), rules]


def _cut(series: Load, begin: int, end: int | None) -> Load:
    before_s = float(series.times_s[begin - 1]) if begin else 0.0
    origin_s = None if series.origin_s is None else series.origin_s + before_s
    by_source = {name: np.asarray(counts[begin:end]) for name, counts in series.by_source.items()}
    return Load(series.arrivals[begin:end], series.times_s[begin:end] - before_s, series.tick_s, origin_s, by_source)
