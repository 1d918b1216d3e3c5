"""What every kind of source becomes before intervals are made, and how raw files are opened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

_GLOB = re.compile(r"([\[\]{}*?,\\])")


@dataclass(frozen=True, slots=True)
class Reading:
    """`rows`: at (µs since 1970), arrivals, bytes, lines, and for what cannot be used a reason instead of a time.

    `bad` (reason, file, line) is computed only when it is asked for: a source without bad lines is read once.
    `points` (at, events) and `gaps` (index, gap in `gap_unit_us`) feed the statistics of inter-arrival times.
    """

    rows: DataFrame
    bad: DataFrame
    points: DataFrame | None = None
    gaps: DataFrame | None = None
    gap_unit_us: float = 1.0
    notes: tuple[str, ...] = ()
    ties_s: float | None = None  # the resolution of the times, where it makes ties of what was not simultaneous


def names(paths: Sequence[Path]) -> list[str]:
    """Paths for Spark, which would take brackets and stars for patterns."""
    return [_GLOB.sub(r"\\\1", str(path.resolve())) for path in paths]


def lines(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """The lines of text files that are not blank; gzip is undone by the name `.gz`."""
    return spark.read.text(names(paths)).where(fn.col("value") != "")


def placed(rows: DataFrame) -> DataFrame:
    """The rows with where they stand: file, block (its first byte) and position within the task."""
    return rows.select(
        "*",
        fn.col("_metadata.file_path").alias("file"),
        fn.col("_metadata.file_block_start").alias("block"),
        fn.monotonically_increasing_id().alias("position"),
    )


def none(kind: str = "double") -> Column:
    return fn.lit(None).cast(kind)
