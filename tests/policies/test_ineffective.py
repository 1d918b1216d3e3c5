"""A scale-out that did not help is noticed, and not repeated blindly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from penstock.core.allocation import Allocation, Knob
from penstock.core.loop import Decision, Step
from penstock.core.observation import Observation
from penstock.models.capacity import linear
from penstock.policies.ineffective import Ineffective, Stretch, helped
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, NoiseSpec, WorkerSpec
from penstock.sim.workloads import Load, Sine, make_load
from penstock.testing import check_capacity_model

JOB = Scenario.constant(rate=1.0, capacity_per_worker=10.0).job()

BEFORE = Stretch(workers=4, arriving=100.0, processing=80.0, backlog=5000.0, load=1.0)


@pytest.mark.parametrize(
    ("after", "good"),
    [
        # From 4 to 5 workers a quarter more is due; a tenth of that is 2.5 %: 80 · 1.025 = 82.
        (Stretch(5, 100.0, 82.1, 9000.0, 1.0), True),
        (Stretch(5, 100.0, 81.9, 9000.0, 1.0), False),
        (Stretch(5, 100.0, 80.0, 4499.0, 1.0), True),
        (Stretch(5, 100.0, 80.0, 4501.0, 1.0), False),
        (Stretch(5, 100.0, 80.0, 9000.0, 0.8), False),  # workers idle, and the job falls behind all the same
        (Stretch(4, 100.0, 80.0, 9000.0, 1.0), True),  # the workers are gone again: nothing was tried
    ],
    ids=["more done", "hardly more", "less waits", "hardly less", "idle workers", "none added"],
)
def test_it_helped_if_more_is_done_or_less_waits(after: Stretch, good: bool) -> None:
    assert helped(BEFORE, after) == good


def test_where_the_job_keeps_up_less_load_is_help() -> None:
    # 4 → 5 workers at 80 %: 64 % is due, a fall of 16 points; a tenth of that is 1.6 points.
    before = Stretch(workers=4, arriving=100.0, processing=100.0, backlog=0.0, load=0.8)
    assert helped(before, Stretch(5, 100.0, 100.0, 0.0, 0.783))
    assert not helped(before, Stretch(5, 100.0, 100.0, 0.0, 0.785))
    # Load rises, and what is done lags by a batch; events wait 36 s before and 33 s after.
    rising = Stretch(workers=3, arriving=20.0, processing=21.8, backlog=720.0, load=0.71)
    assert helped(rising, Stretch(4, 23.6, 22.0, 779.0, 0.55))
    assert not helped(rising, Stretch(4, 23.6, 22.0, 860.0, 0.55))


@dataclass(frozen=True)
class Flat:
    """Workers of 10/s each, of which a slow sink lets only so many through."""

    most: int

    def capacity(self, workers: float) -> float:
        return 10.0 * min(workers, self.most)

    def fixed_s(self, workers: float) -> float:
        return 0.0

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        return self.capacity(workers)


class Upward:
    """Wants one worker more as long as something waits."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def decide(self, seen: Observation) -> Decision:
        more = 1 if seen.backlog and seen.backlog > 600 else 0
        return Decision(seen.target.resized(len(seen.target.workers) + more), "more" if more else "enough")


def world(rates: list[float], most: int = 3, at_start: int = 2) -> Scenario:
    still = Scenario.constant(rate=1.0, capacity_per_worker=10.0, workers_at_start=at_start)
    return replace(still, load=Load.of(np.array(rates) * 60.0, 60.0), capacity=Flat(most), believed=linear(10.0))


def counts(steps: list[Step]) -> list[int]:
    return [len(step.target.workers) for step in steps]


def test_the_fake_sink_keeps_the_contract() -> None:
    check_capacity_model(Flat(3))


def test_scaling_that_helps_goes_on() -> None:
    # 49/s on workers of 10/s: behind at once, and each worker helps until there are five.
    scenario = world([49.0] * 30, most=99)
    steps = list(replay(scenario, Ineffective(Upward(), 120.0, JOB)))
    assert counts(steps) == counts(list(replay(scenario, Upward())))
    assert not any("did not help" in step.decision.reason for step in steps)


def test_scaling_that_does_not_help_waits_longer_each_time() -> None:
    scenario = world([49.0] * 60)
    steps = list(replay(scenario, Ineffective(Upward(), 120.0, JOB)))
    said = {step.seen.time_s / 60: step.decision.reason for step in steps if "out to" in step.decision.reason}
    # Three workers do all that the sink takes. Two minutes pass before there is anything to compare with; the rise at
    # minute 3, from 4 to 5, is judged at minute 5. The next three are made when its 4 minutes are over, and then 8
    # and 16, each judged after two minutes of its own.
    assert list(said) == [5, 5 + 4 + 2, 11 + 8 + 2, 21 + 16 + 2]
    assert counts(steps) == [3, 4, 5] + [6] * 5 + [7] * 10 + [8] * 18 + [9] * 24
    assert said[5].endswith("(scaling out to 5 did not help, 30/s after 30/s: not again for 240 s at this load)")
    assert said[39].endswith("not again for 1920 s at this load)")
    assert steps[5].decision.reason == steps[6].decision.reason == "more (held: the last scale-out did not help)"
    assert counts(list(replay(scenario, Upward())))[-1] == 62


