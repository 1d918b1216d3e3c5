"""Small deployments, for tests of the planners."""

from __future__ import annotations

import numpy as np

from penstock.core.dataflow import Dataflow
from penstock.models.flow_table import FlowTable
from penstock.solvers.layout import Interval, Layout, Machine

STEP_S = 300.0


def layout(flow: Dataflow, rates: list[float], machines: list[Machine], places: list[list[int]]) -> Layout:
    table = FlowTable.of(flow)
    arriving = np.zeros((len(rates), len(table.names)))
    for source in table.sources:
        arriving[:, source] = np.array(rates) * STEP_S
    known = Interval(STEP_S, arriving, np.zeros(len(table.names)))
    return Layout(table, known, machines, places, [0] * len(table.names))
