"""How much of a source waits to be read: from Kafka's offsets or a folder of files; elsewhere nobody tells."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PlantError
from penstock.live.progress import SourceReport

FORGETS = 0.9  # what a batch says of bytes a row counts less with each one after it
_FOLDER = re.compile(r"FileStreamSource\[file:/*(/[^\]]*)\]")
_TOPICS = re.compile(r"KafkaV2\[Subscribe\[([^\]]*)\]\]")


class Waiting(Protocol):
    """Tells what waits in one source."""

    def note(self, ended: SourceReport) -> None:
        """A batch has ended."""

    def after(self, last: SourceReport) -> float:
        """Events that are there and that no batch has answered; `last` is the source at the end of the last one."""


class Told:
    """What the query's own report says: right when the batch began, and as old as that."""

    def note(self, ended: SourceReport) -> None:
        """A report is all there is."""

    def after(self, last: SourceReport) -> float:
        return max(0.0, (last.latest or 0.0) - (last.end or 0.0))


class KafkaOffsets:
    """The end of each partition, asked of the broker now: a batch that takes a minute reports once a minute."""

    def __init__(self, spark: SparkSession, topics: str, options: Mapping[str, str]) -> None:
        self._jvm = jvm = _jvm_of(spark)
        self._topics = jvm.java.util.ArrayList()
        for topic in topics.split(","):
            self._topics.add(topic.strip())
        properties = jvm.java.util.Properties()
        for name, value in {"default.api.timeout.ms": "5000", "request.timeout.ms": "4000", **options}.items():
            properties.setProperty(name, value)
        self._client = jvm.org.apache.kafka.clients.admin.Admin.create(properties)

    def note(self, ended: SourceReport) -> None:
        """Offsets tell all."""

    def after(self, last: SourceReport) -> float:
        try:
            return max(0.0, self._ends() - (last.end or 0.0))
        except Py4JError as error:
            line = str(error).splitlines()[0][:200]
            raise PlantError(f"the broker does not tell the offsets of {self._topics}: {line}") from None

    def _ends(self) -> float:
        kafka = self._jvm.org.apache.kafka
        latest = kafka.clients.admin.OffsetSpec.latest()
        wanted = self._jvm.java.util.HashMap()
        for topic, about in self._client.describeTopics(self._topics).allTopicNames().get().items():
            for number in range(about.partitions().size()):
                wanted.put(kafka.common.TopicPartition(topic, number), latest)
        return float(sum(end.offset() for end in self._client.listOffsets(wanted).all().get().values()))


class FolderOfFiles:
    """Files that no batch has answered, with as many rows for their bytes as those before had.

    By files alone it would be wrong wherever their lengths change: when the rate fell to a twentieth, the waiting files
    of a job without any backlog looked like 100 s of it. Spark logs a batch's files when it begins; a report's offset
    is the number of its entry in that log.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder, self._log = folder, log
        self._looked: set[str] = set()
        self._files: dict[int, set[str]] = {}
        self._answered: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._counted = -1
        self._rows = self._bytes = 0.0

    def note(self, ended: SourceReport) -> None:
        if ended.entry is None:
            return
        self._look()
        first = self._counted + 1 if self._counted >= 0 else ended.entry
        names = [name for entry in range(first, ended.entry + 1) for name in self._files.get(entry, ())]
        read = sum(map(self._size, names))
        if read:
            self._rows, self._bytes = FORGETS * self._rows + ended.rows, FORGETS * self._bytes + read
        for entry in [entry for entry in self._files if entry <= ended.entry]:
            self._answered |= self._files.pop(entry)
        self._counted = max(self._counted, ended.entry)

    def after(self, last: SourceReport) -> float:  # noqa: ARG002
        there = {entry.name for entry in os.scandir(self._folder) if entry.name[0] not in "._" and entry.is_file()}
        self._answered &= there  # files may be archived once they were read
        waiting = there - self._answered
        self._sizes = {name: self._size(name) for name in waiting}
        return sum(self._sizes.values()) * self._rows / self._bytes if self._bytes else 0.0

    def _size(self, name: str) -> int:
        """As it was when it was seen first; 0 for a file that went before."""
        try:
            return self._sizes.get(name) or (self._folder / name).stat().st_size
        except OSError:
            return 0

    def _look(self) -> None:
        """What is new in the log; every tenth entry repeats all that were before it."""
        for path in self._log.glob("[0-9]*"):
            if path.name in self._looked:
                continue
            self._looked.add(path.name)
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line) if line.startswith("{") else None
                if entry is not None and entry["batchId"] > self._counted:
                    name = unquote(entry["path"].rpartition("/")[2])
                    self._files.setdefault(entry["batchId"], set()).add(name)


def _jvm_of(spark: SparkSession) -> Any:
    return spark._jvm


@dataclass(frozen=True, slots=True)
class Places:
    """Where a job's sources can be asked: options of Kafka's client, `{"bootstrap.servers": "host:9092"}`."""

    kafka: Mapping[str, str] = field(default_factory=dict)


def find_waiting(
    spark: SparkSession, query: StreamingQuery, number: int, source: SourceReport, places: Places
) -> Waiting | None:
    """Who tells what waits in a query's source of this number; None if nobody does."""
    folder, topics = _FOLDER.match(source.name), _TOPICS.match(source.name)
    if topics and places.kafka:
        return KafkaOffsets(spark, topics[1], places.kafka)
    if folder and Path(folder[1]).is_dir():
        checkpoint = query._jsq.streamingQuery().resolvedCheckpointRoot().removeprefix("file:")
        return FolderOfFiles(Path(folder[1]), Path(checkpoint) / "sources" / str(number))
    return Told() if source.latest is not None else None
