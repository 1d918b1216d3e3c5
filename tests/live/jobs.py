"""What tests run in a process of its own: `python -m tests.live.jobs NAME WORDS...`, one line of JSON each."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.core.allocation import BatchRule
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.control_options import Wanted
from penstock.live.kafka import KafkaSource
from penstock.live.lag_source import Places
from penstock.live.plant import PlantOptions, SparkPlant
from penstock.live.query_plan import trigger_s
from penstock.live.queue import QueryQueue
from penstock.live.resources import hold
from penstock.live.row_limit import RowLimit, why_not
from penstock.live.watched_query import WatchedQuery
from penstock.pipeline.session import session
from penstock.testing import check_plant


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


def look(settings: Mapping[str, str], source: KafkaSource, folder: str) -> None:
    """Watch a query that reads a topic twice, of which nobody told us anything, while its second batch is held up."""
    held, began = Path(folder) / "held", Path(folder) / "began"
    with session("local[2]", settings=settings) as spark:
        write_rows(spark, source, 1000)
        stream = spark.readStream.format("kafka").options(**source.reader_options()).load().select("value")
        writer = stream.union(stream).writeStream.foreachBatch(holding(held, began))
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
        queue = QueryQueue(time.time(), 60.0, 1.0)
        seen = WatchedQuery(spark, query, queue, Places())
        wait_until(lambda: bool(seen.follow(time.time())))
        base = queue.processed  # 1,000, or 0 where an idle trigger has followed that batch already
        say(told=seen.told_by, trigger=trigger_s(query))
        held.touch()
        write_rows(spark, source, 500)
        wait_until(began.exists)
        write_rows(spark, source, 3000)
        seen.follow(time.time())
        say(waiting=queue.backlog, came=queue.arrived - base, rate=queue.input_rate, unknown=seen.unknown_backlog)
        held.unlink()
        wait_until(lambda: bool(seen.follow(time.time())) and queue.processed - base >= 3500)
        reported = sum(each["numInputRows"] for each in query.recentProgress)
        # A controller that begins again knows by the checkpoint what it has not seen.
        again = WatchedQuery(spark, query, QueryQueue(time.time(), 60.0, 1.0), Places())
        again.go_on(0)
        again.follow(time.time())
        say(answered=queue.processed - base, unseen=again.queue.processed, waiting=queue.backlog, reported=reported)
        query.stop()


def holding(held: Path, began: Path) -> Callable[[Any, int], None]:
    """A sink that waits while a file is there."""

    def put(_: Any, number: int) -> None:
        if number:
            began.touch()
        while held.exists():
            time.sleep(0.05)

    return put


def write_rows(spark: SparkSession, source: KafkaSource, rows: int) -> None:
    numbers = spark.range(rows).selectExpr("CAST(id AS STRING) AS value")
    numbers.write.format("kafka").options(**source.writer_options()).save()


def wait_until(ready: Callable[[], bool], patience_s: float = 90.0) -> None:
    deadline = time.monotonic() + patience_s
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen")
        time.sleep(0.1)


def plans(folder: str) -> None:
    """What the plans of queries tell that never ran a batch."""
    with session("local[1]") as spark, socket.create_server(("127.0.0.1", 0)) as server:
        where = {"host": "127.0.0.1", "port": str(server.getsockname()[1])}
        kinds = {
            "files": spark.readStream.format("text").load(folder),
            "rate": spark.readStream.format("rate").option("rowsPerSecond", 5).load(),
            "ramp": spark.readStream.format("rate").option("rampUpTime", "1h").load(),
            "socket": spark.readStream.format("socket").options(**where).load(),
        }
        for name, stream in kinds.items():
            query = stream.writeStream.format("noop").trigger(processingTime="7 seconds").start()
            seen = WatchedQuery(spark, query, QueryQueue(time.time(), 60.0, 1.0), Places())
            say(name=name, told=seen.told_by, trigger=trigger_s(query))
            query.stop()


def plant(settings: Mapping[str, str], folder: str) -> None:
    """A real plant keeps the contract; its row limit follows the rule that it is given, and goes when it is left."""
    files = Path(folder) / "in"
    files.mkdir()
    for number in range(2000):
        (files / f"{number}.txt").write_text("row\n" * 100)
    with session(settings["spark.master"], settings=settings) as spark:
        rows: list[int] = []
        stream = spark.readStream.option("maxFilesPerTrigger", 20).text(str(files))
        writer = stream.writeStream.foreachBatch(lambda batch, _: rows.append(batch.count()))
        query = writer.trigger(processingTime="1 second").option("checkpointLocation", f"{folder}/checkpoint").start()
        job = Wanted(limits=Limits(1, 3), tick="1s", trigger="1s").job("check")
        real = SparkPlant(spark, job, PlantOptions(sizes_batches=not why_not(query)))
        real.watch(query)
        first_look(real)
        check_plant(real, looks(real, 8))
        say(knobs=sorted(knob.value for knob in real.knobs))
        # 10 s at 30 rows/s: three files of a hundred rows.
        rule = BatchRule(latency_s=20.0, fixed_s=0.0, rows_per_worker_s=30.0, shortest_s=10.0, longest_s=10.0)
        seen = first_look(real)
        real.apply(replace(seen.target.resized(1), batch=rule))
        wait_until(lambda: shown(real) is not None and rows[-2:] == [300, 300])
        seen = first_look(real)
        say(limited=rows[-1], rule=seen.target.batch == rule, workers=len(seen.running.workers))
        real.leave()
        wait_until(lambda: rows[-1] == 2000)
        say(restored=rows[-1])
        query.stop()
        say(unlimited=folder_without_limit(spark, folder))


def folder_without_limit(spark: SparkSession, folder: str) -> list[int]:
    """Rows of each batch of a query that its user gave no limit: without one, with one of three files, without."""
    sets, rows = Path(folder) / "sets", list[int]()
    sets.mkdir()
    add(sets, 5)
    stream = spark.readStream.text(f"{sets}/*")
    writer = stream.writeStream.foreachBatch(lambda batch, _: rows.append(batch.count()))
    query = writer.trigger(processingTime="1 second").option("checkpointLocation", f"{folder}/other").start()
    limit = RowLimit(spark, query)
    wait_until(lambda: sum(rows) == 500)
    limit.set(300.0, lambda _: (1.0, 100.0))
    add(sets, 7)
    wait_until(lambda: sum(rows) == 1200 or not query.isActive)
    limit.restore()
    add(sets, 7)
    wait_until(lambda: sum(rows) == 1900 or not query.isActive)
    query.stop()
    return rows


def add(sets: Path, count: int) -> None:
    """Files of a hundred rows that are there all at once."""
    made = sets.parent / "made"
    made.mkdir()
    for number in range(count):
        (made / f"{number}.txt").write_text("row\n" * 100)
    made.rename(sets / str(len(list(sets.iterdir()))))


def looks(real: SparkPlant, count: int) -> Iterator[None]:
    """As many ticks as show something, a moment apart."""
    for _ in range(count):
        yield
        time.sleep(0.5)
        real.tend()


def first_look(real: SparkPlant) -> Observation:
    wait_until(lambda: shown(real) is not None)
    seen = real.observe()
    assert seen is not None
    return seen


def shown(real: SparkPlant) -> Observation | None:
    real.tend()
    return real.observe()


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
    if name in ("write", "read", "look"):
        settings, source, last = words
        {"write": write, "read": read, "look": look}[name](settings, KafkaSource(**source), last)  # type: ignore[operator]
    else:
        {"count": count, "burn": burn, "keep": keep, "plans": plans, "plant": plant}[name](*words)  # type: ignore[operator]


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
