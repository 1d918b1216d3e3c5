"""What good means beyond latency: relative throughput, value, profit, steps out of band (paper 3 §III, VI)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.objective import Objective, application_value, deviations, profit, relative_throughput
from penstock.core.observation import Observation

ONE = Allocation.of(1)
SEEN = Observation(60.0, 60.0, 600.0, 500.0, 79.0, 100.0, 10.0, 100.0, 60.0, 10.0, ONE, ONE)


def test_a_throughput_is_missed_where_too_few_of_the_results_have_come_out_so_far() -> None:
    objective = Objective.parse("throughput >= 0.8")
    assert objective.missed(SEEN, 600.0) is True
    assert objective.missed(replace(SEEN, delivered=80.0), 600.0) is False
    # Nothing was to be delivered: nothing is missed.
    assert objective.missed(replace(SEEN, delivered=0.0, deliverable=0.0), 0.0) is False


def test_an_objective_reads_as_it_was_written() -> None:
    for text in ("throughput>=0.8", "latency<=120s", "rate"):
        assert str(Objective.parse(text)) == text
        assert Objective.parse(str(Objective.parse(text))) == Objective.parse(text)


@pytest.mark.parametrize("text", ["throughput>=many", "throughput>=1.5", "throughput>=-1", "throughput>=nan"])
def test_a_throughput_that_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="from 0 to 1"):
        Objective.parse(text)


def test_an_objective_is_one_thing() -> None:
    with pytest.raises(BadInput, match="not both"):
        Objective(latency_s=60.0, throughput=0.8)


def test_the_value_of_an_application_is_the_mean_of_its_active_alternates() -> None:
    exact, rough = Alternate("exact", 0.4), Alternate("rough", 0.1, value=0.6)
    flow = Dataflow((Operator("parse", 0.1), Operator("count", after=("parse",), alternates=(exact, rough))))
    assert application_value(flow) == 1.0
    assert application_value(flow.switched({"count": "rough"})) == pytest.approx((1 + 0.6) / 2)


def test_profit_is_value_less_cost_by_the_coefficient() -> None:
    assert profit(0.9, cost=40.0, sigma=0.005) == pytest.approx(0.7)


def test_omega_of_nothing_is_unknown_and_may_exceed_1() -> None:
    assert relative_throughput(0.0, 0.0) is None
    assert relative_throughput(12.0, 10.0) == pytest.approx(1.2)


def test_steps_out_of_band_are_counted_on_both_sides() -> None:
    assert deviations([0.7, 0.8, 0.85, 0.9, 1.1, None], 0.8, 0.9) == 2
