"""Jobs with several implementations: all patterns or the hot few; all visitors, a sample of them, or a sketch.

Those that share their state go on from one checkpoint. Spark does not compare what a state means: a set and a sketch
are both one binary column to it, so that one of them must never read the other's.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PATTERNS = range(1, 49)
HOT = range(1, 7)  # words after a Zipf law: these six tens have 46 % of all matches
ONE_IN = 16
WINDOW, LATENESS = "60 seconds", "1 minute"


def all_patterns(rows: DataFrame) -> DataFrame:
    """Lines that match each of 48 patterns."""
    return _matches(rows, PATTERNS)


def hot_patterns(rows: DataFrame) -> DataFrame:
    """Lines that match each of the six most frequent patterns; the counts of the others stand still."""
    return _matches(rows, HOT)


def _matches(rows: DataFrame, numbers: Iterable[int]) -> DataFrame:
    found = F.array(*(F.when(F.col("value").rlike(rf"\bw{one}[0-9]\b"), F.lit(f"w{one}?")) for one in numbers))
    return rows.select(F.explode(F.array_compact(found)).alias("pattern")).groupBy("pattern").count()


def every_visitor(rows: DataFrame) -> DataFrame:
    """How many visitors each site had in each minute: all of them are kept."""
    return _visitors(_accesses(rows), is_sampled=False)


def sampled_visitors(rows: DataFrame) -> DataFrame:
    """The same from one visitor in 16, chosen by their names: a set of all and one of some have these in common.

    So a minute in which the job was switched is estimated from all of it, and no visitor counts twice.
    """
    return _visitors(_accesses(rows).where(_is_chosen(F.col("visitor"))), is_sampled=True)


def coarse_sketch(rows: DataFrame) -> DataFrame:
    """The same by a sketch (HyperLogLog++, 5 %), whose state is another."""
    counted = _accesses(rows).groupBy(F.window("timestamp", WINDOW), "site")
    return counted.agg(F.approx_count_distinct("visitor", 0.05).alias("visitors"), F.lit(True).alias("is_estimate"))


def _visitors(accesses: DataFrame, is_sampled: bool) -> DataFrame:
    grouped = accesses.groupBy(F.window("timestamp", WINDOW), "site")
    kept = grouped.agg(F.collect_set("visitor").alias("kept"), F.max(F.lit(is_sampled)).alias("is_estimate"))
    estimate = ONE_IN * F.size(F.filter("kept", _is_chosen))
    visitors = F.when(F.col("is_estimate"), estimate).otherwise(F.size("kept")).cast("long")
    return kept.select("window", "site", visitors.alias("visitors"), "is_estimate")


def _is_chosen(visitor: Column) -> Column:
    return F.pmod(F.xxhash64(visitor), F.lit(ONE_IN)) == 0


def _accesses(rows: DataFrame) -> DataFrame:
    parts = F.split("value", "\t")
    named = rows.select("timestamp", parts[0].alias("site"), parts[1].alias("visitor"))
    return named.withWatermark("timestamp", LATENESS)
