"""`penstock.attach`: one line in a user's own PySpark job, and it scales itself."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput, PenstockError
from penstock.core.job import CapacityModel, Job, WorkerKind
from penstock.core.journal import Header
from penstock.core.loop import Faults, Policy, check_knobs, needs_lag
from penstock.core.objective import Limits, Objective, Price
from penstock.core.units import duration_s
from penstock.live.arrivals import Places
from penstock.live.controller import Controller, Parts, reminded
from penstock.live.doctor import examine
from penstock.live.executors import SlotTime, memory_mb
from penstock.live.learned import Learned
from penstock.live.metrics import Metrics, serve_metrics
from penstock.live.plant import BusySeconds, SparkPlant, Ways
from penstock.live.query_plan import trigger_s
from penstock.live.remote import recorder_at
from penstock.models.capacity import Capacity, read_model
from penstock.policies.guards import safety
from penstock.policies.naming import Named

log = logging.getLogger("penstock")
FAILURES_MAX = 5
_ATTACHED: dict[str, Controller] = {}  # by application: two controllers of one job would undo each other's work


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a job is to be controlled; durations as people write them."""

    policy: str = "filtered"
    limits: Limits = Limits(1, 2)
    tick: str = "15s"
    trigger: str | None = None
    objective: str = "latency<=120s"
    model: str | Path | None = None
    journal: str | Path | None = None
    metrics_port: int | None = None
    pause_file: str = ""
    safe_workers: int | None = None
    dry_run: bool = False
    cores: float | None = None
    """Of an executor, and below, what it runs and where rows come from; None where nobody knows."""
    app: str | None = None
    source: str | None = None
    partitions: int | None = None
    price: str = "0.10/h"
    places: Places = field(default_factory=Places)

    def job(self, name: str, memory_mb: float = 1024.0) -> Job:
        """What the policy is told; `memory_mb` is the heap of an executor."""
        model: CapacityModel = self._fitting(read_model(Path(self.model))) if self.model else Learned()
        return Job(
            name=name,
            dataflow=Dataflow((Operator(name, 0.0),)),
            capacity=model,
            limits=self.limits,
            tick_s=duration_s(self.tick, "tick"),
            kinds=(WorkerKind(cores=self.cores or 1.0, memory_mb=memory_mb),),
            objective=Objective.parse(self.objective),
            price=Price.parse(self.price, "second"),
            trigger_s=duration_s(self.trigger, "trigger") if self.trigger else None,
            workers_at_start=self.limits.workers_min or 1,
        )

    def _fitting(self, model: Capacity) -> Capacity:
        """A model of another app, source or kind of worker answers nothing."""
        for what in ("app", "source", "cores", "partitions"):
            measured, wanted = getattr(model.about, what), getattr(self, what)
            if None not in (measured, wanted) and measured != wanted:
                raise BadInput(f"the model {self.model} is of {what} {measured}, the job's is {wanted}: measure that")
        return model

    def policy_for(self, job: Job) -> Policy:
        """The policy with its safety rules."""
        given: dict[str, Any] = {"pause_file": self.pause_file} if self.pause_file else {}
        given |= {"safe_workers": self.safe_workers} if self.safe_workers is not None else {}
        named = Named.parse(self.policy)
        return replace(named, parameters={**named.parameters, **given}).build_safe(job)


def attach(
    spark: SparkSession, *queries: StreamingQuery, policy: str = "filtered", limits: tuple[int, int], **more: Any
) -> Controller | None:
    """Control the executors of a running job from now on; returns None, and says why, where that cannot be done.

    `limits` are the fewest and the most executors. More: tick, trigger, objective, model, journal, metrics_port,
    pause_file, safe_workers, dry_run, places (see `Wanted`). It never raises into the job.
    """
    try:
        return attached(spark, queries, Wanted(policy=policy, limits=Limits(*limits), **more))
    except PenstockError as error:
        log.error("not attached: %s", error)
    except Exception as error:
        log.error("not attached: %s: %s", type(error).__name__, error)
    return None


