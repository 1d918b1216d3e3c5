"""Measures how much an app can take (paper 1 §3.2): preload, warm up, settle, sample, on a real cluster.

All executors are started and warmed once, the largest count is measured first, and executors are ended one by one:
those that stay are warm. Starting afresh for each count would measure how far the JIT has come.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.apps.app import App
from penstock.core.errors import BadInput, WorldFailed
from penstock.live.batches import Split
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.executors import kill, request, task_seconds, wait_for
from penstock.live.feed import Feed, FileFeed, Helping, KafkaFeed, TopicFeed
from penstock.live.jars import kafka_jars
from penstock.live.kafka import Broker, KafkaSource
from penstock.live.sampler import ALIVE_S, LOOK_S, Bench, Sample, Sampling, sample
from penstock.live.setup import describe
from penstock.live.speed import SpeedProbe
from penstock.models.samples import differences, read_rows, write_samples
from penstock.pipeline.session import session

LIFTED_CORES = 1.0  # a JVM that starts on a quarter of a core takes a minute, and still compiles after 150 s
# CPU that an executor needs until its code is compiled: batches of word count went from 1.7 to 0.7 s within 20 s,
# and to 0.6 s within 30.
WARM_CPU_S = 25.0
QUICK_WARM_CPU_S = 10.0
WARM_ROWS = 1_000
LONG_S = 2.0
WARM_BATCHES = 10  # of a query: a topic must be filled with all of them
COOL_S = 3.0
EXECUTORS_S = 120.0
PILOT_S = 90.0
FIXED_S = 1.0  # what a batch takes before its first row on a quarter of a core, 0.9 to 1.8 s; a first guess
HELPED_BY_REPEATING = {"source ran dry", "lost an executor", "did not settle"}


@dataclass(frozen=True, slots=True)
class MeterPlan:
    """What to measure, and where."""

    workers: tuple[int, ...] = (1, 2, 3)
    repeat: int = 3
    cores: float = 0.25
    memory_mb: int = 1024
    partitions: int | None = None
    partitions_per_worker: int = 2
    quick: bool = False
    seed: int = 0
    master: str | None = None
    """An existing cluster; its executors get whole cores and are warmed longer, for nobody lifts their quota."""
    source: str = "files"
    kafka: KafkaSource | None = None
    """A broker of the user's own; with a topic's name, that topic is read as it is."""
    folder: Path | None = None
    """Where input and checkpoints lie: all workers must see it."""

    def __post_init__(self) -> None:
        if not self.workers or min(self.workers) < 1:
            raise BadInput("--workers takes counts from 1 on, as in 1,2,3")
        if self.repeat < 1:
            raise BadInput(f"--repeat {self.repeat}: at least 1 is needed")
        if self.master and self.master.startswith("local"):
            raise BadInput(
                f"--master {self.master}: it has no executors to count; leave it out for a cluster of our own"
            )
        if self.master and not self.folder and not _is_here(self.master):
            raise BadInput(
                f"--master {self.master}: give --folder a path that all its workers see (input, checkpoints)"
            )

    def partitions_for(self, workers: int) -> int:
        """Fixed, or so many for each worker (paper 1, eq 1)."""
        return self.partitions or workers * self.partitions_per_worker

    @property
    def sampling(self) -> Sampling:
        return Sampling.quick() if self.quick else Sampling()

    @property
    def slots(self) -> int:
        """Tasks at once on an executor."""
        return max(1, -(-int(self.cores * 1000) // 1000))


Told = Callable[[float, str], None]


def measure(app: App, plan: MeterPlan, output: Path, told: Told) -> list[dict[str, Any]]:
    """Measure what is missing in `output`; every sample is on disk as soon as it is made."""
    rows = read_rows(output) if output.exists() else []
    setup = describe(app, _settings(plan), plan.sampling, plan.master is None)
    _need_same(rows, app, plan, setup)
    done = {(row["workers"], row["repeat"]) for row in rows}
    todo = [(m, r) for m in sorted(plan.workers, reverse=True) for r in range(plan.repeat) if (m, r) not in done]
    if not todo:
        return rows
    pace = _Pace(told, _expected_s(plan, todo))
    with _world(app, plan, todo[0][0], pace) as world:
        world.warm()
        for workers, repeat in todo:
            world.shrink(workers)
            pace.doing = f"{workers} workers, {repeat + 1} of {plan.repeat}"
            rows.append(world.sampled(workers) | {"app": app.name, "repeat": repeat, "setup": setup})
            write_samples(sorted(rows, key=lambda row: (row["workers"], row["repeat"])), output)
    return read_rows(output)


@dataclass(slots=True)
class _Pace:
    """Tells how far it has come, by the time that it should take."""

    told: Told
    total_s: float
    doing: str = "starting"
    begun: float = field(default_factory=time.monotonic)

    def tell(self) -> None:
        self.told(min(0.99, (time.monotonic() - self.begun) / self.total_s), self.doing)


@dataclass(slots=True)
class _World:
    """A cluster, its session and a source, on which counts of workers are measured."""

    plan: MeterPlan
    bench: Bench
    cluster: Cluster | None
    pace: _Pace
    guess: Split = field(default_factory=lambda: Split(FIXED_S, 10_000.0))
    """Of one worker."""

    def warm(self) -> None:
        """Let executors compile what they run: on whole cores where their quota is ours to lift."""
        workers = len(task_seconds(self.bench.spark))
        lifted = min(LIFTED_CORES, (os.cpu_count() or 1) / workers) if self.cluster else 1.0
        self.pace.doing = f"warming {workers} workers"
        self._limit(LIFTED_CORES)
        rows = self._grown_while_warming(workers, (QUICK_WARM_CPU_S if self.plan.quick else WARM_CPU_S) / lifted)
        self._limit(self.plan.cores)
        slowed = min(1.0, self.plan.cores / lifted) if self.cluster and self.cluster.is_limited else 1.0
        self.guess = self._pilot(round(2 * rows * slowed), workers)

    def _grown_while_warming(self, workers: int, warm_s: float) -> int:
        """Rows of batches that take 2 s when warm: short ones leave the inner loops uncompiled.

        Cold batches take ten times as long, so the size is judged again after every few.
        """
        rows, begun, before_s = WARM_ROWS * workers, time.monotonic(), 0.0
        while (spent_s := time.monotonic() - begun) < 2.5 * warm_s:
            batches = self.bench.run(self._helping(rows, workers), lambda seen: len(seen) >= 4, WARM_CPU_S)
            if not batches:
                rows = max(workers, rows // 8)
                continue
            quickest_s = min(batch.seconds for batch in batches)
            if quickest_s < 0.8 * LONG_S:
                rows, before_s = round(rows * min(10.0, LONG_S / quickest_s * 1.5)), 0.0
            elif spent_s > warm_s and quickest_s > 0.95 * before_s > 0:
                break  # no faster than a round ago
            else:
                before_s = quickest_s
        return rows

    def _run_for(self, seconds: float, rows: int, workers: int) -> None:
        """Keep executors busy for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.bench.run(self._helping(rows, workers), lambda _: time.monotonic() > deadline, WARM_CPU_S)

    def _pilot(self, rows: int, workers: int) -> Split:
        """A rough idea of one worker, from a few long batches on the quota that is measured."""
        self.pace.doing = "first look"
        batches = self.bench.run(self._helping(rows, workers), lambda seen: len(seen) >= 3, PILOT_S)
        if not batches:
            raise WorldFailed(f"no batch of {rows:,} rows ended within {PILOT_S:.0f} s: is the machine busy?")
        seconds = sorted(batch.seconds for batch in batches)[len(batches) // 2]
        return Split(FIXED_S, batches[-1].rows / max(seconds - FIXED_S, seconds / 2) / workers)

    def _helping(self, rows: int, workers: int) -> Helping:
        return Helping(rows, WARM_BATCHES, self.plan.partitions_for(workers))

    def shrink(self, workers: int) -> None:
        """End executors until so many are left, the youngest first."""
        there = sorted(task_seconds(self.bench.spark), key=int)
        kill(self.bench.spark, there[workers:])
        # A kill lowers what Spark asks the cluster for, from 0 where nothing was asked; a lost one must come back.
        request(self.bench.spark, workers)
        wait_for(self.bench.spark, workers, EXECUTORS_S)

    def sampled(self, workers: int) -> dict[str, Any]:
        """A sample as it goes to disk; one that went wrong in a way that may pass is taken once more."""
        taken = self._sample(workers)
        if HELPED_BY_REPEATING & set(taken.flags) and not self.plan.quick:
            self.shrink(workers)
            rows = round(LONG_S * self.guess.rows_per_s * workers)
            self._run_for(WARM_CPU_S / 3, rows, workers)  # an executor that was lost has come back cold
            taken = self._sample(workers)
        self.guess = Split(taken.split.fixed_s, taken.split.rows_per_s / workers)
        return {
            "source": self.bench.feed.kind,
            "workers": workers,
            "rows_per_s": taken.split.rows_per_s,
            "fixed_s": taken.split.fixed_s,
            "bytes_per_row": self.bench.feed.bytes_per_row,
            "cores": self.plan.cores,
            "partitions": self.plan.partitions,
            "partitions_per_worker": None if self.plan.partitions else float(self.plan.partitions_per_worker),
            "flags": ", ".join(taken.flags),
            "speed": taken.speed if self.cluster else None,
        }

    def _sample(self, workers: int) -> Sample:
        guess = Split(self.guess.fixed_s, self.guess.rows_per_s * workers)
        found = sample(self.bench, self.plan.sampling, self.plan.partitions_for(workers), guess)
        if not self.plan.quick:
            time.sleep(COOL_S)
        return found

    def _limit(self, cores: float) -> None:
        if self.cluster:
            self.cluster.set_cores(cores)


@contextlib.contextmanager
def _world(app: App, plan: MeterPlan, workers: int, pace: _Pace) -> Iterator[_World]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-measure-", dir=plan.folder))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        broker = stack.enter_context(Broker.start()) if plan.source == "kafka" and plan.kafka is None else None
        cluster = None
        if plan.master is None:
            # Whole cores until executors are warm; the quota comes after.
            cluster = stack.enter_context(Cluster.start(ClusterSpec(workers, plan.cores, plan.memory_mb)))
            cluster.set_cores(LIFTED_CORES)
        settings = _settings(plan) | (cluster.settings if cluster else {}) | {
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
        yield _World(plan, bench, cluster, pace)


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


def _heart(pace: _Pace, cluster: Cluster | None, feed: Feed) -> Callable[[], None]:
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


def _settings(plan: MeterPlan) -> dict[str, str]:
    settings = {
        "spark.executor.cores": str(plan.slots),
        "spark.executor.memory": f"{plan.memory_mb}m",
        "spark.sql.adaptive.enabled": "false",
        "spark.dynamicAllocation.enabled": "false",
        "spark.driver.memory": "1g",
    }
    return settings | ({"spark.jars": kafka_jars().spark_jars} if plan.source == "kafka" else {})


def _need_same(rows: list[dict[str, Any]], app: App, plan: MeterPlan, setup: str) -> None:
    """A file of samples is gone on with only if what it has is of the same kind."""
    wanted = {"app": app.name, "source": plan.source, "cores": plan.cores, "partitions": plan.partitions}
    wanted["partitions_per_worker"] = None if plan.partitions else float(plan.partitions_per_worker)
    for row in rows:
        for key, value in wanted.items():
            if row[key] != value:
                raise BadInput(f"the output has samples of {key} {row[key]}, not {value}: choose another file")
        if row["setup"] != setup:
            where = "; ".join(differences(row["setup"], setup))
            raise BadInput(f"the output has samples of another set-up ({where}): choose another file")


def _expected_s(plan: MeterPlan, todo: list[tuple[int, int]]) -> float:
    sampling = plan.sampling
    each_s = sum(max(sampling.sample_s, (sampling.batches + 1) * length) + 2 for length in (sampling.long_s, 2.0))
    warm_s = 1.2 * WARM_CPU_S * max(1.0, todo[0][0] / (os.cpu_count() or 1))
    preload_s = 20.0 * len({m for m, _ in todo}) if plan.source == "kafka" else 0.0
    return 25.0 + warm_s + preload_s + (each_s + COOL_S) * len(todo)


def _is_here(master: str) -> bool:
    return master.startswith(("spark://127.0.0.1:", "spark://localhost:"))
