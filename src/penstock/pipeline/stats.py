"""Moments, autocorrelations and dispersion of inter-arrival times: exact, and never in one partition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from penstock.core.errors import BadInput
from penstock.pipeline.order import CHUNK_ROWS, chunk_of, cuts_of
from penstock.pipeline.reading import Reading
from penstock.pipeline.request import ArrivalStats, TraceRequest
from penstock.pipeline.store import stored

# Up to what `penstock arrivals` shows of a stream that fits into memory.
LAGS = (*range(1, 11), 20, 50, 100, 200, 500, 1000)
SUMMED = 100  # successive inter-arrival times in one sum of the index of dispersion for intervals
BLOCK = 1 << 18  # rows a task sorts at once: 4 MB, of which the 1,000 carried over are 0.4 %


def arrival_stats(reading: Reading, request: TraceRequest, scratch: Path) -> ArrivalStats:
    """What the inter-arrival times look like. Those of at least `--gap` are holes in the record and left out."""
    if reading.points is not None:
        gaps = gaps_between(stored(reading.points, scratch / "points"))
    else:
        assert reading.gaps is not None
        gaps = reading.gaps
    longest = request.gap_us / reading.gap_unit_us
    series = stored(gaps.withColumn("gap", fn.when(fn.col("gap") < longest, fn.col("gap"))), scratch / "gaps")
    return _stats(series, request, reading.gap_unit_us)


def gaps_between(points: DataFrame, chunk_rows: int = CHUNK_ROWS) -> DataFrame:
    """Numbered inter-arrival times (index from 1) of distinct times `at` (µs) with how many `events` each."""
    cuts = cuts_of(points, "at", chunk_rows)
    chunked = points.withColumn("chunk", chunk_of("at", cuts))
    ends = chunked.groupBy("chunk").agg(fn.max("at").alias("last"), fn.sum("events").alias("events"))
    carried = _carried({end["chunk"]: (end["last"], end["events"]) for end in ends.collect()}, len(cuts) + 1)
    ordered = Window.partitionBy("chunk").orderBy("at")
    last = fn.coalesce(fn.lag("at").over(ordered), fn.get(carried["last"], fn.col("chunk")))
    upto = ordered.rowsBetween(Window.unboundedPreceding, -1)
    before = fn.coalesce(fn.sum("events").over(upto), fn.lit(0)) + fn.get(carried["events"], fn.col("chunk"))
    firsts = chunked.select((fn.col("at") - last).alias("gap"), before.alias("before"), "events")
    # n events at one time are one gap and n - 1 ties; only then is a row made for each event.
    each = firsts.select("*", fn.explode(fn.sequence(fn.lit(0).cast("bigint"), fn.col("events") - 1)).alias("tie"))
    gap = fn.when(fn.col("tie") == 0, fn.col("gap")).otherwise(fn.lit(0)).cast("double")
    return each.select((fn.col("before") + fn.col("tie")).alias("index"), gap.alias("gap")).where(fn.col("index") > 0)


def _carried(ends: dict[int, tuple[int, int]], chunks: int) -> dict[str, Column]:
    """For each chunk the last time before it, and the events before it."""
    last: list[int | None] = [None]
    events = [0]
    for chunk in range(chunks - 1):
        at, count = ends.get(chunk, (last[-1], 0))
        last.append(at)
        events.append(events[-1] + count)
    return {"last": _longs(last), "events": _longs(events)}


def _longs(values: Sequence[int | None]) -> Column:
    return fn.array(*(fn.lit(value).cast("bigint") for value in values))


def moments(series: DataFrame, mean: float) -> DataFrame:
    """One row: the second and third moment about the mean; about it, so that nothing cancels."""
    off = fn.col("gap") - fn.lit(mean)
    return series.agg(fn.avg(off * off).alias("second"), fn.avg(off * off * off).alias("third"))


def lagged(series: DataFrame, mean: float) -> DataFrame:
    """One row: Σ (x_t − m)(x_{t+k} − m) for each lag k.

    The rows are cut by index into blocks, and each block also gets the 1,000 rows before it.
    """
    off = (fn.col("gap") - fn.lit(mean)).alias("off")
    block = fn.floor(fn.col("index") / BLOCK)
    is_carried = fn.pmod(fn.col("index"), fn.lit(BLOCK)) >= BLOCK - max(LAGS)
    homes = fn.when(is_carried, fn.array(block, block + 1)).otherwise(fn.array(block))
    copies = series.select("index", off, block.alias("home"), fn.explode(homes).alias("block"))
    ordered = Window.partitionBy("block").orderBy("index")
    products = [(fn.col("off") * fn.lag("off", k).over(ordered)).alias(f"lag{k}") for k in LAGS]
    own = copies.select("home", "block", *products).where(fn.col("home") == fn.col("block"))
    return own.agg(*(fn.sum(f"lag{k}").alias(f"lag{k}") for k in LAGS))


def _stats(series: DataFrame, request: TraceRequest, unit_us: float) -> ArrivalStats:
    found = series.agg(fn.avg("gap").alias("mean"), fn.count("gap").alias("count")).first()
    if found is None or found["count"] < 2 or found["mean"] <= 0:
        raise BadInput(f"{request.source}: --stats needs at least three arrivals that are not all at the same time")
    mean, count = found["mean"], found["count"]
    about = moments(series, mean).first()
    assert about is not None
    return ArrivalStats(
        count=count,
        mean_s=mean * unit_us / 1e6,
        scv=about["second"] / mean**2,
        skewness=about["third"] / about["second"] ** 1.5 if about["second"] else 0.0,
        autocorrelation=_autocorrelation(series, mean, about["second"] * count),
        dispersion_of_intervals_100=_dispersion(series, mean),
        dispersion_of_counts=None,
    )


def _autocorrelation(series: DataFrame, mean: float, squares: float) -> dict[int, float]:
    sums = lagged(series, mean).first()
    assert sums is not None
    return {k: sums[f"lag{k}"] / squares for k in LAGS if squares and sums[f"lag{k}"] is not None}


def _dispersion(series: DataFrame, mean: float) -> float | None:
    """Var(sum of 100 successive) / (100 mean²), over whole hundreds without a hole."""
    hundreds = series.groupBy(fn.floor(fn.col("index") / SUMMED)).agg(
        fn.sum("gap").alias("sum"), fn.count("gap").alias("count")
    )
    found = (
        hundreds.where(fn.col("count") == SUMMED)
        .agg(fn.var_pop("sum").alias("variance"), fn.count("*").alias("count"))
        .first()
    )
    if found is None or found["count"] < 2:
        return None
    return float(found["variance"] / (SUMMED * mean**2))


def dispersion_of_counts(series: DataFrame) -> float | None:
    """Var(arrivals per interval) / mean, of the written rate series."""
    found = series.agg(fn.var_pop("arrivals").alias("variance"), fn.avg("arrivals").alias("mean")).first()
    return float(found["variance"] / found["mean"]) if found and found["mean"] else None
