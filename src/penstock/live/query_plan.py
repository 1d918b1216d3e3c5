"""What a running query's own plan tells: where it reads from, with which options, and how often. Spark's internals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PlantError


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source as the user asked for it."""

    kind: str
    """`kafka`, `rate`, `socket`, or `FileSource` for a folder."""
    options: Mapping[str, str] = field(repr=False)
    """Names in lower case; passwords may be among them."""

    def __str__(self) -> str:
        if self.kind == "kafka":
            topics = [self.options.get(each, "") for each in ("subscribe", "subscribepattern", "assign")]
            return f"topic {''.join(topics)} at {self.options.get('kafka.bootstrap.servers', '')}"
        where = self.options.get("path") or ":".join(filter(None, map(self.options.get, ("host", "port"))))
        return f"{'files in' if self.kind == 'FileSource' else self.kind} {where}".strip()


def planned_sources(query: StreamingQuery) -> list[PlannedSource]:
    """In the order in which the query's reports have them: a source that is read twice is one. Empty where Spark's
    plan is not to be had."""
    try:
        leaves = _execution(query).analyzedPlan().collectLeaves()
        distinct: list[Any] = []
        for leaf in map(leaves.apply, range(leaves.size())):
            if "StreamingRelation" in leaf.getClass().getSimpleName() and not any(map(leaf.equals, distinct)):
                distinct.append(leaf)
        return [_planned(leaf) for leaf in distinct]
    except (AttributeError, Py4JError, TypeError):
        return []


def trigger_s(query: StreamingQuery) -> float | None:
    """How often a batch is due; None for Spark's default, one batch after the other."""
    try:
        return _execution(query).trigger().intervalMs() / 1e3 or None
    except (AttributeError, Py4JError, TypeError):
        return None


def logged_offsets(query: StreamingQuery, batch: int) -> list[object]:
    """Where the sources stood at the end of a batch, as the checkpoint has it; empty where that is gone."""
    try:
        entry = _execution(query).offsetLog().get(batch)
        offsets = entry.get().offsets() if entry.isDefined() else None
        count = offsets.size() if offsets is not None else 0
        told = [offsets.apply(place) for place in range(count)] if offsets is not None else []
        return [json.loads(each.get().json()) for each in told if each.isDefined()]
    except (AttributeError, Py4JError, TypeError, ValueError):
        return []


def stream_of(query: StreamingQuery, source: str) -> Any:
    """The source of this description itself; None before the query has made it."""
    streams = _execution(query).uniqueSources().keysIterator()
    while streams.hasNext():
        stream = streams.next()
        if stream.toString() == source:
            return stream
    return None


def last_batch(query: StreamingQuery) -> int | None:
    """The number of the batch that was committed last: 2 ms, where the whole report takes 4."""
    last = query._jsq.lastProgress()
    return None if last is None else int(last.batchId())


def committed_offsets(query: StreamingQuery) -> str | None:
    """Where the only source of a query that has stopped stood after its last committed batch, as that source takes it;
    None before the first."""
    latest = _execution(query).commitLog().getLatestBatchId()
    if not latest.isDefined():
        return None
    logged = logged_offsets(query, int(latest.get()))
    if not logged:  # from the beginning, all would be counted again
        raise PlantError("the offsets of its last batch cannot be read")
    return json.dumps(logged[0])


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """The micro-batch that a query works on now."""

    number: int
    begun_s: float
    offsets: tuple[tuple[str, object, object], ...]
    """Of each source its name, and where it stood at the batch's begin and will stand at its end."""


def running_batch(query: StreamingQuery) -> RunningBatch | None:
    """None between two batches, and where Spark does not tell."""
    try:
        if not query.status["isTriggerActive"]:
            return None
        context = _execution(query).getLatestExecutionContext()
        if not context.isCurrentBatchConstructed():
            return None
        begins, ends = _by_source(context.startOffsets()), _by_source(context.endOffsets())
        spans = tuple((name, begins.get(name), end) for name, end in ends.items())
        return RunningBatch(int(context.batchId()), context.currentTriggerStartTimestamp() / 1e3, spans)
    except (AttributeError, Py4JError, TypeError, ValueError):
        return None


def _by_source(progress: Any) -> dict[str, object]:
    found, sources = {}, progress.keysIterator()
    while sources.hasNext():
        source = sources.next()
        found[str(source)] = json.loads(progress.apply(source).json())
    return found


def checkpoint(query: StreamingQuery) -> str:
    return str(_execution(query).resolvedCheckpointRoot())


def _planned(leaf: Any) -> PlannedSource:
    if leaf.getClass().getSimpleName() == "StreamingRelationV2":
        return PlannedSource(leaf.sourceName(), {name.lower(): str(each) for name, each in leaf.extraOptions().items()})
    options, given = leaf.dataSource().options(), {}
    names = options.keysIterator()
    while names.hasNext():
        name = names.next()
        given[name.lower()] = str(options.apply(name))
    return PlannedSource(leaf.sourceName().partition("[")[0], given)


def _execution(query: StreamingQuery) -> Any:
    return query._jsq.streamingQuery()
