"""Tables, CSV or Parquet: counts per interval, points in time, inter-arrival times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import DataType, LongType, StringType

from penstock.core.columns import Columns
from penstock.core.dates import REWRITES
from penstock.pipeline.order import running_sum
from penstock.pipeline.reading import Reading, lines, names, none, placed
from penstock.pipeline.recognise import Source
from penstock.pipeline.request import TraceRequest
from penstock.pipeline.table_head import Table

# Whole microseconds are exact: 1e-9 s in 1e-6 s, divided, is not 0.001.
UNITS_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 0.001, "min": 60e6, "h": 3600e6, "d": 86400e6}
_GROUP = re.compile(r"\\g(\d)")


def read_table(spark: SparkSession, source: Source, request: TraceRequest, scratch: Path) -> Reading:  # noqa: ARG001
    """What a table holds, as its columns say."""
    assert source.layout is not None
    table, found = cells(spark, source), source.layout[1]
    if found.kind == "iat":
        return _between(table, found)
    if found.kind == "times":
        rows = _reasoned(table, _timed)
        points = rows.where(fn.col("at").isNotNull()).groupBy("at").agg(fn.count("*").alias("events"))
        return _reading(rows, points=points, notes=_clock_note(found))
    if found.time is None:
        assert request.step_s is not None
        return _listed(table, round(request.step_s * 1e6))
    return _reading(_reasoned(table, _counted))


def cells(spark: SparkSession, source: Source) -> DataFrame:
    """The columns in use as `time`, `value`, `size`, with the raw line and where it stands."""
    assert source.layout is not None
    seen, found = source.layout
    known, is_text = seen.sample.names, seen.format == "csv"
    if not is_text:
        table = placed(_parquet(spark, source.paths))
        column = {name: fn.col(f"`{name}`") for name in known}
        line = fn.to_json(fn.struct(*column.values()))
        time = table.schema[found.time].dataType if found.time else None
        is_text, found = isinstance(time, StringType), _with_unit(found, time)
    else:
        # The fields are a column of their own: parsed once a line, however many of them are used.
        table = placed(_rows_alone(lines(spark, source.paths), seen)).withColumn("fields", _fields(seen))
        line = fn.col("value")
        column = {name: fn.col(f"fields.c{i}") for i, name in enumerate(known)}
    return table.select(
        _time_us(column, found, is_text).alias("time"),
        _number(column, found.value).alias("value"),
        _number(column, found.bytes).alias("size"),
        _is_absent(column, found.value).alias("is_absent"),
        line.alias("line"),
        *("file", "block", "position"),
    )


def _parquet(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    # pandas writes timestamps in nanoseconds, which Spark reads as numbers or not at all.
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    return spark.read.parquet(*names(paths))


def _with_unit(found: Columns, time: DataType | None) -> Columns:
    is_nanos = isinstance(time, LongType) and found.time_unit is None
    return replace(found, time_unit="ns") if is_nanos else found


def _rows_alone(raw: DataFrame, seen: Table) -> DataFrame:
    """Without the header, which every file of a directory has."""
    marked = [mark + line for line in seen.before for mark in ("", "\ufeff")]
    return raw.where(~fn.col("value").isin(*marked)) if marked else raw


def _fields(seen: Table) -> Column:
    known = seen.sample.names
    if len(known) == 1 and '"' not in "".join(seen.sample.columns[0]):
        return fn.struct(fn.nullif(fn.trim("value"), fn.lit("")).alias("c0"))  # a third of the time of a CSV parser
    schema = ", ".join(f"c{i} string" for i in range(len(known)))
    options = {"sep": seen.delimiter, "ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
    return fn.from_csv("value", schema, options)


def _number(column: dict[str, Column], name: str | None) -> Column:
    return none() if name is None else column[name].try_cast("double")


def _is_absent(column: dict[str, Column], name: str | None) -> Column:
    return fn.lit(False) if name is None else column[name].isNull()


def _time_us(column: dict[str, Column], found: Columns, is_text: bool) -> Column:
    if found.time is None:
        return none("bigint")
    cell = column[found.time]
    if found.time_unit is not None:
        unit_us = UNITS_US[found.time_unit]
        # Nanoseconds since 1970 need 61 bits and a double has 53: whole numbers are divided as such.
        if unit_us < 1:
            return fn.floor(cell.try_cast("decimal(38,3)") * unit_us).cast("bigint")
        return fn.round(cell.try_cast("double") * unit_us).try_cast("bigint")
    for pattern, new in REWRITES[found.dates] if is_text else ():
        cell = fn.regexp_replace(cell, pattern, _GROUP.sub(r"$\1", new))
    # A bare year or an hour alone is a timestamp for Spark; here it is a mistake.
    whole = fn.when(fn.substring(cell, 5, 1) == "-", cell) if is_text else cell
    return fn.unix_micros(whole.try_cast("timestamp"))


def _counted() -> Column:
    value = fn.col("value")
    return (
        fn.when(fn.col("time").isNull(), "the time is not a date or number")
        .when(fn.col("is_absent"), "the count is missing")
        .when(value.isNull(), "the count is not a number")
        .when(fn.isnan(value) | (fn.abs(value) == float("inf")), "the count is not finite")
        .when(value < 0, "the count is negative")
    )


def _timed() -> Column:
    return fn.when(fn.col("time").isNull(), "the time is not a date or number")


def _measured() -> Column:
    value = fn.col("value")
    return (
        fn.when(fn.col("is_absent"), "the inter-arrival time is missing")
        .when(value.isNull(), "the inter-arrival time is not a number")
        .when(fn.isnan(value) | (fn.abs(value) == float("inf")), "the inter-arrival time is not finite")
        .when(value < 0, "the inter-arrival time is negative")
    )


def _reasoned(table: DataFrame, reason: object) -> DataFrame:
    assert callable(reason)
    return _rows(table.withColumn("reason", reason()))


def _rows(table: DataFrame) -> DataFrame:
    good = fn.col("reason").isNull()
    return table.select(
        fn.when(good, fn.col("time")).alias("at"),
        fn.when(good, fn.coalesce("value", fn.lit(1.0))).alias("arrivals"),
        fn.when(good & (fn.col("size") >= 0), fn.col("size")).alias("bytes"),
        *("reason", "file", "line"),
        fn.lit(1).cast("bigint").alias("lines"),
    )


def _reading(rows: DataFrame, points: DataFrame | None = None, notes: tuple[str, ...] = ()) -> Reading:
    bad = rows.where(fn.col("reason").isNotNull()).select("reason", "file", "line")
    return Reading(rows, bad, points=points, notes=notes)


def _listed(table: DataFrame, step_us: int) -> Reading:
    """Counts without times: one row an interval, in the order of the file, from 1970 on."""
    counted = running_sum(table.withColumn("one", fn.lit(1).cast("bigint")), "one")
    rows = counted.withColumn("time", fn.col("before") * step_us)
    return _reading(_reasoned(rows, _counted), notes=("the source has no times: the first interval is at 1970-01-01",))


def _between(table: DataFrame, found: Columns) -> Reading:
    """Inter-arrival times, added up in the order of the file, from 1970 on."""
    assert found.value_unit is not None
    unit = UNITS_US[found.value_unit]
    reasoned = table.withColumn("reason", _measured())
    good = fn.col("reason").isNull()
    # Added up as whole nanoseconds: a sum of a million doubles would depend on how the file was split.
    nanoseconds = fn.when(good, fn.round(fn.col("value") * (unit * 1000)).cast("bigint")).otherwise(fn.lit(0))
    summed = running_sum(reasoned.withColumn("ns", nanoseconds), "ns")
    rows = summed.withColumn("time", fn.floor(fn.col("after") / 1000).cast("bigint"))
    kept = reasoned.where(good).withColumn("one", fn.lit(1).cast("bigint"))
    gaps = running_sum(kept, "one").select(fn.col("before").alias("index"), fn.col("value").alias("gap"))
    note = "the source has no dates: it begins at 1970-01-01"
    events = _rows(rows.withColumn("value", fn.lit(1.0)))
    bad = _rows(reasoned).where(fn.col("reason").isNotNull()).select("reason", "file", "line")
    return Reading(events, bad, gaps=gaps, gap_unit_us=unit, notes=(note,))


def _clock_note(found: Columns) -> tuple[str, ...]:
    if found.time_unit is None:
        return ()
    return ("times are numbers: they count from 1970-01-01",)
