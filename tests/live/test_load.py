"""The load of batches that follow each other at once, learnt from the batches alone."""

from __future__ import annotations

import pytest

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.job import Job
from penstock.core.objective import Limits, Objective
from penstock.live.load import batch_load
from penstock.live.query_progress import Report, SourceReport
from penstock.live.queue import QueryQueue
from penstock.models.capacity import linear
from penstock.models.learned import Learned
from penstock.models.learned_line import LearnedLine

JOB = Job("job", Dataflow((Operator("job", 0.0),)), Learned(), Limits(1, 8), 5.0, objective=Objective(60.0))
# 200 tasks of 50 ms and a fixed second a batch, 1 ms a row, on four workers: half of the time slots have a task.
FIXED_S, LAUNCH_S, ROW_S, CREW = 1.0, 10.0, 0.001, ("1", "2", "3", "4")


def followed(rates: list[float], knows_lag: bool = True) -> tuple[QueryQueue, LearnedLine]:
    """A job with Spark's default trigger at one rate after the other, 20 batches each, ten of one rate being enough."""
    queue, line = QueryQueue(0.0, 60.0, 10.0), LearnedLine()
    now_s, end, took_s = 0.0, 0, 3.0
    for number in range(20 * len(rates)):
        rate = rates[number // 20]
        rows = round(rate * took_s * (1.1 if number % 2 else 0.9))
        work_s = (LAUNCH_S + ROW_S * rows) / len(CREW)
        took_s, begun_s = FIXED_S + work_s, now_s
        now_s, end = now_s + took_s, end + rows
        source = SourceReport("KafkaV2[Subscribe[t]]", rows, end, end)
        batch = Report("q", number, begun_s, took_s, FIXED_S, rows, None, 0.0, (source,))
        line.note(rows, work_s, FIXED_S, CREW)
        waits = rate * took_s if knows_lag else None
        queue.advance(now_s, [batch], lambda _, waits=waits: waits, is_busy=True)  # type: ignore[misc]
    return queue, line


@pytest.mark.parametrize("knows_lag", [True, False], ids=["known", "unknown"])
def test_a_fifty_fold_drop_of_the_rate_is_a_drop_of_the_load(knows_lag: bool) -> None:
    # 2,500 rows/s take 2.5 workers, and 10 s of launches in every 30: (2.5 + 1/3) / (1 - 1/30) of 4.
    queue, line = followed([500.0, 2500.0], knows_lag)
    assert batch_load([(queue, line)], 4, JOB) == pytest.approx(0.73, rel=0.15)
    queue, line = followed([500.0, 2500.0, 50.0], knows_lag)
    assert batch_load([(queue, line)], 4, JOB) == pytest.approx(0.10, abs=0.03)
    # On the one worker that this asks for, it would be four times as much: it stays.
    assert batch_load([(queue, line)], 1, JOB) == pytest.approx(0.40, abs=0.12)


def test_a_line_through_batches_of_one_size_says_nothing() -> None:
    queue, line = followed([100.0])[0], LearnedLine()
    for _ in range(20):
        line.note(100.0, 2.5, FIXED_S, CREW)
    assert batch_load([(queue, line)], 4, JOB) is None


def test_what_waits_beyond_two_batches_counts_as_load() -> None:
    queue, line = followed([500.0, 2500.0, 50.0])
    queue.advance(10_000.0, [], lambda _: 60_000.0)
    # 60,000 rows within 30 s are 2,000 a second more.
    calm, behind = batch_load([(followed([500.0, 2500.0, 50.0])[0], line)], 4, JOB), batch_load([(queue, line)], 4, JOB)
    assert calm is not None
    assert behind is not None
    assert behind - calm > 0.4


def test_a_model_that_was_measured_needs_no_line() -> None:
    queue, _ = followed([500.0])
    assert batch_load([(queue, linear(per_worker=250.0))], 4, JOB) == pytest.approx(0.5, rel=0.1)


def test_a_stream_that_is_idle_is_no_load_however_long_its_last_batch_took() -> None:
    queue, line = followed([500.0, 2500.0])
    for later_s in (20.0, 40.0):
        queue.advance(10_000.0 + later_s, [], lambda _: 0.0)
    assert batch_load([(queue, line)], 4, JOB) == 0


# Of a live job on four executors of half a core that had just started, at 300 and then 3,000 rows/s: rows, seconds.
COLD = (
    (16, 12.15),
    (3756, 11.33),
    (3466, 4.16),
    (1280, 2.91),
    (905, 3.12),
    (978, 2.59),
    (833, 2.06),
    (677, 2.21),
    (752, 2.09),
    (601, 2.38),
    (829, 1.86),
    (527, 1.93),
)
WARM = ((4671, 2.32), (7570, 3.18), (9831, 3.35), (9901, 2.55), (8324, 2.99))


def test_what_was_learnt_of_cold_executors_is_corrected_by_the_batches_after() -> None:
    line = LearnedLine()
    for rows, work_s in COLD:
        line.note(rows, work_s, 0.13, CREW)
    # A row took 0.4 ms once all was warm, so 300 a second are an eighth of a worker, and launches as much again. It was
    # taken for four workers, which all stayed for as long as the rate did not change.
    cold = line.needed(300.0, 60.0)
    assert cold is not None
    assert cold < 1.5
    for rows, work_s in WARM:
        line.note(rows, work_s, 0.13, CREW)
    warm = line.needed(3000.0, 60.0)
    assert warm is not None
    assert 1.2 < warm < 3.0


def test_a_batch_that_a_neighbour_held_up_does_not_turn_the_line() -> None:
    _, line = followed([500.0, 2500.0])
    before = line.needed(2500.0, 30.0)
    line.note(9000.0, 40.0, FIXED_S, CREW)
    after = line.needed(2500.0, 30.0)
    assert before is not None
    assert after == pytest.approx(before, rel=0.25)


def test_rows_that_come_to_take_longer_are_seen() -> None:
    _, line = followed([500.0, 2500.0])
    for number in range(20):
        rows = 20_000.0 * (1.2 if number % 2 else 0.8)  # as many as came together meanwhile
        line.note(rows, (LAUNCH_S + 3 * ROW_S * rows) / len(CREW), FIXED_S, CREW)
    slower = line.needed(2500.0, 30.0)
    assert slower == pytest.approx((2500.0 * 3 * ROW_S + LAUNCH_S / 30.0) / (1 - FIXED_S / 30.0), rel=0.25)
