"""The bound: proven by trying everything where that is possible, close where it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.solvers import schedule_bound, schedule_coarse
from penstock.solvers.schedule import Floats, Task, bill, unavoidable, violated
from penstock.solvers.schedule_bound import Plan, holding, lower_bound, plan
from penstock.solvers.schedule_coarse import coarse_bound
from penstock.solvers.schedule_levels import last_below
from tests.solvers.tasks import all_schedules, days, tasks

MINUTES = days(10)
WORKERS: Floats = np.arange(1025, dtype=np.float64)
WORKER = float(MINUTES.max()) / 32
USUAL = Task(MINUTES, WORKERS[:65] * WORKER, at_start=4, most=64, least=1, start=1.5, within=2.0)


def gap(task: Task) -> float:
    best = plan(task)
    assert (violated(task, best.paid) == unavoidable(task)).all()
    assert bill(task, best.paid) == best.cost
    return best.cost / best.lower - 1


def optimum(task: Task) -> float:
    """The least cost of all schedules that miss the unavoidable only."""
    may_miss = unavoidable(task)
    return min(bill(task, paid) for paid in all_schedules(task) if (violated(task, paid) == may_miss).all())


@settings(max_examples=300, deadline=None)
@given(tasks())
def test_no_schedule_costs_less_than_the_bound_and_the_plan_holds(task: Task) -> None:
    best, least = plan(task), optimum(task)
    assert best.lower <= least + 1e-9
    assert least <= best.cost + 1e-9
    assert (violated(task, best.paid) == unavoidable(task)).all()


@settings(max_examples=150, deadline=None)
@given(tasks())
def test_the_bound_in_coarse_steps_is_a_bound_too(task: Task) -> None:
    assert coarse_bound(task)[0] <= optimum(replace(task, unit=1.0)) + 1e-6


@settings(max_examples=150, deadline=None)
@given(tasks())
def test_a_rate_billed_by_time_is_solved_exactly(task: Task) -> None:
    rated = replace(task, within=None, unit=1.0)
    best = plan(rated)
    assert best.cost == pytest.approx(optimum(rated))
    assert best.lower == pytest.approx(best.cost)


def test_a_start_that_is_no_simple_part_of_a_tick_is_bounded_within_one_percent() -> None:
    assert gap(replace(USUAL, arrivals=MINUTES[:2880], start=77 / 60)) <= 0.01


@pytest.mark.parametrize("start", [0.0, 1.5, 5.0])
def test_ten_days_of_minutes_are_bounded_within_one_percent(start: float) -> None:
    assert gap(replace(USUAL, start=start)) <= 0.01


@pytest.mark.parametrize("within", [0.5, 60.0])
def test_narrow_and_wide_latency_bounds_are_bounded_within_one_percent(within: float) -> None:
    assert gap(replace(USUAL, within=within)) <= 0.01


@pytest.mark.parametrize("start", [0.0, 5.0])
def test_billing_by_the_hour_is_bounded_within_eight_percent(start: float) -> None:
    # Billed by time the bound would be 8 % lower: most rentals end within an hour that is paid in full.
    assert gap(replace(USUAL, start=start, unit=60.0)) <= 0.08


def test_a_capacity_that_flattens_is_bounded_within_two_percent() -> None:
    flat = WORKERS[:65] ** 0.8 * (WORKER * 32**0.2)
    assert gap(replace(USUAL, capacity=flat, arrivals=MINUTES[:2880])) <= 0.02


@pytest.mark.parametrize("within", [None, 2.0])
def test_more_workers_than_can_be_told_apart_are_planned_in_groups(within: float | None) -> None:
    many = replace(USUAL, arrivals=MINUTES[:1440], capacity=WORKERS * (WORKER / 16), most=1024, within=within)
    assert gap(replace(many, at_start=64)) <= 0.03


def test_a_long_series_is_planned_in_steps_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_bound, "TICKS_MOST", 7200)
    monkeypatch.setattr(schedule_coarse, "STEPS_MOST", 7200)
    best = plan(replace(USUAL, arrivals=MINUTES[:14400], within=30.0))
    assert "steps of 2 ticks" in best.note
    assert best.cost / best.lower <= 1.03


def test_too_many_states_for_a_bound_cost_three_percent_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a series of 250,000 ticks, whose schedule was 14 to 135 % above its bound.
    monkeypatch.setattr(schedule_bound, "STATES_MOST", 1e4)
    monkeypatch.setattr(schedule_coarse, "STEPS_AT_ONCE", 2000)
    assert gap(replace(USUAL, within=12.0, start=9.0)) <= 0.03


@settings(max_examples=100, deadline=None)
@given(tasks(), st.integers(1, 3))
def test_the_bound_of_a_series_that_is_cut_is_a_bound_too(task: Task, steps: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule_coarse, "STEPS_AT_ONCE", steps)
        assert coarse_bound(task)[0] <= optimum(replace(task, unit=1.0)) + 1e-6


@settings(max_examples=150, deadline=None)
@given(tasks(), st.integers(0, 3))
def test_a_schedule_too_small_is_mended_until_it_misses_the_unavoidable_only(task: Task, workers: int) -> None:
    paid = np.full(task.ticks, min(max(workers, task.least), task.most), dtype=np.int64)
    paid[0] = task.at_start
    assert (violated(task, holding(task, paid)) == unavoidable(task)).all()


def test_what_is_mended_falls_back_on_all_workers_before_the_miss_alone() -> None:
    # The bound is shorter than what the crowd needs, so that all workers must run a while before it, and only then.
    arrivals = np.full(400, 8.0)
    arrivals[200:203] = 160.0
    crowd = Task(arrivals, 10.0 * WORKERS[:17], at_start=1, most=16, least=1, start=1.0, within=0.5)
    paid = holding(crowd, np.ones(400, dtype=np.int64))
    assert (violated(crowd, paid) == unavoidable(crowd)).all()
    assert paid[:100].max() == 1
    assert paid[210:].max() == 1


def test_nothing_to_do_costs_the_least_number_of_workers() -> None:
    best = plan(replace(USUAL, arrivals=np.zeros(100)))
    assert best.lower == pytest.approx(4 + 99)
    assert best.cost == 4 + 99


def test_a_single_tick_is_as_it_is() -> None:
    best: Plan = plan(replace(USUAL, arrivals=np.array([1e9])))
    assert best.lower == pytest.approx(4.0)
    assert best.paid.tolist() == [4]


def test_the_last_value_below_a_limit_is_found() -> None:
    found = last_below(np.array([3.0, 1.0, 2.0, 5.0, 4.0]), np.array([9.0, 3.0, 2.0, 4.5, 1.5]))
    assert found.tolist() == [-1, -1, 1, 2, 1]


def test_fixed_times_of_batches_make_the_bound_tighter_by_what_two_of_them_take() -> None:
    plain = replace(USUAL, arrivals=MINUTES[:8000], within=2.0)
    lower, _ = lower_bound(plain)
    # 5 s of 120 s, twice: 8 % less capacity, of which longer rentals and later deadlines give some back.
    tighter, _ = lower_bound(replace(plain, fixed=5 / 60))
    assert 1.03 * lower < tighter < lower / (1 - 10 / 120)


def test_where_nobody_waits_fixed_times_are_not_counted_on() -> None:
    gaps = np.where(np.arange(2000) % 10 == 0, 0.0, MINUTES[:2000])
    plain = replace(USUAL, arrivals=gaps, within=2.0)
    assert coarse_bound(replace(plain, fixed=5 / 60)) == coarse_bound(plain)
