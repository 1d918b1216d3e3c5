"""Alternates, instances and machines chosen together: as good as trying everything, and never worse than the walk."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.models.flow_table import FlowTable
from penstock.solvers.initial import deploy
from penstock.solvers.joint import joint, worth
from penstock.solvers.joint_alternates import Choice, choose, power_of, score_all
from penstock.solvers.layout import Interval, Layout, Machine
from penstock.solvers.lookahead import Offer, Planned, Rules, look_ahead

STEP_S = 300.0
SMALL = Offer("small", cores=1, speed=1.0, price=0.06, start_s=0.0)
LARGE = Offer("large", cores=2, speed=2.0, price=0.16, start_s=0.0)
RULES = Rules(0.8, 0.9, sigma=0.01, period_s=43200.0, offers=(SMALL, LARGE), machines_max=8)


def layout(flow: Dataflow, rates: list[float], machines: list[Machine], places: list[list[int]]) -> Layout:
    table = FlowTable.of(flow)
    arriving = np.zeros((len(rates), len(table.names)))
    for source in table.sources:
        arriving[:, source] = np.array(rates) * STEP_S
    known = Interval(STEP_S, arriving, np.zeros(len(table.names)))
    return Layout(table, known, machines, places, [0] * len(table.names))


def machine(name: str, speeds: list[float], cores: int = 1, ends: float = np.inf) -> Machine:
    return Machine(name, "small", cores, np.array(speeds) * STEP_S, 0.06, ends)


def chain(rng: np.random.Generator, operators: int) -> Dataflow:
    """Cheaper alternates are worth less, and pass a little more or less on."""

    def kinds() -> tuple[Alternate, ...]:
        costs_s = sorted(rng.uniform(0.2, 1.0, int(rng.integers(1, 4))), reverse=True)
        return tuple(
            Alternate(f"a{n}", float(cost_s), float(rng.uniform(0.8, 1.2)), 1 - 0.15 * n)
            for n, cost_s in enumerate(costs_s)
        )

    return Dataflow(
        tuple(Operator(f"o{n}", after=(f"o{n - 1}",) if n else (), alternates=kinds()) for n in range(operators))
    )


def covers(speeds: list[float], power: list[float]) -> bool:
    """Is there a way to give each core to one operator so that all have what they need?"""
    for given_to in itertools.product(range(len(power)), repeat=len(speeds)):
        has = [0.0] * len(power)
        for speed, place in zip(speeds, given_to, strict=True):
            has[place] += speed
        if all(has[place] >= power[place] * (1 - 1e-9) for place in range(len(power))):
            return True
    return False


def best_of_all(world: Layout, rules: Rules) -> float:
    """The most that one choice for the whole interval is worth: all alternates, all machines, all ways to place."""
    table, steps = world.table, world.known.steps
    arriving = world.known.arriving.mean(axis=0) / STEP_S * rules.low
    here = [float(each.core_s[0] / STEP_S) for each in world.machines for _ in range(each.cores)]
    rents = sorted(itertools.product(range(4), repeat=2), key=lambda n: n[0] * SMALL.price + n[1] * LARGE.price)
    found = -np.inf
    for active in itertools.product(*(range(len(each)) for each in table.values)):
        messages, power = 0.0, []
        for place, number in enumerate(active):
            messages = float(arriving[0]) if place == 0 else messages
            power.append(messages * table.costs_s[place][number])
            messages *= table.selectivities[place][number]
        value = sum(table.values[place][number] for place, number in enumerate(active)) / len(active)
        for small, large in rents:
            cores = here + [1.0] * small + [2.0] * 2 * large
            if len(cores) >= len(power) and covers(cores[:8], power):
                dollars = (small * SMALL.price + large * LARGE.price) * steps * STEP_S / 3600.0
                found = max(found, value * steps * STEP_S / rules.period_s - rules.sigma * dollars)
                break
    return found


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_small_plans_are_worth_what_the_best_of_all_is(seed: int, operators: int, owned: int) -> None:
    rng = np.random.default_rng(seed)
    flow = chain(rng, operators)
    machines = [machine(f"w{n}", [float(rng.uniform(0.5, 1.2))] * 2) for n in range(owned)]
    places: list[list[int]] = [[n] if n < owned else [] for n in range(operators)]
    world = layout(flow, [float(rng.uniform(0.5, 2.5))] * 2, machines, places)
    rules = replace(RULES, sigma=float(rng.uniform(0.05, 1.0)))
    found, best = joint(world, rules), best_of_all(world, rules)
    assert found.feasible
    # In units of what the dearest machine costs for these ten minutes.
    gap = (best - worth(world, rules, found)) / (rules.sigma * LARGE.price * 600 / 3600)
    print("GAP", operators, owned, round(gap, 4))
    assert gap <= 5.0
