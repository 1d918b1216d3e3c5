"""`penstock.attach`: one line in a user's own PySpark job, and it scales itself."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput, PenstockError
from penstock.core.job import Job
from penstock.core.loop import Faults, Policy, check_knobs, needs_lag
from penstock.core.objective import Limits
from penstock.core.units import show_duration
from penstock.live.alternate_switch import AlternateSwitch
from penstock.live.control_log import be_heard
from penstock.live.control_options import Wanted
from penstock.live.controller import Controller, ControllerParts
from penstock.live.executors import SlotTime, executors, memory_mb
from penstock.live.job_checks import examine, examine_room
from penstock.live.metrics import Metrics
from penstock.live.metrics_server import MetricsServer
from penstock.live.pause import Pause
from penstock.live.plant import BusySeconds, PlantOptions, SparkPlant
from penstock.live.policy_thread import built
from penstock.live.query_plan import trigger_s
from penstock.live.recorder import live_header
from penstock.live.remote import recorder_at
from penstock.live.restart import go_on
from penstock.live.row_limit import why_not
from penstock.policies.registry import Named

log = logging.getLogger("penstock")
FAILURES_MAX = 5
_ATTACHED: dict[str, Controller] = {}  # by application: two controllers of one job would undo each other's work


def attach(
    spark: SparkSession,
    *queries: StreamingQuery,
    policy: str = "deadline",
    limits: tuple[int, int] | None = None,
    **more: Any,
) -> Controller | None:
    """Control the executors of a running job from now on; returns None, and says why, where that cannot be done.

    `limits` are the fewest and the most executors, as in `limits=(1, 8)`. More: tick, trigger, objective,
    model, journal, metrics_port, pause_file, safe_workers, dry_run, places (see `Wanted`). It never raises.
    """
    be_heard()
    try:
        return attached(spark, queries, Wanted.given(limits, {"policy": policy, **more}))
    except PenstockError as error:
        log.error("not attached: %s", error)
    except (Exception, SystemExit) as error:
        log.error("not attached: %s: %s", type(error).__name__, error)
    return None


def attached(  # noqa: PLR0913  the last three are `penstock run`'s own
    spark: SparkSession,
    queries: tuple[StreamingQuery, ...],
    wanted: Wanted,
    busy: BusySeconds | None = None,
    told: Any = lambda _: None,
    switch: AlternateSwitch | None = None,
) -> Controller:
    """The same for callers that want errors."""
    _need_queries(queries)
    for finding in examine(spark, queries, wanted.limits.workers_max, wanted.dry_run):
        if finding.is_fatal:
            raise BadInput(finding.says)
        log.warning("%s: %s", finding.what, finding.says)
    _need_alone(spark)
    need_room(spark, wanted.limits)
    pause = Pause(built(wanted.policy, lambda: wanted.rules).get("pause_file", ""))
    parts, lag = _parts(spark, queries, wanted, (busy or SlotTime(), pause), switch)
    controller = Controller(parts, told)
    _ATTACHED[spark.sparkContext.applicationId] = controller
    controller.start()
    _say_attached(parts.job, wanted, len(executors(spark)), lag)
    if why := pause.listen():
        log.warning("SIGUSR1 does not pause this job (%s): use pause_file=…, or controller.pause()", why)
    return controller


def _need_queries(queries: tuple[Any, ...]) -> None:
    right = "attach(spark, query, limits=(1, 8)), where query is what start() returned"
    if not queries:
        raise BadInput(f"attach needs at least one streaming query: write {right}")
    for query in queries:
        if not hasattr(type(query), "lastProgress"):
            raise BadInput(f"a {type(query).__name__} is not a streaming query that runs: write {right}")


def _say_attached(job: Job, wanted: Wanted, there: int, lag: str) -> None:
    """One line that tells a person what is in force."""
    sizes = f"{there} executors, {job.limits.workers_min} … {job.limits.workers_max}"
    how = f"policy {wanted.policy}, objective {job.objective}, a decision every {show_duration(job.tick_s)}"
    log.info("attached: %s, %s, %s%s", sizes, how, lag, " (dry run)" if wanted.dry_run else "")


def _parts(
    spark: SparkSession,
    queries: tuple[StreamingQuery, ...],
    wanted: Wanted,
    how: tuple[BusySeconds, Pause],
    switch: AlternateSwitch | None,
) -> tuple[ControllerParts, str]:
    busy, pause = how
    job = wanted.job(queries[0].name or spark.sparkContext.appName or "job", memory_mb(spark))
    job = job if job.trigger_s else replace(job, trigger_s=trigger_s(queries[0]))
    sizes_batches = _sizes_batches(queries, wanted)
    job = replace(job, knobs=job.knobs | {Knob.BATCH_SIZE}) if sizes_batches else job
    policy, asked = wanted.asked_policy(job, pause)
    plant = SparkPlant(spark, job, PlantOptions(wanted.places, busy, wanted.dry_run, sizes_batches, switch))
    check_knobs(plant, policy)
    metrics, port, faults = Metrics(job.name), wanted.metrics_port, _faults(wanted, job, pause)
    with contextlib.ExitStack() as opened:  # what cannot be attached leaves no lock and no port taken
        server = opened.enter_context(MetricsServer(metrics, port)) if port is not None else None
        recorder = None
        if wanted.journal:
            header = live_header(job, wanted.policy, plant.origin_s, _facts(spark, wanted, job), wanted.rules)
            recorder = opened.enter_context(recorder_at(spark, wanted.journal, header, policy.memory_s))
            go_on(recorder, plant, policy, job.limits)
        for query in queries:
            plant.watch(query)
        _say_unknown(plant, policy, wanted)
        opened.pop_all()
    parts = ControllerParts(plant, policy, job, faults, recorder, metrics, server, wanted.dry_run, asked, pause)
    return parts, _lag_text(*plant.queries.told_by)


def _lag_text(told: list[str], silent: list[str]) -> str:
    beside = f" (unknown: {', '.join(silent)})" if told and silent else ""
    return f"lag from {', '.join(told)}{beside}" if told else "lag unknown"


def _sizes_batches(queries: tuple[StreamingQuery, ...], wanted: Wanted) -> bool:
    """Can the rows of every query's batches be limited? If not, a policy that would is told so, in one line."""
    why = next((f"{query.name or query.id}: {why}" for query in queries if (why := why_not(query))), "")
    if why and "batches" in getattr(Named.parse(wanted.policy).maker, "parts", ()):
        log.info("the row limit of batches stays as it is (%s)", why)
    return not why


