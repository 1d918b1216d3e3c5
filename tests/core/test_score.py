"""The score, on runs small enough to do by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.allocation import Allocation, BatchRule, Worker
from penstock.core.kinds import WorkerKind
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Observation, WorkerTable
from penstock.core.responses import Responses
from penstock.core.score import Score, score

BOUND = Objective(latency_s=120.0)


def run(counts: list[int], latencies: list[float] | None = None, span_s: float = 60.0) -> list[Step]:
    """A run that starts with counts[0] workers and asks for counts[k] at the end of interval k."""
    asked = Allocation.of(counts[0])
    steps = []
    for number, count in enumerate(counts[1:], start=1):
        target = asked.resized(count)
        latency_s = latencies[number - 1] if latencies else 0.1
        events = 100.0 * number
        seen = Observation(
            number * span_s, span_s, events, events, events, events, 100 / span_s, 0.0, latency_s, 10.0, asked, asked
        )
        steps.append(Step(seen, Decision(target, "because"), target))
        asked = target
    return steps


def test_a_worker_is_paid_from_the_request_until_it_is_given_up() -> None:
    # 1 worker for 60 s, 3 for 60 s, 2 for 60 s: 6 worker-minutes at 0.60 an hour.
    assert score(run([1, 3, 2, 2]), BOUND, Price(0.60)).cost == pytest.approx(6 * 0.01)


def test_each_started_hour_of_each_worker_is_paid_in_full() -> None:
    # w1 runs 3 minutes, w2 and w3 one minute each: three started hours.
    assert score(run([1, 3, 1, 1]), BOUND, Price(0.60, "hour")).cost == pytest.approx(3 * 0.60)


def test_a_worker_that_still_serves_after_it_was_given_up_is_paid() -> None:
    steps = run([3, 1, 1])
    drained = replace(steps[1], seen=replace(steps[1].seen, drained_s={"w2": 30.0, "w3": 12.0}))
    result = score([steps[0], drained], BOUND, Price(0.60))
    # 3 minutes for three, one for the one that stays, and 42 s for those that drain.
    assert result.cost == pytest.approx(4 * 0.01 + 42 / 6000)
    assert result.worker_hours == pytest.approx((240 + 42) / 3600)


def test_draining_beyond_the_hour_starts_another_one() -> None:
    steps = run([2, 1, 1], span_s=3600.0)
    drained = replace(steps[1], seen=replace(steps[1].seen, drained_s={"w2": 5.0}))
    assert score([steps[0], drained], BOUND, Price(0.60, "hour")).cost == pytest.approx(4 * 0.60)


def test_giving_a_worker_up_and_asking_again_starts_a_new_hour() -> None:
    assert score(run([2, 1, 2, 2]), BOUND, Price(1.0, "hour")).cost == pytest.approx(3.0)


def test_a_scaling_action_counts_once_whatever_its_size() -> None:
    result = score(run([1, 5, 5, 2, 2]), BOUND, Price())
    assert (result.scaling_actions, result.workers_started, result.workers_stopped) == (2, 4, 3)


def test_a_wish_that_limits_cut_to_what_is_there_is_no_action() -> None:
    limits, two = Limits(1, 2), Allocation.of(2)
    steps = [replace(step, target=limits.cut(two.resized(3 + n))) for n, step in enumerate(run([2, 2, 2]))]
    assert score(steps, BOUND, Price()).scaling_actions == 0


def test_violations_are_stretches_and_a_share_of_time() -> None:
    result = score(run([1] * 7, [10, 130, 140, 10, 150, 10]), BOUND, Price())
    assert (result.violations, result.violation_share) == (2, 3 / 6)


def test_a_latency_of_exactly_the_bound_is_no_violation() -> None:
    assert score(run([1, 1, 1], [120.0, 120.0]), BOUND, Price()).violations == 0


def test_late_events_are_those_answered_after_the_bound() -> None:
    steps = run([1, 1, 1], [10.0, 200.0])
    # In the second interval 100 answers lie evenly between 100 and 200 s: 80 of them after 120 s.
    late = replace(steps[1].seen, paths={"sink": Responses.spread(100.0, 200.0, 100.0)})
    result = score([steps[0], replace(steps[1], seen=late)], BOUND, Price())
    assert result.late_events == pytest.approx(80, rel=0.02)


def test_the_rate_objective_compares_arrivals_with_capacity() -> None:
    steps = run([1, 1, 1])
    # 100 events in 60 s against a capacity of 1/s, that is 60 events: 40 too many in each interval.
    slow = [replace(step, seen=replace(step.seen, capacity=1.0)) for step in steps]
    result = score(slow, Objective(), Price())
    assert (result.violation_share, result.violations) == (1.0, 1)
    assert result.late_events == pytest.approx(80)


def test_percentiles_are_weighted_by_events() -> None:
    steps = run([1, 1, 1])
    fast = replace(steps[0].seen, paths={"sink": Responses.spread(1.0, 1.0, 98)})
    slow = replace(steps[1].seen, paths={"sink": Responses.spread(50.0, 50.0, 2)})
    result = score([replace(steps[0], seen=fast), replace(steps[1], seen=slow)], BOUND, Price())
    assert result.latency_p50_s == pytest.approx(1.0, rel=0.03)
    assert result.latency_p95_s == pytest.approx(1.0, rel=0.03)
    assert result.latency_p99_s == pytest.approx(50.0, rel=0.03)


def test_a_failed_worker_is_paid_until_it_fails_and_its_replacement_from_then_on() -> None:
    steps = run([1, 1, 1, 1])
    table = WorkerTable(("w1",), {"paid_since_s": (0.0,)})
    anew = WorkerTable(("w1",), {"paid_since_s": (90.0,)})
    gone = replace(steps[1].seen.running, workers=())
    seen = [
        replace(steps[0].seen, workers=table),
        replace(steps[1].seen, running=gone, workers=WorkerTable((), {})),
        replace(steps[2].seen, workers=anew),
    ]
    failed = [replace(step, seen=observation) for step, observation in zip(steps, seen, strict=True)]
    # By the second nothing changes (180 s); by the hour there are two rentals, 0–90 and 90–180 s.
    assert score(failed, BOUND, Price(3600.0)).cost == pytest.approx(180.0)
    assert score(failed, BOUND, Price(1.0, "hour")).cost == pytest.approx(2.0)


def test_an_empty_run_costs_nothing() -> None:
    assert score([], BOUND, Price()).cost == 0


@given(st.lists(st.integers(0, 9), min_size=2, max_size=20), st.sampled_from(["second", "minute", "hour"]))
def test_doubling_the_price_doubles_the_cost(counts: list[int], billing: str) -> None:
    steps = run(counts)

    def cost(price: float) -> float:
        return score(steps, BOUND, Price(price, billing)).cost

    assert cost(0.5) == pytest.approx(2 * cost(0.25))


@given(st.lists(st.integers(0, 9), min_size=2, max_size=20))
def test_coarser_billing_never_costs_less(counts: list[int]) -> None:
    steps = run(counts)
    results: list[Score] = [score(steps, BOUND, Price(1.0, unit)) for unit in ("second", "minute", "hour")]
    assert results[0].cost <= results[1].cost + 1e-9 <= results[2].cost + 2e-9


def blind(steps: list[Step], *numbers: int) -> list[Step]:
    """The same run with some intervals of which nobody knows what waited."""
    unknown = {number: replace(steps[number].seen, backlog=None, latency_s=None) for number in numbers}
    return [replace(step, seen=unknown.get(number, step.seen)) for number, step in enumerate(steps)]


def test_time_of_which_nobody_knows_is_neither_kept_nor_missed() -> None:
    steps = run([1] * 7, latencies=[10, 200, 300, 10, 10, 10])
    result = score(blind(steps, 2, 3, 4), BOUND, Price())
    # One of six intervals is known to be missed, two to be kept.
    assert (result.violation_share, result.unknown_share, result.violations) == (1 / 6, 3 / 6, 1)
    assert result.late_events == 100  # of the interval that is known


def test_without_one_known_interval_there_is_no_latency() -> None:
    result = score(blind(run([1] * 4), 0, 1, 2), BOUND, Price())
    assert (result.unknown_share, result.violation_share, result.backlog) == (1.0, 0.0, None)
    assert (result.latency_mean_s, result.latency_p50_s, result.latency_p99_s) == (None, None, None)


def test_a_rate_is_judged_though_nobody_tells_what_waits() -> None:
    seen = run([1] * 2)[0].seen
    within, above = replace(seen, input_rate=9.0, backlog=None), replace(seen, input_rate=11.0, backlog=None)
    # A batch that ends brings in what came in many intervals: 5,000 events within one say nothing.
    assert (Objective().missed(within, 5000.0), Objective().missed(above, 0.0)) == (False, True)


def test_each_kind_of_worker_is_paid_at_its_own_price() -> None:
    kinds = (WorkerKind("small", per_hour=0.60), WorkerKind("huge", cores=16.0, per_hour=9.60))
    before, after = Allocation.of(1, "small"), Allocation((Worker("w1", "small"), Worker("w2", "huge")))
    first, second = run([1, 1, 1])
    steps = [
        replace(first, target=after, seen=replace(first.seen, target=before)),
        replace(second, target=after, seen=replace(second.seen, target=after)),
    ]
    # A small one for two minutes, and a huge one for the second of them.
    assert score(steps, BOUND, Price(5.0), kinds).cost == pytest.approx(2 * 0.01 + 0.16)


def test_a_batch_size_that_follows_the_workers_is_no_scaling_action() -> None:
    steps = run([1, 1, 1])
    sized = [
        replace(step, target=replace(step.target, batch=BatchRule(120.0, 1.0, 10.0 + number)))
        for number, step in enumerate(steps)
    ]
    assert score(sized, BOUND, Price()).scaling_actions == 0


def test_time_missed_is_what_the_plant_integrated_where_it_did() -> None:
    first, *others = run([1] * 4, [10.0, 10.0, 10.0])
    late = [
        replace(step, seen=replace(step.seen, late_s=late_s)) for step, late_s in zip(others, (0.0, 15.0), strict=False)
    ]
    steps = [replace(first, seen=replace(first.seen, late_s=45.0)), *late]
    result = score(steps, BOUND, Price())
    assert result.violation_share == pytest.approx(60.0 / (60.0 * len(steps)))
    assert result.violations == 2


def test_the_rate_is_judged_by_what_the_workers_could_really_do() -> None:
    steps = [replace(step, could=1e-6) for step in run([1] * 3)]
    assert score(steps, Objective(), Price()).violation_share == 1.0
