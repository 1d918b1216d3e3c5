"""The watched queries of a job, as one: what they tell, when they rest, how much of their workers they need."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PlantError
from penstock.core.job import Job
from penstock.core.loop import Step
from penstock.core.observation import BatchInWork, OperatorStats
from penstock.core.responses import Responses
from penstock.live.executors import Executor
from penstock.live.lag_source import Places
from penstock.live.load import Line, batch_length_s, batch_load, bounded
from penstock.live.query_plan import last_batch
from penstock.live.query_progress import Report
from penstock.live.queue import QueryQueue
from penstock.live.watched_query import WatchedQuery
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.models.learned import Learned

# How long a call looks for the moment between two batches, and how often.
REST_S, LOOK_S = 0.1, 0.02
# A commit since the last look is of now: planning takes 0.1 to 0.3 s, so a task or two of the next batch is lost.
COMMIT_S = 1.0


class Queries:
    """Queries under watch. What is unknown of one of them is unknown of all together."""

    def __init__(self, spark: SparkSession, job: Job, places: Places) -> None:
        self._spark, self._job, self._places = spark, job, places
        self._watched: dict[str, WatchedQuery] = {}
        # The plant learns for its own gauges; what a policy knows it learns from what it is shown.
        self._learned = Learned()
        self._by_alternate: dict[str, Learned] = {"": self._learned}
        self._committed: tuple[int | None, float] = (None, 0.0)
        self._there: set[str] = set()
        self._lost_s = 0.0

    def watch(self, query: StreamingQuery, before: Step | None, origin_s: float) -> None:
        """From now on; each query goes on with the counters that an earlier controller kept of it."""
        window_s = max(self._job.tick_s, self._job.trigger_s or 0.0)
        queue = QueryQueue(time.time(), self._job.objective.latency_s or 1.0, window_s)
        watched = WatchedQuery(self._spark, query, queue, self._places)
        if before is not None:
            _go_on(watched, _name(query, len(self._watched) + 1), before, origin_s)
        self._watched[query.id] = watched

    def follow(self, now_s: float, there: Collection[str] = ()) -> dict[str, list[Report]]:
        """Batches that have ended since the last call, by query; `there` are the executors that live."""
        self._look_for_queries()
        self._lost_s, self._there = (now_s if self._there - {*there} else self._lost_s), {*there}
        news = {each: watched.follow(now_s, self._lost_s) for each, watched in self._watched.items()}
        if wrong := next((watched.wrong for watched in self._watched.values() if watched.wrong), ""):
            raise PlantError(wrong)
        return news

    def _look_for_queries(self) -> None:
        """Queries that were started again, perhaps under a new id. A job without a query is not an idle one."""
        if all(each.query.isActive for each in self._watched.values()):
            return
        active = self._spark.streams.active
        for watched in self._watched.values():
            watched.look_for(active, {each.query.id for each in self._watched.values()})
        if all(each.has_ended for each in self._watched.values()):
            names = ", ".join(each.name for each in self._watched.values())
            others = ", ".join(str(each.name or each.id) for each in active)
            beside = f"; not watched: {others} (attach to it)" if others else ""
            raise PlantError(f"every watched query has ended ({names}){beside}")

    def look_again(self, now_s: float) -> None:
        """Take in what a query has told until it was stopped: who starts in its place reports from its own begin on."""
        for watched in self._watched.values():
            watched.follow(now_s, self._lost_s)

    def learn(self, news: Mapping[str, list[Report]], there: Mapping[str, Executor], alternate: str = "") -> None:
        """Of each implementation by itself."""
        self._learned = self._by_alternate.setdefault(alternate, Learned())
        self._learned.mix({query: each.queue.input_rate for query, each in self._watched.items()})
        for query, reports in news.items():
            for report in reports:
                crew = [name for name, executor in there.items() if executor.since_s < report.ended_s]
                self._learned.note(query, report.rows, report.execution_s - report.fixed_s, report.fixed_s, crew)

    @property
    def watched(self) -> list[WatchedQuery]:
        return [*self._watched.values()]

    def in_work(self, origin_s: float, began: Callable[[float], int]) -> BatchInWork | None:
        """The batch in work that began first; `began` tells how many of today's workers ran at a time."""
        running = [found for each in self._watched.values() if not each.has_ended and (found := each.running_batch())]
        if not running:
            return None
        batch, rows = min(running, key=lambda one: one[0].begun_s)
        limit = next((each.row_limit.rows for each in self._watched.values()), None)
        return BatchInWork(batch.begun_s - origin_s, rows, began(batch.begun_s - origin_s), limit)

    @property
    def queues(self) -> list[QueryQueue]:
        return [each.queue for each in self._watched.values()]

    @property
    def awaited(self) -> list[str]:
        """Queries that have not told anything yet."""
        return [each.name for each in self._watched.values() if each.queue.last is None]

    @property
    def unknown_backlog(self) -> list[str]:
        """Sources that do not tell what waits."""
        return [name for each in self._watched.values() for name in each.unknown_backlog]

    @property
    def told_by(self) -> tuple[list[str], list[str]]:
        """By the plans alone: the sources that tell what waits in them, and those that do not."""
        told = [each.told_by for each in self._watched.values()]
        return [name for known, _ in told for name in known], [name for _, silent in told for name in silent]

    def take_notes(self) -> list[str]:
        """What became of the queries since the last call."""
        notes = [note for each in self._watched.values() for note in each.notes]
        for each in self._watched.values():
            each.notes.clear()
        return notes

    @property
    def backlog(self) -> float | None:
        return _all_known([each.backlog for each in self.queues], sum)

    def latency_s(self, now_s: float) -> float | None:
        return _all_known([each.latency_s(now_s) for each in self.queues], max)

    def stats(self, now_s: float) -> dict[str, OperatorStats]:
        trigger_s = self._job.trigger_s or 0.0
        return {name: queue.stats(now_s, trigger_s) for name, queue in zip(self._names, self.queues, strict=True)}

    def take_late_s(self, now_s: float, span_s: float) -> float | None:
        """Seconds of the interval in which some event was too old; None where nobody knows, or no age is too much."""
        late = [each.take_late_s(now_s) for each in self.queues]
        if self._job.objective.latency_s is None or (longest := _all_known(late, max)) is None:
            return None
        return min(longest, span_s)

    def take_responses(self) -> dict[str, Responses]:
        """Response times since the last call, of the queries of which they are known."""
        taken = {name: queue.take_responses() for name, queue in zip(self._names, self.queues, strict=True)}
        return {name: each for name, each in taken.items() if each is not None}

    @property
    def _names(self) -> list[str]:
        return [_name(each.query, number) for number, each in enumerate(self._watched.values(), 1)]

    @property
    def _is_learnt(self) -> bool:
        told = self._job.capacity
        return isinstance(told, Learned) or (isinstance(told, AlternateCapacity) and told.learns)

    def capacity(self, workers: int, alternate: Mapping[str, str] | None = None) -> float:
        """By the model; before one is learnt, as fast as the last batches were."""
        is_learnt, told, length_s = self._is_learnt, self._job.capacity, batch_length_s(self._job)
        if isinstance(told, AlternateCapacity) and not is_learnt:
            return told.sustainable_at(told.cost_of(alternate or {}), workers, length_s)
        known = (self._learned if is_learnt else told).sustainable(workers, length_s)
        if known > 0 and (not is_learnt or self._learned.is_known):
            return known
        lasts = [queue.last for queue in self.queues if queue.last and queue.last.execution_s]
        return sum(last.rows / last.execution_s for last in lasts)

    def load(self, slots: float, workers: int) -> float:
        """Of a worker whose slots had a task for this share of the time.

        Where batches follow each other at once they have one at any rate, so it is computed. Where a trigger is
        overrun, and nobody tells what waits, it is full.
        """
        pairs = [(each.queue, self._line(name)) for name, each in self._watched.items() if not each.has_ended]
        if not self._job.trigger_s:
            computed = batch_load(pairs, workers, self._job)
            lasts = [queue.last.execution_s for queue, _ in pairs if queue.last]
            part = max(lasts, default=0.0) / batch_length_s(self._job)
            return slots if computed is None else bounded(computed, slots, part)
        took_s = max((queue.last.execution_s for queue, _ in pairs if queue.last and not queue.knows_lag), default=0.0)
        return max(slots, 1.0) if took_s > self._job.trigger_s else slots

    def _line(self, query: str) -> Line:
        """What a query's rows take. A model that was told is of a job with one query."""
        is_told = len(self._watched) == 1 and not self._is_learnt
        return self._job.capacity if is_told else self._learned.line(query)

    def rest(self) -> bool:
        """Do all queries rest, or has the one with the longest batches just committed one? Looked at for a while:
        where batches follow each other at once, the moment between them is short."""
        until_s = time.monotonic() + REST_S
        running = [each for each in self._watched.values() if not each.has_ended]
        longest = max(running, key=lambda each: each.queue.last.execution_s if each.queue.last else 0.0, default=None)
        while longest is not None and any(each.query.status["isTriggerActive"] for each in running):
            before, looked_s = self._committed
            self._committed = (last_batch(longest.query), time.monotonic())
            if before not in (None, self._committed[0]) and self._committed[1] - looked_s < COMMIT_S:
                return True
            if time.monotonic() > until_s:
                return False
            time.sleep(LOOK_S)
        return True


def _name(query: StreamingQuery, number: int) -> str:
    return str(query.name or f"query {number}")


def _go_on(watched: WatchedQuery, name: str, before: Step, origin_s: float) -> None:
    """Counters that an earlier controller kept of this query; one that it did not know begins anew."""
    seen, own = before.seen, before.seen.operators.get(name)
    if own is None or own.arrived is None or own.processed is None:
        return
    oldest_s = None if own.latency_s is None else origin_s + seen.time_s - own.latency_s
    watched.queue.go_on(own.arrived, own.processed, oldest_s)
    watched.go_on(own.batch.number if own.batch else None)


def _all_known(values: list[float | None], whole: Callable[[list[float]], float]) -> float | None:
    known = [value for value in values if value is not None]
    return whole(known) if len(known) == len(values) else None
