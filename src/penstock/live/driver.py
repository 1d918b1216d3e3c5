"""`penstock run`: the driver of a job, its source and its controller, until it is told to end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.apps.app import App, Variant
from penstock.core.errors import BadInput, ExternalError
from penstock.core.loop import Step
from penstock.live.alternate_switch import AlternateSwitch
from penstock.live.attach import attached
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.control_options import Wanted
from penstock.live.controller import Controller
from penstock.live.executors import SlotTime
from penstock.live.handover import Handover
from penstock.live.jars import kafka_jars
from penstock.live.kafka import KafkaSource
from penstock.live.lag_source import Places
from penstock.live.plant import BusySeconds
from penstock.live.sampler import called
from penstock.live.sinks import CHOICES, Sink
from penstock.pipeline.session import reach, session

log = logging.getLogger("penstock")
LOOK_S = 0.5
BOUNDARY_S = 120.0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to run, and where."""

    app: App
    wanted: Wanted
    folder: Path
    """Of files to read, where the source is files."""
    checkpoint: Path
    trigger_s: float = 10.0
    cores: float = 0.25
    memory_mb: int = 1024
    partitions: int = 10
    master: str | None = None
    kafka: KafkaSource | None = None
    sink: Sink = Sink("noop")
    output_mode: str | None = None
    """None: the app's own."""
    rows_max: int | None = None
    """Of a batch: maxOffsetsPerTrigger, or files for a folder."""
    seconds: float | None = None
    """End after so long; None runs until it is told to end."""

    @property
    def mode(self) -> str:
        return self.output_mode or self.app.output_mode

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The app's implementations that can be switched here, the first one first.

        One with a state of its own begins a new checkpoint at offsets that are named to it, and its batches count from
        0: a folder of files cannot be begun in the middle, and a sink that knows batches by number would drop them.
        """
        app = self.app
        first = app.variants[0] if app.variants else Variant(app.name, app.transform)
        can_part = self.kafka is not None and self.sink.kind in ("noop", "console", "kafka")
        return (first, *(each for each in app.variants[1:] if can_part or each.state == first.state))

    @property
    def slots(self) -> int:
        return max(1, -(-int(self.cores * 1000) // 1000))


def run_job(plan: RunPlan, told: Callable[[Step], None], ready: Callable[[Controller], None] = lambda _: None) -> None:
    """Run until Ctrl-C or the end of its time; then end at a batch boundary, with the checkpoint kept."""
    with _place(plan) as (spark, busy):
        log.info("starting %s: a batch every %g s, checkpoint %s", plan.app.name, plan.trigger_s, plan.checkpoint)
        switch = _switch(spark, plan)
        controller = None
        try:
            controller = attached(spark, (switch.query,), controlled(plan), busy, told, switch)
            ready(controller)
            _watch(switch, plan)
        finally:
            if controller is not None:
                controller.stop()
            _end(switch.query)
            switch.settle()


@contextlib.contextmanager
def _place(plan: RunPlan) -> Iterator[tuple[SparkSession, BusySeconds]]:
    most = plan.wanted.limits.workers_max
    with contextlib.ExitStack() as stack:
        cluster = None
        if plan.master is None:
            log.info("starting a Spark cluster on this machine: %d workers of %g cores", most, plan.cores)
            cluster = stack.enter_context(Cluster.start(ClusterSpec(most, plan.cores, plan.memory_mb)))
        else:
            reach(plan.master)
        settings = _settings(plan) | (cluster.settings if cluster else {})
        master = cluster.url if cluster else plan.master
        log.info("starting Spark's driver on %s", master)
        spark = stack.enter_context(session(master, f"penstock run {plan.app.name}", settings))
        yield spark, _gauge(cluster, spark)


def _gauge(cluster: Cluster | None, spark: SparkSession) -> BusySeconds:
    if cluster is None or not cluster.is_limited:
        return SlotTime()
    application = spark.sparkContext.applicationId

    def busy(_: object) -> dict[str, float]:
        return {name: used / cluster.spec.cores for name, used in cluster.cpu_of_executors(application).items()}

    return busy


def _settings(plan: RunPlan) -> dict[str, str]:
    settings = {
        "spark.cores.max": str(plan.wanted.limits.workers_max * plan.slots),
        "spark.executor.cores": str(plan.slots),
        "spark.executor.instances": str(max(1, plan.wanted.limits.workers_min)),
        "spark.executor.memory": f"{plan.memory_mb}m",
        "spark.sql.shuffle.partitions": str(plan.partitions),
        "spark.sql.adaptive.enabled": "false",
        "spark.dynamicAllocation.enabled": "false",
        "spark.decommission.enabled": "true",
        "spark.driver.memory": "1g",
    }
    return settings | ({"spark.jars": kafka_jars().spark_jars} if plan.kafka else {})


def _start(spark: SparkSession, plan: RunPlan, name: str, place: Handover) -> StreamingQuery:
    """One of the app's variants, in its checkpoint."""
    transform = next(each.transform for each in plan.variants if each.name == name)
    result: object = called(plan.app, _stream(spark, plan, place.offsets), transform)
    log.info("results%s go to %s", f" of {name}" if len(plan.variants) > 1 else "", plan.sink)
    if (plan.sink.kind == "app") != isinstance(result, (StreamingQuery, DataStreamWriter)):
        right = f"give --to {CHOICES}" if plan.sink.kind == "app" else "give --to app, and no other sink"
        raise BadInput(f"app {plan.app.name} returns a {type(result).__name__}: {right}")
    if isinstance(result, StreamingQuery):
        return result
    try:
        writer = _writer(result, plan).queryName(plan.app.name).option("checkpointLocation", str(place.checkpoint))
        return writer.trigger(processingTime=f"{plan.trigger_s:g} seconds").start()
    except PySparkException as error:
        raise BadInput(f"app {plan.app.name} cannot be started: {str(error).splitlines()[0][:300]}") from None


