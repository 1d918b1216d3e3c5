"""A foreachBatch whose sink takes 10 ms a row. Usage: slow.py <bootstrap-servers> <subscribe-type> <topics>"""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F


def slow(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        time.sleep(0.01)
        yield row


def put(batch: DataFrame, number: int) -> None:
    rows = batch.repartition(8).rdd.mapPartitions(slow).count()
    with Path("answered.txt").open("a", encoding="utf-8") as file:
        file.write(f"{number} {rows}\n")


if __name__ == "__main__":
    servers, kind, topics = sys.argv[1:]
    spark = SparkSession.builder.appName("Slow").getOrCreate()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option(kind, topics)
    rows = reader.load().select(F.col("value").cast("string"))
    query = rows.writeStream.foreachBatch(put).trigger(processingTime="5 seconds").start()
    query.awaitTermination()
