"""How long look-ahead planning takes: one plan for 30 and 300 operators, and a run of twelve hours.

`--trace FILE`: what real forecasters are worth on a recorded load of minutes, against reactive planning.
`--fresh`: the paper's world on four repeats that no planner was written on.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import fmean, median

import numpy as np

from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.objective import Limits, Objective, Price
from penstock.models.capacity import linear
from penstock.models.flow_table import FlowTable
from penstock.policies.plasticc_price import value_coefficient
from penstock.policies.registry import Named
from penstock.reproduce.plasticc_runs import COMPARED, JOINT, run_one
from penstock.reproduce.plasticc_world import OVERHEAD, Outcome, outcome, sigma_of, world
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.series import read_series
from penstock.sim.specs import PlacedSpec, WorkerSpec
from penstock.sim.variability import EC2_CORES, GeneratedSpeeds
from penstock.sim.workloads import Load
from penstock.solvers.joint import joint
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


KINDS = (WorkerSpec("small", cores=2.0, start_s=120.0), WorkerSpec("large", 8.0, per_hour=0.36, start_s=120.0))
EXACT, ALL = Alternate("exact", 0.02), Alternate("all", 0.03)
FLOW = Dataflow(
    (
        Operator("parse", 0.004),
        Operator(
            "visitors", after=("parse",), alternates=(Alternate("exact", 0.02), Alternate("sketch", 0.006, 1, 0.9))
        ),
        Operator("patterns", after=("parse",), alternates=(Alternate("all", 0.03), Alternate("hot", 0.01, 0.6, 0.8))),
        Operator("store", 0.002, after=("visitors", "patterns")),
    )
)
REAL = {
    "reactive": "plasticc:forecast=caf,interval_s=300",
    "joint, reactive": "plasticc:forecast=caf,interval_s=300,planner=joint",
    "WAAF": "plasticc:forecast=waaf",
    "Holt-Winters, 30 min": "plasticc:forecast=holt-winters,interval_s=1800,plan_s=300",
    "joint, Holt-Winters, 30 min": "plasticc:forecast=holt-winters,interval_s=1800,plan_s=300,planner=joint",
    "seasonal naive, 30 min": "plasticc:forecast=seasonal-naive,interval_s=1800,plan_s=300",
    "oracle, 30 min": "plasticc:forecast=oracle,interval_s=1800,plan_s=300",
    "joint, oracle, 30 min": "plasticc:forecast=oracle,interval_s=1800,plan_s=300,planner=joint",
}


def real(path: Path, days: tuple[int, int] = (38, 45)) -> None:
    """Real forecasters on a recorded load: a week of it, by days since it begins, after two days to learn from."""
    whole = read_series(path)
    first, last = ((day * 86400.0) / whole.tick_s for day in (days[0] - 2, days[1]))
    load = Load.of(whole.arrivals[int(first) : int(last)], whole.tick_s)
    scenario = Scenario(
        path.stem,
        load,
        FLOW,
        linear(1.0 / FLOW.demand_s),
        Limits(1, 150),
        objective=Objective(throughput=0.8),
        price=Price(0.10, "hour"),
        worker=KINDS[0],
        kinds=KINDS[1:],
        # What waits in the day would be served at night, and no policy would miss anything: it is given up instead.
        placed=PlacedSpec(own_core=True, counts=True, shed=True),
        speeds=GeneratedSpeeds(EC2_CORES, 1),
        workers_at_start=1,
    )
    job = scenario.job()
    period_s = len(load.arrivals) * load.tick_s
    sigma = value_coefficient(job, 0.8 * float(load.arrivals.mean()) / load.tick_s, period_s) / OVERHEAD
    print(f"{path.stem}, days {days[0] - 2} to {days[1]}: value, cost, throughput, profit, steps out of band, below")
    for name, policy in REAL.items():
        built = Named.parse(f"{policy},sigma={sigma:.9g},period_s={period_s:.0f}").build(job, {})
        found = outcome(list(replay(scenario, built)), scenario, sigma)
        figures = f"{found.value:.3f} {found.cost:.1f} {found.relative:.3f} {found.profit:.3f}"
        print(f"  {name}: {figures} {found.unstable} {found.below} of {int(period_s / 300)}", flush=True)


FRESH = range(10, 14)
PLANNED = {**{name: COMPARED[name] for name in ("PLAStiCC 30 min", "PLAStiCC 60 min", "reactive")}, **JOINT}
PLANNED |= {name: COMPARED[name] for name in ("CAF", "WPA", "two-stage")}


def fresh() -> None:
    """Each at its own target."""
    print(
        f"repeats {FRESH[0]} to {FRESH[-1]}: value, cost, throughput, profit, steps out of band; profit of each repeat"
    )
    for name, policy in PLANNED.items():
        rows = [Outcome(**run_one({"policy": policy, "start_s": 60.0, "seed": seed})) for seed in FRESH]
        value, cost, relative, profit, unstable = (
            fmean(getattr(row, key) for row in rows) for key in ("value", "cost", "relative", "profit", "unstable")
        )
        each = " ".join(f"{row.profit:.3f}" for row in rows)
        print(f"  {name}: {value:.3f} {cost:.1f} {relative:.3f} {profit:.3f} {unstable:.0f}; {each}", flush=True)


def main(*options: str) -> None:
    if options == ("--fresh",):
        return fresh()
    if options:
        return real(Path(options[-1]))
    return planning()


def planning() -> None:
    rules = Rules(0.8, 0.9, 0.002, 43200.0, (OFFER,), machines_max=5000)
    for operators, machines, most in ((30, 100, "20 ms"), (300, 1000, "2 s")):
        what = f"{operators} operators, {STEPS} steps, {machines} machines"
        for name, plan, asked in (("a plan", look_ahead, f"; asked: {most}"), ("a joint plan", joint, "")):
            plan(layout(operators, machines, 0), rules)  # compiles
            taken, used = [], []
            for seed in range(1, 8):
                begun_layout = layout(operators, machines, seed)
                begun, before = time.perf_counter(), time.process_time()
                planned = plan(begun_layout, rules)
                taken.append(time.perf_counter() - begun)
                used.append(time.process_time() - before)
            times = f"{median(taken) * 1000:.1f} ms ({median(used) * 1000:.1f} ms of CPU)"
            print(f"{name} for {what}: {times}, {len(planned.launches)} launches{asked}")
    taken = []
    for seed in range(3):
        scenario = world(seed)
        name = f"plasticc:forecast=oracle,interval_s=1800,sigma={sigma_of(scenario):.9g}"
        policy = Named.parse(name).build(scenario.job(), {})
        begun = time.perf_counter()
        ticks = sum(1 for _ in replay(scenario, policy))
        taken.append(time.perf_counter() - begun)
    print(f"twelve hours, {ticks} ticks, 72 plans: {median(taken):.2f} s; asked: 2 s")
