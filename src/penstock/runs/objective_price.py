"""What a tight objective costs: the default policy once more, with a bound that leaves time to start a worker."""

from __future__ import annotations

from dataclasses import replace

from penstock.core.objective import Objective
from penstock.core.score import Score, score
from penstock.core.units import show_duration
from penstock.policies.deadline import START_PART
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario

WORTH_SAYING = 0.05


def price_of_bound(scenario: Scenario, run: Score, named: Named, bare: bool = False) -> str:
    """One sentence, where the bound is shorter than a start and a longer one would be cheaper; else nothing."""
    bound_s, start_s = scenario.objective.latency_s, scenario.worker.start_range_s[1]
    if bound_s is None or bound_s >= start_s:
        return ""
    longer = Objective(30.0 * -(-start_s // (30.0 * START_PART)))
    world = replace(scenario, objective=longer)
    job = world.job()
    other = score(replay(world, named.build(job, {} if bare else named.rules(job))), longer, world.price)
    saved = 1 - other.cost / run.cost
    if saved < WORTH_SAYING:
        return ""
    why = f"a worker takes {show_duration(start_s)} to start, so what may come has to be paid for beforehand"
    missed = f"missed {other.violation_share:.2%} of the time instead of {run.violation_share:.2%}"
    return f"{longer} would cost {saved:.0%} less with {named.name}, {missed}: {why}"
