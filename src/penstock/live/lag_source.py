"""How much of a source waits to be read: asked of the broker, the folder or the source itself; else it is unknown."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.live.folder_lag import FolderOfFiles, local_folder
from penstock.live.query_plan import PlannedSource, checkpoint, planned_sources, stream_of
from penstock.live.query_progress import SourceReport, offsets

# A broker that does not answer holds a tick for as long as its client waits: it is asked again after this.
AGAIN_S = 30.0
ANSWER_MS = 5000


class LagSource(Protocol):
    """Tells what waits in one source."""

    def note(self, ended: SourceReport) -> None:
        """A batch has ended."""

    def after(self, last: SourceReport) -> float | None:
        """Events that are there and that no batch has answered, None if that is unknown; `last` is the source at the
        end of the last batch."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a job's sources can be asked, where that is not what its own plan says: options of Kafka's client."""

    kafka: Mapping[str, str] = field(default_factory=dict)


class KafkaOffsets:
    """The end of each partition, asked of the broker now: a batch that takes a minute reports once a minute.

    The client is the connector's own, in the job's JVM: it takes every option that the query was given.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._jvm: Any = spark._jvm
        self._options = options
        self._client: Any = None
        self._wanted: tuple[frozenset[tuple[str, int]], Any] = (frozenset(), None)
        self._again_s = 0.0

    def note(self, ended: SourceReport) -> None:
        """Offsets tell all."""

    def after(self, last: SourceReport) -> float | None:
        if not last.ends or time.monotonic() < self._again_s:
            return None
        try:
            latest = self._latest(frozenset(last.ends))
        except (Py4JError, TypeError):  # TypeError: there is no such class in this JVM
            self._again_s = time.monotonic() + AGAIN_S
            return None
        return float(sum(max(0, at - last.ends[place]) for place, at in latest.items()))

    def _latest(self, places: frozenset[tuple[str, int]]) -> dict[tuple[str, int], int]:
        kafka = self._jvm.org.apache.kafka
        self._client = self._client or kafka.clients.admin.Admin.create(self._properties())
        if self._wanted[0] != places:
            wanted, latest = self._jvm.java.util.HashMap(), kafka.clients.admin.OffsetSpec.latest()
            for topic, number in places:
                wanted.put(kafka.common.TopicPartition(topic, number), latest)
            self._wanted = (places, wanted)
        level = self._options.get("isolation.level", "read_uncommitted").upper()
        isolation = kafka.clients.admin.ListOffsetsOptions(kafka.common.IsolationLevel.valueOf(level))
        ends = self._client.listOffsets(self._wanted[1], isolation).all().get()
        return {(place.topic(), place.partition()): end.offset() for place, end in ends.items()}

    def _properties(self) -> Any:
        """The query's own options as far as this client knows them: it would warn of each of the others."""
        known = set(self._jvm.org.apache.kafka.clients.admin.AdminClientConfig.configNames())
        patience = {"default.api.timeout.ms": f"{ANSWER_MS}", "request.timeout.ms": f"{ANSWER_MS - 1000}"}
        properties = self._jvm.java.util.Properties()
        for name, value in {**patience, **self._options}.items():
            if name in known:
                properties.setProperty(name, value)
        return properties


class StreamOffsets:
    """Asked of the source itself, where it lives in the driver and counts rows: a socket, `rate`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def note(self, ended: SourceReport) -> None:
        """Offsets tell all."""

    def after(self, last: SourceReport) -> float | None:
        try:
            latest = offsets(last.name, json.loads(self._stream.latestOffset().json()))
        except (Py4JError, ValueError):
            return None
        return max(0.0, sum(latest.values()) - last.end) if latest and last.end is not None else None


def find_lag(
    spark: SparkSession, query: StreamingQuery, number: int, source: SourceReport, places: Places
) -> LagSource | None:
    """Who tells what waits in a query's source of this number; None if nobody does."""
    planned = planned_sources(query)
    options = planned[number].options if number < len(planned) else {}
    if source.kind.startswith("Kafka"):
        given = places.kafka or kafka_options(options)
        return KafkaOffsets(spark, given) if given else None
    if (folder := local_folder(source.name, options)) is not None:
        log = Path(checkpoint(query).removeprefix("file:")) / "sources" / str(number)
        return FolderOfFiles(folder, log, options)
    stream = stream_of(query, source.name) if source.ends else None
    return StreamOffsets(stream) if stream is not None else None


def kafka_options(options: Mapping[str, str]) -> dict[str, str]:
    """What a query's options say to Kafka's own client.

    >>> kafka_options({"kafka.bootstrap.servers": "host:9092", "subscribe": "clicks"})
    {'bootstrap.servers': 'host:9092'}
    """
    return {name.removeprefix("kafka."): each for name, each in options.items() if name.startswith("kafka.")}


def tells_lag(planned: PlannedSource) -> bool:
    """Before the first batch, by the plan alone: will it be known what waits in this source?"""
    if planned.kind == "FileSource":
        return local_folder("", planned.options) is not None
    return planned.kind in ("kafka", "socket") or (planned.kind == "rate" and "rampuptime" not in planned.options)
