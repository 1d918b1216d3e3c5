"""A scale-out that did not help is noticed, and not repeated blindly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from penstock.core.allocation import Knob
from penstock.core.loop import Decision, Step
from penstock.core.observation import Observation
from penstock.models.capacity import linear
from penstock.policies.effect import Ineffective, Stretch, helped
from penstock.policies.naming import Named
from penstock.sim.replay import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import WorkerSpec
from penstock.sim.workloads import Load
from penstock.testing import check_capacity_model

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
        more = 1 if seen.backlog > 600 else 0
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
    steps = list(replay(scenario, Ineffective(Upward(), 120.0)))
    assert counts(steps) == counts(list(replay(scenario, Upward())))
    assert not any("did not help" in step.decision.reason for step in steps)


def test_scaling_that_does_not_help_waits_longer_each_time() -> None:
    scenario = world([49.0] * 60)
    steps = list(replay(scenario, Ineffective(Upward(), 120.0)))
    said = {step.seen.time_s / 60: step.decision.reason for step in steps if "out to" in step.decision.reason}
    # Three workers do all that the sink takes. The rise at minute 2, from 3 to 4, is judged at minute 4, and the next
    # three are made when its 4 minutes are over, and then 8 and 16, each judged after two minutes of its own.
    assert list(said) == [4, 4 + 4 + 2, 10 + 8 + 2, 20 + 16 + 2]
    assert counts(steps) == [3, 4] + [5] * 5 + [6] * 10 + [7] * 18 + [8] * 25
    assert said[4].endswith("(scaling out to 4 did not help, 30/s after 30/s: not again for 240 s at this load)")
    assert said[38].endswith("not again for 1920 s at this load)")
    assert steps[4].decision.reason == steps[5].decision.reason == "more (held: the last scale-out did not help)"
    assert counts(list(replay(scenario, Upward())))[-1] == 62


def test_another_load_sets_it_free() -> None:
    same, more = [49.0] * 20, [49.0] * 10 + [65.0] * 10
    held, free = (counts(list(replay(world(rates), Ineffective(Upward(), 300.0)))) for rates in (same, more))
    # Judged at minute 7, so held for 10 minutes. From minute 11 on 65/s arrive: with three such minutes of the last
    # five the mean is 58.6/s, a fifth more than 49 is 58.8; with four it is 61.8, so minute 14 is free.
    assert held == [3, 4, 5, 6, 7] + [8] * 11 + [9] * 4
    assert free == [3, 4, 5, 6, 7] + [8] * 8 + [9, 10, 11, 12] + [13] * 3


def test_workers_that_start_late_are_judged_from_when_they_came() -> None:
    scenario = replace(world([49.0] * 40), worker=WorkerSpec(start_s=400.0))
    steps = list(replay(scenario, Ineffective(Upward(), 120.0)))
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
    assert Ineffective(Upward(), 100.0).memory_s == 4800.0
