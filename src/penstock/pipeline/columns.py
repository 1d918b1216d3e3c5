"""Tables, CSV or Parquet: counts per interval, points in time, inter-arrival times."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType

from penstock.pipeline.layout import Layout
from penstock.pipeline.order import running_sum
from penstock.pipeline.reading import Reading, lines, names, none, placed
from penstock.pipeline.recognise import Source


def read_table(spark: SparkSession, source: Source, step_us: int | None) -> Reading:
    """What a table holds, as its layout says."""
    assert source.layout is not None
    table = cells(spark, source)
    match source.layout.kind:
        case "counts" if source.layout.time is None:
            assert step_us is not None
            return _listed(table, step_us)
        case "counts":
            return _reading(_reasoned(table, _counted))
        case "times":
            rows = _reasoned(table, _timed)
            points = rows.where(fn.col("at").isNotNull()).groupBy("at").agg(fn.count("*").alias("events"))
            return _reading(rows, points=points, notes=_clock_note(source.layout))
        case _:
            return _between(table, source.layout)


def cells(spark: SparkSession, source: Source) -> DataFrame:
    """The columns in use as `time`, `value`, `size`, with the raw line and where it stands."""
    found = source.layout
    assert found is not None
    if found.table.format == "parquet":
        table = placed(spark.read.parquet(*names(source.paths)))
        line = fn.to_json(fn.struct(*(fn.col(f"`{name}`") for name in found.table.names)))
        column = {name: fn.col(f"`{name}`") for name in found.table.names}
    else:
        # The fields are a column of their own: parsed once a line, however many of them are used.
        table = placed(_without_header(lines(spark, source.paths), found)).withColumn("fields", _fields(found))
        line = fn.col("value")
        column = {name: fn.col(f"fields.c{i}") for i, name in enumerate(found.table.names)}
    return table.select(
        _time_us(table, column, found).alias("time"),
        _number(column, found.value).alias("value"),
        _number(column, found.bytes).alias("size"),
        _is_absent(column, found.value).alias("is_absent"),
        line.alias("line"),
        *("file", "block", "position"),
    )


def _without_header(raw: DataFrame, found: Layout) -> DataFrame:
    header = found.table.header
    return raw if header is None else raw.where(~fn.col("value").isin(header, "\ufeff" + header))


def _fields(found: Layout) -> Column:
    if len(found.table.names) == 1 and '"' not in "".join(found.table.columns[0]):
        return fn.struct(fn.nullif(fn.trim("value"), fn.lit("")).alias("c0"))  # a third of the time of a CSV parser
    schema = ", ".join(f"c{i} string" for i in range(len(found.table.names)))
    options = {"sep": found.table.delimiter, "ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
    return fn.from_csv("value", schema, options)


def _number(column: dict[str, Column], name: str | None) -> Column:
    return none() if name is None else column[name].try_cast("double")


def _is_absent(column: dict[str, Column], name: str | None) -> Column:
    return fn.lit(False) if name is None else column[name].isNull()


def _time_us(table: DataFrame, column: dict[str, Column], found: Layout) -> Column:
    if found.time is None:
        return none("bigint")
    cell = column[found.time]
    if found.time_unit_us is not None:
        # Nanoseconds since 1970 need 61 bits and a double has 53: whole numbers are divided as such.
        if found.time_unit_us < 1:
            return fn.floor(cell.try_cast("decimal(38,3)") * found.time_unit_us).cast("bigint")
        return fn.round(cell.try_cast("double") * found.time_unit_us).try_cast("bigint")
    is_text = found.table.format == "csv" or isinstance(table.schema[found.time].dataType, StringType)
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


def _between(table: DataFrame, found: Layout) -> Reading:
    """Inter-arrival times, added up in the order of the file, from 1970 on."""
    unit = found.value_unit_us
    assert unit is not None
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


def _clock_note(found: Layout) -> tuple[str, ...]:
    if found.time_unit_us is None:
        return ()
    return ("times are numbers: they count from 1970-01-01",)
