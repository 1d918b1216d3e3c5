"""World Cup 98 logs: records of 20 bytes, big-endian."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from penstock.core.errors import BadInput
from penstock.pipeline.reading import Reading, names, none
from penstock.pipeline.recognise import Source
from penstock.pipeline.request import TraceRequest

RECORD = 20  # time, client, object, size (4 bytes each), method, status, type, server (1 byte each)
_UNKNOWN_SIZE = 0xFFFFFFFF


def read_wc98(spark: SparkSession, source: Source, request: TraceRequest, scratch: Path) -> Reading:  # noqa: ARG001
    """Requests of World Cup 98 logs; an unknown size is 0 bytes."""
    paths = [_flat(begin.path, begin.codec, scratch / f"{i}.bin") for i, begin in enumerate(source.heads)]
    rows = per_second(_records(spark, paths))
    points = rows.select("at", fn.col("lines").alias("events"))
    no_bad = rows.where(fn.lit(False)).select("reason", none("string").alias("file"), none("string").alias("line"))
    return Reading(rows, no_bad, points=points, ties_s=1)


def per_second(records: DataFrame) -> DataFrame:
    """Requests and bytes for each second of a table of 20-byte records in `value`."""
    size = _unsigned(fn.substring("value", 13, 4))
    known = fn.when(size == _UNKNOWN_SIZE, fn.lit(0)).otherwise(size)
    counted = records.groupBy(fn.substring("value", 1, 4).alias("second")).agg(
        fn.count("*").alias("lines"), fn.sum(known).alias("bytes")
    )
    return counted.select(
        (_unsigned(fn.col("second")) * 1_000_000).alias("at"),
        none("string").alias("reason"),
        fn.col("lines").cast("double").alias("arrivals"),
        fn.col("bytes").cast("double").alias("bytes"),
        "lines",
    )


def _unsigned(four_bytes: Column) -> Column:
    return fn.conv(fn.hex(four_bytes), 16, 10).cast("bigint")


def _records(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    # binaryFile would hold a whole log in one row; the JVM's own fixed-length reader splits it, and no
    # record passes through Python.
    context = spark.sparkContext._jsc.sc()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    records = context.binaryRecords(",".join(names(paths)), RECORD, context.hadoopConfiguration())
    table = spark._jsparkSession.createDataset(records, jvm.org.apache.spark.sql.Encoders.BINARY()).toDF()
    return DataFrame(table, spark)


def _flat(path: Path, codec: str | None, flat: Path) -> Path:
    """The log without compression; refused where it does not hold whole records."""
    if codec == "gzip":
        try:
            with gzip.open(path) as packed, flat.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadInput(f"{path}: the file is truncated or damaged ({error})") from None
        path, shown = flat, path
    else:
        shown = path
    size = path.stat().st_size
    if size == 0 or size % RECORD:
        raise BadInput(f"{shown}: {size} bytes are not a whole number of {RECORD}-byte records: the file is truncated")
    return path
