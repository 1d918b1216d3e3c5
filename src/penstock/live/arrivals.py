"""How much of a source waits to be read: from Kafka's offsets or a folder of files; elsewhere nobody tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.core.errors import PlantError
from penstock.live.progress import SourceReport

_FOLDER = re.compile(r"FileStreamSource\[file:/*(/[^\]]*)\]")
_TOPICS = re.compile(r"KafkaV2\[Subscribe\[([^\]]*)\]\]")


class Waiting(Protocol):
    """Tells what waits in one source."""

    def after(self, last: SourceReport) -> float:
        """Events that are there and that the last batch has not read."""


class Told:
    """What the query's own report says: right when the batch began, and as old as that."""

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
    """Files that Spark's log of the source does not name yet, each with as many rows as those before had."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder, self._log = folder, log
        self._entries: set[str] = set()
        self._read: set[str] = set()
        self._rows = 0.0
        self._last: SourceReport | None = None

    def after(self, last: SourceReport) -> float:
        if last is not self._last:
            self._rows, self._last = self._rows + last.rows, last
        self._look()
        waiting = sum(path.name not in self._read and path.name[0] not in "._" for path in self._folder.iterdir())
        return waiting * self._rows / len(self._read) if self._read else 0.0

    def _look(self) -> None:
        """What is new in the log; every tenth entry repeats all that were before it."""
        new = [entry for entry in self._log.glob("[0-9]*") if entry.name not in self._entries]
        for entry in new:
            self._entries.add(entry.name)
            paths = re.findall(r'"path":"([^"]*)"', entry.read_text(encoding="utf-8"))
            self._read |= {path.rpartition("/")[2] for path in paths}


def _jvm_of(spark: SparkSession) -> Any:
    return spark._jvm


@dataclass(frozen=True, slots=True)
class Places:
    """Where a job's source can be asked: the options of Kafka's client, and the query's checkpoint for files."""

    kafka: Mapping[str, str] = field(default_factory=dict)
    checkpoint: Path | None = None


def find_waiting(spark: SparkSession, source: SourceReport, places: Places) -> Waiting | None:
    """Who tells what waits in a source; None if nobody does."""
    folder, topics = _FOLDER.match(source.name), _TOPICS.match(source.name)
    if topics and places.kafka:
        return KafkaOffsets(spark, topics[1], places.kafka)
    if folder and places.checkpoint and Path(folder[1]).is_dir():
        return FolderOfFiles(Path(folder[1]), places.checkpoint / "sources" / "0")
    return Told() if source.latest is not None else None
