"""What a policy knows of the workers it learnt from what it saw: in any world, and again after a restart."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.job import Job
from penstock.core.loop import Step, control
from penstock.core.objective import Objective
from penstock.core.observation import Batch, Observation, WorkerTable
from penstock.live.restart import remind
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.models.capacity import linear
from penstock.models.learned import Learned
from penstock.policies.deadline import Deadline
from penstock.policies.learning import Learning
from penstock.policies.mst import Mst
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, WorkerSpec
from penstock.sim.workloads import Sine, make_load

DAY = replace(
    Scenario.constant(rate=1.0, capacity_per_worker=20.0),
    load=make_load((Sine(20.0, 200.0, 14400.0),), 14400.0, 30.0, seed=0),
    capacity=linear(20.0, fixed_s=1.0),
    worker=WorkerSpec(start_s=30.0),
    batch=BatchSpec(trigger_s=10.0),
)


def unmeasured() -> tuple[Learning, Learned, Job]:
    """A policy for a job whose capacity nobody told."""
    model = Learned()
    job = replace(DAY.job(), capacity=model)
    return Learning(Mst(job), model), model, job


def steps_of(policy: Learning) -> list[Step]:
    plant = SimulatedPlant(DAY)
    return list(control(plant, policy, DAY.limits, plant.ticks()))


def test_workers_are_learnt_from_the_batches_that_are_shown() -> None:
    policy, model, _ = unmeasured()
    steps = steps_of(policy)
    assert model.capacity(3) == pytest.approx(60.0, rel=0.1)
    assert model.fixed_s(3) == pytest.approx(1.0, rel=0.2)
    told = SimulatedPlant(DAY)
    known = [len(step.target.workers) for step in control(told, Mst(DAY.job()), DAY.limits, told.ticks())]
    late = [len(step.target.workers) for step in steps]
    assert sum(abs(a - b) for a, b in zip(known[60:], late[60:], strict=True)) <= 0.1 * sum(known[60:])


def test_a_restart_knows_what_was_learnt_and_decides_the_same() -> None:
    policy, model, _ = unmeasured()
    steps = steps_of(policy)
    half = len(steps) // 2
    again, learnt, job = unmeasured()
    remind(again, steps[:half], job.limits)
    assert [again.decide(step.seen) for step in islice(steps, half, None)] == [step.decision for step in steps[half:]]
    assert learnt.capacity(5) == model.capacity(5)


class TestBeforeABatchHasEnded:
    """Four workers read 8,000 rows a second, and their first batch is in work."""

    alternates = (Alternate("all", 1.0), Alternate("hot", 0.2, value=0.5))
    flow = Dataflow((Operator("job", alternates=alternates),))

    def policy(self) -> Learning:
        model = AlternateCapacity(Learned(), self.flow)
        job = replace(DAY.job(), dataflow=self.flow, capacity=model, objective=Objective(30.0))
        return Learning(Deadline(job, without="caution"), model)

    def seen(self, batch: Batch | None = None, rate: float = 8000.0) -> Observation:
        crew = replace(Allocation.of(4), alternate={"job": "all"})
        since = {"runs_since_s": 0.0, "paid_since_s": 0.0}
        arrived, processed = 30 * rate, batch.rows if batch else 0.0
        return Observation(
            time_s=60.0, span_s=30.0, arrived=arrived, processed=processed, delivered=processed, deliverable=arrived,
            input_rate=rate, backlog=arrived - processed, latency_s=15.0, capacity=0.0, running=crew, target=crew,
            workers=WorkerTable(tuple(each.name for each in crew.workers), since), batch=batch,
        )  # fmt: skip

    def test_none_is_given_up_and_no_batch_is_sized_while_rows_come(self) -> None:
        decision = self.policy().decide(self.seen())
        assert decision.target == self.seen().target
        assert decision.reason.endswith("(kept: no batch has told yet what they do)")

    def test_a_job_without_rows_needs_no_more_than_one(self) -> None:
        assert len(self.policy().decide(self.seen(rate=0.0)).target.workers) == 1

    def test_the_first_batch_counts_also_where_there_are_alternates(self) -> None:
        policy = self.policy()
        policy.decide(self.seen(Batch(rows=5000.0, trigger_s=10.0, execution_s=26.0, fixed_s=1.0, age_s=1.0)))
        # 5,000 rows took four workers 25 s.
        assert policy._model.capacity(4) == pytest.approx(200.0)
