"""Order without a single partition: rows are cut into at most 64 chunks, and what crosses a cut is carried over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

CHUNKS = 64
CHUNK_ROWS = 500_000  # below this a single sort takes under a second, and cuts would only cost more jobs


def chunk_of(at: str, cuts: Sequence[int]) -> Column:
    """The number of cuts at or below a value: 0 for what comes before the first."""
    return reduce(lambda total, cut: total + (fn.col(at) >= fn.lit(cut)).cast("int"), cuts, fn.lit(0))


def cuts_of(rows: DataFrame, at: str, chunk_rows: int = CHUNK_ROWS) -> list[int]:
    """Values that cut the rows into chunks of about the same size; none for what fits one chunk."""
    chunks = min(CHUNKS, -(-rows.count() // chunk_rows))
    if chunks < 2:
        return []
    shares = [i / chunks for i in range(1, chunks)]
    # An accuracy of 1,000 makes chunks even within 0.1 % of the rows, which is far below one chunk.
    found = rows.agg(fn.percentile_approx(at, shares, 1000).alias("cuts")).first()
    return sorted(set(found["cuts"])) if found else []


def with_previous(rows: DataFrame, at: str, of: str, chunk_rows: int = CHUNK_ROWS) -> DataFrame:
    """The rows with `previous`: the value of `of` in the row before, in the order of the distinct values of `at`."""
    cuts = cuts_of(rows, at, chunk_rows)
    if not cuts:
        return rows.withColumn("previous", fn.lag(of).over(Window.orderBy(at)))
    chunked = rows.withColumn("chunk", chunk_of(at, cuts))
    ends = {
        end["chunk"]: end["last"] for end in chunked.groupBy("chunk").agg(fn.max_by(of, at).alias("last")).collect()
    }
    within = fn.lag(of).over(Window.partitionBy("chunk").orderBy(at))
    across = fn.get(_carried(ends, len(cuts) + 1), fn.col("chunk"))
    return chunked.withColumn("previous", fn.coalesce(within, across)).drop("chunk")


def _carried(ends: dict[int, int], chunks: int) -> Column:
    """For each chunk the last value of the chunks before it."""
    carried: list[int | None] = [None]
    for chunk in range(chunks - 1):
        carried.append(ends.get(chunk, carried[-1]))
    return fn.array(*(fn.lit(value).cast("bigint") for value in carried))


def running_sum(rows: DataFrame, of: str) -> DataFrame:
    """The rows with `before` and `after`: the sum of `of` in the order of the file, without and with the row.

    The rows carry where they stand: `file`, `block` (its first byte) and `position` within the task.
    """
    # One block is one task's share of a file, so there are about 16 a gigabyte: one partition is enough here.
    earlier = Window.orderBy("file", "block").rowsBetween(Window.unboundedPreceding, -1)
    totals = rows.groupBy("file", "block").agg(fn.sum(of).alias("total"))
    offsets = totals.select("file", "block", fn.coalesce(fn.sum("total").over(earlier), fn.lit(0)).alias("offset"))
    upto = Window.partitionBy("file", "block").orderBy("position").rowsBetween(Window.unboundedPreceding, 0)
    summed = rows.withColumn("within", fn.sum(of).over(upto)).join(fn.broadcast(offsets), ["file", "block"])
    after = fn.col("within") + fn.col("offset")
    return summed.withColumn("after", after).withColumn("before", after - fn.col(of)).drop("within", "offset")
