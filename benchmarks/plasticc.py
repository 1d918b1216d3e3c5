"""How long look-ahead planning takes: one plan for 30 and 300 operators, and a run of twelve hours."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.models.flow_table import FlowTable
from penstock.policies.registry import Named
from penstock.reproduce.plasticc_world import sigma_of, world
from penstock.runs.replayed import replay
from penstock.solvers.layout import Interval, Layout, Machine
from penstock.solvers.lookahead import Offer, Rules, look_ahead

STEPS, STEP_S = 12, 300.0
OFFER = Offer("m3.xlarge", 4, 3.25, 0.5, 60.0)


def layout(operators: int, machines: int, seed: int) -> Layout:
    """Chains of ten, three alternates each, on machines of four cores that vary; the load rises by a half."""
    rng = np.random.default_rng(seed)
    kinds = [Alternate(f"a{n}", 0.5 - 0.15 * n, 1.0, 1 - 0.15 * n) for n in range(3)]
    flow = Dataflow(
        tuple(
            Operator(f"o{n}", after=(f"o{n - 1}",) if n % 10 else (), alternates=tuple(kinds)) for n in range(operators)
        )
    )
    table = FlowTable.of(flow)
    # Three of four cores are used, and serve 0.8 of what comes in the first step.
    each = machines * 3 // operators
    rate = each * 3.25 * 0.8 / 0.5 / 0.8
    arriving = np.zeros((STEPS, operators))
    for source in table.sources:
        arriving[:, source] = rate * np.linspace(1, 1.5, STEPS) * rng.uniform(0.9, 1.1, STEPS) * STEP_S
    found = [
        Machine(f"w{n}", OFFER.kind, 4, 3.25 * rng.uniform(0.5, 1, STEPS) * STEP_S, OFFER.price, float(n % 12))
        for n in range(machines)
    ]
    cores = [machine for _ in range(3) for machine in range(machines)]
    places = [cores[n * each : (n + 1) * each] for n in range(operators)]
    return Layout(table, Interval(STEP_S, arriving, np.zeros(operators)), found, places, [0] * operators)


def main() -> None:
    rules = Rules(0.8, 0.9, 0.002, 43200.0, (OFFER,), machines_max=5000)
    for operators, machines, most in ((30, 100, "20 ms"), (300, 1000, "2 s")):
        look_ahead(layout(operators, machines, 0), rules)  # compiles
        taken = []
        for seed in range(1, 8):
            begun_layout = layout(operators, machines, seed)
            begun = time.perf_counter()
            planned = look_ahead(begun_layout, rules)
            taken.append(time.perf_counter() - begun)
        what = f"{operators} operators, {STEPS} steps, {machines} machines"
        print(f"a plan for {what}: {median(taken) * 1000:.1f} ms ({len(planned.launches)} launches); asked: {most}")
    taken = []
    for seed in range(3):
        scenario = world(seed)
        name = f"plasticc:forecast=oracle,interval_s=1800,sigma={sigma_of(scenario):.9g}"
        policy = Named.parse(name).build(scenario.job(), {})
        begun = time.perf_counter()
        ticks = sum(1 for _ in replay(scenario, policy))
        taken.append(time.perf_counter() - begun)
    print(f"twelve hours, {ticks} ticks, 72 plans: {median(taken):.2f} s; asked: 2 s")
