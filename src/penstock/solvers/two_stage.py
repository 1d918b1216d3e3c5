"""The two-stage reactive scheduler that paper 3 builds on: alternates on what there is, then resources for them."""

from __future__ import annotations

from dataclasses import replace

from penstock.solvers.layout import Layout
from penstock.solvers.lookahead import Planned, Rules, look_ahead


def two_stage(layout: Layout, rules: Rules) -> Planned:
    """First each operator's feasible alternate of the best value for its cumulative cost, then instances for them."""
    downstream = _downstream_s(layout)
    asked_s, has_s = layout.asked(), layout.has_s()
    for place, now in enumerate(tuple(layout.active)):
        costs_s, values = layout.table.costs_s[place], layout.table.values[place]
        messages = float(asked_s[place]) / costs_s[now] if costs_s[now] else 0.0
        fits = [n for n, cost_s in enumerate(costs_s) if rules.low * messages * cost_s <= float(has_s[place])]
        if not fits:
            fits = [min(range(len(costs_s)), key=lambda n: costs_s[n])]
        sent = layout.table.selectivities[place]
        best = max(fits, key=lambda n: values[n] / max(1e-12, costs_s[n] + sent[n] * downstream[place]))
        if best != now:
            layout.switch(place, best)
    return look_ahead(layout, replace(rules, alternates=False))


def _downstream_s(layout: Layout) -> list[float]:
    """Core-seconds that a message costs behind each operator, with what is active now."""
    table, at = layout.table, layout.at
    found = [0.0] * len(table.names)
    for place in reversed(range(len(found))):
        own = float(layout.costs_s[at, place]) + float(layout.selectivities[at, place]) * found[place]
        for position in range(int(table.first[place]), int(table.first[place + 1])):
            found[int(table.parents[position])] += own
    return found
