"""The executors of one Spark application: who they are, what they did, fewer of them. Spark's internals stay here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.core.errors import ExternalError, PlantError

LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor that lives."""

    task_s: float
    """How long tasks ran on it so far, all slots together."""
    memory_mb: float
    """The most of its heap that it ever used."""
    slots: int
    active: int
    """Tasks that run on it now."""
    since_s: float
    """Unix time of its registration."""


def executors(spark: SparkSession) -> dict[str, Executor]:
    """The executors that live, by their ids. The list lags a start or an end by seconds."""
    listed = _context(spark).statusStore().executorList(True)
    summaries = [listed.apply(place) for place in range(listed.size())]
    return {each.id(): _executor(each) for each in summaries if each.id() != "driver"}


def _executor(summary: Any) -> Executor:
    peak = summary.peakMemoryMetrics()
    heap = peak.get().getMetricValue("JVMHeapMemory") / 1e6 if peak.isDefined() else 0.0
    since_s = summary.addTime().getTime() / 1e3
    return Executor(summary.totalDuration() / 1e3, heap, summary.totalCores(), summary.activeTasks(), since_s)


def task_seconds(spark: SparkSession) -> dict[str, float]:
    """How long tasks ran on each executor so far."""
    return {name: each.task_s for name, each in executors(spark).items()}


def memory_mb(spark: SparkSession) -> float:
    """The heap of one executor, as it was asked for."""
    return float(_context(spark).executorMemory())


class SlotTime:
    """How busy executors were where nobody measures their CPU: seconds in which their slots had a task.

    Spark adds a task's time when it ends. A batch that is longer than a tick would look idle, and then like two: a task
    that runs while none ends counts as it goes, and not again when it has ended.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._read: dict[str, tuple[float, float, float, float]] = {}

    def __call__(self, there: Mapping[str, Executor]) -> dict[str, float]:
        now_s, read = self._clock(), {}
        for name, each in there.items():
            slots = max(1, each.slots)
            told_s = each.task_s / slots
            busy_s, told_before_s, changed_s, at_s = self._read.get(name, (told_s, told_s, now_s, now_s))
            changed_s = changed_s if told_s == told_before_s else now_s
            running_s = min(1.0, each.active / slots) * (now_s - changed_s)
            busy_s = max(busy_s, min(told_s + running_s, busy_s + now_s - at_s))
            read[name] = (busy_s, told_s, changed_s, now_s)
        self._read = read
        return {name: busy_s for name, (busy_s, *_) in read.items()}


def request(spark: SparkSession, total: int) -> None:
    """Ask for so many executors in all. More are started as the cluster has room; none are ended."""
    nowhere = spark._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})  # type: ignore[union-attr]
    if not _context(spark).requestTotalExecutors(total, 0, nowhere):
        raise PlantError(f"Spark refuses to ask the cluster for {total} executors")


def decommission(spark: SparkSession, names: Iterable[str]) -> None:
    """Let executors finish what they run, and end; none are started in their place."""
    jvm: Any = spark._jvm
    info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("scaled in", jvm.scala.Option.empty())
    for name in names:
        _context(spark).schedulerBackend().decommissionExecutor(name, info, True, False)


def wait_for(spark: SparkSession, executors: int, patience_s: float) -> None:
    """Return when there are as many executors as asked for, neither more nor fewer."""
    deadline = time.monotonic() + patience_s
    while (there := len(task_seconds(spark))) != executors:
        if time.monotonic() > deadline:
            raise ExternalError(f"{there} executors after {patience_s:.0f} s instead of {executors}: are workers free?")
        time.sleep(LOOK_S)


def kill(spark: SparkSession, names: Iterable[str]) -> None:
    """End executors; Spark starts none in their place. Refused while dynamic allocation is on."""
    jvm: Any = spark._jvm
    wanted = jvm.java.util.ArrayList()
    for name in names:
        wanted.add(name)
    if wanted and not _context(spark).killExecutors(jvm.scala.jdk.javaapi.CollectionConverters.asScala(wanted).toSeq()):
        raise PlantError("Spark refuses to end executors: is dynamic allocation switched on?")


def _context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()
