"""Two streams joined by their key within a millisecond. Usage: join.py <servers> <subscribe-type> <topics>"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def read(spark: SparkSession, servers: str, kind: str, topics: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option(kind, topics)
    return reader.load().select(F.col("value").cast("string").alias("key"), "timestamp")


def put(batch: DataFrame, number: int) -> None:
    with Path("answered.txt").open("a", encoding="utf-8") as file:
        file.write(f"{number} {batch.count()}\n")


if __name__ == "__main__":
    spark = SparkSession.builder.appName("Join").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    clicks = read(spark, *sys.argv[1:]).withColumnsRenamed({"timestamp": "clicked"})
    orders = read(spark, *sys.argv[1:]).withColumnsRenamed({"key": "other", "timestamp": "ordered"})
    near = F.expr("key = other AND ordered BETWEEN clicked AND clicked + interval 1 milliseconds")
    joined = clicks.withWatermark("clicked", "10 seconds").join(orders.withWatermark("ordered", "10 seconds"), near)
    query = joined.writeStream.foreachBatch(put).outputMode("append").start()
    query.awaitTermination()
