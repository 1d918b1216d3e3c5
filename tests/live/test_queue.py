"""A query as a queue, on reports made up to know the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.query_progress import Report, SourceReport
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
    assert answered is not None
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


def test_arrivals_that_were_overestimated_are_made_up_for_by_those_to_come() -> None:
    queue = QueryQueue(0.0, 60.0, 10.0)
    queue.advance(10.0, [report(0, 5.0, 100, 100, 100)], lambda _: 50.0)
    assert queue.backlog == 50
    queue.advance(20.0, [], lambda _: 20.0)
    assert (queue.arrived, queue.processed, queue.backlog) == (150, 100, 20)  # a counter never falls
    assert queue.input_rate == 0
    queue.advance(30.0, [], lambda _: 0.0)
    assert (queue.backlog, queue.latency_s(30.0)) == (0, 0)
    queue.advance(40.0, [], lambda _: 60.0)
    assert (queue.arrived, queue.backlog) == (160, 60)
    assert queue.input_rate == pytest.approx(1.0)


def test_what_nobody_tells_is_unknown_and_the_rate_is_that_of_the_batches() -> None:
    queue = QueryQueue(0.0, 60.0, window_s=10.0)
    for number in range(5):  # 200 rows every 10 s
        begun_s = 5.0 + 10.0 * number
        batch = Report("q", number, begun_s, 2.0, 0.5, 200.0, None, 0.0, (SourceReport("Kinesis", 200.0, None, None),))
        queue.advance(begun_s + 5.0, [batch], lambda _: None)
    assert (queue.arrived, queue.processed, queue.backlog, queue.latency_s(50.0)) == (1000, 1000, None, None)
    assert queue.input_rate == pytest.approx(20.0)
    assert queue.take_responses() is None
    assert (queue.stats(50.0).backlog, queue.stats(50.0).latency_s) == (None, None)
    # A batch of a minute: what comes meanwhile is not seen, and is not 0.
    for now_s in (60.0, 70.0, 110.0):
        queue.advance(now_s, [], lambda _: None, is_busy=True)
        assert queue.input_rate == pytest.approx(20.0)
    # Without a batch in work nothing has come.
    queue.advance(120.0, [], lambda _: None, is_busy=False)
    assert queue.input_rate == 0


def test_during_a_long_batch_the_broker_tells_what_comes() -> None:
    queue = QueryQueue(0.0, 60.0, window_s=10.0)
    queue.advance(10.0, [report(0, 5.0, 100, 100, 100)], lambda _: 0.0)
    for number in range(1, 7):
        queue.advance(10.0 + 10.0 * number, [], lambda _, waits=50.0 * number: waits)  # type: ignore[misc]
        assert queue.input_rate == pytest.approx(5.0)
    assert (queue.arrived, queue.backlog) == (400, 300)


def counted(batch: int, begun_s: float, begin: int, end: int, unseen: float = 0.0) -> Report:
    places = {("clicks", 0): begin}, {("clicks", 0): end}
    source = SourceReport("KafkaV2[Subscribe[clicks]]", end - begin, end, end, None, *places)
    return Report("q", batch, begun_s, 2.0, 0.5, end - begin, None, 0.0, (source,), unseen)


def test_counters_never_fall_over_a_restart_though_batches_ended_that_nobody_saw() -> None:
    queue = QueryQueue(0.0, 60.0, 10.0)
    queue.go_on(arrived=322_313.0, processed=300_000.0, oldest_s=-5.0)
    # A batch of 20,000 rows ended between the last step and the end of the driver; then one of 1,661, and none wait.
    queue.advance(10.0, [counted(8, 5.0, 320_000, 321_661)], lambda _: 1000.0)
    assert queue.arrived == 322_313
    assert (queue.processed, queue.backlog) == (321_313, 1000)
    # Where the checkpoint's log says what they read, the count is exact.
    exact = QueryQueue(0.0, 60.0, 10.0)
    exact.go_on(arrived=322_313.0, processed=300_000.0, oldest_s=-5.0)
    exact.advance(10.0, [counted(8, 5.0, 320_000, 321_661, unseen=20_000.0)], lambda _: 1000.0)
    assert (exact.arrived, exact.processed, exact.backlog) == (322_661, 321_661, 1000)


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
        backlog, answered = queue.backlog, queue.take_responses()
        assert backlog is not None
        assert queue.arrived == pytest.approx(queue.processed + backlog, abs=1e-6)
        assert answered is not None
        assert answered.sum_s >= 0
