"""One query on a host: started from its checkpoint, stopped between two batches, its CPU measured."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.apps.app import find_app
from penstock.apps.catalogue import APPS
from penstock.core.errors import BadInput
from penstock.live.fleet_spec import QuerySpec

# A batch that lasts longer is cut off: the next host runs it again from its offsets, and its sink knows its number.
BOUNDARY_S = 60.0


class HostedQuery:
    """A running query."""

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        self._spark, self._query = spark, query
        self._cpu = QueryCpu(spark, query)
        self._is_resumed = False
        self._told = -1
        self._mark: tuple[object, object] | None = None
        self._stop_by_s: float | None = None
        self._stop_after: int | None = None

    @classmethod
    def started(cls, spark: SparkSession, spec: QuerySpec) -> HostedQuery:
        spark.conf.set("spark.sql.shuffle.partitions", str(spec.partitions))
        reader = spark.readStream.format("text").option("maxFilesPerTrigger", spec.files_max)
        rows = reader.load(spec.files).withColumn("timestamp", F.current_timestamp())
        app = find_app(spec.app, APPS)
        result: object = app.transform(rows, **spec.parameters)
        if not isinstance(result, DataFrame) or not result.isStreaming:
            raise BadInput(f"app {spec.app} returns a {type(result).__name__}: a streaming DataFrame is needed")
        writer = written(result, spec, app.output_mode).queryName(spec.name)
        writer = writer.option("checkpointLocation", spec.checkpoint).trigger(
            processingTime=f"{spec.trigger_s:g} seconds"
        )
        return cls(spark, writer.start())

    def failure(self) -> str | None:
        """Why it has ended by itself; None while it runs."""
        if self._query.isActive:
            return None
        error = self._query.exception()
        return (str(error).splitlines() or ["no reason given"])[0][:300] if error else "it ended by itself"

    def take_resumed(self) -> bool:
        """Once: has it read its checkpoint, and ended a batch or found nothing to do?"""
        if self._is_resumed:
            return False
        self._is_resumed = self._query.lastProgress is not None or self._query.status["message"].startswith("Waiting")
        return self._is_resumed

    def ask_to_stop(self) -> None:
        self._stop_by_s = time.monotonic() + BOUNDARY_S
        self._stop_after = self._last_batch()

    def stops_now(self) -> bool:
        """Was it asked to stop, and is it between two batches?"""
        if self._stop_by_s is None:
            return False
        is_between = not self._query.status["isTriggerActive"] or self._last_batch() != self._stop_after
        return is_between or time.monotonic() > self._stop_by_s

    def stop(self) -> None:
        self._cpu.read()
        self._query.stop()

    @property
    def is_busy(self) -> bool:
        status = self._query.status
        return bool(status["isTriggerActive"] and status["isDataAvailable"])

    def news(self) -> list[dict[str, Any]]:
        """Reports of batches that ended since the last call; an idle one does not count."""
        last: Any = self._query.lastProgress
        if last is None or (mark := (last["batchId"], last["timestamp"])) == self._mark:
            return []
        self._mark = mark
        gap = last["batchId"] > self._told + 1 and self._told >= 0
        found = [each for each in (self._query.recentProgress if gap else [last]) if each["batchId"] > self._told]
        read = [each for each in found if each["numInputRows"]]
        if read:
            self._told = read[-1]["batchId"]
        return read

    def cpu_s(self) -> float:
        return self._cpu.read()

    def _last_batch(self) -> int | None:
        last: Any = self._query.lastProgress
        return last["batchId"] if last else None


def written(result: DataFrame, spec: QuerySpec, mode: str) -> DataStreamWriter:
    """To a folder, exactly once: Spark's own sink for rows that never change, else a folder a batch, by its number."""
    writer = result.writeStream.outputMode(mode)
    if not spec.to:
        return writer.format("noop")
    if mode == "append":
        return writer.format("parquet").option("path", spec.to)

    def write(batch: DataFrame, number: int) -> None:
        # A batch that is run again has the same rows and the same number: it replaces what it may have left.
        batch.write.mode("overwrite").parquet(f"{spec.to}/batch={number}")

    return writer.foreachBatch(write)


class QueryCpu:
    """CPU seconds of one query: of its tasks, by its jobs, and of its own thread, which plans and commits.

    What the JVM does beside (compiling, collecting) belongs to nobody; whoever knows the host's total shares it out.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        context = spark.sparkContext
        self._status, self._store = context.statusTracker(), context._jsc.sc().statusStore()
        self._group = str(query.runId)
        management: Any = spark._jvm
        self._threads = management.java.lang.management.ManagementFactory.getThreadMXBean()
        self._thread = query._jsq.streamingQuery().queryExecutionThread().getId()
        self._last_job = -1
        self._tasks_s = self._thread_s = 0.0

    def read(self) -> float:
        for job in sorted(self._status.getJobIdsForGroup(self._group)):
            if job <= self._last_job:
                continue
            told = self._status.getJobInfo(job)
            if told is None or told.status not in ("SUCCEEDED", "FAILED"):
                break
            self._tasks_s += sum(map(self._stage_s, told.stageIds))
            self._last_job = job
        used = self._threads.getThreadCpuTime(self._thread)
        self._thread_s = max(self._thread_s, used / 1e9)  # -1 when it has ended
        return self._tasks_s + self._thread_s

    def _stage_s(self, stage: int) -> float:
        try:
            return float(self._store.lastStageAttempt(stage).executorCpuTime()) / 1e9
        except Exception:  # forgotten already: Spark keeps the last ones alone
            return 0.0
