"""How long the clairvoyant's bound takes, and how close its schedule comes, on 62 days of minutes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from penstock.solvers.schedule import Floats, Task
from penstock.solvers.schedule_bound import plan

MINUTES = 84_334


def main() -> None:
    arrivals = noisy_days()
    worker = float(arrivals.max()) / 32
    capacity = np.arange(65, dtype=np.float64) * worker
    usual = Task(arrivals, capacity, at_start=4, most=64, least=1, start=1.5, within=2.0)
    print(f"{MINUTES:,} minutes, {arrivals.mean() / worker:.1f} workers on average, 32 at the peak; target: 10 s, 3 %")
    for name, task in {
        "latency<=120s, start 90 s": usual,
        "latency<=120s, start 300 s": replace(usual, start=5.0),
        "latency<=600s, start 90 s": replace(usual, within=10.0),
        "rate, start 90 s": replace(usual, within=None),
        "latency<=120s, start 90 s, billed by the hour": replace(usual, unit=60.0),
    }.items():
        begun = time.perf_counter()
        best = plan(task)
        took_s = time.perf_counter() - begun
        print(f"{name:46} {took_s:5.1f} s, gap {100 * (best.cost / best.lower - 1):.2f} % {best.note}", flush=True)


def noisy_days() -> Floats:
    """A web server's load: a daily and a weekly cycle, noise of a third, a flash crowd."""
    rng = np.random.default_rng(1)
    days = np.arange(MINUTES) / 1440
    level = 45 * (1 + 0.6 * np.sin(2 * np.pi * days)) * (1 + 0.2 * np.sin(2 * np.pi * days / 7))
    arrivals = rng.gamma(10.0, level / 10.0)
    arrivals[50_000:50_090] += 300 * np.exp(-np.arange(90) / 30)
    return np.round(arrivals)


if __name__ == "__main__":
    main()
