"""A streaming query under watch: its reports, each taken in once, and who tells what waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PlantError
from penstock.live.arrivals import Places, Waiting, find_waiting
from penstock.live.progress import Report, SourceReport
from penstock.live.queue import QueryQueue


class Watched:
    """A query, its queue and who tells what waits for it."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, queue: QueryQueue, places: Places) -> None:
        self.query, self.queue = query, queue
        self.wrong = ""
        """Why its newest reports cannot be read; empty when they can. What is not known must not look like backlog."""
        self._spark, self._places = spark, places
        self._seen = -1
        """The last batch with rows that was taken in, or could not be read."""
        self._mark: tuple[int | None, str | None] | None = None
        self._waiting: dict[int, Waiting | None] = {}
        """By the number of the source: two may have one description."""

    @property
    def unknown_backlog(self) -> list[str]:
        """Sources that do not tell what waits."""
        sources = self.queue.last.sources if self.queue.last else ()
        return [source.name for number, source in enumerate(sources) if self._waiting.get(number, ...) is None]

    def follow(self, now_s: float) -> list[Report]:
        """Take in what is new, and return it."""
        if not self.query.isActive:
            self._find_again()
        reports = self._news()
        for report in reports:
            for number, source in enumerate(report.sources):
                if (teller := self._teller(number, source)) is not None:
                    teller.note(source)
        self.queue.advance(now_s, reports, self._behind)
        return reports

    def _find_again(self) -> None:
        """A query that was started again is the same to us; one that was stopped is idle."""
        again = [query for query in self._spark.streams.active if query.id == self.query.id]
        if again:
            self.query = again[0]
        elif (failure := self.query.exception()) is not None:
            name = self.query.name or self.query.id
            raise PlantError(f"query {name} has failed: {str(failure).splitlines()[0][:200]}")

    def _news(self) -> list[Report]:
        """Batches that ended since the last look; of those before the first look, the last alone.

        An idle trigger reports, too: 0 rows under the number of the batch to come. It counts as seen only at the
        beginning, where it says that there is nothing to read.
        """
        last = self.query.lastProgress
        if last is None or (mark := (last.get("batchId"), last.get("timestamp"))) == self._mark:
            return []
        self._mark = mark
        if self.queue.last is None:
            return self.read([last])
        *older, last = self.query.recentProgress
        told = [each for each in older if "batchId" in each] + [last]
        return self.read([each for each in told if each.get("numInputRows") != 0])

    def read(self, told: Iterable[Mapping[str, Any]]) -> list[Report]:
        """Those that are new. One that cannot be read is left out for good; the others count."""
        reports, self.wrong = [], ""
        for progress in told:
            batch = progress.get("batchId", self._seen)
            if "batchId" in progress and batch <= self._seen:
                continue
            try:
                reports.append(Report.of(progress))
            except PlantError as error:
                self.wrong = str(error)
            if progress.get("numInputRows") != 0:
                self._seen = batch
        return reports

    def _behind(self, report: Report) -> float:
        told = [self._teller(number, source) for number, source in enumerate(report.sources)]
        return sum(each.after(source) for each, source in zip(told, report.sources, strict=True) if each is not None)

    def _teller(self, number: int, source: SourceReport) -> Waiting | None:
        if number not in self._waiting:
            self._waiting[number] = find_waiting(self._spark, self.query, number, source, self._places)
        return self._waiting[number]
