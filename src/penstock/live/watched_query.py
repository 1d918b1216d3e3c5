"""A streaming query under watch: its reports, each taken in once, and who tells what waits for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PlantError
from penstock.live.folder_lag import FolderOfFiles
from penstock.live.lag_source import LagSource, Places, find_lag, tells_lag
from penstock.live.query_plan import RunningBatch, logged_offsets, planned_sources, running_batch
from penstock.live.query_progress import Offsets, Report, SourceReport, has_read, offsets
from penstock.live.queue import QueryQueue
from penstock.live.row_limit import RowLimit


class WatchedQuery:
    """A query, its queue and who tells what waits for it."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, queue: QueryQueue, places: Places) -> None:
        self.query, self.queue = query, queue
        self.wrong = ""
        """Why its newest reports cannot be read; empty when they can. What is not known must not look like backlog."""
        self.has_ended = False
        """It does not run, and nothing came back in its place."""
        self.notes: list[str] = []
        """What a person should know, once."""
        self._spark, self._places = spark, places
        self.row_limit = RowLimit(spark, query)
        self._reads = [str(each) for each in planned_sources(query)] if query is not None else []
        self._forget()

    def _forget(self) -> None:
        """What was known of the query's own counting: another one begins from 0."""
        self._seen = -1
        """The last batch with rows that was taken in, or could not be read."""
        self._mark: tuple[int | None, str | None] | None = None
        self._lags: dict[int, LagSource | None] = {}
        """By the number of the source: two may have one description."""
        self._silent: set[int] = set()
        """Sources that did not tell what waits, when they were asked last."""
        self._read_to: dict[int, Offsets] = {}
        """Where the sources stood at the end of the last batch that was seen."""
        self._after: int | None = None
        self._is_new = False

    def go_on(self, batch: int | None) -> None:
        """An earlier controller has counted up to this batch: what was read since is in the query's own log."""
        self._after = batch

    @property
    def name(self) -> str:
        return str(self.query.name or self.query.id)

    @property
    def unknown_backlog(self) -> list[str]:
        """Sources that do not tell what waits."""
        sources = self.queue.last.sources if self.queue.last and not self._is_new else ()
        return [source.shown for number, source in enumerate(sources) if number in self._silent]

    @property
    def told_by(self) -> tuple[list[str], list[str]]:
        """By the plan alone: what tells how much waits in it, and what does not."""
        planned = planned_sources(self.query)
        known = [str(each) for each in planned if tells_lag(each)]
        return known, [str(each) for each in planned if not tells_lag(each)] or ([] if planned else [self.name])

    def follow(self, now_s: float, lost_s: float = 0.0) -> list[Report]:
        """Take in what is new, and return it; `lost_s` is when an executor was last seen to have gone."""
        reports = [self._once(report) if report.begun_s <= lost_s else report for report in self._news()]
        for report in reports:
            for number, source in enumerate(report.sources):
                if (lag := self._lag(number, source)) is not None:
                    lag.note(source)
        if self.has_ended:
            self.queue.advance(now_s, reports, lambda _: 0.0)
        else:
            self.queue.advance(now_s, reports, self._behind, self._is_busy())
        return reports

    def _once(self, report: Report) -> Report:
        """Of files, rows of a stage that ran again count once; offsets count no row twice."""
        sources = []
        for number, source in enumerate(report.sources):
            lag = self._lag(number, source)
            sources.append(replace(source, rows=lag.rows(source)) if isinstance(lag, FolderOfFiles) else source)
        return replace(report, sources=tuple(sources), rows=sum(source.rows for source in sources) or report.rows)

    def limit_rows(self, rows: float) -> None:
        """From the next batch on, it reads no more."""
        last = self.queue.last
        sources = {source.name: (number, source) for number, source in enumerate(last.sources)} if last else {}

        def known(name: str) -> tuple[float, float | None]:
            if name not in sources or last is None:
                return 1.0, None
            number, source = sources[name]
            lag = self._lags.get(number)
            part = source.rows / last.rows if last.rows and len(sources) > 1 else 1.0
            return part, lag.rows_per_file if isinstance(lag, FolderOfFiles) else None

        self.row_limit.set(rows, known)

    def running_batch(self) -> tuple[RunningBatch, float | None] | None:
        """The batch in work, if there is one, and its rows where its offsets tell them."""
        batch = running_batch(self.query)
        if batch is None or batch.number <= self._seen:
            return None
        spans = [(offsets(name, begin), offsets(name, end)) for name, begin, end in batch.offsets]
        is_counted = all(begins and ends for begins, ends in spans)
        rows = sum(at - begins.get(place, 0) for begins, ends in spans for place, at in ends.items())
        return batch, float(rows) if is_counted else None

    def look_for(self, active: Collection[StreamingQuery], others: Collection[str]) -> None:
        """A query that was started again is the same to us, also under a new id; `others` are watched already."""
        if self.query.isActive:
            self.has_ended = False
            return
        same = next((each for each in active if each.id == self.query.id), None)
        free = [each for each in active if each.id not in others]
        if same is None and (again := next(filter(self._is_like, free), None)) is not None:
            self.notes.append(f"query {self.name} came back as {again.id}, with another checkpoint: it is watched")
            self._forget()
            self._is_new, same = True, again
        if same is not None:
            self.query, self.has_ended = same, False
            self.row_limit.query = same
        elif (failure := self.query.exception()) is not None:
            raise PlantError(f"query {self.name} has failed: {str(failure).splitlines()[0][:200]}")
        elif not self.has_ended:
            self.has_ended = True
            self.notes.append(f"query {self.name} has ended")

    def _is_like(self, other: StreamingQuery) -> bool:
        """The same name; of those without one, the same sources."""
        if self.query.name or other.name:
            return bool(self.query.name == other.name)
        return bool(self._reads) and [str(each) for each in planned_sources(other)] == self._reads

    def _is_busy(self) -> bool:
        status = self.query.status
        return bool(status["isTriggerActive"] and status["isDataAvailable"])

    def _news(self) -> list[Report]:
        """Batches that ended since the last look; of those before the first look, the last alone.

        An idle trigger reports, too, and counts at the beginning alone, where it says that there is nothing to read.
        """
        last = self.query.lastProgress
        if last is None or (mark := (last.get("batchId"), last.get("timestamp"))) == self._mark:
            return []
        self._mark = mark
        if self.queue.last is None:
            return self.read([last])
        *older, last = self.query.recentProgress
        told = [each for each in older if "batchId" in each] + [last]
        return self.read([each for each in told if has_read(each)])

    def read(self, told: Iterable[Mapping[str, Any]]) -> list[Report]:
        """Those that are new. One that cannot be read is left out for good; the others count."""
        reports, self.wrong = [], ""
        for progress in told:
            batch = progress.get("batchId", self._seen)
            if "batchId" in progress and batch <= self._seen:
                continue
            try:
                reports.append(self._counted(Report.of(progress)))
            except PlantError as error:
                self.wrong = str(error)
            # An idle trigger has the number of the batch to come: those before it have ended.
            self._seen = batch if has_read(progress) else max(self._seen, batch - 1)
        return reports

    def _counted(self, report: Report) -> Report:
        """With the rows of batches whose reports nobody saw: what lies between the last place seen and its begin."""
        unseen = 0
        for number, source in enumerate(report.sources):
            before = self._read_to.get(number) or self._logged(source)
            unseen += sum(max(0, at - before.get(place, at)) for place, at in source.begins.items())
            self._read_to[number] = source.ends
        self._after, self._is_new = None, False
        return replace(report, unseen=float(unseen)) if unseen else report

    def _logged(self, source: SourceReport) -> Offsets:
        """Where an earlier controller saw a source last, by the checkpoint."""
        if self._after is None or not source.begins:
            return {}
        told = (offsets(source.name, each) for each in logged_offsets(self.query, self._after))
        return next((each for each in told if {*each} <= {*source.begins} and each), {})

    def _behind(self, report: Report) -> float | None:
        """What waits in all its sources; None if one does not tell, or the report is of the query that was before."""
        if self._is_new:
            return None
        lags = [(self._lag(number, source), source) for number, source in enumerate(report.sources)]
        waits = [None if lag is None else lag.after(source) for lag, source in lags]
        self._silent = {number for number, each in enumerate(waits) if each is None}
        return None if self._silent else sum(each for each in waits if each is not None)

    def _lag(self, number: int, source: SourceReport) -> LagSource | None:
        if number not in self._lags:
            self._lags[number] = find_lag(self._spark, self.query, number, source, self._places)
        return self._lags[number]
