"""Rows to feed apps with, made by Spark: text after a Zipf law, and web logs over 100 sites."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

WORDS = 20_000
WORDS_PER_LINE = 10
SITES = 100
VISITORS = 200_000


def text_lines(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """Lines of ten words; the k-th word is about 1/k as frequent as the first, as in a novel."""
    words = [F.concat(F.lit("w"), _zipf(seed + number).cast("string")) for number in range(WORDS_PER_LINE)]
    return spark.range(rows).select(F.concat_ws(" ", *words).alias("value"))


def web_log(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """Tab-separated accesses: site, visitor, status, bytes. Two thirds of them end well."""
    site = F.concat(F.lit("site"), (F.rand(seed) * SITES).cast("int").cast("string"), F.lit(".example"))
    visitor = F.concat(F.lit("v"), (F.rand(seed + 1) * VISITORS).cast("int").cast("string"))
    status = F.when(F.rand(seed + 2) < 2 / 3, "200").when(F.rand(seed + 3) < 0.5, "404").otherwise("304")
    size = (F.rand(seed + 4) * 50_000).cast("int").cast("string")
    return spark.range(rows).select(F.concat_ws("\t", site, visitor, status, size).alias("value"))


def _zipf(seed: int) -> Column:
    """A rank with probability about 1/rank: WORDS to the power of a number drawn evenly from 0 to 1."""
    return F.floor(F.pow(F.lit(float(WORDS)), F.rand(seed)))
