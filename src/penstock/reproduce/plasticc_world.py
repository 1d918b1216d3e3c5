"""Paper 3's experiment: ten stages of three operators, three streams, machines that vary, twelve hours."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.loop import Step
from penstock.core.objective import Limits, Objective, Price, application_value, deviations, profit, relative_throughput
from penstock.core.score import Scorer
from penstock.models.capacity import linear
from penstock.policies.plasticc_price import value_coefficient
from penstock.sim.scenario import Scenario
from penstock.sim.specs import PlacedSpec, WorkerSpec
from penstock.sim.variability import EC2_CORES, GeneratedSpeeds
from penstock.sim.workloads import Load

LEAST, EPSILON = 0.8, 0.05
TICK_S, STEP_S, PERIOD_S = 60.0, 300.0, 43200.0
STAGES, STREAMS = 10, 3
LOW, HIGH, NOISE = 2.0, 75.0, 0.2
# Not in the paper; the authors' earlier public simulator has such kinds: name, cores, speed of a core, price an hour.
KINDS = (
    ("m1.small", 1.0, 1.0, 0.06),
    ("m1.medium", 1.0, 2.0, 0.12),
    ("m1.large", 2.0, 2.0, 0.24),
    ("m1.xlarge", 4.0, 2.0, 0.48),
    ("m3.xlarge", 4.0, 3.25, 0.50),
    ("m3.2xlarge", 8.0, 3.25, 1.00),
)
# One, two or three alternates: 1.5 of each operator on average, 45 in all.
HOW_MANY = (0.6, 0.3, 0.1)
COSTS_S, LEAST_VALUE = (0.1, 0.6), 0.6
# What slow machines, whole cores and started hours add to the cost of rated power: 1.3 in a first run of PLAStiCC.
OVERHEAD = 1.3
# How far the product of selectivities along a stream may go from 1.
SPREAD = 1.5


def dataflow(rng: np.random.Generator) -> Dataflow:
    """Ten stages of three operators; cheaper alternates are worth less, and pass a little more or less on."""
    operators, passed = [], [1.0] * STREAMS
    for stage in range(STAGES):
        for stream in range(STREAMS):
            after = (f"s{stage - 1}-{stream}",) if stage else ()
            count = int(rng.choice(3, p=HOW_MANY)) + 1
            low, high = 1 / SPREAD / passed[stream], SPREAD / passed[stream]
            sent = float(np.clip(rng.uniform(0.8, 1.25), low, high))
            passed[stream] *= sent
            operators.append(Operator(f"s{stage}-{stream}", after=after, alternates=_alternates(count, sent, rng)))
    return Dataflow(tuple(operators))


def _alternates(count: int, sent: float, rng: np.random.Generator) -> tuple[Alternate, ...]:
    costs_s = sorted(rng.uniform(*COSTS_S, count), reverse=True)
    values = [1.0, *sorted(rng.uniform(LEAST_VALUE, 1.0, count - 1), reverse=True)]
    factors = [1.0, *rng.uniform(0.95, 1.05, count - 1)]
    rows = zip(costs_s, values, factors, strict=True)
    return tuple(
        Alternate(f"a{number}", float(cost_s), sent * float(factor), float(value))
        for number, (cost_s, value, factor) in enumerate(rows)
    )


def load(flow: Dataflow, rng: np.random.Generator) -> Load:
    """The rising half of a day's wave at each source, with noise of up to 20 % drawn anew each minute."""
    ticks = round(PERIOD_S / TICK_S)
    wave = LOW + (HIGH - LOW) * (1 - np.cos(np.pi * np.arange(ticks) / ticks)) / 2
    by_source = {name: wave * rng.uniform(1 - NOISE, 1 + NOISE, ticks) * TICK_S for name in flow.sources}
    return replace(Load.of(np.sum(list(by_source.values()), axis=0), TICK_S), by_source=by_source)


def world(seed: int, start_s: float = 60.0, shed: bool = False) -> Scenario:
    """One repeat: dataflow, streams and machines of their own."""
    rng = np.random.default_rng((3, seed))
    flow = dataflow(rng)
    kinds = [
        WorkerSpec(name, cores=cores, speed=speed, per_hour=price, start_s=start_s)
        for name, cores, speed, price in KINDS
    ]
    return Scenario(
        f"plasticc-{seed}",
        load(flow, rng),
        flow,
        linear(1.0 / flow.demand_s),
        Limits(1, 150),
        objective=Objective(throughput=LEAST),
        price=Price(0.06, "hour"),
        worker=kinds[0],
        kinds=tuple(kinds[1:]),
        placed=PlacedSpec(own_core=True, counts=True, shed=shed),
        speeds=GeneratedSpeeds(EC2_CORES, seed),
        workers_at_start=1,
        seed=seed,
    )


def sigma_of(scenario: Scenario) -> float:
    """σ of a repeat, the same for every policy."""
    job = scenario.job()
    assert job.oracle is not None
    return value_coefficient(job, LEAST * job.oracle.mean(job.tick_s), PERIOD_S) / OVERHEAD


def power_cost(scenario: Scenario) -> float:
    """Dollars for the power, at the mean speed, with which the best alternates serve what is asked of a repeat."""
    flow, ticks = scenario.dataflow, round(PERIOD_S / TICK_S)
    rates = {name: float(counts.sum()) / PERIOD_S for name, counts in scenario.load.by_source.items()}
    power = LEAST * sum(rate * flow.costs_s[name] for name, rate in flow.rates(rates).items())
    assert scenario.speeds is not None
    speeds = [scenario.speeds.speed(f"w{n}", tick * TICK_S) for n in range(40) for tick in range(0, ticks, 10)]
    price = min(price / (cores * speed) for _, cores, speed, price in KINDS)
    return power * price * PERIOD_S / 3600.0 / float(np.mean(speeds))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run in the paper's terms."""

    value: float
    """Γ"""
    cost: float
    """μ, in dollars"""
    relative: float
    """Ω over the period"""
    profit: float
    """Θ"""
    unstable: int
    """χ: steps of five minutes with Ω outside of [Ω̂, Ω̂ + 2ε]."""
    below: int
    """Steps with Ω below Ω̂."""
    printed: int
    """Steps with Ω outside of Ω̂ ± ε, as the paper writes the band."""
    actions: int
    launched: int


def outcome(steps: Sequence[Step], scenario: Scenario, sigma: float) -> Outcome:
    """What a run came to; values are those of the alternates that were in force, minute by minute."""
    scorer = Scorer(scenario.objective, scenario.price, scenario.job().kinds)
    flow, values, now, value = scenario.dataflow, [], None, 0.0
    for step in steps:
        scorer.add(step)
        if step.seen.target.alternate != now:
            now = step.seen.target.alternate
            value = application_value(flow.switched(now))
        values.append(value)
    scored, last = scorer.result(), steps[-1].seen
    per = round(STEP_S / TICK_S)
    ends = [(0.0, 0.0), *((step.seen.delivered, step.seen.deliverable) for step in steps[per - 1 :: per])]
    relatives = [
        relative_throughput(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(ends)
    ]
    value = sum(values) / len(values)
    return Outcome(
        value,
        scored.cost,
        relative_throughput(last.delivered, last.deliverable) or 0.0,
        profit(value, scored.cost, sigma),
        deviations(relatives, LEAST, LEAST + 2 * EPSILON),
        deviations(relatives, LEAST, np.inf),
        deviations(relatives, LEAST - EPSILON, LEAST + EPSILON),
        scored.scaling_actions,
        scored.workers_started,
    )
