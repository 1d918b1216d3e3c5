"""Thresholds on a filtered load: when, how many, and what it does where it cannot see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.core.allocation import Allocation
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.journal import Header, Journal, JournalWriter
from penstock.core.loop import Decision
from penstock.core.objective import Limits
from penstock.core.observation import Observation, WorkerTable
from penstock.core.score import Score, score
from penstock.policies.filtered import Filtered
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, NoiseSpec, WorkerSpec
from penstock.sim.workloads import FlashCrowd, Sine, Square, make_load
from penstock.testing import check_policy

LIVE = Path(__file__).parents[2] / "docs" / "live"
PARTS = [f"filtered:filter={name},sizing={sizing}" for name in ("pure", "gw", "ekf") for sizing in ("sum", "eager")]


def job(most: int = 64) -> Job:
    still = Scenario.constant(rate=1.0, capacity_per_worker=10.0)
    return replace(still.job(), limits=Limits(1, most), tick_s=2.0)


def seen(cpu: Sequence[float], second: float, rate: float = 10.0, asked: int | None = None) -> Observation:
    running = Allocation.of(len(cpu))
    return Observation(
        time_s=second,
        span_s=2.0,
        arrived=0.0,
        processed=0.0,
        delivered=0.0,
        deliverable=0.0,
        input_rate=rate,
        backlog=0.0,
        latency_s=0.0,
        capacity=0.0,
        running=running,
        target=running.resized(len(cpu) if asked is None else asked),
        workers=WorkerTable(tuple(f"w{n + 1}" for n in range(len(cpu))), {"cpu": list(cpu), "memory_mb": 1024.0}),
    )


def wish(decision: Decision) -> int:
    return len(decision.target.workers)


@pytest.mark.parametrize("name", ["filtered", *PARTS, "filtered:metrics=cpu+memory"])
def test_every_variant_that_sizes_keeps_the_contract(name: str) -> None:
    check_policy(Named.parse(name).build)


def test_the_sum_says_how_many_and_one_step_does_not() -> None:
    loads = [0.9, 1.0, 0.8, 0.9]
    # 3.6 workers' work at √(0.45 · 0.8) = 0.6 each: 6 workers.
    assert wish(Filtered(job(), "pure", "sum").decide(seen(loads, 2.0))) == 6
    assert wish(Filtered(job(), "pure", "step").decide(seen(loads, 2.0))) == 5
    # 0.8 workers' work: 2.
    assert wish(Filtered(job(), "pure", "sum").decide(seen([0.2] * 4, 2.0))) == 2
    assert wish(Filtered(job(), "pure", "step").decide(seen([0.2] * 4, 2.0))) == 3


def test_the_average_over_the_workers_counts_not_the_busiest() -> None:
    assert wish(Filtered(job(), "pure", "sum").decide(seen([1.0, 0.4, 0.5, 0.5], 2.0))) == 4


def test_up_if_any_metric_is_above_down_only_if_all_are_below() -> None:
    # 4 · 3600 MB of 4096 are 88 % of the memory; the CPU alone would scale in.
    full = seen([0.1] * 4, 2.0)
    full = replace(full, workers=WorkerTable(full.workers.names, {"cpu": 0.1, "memory_mb": 3600.0}))
    assert wish(Filtered(job(), "pure", "sum", metrics="cpu+memory").decide(full)) == 6
    half = replace(full, workers=WorkerTable(full.workers.names, {"cpu": 0.1, "memory_mb": 2400.0}))
    assert wish(Filtered(job(), "pure", "sum", metrics="cpu+memory").decide(half)) == 4
    assert wish(Filtered(job(), "pure", "sum").decide(full)) == 1


def test_workers_under_way_are_counted_unless_it_is_eager() -> None:
    # 2 full workers run and 4 were asked for: 2 / 4 is 50 %, so they are enough.
    starting = seen([1.0, 1.0], 2.0, asked=3)
    assert wish(Filtered(job(), "pure", "sum").decide(starting)) == 3
    # 2 / 0.6 = 3.3: 4 workers, whatever is under way.
    assert wish(Filtered(job(), "pure", "eager").decide(starting)) == 4
    # Never fewer than asked for, while those that run are full.
    assert wish(Filtered(job(), "pure", "eager").decide(seen([1.0], 2.0, asked=9))) == 9


def test_it_decides_every_two_seconds_and_sees_every_sample() -> None:
    policy = Filtered(job(), "pure", "step")
    decisions = [policy.decide(seen([1.0], 0.5 * tick)) for tick in range(1, 10)]
    assert [wish(each) for each in decisions] == [2, 1, 1, 1, 2, 1, 1, 1, 2]
    assert decisions[1].reason == "decides every 2 s"


def test_a_jump_of_the_rate_tells_how_many_workers_are_missing() -> None:
    policy = Filtered(job(), a=0.0, b=0.1, noise=0.05)
    for second in range(2, 60, 2):
        policy.decide(seen([0.5, 0.5], second, rate=10.0))
    decision = policy.decide(seen([0.5, 0.5], 60.0, rate=60.0))
    # 50/s more on workers of 10/s are 5 workers' work more: (1 + 5) / 0.6 = 10.
    assert wish(decision) == 10
    assert decision.reason == "filtered cpu 300% of 2 workers is above 80%: 2 become 10"


def test_without_the_cpu_it_says_so_and_keeps_what_runs() -> None:
    policy = Filtered(job())
    for columns in ({}, {"cpu": float("nan")}, {"cpu": [float("nan")] * 2}, {"memory_mb": 512.0}):
        blind = replace(seen([1.0, 1.0], 2.0), workers=WorkerTable(("w1", "w2"), columns))
        decision = policy.decide(blind)
        assert decision.reason == "the workers' cpu is not known: kept at 2"
        assert decision.target == blind.target


def test_a_worker_whose_meter_is_silent_counts_at_the_others_mean() -> None:
    half = replace(seen([1.0, 1.0], 2.0), workers=WorkerTable(("w1", "w2"), {"cpu": [0.9, float("nan")]}))
    # 2 · 0.9 / 0.6 = 3
    assert wish(Filtered(job(), "pure", "sum").decide(half)) == 3


def test_without_workers_it_waits_or_asks_for_the_first() -> None:
    nothing = seen([], 2.0, asked=2)
    assert Filtered(job()).decide(nothing).reason == "no worker runs yet: kept at 2"
    assert wish(Filtered(job()).decide(seen([], 2.0, asked=0))) == 1


def test_limits_are_kept() -> None:
    assert wish(Filtered(job(most=5), "pure", "sum").decide(seen([1.0] * 4, 2.0))) == 5


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("filtered:filter=ekg", "unknown filter 'ekg': did you mean 'ekf'"),
        ("filtered:sizing=sun", "unknown sizing 'sun': did you mean 'sum'"),
        ("filtered:metrics=cpu+disk", "unknown metric 'disk'"),
        ("filtered:upper=0.3", "0 < lower < upper <= 1"),
        ("filtered:dead_s=-1", "dead_s is -1: it must be at least 0"),
        ("filtered:journal=none.jsonl", "no such journal"),
    ],
)
def test_bad_input_is_one_line(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Named.parse(name).build(job())


def wave(noise: float = 0.0, batch: BatchSpec | None = None, tick_s: float = 60.0) -> Scenario:
    shapes = (Sine(50.0, 400.0, 14_400.0), FlashCrowd(200.0, 10_000.0, 120.0))
    load = make_load(shapes, 14_400.0, tick_s, seed=1)
    still = Scenario.constant(rate=1.0, capacity_per_worker=20.0)
    worker = WorkerSpec(start_s=30.0)
    return replace(still, load=load, worker=worker, batch=batch, noise=NoiseSpec(cpu=noise), limits=Limits(1, 64))


def outcome(scenario: Scenario, name: str) -> Score:
    return score(replay(scenario, Named.parse(name).build(scenario.job())), scenario.objective, scenario.price)


@pytest.mark.parametrize("tick_s", [5.0, 60.0])
@pytest.mark.parametrize("batch", [None, BatchSpec(trigger_s=10.0)])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_default_serves_a_day_without_tuning(tick_s: float, batch: BatchSpec | None, noise: float) -> None:
    scenario = wave(noise, batch, tick_s)
    ours, peak = outcome(scenario, "filtered"), outcome(scenario, "static-peak")
    assert ours.violation_share < 0.01
    # Its workers are 60 % busy, those of the peak are full at the peak.
    assert ours.cost < 0.9 * peak.cost
    assert ours.scaling_actions < 40


def test_the_filter_scales_less_often_than_the_raw_load_does() -> None:
    scenario = wave(noise=0.15, tick_s=5.0)
    raw = outcome(scenario, "filtered:filter=pure,sizing=step")
    assert outcome(scenario, "filtered").scaling_actions < 0.5 * raw.scaling_actions


class TestAWarmStart:
    @pytest.fixture
    def journal(self, tmp_path: Path) -> Path:
        """Eight workers of 10/s under 24/s and 56/s by turns, with a meter that is a sample behind."""
        load = make_load((Square(24.0, 56.0, 20.0),), 1200.0, 2.0, seed=0)
        still = Scenario.constant(rate=1.0, capacity_per_worker=10.0, workers_at_start=8)
        scenario = replace(still, load=load, noise=NoiseSpec(cpu=0.02, cpu_late_s=2.0))
        path = tmp_path / "earlier.jsonl"
        header = Header("job", "static", scenario.limits, scenario.objective, scenario.price, scenario.tick_s)
        with JournalWriter.at(path, header) as writer:
            for step in replay(scenario, Named.parse("static:workers=8").build(scenario.job())):
                writer.write(step)
        return path

    def test_begins_with_the_average_number_of_the_last_run(self, journal: Path) -> None:
        decision = Filtered(job(), journal=str(journal)).decide(seen([0.5], 2.0))
        assert (wish(decision), decision.reason) == (8, "warm start: 8 workers, the last run's average")

    def test_knows_what_a_jump_means_from_the_first_one_on(self, journal: Path) -> None:
        policy = Filtered(job(), journal=str(journal))
        policy.decide(seen([0.5], 0.0))
        for second in range(2, 60, 2):
            policy.decide(seen([0.5, 0.5], second, rate=10.0))
        # As above: 1 + 5 workers' work, with the b that the journal taught, 0.1 within a tenth.
        assert wish(policy.decide(seen([0.5, 0.5], 60.0, rate=60.0))) == pytest.approx(10, abs=1)

    def test_an_empty_journal_is_refused_in_one_line(self, journal: Path) -> None:
        journal.write_text(journal.read_text().splitlines()[0] + "\n")
        with pytest.raises(BadInput, match="shows no two steps with the workers' cpu"):
            Filtered(job(), journal=str(journal))


def test_a_restart_that_replays_the_tail_goes_on_alike() -> None:
    scenario = wave(noise=0.1, tick_s=5.0)
    policy = Named.parse("filtered").build(scenario.job())
    steps = list(replay(scenario, policy))
    tail = [step.seen for step in steps if step.seen.time_s > steps[-1].seen.time_s - 2 * policy.memory_s]
    fresh = Named.parse("filtered").build(scenario.job())
    again = [fresh.decide(each) for each in tail]
    late = len(again) // 2
    loads = np.array([[step.decision.signals["load"] for step in steps[-late:]]])
    replayed = np.array([[decision.signals["load"] for decision in again[-late:]]])
    assert np.abs(loads - replayed).max() < 0.02


class TestWhatTheRateTells:
    """b and the meter's lag, while a job runs."""

    def test_before_it_has_learnt_anything_the_capacity_model_tells_how_many_are_missing(self) -> None:
        policy = Filtered(job())
        for second in range(2, 60, 2):
            policy.decide(replace(seen([0.5, 0.5], second, rate=10.0), capacity=20.0, processed=10.0 * second))
        jumped = replace(seen([0.5, 0.5], 60.0, rate=60.0), capacity=20.0, processed=600.0)
        decision = policy.decide(jumped)
        # A steady rate teaches no line. 2 workers do 20/s: one event is 0.1 of a worker, and 50/s more are 5.
        assert decision.signals["b"] == pytest.approx(0.1)
        assert wish(decision) == 10

    def test_a_meter_on_time_does_not_make_it_count_a_jump_twice(self) -> None:
        loads = {}
        for lag in (0.0, 1.0):
            policy = Filtered(job(), a=0.0, b=0.1, noise=0.05, lag=lag)
            for second in range(2, 60, 2):
                policy.decide(seen([0.2, 0.2], second, rate=4.0))
            loads[lag] = policy.decide(seen([0.5, 0.5], 60.0, rate=10.0)).signals["load"]
        assert loads[0.0] == pytest.approx(0.5, abs=0.005)
        assert loads[1.0] > 0.52

    @pytest.mark.parametrize("lag", [-1.0, 6.0])
    def test_a_lag_that_cannot_be_is_one_line(self, lag: float) -> None:
        with pytest.raises(BadInput, match="a meter is 0 to 5 ticks late"):
            Filtered(job(), lag=lag)

    @pytest.mark.parametrize("name", ["ekf-files", "ekf-kafka", "pure-kafka"])
    def test_recorded_live_runs_with_ticks_of_20_s_teach_b_from_the_second_minute_on(self, name: str) -> None:
        policy = Filtered(replace(job(), tick_s=20.0))
        found = []
        for step in Journal.open(LIVE / f"{name}.jsonl"):
            signals = policy.decide(step.seen).signals
            found.append((signals["b"], signals["lag"]))
        # The line alone was 0 for 12 to 21 of these 31 ticks. At its best a worker did 20/s: 0.05 of it for each.
        assert all(b > 0 for b, _ in found)
        assert all(0.005 < b < 0.06 for b, _ in found[4:])
        # 31 ticks are too few to say that the meter is not as late as the paper's.
        assert {lag for _, lag in found} == {1.0}


def test_who_stays_takes_over_what_one_that_leaves_carried_unless_it_is_left_out() -> None:
    loads = {}
    for share in (True, False):
        policy = Filtered(job(), a=0.0, b=0.0, noise=0.3, share=share)
        for second in range(2, 60, 2):
            policy.decide(seen([0.3] * 4, second))
        loads[share] = policy.decide(seen([0.6] * 2, 60.0)).signals["load"]
    assert loads[True] == pytest.approx(0.6, abs=0.01)
    assert loads[False] < 0.4
