"""A policy on a simulated plant, from the first interval to the last."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.loop import Policy, Step, control
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario


def replay(scenario: Scenario, policy: Policy) -> Iterator[Step]:
    """The steps of one run; give them to a Scorer, a journal, a report, or all of them."""
    plant = SimulatedPlant(scenario)
    return control(plant, policy, scenario.limits, plant.ticks())
