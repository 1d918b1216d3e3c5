"""Arrivals per interval, and what a missing interval means."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from penstock.pipeline.order import with_previous


def beginning(at: Column, every_us: int, phase_us: int = 0) -> Column:
    """The beginning of the interval that a time lies in."""
    return at - fn.pmod(at - fn.lit(phase_us), fn.lit(every_us))


def per_interval(rows: DataFrame, every_us: int, phase_us: int = 0) -> DataFrame:
    """One row for each interval in which something was recorded, and one for each reason of bad lines."""
    start = beginning(fn.col("at"), every_us, phase_us)
    return rows.groupBy(start.alias("start"), "reason").agg(
        fn.sum("arrivals").alias("arrivals"),
        fn.sum("bytes").alias("bytes"),
        fn.min("at").alias("first"),
        fn.max("at").alias("last"),
        fn.sum("lines").alias("lines"),
    )


def spread(spans: DataFrame, every_us: int) -> DataFrame:
    """Spans of time (begin, end, arrivals) cut at interval borders; each piece gets its share of the arrivals."""
    begin, end, start = fn.col("begin"), fn.col("end"), fn.col("start")
    starts = fn.sequence(beginning(begin, every_us), beginning(end - 1, every_us), fn.lit(every_us))
    pieces = spans.withColumn("start", fn.explode(starts))
    covered = fn.least(end, start + every_us) - fn.greatest(begin, start)
    arrivals = fn.col("arrivals") * covered / (end - begin)
    return pieces.groupBy("start").agg(
        fn.sum(arrivals).alias("arrivals"),
        fn.lit(None).cast("double").alias("bytes"),
        fn.col("start").alias("first"),
        fn.col("start").alias("last"),
    )


def with_missing(intervals: DataFrame, every_us: int, gap_us: int, phase_us: int = 0) -> DataFrame:
    """The intervals with how many are missing before each, and whether that is a hole in the record.

    Events that stayed away for less than `gap_us` were simply none; with 0 each missing interval is a hole.
    """
    known = with_previous(intervals, "start", "last")
    after = beginning(fn.col("previous"), every_us, phase_us) + fn.lit(every_us)
    missing = fn.coalesce(((fn.col("start") - after) / every_us).cast("bigint"), fn.lit(0))
    counted = known.withColumn("missing", missing)
    silent = fn.col("first") - fn.col("previous") >= fn.lit(gap_us)
    return counted.withColumn("after", after).withColumn("is_hole", (fn.col("missing") > 0) & silent)


def filled(known: DataFrame, every_us: int) -> DataFrame:
    """The rate series: time, arrivals, bytes; quiet intervals are rows of 0, holes are absent."""
    quiet = known.where((fn.col("missing") > 0) & ~fn.col("is_hole"))
    starts = fn.sequence("after", fn.col("start") - every_us, fn.lit(every_us))
    no_bytes = fn.when(fn.col("bytes").isNotNull(), fn.lit(0.0))
    zeros = quiet.select(fn.explode(starts).alias("start"), fn.lit(0.0).alias("arrivals"), no_bytes.alias("bytes"))
    both = known.select("start", fn.col("arrivals").cast("double"), fn.col("bytes").cast("double")).unionByName(zeros)
    return both.select(fn.timestamp_micros("start").alias("time"), "arrivals", "bytes")


def totals(known: DataFrame) -> DataFrame:
    """One row: intervals, gaps, their length in intervals, first and last start, arrivals, peak, bytes."""
    hole, missing = fn.col("is_hole"), fn.col("missing")
    arrivals = fn.col("arrivals").cast("double")
    return known.agg(
        (fn.count("*") + fn.coalesce(fn.sum(fn.when(~hole, missing)), fn.lit(0))).alias("intervals"),
        fn.count_if(hole).alias("gaps"),
        fn.coalesce(fn.sum(fn.when(hole, missing)), fn.lit(0)).alias("missing"),
        fn.min("start").alias("first"),
        fn.max("start").alias("last"),
        fn.sum(arrivals).alias("arrivals"),
        fn.max(arrivals).alias("peak"),
        fn.sum(fn.col("bytes").cast("double")).alias("bytes"),
    )
