"""A plant that is real: the executors of one Spark application are its workers, its queries the operators."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import PlantError
from penstock.core.job import Job
from penstock.core.loop import Step
from penstock.core.observation import Observation, WorkerTable
from penstock.live.alternate_switch import AlternateRefused, AlternateSwitch
from penstock.live.batch_size import BatchSizes
from penstock.live.executors import Executor, SlotTime, decommission, executors, kill, request
from penstock.live.lag_source import Places
from penstock.live.plant_notes import PlantNotes
from penstock.live.queries import Queries
from penstock.live.slots import Slots

# A batch that does not end: after this long an executor is drained instead.
BOUNDARY_S = 60.0

BusySeconds = Callable[[Mapping[str, Executor]], Mapping[str, float]]
"""For each executor, the time that it was busy with all it has: its increase over the time that passed is its load."""


@dataclass(frozen=True, slots=True)
class PlantOptions:
    """How a plant is looked at and changed."""

    places: Places = field(default_factory=Places)
    busy: BusySeconds = field(default_factory=SlotTime)
    is_dry: bool = False
    sizes_batches: bool = False
    """May the rows of a batch be limited, and will its sources obey?"""
    switch: AlternateSwitch | None = None
    """Of a query that has several implementations."""


class SparkPlant:
    """Observes and resizes a running application; `tend` ends executors when no batch runs.

    Scaling uses Spark's own scheduler backend, so standalone, YARN and Kubernetes are alike to it (the last two are
    untested).
    """

    def __init__(self, spark: SparkSession, job: Job, ways: PlantOptions) -> None:
        self._spark = spark
        self._busy, self._is_dry = ways.busy, ways.is_dry
        self._switch = ways.switch if Knob.ALTERNATE in job.knobs else None
        self.knobs = frozenset({Knob.WORKERS}) | ({Knob.BATCH_SIZE} if ways.sizes_batches else frozenset())
        self.knobs |= {Knob.ALTERNATE} if self._switch else frozenset()
        self._sizes = BatchSizes()
        self.origin_s = self._last_s = time.time()
        self.queries = Queries(spark, job, ways.places)
        self._trigger_s = job.trigger_s or 0.0
        self._slots = Slots(Allocation.of(max(1, len(executors(spark)))))
        self._used: Mapping[str, float] = {}
        self._ending_since_s: float | None = None
        self._before: Step | None = None
        self._notes = PlantNotes()
        self._said: list[str] = []
        self._refusals: set[str] = set()
        self._drains = spark.sparkContext.getConf().get("spark.decommission.enabled", "false") == "true"

    def go_on(self, before: Step, origin_s: float) -> None:
        """Continue where an earlier controller of the same job stopped: its clock, its counters, its target."""
        self.origin_s, self._before = origin_s, before
        if not self._is_dry:
            self._slots = Slots(before.target)

    def watch(self, query: StreamingQuery) -> None:
        self.queries.watch(query, self._before, self.origin_s)

    def observe(self) -> Observation | None:
        """None until every query has ended its first batch; an idle query is a rate of 0."""
        now_s = time.time()
        try:
            there = executors(self._spark)
            news = self.queries.follow(now_s, there)
        except (Py4JError, PySparkException, OSError) as error:
            raise PlantError(
                f"Spark does not answer: {(str(error).splitlines() or ['no reason given'])[0][:200]}"
            ) from None
        if self.queries.awaited or not self.queries.queues:
            return None
        if not self._used and self._before is None:
            # A job that has just begun gets its executors one by one: all that came before the first look are its own.
            self._slots = Slots(Allocation.of(max(1, len(there))))
        look = self._slots.follow if self._is_dry else self._slots.settle
        look(sorted(there, key=_age), now_s - self.origin_s)
        self.queries.learn(news, there, self._switch.active if self._switch else "")
        if not self._used:
            # A load is the difference of two readings; the first alone would look like an idle job.
            self._used, self._last_s = self._busy(there), now_s
            return None
        return self._observation(now_s, there)

    def apply(self, target: Allocation) -> None:
        """Asked for at every tick: ending executors lowers what Spark asks the cluster for, and a lost one must come
        back. In a dry run nothing is asked for: what would have been is in the journal."""
        if self._is_dry:
            return
        if self._switch is not None:
            target = self._with_alternate(target, self._switch)
        self._request(len(target.workers))
        if target != self._slots.target:
            self._slots.retarget(target, time.time() - self.origin_s)

    def _with_alternate(self, target: Allocation, switch: AlternateSwitch) -> Allocation:
        """The target with its alternate; one that Spark has refused must not keep the workers from following."""
        try:
            switch.ask(target.alternate.get(switch.operator))
        except AlternateRefused as error:
            if str(error) not in self._refusals:
                self._refusals.add(str(error))
                self._said.append(str(error))
            return replace(target, alternate=switch.allocated)
        return target

    def tend(self) -> None:
        """Between two ticks, several times a second: row limits follow the workers, and what nobody wants is ended
        between two batches."""
        if self._is_dry:
            return
        if Knob.BATCH_SIZE in self.knobs:
            workers = len(self._slots.running.workers)
            self._sizes.follow(self.queries.watched, self._slots.target.batch, workers, time.time())
        self._end_unwanted()
        if self._switch is not None:
            self._switch.tend(self.queries.rest, lambda: self.queries.look_again(time.time()))

    def leave(self) -> None:
        """Nobody tends the job from now on: no row limit of ours stays."""
        if Knob.BATCH_SIZE in self.knobs and not self._is_dry:
            self._sizes.restore(self.queries.watched)

    def _end_unwanted(self) -> None:
        names = self._slots.to_end()
        if not names:
            self._ending_since_s = None
            return
        now_s = time.monotonic()
        self._ending_since_s = self._ending_since_s or now_s
        is_late = now_s - self._ending_since_s > BOUNDARY_S
        if not is_late and not self.queries.rest():
            return
        if is_late:
            how = "drained" if self._drains else "ended"
            self._said.append(
                f"{len(names)} executors were {how} within a batch: there was no gap for {BOUNDARY_S:g} s"
            )
        if is_late and self._drains:
            decommission(self._spark, names)
        else:
            kill(self._spark, names)
        self._slots.tell(names)
        self._request(len(self._slots.target.workers))

    def _request(self, total: int) -> None:
        try:
            request(self._spark, total)
        except Py4JError as error:
            raise PlantError(f"Spark does not take the request: {str(error).splitlines()[0][:200]}") from None

    @property
    def awaited(self) -> list[str]:
        """Queries that have not told anything yet."""
        return self.queries.awaited

    def take_notes(self) -> list[str]:
        """Since the last call: what became of the queries, what cannot be seen, executors that went by themselves."""
        notes = self._notes.take(self.queries.unknown_backlog, self._slots.lost, self._sizes.wrong)
        said, self._said = self._said, []
        switched = self._switch.take_notes() if self._switch else []
        return notes + said + switched + self.queries.take_notes()

    def _observation(self, now_s: float, there: Mapping[str, Executor]) -> Observation:
        queries, queues = self.queries, self.queries.queues
        span_s, self._last_s = now_s - self._last_s, now_s
        running = self._slots.running
        if self._switch is not None:
            running = replace(running, alternate=self._switch.allocated)
        arrived, processed = sum(each.arrived for each in queues), sum(each.processed for each in queues)
        return Observation(
            time_s=now_s - self.origin_s,
            span_s=span_s,
            arrived=arrived,
            processed=processed,
            delivered=processed,
            deliverable=arrived,
            input_rate=sum(each.input_rate for each in queues),
            backlog=queries.backlog,
            latency_s=queries.latency_s(now_s),
            capacity=queries.capacity(len(running.workers), running.alternate),
            running=running,
            target=self._slots.target,
            workers=self._workers(running, there, span_s),
            operators=queries.stats(now_s),
            paths=queries.take_responses(),
            batch=queues[0].batch(now_s, self._trigger_s),
            in_work=queries.in_work(self.origin_s, lambda at_s: self._ran_at(at_s, there)),
            pending=self._slots.pending,
            late_s=queries.take_late_s(now_s, span_s),
        )

    def _ran_at(self, at_s: float, there: Mapping[str, Executor]) -> int:
        """Of the workers that run now, those that ran then."""
        held = [self._slots.executor(worker.name) for worker in self._slots.running.workers]
        return sum(each in there and there[each].since_s - self.origin_s <= at_s for each in held if each)

    def _workers(self, running: Allocation, there: Mapping[str, Executor], span_s: float) -> WorkerTable:
        used, before = self._busy(there), self._used
        self._used = used
        names = tuple(worker.name for worker in running.workers)
        held = [self._slots.executor(name) or "" for name in names]
        read = {each: (used[each] - before[each]) / span_s for each in held if each in used and each in before}
        # A worker that was read once only is taken to be like the others: 0 would look idle.
        usual = sum(read.values()) / len(read) if read else 0.0
        memory = [there[each].memory_mb if each in there else 0.0 for each in held]
        since = [there[each].since_s - self.origin_s if each in there else 0.0 for each in held]
        asked = [self._slots.asked_s(name) for name in names]
        # An executor that stayed in a new slot is paid all the while.
        paid = [ran if at is None else min(at, ran) for at, ran in zip(asked, since, strict=True)]
        cpu = [max(0.0, read.get(each, usual)) for each in held]
        if isinstance(self._busy, SlotTime):  # a measured CPU is what it is
            cpu = [self.queries.load(each, len(names)) for each in cpu]
        return WorkerTable(names, {"cpu": cpu, "memory_mb": memory, "paid_since_s": paid, "runs_since_s": since})


def _age(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (1 << 30, name)
