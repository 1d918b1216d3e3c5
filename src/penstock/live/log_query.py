"""One operator of the log analysis as a Spark application of its own, in the cgroup that it was started in.

    python -m penstock.live.log_query OPERATOR BROKER TOPIC_IN TOPIC_OUT CHECKPOINT

It runs until it is ended; a query that fails ends it, and says why on stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.apps.logs import OPERATORS, LogOperator
from penstock.live.jars import kafka_jars
from penstock.live.kafka import KafkaSource
from penstock.pipeline.session import session

# Between two of its batches a real-time query commits and plans anew, for a second on a fifth of a core: hardly ever.
REAL_TIME = "1 hour"
RUNS = "the query runs"
# On a part of a core, collector and compiler threads burn the quota in a burst and then all stall.
JAVA = "-XX:+UseSerialGC -XX:ActiveProcessorCount=1 -XX:-UsePerfData -XX:CICompilerCount=2"
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def main(words: list[str]) -> None:
    name, address, reads, writes, checkpoint = words
    ends = KafkaSource(address, reads), KafkaSource(address, writes)
    settings = SETTINGS | {"spark.jars": kafka_jars().spark_jars}
    with session("local[1]", f"penstock {name}", settings) as spark:
        query = start(spark, OPERATORS[name], ends, Path(checkpoint))
        print(RUNS, flush=True)
        query.awaitTermination()


def start(
    spark: SparkSession, operator: LogOperator, ends: tuple[KafkaSource, KafkaSource], checkpoint: Path
) -> StreamingQuery:
    """The query, from one topic to the other; in real-time mode where Spark allows it."""
    source, sink = ends
    options = {**source.reader_options(), "startingOffsets": "earliest", "includeHeaders": "true"}
    rows = operator.transform(spark.readStream.format("kafka").options(**options).load())
    writer = rows.writeStream.format("kafka").options(**sink.writer_options(), includeHeaders="true")
    writer = writer.option("checkpointLocation", str(checkpoint)).outputMode("update").queryName(operator.name)
    if operator.is_real_time:
        query: StreamingQuery = writer.trigger(realTime=REAL_TIME).start()  # type: ignore[call-overload]  # not in its stubs
        return query
    return writer.trigger(processingTime=f"{operator.trigger_s:g} seconds").start()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except PySparkException as failure:
        print(f"Error: {(str(failure).splitlines() or ['no reason given'])[0][:300]}", file=sys.stderr)
        sys.exit(70)
