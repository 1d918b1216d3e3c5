"""Rows that each ask a service for 0.2 ms, counted by key. Usage: service.py <servers> <subscribe-type> <topics>"""

import sys
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def asked(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in parts:
        time.sleep(0.0002 * rows.num_rows)
        yield rows


if __name__ == "__main__":
    servers, kind, topics = sys.argv[1:]
    spark = SparkSession.builder.appName("Service").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option(kind, topics)
    rows = reader.load().select(F.col("value").cast("string").alias("key")).mapInArrow(asked, "key string")
    query = rows.groupBy("key").count().writeStream.format("console").outputMode("complete").start()
    query.awaitTermination()
