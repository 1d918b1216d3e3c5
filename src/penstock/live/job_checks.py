"""Configuration checks: one line for each thing that keeps a job from being scaled."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from penstock.apps.app import App
from penstock.core.errors import PenstockError
from penstock.live.cgroup import find_groups, works
from penstock.live.executors import task_seconds
from penstock.live.resources import hold, remove_cgroup
from penstock.live.sampler import called
from penstock.pipeline.java import need_java
from penstock.pipeline.session import session

HOT = 3.0  # times as many tasks' seconds as the middle executor


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `is_fatal`: the job cannot be scaled at all."""

    what: str
    says: str
    is_fatal: bool = False


CONNECT = Finding(
    "session", "Spark Connect and serverless sessions have no scheduler to ask for executors: run in the driver", True
)


def examine(
    spark: Any, queries: Sequence[StreamingQuery] = (), workers_max: int | None = None, is_dry: bool = False
) -> list[Finding]:
    """All that is wrong with a session and its queries; nothing wrong is an empty list."""
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jsc"):
        return [CONNECT]
    settings = dict(spark.sparkContext.getConf().getAll())
    found = [*examine_settings(spark.sparkContext.master or "", settings, is_dry)]
    found += [*_width(spark, queries, workers_max), *_hot(spark)]
    for query in queries:
        found += _trigger(query)
    return found


def examine_machine() -> list[Finding]:
    """What this machine lacks for a cluster of its own."""
    found = []
    try:
        need_java()
    except PenstockError as error:
        found.append(Finding("java", str(error), True))
    with hold("doctor") as holding:
        trials = [groups(f"penstock-{holding.mark}-doctor") for groups in find_groups()]
        usable = [trial for trial in trials if works(trial)]
        for trial in usable:
            for folder in trial.folders:
                remove_cgroup(folder)
    if not usable:
        says = "no right to make cgroups: workers of a cluster here use whole cores, whatever --cores says"
        found.append(Finding("cgroups", says))
    return found


def examine_app(app: App) -> list[Finding]:
    """Is it a streaming query that Spark would start? Tried here, on a folder in which nothing lies."""
    with tempfile.TemporaryDirectory(prefix="penstock-doctor-") as folder, session("local[1]", "doctor") as spark:
        rows = spark.readStream.format("text").load(folder).withColumn("timestamp", F.current_timestamp())
        try:
            result = called(app, rows)
            if not getattr(result, "isStreaming", False):
                return [Finding("app", f"{app.name} is not streaming: return a DataFrame made of the one given", True)]
            writer = result.writeStream.format("noop").outputMode(app.output_mode)
            writer.option("checkpointLocation", str(Path(folder) / "_checkpoint")).start().stop()
        except PenstockError as error:
            return [Finding("app", str(error), True)]
        except PySparkException as error:
            return [Finding("app", f"{app.name} cannot be started: {str(error).splitlines()[0][:300]}", True)]
    return []


def examine_trigger(trigger: str, name: str = "the job") -> list[Finding]:
    """By the name that Spark, or a person, gives it: ProcessingTimeTrigger, availableNow, 10 seconds."""
    word = trigger.lower().replace("-", "").replace("_", "")
    if word.startswith(("availablenow", "once", "onetime")):
        says = f"{name} ends by itself ({trigger}): size it beforehand with `penstock advise`"
        return [Finding("trigger", says, True)]
    if word.startswith(("realtime", "continuous")):
        says = f"{name} keeps one long task for each partition ({trigger}): its capacity is slots, not a rate"
        return [Finding("trigger", says, True)]
    return []


def examine_width(executors: int, slots: int, partitions: int) -> list[Finding]:
    """More slots than partitions of the state: some would have nothing to do."""
    if executors * slots <= partitions:
        return []
    says = f"{executors} executors x {slots} cores for {partitions} partitions: the rest would idle"
    return [Finding("partitions", f"{says} (the number of state partitions is frozen in the checkpoint)")]


def examine_settings(master: str, settings: Mapping[str, str], is_dry: bool = False) -> Iterator[Finding]:
    """What of a session's settings keeps its job from being scaled."""
    if master.startswith("local"):
        says = f"{master} has no executors to add or to end: use a cluster"
        yield Finding("master", says, True)
    if settings.get("spark.dynamicAllocation.enabled", "false") == "true":
        says = "dynamic allocation is on and would fight every decision: set spark.dynamicAllocation.enabled=false"
        watched = "dynamic allocation scales this job, and this dry run looks on"
        yield Finding("dynamic allocation", watched if is_dry else f"{says}, or look on with dry_run=True", not is_dry)
    if settings.get("spark.decommission.enabled", "false") != "true":
        says = "executors that leave in the middle of a long batch are killed: set spark.decommission.enabled=true"
        yield Finding("decommissioning", says)


def examine_room(workers_max: int, settings: Mapping[str, str]) -> Iterator[Finding]:
    """More executors than the application's own ceiling allows."""
    cores, most = int(settings.get("spark.executor.cores") or 1), settings.get("spark.cores.max")
    if most is not None and workers_max * cores > int(most):
        wanted = f"{workers_max} executors of {cores} cores"
        says = f"the limits allow {wanted}, spark.cores.max is {most}: lower the limit or raise the setting"
        yield Finding("limits", says, True)


def _width(spark: SparkSession, queries: Sequence[StreamingQuery], workers_max: int | None) -> Iterator[Finding]:
    slots = int(spark.sparkContext.getConf().get("spark.executor.cores", "1") or 1)
    executors = workers_max or len(task_seconds(spark))
    for query in queries:
        partitions = _state_partitions(query) or int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
        yield from examine_width(executors, slots, partitions)


def _state_partitions(query: StreamingQuery) -> int | None:
    last = query.lastProgress
    operators = last["stateOperators"] if last else []
    return next((int(each["numShufflePartitions"]) for each in operators if "numShufflePartitions" in each), None)


def _hot(spark: SparkSession) -> Iterator[Finding]:
    """One executor with far more task time than the others: a hot partition, which more executors do not cool."""
    busy = sorted(task_seconds(spark).values())
    if len(busy) > 2 and busy[len(busy) // 2] > 0 and busy[-1] > HOT * busy[len(busy) // 2]:
        says = f"one executor ran tasks for {busy[-1]:.0f} s, the middle one for {busy[len(busy) // 2]:.0f} s"
        yield Finding("hot partition", f"{says}: more executors will not help; spread the key")


def _trigger(query: StreamingQuery) -> list[Finding]:
    execution = query._jsq.streamingQuery() if hasattr(query._jsq, "streamingQuery") else None
    kind = execution.trigger().getClass().getSimpleName() if execution is not None else ""
    return examine_trigger(kind, f"query {query.name or query.id}")
