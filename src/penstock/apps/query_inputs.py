"""Rows for paper 2's queries: price ticks, tweets and meter readings whose number follows a rate trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.core.errors import BadInput

SYMBOLS = 100
SECTORS = ("energy", "finance", "health", "materials", "retail", "tech", "utilities")
TAGS_PER_LETTER = 40
HOUSES, METERS = 10, 20
BEGIN_S = 1_760_000_000
RATE = 1000.0
Row = Callable[[int], Column]


def following(spark: SparkSession, row: Row, rates: Sequence[float], tick_s: float, seed: int) -> DataFrame:
    """Rows (`tick`, `value`): in each tick as many as its rate says, evenly spread; `value` begins with its time.

    Parts of a row are carried over to the next tick, so that the total is right to one.
    """
    if any(not 0 <= rate < float("inf") for rate in rates):
        raise BadInput("a rate is negative or no number: give events per second, 0 or more")
    counts, owed = [], 0.0
    for rate in rates:
        owed += rate * tick_s
        counts.append(int(owed + 1e-9))
        owed -= counts[-1]
    ticks = spark.createDataFrame(list(enumerate(counts)), "tick long, rows long").where("rows > 0")
    each = ticks.select("tick", "rows", F.explode(F.sequence(F.lit(0), F.col("rows") - 1)).alias("number"))
    at_s = BEGIN_S + (F.col("tick") + (F.col("number") + 0.5) / F.col("rows")) * tick_s
    at = F.date_format(F.timestamp_millis((at_s * 1000).cast("long")), "yyyy-MM-dd HH:mm:ss.SSS")
    return each.select("tick", "number", F.concat_ws("\t", at, row(seed)).alias("value"))


def tick_row(seed: int) -> Column:
    """Symbol, its sector, a price around its own level."""
    symbol = drawn(seed, 0, SYMBOLS)
    sector = F.get(F.array(*map(F.lit, SECTORS)), (symbol % len(SECTORS)).cast("int"))
    price = F.round(10 + symbol + drawn(seed, 1, 1000) / 200, 2)
    return F.concat_ws("\t", F.format_string("S%03d", symbol), sector, price.cast("string"))


def tweet_row(seed: int) -> Column:
    """Some words and two hashtags; a tag's first letter is as frequent as any."""
    tags = [
        F.concat(F.lit("#"), F.char(drawn(seed, 2 * place, 26) + 97), drawn(seed, 2 * place + 1, TAGS_PER_LETTER))
        for place in range(2)
    ]
    return F.concat_ws(" ", F.lit("this is what some say of"), tags[0], F.lit("and"), tags[1])


def meter_row(seed: int) -> Column:
    """House, meter, watts."""
    house = F.concat(F.lit("house"), drawn(seed, 0, HOUSES))
    meter = F.concat(F.lit("meter"), drawn(seed, 1, METERS))
    return F.concat_ws("\t", house, meter, drawn(seed, 2, 3000).cast("string"))


def price_ticks(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """A thousand ticks a second: time, symbol, sector, price, apart by tabs."""
    return _steady(spark, tick_row, rows, seed)


def tweets(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """A thousand tweets a second: time and text, apart by a tab."""
    return _steady(spark, tweet_row, rows, seed)


def meter_readings(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """A thousand readings a second: time, house, meter, watts, apart by tabs."""
    return _steady(spark, meter_row, rows, seed)


def _steady(spark: SparkSession, row: Row, rows: int, seed: int) -> DataFrame:
    whole, rest = divmod(rows, int(RATE))
    return following(spark, row, [RATE] * whole + [float(rest)] * (rest > 0), 1.0, seed).select("value")


def drawn(seed: int, which: int, below: int) -> Column:
    """A number from 0 to `below` that a row has however rows are cut into partitions."""
    return F.pmod(F.xxhash64("tick", "number", F.lit(seed), F.lit(which)), F.lit(below))
