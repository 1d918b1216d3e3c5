"""The controller's thread beside a job: it goes on whatever fails, and says each thing once."""

from __future__ import annotations

import logging
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import ExternalError, PlantError
from penstock.core.loop import Faults, Step
from penstock.core.observation import Observation
from penstock.live.controller import Controller, ControllerParts
from penstock.live.metrics import Metrics
from penstock.live.plant_notes import PlantNotes
from penstock.live.recorder import Recorder
from penstock.policies.static import Static
from penstock.sim.scenario import Scenario
from tests.live.test_recorder import steps

SCENARIO = Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=2)


class Recorded:
    """A plant that shows what a replay saw, again and again."""

    knobs = frozenset({Knob.WORKERS})

    def __init__(self) -> None:
        self._steps = steps()
        self.looks = 0
        self.broken_at: tuple[int, ...] = ()
        self.knows_from = sys.maxsize
        self.has_left = False
        self._notes = PlantNotes()

    @property
    def awaited(self) -> list[str]:
        return []

    def observe(self) -> Observation:
        self.looks += 1
        if self.looks in self.broken_at:
            raise PlantError("Spark does not answer")
        return replace(self._steps[self.looks % len(self._steps)].seen, backlog=None, latency_s=None)

    def apply(self, target: Allocation) -> None:
        """Nothing changes."""

    def tend(self) -> None:
        """Nobody is to go."""

    def take_notes(self) -> list[str]:
        silent = ["RateStream"] if self.looks < self.knows_from else []
        ended = ["query counts has ended"] if self.looks == 7 else []
        return self._notes.take(silent, lost=int(self.looks > 5)) + ended

    def leave(self) -> None:
        self.has_left = True


def run(plant: Recorded, recorder: object = None, least: int = 20) -> tuple[list[Step], Metrics]:
    """So many steps of a controller on this plant."""
    seen: list[Step] = []
    enough, metrics = threading.Event(), Metrics("clicks")

    def told(step: Step) -> None:
        seen.append(step)
        if len(seen) >= least:
            enough.set()

    job = replace(SCENARIO.job(), tick_s=0.01)
    policy = Static(job, workers=2)
    parts = ControllerParts(plant, policy, job, Faults(), cast(Recorder, recorder), metrics)
    controller = Controller(parts, told)
    controller.start()
    assert enough.wait(30)
    controller.stop(30)
    assert not controller.is_running
    return seen, metrics


def test_what_a_plant_cannot_see_and_what_it_lost_is_in_the_journal_once() -> None:
    plant = Recorded()
    seen, metrics = run(plant)
    assert plant.has_left
    reasons = [step.decision.reason for step in seen]
    assert sum("RateStream does not tell what waits in it" in reason for reason in reasons) == 1
    assert sum("1 executors were lost" in reason for reason in reasons) == 1
    assert sum("query counts has ended" in reason for reason in reasons) == 1
    assert "penstock_lag_records" not in metrics.text()


def test_a_source_that_tells_again_what_waits_is_said() -> None:
    plant = Recorded()
    plant.knows_from = 8
    reasons = [step.decision.reason for step in run(plant)[0]]
    assert sum("RateStream does not tell what waits in it" in reason for reason in reasons) == 1
    assert sum("RateStream now tells what waits in it" in reason for reason in reasons) == 1


def test_a_plant_that_is_not_seen_for_a_while_is_said_once_and_control_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)
    plant = Recorded()
    plant.broken_at = (4, 5, 6)
    with caplog.at_level(logging.INFO, "penstock"):
        seen, _ = run(plant)
    assert len(seen) >= 20
    assert sum("Spark does not answer: what runs is kept" in line for line in caplog.messages) == 1
    assert any("not seen 3 times: Spark does not answer" in step.decision.reason for step in seen)


def test_a_job_whose_first_batch_does_not_end_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)

    class Silent(Recorded):
        @property
        def awaited(self) -> list[str]:
            return ["counts", "joins"]

        def observe(self) -> Observation | None:  # type: ignore[override]
            seen = super().observe()
            return None if self.looks < 15 else seen

    with caplog.at_level(logging.INFO, "penstock"):
        run(Silent(), least=3)
    assert sum("no batch of counts, joins has ended yet" in line for line in caplog.messages) == 1


def test_a_job_whose_first_batch_has_just_ended_is_not_said_to_wait_for_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)

    class TooLate(Recorded):
        def observe(self) -> Observation | None:  # type: ignore[override]
            seen = super().observe()
            return None if self.looks < 9 else seen  # the last of these look for a first reading of the load

    with caplog.at_level(logging.INFO, "penstock"):
        run(TooLate(), least=3)
    assert not any("has ended yet" in line for line in caplog.messages)


class FullDisk:
    """A recorder on a disk without room for ten steps."""

    steps = 0

    def write(self, _: Step) -> None:
        self.steps += 1
        if self.steps <= 10:
            raise ExternalError("the journal j.jsonl cannot be written: No space left on device")

    def __exit__(self, *_: Any) -> None:
        """Closed."""


def test_a_full_disk_does_not_stop_the_control(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)
    with caplog.at_level(logging.INFO, "penstock"):
        seen, metrics = run(Recorded(), FullDisk())
    assert len(seen) >= 20
    said = [line for line in caplog.messages if "journal" in line]
    assert said == [
        "the journal j.jsonl cannot be written: No space left on device: the control goes on without it",
        "the journal is written again",
    ]
    assert 'penstock_errors_total{job="clicks"} 0' not in metrics.text()


def test_a_journal_is_closed_with_its_controller(tmp_path: Path) -> None:
    from tests.live.test_recorder import header

    path = tmp_path / "journal.jsonl"
    run(Recorded(), Recorder(path, header()))
    with Recorder(path, header()) as again:  # the lock is free, and all is there
        assert again.past
