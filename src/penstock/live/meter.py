"""Measures how much an app can take (paper 1 §3.2): preload, warm up, settle, sample, on a real cluster."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.apps.app import App
from penstock.core.errors import BadInput
from penstock.live.batches import BatchTime, Use, flags, has_converged, split
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.feed import FileFeed
from penstock.models.samples import read_rows, write_samples
from penstock.pipeline.session import session

SETTLE_S = 90.0
WARM_S = 15.0
LOOK_S = 0.1
# Seconds of work in a batch of each size; short ones show the fixed time, long ones the capacity.
SIZES_S = (1.0, 2.0, 4.0)
QUICK_SIZES_S = (1.0, 3.0)


@dataclass(frozen=True, slots=True)
class MeterPlan:
    """What to measure."""

    workers: tuple[int, ...] = (1, 2, 3)
    repeat: int = 3
    cores: float = 0.25
    memory_mb: int = 1024
    partitions: int | None = None
    partitions_per_worker: int = 2
    quick: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.workers or min(self.workers) < 1:
            raise BadInput("--workers takes counts from 1 on, as in 1,2,3")
        if self.repeat < 1:
            raise BadInput(f"--repeat {self.repeat}: at least 1 is needed")

    def partitions_for(self, workers: int) -> int:
        """Fixed, or so many for each worker (paper 1, eq 1)."""
        return self.partitions or workers * self.partitions_per_worker

    @property
    def batches(self) -> int:
        return 5 if self.quick else 7


Told = Callable[[float, str], None]


def measure(app: App, plan: MeterPlan, output: Path, told: Told) -> list[dict[str, Any]]:
    """Measure what is missing in `output`; every sample is on disk as soon as it is made."""
    rows = read_rows(output) if output.exists() else []
    todo = [(m, r) for m in plan.workers for r in range(plan.repeat) if not _done(rows, app, plan, (m, r))]
    folder = Path(tempfile.mkdtemp(prefix="penstock-measure-"))
    try:
        feed = None
        for workers in dict.fromkeys(m for m, _ in todo):
            repeats = [r for m, r in todo if m == workers]
            spec = ClusterSpec(workers, plan.cores, plan.memory_mb)
            with Cluster.start(spec) as cluster, _session(cluster, plan, workers) as spark:
                feed = feed or FileFeed.fill(spark, app, folder, plan.seed)
                bench = _Bench(app, plan, cluster, (spark, feed))
                for repeat in repeats:
                    told(len(rows) / (len(rows) + len(todo)), f"{workers} workers, {repeat + 1} of {plan.repeat}")
                    rows.append(bench.sample(workers, repeat))
                    write_samples(rows, output)
        return rows
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _done(rows: list[dict[str, Any]], app: App, plan: MeterPlan, cell: tuple[int, int]) -> bool:
    for row in rows:
        if row["app"] != app.name or row["cores"] != plan.cores:
            raise BadInput(f"the output has samples of {row['app']} on {row['cores']} cores: choose another file")
    return any((row["workers"], row["repeat"]) == cell for row in rows)


@contextlib.contextmanager
def _session(cluster: Cluster, plan: MeterPlan, workers: int) -> Iterator[SparkSession]:
    partitions = plan.partitions_for(workers)
    settings = cluster.settings | {
        "spark.cores.max": str(workers),
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.files.minPartitionNum": str(partitions),
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.memory": "1g",
    }
    cluster.set_cores(1.0)  # a JVM that starts on a quarter of a core takes a minute
    with session(cluster.url, "penstock measure", settings) as spark:
        _wait_for(lambda: _executors(spark) >= workers, 60.0)
        yield spark


def _executors(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def _wait_for(ready: Callable[[], bool], patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True


class _Bench:
    """One app on one cluster of one size."""

    def __init__(self, app: App, plan: MeterPlan, cluster: Cluster, at: tuple[SparkSession, FileFeed]) -> None:
        self._app, self._plan, self._cluster = app, plan, cluster
        self._spark, self._feed = at
        self._queries = 0
        self._rate = self._warmed()

    def _warmed(self) -> float:
        """Rows per second after code generation and JIT, on the quota that will be measured."""
        self._cluster.set_cores(1.0)
        with self._query(10_000, 400) as query:
            _wait_for(lambda: _is_over(query, 400), WARM_S)
        self._cluster.set_cores(self._plan.cores)
        with self._query(40_000, 8) as query:
            _wait_for(lambda: _is_over(query, 4), SETTLE_S)
            settled = _batches(query)[1:] or _batches(query)
        return max((batch.rate for batch in settled), default=10_000.0)

    def sample(self, workers: int, repeat: int) -> dict[str, Any]:
        """Batches of each size, and the fixed time and capacity behind them."""
        sizes = QUICK_SIZES_S if self._plan.quick else SIZES_S
        executors, cpu, begun = _executors(self._spark), self._cluster.cpu_seconds(), time.monotonic()
        taken = [self._sized(round(self._rate * seconds)) for seconds in sizes]
        wall_s = time.monotonic() - begun
        used = {name: now - cpu.get(name, 0.0) for name, now in self._cluster.cpu_seconds().items()}
        use = Use(used, wall_s, self._plan.cores, max(0, executors - _executors(self._spark)))
        found = split([batches for batches, _ in taken])
        fewest = min(len(batches) for batches, _ in taken)
        wrong = flags(use, self._plan.batches, fewest, all(settled for _, settled in taken))
        return {
            "app": self._app.name,
            "source": "files",
            "workers": workers,
            "repeat": repeat,
            "rows_per_s": found.rows_per_s,
            "fixed_s": found.fixed_s,
            "bytes_per_row": self._feed.bytes_per_row,
            "cores": self._plan.cores,
            "partitions": self._plan.partitions,
            "partitions_per_worker": None if self._plan.partitions else float(self._plan.partitions_per_worker),
            "flags": ", ".join(wrong),
        }

    def _sized(self, rows: int) -> tuple[list[BatchTime], bool]:
        """Batches of one size, the first of them thrown away; and whether their speed had settled."""
        wanted = self._plan.batches
        ample = 3 * wanted + 2
        with self._query(rows, ample) as query:
            _wait_for(lambda: self._enough(query, wanted) or _is_over(query, ample), SETTLE_S)
            batches = _batches(query)[1:]
        settled = self._plan.quick or has_converged([batch.rate for batch in batches], within=0.15)
        return batches[-wanted:], settled

    def _enough(self, query: StreamingQuery, wanted: int) -> bool:
        rates = [batch.rate for batch in _batches(query)[1:]]
        return len(rates) >= wanted and (self._plan.quick or has_converged(rates) or len(rates) >= 2 * wanted)

    @contextlib.contextmanager
    def _query(self, rows: int, batches: int) -> Iterator[StreamingQuery]:
        self._queries += 1
        name = f"run-{self._queries}-{self._cluster.url.rpartition(':')[2]}"
        query = self._started(name, rows, batches)
        try:
            yield query
            _raise_if_failed(query, self._app)
        finally:
            with contextlib.suppress(PySparkException):
                query.stop()
            shutil.rmtree(self._feed.folder / name, ignore_errors=True)
            shutil.rmtree(self._feed.folder / f"{name}-checkpoint", ignore_errors=True)

    def _started(self, name: str, rows: int, batches: int) -> StreamingQuery:
        stream = self._feed.stream(self._spark, name, batches, rows)
        try:
            result = self._app.transform(stream)
        except PySparkException as error:
            raise BadInput(f"app {self._app.name} failed: {str(error).splitlines()[0]}") from None
        if not getattr(result, "isStreaming", False):
            raise BadInput(f"app {self._app.name} is not streaming: return a DataFrame made of the one it was given")
        writer = result.writeStream.format("noop").outputMode(self._app.output_mode)
        checkpoint = str(self._feed.folder / f"{name}-checkpoint")
        try:
            return writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()
        except PySparkException as error:
            raise BadInput(f"app {self._app.name} cannot be started: {str(error).splitlines()[0]}") from None


def _batches(query: StreamingQuery) -> list[BatchTime]:
    return [BatchTime.of(progress) for progress in query.recentProgress if progress["numInputRows"]]


def _is_over(query: StreamingQuery, batches: int) -> bool:
    """The query ended, or has read all there was."""
    return not query.isActive or len(_batches(query)) >= batches


def _raise_if_failed(query: StreamingQuery, app: App) -> None:
    failure = query.exception()
    if failure is not None:
        lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
        cause = next((line for line in reversed(lines) if "Caused by" in line or "Error" in line), lines[0])
        raise BadInput(f"app {app.name} failed in Spark: {cause[:300]}")
