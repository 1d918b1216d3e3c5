"""A search for plans that cost less than the bound and miss nothing: there are none.

Each example is a small world with one of the features that a plan could make use of, and a plan that was the cheapest
one found by changing a good one at random: a worker more or less for some ticks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Knob
from penstock.core.loop import Decision
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Observation
from penstock.core.score import Score, score
from penstock.models.capacity import linear
from penstock.policies.clairvoyant import Clairvoyant, lower_alone
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, WorkerSpec
from penstock.sim.workloads import Load

TRICKS: dict[str, BatchSpec | None] = {
    "continuous": None,
    "batches": BatchSpec(10.0),
    "draining": BatchSpec(10.0, drains=True),
    "draining long batches": BatchSpec(40.0, drains=True),
    "first tasks": BatchSpec(10.0, tasks=4, first_s=0.01),
    "first tasks, draining": BatchSpec(20.0, tasks=3, first_s=0.01, drains=True),
}


class Planned:
    """Asks for what it was told."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self, counts: list[int]) -> None:
        self._counts = counts
        self._at = 0

    def decide(self, seen: Observation) -> Decision:
        self._at += 1
        return Decision(seen.target.resized(self._counts[min(self._at, len(self._counts) - 1)]), "as told")


def world(seed: int, tick_s: float, start_s: float, **changes: Any) -> Scenario:
    """Forty ticks that need one to six workers, with spikes."""
    rng = np.random.default_rng(seed)
    arrivals = rng.gamma(3.0, rng.uniform(0.3, 1.5), size=40) * 50.0 * tick_s
    changes = {"capacity": linear(50.0, 1.0 if changes.get("batch") else 0.0), **changes}
    return replace(
        Scenario.constant(50.0, capacity_per_worker=50.0, workers_at_start=4),
        load=Load.of(np.round(arrivals), tick_s),
        limits=Limits(0, 12),
        objective=Objective(120.0),
        worker=WorkerSpec(start_s=start_s),
        **changes,
    )


def outcome(scenario: Scenario, counts: list[int]) -> Score:
    return score(replay(scenario, Planned(counts)), scenario.objective, scenario.price)


def cheapest_found(scenario: Scenario, counts: list[int], rng: np.random.Generator, tries: int) -> float | None:
    """The cost of the cheapest plan that misses nothing, on the way down from a good one; None: even that misses."""
    best = outcome(scenario, counts)
    if best.violation_share > 0:
        return None
    for _ in range(tries):
        begin, length = int(rng.integers(1, len(counts))), int(rng.integers(1, 6))
        change = int(rng.choice([-2, -1, -1, 1]))
        tried = [
            min(12, max(0, count + change * (begin <= tick < begin + length))) for tick, count in enumerate(counts)
        ]
        found = outcome(scenario, tried)
        if found.violation_share == 0 and found.cost <= best.cost:
            counts, best = tried, found
    return best.cost


@pytest.mark.parametrize("trick", TRICKS)
@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    tick_s=st.sampled_from([10.0, 30.0, 60.0]),
    start_s=st.sampled_from([0.0, 7.0, 20.0, 90.0]),
    billing=st.sampled_from(["second", "second", "hour"]),
)
def test_no_plan_that_misses_nothing_costs_less_than_the_bound(
    trick: str, seed: int, tick_s: float, start_s: float, billing: str
) -> None:
    scenario = world(seed, tick_s, start_s, batch=TRICKS[trick], price=Price(0.10, billing))
    lower, _ = lower_alone(scenario.job())
    plan = [scenario.first_workers, *Clairvoyant(scenario.job()).bound.workers]
    found = cheapest_found(scenario, plan, np.random.default_rng(seed), tries=40)
    assert found is None or found >= lower - 1e-9


def test_first_tasks_of_workers_that_leave_one_after_the_other_come_to_an_end() -> None:
    # They got slower and slower, and the last moment of one took for ever.
    counts = [
        3,
        8,
        9,
        8,
        5,
        1,
        9,
        1,
        9,
        2,
        4,
        3,
        6,
        3,
        3,
        1,
        11,
        3,
        3,
        7,
        2,
        10,
        9,
        4,
        5,
        5,
        9,
        5,
        4,
        8,
        2,
        9,
        5,
        11,
        3,
    ]
    found = outcome(world(6, 30.0, 7.0, batch=TRICKS["first tasks"]), counts)
    assert found.processed > 0


@pytest.mark.parametrize("high", [3, 4, 5])
def test_workers_given_up_as_a_batch_begins_do_not_serve_it_for_nothing(high: int) -> None:
    # Batches begin at 9, 29, 49, … s; the workers are there from 0, 20, 40 … s for 10 s, and serve the batch out.
    batch = BatchSpec(20.0, offset_s=9.0, drains=True)
    scenario = replace(world(1, 10.0, 0.0, batch=batch), load=Load.of(np.full(400, 1500.0), 10.0))
    pulses = outcome(scenario, [4, *[0, high] * 200])
    assert pulses.violation_share == 0
    # When draining was for nothing, three of them did it for 0.52 of the bound.
    assert pulses.cost >= lower_alone(scenario.job())[0]


def test_billed_by_the_hour_the_note_says_which_plans_the_bound_is_of() -> None:
    hourly = world(1, 60.0, 90.0, price=Price(0.10, "hour"))
    assert "plans that give up the youngest worker first" in Clairvoyant(hourly.job()).bound.note
    assert "youngest" not in Clairvoyant(replace(hourly, price=Price(0.10)).job()).bound.note
