"""What becomes of a query whose switch goes wrong: it runs again, or the job says that it failed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PlantError
from penstock.live import alternate_switch
from penstock.live.alternate_switch import AlternateRefused, AlternateSwitch
from penstock.live.handover import Handover


class Started:
    """Queries as they are started; a name in `broken` cannot be, and raises what is given."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.broken: dict[str, Exception] = {}

    def __call__(self, name: str, _: Handover) -> StreamingQuery:
        if name in self.broken:
            raise self.broken[name]
        self.names.append(name)
        query = SimpleNamespace(isActive=True, recentProgress=[], exception=lambda: None)
        query.stop = lambda: setattr(query, "isActive", False)
        return cast(StreamingQuery, query)


@pytest.fixture
def started() -> Started:
    return Started()


@pytest.fixture
def switch(started: Started, tmp_path: Path) -> AlternateSwitch:
    return AlternateSwitch("count", {"a": "", "b": ""}, started, Handover(tmp_path / "checkpoint"))


def tend(switch: AlternateSwitch) -> None:
    switch.tend(lambda: True, lambda: None)


def running(switch: AlternateSwitch) -> Any:
    return switch.query


def test_what_failed_is_refused_and_not_what_was_asked_for_meanwhile(switch: AlternateSwitch) -> None:
    switch.ask("b")
    tend(switch)
    switch.ask("a")
    running(switch).isActive = False  # b's first batch fails
    tend(switch)
    assert (switch.active, list(switch.refused)) == ("a", ["b"])
    switch.ask("a")
    with pytest.raises(AlternateRefused, match="b was refused"):
        switch.ask("b")
    with pytest.raises(PlantError, match="no alternate 'c'"):
        switch.ask("c")


def test_whatever_hinders_a_switch_what_ran_runs_again(switch: AlternateSwitch, started: Started) -> None:
    started.broken["b"] = RuntimeError("what py4j makes of it")
    switch.ask("b")
    tend(switch)
    assert (switch.active, switch.isActive, started.names) == ("a", True, ["a", "a"])

    def look() -> None:
        raise OSError("a log that was removed meanwhile")

    started.broken.clear()
    switch.refused.clear()
    switch.ask("b")
    switch.tend(lambda: True, look)
    assert (switch.active, switch.query.isActive, "removed" in switch.refused["b"]) == ("a", True, True)


def test_what_cannot_be_started_again_is_tried_again_and_then_the_job_has_failed(
    switch: AlternateSwitch, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr("penstock.live.alternate_switch.time.monotonic", lambda: now_s[0])
    started.broken = {"a": RuntimeError("no room"), "b": RuntimeError("no room")}
    switch.ask("b")
    tend(switch)
    assert (switch.isActive, switch.exception()) == (True, None)  # down, and on its way up
    del started.broken["a"]
    switch.mend()
    assert started.names == ["a"]  # not yet: two seconds have not passed
    now_s[0] += 3.0
    switch.mend()
    assert (started.names, bool(switch.query.isActive)) == (["a", "a"], True)

    started.broken["a"] = RuntimeError("no room")
    switch.refused.clear()
    switch.ask("b")
    tend(switch)
    for _ in range(alternate_switch.STARTS_MOST):
        now_s[0] += 100.0
        switch.mend()
    assert (switch.isActive, switch.exception()) == (False, "alternate a cannot be started again: no room")


def test_a_trial_that_has_committed_a_batch_stands_whatever_comes_after(switch: AlternateSwitch) -> None:
    switch.ask("b")
    tend(switch)
    query = running(switch)
    query.recentProgress, query.isActive = [{"durationMs": {"addBatch": 5}}], False
    switch._place.root.mkdir()
    switch.settle()
    assert Handover.found(switch._place.root).alternate == "b"
    switch.mend()
    assert (switch.active, switch.isActive, switch.refused) == ("b", False, {})


def test_a_switch_that_begins_while_it_is_asked_does_not_end_the_job(switch: AlternateSwitch) -> None:
    class Query:
        """Whoever asks it just when a switch has ended it."""

        @property
        def isActive(self) -> bool:
            switch.query = cast(StreamingQuery, SimpleNamespace(isActive=True))
            return False

    switch.query = cast(StreamingQuery, Query())
    assert switch.isActive