def attached(
    spark: SparkSession,
    queries: tuple[StreamingQuery, ...],
    wanted: Wanted,
    busy: BusySeconds | None = None,
    told: Any = lambda _: None,
) -> Controller:
    """The same for callers that want errors."""
    if not queries:
        raise BadInput("attach needs at least one streaming query: attach(spark, query, limits=(1, 8))")
    for finding in examine(spark, queries, wanted.limits.workers_max):
        if finding.is_fatal:
            raise BadInput(finding.says)
        log.warning("%s: %s", finding.what, finding.says)
    _need_alone(spark)
    need_room(spark, wanted.limits)
    controller = Controller(_parts(spark, queries, wanted, busy or SlotTime()), told)
    _ATTACHED[spark.sparkContext.applicationId] = controller
    controller.start()
    return controller


def _parts(spark: SparkSession, queries: tuple[StreamingQuery, ...], wanted: Wanted, busy: BusySeconds) -> Parts:
    job = wanted.job(queries[0].name or spark.sparkContext.appName or "job", memory_mb(spark))
    job = job if job.trigger_s else replace(job, trigger_s=trigger_s(queries[0]))
    policy = wanted.policy_for(job)
    plant = SparkPlant(spark, job, Ways(wanted.places, busy, wanted.dry_run))
    check_knobs(plant, policy)
    recorder = None
    if wanted.journal:
        header = Header(
            job=job.name,
            policy=wanted.policy,
            limits=job.limits,
            objective=job.objective,
            price=job.price,
            tick_s=job.tick_s,
            origin_s=plant.origin_s,
            parameters=dict(Named.parse(wanted.policy).parameters),
            facts=_facts(spark, wanted, job),
        )
        recorder = recorder_at(spark, wanted.journal, header, policy.memory_s)
        if recorder.past:
            plant.go_on(recorder.past[-1], recorder.header.origin_s or plant.origin_s)
            policy = reminded(policy, recorder.past)
            if isinstance(job.capacity, Learned):
                job.capacity.remember(recorder.past)
    for query in queries:
        plant.watch(query)
    _say_unknown(plant, policy, wanted)
    metrics = Metrics(job.name)
    server = serve_metrics(metrics, wanted.metrics_port) if wanted.metrics_port is not None else None
    return Parts(plant, policy, job, _faults(wanted, job), recorder, metrics, server, wanted.dry_run)


def _say_unknown(plant: SparkPlant, policy: Policy, wanted: Wanted) -> None:
    """In one line, which sources do not tell what waits in them; a policy that needs it is refused."""
    _, silent = plant.queries.told_by
    if not silent:
        return
    what = f"{', '.join(silent)}: nobody tells what waits there, so backlog and latency are unknown"
    if needs_lag(policy):
        raise BadInput(f"policy {wanted.policy} needs the backlog. {what}: take another policy, such as filtered")
    log.warning("%s; the policy goes by rates, batch durations and load", what)


def _facts(spark: SparkSession, wanted: Wanted, job: Job) -> dict[str, object]:
    """What a journal says of the job beyond its header: for a reader, and for `penstock calibrate`."""
    partitions = wanted.partitions or int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
    cores, model = job.kinds[0].cores, str(wanted.model or "learnt")
    told = {"trigger_s": job.trigger_s, "cores": cores, "partitions": partitions, "model": model}
    return {**told, "rules": safety(job)}  # a later version may have others, and must replay this run with its own


def _faults(wanted: Wanted, job: Job) -> Faults:
    """The same safe count and the same pause for a plant that is not seen as for a policy that fails."""
    given = Named.parse(wanted.policy).parameters
    safe = wanted.safe_workers if wanted.safe_workers is not None else given.get("safe_workers")
    pause = Path(wanted.pause_file or given.get("pause_file", ""))
    return Faults(
        failures_max=given.get("failures_max", FAILURES_MAX),
        safe_workers=None if safe is None else job.limits.clamp(safe),
        is_paused=lambda: pause.is_file(),
    )


def _need_alone(spark: SparkSession) -> None:
    other = _ATTACHED.get(spark.sparkContext.applicationId)
    if other is not None and other.is_running:
        raise BadInput("this job has a controller already: stop that one first")


def need_room(spark: SparkSession, limits: Limits) -> None:
    """Refuse limits that the application's own ceiling does not allow."""
    conf = spark.sparkContext.getConf()
    cores, most = int(conf.get("spark.executor.cores") or 1), conf.get("spark.cores.max")
    if most is not None and limits.workers_max * cores > int(most):
        wanted = f"{limits.workers_max} executors of {cores} cores"
        raise BadInput(f"the limits allow {wanted}, spark.cores.max is {most}: lower the limit or raise the setting")
