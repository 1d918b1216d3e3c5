"""Alternates, instances and machines of an interval chosen together, in place of the walk of `lookahead`."""

from __future__ import annotations

import numpy as np

from penstock.models.flow_table import Floats
from penstock.solvers.initial import deploy
from penstock.solvers.joint_stage import JointStage
from penstock.solvers.layout import Layout, Stage
from penstock.solvers.lookahead import SURE, Planned, Rules, look_ahead, planned

STAGE_STEPS = 2
"""Steps that share alternates and instances; a plan is made every other step."""
LEVELS, LEVELS_MOST = 3, 8
"""How often a stage is planned for another throughput; the second where there is too little for what is asked."""
NEAR = 1.004
"""So little more than what is asked is not tried for less."""


def joint(layout: Layout, rules: Rules) -> Planned:
    """The better of two plans, by `worth`: one in stages, and that of Algorithm 1.

    In each stage alternates are chosen by what they and all behind them cost in cores, machines by the power they
    give for a dollar; what is paid for is free. All streams are served alike.
    """
    first = _fresh(layout)
    walked = look_ahead(first, rules) if any(layout.places) else deploy(first, rules)
    return max((walked, _staged(_fresh(layout), rules)), key=lambda each: _rank(layout, rules, each))


def worth(layout: Layout, rules: Rules, plan: Planned) -> float:
    """Γ less σ times dollars, over the interval.

    An hour that ends later than the interval counts for its part in it, as the rest of it is there to be used.
    """
    steps, table = layout.known.steps, layout.table
    hours = layout.known.step_s / 3600.0
    ends = [*(each.step for each in plan.stages[1:]), steps]
    value, last = 0.0, dict[str, int]()
    for stage, end in zip(plan.stages, ends, strict=True):
        value += (end - stage.step) * _value(layout, stage)
        last |= {name: end for where in stage.instances.values() for name in where}
    machines = {each.name: each for each in (*layout.machines, *plan.launches)}
    dollars = 0.0
    for name, end in last.items():
        machine = machines[name]
        begin = machine.ends if machine.launch is None else machine.launch
        if begin < end:
            dollars += machine.price * (1.0 if rules.by_interval else (steps - begin) * hours)
    return value / len(table.names) * layout.known.step_s / rules.period_s - rules.sigma * dollars


def _value(layout: Layout, stage: Stage) -> float:
    """Of all alternates of a stage, added up."""
    table = layout.table
    return sum(
        values[kinds.index(stage.alternate[name])] if name in stage.alternate else values[0]
        for name, kinds, values in zip(table.names, table.alternates, table.values, strict=True)
    )


def _rank(layout: Layout, rules: Rules, plan: Planned) -> tuple[bool, bool, float]:
    """Those that keep the throughput by their worth; of others, whoever delivers most with a home for everybody."""
    placed = all(all(stage.instances.values()) for stage in plan.stages)
    return placed, plan.feasible, worth(layout, rules, plan) if plan.feasible else plan.relative


def _staged(layout: Layout, rules: Rules) -> Planned:
    """Stage by stage, each with what the one before leaves."""
    ends = np.array([each.ends for each in layout.machines])
    for begin in range(0, layout.known.steps, STAGE_STEPS):
        layout.advance(begin)
        layout, ends = _leveled(layout, rules, min(begin + STAGE_STEPS, layout.known.steps), ends)
    return planned(layout, rules)


def _leveled(layout: Layout, rules: Rules, end: int, ends: Floats) -> tuple[Layout, Floats]:
    """One stage, with as much power as it takes to have delivered, at its end, what is asked and little more."""
    level, active, found = rules.low, None, list[tuple[bool, float, Layout, Floats]]()
    for attempt in range(LEVELS_MOST):
        trial = layout.branch()
        stage = JointStage(trial, rules, (level, end), ends)
        # Alternates that were chosen are kept: levels differ by their cores alone.
        active, cover = stage.best(active)
        paid = stage.apply(active, cover)
        relative = trial.totals().relative(0, end)
        is_kept = relative >= rules.low * (1 - SURE)
        found.append((is_kept, -level if is_kept else relative, trial, paid))
        if (is_kept and relative <= rules.low * NEAR) or (attempt + 1 >= LEVELS and cover.is_met):
            break
        more = rules.low / max(relative, 1e-9) * (1 + 1e-6) if cover.is_met else stage.part_met(cover)
        level *= float(np.clip(more, 0.5, 1.25))
    _, _, trial, paid = max(found, key=lambda each: each[:2])
    return trial, paid


def _fresh(layout: Layout) -> Layout:
    """The same deployment, not yet planned."""
    return Layout(
        layout.table, layout.known, list(layout.machines), [list(each) for each in layout.places], list(layout.active)
    )
