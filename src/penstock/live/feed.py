"""What a measured query reads: files or a topic of Kafka, filled beforehand with more than it can consume."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.apps.app import App
from penstock.core.errors import BadInput, ExternalError
from penstock.live.kafka import Broker, KafkaSource
from penstock.pipeline.failures import plain

BASE_ROWS = 50_000
ANSWER_S = 2.0
SPARE = 2.0  # as much room again must be free: checkpoints, shuffles and other people's files need some


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What one query is to read."""

    rows: int
    """In a batch."""
    batches: int
    partitions: int


class Feed(Protocol):
    """Where the rows of a measured query come from."""

    kind: str
    bytes_per_row: float

    def stream(self, spark: SparkSession, name: str, helping: BatchPlan, /) -> DataFrame: ...

    def drop(self, name: str) -> None:
        """The query of this name has read what it needs."""

    def need_alive(self) -> None:
        """Raise if the source cannot be read any more."""

    def close(self) -> None:
        """Nothing of ours stays where others look."""


class FileFeed:
    """Files that each partition reads one of in a batch; a batch's files are linked under as many names as there
    are batches, so a source that does not run dry takes the room of one batch."""

    kind = "files"

    def __init__(self, spark: SparkSession, app: App, folder: Path, seed: int) -> None:
        self._folder = folder
        self._lines = _base(spark, app, folder, seed)
        self._all = b"".join(self._lines)
        self.bytes_per_row = len(self._all) / len(self._lines)

    def stream(self, spark: SparkSession, name: str, helping: BatchPlan) -> DataFrame:
        need_room(self._folder, helping.rows * self.bytes_per_row)
        links, whole = self._folder / name, self._folder / f"{name}-whole"
        links.mkdir()
        whole.mkdir()
        rows = max(1, round(helping.rows / helping.partitions))
        for part in range(helping.partitions):
            path = whole / f"{part}.txt"
            path.write_bytes(self._some(rows, 37 * part))
            for batch in range(helping.batches):
                os.link(path, links / f"{batch:05}-{part:03}.txt")
        reader = spark.readStream.format("text").option("maxFilesPerTrigger", helping.partitions)
        return reader.load(str(links)).withColumn("timestamp", F.current_timestamp())

    def _some(self, rows: int, first: int) -> bytes:
        """So many rows; every part begins elsewhere."""
        times, rest = divmod(rows, len(self._lines))
        first = min(first, len(self._lines) - rest)
        return self._all * times + b"".join(self._lines[first : first + rest])

    def drop(self, name: str) -> None:
        for folder in (self._folder / name, self._folder / f"{name}-whole"):
            shutil.rmtree(folder, ignore_errors=True)

    def need_alive(self) -> None:
        need_room(self._folder, 0)

    def close(self) -> None:
        """The folder goes with all that is in it."""


