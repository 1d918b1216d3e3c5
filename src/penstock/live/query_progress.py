"""What Spark says about a streaming query, as numbers. A report is a dict since Spark 4, so no JVM is needed here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.core.errors import PlantError

_STEADY = re.compile(r"RateStreamV2\[rowsPerSecond=(\d+), rampUpTimeSeconds=0,")
Offsets = Mapping[tuple[str, int], int]
"""By topic and partition."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source of a query at the end of a batch. Offsets are summed over topics and partitions."""

    name: str
    rows: float
    """By the offsets, where they count events: Spark counts the rows of a stage that ran again once more."""
    end: float | None
    """None where the source does not count events: files count batches."""
    latest: float | None
    """What there was to read when the batch began; None where the source does not tell."""
    entry: int | None = None
    """Of files: the number of the batch in Spark's log of this source."""
    begins: Offsets = field(default_factory=dict)
    """Where the batch began to read; empty where the source has no offsets by partition."""
    ends: Offsets = field(default_factory=dict)
    """Where the batch stopped."""

    @property
    def kind(self) -> str:
        """`KafkaV2[Subscribe[clicks]]` is of the kind KafkaV2."""
        return self.name.partition("[")[0]

    @property
    def shown(self) -> str:
        """Its name for a person: Spark leaves out the bracket that would close that of `rate`."""
        return self.name + "]" * max(0, self.name.count("[") - self.name.count("]"))


@dataclass(frozen=True, slots=True)
class Report:
    """One micro-batch of one query that has ended."""

    query: str
    batch: int
    begun_s: float
    """Unix time."""
    execution_s: float
    fixed_s: float
    """Planning and the two log commits: what a batch takes beside its work."""
    rows: float
    results: float | None
    state_mb: float
    sources: tuple[SourceReport, ...]
    unseen: float = 0.0
    """Rows of batches before it whose reports nobody saw."""

    @property
    def ended_s(self) -> float:
        return self.begun_s + self.execution_s

    @classmethod
    def of(cls, progress: Mapping[str, Any]) -> Report:
        """From a StreamingQueryProgress; one that lacks what is needed is a failure of the plant, not of the job."""
        try:
            took = progress["durationMs"]
            execution_s = took["triggerExecution"] / 1e3
            work_s = took.get("addBatch", 0) / 1e3
            sources = tuple(_source(each) for each in progress["sources"])
            reported = float(progress["numInputRows"])
            return cls(
                query=progress["id"],
                batch=progress["batchId"],
                begun_s=datetime.fromisoformat(progress["timestamp"]).timestamp(),
                execution_s=execution_s,
                fixed_s=max(0.0, execution_s - work_s),
                rows=sum(source.rows for source in sources) if sources else reported,
                results=_results(progress.get("sink")),
                state_mb=sum(each.get("memoryUsedBytes", 0) for each in progress.get("stateOperators", ())) / 1e6,
                sources=sources,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            name = progress.get("name") or progress.get("id") or "without a name"
            why = f"{type(error).__name__} {error}"
            raise PlantError(f"a progress report of query {name} cannot be read: {why}") from None


def has_read(progress: Mapping[str, Any]) -> bool:
    """Did a batch read anything? An idle trigger reports, too. By the offsets: a foreachBatch that works on the batch
    in its own way is reported with 0 rows.

    >>> has_read({"numInputRows": 0, "sources": [{"startOffset": '{"t": {"0": 5}}', "endOffset": '{"t": {"0": 9}}'}]})
    True
    >>> has_read({"numInputRows": 0, "sources": [{"startOffset": "null", "endOffset": '{"t": {"0": 9}}'}]})
    False
    """
    if progress.get("numInputRows") != 0:
        return True
    places = [(each.get("startOffset"), each.get("endOffset")) for each in progress.get("sources", ())]
    return any(begin not in (None, "null", end) for begin, end in places)


def _results(sink: Mapping[str, Any] | None) -> float | None:
    """Rows put out; Spark writes -1 where the sink does not tell."""
    rows = (sink or {}).get("numOutputRows", -1)
    return float(rows) if rows >= 0 else None


def _source(source: Mapping[str, Any]) -> SourceReport:
    name, reported = source["description"], float(source["numInputRows"])
    begin, latest = _parsed(source.get("startOffset")), _parsed(source.get("latestOffset"))
    end = _parsed(source["endOffset"])
    begins, ends, latests = (offsets(name, each) for each in (begin, end, latest))
    return SourceReport(
        name=name,
        rows=rows_between(begins, ends, reported) if ends else reported,
        end=float(sum(ends.values())) if ends else None,
        latest=float(sum(latests.values())) if latests else None,
        entry=end.get("logOffset") if isinstance(end, Mapping) else None,
        begins=begins,
        ends=ends,
    )


def _parsed(offset: object) -> object:
    return json.loads(offset) if isinstance(offset, str) else offset


def offsets(source: str, offset: object) -> dict[tuple[str, int], int]:
    """The offsets of a source that counts events by them; else empty.

    Kafka counts by partition, a socket its rows from -1, `rate` its seconds.

    >>> offsets("KafkaV2[Subscribe[clicks]]", {"clicks": {"0": 5, "1": 7}}), offsets("FileStreamSource[in]", 3)
    ({('clicks', 0): 5, ('clicks', 1): 7}, {})
    >>> offsets("RateStreamV2[rowsPerSecond=10, rampUpTimeSeconds=0, numPartitions=default", 3)
    {('', 0): 30}
    """
    if source.startswith("Kafka") and isinstance(offset, Mapping):
        partitions = ((topic, each) for topic, each in offset.items())
        return {(topic, int(number)): int(at) for topic, each in partitions for number, at in each.items()}
    if not isinstance(offset, int):
        return {}
    if source.startswith("TextSocket"):
        return {("", 0): offset + 1}
    steady = _STEADY.match(source)
    return {("", 0): offset * int(steady[1])} if steady else {}


def rows_between(begins: Offsets, ends: Offsets, reported: float) -> float:
    """Rows from one place to another. A partition that is new has no begin: the report tells, up to its end.

    >>> rows_between({("a", 0): 5}, {("a", 0): 9, ("a", 1): 3}, reported=8.0)
    7.0
    """
    known = sum(end - begins[place] for place, end in ends.items() if place in begins)
    new = sum(end for place, end in ends.items() if place not in begins)
    return float(max(0, known) + min(new, max(0.0, reported - known)))
