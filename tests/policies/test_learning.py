"""What a policy knows of the workers it learnt from what it saw: in any world, and again after a restart."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from penstock.core.job import Job
from penstock.core.loop import Step, control
from penstock.live.restart import remind
from penstock.models.capacity import linear
from penstock.models.learned import Learned
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