class KafkaFeed:
    """A topic with as many partitions as are measured, written anew when their number changes.

    Every query starts at the topic's beginning, so it is filled once for the largest batches.
    """

    kind = "kafka"

    def __init__(self, spark: SparkSession, app: App, at: tuple[Broker | None, KafkaSource], room: tuple[Path, int]):
        self._broker, self._source = at
        self._folder, seed = room
        lines = _base(spark, app, self._folder, seed)
        self.bytes_per_row = sum(len(line) - 1 for line in lines) / len(lines)
        self._partitions = self._rows = 0

    def stream(self, spark: SparkSession, _name: str, helping: BatchPlan) -> DataFrame:
        needed = helping.rows * helping.batches
        if helping.partitions != self._partitions or needed > self._rows:
            self._fill(spark, helping.partitions, needed)
        return topic_stream(spark, self._source, helping.rows)

    def _fill(self, spark: SparkSession, partitions: int, rows: int) -> None:
        if self._broker:
            need_room(self._folder, rows * (self.bytes_per_row + 10))  # a record's own length, time and offset
        self.close()
        # A name of its own each time: a topic is deleted in the background, and its name stays taken for a while.
        self._source = replace(self._source, topic=f"penstock-{uuid.uuid4().hex[:12]}")
        with self._source.admin() as admin:
            admin.create_topic(self._source.topic, partitions)
        self._partitions, self._rows = partitions, 0  # whatever happens next, there is a topic to delete
        times = -(-rows // BASE_ROWS)
        numbered = spark.read.text(str(self._folder / "base")).withColumn("place", F.monotonically_increasing_id())
        spread = (F.col("place") + F.col("id")) % partitions
        full = spark.range(times).join(F.broadcast(numbered)).select("value", spread.cast("int").alias("partition"))
        with plain(self._folder):
            self._save(spark, full)
        self._rows = times * BASE_ROWS

    def _save(self, spark: SparkSession, rows: DataFrame) -> None:
        """Watched meanwhile: a producer waits two minutes for a broker that is gone, and Spark tries each task four
        times."""
        writer = rows.write.format("kafka").options(**self._source.writer_options())
        with ThreadPoolExecutor(1) as hands:
            saving = hands.submit(writer.save)
            while not wait([saving], ANSWER_S).done:
                try:
                    need_answer(self._source.address)
                except ExternalError:
                    spark.sparkContext.cancelAllJobs()
                    raise
            saving.result()

    def drop(self, name: str) -> None:
        """The topic stays for the next query."""

    def close(self) -> None:
        # A broker that is gone takes the topic with it, and must not hide what went wrong before.
        if self._partitions:
            with contextlib.suppress(ExternalError), self._source.admin() as admin:
                admin.delete_topic(self._source.topic)
        self._partitions = 0

    def need_alive(self) -> None:
        if self._broker:
            self._broker.need_alive()
        need_answer(self._source.address)


class TopicFeed:
    """A topic of the user's own, read from its beginning; its partitions are what they are."""

    kind = "kafka"

    def __init__(self, spark: SparkSession, source: KafkaSource) -> None:
        self._source = source
        rows = spark.read.format("kafka").options(**source.reader_options()).load().limit(10_000)
        with plain(Path(source.topic)):
            size = rows.agg(F.avg(F.length("value"))).first()
        if size is None or size[0] is None:
            raise ExternalError(f"the topic {source.topic} is empty: fill it with more than can be consumed")
        self.bytes_per_row = float(size[0])

    def stream(self, spark: SparkSession, _name: str, helping: BatchPlan) -> DataFrame:
        return topic_stream(spark, self._source, helping.rows)

    def drop(self, name: str) -> None:
        """It is not ours."""

    def need_alive(self) -> None:
        need_answer(self._source.address)

    def close(self) -> None:
        """It is not ours."""


def topic_stream(spark: SparkSession, source: KafkaSource, rows: int) -> DataFrame:
    """A topic from its beginning, so many rows a batch, as apps take it."""
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(rows)}
    stream = spark.readStream.format("kafka").options(**source.reader_options() | limits).load()
    return stream.select(F.col("value").cast("string").alias("value"), "timestamp")


def need_room(folder: Path, size: float) -> None:
    free, needed = shutil.disk_usage(folder).free, SPARE * size + 64e6
    if free < needed:
        raise ExternalError(f"{folder} has {free / 1e6:.0f} MB free: {needed / 1e6:.0f} MB are needed to preload")


def need_answer(address: str) -> None:
    """At least one broker accepts a connection: a query would retry in silence for minutes."""
    for place in address.split(","):
        host, _, port = place.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=2.0).close()
            return
        except OSError:
            continue
    raise ExternalError(f"the broker {address} stopped answering")


def _base(spark: SparkSession, app: App, folder: Path, seed: int) -> Sequence[bytes]:
    """The app's own rows, which are repeated to any length."""
    need_room(folder, 0)
    base = folder / "base"
    with plain(base):
        app.generate(spark, BASE_ROWS, seed).repartition(4).write.mode("overwrite").text(str(base))
    parts = sorted(base.glob("part-*.txt"))
    lines = [line for part in parts for line in part.read_bytes().splitlines(keepends=True)]
    if not lines:
        raise BadInput(f"app {app.name} generates no rows: `generate(spark, rows, seed)` must give a column `value`")
    return lines
