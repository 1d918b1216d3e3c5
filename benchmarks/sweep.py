"""A sweep on one core and on all: `PENSTOCK_BENCH_REPLAYS=2000` for the full size."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from penstock.pipeline.session import session
from penstock.pipeline.sweep_job import Plan, sweep
from penstock.sim.derive import Given, World

REPLAYS = int(os.environ.get("PENSTOCK_BENCH_REPLAYS", "300"))
# 10,080 minutes take about 0.2 s.
SCENARIO = """
tick_s = 60
duration_s = 604800
[limits]
workers_min = 1
workers_max = 64
[worker]
start_s = [60, 120]
[[workload]]
shape = "sine"
low = 100
high = 1000
[[workload]]
shape = "noise"
size = 0.1
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "week.toml").write_text(SCENARIO)
        world = World.of_file(folder / "week.toml", Given())
        took = {cores: timed(world, folder, cores) for cores in (1, os.cpu_count() or 1)}
    cores = max(took)
    print(f"{REPLAYS} replays of a week of minutes: {took[1]:.1f} s on one core, {took[cores]:.1f} s on {cores}")
    print(f"speed-up {took[1] / took[cores]:.2f} × (target 1.7 × on two cores); the start of Spark is in neither")


def timed(world: World, folder: Path, cores: int) -> float:
    plan = Plan((world,), ("threshold",), tuple(range(REPLAYS)))
    with session(f"local[{cores}]", "penstock benchmark"):
        begun = time.perf_counter()
        sweep(plan, folder / f"on-{cores}.parquet")
        return time.perf_counter() - begun
