"""What workers can do with the alternates that run: learnt with each, else by the ratio of the costs."""

from __future__ import annotations

import pytest

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.job import CapacityModel
from penstock.core.loop import Decision
from penstock.core.observation import Batch, Observation, WorkerTable
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.models.capacity import linear
from penstock.models.learned import Learned
from penstock.policies.learning import Learning
from penstock.policies.static import Static
from penstock.sim.scenario import Scenario

FLOW = Dataflow((Operator("job", alternates=(Alternate("full", 2.0), Alternate("half", 1.0), Alternate("tiny", 0.2))),))


def test_a_measured_model_is_of_the_first_alternate_and_the_others_follow_their_costs() -> None:
    model = AlternateCapacity(linear(10.0), FLOW)
    assert model.capacity(3) == pytest.approx(30.0)
    model.follow({"job": "tiny"})
    # A tenth of the cost.
    assert model.capacity(3) == pytest.approx(300.0)
    assert model.sustainable_at(model.cost_of({"job": "half"}), 3, None) == pytest.approx(60.0)
    model.follow({})
    assert model.capacity(3) == pytest.approx(30.0)


def test_what_was_learnt_with_an_alternate_counts_more_than_what_was_declared() -> None:
    model = AlternateCapacity(Learned(), FLOW)
    model.note("job", rows=1000.0, work_s=10.0, fixed_s=0.0, crew=("w1",))
    model.follow({"job": "half"})
    assert model.capacity(1) == pytest.approx(200.0)  # by its declared cost, half
    model.note("job", rows=1500.0, work_s=10.0, fixed_s=0.0, crew=("w1",))
    assert model.capacity(1) == pytest.approx(150.0)  # as it really is
    model.follow({})
    assert model.capacity(1) == pytest.approx(100.0)
    # Nobody has run the third: by the nearest that ran, five times as dear.
    model.follow({"job": "tiny"})
    assert model.capacity(1) == pytest.approx(750.0)


def noted(model: AlternateCapacity, alternate: str, batches: int, rows: float) -> None:
    model.follow({"job": alternate})
    for _ in range(batches):
        model.note("job", rows, work_s=10.0, fixed_s=0.0, crew=("w1",))


def test_what_only_cold_batches_told_is_corrected_by_an_implementation_that_ran_warm() -> None:
    model = AlternateCapacity(Learned(), FLOW)
    noted(model, "full", 2, 50.0)  # 5 a second, cold
    noted(model, "tiny", 5, 10_000.0)
    assert model.sustainable_at(1.0, 1, None) == pytest.approx(5.0)  # these may be cold, too
    noted(model, "tiny", 1, 10_000.0)
    assert model.sustainable_at(1.0, 1, None) == pytest.approx(100.0)  # a tenth of 1000 a second


def test_batches_enough_are_believed_whatever_costs_are_declared() -> None:
    model = AlternateCapacity(Learned(), FLOW)
    noted(model, "tiny", 6, 10_000.0)
    noted(model, "full", 5, 50.0)
    assert model.sustainable_at(1.0, 1, None) == pytest.approx(100.0)
    noted(model, "full", 1, 50.0)
    assert model.sustainable_at(1.0, 1, None) == pytest.approx(5.0)  # twenty times as dear as declared


@pytest.mark.parametrize("told", [Learned(), linear(10.0)])
def test_an_alternate_that_is_said_to_cost_nothing_is_no_division_by_it(told: CapacityModel) -> None:
    free = Operator("job", alternates=(Alternate("full", 2.0), Alternate("free", 0.0)))
    model = AlternateCapacity(told, Dataflow((free,)))
    if model.learns:
        model.note("job", rows=100.0, work_s=10.0, fixed_s=0.0, crew=("w1",))
    model.follow({"job": "free"})
    # A millionth of the cost.
    assert model.capacity(1) == pytest.approx(1e7)


def observation(number: int, alternate: str, rows: float) -> Observation:
    running = Allocation(Allocation.of(1).workers, alternate={"job": alternate})
    batch = Batch(rows, 10.0, 10.0, 0.0, 0.0, number)
    table = WorkerTable(("w1",), {"runs_since_s": -100.0})
    return Observation(
        10.0 * number, 10.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, running, running, table, batch=batch
    )


def test_a_batch_that_ended_around_a_switch_teaches_nothing() -> None:
    model = AlternateCapacity(Learned(), FLOW)
    job = Scenario.constant(rate=1.0, capacity_per_worker=10.0).job()
    policy = Learning(Static(job, workers=1), model)
    decisions: list[Decision] = [policy.decide(observation(number, "full", 1000.0)) for number in (1, 2, 3)]
    assert decisions
    known = model.capacity(1)
    assert known == pytest.approx(100.0)
    # The tick of the switch still shows a batch of the one before: at half the cost it would look like 100 events/s.
    policy.decide(observation(4, "half", 1000.0))
    assert model.capacity(1) == pytest.approx(200.0)
    policy.decide(observation(5, "half", 1800.0))
    assert model.capacity(1) == pytest.approx(180.0)
