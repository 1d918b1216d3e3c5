"""What tests run in a process of its own: `python -m tests.live.jobs NAME WORDS...`, one line of JSON each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.holding import hold
from penstock.live.kafka import KafkaSource
from penstock.pipeline.session import session


def say(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def count(settings: Mapping[str, str]) -> None:
    """Count rows on a cluster, with Python on its executors too."""
    with session(settings["spark.master"], settings=settings) as spark:
        doubled = spark.sparkContext.parallelize(range(100), 4).map(lambda number: 2 * number).sum()
        say(rows=spark.range(100_000).count(), doubled=doubled)


def burn(settings: Mapping[str, str]) -> None:
    """Keep one task busy until somebody ends this process."""
    with session(settings["spark.master"], settings=settings) as spark:
        say(rows=spark.range(1000).count())
        spark.range(0, 10**15, 1, 1).selectExpr("sum(hash(id))").collect()


def write(settings: Mapping[str, str], source: KafkaSource, first: int) -> None:
    """Write the numbers `first` … `first` + 9,999."""
    with session("local[2]", settings=settings) as spark:
        rows = spark.range(first, first + 10_000).selectExpr("CAST(id AS STRING) AS value")
        rows.write.format("kafka").options(**source.writer_options()).save()


def read(settings: Mapping[str, str], source: KafkaSource, checkpoint: str) -> None:
    """Read all that is there as a stream."""
    with session("local[2]", settings=settings) as spark:
        stream = spark.readStream.format("kafka").options(**source.reader_options()).load()
        numbers = stream.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS number")
        query = numbers.writeStream.format("memory").queryName("seen").trigger(availableNow=True)
        query.option("checkpointLocation", checkpoint).start().awaitTermination()
        row = spark.sql("SELECT COUNT(*), COUNT(DISTINCT number), SUM(number) FROM seen").first()
        say(rows=list(row or ()))


def keep(what: str) -> None:
    """Hold something until the end comes from outside."""
    if what == "cluster":
        with Cluster.start(ClusterSpec(workers=1, cores=1.0)) as cluster:
            notes = cluster._holding.folder / "cgroups"
            say(cgroups=notes.read_text().splitlines() if cluster.is_limited else [])
            time.sleep(600)
    with hold("nothing") as holding:
        say(folder=str(holding.folder), mark=holding.mark)
        time.sleep(600)


def main(name: str, words: list[Any]) -> None:
    if name in ("write", "read"):
        settings, source, last = words
        {"write": write, "read": read}[name](settings, KafkaSource(**source), last)  # type: ignore[operator]
    else:
        {"count": count, "burn": burn, "keep": keep}[name](*words)  # type: ignore[operator]


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
