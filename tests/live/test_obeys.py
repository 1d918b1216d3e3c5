"""A controller that obeys: it stops when told, skips what it has no time for, leaves a policy that hangs behind."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput
from penstock.core.loop import Decision, Faults, Policy, Step
from penstock.core.observation import Observation
from penstock.live.control_options import Wanted
from penstock.live.controller import Controller, ControllerParts
from penstock.live.metrics import Metrics
from penstock.live.plant import SparkPlant
from penstock.live.policy_thread import PolicyThread
from penstock.policies.safety import FailsStatic
from tests.live.test_controller import SCENARIO, Recorded

PATIENCE_S = 60.0


class Counted(Recorded):
    """Counts what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[int] = []
        self.tended = 0
        self.changed = threading.Condition()

    def apply(self, target: Allocation) -> None:
        with self.changed:
            self.applied.append(len(target.workers))
            self.changed.notify_all()

    def tend(self) -> None:
        with self.changed:
            self.tended += 1
            self.changed.notify_all()

    def wait_for(self, done: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(done, PATIENCE_S)


class Thinks:
    """A policy that answers when the test lets it."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0

    def __init__(self) -> None:
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def decide(self, seen: Observation) -> Decision:
        self.asked.set()
        self.may_answer.wait(PATIENCE_S)
        return Decision(seen.target.resized(7), "seven")


def controlled(
    plant: Counted, policy: Policy, deadline_s: float = PATIENCE_S, tick_s: float = 0.05
) -> tuple[Controller, list[Step]]:
    """A controller that has begun."""
    job = replace(SCENARIO.job(), tick_s=tick_s)
    asked, steps = PolicyThread(policy, deadline_s), list[Step]()

    def told(step: Step) -> None:
        with plant.changed:
            steps.append(step)
            plant.changed.notify_all()

    guarded = FailsStatic(asked, job, failures_max=3)
    parts = ControllerParts(cast(SparkPlant, plant), guarded, job, Faults(), metrics=Metrics("clicks"), asked=asked)
    controller = Controller(parts, told)
    controller.start()
    return controller, steps


def ended(controller: Controller) -> bool:
    controller._thread.join(PATIENCE_S)
    return not controller._thread.is_alive()


def test_stop_does_not_wait_for_a_policy_that_thinks_and_nothing_follows_it() -> None:
    plant, policy = Counted(), Thinks()
    controller, steps = controlled(plant, policy)
    assert policy.asked.wait(PATIENCE_S)
    controller.stop()  # the policy answers only after it
    assert not policy.may_answer.is_set()
    done = (list(plant.applied), plant.tended, len(steps))
    policy.may_answer.set()
    assert ended(controller)
    assert (plant.applied, plant.tended, len(steps)) == done == ([], plant.tended, 0)


def test_executors_are_tended_while_the_policy_thinks() -> None:
    plant, policy = Counted(), Thinks()
    controller, _ = controlled(plant, policy)
    assert policy.asked.wait(PATIENCE_S)
    before = plant.tended
    plant.wait_for(lambda: plant.tended >= before + 3)
    policy.may_answer.set()
    plant.wait_for(lambda: 7 in plant.applied)
    controller.stop()
    assert ended(controller)


def test_nobody_is_ended_during_a_pause() -> None:
    plant, policy = Counted(), Thinks()
    policy.may_answer.set()
    controller, steps = controlled(plant, policy)
    controller.pause()
    plant.wait_for(lambda: len(steps) >= 3)  # what was under way when the pause began is over
    tended, seen = plant.tended, len(steps)
    plant.wait_for(lambda: len(steps) >= seen + 3)
    assert plant.tended == tended
    controller.go_on()
    plant.wait_for(lambda: plant.tended > tended)
    controller.stop()
    assert ended(controller)


def test_an_act_that_spark_does_not_answer_is_said_and_no_other_follows(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)
    acting, may_end = threading.Event(), threading.Event()

    class Stuck(Counted):
        def apply(self, target: Allocation) -> None:
            super().apply(target)
            acting.set()
            may_end.wait(PATIENCE_S)

    plant, policy = Stuck(), Thinks()
    policy.may_answer.set()
    controller, _ = controlled(plant, policy)
    assert acting.wait(PATIENCE_S)
    controller.stop(0.1)
    assert "what it was asked last may still be done" in caplog.text
    tended = plant.tended
    may_end.set()
    assert ended(controller)
    assert (plant.applied, plant.tended) == ([7], tended)


def test_a_policy_that_hangs_is_left_behind_and_counts_as_failing() -> None:
    plant, policy = Counted(), Thinks()
    controller, steps = controlled(plant, policy, deadline_s=0.2)
    plant.wait_for(lambda: len(steps) >= 5)
    said = [step.decision.reason for step in steps]
    assert "it did not answer within 0.2 s, and is left behind until it does" in said[0]
    assert "the policy still fails" in said[1]
    assert "failed 3 times in a row: pinned" in said[2]
    assert all(step.target == step.seen.target for step in steps)
    policy.may_answer.set()  # what it says too late is dropped; asked again, it works
    plant.wait_for(lambda: 7 in plant.applied)
    controller.stop()
    assert ended(controller)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("no")])
def test_whatever_a_policy_raises_it_has_failed_and_the_control_goes_on(error: BaseException) -> None:
    class Leaves(Thinks):
        def decide(self, seen: Observation) -> Decision:
            raise error

    plant = Counted()
    controller, steps = controlled(plant, Leaves())
    plant.wait_for(lambda: len(steps) >= 3)
    assert controller.is_running
    controller.stop()
    assert ended(controller)
    assert type(error).__name__ in steps[0].decision.reason


def test_without_a_guard_too_a_policy_that_exits_does_not_end_the_control() -> None:
    class Leaves(Thinks):
        def decide(self, seen: Observation) -> Decision:
            self.asked.set()
            sys.exit(3)

    plant, policy, job = Counted(), Leaves(), replace(SCENARIO.job(), tick_s=0.01)
    controller = Controller(ControllerParts(cast(SparkPlant, plant), policy, job, Faults()))
    controller.start()
    assert policy.asked.wait(PATIENCE_S)
    plant.wait_for(lambda: plant.looks >= 3 and plant.tended > 0)
    assert controller.is_running
    controller.stop()
    assert ended(controller)


def test_ticks_that_overrun_are_skipped_and_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)

    class Slow(Thinks):
        def decide(self, seen: Observation) -> Decision:
            time.sleep(0.12)
            return Decision(seen.target, "slowly")

    plant = Counted()
    with caplog.at_level(logging.INFO, "penstock"):
        controller, steps = controlled(plant, Slow())
        plant.wait_for(lambda: len(steps) >= 5)
        controller.stop()
    assert ended(controller)
    assert controller.cost.skipped >= 4  # two ticks of 50 ms fit into each decision
    assert sum("ticks skipped: the last one took" in line for line in caplog.messages) == 1
    assert "one is due every 50 ms" in steps[1].decision.reason
    assert sum("skipped" in step.decision.reason for step in steps) == 1
    metrics = controller._parts.metrics
    assert metrics is not None
    assert f'penstock_skipped_ticks_total{{job="clicks"}} {controller.cost.skipped}' in metrics.text()


def test_a_controller_may_be_stopped_from_within_a_step() -> None:
    plant, policy = Counted(), Thinks()
    policy.may_answer.set()
    stopped = threading.Event()

    def told(_: Step) -> None:
        controller.stop()
        stopped.set()

    job = replace(SCENARIO.job(), tick_s=0.01)
    controller = Controller(ControllerParts(cast(SparkPlant, plant), policy, job, Faults()), told)
    controller.start()
    assert stopped.wait(PATIENCE_S)
    assert ended(controller)
    assert plant.applied == [7]


@pytest.mark.parametrize("tick", ["0s", "1ms"])
def test_a_tick_that_would_spin_is_refused(tick: str) -> None:
    with pytest.raises(BadInput, match=f"tick '{tick}' is too short: write at least 100ms"):
        Wanted(tick=tick).job("clicks")
