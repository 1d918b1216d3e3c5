"""Rows to feed apps with, made by Spark: text after a Zipf law, web logs over 100 sites, rows labelled by a tree."""

from __future__ import annotations

import random
from itertools import product

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

WORDS = 20_000
WORDS_PER_LINE = 10
SITES = 100
VISITORS = 200_000
ATTRIBUTES = 200
VALUES = 5  # as many as the nominal attributes of MOA's random trees have
CLASSES = 10
LEVELS = 3
NOISE = 0.1


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


def labelled_rows(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """Lines of 200 digits, one for each attribute, and a class given by a random tree of three levels: `0413…2 7`."""
    # Five digits at a time, out of all 3125. Partition p draws with seed + p, so the seeds lie further apart.
    fives = F.split(F.lit(" ".join(map("".join, product(map(str, range(VALUES)), repeat=5)))), " ")
    seeds = [100_000 * (100 * seed + part) for part in range(ATTRIBUTES // 5 + 2)]
    digits = F.concat(*(F.get(fives, F.floor(F.rand(one) * VALUES**5).cast("int")) for one in seeds[2:]))
    table = spark.range(rows).select(digits.alias("digits"), F.lit(0).alias("branch"))
    draw = random.Random(seed)
    for level in range(LEVELS):
        asked = F.array(*(F.lit(draw.randint(1, ATTRIBUTES)) for _ in range(VALUES**level)))
        answer = F.col("digits").substr(F.get(asked, F.col("branch")), F.lit(1)).cast("int")
        table = table.withColumn("branch", F.col("branch") * VALUES + answer)
    named = F.get(F.array(*(F.lit(draw.randrange(CLASSES)) for _ in range(VALUES**LEVELS))), F.col("branch"))
    label = F.when(F.rand(seeds[0]) < NOISE, F.floor(F.rand(seeds[1]) * CLASSES)).otherwise(named)
    return table.select(F.concat_ws(" ", "digits", label.cast("string")).alias("value"))


def _zipf(seed: int) -> Column:
    """A rank with probability about 1/rank: WORDS to the power of a number drawn evenly from 0 to 1."""
    return F.floor(F.pow(F.lit(float(WORDS)), F.rand(seed)))
