"""Rows to feed apps with, made by Spark: text after a Zipf law, web logs, rows labelled by a tree, images to paint."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.apps.query_inputs import meter_readings, price_ticks, tweets
from penstock.core.errors import BadInput

WORDS = 20_000
WORDS_PER_LINE = 10
SITES = 100
VISITORS = 200_000
ATTRIBUTES = 200
VALUES = 5  # as many as the nominal attributes of MOA's random trees have
CLASSES = 10
LEVELS = 3
NOISE = 0.1
IMAGES_PER_QUERY = 100
POSITIONS_ACROSS = 16
CELLS_MEAN = 12  # on an image of 128 x 128
SIDE_SETTING = "spark.penstock.images.side"
SIDES = range(16, 4097)


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


def image_rows(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """Numbered lines: 100 images (`image 7 128 12 99`: side, cells, seed), then a query (`query 100 3 15`: x, y)."""
    side = _side(spark)
    number = F.col("id").cast("string")
    cells_most = round(2 * CELLS_MEAN * (side / 128) ** 2)
    cells, paint = _drawn(seed, 0, cells_most + 1), _drawn(seed, 1, 2**31)
    image = F.concat_ws(" ", F.lit("image"), number, F.lit(str(side)), cells, paint)
    x, y = (_drawn(seed, which, POSITIONS_ACROSS) for which in (2, 3))
    query = F.concat_ws(" ", F.lit("query"), number, x, y)
    asks = F.col("id") % (IMAGES_PER_QUERY + 1) == IMAGES_PER_QUERY
    return spark.range(rows).select(F.when(asks, query).otherwise(image).alias("value"))


def _side(spark: SparkSession) -> int:
    given = spark.conf.get(SIDE_SETTING, None) or "128"
    if not given.isdecimal() or int(given) not in SIDES:
        raise BadInput(f"{SIDE_SETTING} is '{given}': give the side of an image in pixels, {SIDES[0]} to {SIDES[-1]}")
    return int(given)


def _drawn(seed: int, which: int, below: int) -> Column:
    """A number from 0 to `below` that a row has however the rows are cut into partitions."""
    return F.pmod(F.xxhash64("id", F.lit(seed), F.lit(which)), F.lit(below)).cast("string")


def _zipf(seed: int) -> Column:
    """A rank with probability about 1/rank: WORDS to the power of a number drawn evenly from 0 to 1."""
    return F.floor(F.pow(F.lit(float(WORDS)), F.rand(seed)))


BYTES_PER_ROW: dict[Callable[..., DataFrame], int] = {
    text_lines: 46, web_log: 31, labelled_rows: 202, image_rows: 28, price_ticks: 42, tweets: 61, meter_readings: 42,
}  # fmt: skip
"""The mean, without the end of the line; numbers grow by a digit now and then. The meter counts what it reads."""
