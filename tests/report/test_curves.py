"""Curves: exact extremes, visible gaps, every reason, in constant memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Allocation, BatchRule
from penstock.core.loop import Decision, Step
from penstock.core.objective import Objective
from penstock.core.observation import Observation
from penstock.runs.actions import ACTIONS_MAX, Actions
from penstock.runs.buckets import BUCKETS_MAX, Buckets
from penstock.runs.run_curves import SIGNALS_MAX, Curves

Made = Callable[..., Any]


def fill(values: list[float], span_s: float = 1.0, chunk: int = 100) -> Buckets:
    buckets = Buckets()
    ends_s = span_s * (1 + np.arange(len(values), dtype=np.float64))
    for first in range(0, len(values), chunk):
        some = slice(first, first + chunk)
        buckets.fill(ends_s[some], np.full_like(ends_s[some], span_s), {"a": np.array(values[some])})
    return buckets


def test_a_short_run_is_kept_step_by_step(made: Made) -> None:
    run = made(count=30)
    steps, curves = list(run.steps()), run.run().curves
    assert curves.width_s == 60.0
    assert curves.starts_s.tolist() == [60.0 * step for step in range(30)]
    assert curves.band("rate").mean.tolist() == pytest.approx([step.seen.input_rate for step in steps])
    assert curves.band("running").low.tolist() == [len(step.seen.running.workers) for step in steps]
    assert curves.band("target").high.tolist() == [len(step.seen.target.workers) for step in steps]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.integers(BUCKETS_MAX // 2, 9 * BUCKETS_MAX),
    st.integers(1, 3000),
)
def test_least_and_greatest_stay_exact_after_merging(pattern: list[float], count: int, chunk: int) -> None:
    values = [pattern[i * i % len(pattern)] for i in range(count)]
    buckets = fill(values, chunk=chunk)
    low, high, mean = buckets.band("a")
    each = round(buckets.width_s)
    groups = [values[first : first + each] for first in range(0, count, each)]
    assert len(groups) <= BUCKETS_MAX
    assert low.tolist() == [min(group) for group in groups]
    assert high.tolist() == [max(group) for group in groups]
    assert mean.tolist() == pytest.approx([math.fsum(group) / len(group) for group in groups], abs=1e-6)


def test_memory_does_not_grow_with_the_run() -> None:
    buckets = fill([1.0, 2.0] * 200_000, chunk=100_000)
    # 400,000 / 2^8 = 1562.5 buckets; with 2^7 there would be 3,125.
    assert buckets.width_s == 256.0
    assert len(buckets.starts_s) == 1563


def test_a_long_step_weighs_more_in_the_mean() -> None:
    buckets = Buckets()
    buckets.fill(np.array([10.0]), np.array([10.0]), {"a": np.array([0.0])})
    buckets.fill(np.array([12.0, 20.0]), np.array([2.0, 8.0]), {"a": np.array([1.0, 6.0])})
    # Both steps of 2 s and 8 s lie in the second bucket of 10 s: (2·1 + 8·6) / 10.
    assert buckets.band("a")[2].tolist() == [0.0, 5.0]


def test_a_gap_in_time_stays_a_gap(made: Made) -> None:
    curves = made(count=30, gap_after=12).run().curves
    assert np.flatnonzero(curves.resumes).tolist() == [12]
    # 40 steps of 60 s are missing between the 12th and the 13th.
    assert curves.starts_s[11:13].tolist() == [660.0, 720.0 + 2400.0]


def test_a_gap_survives_merging_and_late_ticks_are_none(made: Made) -> None:
    curves = made(count=6000, gap_after=3000).run().curves
    assert np.count_nonzero(curves.resumes) == 1
    buckets = Buckets()
    # 4 s late on a tick of 10 s is a slow tick; 16 s late is a tick that is missing.
    buckets.fill(np.array([10.0, 24.0, 50.0]), np.full(3, 10.0), {"a": np.zeros(3)})
    assert buckets.resumes.tolist() == [False, False, True]


def test_a_gap_of_a_year_costs_no_memory() -> None:
    buckets = fill([1.0] * 10)
    buckets.fill(np.array([3e7, 3e7 + 1]), np.ones(2), {"a": np.array([5.0, 7.0])})
    low, high, _ = buckets.band("a")
    assert (low.tolist(), high.tolist()) == ([1.0, 5.0], [1.0, 7.0])
    assert buckets.resumes.tolist() == [False, True]


def test_every_reason_is_found_while_the_actions_fit(made: Made) -> None:
    run = made(count=400)
    targets = [step.target for step in run.steps()]
    changed = [i for i in range(1, 400) if targets[i] != targets[i - 1]]
    steps, marks = list(run.steps()), run.run().curves.actions.marks()
    assert [mark.step for mark in marks][-len(changed) :] == [i + 1 for i in changed]
    assert all(mark.reason == steps[mark.step - 1].decision.reason for mark in marks)
    assert all(mark.after == len(steps[mark.step - 1].target.workers) for mark in marks)


def test_too_many_actions_share_marks_and_none_is_lost(made: Made) -> None:
    run = made(count=12_000, flap_every=2).run()
    marks = run.curves.actions.marks()
    assert len(marks) <= ACTIONS_MAX
    assert sum(mark.count for mark in marks) == run.score.scaling_actions > 10_000
    shared = [mark for mark in marks if mark.count > 1]
    assert all(mark.reason and mark.last_reason and mark.until_s > mark.time_s for mark in shared)
    assert all(first.after == second.before for first, second in pairwise(marks))
    assert len(run.curves.actions.marks(100)) <= 100


def test_another_batch_size_alone_is_no_scaling_action(made: Made) -> None:
    run = made(count=100)
    sized = [
        replace(step, target=replace(step.target, batch=BatchRule(60.0, 1.0, 10.0 + number)))
        for number, step in enumerate(run.steps())
    ]
    actions = Actions()
    for number, step in enumerate(sized, 1):
        actions.note(step, number)
    assert actions.count == run.run().score.scaling_actions


def test_the_missed_share_is_that_of_the_score(made: Made) -> None:
    run = made(count=5000, margin=0.9).run()
    missed = run.curves.band("missed").mean
    assert run.score.violation_share > 0
    # 5,000 steps are 1,250 buckets of four, so the mean of the means is the mean.
    assert missed.mean() == pytest.approx(run.score.violation_share)


def test_signals_are_curves_and_their_number_is_bounded() -> None:
    curves = Curves(Objective(latency_s=120.0))
    for number in range(40):
        curves.add(step(number, {"raw": float(number), f"odd {number}": 1.0}))
    names = [name for name in curves.names if name.startswith("signal ")]
    assert "signal raw" in names
    assert len(names) == SIGNALS_MAX
    assert curves.band("signal raw").high.tolist() == [float(number) for number in range(40)]


def test_what_was_not_measured_is_absent_and_not_zero() -> None:
    curves = Curves(Objective(latency_s=120.0))
    curves.add(step(0, {}))
    curves.add(replaced_latency(step(1, {}), math.nan))
    curves.add(replaced_latency(step(2, {}), math.inf))
    assert "load" not in curves.names
    assert np.isnan(curves.band("latency").mean).tolist() == [False, True, True]


def test_a_run_without_steps_has_no_curves() -> None:
    curves = Curves(Objective())
    assert curves.names == ()
    assert curves.starts_s.size == 0
    assert curves.actions.marks() == ()


def step(number: int, signals: dict[str, float]) -> Step:
    two = Allocation.of(2)
    seen = Observation(
        time_s=10.0 * (number + 1),
        span_s=10.0,
        arrived=0.0,
        processed=0.0,
        delivered=0.0,
        deliverable=0.0,
        input_rate=1.0,
        backlog=0.0,
        latency_s=1.0,
        capacity=2.0,
        running=two,
        target=two,
    )
    return Step(seen, Decision(two, "enough", signals), two)


def replaced_latency(given: Step, latency_s: float) -> Step:
    return replace(given, seen=replace(given.seen, latency_s=latency_s))


def test_a_step_without_a_length_is_no_division_by_zero(made: Made) -> None:
    curves, step = Curves(Objective(120.0)), next(made(count=1).steps())
    curves.add(replace(step, seen=replace(step.seen, span_s=0.0, late_s=0.5)))
    assert curves.steps == 1
