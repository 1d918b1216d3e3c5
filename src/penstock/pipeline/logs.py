"""Access logs in the common and the combined format."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from penstock.pipeline.patterns import JAVA_LOG, STAMP_LENGTH
from penstock.pipeline.reading import Reading, lines
from penstock.pipeline.recognise import Source
from penstock.pipeline.request import TraceRequest

_NOT_A_LINE = "not a line of the common or combined log format"
_NOT_A_DATE = "the time is not a date"


def read_log(spark: SparkSession, source: Source, request: TraceRequest, scratch: Path) -> Reading:  # noqa: ARG001
    """Requests of an access log; a size of `-` is 0 bytes."""
    raw = lines(spark, source.paths)
    stamps = per_stamp(raw)
    points = stamps.where(fn.col("at").isNotNull()).groupBy("at").agg(fn.sum("lines").alias("events"))
    return Reading(stamps, bad_lines(raw), points=points, ties_s=1)


def per_stamp(raw: DataFrame) -> DataFrame:
    """Requests and bytes for each distinct time stamp; bad lines under their reason."""
    # One match a line: every regexp_extract runs the whole expression again. What it yields runs from the
    # time stamp to the size, and plain substrings take those.
    matched = raw.select(fn.regexp_extract("value", JAVA_LOG, 1).alias("request"))
    stamp = fn.substring("request", 1, STAMP_LENGTH).alias("stamp")
    requests = matched.select(stamp, fn.substring_index("request", " ", -1).alias("size"))
    # A failing try_cast raises and catches an exception a row: 8 s more a gigabyte if a third has no size.
    size = fn.when(fn.col("size").isin("-", ""), fn.lit(0)).otherwise(fn.col("size").cast("bigint"))
    counted = requests.groupBy("stamp").agg(fn.count("*").alias("lines"), fn.sum(size).alias("bytes"))
    # Dates are parsed here, once for each distinct second and not once a line.
    return counted.withColumn("at", _time_us(fn.col("stamp"))).select(
        "at",
        _reason(fn.col("stamp"), fn.col("at")).alias("reason"),
        fn.col("lines").cast("double").alias("arrivals"),
        fn.col("bytes").cast("double").alias("bytes"),
        "lines",
    )


def bad_lines(raw: DataFrame) -> DataFrame:
    """The lines that cannot be used, each with its reason."""
    stamp = fn.substring(fn.regexp_extract("value", JAVA_LOG, 1), 1, STAMP_LENGTH)
    reasoned = raw.select(
        _reason(stamp, _time_us(stamp)).alias("reason"), fn.col("_metadata.file_path").alias("file"), "value"
    )
    return reasoned.where(fn.col("reason").isNotNull()).withColumnRenamed("value", "line")


def _time_us(stamp: Column) -> Column:
    return fn.unix_micros(fn.try_to_timestamp(stamp, fn.lit("dd/MMM/yyyy:HH:mm:ss Z")))


def _reason(stamp: Column, at: Column) -> Column:
    return fn.when(stamp == "", fn.lit(_NOT_A_LINE)).when(at.isNull(), fn.lit(_NOT_A_DATE))
