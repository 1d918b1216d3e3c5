"""What the live plant makes of Spark's answers, without a cluster."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import BadInput
from penstock.live.control_options import Wanted
from penstock.live.executors import Executor, SlotTime
from penstock.live.lag_source import Places
from penstock.live.queue import QueryQueue
from penstock.live.watched_query import WatchedQuery
from penstock.models.capacity import About, Capacity, write_model
from penstock.models.throughput_curves import Linear
from tests.live.test_query_progress import KAFKA


def watched() -> WatchedQuery:
    no_spark, no_query = cast(SparkSession, None), cast(StreamingQuery, None)
    return WatchedQuery(no_spark, no_query, QueryQueue(0.0, 1.0, 1.0), Places())


def report(batch: int, **other: Any) -> dict[str, Any]:
    return {**KAFKA, "batchId": batch, **other}


def test_a_report_that_cannot_be_read_costs_itself_alone() -> None:
    query = watched()
    damaged = report(4)
    del damaged["durationMs"]
    told = [report(3), damaged, report(5)]
    assert [each.batch for each in query.read(told)] == [3, 5]
    assert "KeyError 'durationMs'" in query.wrong  # one tick without a decision
    assert [each.batch for each in query.read([*told, report(6)])] == [6]
    assert query.wrong == ""


@pytest.mark.parametrize("missing", ["batchId", "timestamp", "numInputRows"])
def test_while_the_newest_report_cannot_be_read_nothing_is_known(missing: str) -> None:
    query = watched()
    damaged = report(4)
    del damaged[missing]
    assert [each.batch for each in query.read([report(3), damaged])] == [3]
    assert f"KeyError '{missing}'" in query.wrong


def executor(task_s: float, active: int, slots: int = 1) -> dict[str, Executor]:
    return {"0": Executor(task_s, 0.0, slots, active, 0.0)}


def test_a_task_longer_than_a_tick_is_busy_in_every_tick() -> None:
    clock = iter([0.0, 10.0, 20.0, 30.0, 40.0])
    busy = SlotTime(lambda: next(clock))
    # A task of 25 s that begins at 5 s: Spark adds it when it ends, at 30 s.
    read = [
        busy(each)["0"] for each in (executor(7, 0), executor(7, 1), executor(7, 1), executor(32, 0), executor(32, 0))
    ]
    assert [later - earlier for earlier, later in pairwise(read)] == [10, 10, 5, 0]


def test_short_tasks_count_as_spark_tells_them() -> None:
    clock = iter([0.0, 10.0, 20.0, 30.0])
    busy = SlotTime(lambda: next(clock))
    read = [busy(executor(task_s, active, slots=2))["0"] for task_s, active in ((0, 1), (8, 2), (16, 0), (24, 1))]
    assert read == [0, 4, 8, 12]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (About(app="grep"), "is of app grep, the job's is wordcount"),
        (About(source="kafka"), "is of source kafka, the job's is files"),
        (About(cores=1.0), "is of cores 1.0, the job's is 0.25"),
        (About(partitions=8), "is of partitions 8, the job's is 10"),
    ],
)
def test_a_model_of_another_job_is_refused(about: About, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    write_model(Capacity(Linear(50.0), about=about), path)
    wanted = Wanted(model=path, app="wordcount", source="files", cores=0.25, partitions=10)
    with pytest.raises(BadInput, match=message):
        wanted.job("wordcount")


def test_a_model_of_the_same_job_and_one_that_does_not_say_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for about in (About(), About("wordcount", "files", cores=0.25, partitions=10)):
        write_model(Capacity(Linear(50.0), about=about), path)
        job = Wanted(model=path, app="wordcount", source="files", cores=0.25, partitions=10).job("wordcount", 2048.0)
        assert job.capacity.capacity(2) == 100.0
        assert (job.kinds[0].cores, job.kinds[0].memory_mb) == (0.25, 2048.0)
