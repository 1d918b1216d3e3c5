"""What the controller says by itself: scaling actions, what is new, a summary every ten minutes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.core.allocation import Allocation
from penstock.core.loop import Decision, Step
from penstock.core.observation import Observation
from penstock.live.control_log import ControlLog


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.LogCaptureFixture]:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)
    with caplog.at_level(logging.INFO, "penstock"):
        yield caplog


def step(minute: float, asked: int, wanted: int, reason: str = "load 50%") -> Step:
    target = Allocation.of(asked)
    seen = Observation(60 * minute, 60.0, 0, 0, 0, 0, 120.0, 30.0, 2.5, 0, target, target)
    return Step(seen, Decision(target.resized(wanted), reason), target.resized(wanted))


def test_each_scaling_action_is_a_line_and_a_reason_is_told_once_in_ten_minutes(
    heard: pytest.LogCaptureFixture,
) -> None:
    log = ControlLog()
    for made in (
        step(1, 2, 2, "load 51%"),
        step(2, 2, 2, "load 53%"),
        step(3, 2, 4, "load 90%"),
        step(4, 4, 2),
        step(5, 2, 4),
    ):
        log.note(made)
    assert heard.messages == [
        "keeping executors=2 reason=load 51%",
        "scaling executors=2->4 rate=120/s backlog=30 latency=2.5s reason=load 90%",
        "scaling executors=4->2 rate=120/s backlog=30 latency=2.5s reason=load 50%",
        "scaling executors=2->4 rate=120/s backlog=30 latency=2.5s reason=load 50%",
    ]


def test_every_ten_minutes_a_summary_says_what_went_on(heard: pytest.LogCaptureFixture) -> None:
    log = ControlLog()
    log.note(step(0, 2, 3))
    for minute in range(1, 21):
        log.note(step(minute, 3, 3))
    summaries = [line for line in heard.messages if line.startswith("summary")]
    now = "rate=120/s backlog=30 latency=2.5s"
    assert summaries == [
        f"summary of 10 min: executors=2…3 now=3 scaled_out=1 scaled_in=0 decisions=11 {now}",
        f"summary of 10 min: executors=3…3 now=3 scaled_out=0 scaled_in=0 decisions=10 {now}",
    ]


def test_a_backlog_that_nobody_knows_is_said_to_be_unknown(heard: pytest.LogCaptureFixture) -> None:
    made = step(1, 2, 3)
    ControlLog().note(replace(made, seen=replace(made.seen, backlog=None, latency_s=None)))
    assert "rate=120/s backlog=unknown latency=unknown" in heard.messages[0]


def test_a_dry_run_says_what_it_would_do_once(heard: pytest.LogCaptureFixture) -> None:
    log = ControlLog(is_dry=True)
    for minute in (1, 2, 3):
        log.note(step(minute, 2, 3, f"load 9{minute}%"))
    assert [line.split(" rate")[0] for line in heard.messages] == ["would scale executors=2->3"]


def test_what_is_wrong_is_said_once_until_something_else_is(heard: pytest.LogCaptureFixture) -> None:
    log = ControlLog()
    for words in ("Spark is gone", "Spark is gone", "no room", "Spark is gone"):
        log.wrong(words)
    assert len(heard.messages) == 3


def test_a_policy_that_never_says_the_same_twice_costs_no_memory() -> None:
    log = ControlLog()
    for number in range(5000):
        made = step(number / 100, 2, 2)
        log.note(replace(made, decision=replace(made.decision, reason="x" * number)))
    assert len(log._told_s) <= 1001
