"""Streaming progress reports, alone or inside Spark event logs: arrivals from the growth of the latest offset."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from penstock.pipeline.eventlog import unpacked
from penstock.pipeline.reading import Reading, lines, none
from penstock.pipeline.recognise import Source
from penstock.pipeline.request import TraceRequest
from penstock.pipeline.store import stored

_SOURCE = "struct<startOffset:string,endOffset:string,latestOffset:string,numInputRows:bigint>"
_REPORT = f"struct<runId:string,timestamp:string,batchId:bigint,sources:array<{_SOURCE}>>"
_EVENT = "StreamingQueryListener$QueryProgressEvent"
_SERIES = ("runId", "source")


def read_reports(spark: SparkSession, source: Source, request: TraceRequest, scratch: Path) -> Reading:  # noqa: ARG001
    """Arrivals between each two reports of a run, for every source of every query."""
    in_log = source.format.name == "eventlog"
    raw = lines(spark, unpacked(spark, source.heads, scratch) if in_log else source.paths)
    if in_log:
        is_report = fn.col("value").contains(_EVENT) | ~fn.col("value").startswith("{")
        raw = raw.where(is_report)
    reports = parsed(raw, in_log)
    kept = stored(reports, scratch / "reports")
    counted = kept.select(*_no_span(), "reason", fn.lit(1).cast("bigint").alias("lines"))
    grown = spans(samples(kept)).select("*", none("string").alias("reason"), fn.lit(0).cast("bigint").alias("lines"))
    bad = kept.where(fn.col("reason").isNotNull()).select("reason", "file", "line")
    return Reading(counted.unionByName(grown), bad)


def parsed(raw: DataFrame, in_log: bool) -> DataFrame:
    """One row a report: when, which run, its sources; or the line and a reason."""
    document = fn.from_json("value", f"struct<progress:{_REPORT}>" if in_log else _REPORT)
    report = document["progress"] if in_log else document
    at = fn.unix_micros(report["timestamp"].try_cast("timestamp"))
    read = raw.select(at.alias("at"), report.alias("report"), "value", fn.col("_metadata.file_path").alias("file"))
    is_bad = fn.col("report.runId").isNull() | fn.col("at").isNull()
    return read.select(
        "at",
        *("report.runId", "report.batchId", "report.sources", "file"),
        fn.when(is_bad, "not a progress report").alias("reason"),
        fn.when(is_bad, fn.col("value")).alias("line"),
    )


def samples(reports: DataFrame) -> DataFrame:
    """One row for each source and time of report: how far the source and the query had got."""
    good = reports.where(fn.col("reason").isNull()).dropDuplicates(["runId", "batchId", "at"])
    each = good.select("runId", "at", fn.posexplode("sources").alias("source", "seen"))
    begun, done, latest = (_offset(fn.col(f"seen.{name}Offset")) for name in ("start", "end", "latest"))
    rows = fn.col("seen.numInputRows")
    # Kafka's offsets, topic -> partition -> number, count events. A bare number may count anything (the rate
    # source counts seconds): it is believed only where a batch's rows are the difference of its offsets.
    is_kafka = fn.coalesce(*(_partitions(fn.col(f"seen.{name}Offset")) for name in ("latest", "end"))).isNotNull()
    counts_events = is_kafka | (done - begun == rows)
    return each.groupBy("runId", "source", "at").agg(
        fn.max(latest).alias("latest"),
        fn.max(done).alias("done"),
        fn.coalesce(fn.every(counts_events), fn.lit(False)).alias("counts_events"),
        fn.sum(rows).alias("rows"),
    )


def spans(sampled: DataFrame) -> DataFrame:
    """Arrivals between each two reports of a series; a run's first report is only where it begins."""
    series = Window.partitionBy(*_SERIES)
    ordered = series.orderBy("at")
    is_trusted = fn.every("counts_events").over(series)
    has_latest = fn.every(fn.col("latest").isNotNull()).over(series)
    reached = fn.when(is_trusted & has_latest, fn.col("latest")).when(is_trusted, fn.col("done"))
    known = sampled.withColumn("reached", reached)
    growth = fn.col("reached") - fn.lag("reached").over(ordered)
    # A topic that was made anew counts from 0 again.
    since = fn.when(growth < 0, fn.col("reached")).otherwise(growth)
    arrivals = fn.coalesce(since, fn.col("rows"), fn.lit(0)).cast("double")
    between = known.select(
        fn.lag("at").over(ordered).alias("begin"), fn.col("at").alias("end"), arrivals.alias("arrivals")
    )
    return between.where(fn.col("begin").isNotNull())


def _no_span() -> list[Column]:
    return [none("bigint").alias("begin"), none("bigint").alias("end"), none().alias("arrivals")]


def _partitions(offset: Column) -> Column:
    """Offsets by topic and partition, null where an offset has another shape."""
    return fn.from_json(offset, "map<string,map<string,bigint>>")


def _offset(offset: Column) -> Column:
    """The sum over all partitions, or the bare number."""
    numbers = fn.flatten(fn.transform(fn.map_values(_partitions(offset)), fn.map_values))
    summed = fn.aggregate(numbers, fn.lit(0).cast("bigint"), lambda total, number: total + number)
    return fn.coalesce(summed, offset.try_cast("bigint"))
