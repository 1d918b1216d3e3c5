"""The first deployment (paper 3 §III-B): the most valuable alternates, on workers at their rated speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.solvers.layout import Layout
from penstock.solvers.lookahead import Planned, Rules, look_ahead, offered, rent


def deploy(layout: Layout, rules: Rules) -> Planned:
    """Instances for the rates of the interval; every operator has one, also where nothing is to come.

    Alternates are cheaper ones only where the others cannot be kept.
    """
    valuable = replace(rules, alternates=False)
    walked = look_ahead(layout.branch(), valuable)
    if walked.feasible and _is_placed(walked):
        return walked
    # An operator that Ω can do without has no instance before some later step, or never, and nothing was deployed.
    give_homes(layout, rules)
    walked = look_ahead(layout.branch(), valuable)
    return walked if walked.feasible else look_ahead(layout, rules)


def with_homes(planner: Callable[[Layout, Rules], Planned], layout: Layout, rules: Rules) -> Planned:
    """A planner's plan; where it leaves an operator without an instance, one is given before it plans again.

    Not before the first time: the planner may find a cheaper home for an operator whose worker is gone.
    """
    found = planner(layout.branch(), rules)
    if not _is_placed(found):
        give_homes(layout, rules)
        found = planner(layout, rules)
    return found


def give_homes(layout: Layout, rules: Rules) -> None:
    """An instance for each operator that has none; where no core may be had, on one that it shares."""
    for place, where in enumerate(layout.places):
        if where:
            continue
        machine = layout.free()
        if machine is None:
            offer = offered(layout, rules)
            machine = rent(layout, offer) if offer else layout.least_shared()
        if machine is not None:
            layout.add(place, machine)


def _is_placed(found: Planned) -> bool:
    return all(all(stage.instances.values()) for stage in found.stages)
