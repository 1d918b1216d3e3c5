"""A query as a queue, on reports made up to know the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.progress import Report, SourceReport
from penstock.live.queue import QueryQueue


def report(batch: int, begun_s: float, rows: float, end: float, latest: float, execution_s: float = 2.0) -> Report:
    source = SourceReport("KafkaV2[Subscribe[clicks]]", rows, end, latest)
    return Report("q", batch, begun_s, execution_s, 0.5, rows, rows, 0.0, (source,))


def test_events_are_answered_when_their_batch_ends_and_the_rest_waits() -> None:
    queue = QueryQueue(100.0, unit_s=60.0, window_s=10.0)
    # Of 500 events that were there at 110, the batch took 300 and ended at 112; by 120 another 100 have come.
    queue.advance(120.0, [report(0, 110.0, 300, 300, 500)], lambda last: 600 - (last.sources[0].end or 0))
    assert (queue.arrived, queue.processed, queue.backlog) == (600, 300, 300)
    # 500 events came evenly within 100 … 110, so the 301st came at 106.
    assert queue.latency_s(120.0) == pytest.approx(14.0)
    answered = queue.take_responses()
    # The first waited 12 s, the 300th 112 − 106 = 6 s.
    assert answered.count == 300
    assert answered.mean == pytest.approx(9.0)


def test_an_idle_stream_is_a_rate_of_zero() -> None:
    queue = QueryQueue(0.0, 60.0, 10.0)
    queue.advance(10.0, [report(0, 5.0, 100, 100, 100)], lambda _: 0.0)
    assert queue.input_rate == 0  # nobody knows since when they came
    queue.advance(20.0, [report(1, 15.0, 200, 300, 300)], lambda _: 0.0)
    assert queue.input_rate == pytest.approx(20.0)
    for now_s in (30.0, 40.0):
        queue.advance(now_s, [], lambda _: 0.0)
    assert (queue.input_rate, queue.backlog, queue.latency_s(40.0)) == (0, 0, 0)


def test_counters_go_on_after_a_restart() -> None:
    queue = QueryQueue(0.0, 60.0, 10.0)
    queue.go_on(arrived=1000.0, processed=900.0, oldest_s=-50.0)
    assert (queue.arrived, queue.processed, queue.backlog) == (1000, 900, 100)
    assert queue.latency_s(0.0) == pytest.approx(50.0)
    queue.advance(10.0, [report(7, 5.0, 150, 1050, 1050)], lambda _: 20.0)
    assert (queue.arrived, queue.processed, queue.backlog) == (1070, 1050, 20)


def test_arrivals_that_were_overestimated_are_taken_back() -> None:
    queue = QueryQueue(0.0, 60.0, 10.0)
    queue.advance(10.0, [report(0, 5.0, 100, 100, 100)], lambda _: 50.0)
    assert queue.backlog == 50
    queue.advance(20.0, [], lambda _: 20.0)
    assert (queue.arrived, queue.processed, queue.backlog) == (120, 100, 20)
    assert queue.input_rate == 0
    queue.advance(30.0, [], lambda _: 0.0)
    assert (queue.backlog, queue.latency_s(30.0)) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=30))
def test_nothing_is_lost_and_no_answer_comes_before_its_event(steps: list[tuple[int, int]]) -> None:
    queue = QueryQueue(0.0, 60.0, 10.0)
    come = read = 0
    for number, (arrivals, wanted) in enumerate(steps, 1):
        begun_s = 10.0 * number - 5.0
        come += arrivals
        rows = min(wanted, come - read)
        read += rows
        ended = [report(number, begun_s, rows, read, come)] if rows or number == 1 else []
        queue.advance(10.0 * number, ended, lambda _: come - read)  # noqa: B023
        assert queue.arrived == pytest.approx(come)
        assert queue.processed == pytest.approx(read)
        assert queue.arrived == pytest.approx(queue.processed + queue.backlog, abs=1e-6)
        assert queue.take_responses().sum_s >= 0
