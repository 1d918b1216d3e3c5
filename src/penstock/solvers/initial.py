"""The first deployment (paper 3 §III-B): the most valuable alternates, on workers at their rated speed."""

from __future__ import annotations

from dataclasses import replace

from penstock.solvers.layout import Layout
from penstock.solvers.lookahead import Planned, Rules, look_ahead, offered, planned, rent


def deploy(layout: Layout, rules: Rules) -> Planned:
    """Instances for the rates of the interval; every operator has one, also where nothing is to come."""
    found = look_ahead(layout, replace(rules, alternates=False))
    for place, where in enumerate(layout.places):
        if where:
            continue
        machine = layout.free()
        if machine is None:
            offer = offered(layout, rules)
            # Where no more may be rented, operators must share cores: a degraded plan, and it says so.
            machine = rent(layout, offer) if offer else place % max(1, len(layout.machines))
        layout.add(place, machine)
    return planned(layout, rules, found.feasible and bool((layout.used <= layout.cores).all()))
