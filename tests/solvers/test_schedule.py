"""What a schedule serves, misses and costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from penstock.solvers.schedule import (
    Floats,
    Ints,
    Task,
    bill,
    could_serve,
    full,
    served,
    serving,
    unavoidable,
    violated,
)
from tests.solvers.tasks import schedules, tasks

TENS: Floats = np.array([0.0, 10.0, 20.0, 30.0])


def counts(*workers: int) -> Ints:
    return np.array(workers, dtype=np.int64)


def test_a_worker_serves_a_start_after_its_request_and_stops_at_once() -> None:
    task = Task(np.zeros(6), TENS, at_start=1, most=3, start=1.5)
    early, late = serving(task, counts(1, 3, 3, 1, 2, 2))
    # Two are requested at 1.0 and serve from 2.5 until 3.0; one is requested at 4.0 and serves from 5.5.
    assert early.tolist() == [1, 1, 1, 1, 1, 1]
    assert late.tolist() == [1, 1, 3, 1, 1, 2]
    assert could_serve(task, counts(1, 3, 3, 1, 2, 2)).tolist() == [10, 10, 20, 10, 10, 15]


def test_the_youngest_worker_goes_first_and_each_started_unit_is_paid() -> None:
    task = Task(np.zeros(7), TENS, at_start=1, most=3, unit=3.0)
    # Level 1: ticks 0-6, 7 of them, 3 units. Level 2: ticks 1-4, 4 of them, 2 units. Level 3: tick 2, 1 unit.
    assert bill(task, counts(1, 2, 3, 2, 2, 1, 1)) == 3.0 * (3 + 2 + 1)


def test_an_event_is_late_when_it_waits_longer_than_the_bound() -> None:
    task = Task(np.array([10.0, 30.0, 0.0, 0.0]), TENS, at_start=1, most=3, within=1.5)
    # By 3.0 all that came by 1.5 must be served: 10 + 15 events; one worker has done 30.
    assert violated(task, counts(1, 1, 1, 1)).tolist() == [False, False, False, False]
    # With 1 tick instead, 40 must be served by 3.0.
    strict = Task(task.arrivals, task.capacity, at_start=1, most=3, within=1.0)
    assert violated(strict, counts(1, 1, 1, 1)).tolist() == [False, False, True, False]


def test_a_rate_above_the_capacity_of_the_tick_is_a_miss_whatever_waits() -> None:
    task = Task(np.array([10.0, 25.0, 20.0]), TENS, at_start=1, most=3)
    assert violated(task, counts(1, 2, 2)).tolist() == [False, True, False]


@given(tasks().flatmap(schedules))
def test_no_schedule_serves_more_or_misses_less_than_all_workers_at_once(pair: tuple[Task, Ints]) -> None:
    task, paid = pair
    assert (served(task, paid) <= served(task, full(task)) + 1e-9).all()
    assert (served(task, paid) <= np.cumsum(task.arrivals) + 1e-9).all()
    assert (violated(task, paid) | ~unavoidable(task)).all()


@given(tasks().flatmap(schedules))
def test_a_finer_unit_of_billing_never_costs_more(pair: tuple[Task, Ints]) -> None:
    task, paid = pair
    coarse = Task(task.arrivals, task.capacity, task.at_start, task.most, unit=6.0)
    fine = Task(task.arrivals, task.capacity, task.at_start, task.most, unit=2.0)
    assert paid.sum() <= bill(fine, paid) <= bill(coarse, paid)


@pytest.mark.parametrize("ticks", [1, 2, 9])
def test_a_start_longer_than_the_run_never_serves(ticks: int) -> None:
    task = Task(np.full(ticks, 5.0), TENS, at_start=0, most=3, start=20.0, within=1.0)
    assert served(task, full(task)).sum() == 0
