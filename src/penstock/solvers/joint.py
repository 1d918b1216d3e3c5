"""Alternates, instances and workers chosen together."""

from __future__ import annotations

from penstock.solvers.layout import Layout
from penstock.solvers.lookahead import Planned, Rules, look_ahead


def jointly(layout: Layout, rules: Rules) -> Planned:
    return look_ahead(layout, rules)
