"""Queries under watch, on reports as Spark gives them: those that nobody saw, those that come back, those that end."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import PlantError
from penstock.core.job import Job
from penstock.core.objective import Limits
from penstock.live.folder_lag import FolderOfFiles
from penstock.live.lag_source import Places
from penstock.live.queries import Queries
from penstock.live.query_progress import SourceReport
from penstock.live.queue import QueryQueue
from penstock.live.watched_query import WatchedQuery
from penstock.models.learned import Learned
from tests.live.test_query_progress import KAFKA


@dataclass(eq=False)
class Query:
    """What is asked of a StreamingQuery; the source tells nobody what waits in it."""

    id: str
    name: str | None = None
    isActive: bool = True  # noqa: N815  Spark's name
    recentProgress: list[dict[str, Any]] = field(default_factory=list)  # noqa: N815
    failure: str | None = None
    commits: list[int] = field(default_factory=list)
    """The batch that was committed last, at each look from now on; empty while it rests."""

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self.recentProgress[-1] if self.recentProgress else None

    @property
    def status(self) -> dict[str, object]:
        return {"isTriggerActive": bool(self.commits), "isDataAvailable": False}

    @property
    def _jsq(self) -> JavaQuery:
        return JavaQuery(self.commits)

    def exception(self) -> str | None:
        return self.failure


@dataclass
class JavaQuery:
    """The same, as the JVM has it."""

    commits: list[int]

    def lastProgress(self) -> JavaQuery:
        return self

    def batchId(self) -> int:
        return self.commits.pop(0) if len(self.commits) > 1 else self.commits[0]


@dataclass
class Session:
    active: list[Query] = field(default_factory=list)

    @property
    def streams(self) -> Session:
        return self


def read(batch: int, begin: int, end: int) -> dict[str, Any]:
    places = {"startOffset": json.dumps({"t": {"0": begin}}), "endOffset": json.dumps({"t": {"0": end}})}
    source = KAFKA["sources"][0] | places | {"latestOffset": places["endOffset"], "numInputRows": end - begin}
    return (
        KAFKA
        | {"batchId": batch, "timestamp": f"2026-11-15T14:00:{batch:02}Z", "sources": [source]}
        | {"numInputRows": end - begin}
    )


def watched(query: Query) -> WatchedQuery:
    queue = QueryQueue(0.0, 60.0, 10.0)
    return WatchedQuery(cast(SparkSession, None), cast(StreamingQuery, query), queue, Places())


def test_rows_of_batches_that_nobody_saw_are_counted() -> None:
    query = Query("a", recentProgress=[read(3, 100, 150)])
    under = watched(query)
    under.follow(time.time())
    assert under.queue.processed == 50
    # A hundred batches later the first of them are no longer told.
    query.recentProgress = [read(50, 1000, 1100), read(51, 1100, 1150)]
    first, second = under.follow(time.time())
    assert (first.rows, first.unseen, second.rows, second.unseen) == (100, 850, 50, 0)
    assert under.queue.processed == 1150 - 100
    assert under.queue.backlog is None  # nobody could be asked, and 0 would be a guess
    assert under.unknown_backlog == ["KafkaV2[Subscribe[clicks]]"]


def test_the_source_that_does_not_tell_is_named_and_no_other(tmp_path: Path) -> None:
    """A folder of whose files no batch has been seen tells nothing yet; the one before it does."""
    told = read(3, 100, 150)
    (tmp_path / "1.json").write_text("{}\n")
    folder = {"description": f"FileStreamSource[file:{tmp_path}]", "startOffset": None, "endOffset": '{"logOffset":0}'}
    query = Query("a", recentProgress=[told | {"sources": [*told["sources"], folder | {"numInputRows": 0}]}])
    under = watched(query)
    under._lags = {0: Tells(), 1: FolderOfFiles(tmp_path, tmp_path / "log")}
    under.follow(time.time())
    assert under.queue.backlog is None
    assert under.unknown_backlog == [f"FileStreamSource[file:{tmp_path}]"]


class Tells:
    """A source in which seven rows wait."""

    def note(self, ended: SourceReport) -> None:
        """Known anyway."""

    def after(self, last: SourceReport) -> float:
        return 7.0


def test_batches_from_before_the_first_look_do_not_count_though_that_saw_an_idle_trigger() -> None:
    past = [read(number, 100 * number, 100 * number + 100) for number in range(5)]
    idle = read(5, 500, 500) | {"timestamp": "2026-11-15T13:59:59Z"}
    query = Query("a", recentProgress=[*past, idle])
    under = watched(query)
    under.follow(time.time())
    query.recentProgress = [*past, read(5, 500, 530)]
    (report,) = under.follow(time.time())
    assert (report.batch, under.queue.processed, under.queue.arrived) == (5, 30, 30)


def queries(*watch: Query, session: Session) -> Queries:
    job = Job("job", Dataflow((Operator("job", 0.0),)), Learned(), Limits(1, 4), 5.0)
    made = Queries(cast(SparkSession, session), job, Places())
    for query in watch:
        made.watch(cast(StreamingQuery, query), None, 0.0)
    return made


def test_a_query_that_comes_back_under_a_new_id_goes_on() -> None:
    old = Query("a", "counts", recentProgress=[read(3, 0, 150)])
    session = Session([old])
    under = queries(old, session=session)
    under.follow(time.time())
    old.isActive = False
    other, new = Query("b", "others"), Query("c", "counts", recentProgress=[read(0, 0, 70), read(1, 70, 90)])
    session.active = [other, new]
    news = under.follow(time.time())
    assert [report.batch for report in news["a"]] == [0, 1]
    assert under.queues[0].processed == 150 + 90
    (note,) = under.take_notes()
    assert note == "query counts came back as c, with another checkpoint: it is watched"
    assert under.take_notes() == []


def test_a_job_whose_queries_have_all_ended_is_not_idle() -> None:
    one, two = Query("a", "one", recentProgress=[read(3, 0, 9)]), Query("b", "two", recentProgress=[read(1, 0, 9)])
    session = Session([one, two])
    under = queries(one, two, session=session)
    under.follow(time.time())
    one.isActive, session.active = False, [two]
    under.follow(time.time())  # the other one runs on
    assert under.take_notes() == ["query one has ended"]
    two.isActive, session.active = False, [Query("c", "three")]
    with pytest.raises(PlantError, match=r"^every watched query has ended \(one, two\); not watched: three"):
        under.follow(time.time())


def test_a_query_that_failed_says_why() -> None:
    query = Query("a", "counts", isActive=False, failure="no disk\nat line 1")
    with pytest.raises(PlantError, match=r"^query counts has failed: no disk$"):
        queries(query, session=Session()).follow(time.time())


def test_executors_may_go_at_a_commit_where_batches_follow_each_other_at_once() -> None:
    query = Query("a", "counts", recentProgress=[read(3, 0, 9)])
    under = queries(query, session=Session([query]))
    under.follow(time.time())
    assert under.rest()  # nothing runs
    query.commits = [3]
    assert not under.rest()  # in the middle of a batch
    query.commits = [3, 3, 4]
    assert any(under.rest() for _ in range(100))
    assert query.commits == [4]
    assert not under.rest()  # the next one is at work


def test_of_several_queries_the_one_with_the_longest_batches_says_when() -> None:
    short, long = Query("a", "short", recentProgress=[read(1, 0, 9)]), Query("b", "long")
    slow = read(7, 0, 9)
    long.recentProgress = [slow | {"durationMs": {"triggerExecution": 60_000}}]
    under = queries(short, long, session=Session([short, long]))
    under.follow(time.time())
    short.commits, long.commits = [1, 2, 3, 4, 5, 6], [7]
    assert not any(under.rest() for _ in range(3))
    assert len(short.commits) == 6  # nobody asked it
    long.commits = [7, 8]
    assert any(under.rest() for _ in range(100))
