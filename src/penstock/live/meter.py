"""Measures how much an app can take (paper 1 §3.2): preload, warm up, settle, sample, on a real cluster.

All executors are started and warmed once, the largest count is measured first, and executors are ended one by one:
those that stay are warm. Starting afresh for each count would measure how far the JIT has come.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.apps.app import App
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.conditions import describe
from penstock.live.executors import wait_for
from penstock.live.feed import Feed, FileFeed, KafkaFeed, TopicFeed
from penstock.live.kafka import Broker
from penstock.live.meter_plan import MeterPlan
from penstock.live.sampler import ALIVE_S, LOOK_S, Bench
from penstock.live.speed import SpeedProbe
from penstock.live.warm_cluster import EXECUTORS_S, LIFTED_CORES, OnProgress, Pace, WarmCluster
from penstock.models.samples import read_rows, write_samples
from penstock.pipeline.session import session


def measure(app: App, plan: MeterPlan, output: Path, told: OnProgress) -> list[dict[str, Any]]:
    """Measure what is missing in `output`; every sample is on disk as soon as it is made."""
    rows = read_rows(output) if output.exists() else []
    setup = describe(app, plan.settings, plan.sampling, plan.master is None)
    plan.need_same(rows, app, setup)
    done = {(row["workers"], row["repeat"]) for row in rows}
    todo = [(m, r) for m in sorted(plan.workers, reverse=True) for r in range(plan.repeat) if (m, r) not in done]
    if not todo:
        return rows
    pace = Pace(told, plan.expected_s(todo))
    with _bed(app, plan, todo[0][0], pace) as bed:
        bed.warm()
        for workers, repeat in todo:
            bed.shrink(workers)
            pace.doing = f"{workers} workers, {repeat + 1} of {plan.repeat}"
            rows.append(bed.sampled(workers) | {"app": app.name, "repeat": repeat, "setup": setup})
            write_samples(sorted(rows, key=lambda row: (row["workers"], row["repeat"])), output)
    return read_rows(output)


@contextlib.contextmanager
def _bed(app: App, plan: MeterPlan, workers: int, pace: Pace) -> Iterator[WarmCluster]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-measure-", dir=plan.folder))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        broker = stack.enter_context(Broker.start()) if plan.source == "kafka" and plan.kafka is None else None
        cluster = None
        if plan.master is None:
            # Whole cores until executors are warm; the quota comes after.
            cluster = stack.enter_context(Cluster.start(ClusterSpec(workers, plan.cores, plan.memory_mb)))
            plan.need_cores(cluster.is_limited, os.cpu_count() or 1)
            cluster.set_cores(LIFTED_CORES)
        settings = plan.settings | (cluster.settings if cluster else {}) | {
            "spark.cores.max": str(workers * plan.slots),
            "spark.executor.instances": str(workers),
        }  # fmt: skip
        master = cluster.url if cluster else plan.master
        spark = stack.enter_context(session(master, "penstock measure", settings))
        wait_for(spark, workers, EXECUTORS_S)
        feed = _feed(spark, app, plan, (broker, folder))
        stack.callback(feed.close)
        bench = Bench(spark, app, feed, folder, _heart(pace, cluster, feed), lifted=_lifting(cluster))
        if cluster:  # the speed of other machines is not to be seen from here
            bench.speed = stack.enter_context(SpeedProbe()).since
        yield WarmCluster(plan, bench, cluster, pace)


def _lifting(cluster: Cluster | None) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Whole cores for a while, and then the quota that was there."""

    @contextlib.contextmanager
    def lifted() -> Iterator[None]:
        cores = cluster.spec.cores if cluster else LIFTED_CORES
        if cluster:
            cluster.set_cores(max(cores, LIFTED_CORES))
        try:
            yield
        finally:
            if cluster:
                cluster.set_cores(cores)

    return lifted


def _heart(pace: Pace, cluster: Cluster | None, feed: Feed) -> Callable[[], None]:
    """What happens at every look: progress is told, and now and then it is asked whether all still live."""
    looks = 0

    def beat() -> None:
        nonlocal looks
        looks += 1
        pace.tell()
        if looks % round(ALIVE_S / LOOK_S) == 0:
            feed.need_alive()
            if cluster:
                cluster.need_alive()

    return beat


def _feed(spark: SparkSession, app: App, plan: MeterPlan, at: tuple[Broker | None, Path]) -> Feed:
    broker, folder = at
    if plan.source == "files":
        return FileFeed(spark, app, folder, plan.seed)
    if plan.kafka and plan.kafka.topic:
        return TopicFeed(spark, plan.kafka)
    source = plan.kafka or (broker.source("") if broker else None)
    assert source is not None
    return KafkaFeed(spark, app, (broker, source), (folder, plan.seed))
