"""What Spark says about a streaming query, as numbers. A report is a dict since Spark 4, so no JVM is needed here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.core.errors import PlantError


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source of a query at the end of a batch. Offsets are summed over topics and partitions."""

    name: str
    rows: float
    end: float | None
    """None where the source does not count events: files count batches."""
    latest: float | None
    """What there was to read when the batch began; None where the source does not tell."""
    entry: int | None = None
    """Of files: the number of the batch in Spark's log of this source."""

    @property
    def kind(self) -> str:
        """`KafkaV2[Subscribe[clicks]]` is of the kind KafkaV2."""
        return self.name.partition("[")[0]


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
            return cls(
                query=progress["id"],
                batch=progress["batchId"],
                begun_s=datetime.fromisoformat(progress["timestamp"]).timestamp(),
                execution_s=execution_s,
                fixed_s=max(0.0, execution_s - work_s),
                rows=float(progress["numInputRows"]),
                results=_results(progress.get("sink")),
                state_mb=sum(each.get("memoryUsedBytes", 0) for each in progress.get("stateOperators", ())) / 1e6,
                sources=tuple(_source(each) for each in progress["sources"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            name = progress.get("name") or progress.get("id") or "without a name"
            why = f"{type(error).__name__} {error}"
            raise PlantError(f"a progress report of query {name} cannot be read: {why}") from None


def _results(sink: Mapping[str, Any] | None) -> float | None:
    """Rows put out; Spark writes -1 where the sink does not tell."""
    rows = (sink or {}).get("numOutputRows", -1)
    return float(rows) if rows >= 0 else None


def _source(source: Mapping[str, Any]) -> SourceReport:
    return SourceReport(
        name=source["description"],
        rows=float(source["numInputRows"]),
        end=offset_sum(source["endOffset"]),
        latest=offset_sum(source.get("latestOffset")),
        entry=_entry(source["endOffset"]),
    )


def _entry(offset: object) -> int | None:
    value = json.loads(offset) if isinstance(offset, str) else offset
    return value.get("logOffset") if isinstance(value, Mapping) else None


def offset_sum(offset: object) -> float | None:
    """The offsets of all partitions of all topics, added up; None for what is not an offset by partition.

    >>> offset_sum('{"clicks": {"0": 5, "1": 7}}'), offset_sum('{"logOffset": 3}'), offset_sum("null")
    (12.0, None, None)
    """
    value = json.loads(offset) if isinstance(offset, str) else offset
    if not isinstance(value, Mapping) or not all(isinstance(each, Mapping) for each in value.values()):
        return None
    return float(sum(sum(partitions.values()) for partitions in value.values()))
