"""The executors of one Spark application: who they are, what they did, fewer of them. Spark's internals stay here."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from penstock.core.errors import WorldFailed

LOOK_S = 0.25


def task_seconds(spark: SparkSession) -> dict[str, float]:
    """Executors that live, and how long tasks ran on each so far."""
    listed = _context(spark).statusStore().executorList(True)
    summaries = [listed.apply(place) for place in range(listed.size())]
    return {each.id(): each.totalDuration() / 1e3 for each in summaries if each.id() != "driver"}


def wait_for(spark: SparkSession, executors: int, patience_s: float) -> None:
    """Return when there are as many executors as asked for, neither more nor fewer."""
    deadline = time.monotonic() + patience_s
    while (there := len(task_seconds(spark))) != executors:
        if time.monotonic() > deadline:
            raise WorldFailed(f"{there} executors after {patience_s:.0f} s instead of {executors}: are workers free?")
        time.sleep(LOOK_S)


def kill(spark: SparkSession, names: Iterable[str]) -> None:
    """End executors; Spark starts none in their place. Refused while dynamic allocation is on."""
    jvm: Any = spark._jvm
    wanted = jvm.java.util.ArrayList()
    for name in names:
        wanted.add(name)
    if wanted and not _context(spark).killExecutors(jvm.scala.jdk.javaapi.CollectionConverters.asScala(wanted).toSeq()):
        raise WorldFailed("Spark refuses to end executors: is dynamic allocation switched on?")


def _context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()
