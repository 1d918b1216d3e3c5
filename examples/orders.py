"""Jobs of your own: orders as they come, and their value by country. From this folder:

penstock measure orders:by_country --workers 1,2,3 -o orders.parquet
penstock run orders:each --files incoming/ --to parquet:out --output-mode append --min 1 --max 4
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def each(rows: DataFrame) -> DataFrame:
    """Every order by itself: country and cents."""
    return rows.select(F.from_csv("value", "country STRING, cents LONG").alias("order")).select("order.*")


def by_country(rows: DataFrame) -> DataFrame:
    """Rows come in as `value` (text) and `timestamp`; what is returned goes to a sink."""
    order = F.from_csv("value", "country STRING, cents LONG").alias("order")
    return rows.select(order).groupBy("order.country").agg(F.sum("order.cents").alias("cents"))


def generate(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """The input. Better than made-up rows: some of your own, `spark.read.text("orders.csv").limit(rows)`."""
    country = F.concat(F.lit("country"), (F.rand(seed) * 50).cast("int"))
    cents = (F.rand(seed + 1000) * 10_000).cast("int")
    return spark.range(rows).select(F.concat_ws(",", country, cents).alias("value"))