def _writer(result: object, plan: RunPlan) -> DataStreamWriter:
    if isinstance(result, DataStreamWriter):
        return result
    if not isinstance(result, DataFrame) or not result.isStreaming:
        raise BadInput(f"app {plan.app.name} is not streaming: return a DataFrame made of the one it was given")
    return plan.sink.writer(result, plan.kafka).outputMode(plan.mode)


def _stream(spark: SparkSession, plan: RunPlan, offsets: str | None) -> DataFrame:
    if plan.kafka is None:
        reader = spark.readStream.format("text")
        reader = reader.option("maxFilesPerTrigger", plan.rows_max) if plan.rows_max else reader
        return reader.load(str(plan.folder)).withColumn("timestamp", F.current_timestamp())
    options = {"startingOffsets": "earliest", **plan.kafka.reader_options()}
    if offsets:  # Spark takes times before offsets
        options = {key: value for key, value in options.items() if not key.lower().startswith("starting")}
        options["startingOffsets"] = offsets
    if plan.rows_max:
        options["maxOffsetsPerTrigger"] = str(plan.rows_max)
    stream = spark.readStream.format("kafka").options(**options).load()
    return stream.select(F.col("value").cast("string").alias("value"), "timestamp")


def controlled(plan: RunPlan) -> Wanted:
    """How the job is to be controlled, as the plan has it."""
    kafka = plan.kafka.client_options() if plan.kafka else {}
    names = [each.name for each in plan.variants]
    found = plan.app.operator(plan.app.name).alternates if len(names) > 1 else ()
    alternates = tuple(each for each in found if each.name in names)
    trigger = f"{plan.trigger_s:g}s"
    return replace(plan.wanted, trigger=trigger, cores=plan.cores, places=Places(kafka), alternates=alternates)


def _switch(spark: SparkSession, plan: RunPlan) -> AlternateSwitch:
    states = {each.name: each.state for each in plan.variants}
    for each in plan.app.variants:
        if each.name not in states:
            log.info(
                "alternate %s is left out: its state is another, which takes Kafka and --to noop or kafka", each.name
            )
    handover = Handover.found(plan.checkpoint)
    handover.need(states)
    return AlternateSwitch(plan.app.name, states, partial(_start, spark, plan), handover)


def _watch(query: StreamingQuery | AlternateSwitch, plan: RunPlan) -> None:
    deadline = time.monotonic() + (plan.seconds if plan.seconds is not None else float("inf"))
    while query.isActive and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        if isinstance(query, AlternateSwitch):
            query.mend()
    failure = query.exception()
    if failure is not None:
        raise ExternalError(f"app {plan.app.name} failed in Spark: {str(failure).splitlines()[0][:300]}")


def _end(query: StreamingQuery) -> None:
    """When a batch has just ended, so that no work is thrown away; one that does not end is left after two minutes.

    Whatever fails here, the job is over: it must not hide why it ended.
    """
    deadline = time.monotonic() + BOUNDARY_S
    with contextlib.suppress(Exception):
        batch = _last_batch(query)
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            if _last_batch(query) != batch:
                break
            time.sleep(0.05)
        query.stop()


def _last_batch(query: StreamingQuery) -> int | None:
    last = query.lastProgress
    return last["batchId"] if last else None