def test_another_load_sets_it_free() -> None:
    same, more = [49.0] * 20, [49.0] * 10 + [65.0] * 10
    held, free = (counts(list(replay(world(rates), Ineffective(Upward(), 300.0, JOB)))) for rates in (same, more))
    # Judged at minute 8, so held for 10 minutes. From minute 11 on 65/s arrive: with three such minutes of the last
    # five the mean is 58.6/s, a fifth more than 49 is 58.8; with four it is 61.8, so minute 14 is free.
    assert held == [3, 4, 5, 6, 7, 8] + [9] * 11 + [10] * 3
    assert free == [3, 4, 5, 6, 7, 8] + [9] * 7 + [10, 11, 12, 13] + [14] * 3


class Keeps:
    """Wants what there is."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def decide(self, seen: Observation) -> Decision:
        return Decision(seen.target, "as it is")


def test_workers_are_not_judged_by_the_batch_that_waits_for_their_first_tasks() -> None:
    guard, said = Ineffective(Keeps(), 60.0, JOB), []
    # Ticks of 20 s. Two workers do 10/s of 15/s; two more are asked for at 80 s, and seen to run at 120 s. A batch that
    # began meanwhile waits for them until 180 s; the next one does 1600 events in a minute.
    done = [200, 400, 600, 800, 1000, 1200, 1200, 1200, 1400, 1400, 1400, 3000, 3000]
    for tick, processed in enumerate(done, 1):
        arrived, running, target = (
            300.0 * tick,
            Allocation.of(2 if tick < 6 else 4),
            Allocation.of(2 if tick < 5 else 4),
        )
        waits = arrived - processed
        seen = Observation(20.0 * tick, 20.0, arrived, processed, 0, 0, 15.0, waits, 0, 0, running, target)
        said.append(guard.decide(seen).reason)
    assert said == ["as it is"] * len(done)


@pytest.mark.parametrize("name", ["threshold", "threshold:cooldown_s=60", "mst"])
@pytest.mark.parametrize(("trigger_s", "tick_s"), [(10.0, 5.0), (30.0, 7.0), (70.0, 10.0)])
def test_batches_that_end_between_ticks_are_not_mistaken_for_a_scale_out_in_vain(
    name: str, trigger_s: float, tick_s: float
) -> None:
    load = make_load((Sine(20.0, 200.0, 7200.0),), 14400.0, tick_s, seed=0)
    batch, noise = BatchSpec(trigger_s, rows_max=300.0 * trigger_s), NoiseSpec(cpu=0.05, rate=0.05)
    scenario = replace(world([1.0], most=99), load=load, batch=batch, noise=noise, worker=WorkerSpec(start_s=60.0))
    policy = Ineffective(Named.parse(name).build(scenario.job()), max(120.0, 5 * trigger_s), JOB)
    steps = list(replay(scenario, policy))
    assert sum(len(b.target.workers) > len(a.target.workers) for a, b in pairwise(steps)) >= 4
    assert [step.decision.reason for step in steps if "did not help" in step.decision.reason] == []


def test_a_job_that_stands_still_is_noticed_though_no_batch_ends() -> None:
    # Nothing is let through after minute 5, as in a batch that never ends. Eight spans of patience are 16 minutes.
    policy, target, said = Ineffective(Upward(), 120.0, JOB), Allocation.of(2), {}
    for minute in range(1, 60):
        processed = 600.0 * min(minute, 5)
        backlog = 3000.0 * minute - processed
        seen = Observation(
            60.0 * minute, 60.0, 3000.0 * minute, processed, 0, 0, 50.0, backlog, 0.0, 0.0, target, target
        )
        decision = policy.decide(seen)
        target = decision.target
        if "out to" in decision.reason:
            said[minute] = decision.reason
    # The trial of minute 3 is judged by minutes 4 and 5, in vain; the next is made 4 minutes later, at minute 9.
    assert list(said)[:2] == [5, 9 + 16]
    assert said[25].endswith("did not help, no batch ended after 10/s: not again for 480 s at this load)")


def test_workers_that_start_late_are_judged_from_when_they_came() -> None:
    scenario = replace(world([49.0] * 40), worker=WorkerSpec(start_s=400.0))
    steps = list(replay(scenario, Ineffective(Upward(), 120.0, JOB)))
    first = next(step for step in steps if "did not help" in step.decision.reason)
    assert first.seen.time_s >= 120.0 + 400.0 + 120.0


def test_a_threshold_policy_does_not_climb_to_the_limit_before_a_slow_sink() -> None:
    scenario = world([49.0] * 30)
    climbing, calm = (
        counts(list(replay(scenario, Named.parse(name).build(scenario.job()))))
        for name in ("threshold", "threshold:effect_s=120,cooldown_s=180")
    )
    # At full load it wants the workers over √(0.8 · 0.5) = 0.632: 2 → 4 → 7 → 12 → 19 → 31 → 50 → 64.
    assert climbing[:8] == [4, 7, 12, 19, 31, 50, 64, 64]
    assert calm[-1] == 19


def test_it_remembers_all_waits_that_lead_to_the_longest() -> None:
    assert Ineffective(Upward(), 100.0, JOB).memory_s == 4800.0


def test_a_scale_out_is_judged_without_the_backlog_where_nobody_knows_it() -> None:
    before = Stretch(workers=2, arriving=100.0, processing=80.0, backlog=None, load=1.0)
    assert not helped(before, Stretch(3, 100.0, 80.0, None, 0.7))  # no more is done, and it does not keep up
    assert helped(before, Stretch(3, 100.0, 95.0, None, 0.9))
    assert helped(before, Stretch(3, 80.0, 80.0, None, 0.7))  # it keeps up, and workers bear less
