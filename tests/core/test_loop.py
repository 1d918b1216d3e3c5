"""The loop with a plant that breaks down: what runs stays, it is tried again, and the reasons say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput, PlantError
from penstock.core.loop import Decision, Faults, Step, control
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.policies.guards import Guards
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import PlacedSpec

SCENARIO = Scenario.constant(rate=30.0, capacity_per_worker=10.0, workers_at_start=1)


class Upward:
    """Wants one worker more than was asked for."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def decide(self, seen: Observation) -> Decision:
        return Decision(seen.target.resized(len(seen.target.workers) + 1), "one more")


class Breaks:
    """A simulated plant that cannot be seen, or refuses, at some ticks."""

    knobs = frozenset({Knob.WORKERS})

    def __init__(self, unseen: range = range(0), refuses: range = range(0)) -> None:
        self.plant, self._unseen, self._refuses = SimulatedPlant(SCENARIO), unseen, refuses
        self.tick = 0

    def ticks(self, count: int) -> Iterator[None]:
        for tick, _ in zip(range(1, count + 1), self.plant.ticks(), strict=False):
            self.tick = tick
            yield

    def observe(self) -> Observation | None:
        if self.tick in self._unseen:
            raise PlantError(f"no answer\nat tick {self.tick}")
        return self.plant.observe()

    def apply(self, target: Allocation) -> None:
        if self.tick in self._refuses:
            raise PlantError("the master refuses")
        self.plant.apply(target)


def run(plant: Breaks, count: int, faults: Faults | None = None) -> list[Step]:
    return list(control(plant, Upward(), Limits(1, 8), plant.ticks(count), faults))


def counts(steps: list[Step]) -> list[int]:
    return [len(step.target.workers) for step in steps]


def test_a_plant_that_is_well_adds_nothing_to_the_reasons() -> None:
    steps = run(Breaks(), 3)
    assert counts(steps) == [2, 3, 4]
    assert {step.decision.reason for step in steps} == {"one more"}


def test_what_runs_stays_while_nothing_is_seen_and_the_next_step_says_so() -> None:
    steps = run(Breaks(unseen=range(2, 5)), 6)
    assert [step.seen.time_s for step in steps] == [60.0, 300.0, 360.0]
    assert counts(steps) == [2, 3, 4]
    assert len(steps[1].seen.target.workers) == 2  # nobody changed it meanwhile
    assert [step.decision.reason for step in steps] == [
        "one more",
        "one more (not seen 3 times: no answer at tick 4)",
        "one more",
    ]


def test_a_target_that_is_refused_is_wanted_again_and_the_step_holds_what_was_asked_for_before() -> None:
    steps = run(Breaks(refuses=range(2, 4)), 5)
    assert counts(steps) == [2, 2, 2, 3, 4]
    assert [len(step.decision.target.workers) for step in steps] == [2, 3, 3, 3, 4]
    assert [step.decision.reason for step in steps] == [
        "one more",
        "one more (not applied, tried again every tick: the master refuses)",
        "one more (still not applied)",
        "one more (applied, after 2 refusals)",
        "one more",
    ]


def test_a_plant_unseen_for_long_is_pinned_to_the_safe_count() -> None:
    # The third blind tick is tick 4; it refuses, so the fifth asks again.
    plant, faults = Breaks(unseen=range(2, 7), refuses=range(4, 5)), Faults(failures_max=3, safe_workers=5)
    steps = run(plant, 7, faults)
    assert counts(steps) == [2, 6]
    assert len(steps[1].seen.target.workers) == 5
    assert (faults.unseen, faults.refused) == (0, 0)


def test_a_pause_holds_for_a_plant_that_is_not_seen_too() -> None:
    plant, faults = Breaks(unseen=range(2, 7)), Faults(failures_max=3, safe_workers=5, is_paused=lambda: True)
    steps = run(plant, 7, faults)
    assert len(steps[1].seen.target.workers) == len(steps[0].target.workers) == 2


def test_the_counts_can_be_read_while_nothing_is_seen() -> None:
    plant, faults = Breaks(unseen=range(1, 4)), Faults()
    counted: list[int] = []

    def ticks() -> Iterator[None]:
        for tick in plant.ticks(4):
            counted.append(faults.unseen)
            yield tick

    assert len(list(control(plant, Upward(), Limits(1, 8), ticks(), faults))) == 1
    assert counted == [0, 1, 2, 3]


def test_a_guarded_policy_that_needs_too_much_is_named_and_not_its_guards() -> None:
    class Placing(Upward):
        needs = frozenset({Knob.PLACEMENT})

    guarded = Guards(failures_max=3, cooldown_s=60.0).around(Placing(), SCENARIO.job())
    plant = Breaks()
    with pytest.raises(BadInput, match="Placing needs placement, which this plant cannot change"):
        next(control(plant, guarded, Limits(1, 8), plant.ticks(1)))


class Places:
    """Declares the workers alone, and places operators all the same; or asks for a placement outside the limits."""

    memory_s = 0.0

    def __init__(self, needs: frozenset[Knob], workers: int) -> None:
        self.needs, self._workers = needs, workers

    def decide(self, seen: Observation) -> Decision:
        target = seen.target.resized(self._workers)
        return Decision(replace(target, instances={"job": (target.workers[0].name,)}), "placed")


class TestWhatIsRefusedBeforeThePlant:
    placed = replace(SCENARIO, placed=PlacedSpec())

    def steps(self, policy: Places, most: int) -> list[Step]:
        plant = SimulatedPlant(self.placed)
        return list(control(plant, policy, Limits(1, most), plant.ticks()))[:3]

    def test_a_knob_that_the_policy_does_not_declare_is_not_turned_and_that_is_said(self) -> None:
        steps = self.steps(Places(frozenset({Knob.WORKERS}), 1), 8)
        assert all(step.target.instances == {} for step in steps)
        assert "changes placement, which the policy does not declare in its needs" in steps[0].decision.reason
        assert "still not applied" in steps[1].decision.reason

    def test_a_placement_that_does_not_fit_the_limits_is_refused_and_the_run_goes_on(self) -> None:
        steps = self.steps(Places(frozenset({Knob.WORKERS, Knob.PLACEMENT}), 9), 8)
        assert [len(step.target.workers) for step in steps] == [1, 1, 1]
        assert "a placement on 9 workers does not fit the limits" in steps[0].decision.reason

    def test_one_that_fits_is_applied(self) -> None:
        steps = self.steps(Places(frozenset({Knob.WORKERS, Knob.PLACEMENT}), 2), 8)
        assert steps[-1].target.instances == {"job": ("w1",)}
        assert {step.decision.reason for step in steps} == {"placed"}
