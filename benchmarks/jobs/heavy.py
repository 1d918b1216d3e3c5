"""Rows of which 30 kB are hashed, counted by key; default trigger and partitions. Words: SERVERS TYPE TOPICS"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

if __name__ == "__main__":
    servers, kind, topics = sys.argv[1:]
    spark = SparkSession.builder.appName("Heavy").getOrCreate()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option(kind, topics)
    rows = reader.load().select(F.col("value").cast("string").alias("key"))
    hashed = rows.select("key", F.sha2(F.repeat("key", 10_000), 512).alias("hash"))
    counts = hashed.groupBy("key").agg(F.max("hash").alias("hash"), F.count("*").alias("count"))
    query = counts.writeStream.format("noop").outputMode("update").start()
    query.awaitTermination()
