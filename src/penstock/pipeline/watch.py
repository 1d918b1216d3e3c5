"""How far Spark is, seen from outside: tasks done of the stages that run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

LOOK_S = 0.25


@contextlib.contextmanager
def watched(spark: SparkSession, done: Callable[[float], None] | None) -> Iterator[None]:
    """Tell `done` the share of finished tasks, a few times a second, while the block runs."""
    if done is None:
        yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, done, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(timeout=2)


def _watch(spark: SparkSession, done: Callable[[float], None], over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(LOOK_S):
        with contextlib.suppress(Exception):  # the JVM may be gone a moment before we are told
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = sum(stage.numTasks for stage in stages if stage)
            if tasks:
                done(sum(stage.numCompletedTasks for stage in stages if stage) / tasks)
