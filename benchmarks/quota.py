"""What a CPU quota of this kernel does to short work: measured, and by the models of a quota and of a slower core.

A process in a cgroup serves rows that are due at drawn times, each for so much CPU time, and writes down when each is
done. The models are given the same times and demands, so that nothing but what a quota does tells them apart.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from penstock.live.cgroup import find_groups, works
from penstock.models.markov.chains import Floats
from penstock.models.queues.quota import KEPT_S, Quota

LOAD, SECONDS = 0.5, 20.0
SETTINGS = tuple((share, demand_s) for share in (0.1, 0.2, 0.35, 0.5) for demand_s in (0.0005, 0.002, 0.008))
KEPT = (0.0, KEPT_S, 0.001, 0.002)


def main() -> None:
    group = next((own for groups in find_groups() if works(own := groups(f"penstock-quota-{os.getpid()}"))), None)
    if group is None:
        print("quota: no right to make cgroups here: run it as root")
        return
    found = []
    try:
        print(f"share, CPU a row | measured mean, p95 | kept {1e3 * KEPT_S:g} ms | ideal bucket | slower core")
        for share, demand_s in SETTINGS:
            quota = Quota.of_linux(share)
            group.limit(share, quota.period_s)
            found.append(_one(quota, demand_s, group.folders))
    finally:
        for folder in group.folders:
            folder.rmdir()
    for place, kept_s in enumerate(KEPT):
        print(f"kept {1e3 * kept_s:g} ms: p95 by the model over measured {_range([each[place] for each in found])}")
    print(f"slower core: p95 by the model over measured {_range([each[-1] for each in found])}")


def _one(quota: Quota, demand_s: float, folders: tuple[Path, ...]) -> list[float]:
    """The p95 of each model over the measured one."""
    rng = np.random.default_rng(0)
    rows = round(SECONDS * LOAD * quota.share / demand_s)
    times_s = np.cumsum(rng.exponential(demand_s / quota.share / LOAD, rows))
    demands_s = rng.standard_gamma(2.0, rows) * demand_s / 2
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _join, (folders,)) as process:
        ends_s, used_s = process.submit(_served, times_s, demands_s).result()
    measured = ends_s - times_s
    buckets = [Quota(quota.share, quota.period_s, kept_s).finish(times_s, used_s) - times_s for kept_s in KEPT]
    slower = Quota(1.0).finish(times_s, used_s / quota.share) - times_s
    told = " | ".join(map(_told, (measured, buckets[KEPT.index(KEPT_S)], buckets[0], slower)))
    print(f"{quota.share:.0%}, {1e3 * demand_s:g} ms | {told}", flush=True)
    return [_p95(each) / _p95(measured) for each in (*buckets, slower)]


def _join(folders: tuple[Path, ...]) -> None:
    for folder in folders:
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def _served(times_s: Floats, demands_s: Floats) -> tuple[Floats, Floats]:
    """Each row uses its CPU time once it is due and the one before is done: when it ended, and all CPU that it took."""
    begun, ends_s, used_s = time.monotonic() + 0.5, [], [time.process_time()]
    for due_s, demand_s in zip(times_s, demands_s, strict=True):
        time.sleep(max(0.0, begun + due_s - time.monotonic()))
        until_s = time.thread_time() + demand_s
        while time.thread_time() < until_s:
            pass
        ends_s.append(time.monotonic() - begun)
        used_s.append(time.process_time())
    return np.array(ends_s), np.diff(used_s)


def _p95(responses_s: Floats) -> float:
    return float(np.quantile(responses_s, 0.95))


def _told(responses_s: Floats) -> str:
    return f"{1e3 * responses_s.mean():.1f}, {1e3 * _p95(responses_s):.1f} ms"


def _range(ratios: list[float]) -> str:
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f} … {max(ratios):.2f})"


if __name__ == "__main__":
    main()
