"""A plant that is real: the executors of one Spark application are its workers, its queries the operators."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import PlantError
from penstock.core.job import Job
from penstock.core.observation import Observation, WorkerTable
from penstock.live.arrivals import Places, Waiting, find_waiting
from penstock.live.executors import Executor, decommission, executors, kill, request
from penstock.live.learned import Learned
from penstock.live.progress import Report, SourceReport
from penstock.live.queue import QueryQueue
from penstock.live.slots import Slots

# A batch that overruns leaves no gap between batches: after this long an executor is drained instead.
BOUNDARY_S = 60.0

CpuSeconds = Callable[[Mapping[str, Executor]], Mapping[str, float]]


def slot_seconds(there: Mapping[str, Executor]) -> Mapping[str, float]:
    """How busy executors were where nobody measures their CPU: time that their slots had a task."""
    return {name: each.task_s / max(1, each.slots) for name, each in there.items()}


@dataclass(slots=True)
class _Watched:
    """A query, its queue and who tells what waits for it."""

    query: StreamingQuery
    queue: QueryQueue
    seen: int = -1
    waiting: dict[str, Waiting | None] = field(default_factory=dict)


class SparkPlant:
    """Observes and resizes a running application; `tend` ends executors when no batch runs.

    Scaling uses Spark's own scheduler backend, so standalone, YARN and Kubernetes are alike to it (the last two are
    untested).
    """

    knobs = frozenset({Knob.WORKERS})

    def __init__(self, spark: SparkSession, job: Job, places: Places = Places(), cpu: CpuSeconds = slot_seconds):  # noqa: B008
        self._spark, self._job, self._places, self._cpu = spark, job, places, cpu
        self.origin_s = self._last_s = time.time()
        self._watched: dict[str, _Watched] = {}
        self._slots = Slots(Allocation.of(max(1, len(executors(spark)))))
        self._used: Mapping[str, float] = {}
        self._ending_since_s: float | None = None
        self._before: Observation | None = None

    def go_on(self, before: Observation, origin_s: float) -> None:
        """Continue where an earlier controller of the same job stopped: its clock, its counters, its target."""
        self.origin_s, self._before = origin_s, before
        self._slots = Slots(before.target)
        request(self._spark, len(before.target.workers))

    def watch(self, query: StreamingQuery) -> None:
        window_s = max(self._job.tick_s, self._job.trigger_s or 0.0)
        queue = QueryQueue(time.time(), self._job.objective.latency_s or 1.0, window_s)
        if self._before is not None and not self._watched:
            queue.go_on(self._before.arrived, self._before.processed)
        self._watched[query.id] = _Watched(query, queue)

    def observe(self) -> Observation | None:
        """None until every query has ended its first batch; an idle query is a rate of 0."""
        now_s = time.time()
        try:
            for watched in self._watched.values():
                self._follow(watched, now_s)
            there = executors(self._spark)
        except (Py4JError, PySparkException, OSError) as error:
            raise PlantError(
                f"Spark does not answer: {(str(error).splitlines() or ['no reason given'])[0][:200]}"
            ) from None
        if not self._watched or any(watched.queue.last is None for watched in self._watched.values()):
            return None
        self._slots.settle(sorted(there, key=_age))
        return self._observation(now_s, there)

    def apply(self, target: Allocation) -> None:
        if target.workers != self._slots.target.workers:
            self._slots.retarget(target)
            try:
                request(self._spark, len(target.workers))
            except Py4JError as error:
                raise PlantError(f"Spark does not take the request: {str(error).splitlines()[0][:200]}") from None

    def tend(self) -> None:
        """End what nobody wants, between two batches; called several times a second."""
        names = self._slots.to_end()
        if not names:
            self._ending_since_s = None
            return
        now_s = time.monotonic()
        self._ending_since_s = self._ending_since_s or now_s
        if all(not watched.query.status["isTriggerActive"] for watched in self._watched.values()):
            kill(self._spark, names)
        elif now_s - self._ending_since_s > BOUNDARY_S:
            decommission(self._spark, names)
        else:
            return
        self._slots.tell(names)

    @property
    def lost(self) -> int:
        """Executors that went without being told to."""
        return self._slots.lost

    @property
    def unknown_backlog(self) -> list[str]:
        """Sources that do not tell what waits."""
        return [name for each in self._watched.values() for name, waiting in each.waiting.items() if waiting is None]

    def _follow(self, watched: _Watched, now_s: float) -> None:
        failure = watched.query.exception()
        if failure is not None:
            raise PlantError(
                f"query {watched.query.name or watched.query.id} has failed: {str(failure).splitlines()[0][:200]}"
            )
        reports = []
        last = watched.query.lastProgress
        if last is not None and last["batchId"] != watched.seen:
            fresh = [Report.of(each) for each in watched.query.recentProgress if each["batchId"] > watched.seen]
            reports = [report for report in fresh if report.rows or watched.queue.last is None]
            watched.seen = last["batchId"]
            self._learn(reports)
        watched.queue.advance(now_s, reports, lambda report: self._behind(watched, report))

    def _learn(self, reports: list[Report]) -> None:
        if isinstance(self._job.capacity, Learned):
            for report in reports:
                self._job.capacity.note(report, len(self._slots.running.workers))

    def _behind(self, watched: _Watched, report: Report) -> float:
        return sum(self._waits(watched, source) for source in report.sources)

    def _waits(self, watched: _Watched, source: SourceReport) -> float:
        if source.name not in watched.waiting:
            watched.waiting[source.name] = find_waiting(self._spark, source, self._places)
        waiting = watched.waiting[source.name]
        return waiting.after(source) if waiting else 0.0

    def _observation(self, now_s: float, there: Mapping[str, Executor]) -> Observation:
        queues = [watched.queue for watched in self._watched.values()]
        names = [watched.query.name or f"query {number}" for number, watched in enumerate(self._watched.values(), 1)]
        span_s, self._last_s = now_s - self._last_s, now_s
        running = self._slots.running
        arrived, processed = sum(each.arrived for each in queues), sum(each.processed for each in queues)
        return Observation(
            time_s=now_s - self.origin_s,
            span_s=span_s,
            arrived=arrived,
            processed=processed,
            delivered=processed,
            deliverable=arrived,
            input_rate=sum(each.input_rate for each in queues),
            backlog=sum(each.backlog for each in queues),
            latency_s=max(each.latency_s(now_s) for each in queues),
            capacity=self._capacity(len(running.workers), queues),
            running=running,
            target=self._slots.target,
            workers=self._workers(running, there, span_s),
            operators={name: queue.stats(now_s) for name, queue in zip(names, queues, strict=True)},
            paths={name: queue.take_responses() for name, queue in zip(names, queues, strict=True)},
            batch=queues[0].batch(now_s, self._job.trigger_s or 0.0),
        )

    def _capacity(self, workers: int, queues: list[QueryQueue]) -> float:
        """By the model; before one is learnt, as fast as the last batches were."""
        if (known := self._job.capacity.sustainable(workers, self._job.trigger_s)) > 0:
            return known
        lasts = [queue.last for queue in queues if queue.last and queue.last.execution_s]
        return sum(last.rows / last.execution_s for last in lasts)

    def _workers(self, running: Allocation, there: Mapping[str, Executor], span_s: float) -> WorkerTable:
        used, before = self._cpu(there), self._used
        self._used = used
        names = tuple(worker.name for worker in running.workers)
        held = [self._slots.executor(name) or "" for name in names]
        cores = self._job.kinds[0].cores
        cpu = [max(0.0, used.get(each, 0.0) - before.get(each, used.get(each, 0.0))) / span_s / cores for each in held]
        memory = [there[each].memory_mb if each in there else 0.0 for each in held]
        since = [there[each].since_s - self.origin_s if each in there else 0.0 for each in held]
        return WorkerTable(names, {"cpu": cpu, "memory_mb": memory, "paid_since_s": since})


def _age(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (1 << 30, name)
