"""Dataflows as arrays: the same as the plain form, and as compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.models.flow import Conditions, Deployed, over
from penstock.models.flow_result import Waiting
from penstock.models.flow_table import FlowSteps, FlowTable, flow_steps, offered, totals


def random_flow(rng: np.random.Generator, size: int) -> Dataflow:
    operators = []
    for place in range(size):
        before = [f"o{each}" for each in range(place) if rng.random() < 0.4]
        cost_s = float(rng.choice([0.0, rng.uniform(0.1, 1)]))
        operators.append(Operator(f"o{place}", cost_s, float(rng.uniform(0, 2)), after=tuple(before)))
    return Dataflow(tuple(operators))


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_arrays_give_what_the_plain_form_gives(seed: int, size: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    flow = random_flow(rng, size)
    table = FlowTable.of(flow)
    deployed = Deployed(flow, {name: (name,) for name in flow.order})
    rates = [{name: float(rng.uniform(0, 5)) for name in flow.sources} for _ in range(steps)]
    speeds = [{name: float(rng.uniform(0, 2)) for name in flow.order} for _ in range(steps)]
    waits = {name: float(rng.uniform(0, 50)) for name in flow.order}
    given_ = [Conditions(60.0, rate, speed) for rate, speed in zip(rates, speeds, strict=True)]
    plain = over([deployed] * steps, given_, Waiting(waits))
    arrays = FlowSteps(
        np.array([[rate.get(name, 0.0) * 60.0 for name in table.names] for rate in rates]),
        np.array([[flow.costs_s[name] for name in table.names]] * steps),
        np.array([[flow.selectivities[name] for name in table.names]] * steps),
        np.array([[speed[name] * 60.0 for name in table.names] for speed in speeds]),
        np.array([waits[name] for name in table.names]),
    )
    found = totals(table, arrays)
    assert found.delivered == pytest.approx([each.delivered for each in plain.steps])
    assert found.deliverable == pytest.approx([each.deliverable for each in plain.steps])
    left = [plain.waiting.backlog.get(name, 0.0) for name in table.names]
    assert found.backlog[-1] == pytest.approx(left, abs=1e-6)
    first = offered(table.first, table.parents, arrays.selectivities[0], found.nominal[0], arrays.backlog)
    assert first == pytest.approx([plain.steps[0].offered[name] for name in table.names])


def test_machine_code_and_python_agree() -> None:
    rng = np.random.default_rng(5)
    table = FlowTable.of(random_flow(rng, 6))
    shape = (3, 6)
    numbers = [rng.uniform(0, 2, shape) for _ in range(4)]
    kernel: tuple[Any, ...] = (table.first, table.parents, table.is_sink, *numbers, rng.uniform(0, 5, 6))
    plain = flow_steps.__wrapped__  # type: ignore[attr-defined]
    for one, other in zip(flow_steps(*kernel), plain(*kernel), strict=True):
        assert one == pytest.approx(other)


def test_alternates_come_by_falling_value() -> None:
    kinds = (Alternate("rough", 0.1, value=0.6), Alternate("exact", 0.4), Alternate("fair", 0.2, value=0.8))
    table = FlowTable.of(Dataflow((Operator("a", alternates=kinds), Operator("b", 0.3, after=("a",)))))
    assert table.alternates == (("exact", "fair", "rough"), (None,))
    assert table.costs_s == ((0.4, 0.2, 0.1), (0.3,))