def _say_unknown(plant: SparkPlant, policy: Policy, wanted: Wanted) -> None:
    """In one line, which sources do not tell what waits in them; a policy that needs it is refused."""
    _, silent = plant.queries.told_by
    if not silent:
        return
    what = f"{', '.join(silent)}: nobody tells what waits there, so backlog and latency are unknown"
    if needs_lag(policy):
        raise BadInput(f"policy {wanted.policy} needs the backlog. {what}: take another policy, such as deadline")
    log.warning("%s; the policy goes by rates, batch durations and load", what)


def _facts(spark: SparkSession, wanted: Wanted, job: Job) -> dict[str, object]:
    """What a journal says of the job beyond its header: for a reader, and for `penstock calibrate`."""
    partitions = wanted.partitions or int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
    cores, model = job.kinds[0].cores, str(wanted.model or "learnt")
    told: dict[str, object] = {"trigger_s": job.trigger_s, "cores": cores, "partitions": partitions, "model": model}
    return told


def _faults(wanted: Wanted, job: Job, pause: Pause) -> Faults:
    """The same safe count and the same pause for a plant that is not seen as for a policy that fails."""
    given = wanted.rules
    safe = given.get("safe_workers")
    return Faults(
        failures_max=given.get("failures_max", FAILURES_MAX),
        safe_workers=None if safe is None else job.limits.clamp(safe),
        is_paused=pause.is_on,
    )


def _need_alone(spark: SparkSession) -> None:
    other = _ATTACHED.get(spark.sparkContext.applicationId)
    if other is not None and other.is_running:
        raise BadInput("this job has a controller already: stop that one first")


def need_room(spark: SparkSession, limits: Limits) -> None:
    """Refuse limits that the application's own ceiling does not allow."""
    for finding in examine_room(limits.workers_max, dict(spark.sparkContext.getConf().getAll())):
        raise BadInput(finding.says)
