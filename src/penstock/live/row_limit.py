"""How many rows a running query's next batch may read: changed without a restart. Spark's internals, in one file.

A micro-batch execution keeps the limit of each source in a map, `uniqueSources`, and asks it for every batch. Seen on
Spark 4.2: the next batch, or the one after, obeys; a call takes 1 to 8 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.live.query_plan import planned_sources

SETTER = "uniqueSources_$eq"
# Limits that differ by less are left as they are.
ALIKE = 0.02
LONGEST = (1 << 31) - 1
_KINDS = ("ReadAllAvailable", "ReadMaxRows", "ReadMaxFiles")
# A limit that a source does not know ends its query: a folder knows no rows, whatever it was started with.
_BY_FILES, _BY_ROWS = ("FileStreamSource",), ("KafkaMicroBatchStream", "KafkaSource")


class RowLimit:
    """The row limits of one query. A limit that its user set is never exceeded, and comes back with `restore`."""

    def __init__(self, spark: SparkSession, query: StreamingQuery) -> None:
        self._spark, self.query = spark, query
        self._run = ""
        self._given: dict[str, Any] = {}
        """The user's own limit of each source, as the run that is watched began."""
        self.rows: float | None = None
        """What is in force; None: what the user gave."""

    def set(self, rows: float, source: Callable[[str], tuple[float, float | None]]) -> None:
        """From the next batch on. `source` tells of each one which part of the rows it has, and how many a file holds:
        a folder is read by files."""
        if self._is_new_run() or self.rows is None or abs(rows - self.rows) > ALIKE * self.rows:
            self._put(lambda each, given: self._limit(each, given, rows, *source(str(each))))
            self.rows = rows

    def restore(self) -> None:
        """As the user gave it."""
        if self.rows is not None and not self._is_new_run():
            self._put(lambda _, given: given)
        self.rows = None

    def _is_new_run(self) -> bool:
        run = str(self.query.runId)
        if run == self._run:
            return False
        sources = dict(_sources(self.query))
        if sources:  # a query that begins has none yet
            self._run, self._given = run, {str(source): limit for source, limit in sources.items()}
        return True

    def _put(self, limit_of: Callable[[Any, Any], Any]) -> None:
        execution = _execution(self.query)
        limits = execution.uniqueSources()
        for source, _ in _sources(self.query):
            if (given := self._given.get(str(source))) is not None:
                limits = limits.updated(source, limit_of(source, given))
        getattr(execution, SETTER)(limits)

    def _limit(self, source: Any, given: Any, rows: float, part: float, rows_per_file: float | None) -> Any:
        kind, jvm = _kind(given), cast(Any, self._spark.sparkContext._jvm)
        made = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
        if _kind(source) in _BY_FILES:
            files = LONGEST if rows_per_file is None else max(1, math.floor(part * rows / max(1.0, rows_per_file)))
            return made.maxFiles(min(files, given.maxFiles() if kind == "ReadMaxFiles" else LONGEST))
        most = given.maxRows() if kind == "ReadMaxRows" else LONGEST
        return made.maxRows(max(1, min(round(part * rows), most)))


def why_not(query: StreamingQuery) -> str:
    """Why this query's row limit cannot be changed; empty if it can."""
    try:
        methods = {method.getName() for method in _execution(query).getClass().getMethods()}
        kinds = [each.kind for each in planned_sources(query)]
    except (AttributeError, Py4JError, TypeError):
        return "this Spark does not show it"
    if not {"uniqueSources", SETTER} <= methods:
        return "this Spark keeps it elsewhere"
    other = next((kind for kind in kinds if kind not in ("kafka", "FileSource")), None)
    if other is not None or not kinds:
        return f"a {other or 'source of this kind'} has none"
    for source, limit in _sources(query):
        if _kind(source) not in (*_BY_FILES, *_BY_ROWS):
            return f"a {_kind(source)} has none"
        if _kind(limit) not in _KINDS:
            return f"it was started with {_kind(limit)}"
    return ""


def _kind(each: Any) -> str:
    return str(each.getClass().getSimpleName())


def _sources(query: StreamingQuery) -> Iterator[tuple[Any, Any]]:
    limits = _execution(query).uniqueSources()
    keys = limits.keysIterator() if limits is not None else None
    while keys is not None and keys.hasNext():
        source = keys.next()
        yield source, limits.apply(source)


def _execution(query: StreamingQuery) -> Any:
    return query._jsq.streamingQuery()
