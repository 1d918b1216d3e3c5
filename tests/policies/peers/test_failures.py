"""What users of the peers report, reproduced on purpose: the rules are theirs, and so are the failures."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from penstock.core.loop import Step
from penstock.core.objective import Limits
from penstock.models.capacity import linear
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, PauseSpec, WorkerSpec
from penstock.sim.workloads import Jitter, Load, Sine, make_load
from tests.policies.peers.looks import Shown


def world(rates: list[float], start_s: float = 0.0, at_start: int = 4) -> Scenario:
    """Minutes of so many events a second each, on workers of 10/s."""
    still = Scenario.constant(rate=1.0, capacity_per_worker=10.0, workers_at_start=at_start)
    worker = WorkerSpec(start_s=start_s)
    return replace(still, load=Load.of(np.array(rates) * 60.0, 60.0), worker=worker, limits=Limits(1, 64))


def in_batches(scenario: Scenario, trigger_s: float = 10.0) -> Scenario:
    return replace(scenario, batch=BatchSpec(trigger_s), capacity=linear(10.0, fixed_s=1.5))


def steps(name: str, scenario: Scenario) -> list[Step]:
    return list(replay(scenario, Named.parse(name).build(scenario.job())))


def counts(name: str, scenario: Scenario) -> list[int]:
    return [len(step.target.workers) for step in steps(name, scenario)]


def changes(wanted: list[int]) -> int:
    return sum(before != after for before, after in pairwise(wanted))


def test_spark_never_scales_a_streaming_job_in() -> None:
    """Databricks' production guide, Oracle's and Cloudera's: every task resets an executor's idle clock."""
    wanted = counts("spark-dynamic", in_batches(world([30.0] * 30 + [1.0] * 600)))
    assert wanted[-1] == max(wanted)
    # Not the shuffle files alone: without tracking them, a batch every 10 s keeps all of them as well.
    wanted = counts("spark-dynamic:shuffle_tracking=false", in_batches(world([30.0] * 30 + [1.0] * 600)))
    assert wanted[-1] == max(wanted)


def test_spark_allocates_all_it_may_for_a_load_that_few_could_bear() -> None:
    """opensearch-project/opensearch-spark#324: "aggressively allocates more executors than necessary"."""
    quiet = in_batches(world([30.0] * 120))  # 30/s in batches of 10 s take ⌈30/(10 · 0.85)⌉ = 4 workers
    assert counts("spark-dynamic", quiet)[-1] == 64
    assert counts("spark-24815", quiet)[-1] == 64


def test_spark_gives_executors_up_after_each_batch_and_asks_for_them_with_the_next() -> None:
    """SPARK-24815 and its like: churn, where the trigger is longer than the idle timeout."""
    slow = in_batches(world([10.0] * 120), trigger_s=600.0)
    wanted = counts("spark-dynamic:shuffle_tracking=false", slow)
    assert min(wanted[20:]) == 1
    assert max(wanted[20:]) > 10
    assert changes(wanted[20:]) >= 2 * 8  # down and up again, in each of some ten batches


def test_keda_asks_for_the_most_at_any_load() -> None:
    """kedacore/keda#1983: ten waiting events are a worker; a single batch of 100/s, which takes 12, holds 1,000."""
    wanted = counts("keda", in_batches(world([100.0] * 60, at_start=12)))
    assert max(wanted) == 64


def test_keda_is_stuck_one_worker_short_of_its_goal() -> None:
    """kedacore/keda#2908: 64 by 63 is within the HPA's tenth."""
    shown = Shown("keda:lag_threshold=5", 63)
    assert {shown.see(backlog=320.0) for _ in range(30)} == {63}


def test_lag_ramps_the_hpa_while_its_pods_still_start() -> None:
    """kubernetes-sigs/prometheus-adapter#294: every 15 s more, for a lag that the first of them would have cleared."""
    shown = Shown("keda:lag_threshold=100", 1, span_s=15.0)
    wanted = [shown.see(backlog=300.0 + 300.0 * number, comes=False) for number in range(6)]
    assert wanted == sorted(set(wanted))


def test_each_rescaling_that_pauses_the_job_makes_the_lag_that_asks_for_the_next() -> None:
    """FLINK-31318, kedacore/keda#5096 and #2401: with a rebalance of 50 s the same load is never at rest."""
    calm = world([38.0] * 720, at_start=4)
    paused = replace(calm, pause=PauseSpec(reconfigure_s=50.0))
    stirred = counts("keda:lag_threshold=600", replace(paused, load=_bump(paused.load)))
    still = counts("keda:lag_threshold=600", replace(calm, load=_bump(calm.load)))
    assert changes(stirred) > 2 * changes(still)


def _bump(load: Load) -> Load:
    """The same with one minute of twice as much."""
    arrivals = load.arrivals.copy()
    arrivals[30] *= 2
    return replace(load, arrivals=arrivals)


def test_flink_rescaled_more_than_twenty_times_a_day_before_it_delayed_scaling_in() -> None:
    """FLINK-36018: "each job rescales more than 20 times a day"."""
    load = make_load((Sine(50.0, 400.0, 43200.0), Jitter(0.3, 3600.0)), 3 * 86400.0, 60.0, seed=1)
    scenario = replace(world([1.0]), load=load)
    eager = changes(counts("flink:scale_down_interval_s=0s", scenario)) / 3
    assert eager > 20
    assert changes(counts("flink", scenario)) / 3 < 0.75 * eager


def test_aws_flink_does_not_scale_in_at_half_of_the_load() -> None:
    """Its rule knows no CPU between 10 % and 75 %: what a peak took, it keeps."""
    wanted = counts("aws-flink", world([100.0] * 120 + [50.0] * 1440))
    assert wanted[-1] == max(wanted) > 8


def test_elastic_scaling_corrects_again_what_it_has_corrected() -> None:
    """Its mean still holds batches of fewer workers, so that it goes on asking after the need is met."""
    shown = Shown("elastic-scaling:executors_max=64", 4, batches=True)
    first = shown.see(batch=(160.0, 160.0 / (10.0 * 4) * 10))
    assert first == 12
    # On 12 workers a batch takes 13.3 s, and 16 would do; its mean makes it 26.
    assert shown.see(batch=(160.0, 160.0 / (10.0 * 12) * 10)) > 20


def test_dstream_without_executors_is_stuck() -> None:
    """SPARK-42972: no executor, no batch that ends; no batch that ended, no executor."""
    shown = Shown("dstream:backpressure=false", 2, batches=True)
    shown.see(batch=(100.0, 5.0))
    shown.target = shown.running = shown.target.resized(0)
    assert {shown.see(batch=(100.0, 5.0), age_s=60.0 * minute) for minute in range(1, 60)} == {0}


def test_the_hpa_cannot_see_how_much_more_it_needs_than_it_has() -> None:
    """CPU ends at 100 %: eight times the load grows 4 workers by a quarter at a time, one start after the other."""
    scenario = world([30.0] * 10 + [240.0] * 60, start_s=90.0)
    assert len(set(counts("hpa", scenario)[10:30])) >= 4
    assert counts("deadline", scenario)[13] > 2 * counts("hpa", scenario)[13]
