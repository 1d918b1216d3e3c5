"""A restarted policy is what it was, also where what it adopted is older than the journal that it is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.core.journal import Header
from penstock.core.loop import Decision, Policy, Step
from penstock.live.recorder import Recorder
from penstock.live.restart import remind
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.workloads import Load
from tests.policies.test_fugu_tuned import MOVES, world
from tests.policies.test_tuned import waves


def steps_of(scenario: Scenario, name: str) -> list[Step]:
    return list(replay(scenario, built(scenario, name)))


def built(scenario: Scenario, name: str) -> Policy:
    return Named.parse(name).build(scenario.job())


def restarted(scenario: Scenario, name: str, before: list[Step], path: Path) -> tuple[Policy, int]:
    """The policy after a restart, and how many steps it was shown."""
    job, policy = scenario.job(), built(scenario, name)
    header = Header("job", name, job.limits, job.objective, job.price, job.tick_s)
    with Recorder(path, header, policy.memory_s) as recorder:
        for step in before:
            recorder.write(step)
    with Recorder(path, header, policy.memory_s) as recorder:
        remind(policy, recorder.past, job.limits)
        return policy, len(recorder.past)


def adopting() -> Scenario:
    levels = np.repeat([1.0, 3.0, 0.6, 2.5, 0.6, 0.6, 0.6, 1.0, 1.0, 3.0], 40)
    return world((levels * np.random.default_rng(1).uniform(0.95, 1.05, 400)).tolist())


def waves_then_still() -> Scenario:
    """Two days of nothing new after the waves: what was adopted in them is older than any memory."""
    load = np.concatenate([waves(4).load.arrivals, np.full(720, 6600.0), waves(2).load.arrivals])
    return replace(waves(1), load=Load.of(load, 60.0))


@pytest.mark.parametrize(
    ("name", "scenario", "cuts"),
    [
        (f"fugu-tuned:{MOVES},budget=100", adopting(), (250, 330)),
        ("tuned:threshold:budget=10,shortest=60", waves_then_still(), (800, 1500)),
    ],
)
def test_a_tuner_decides_after_a_restart_as_if_there_had_been_none(
    name: str, scenario: Scenario, cuts: tuple[int, ...], tmp_path: Path
) -> None:
    steps = steps_of(scenario, name)
    for cut in cuts:
        assert steps[cut - 1].decision.signals["adopted"] >= 1
        policy, shown = restarted(scenario, name, steps[:cut], tmp_path / f"{cut}.jsonl")
        assert shown < cut
        for step in steps[cut:]:
            again = policy.decide(step.seen)
            assert (again.target, again.signals) == (step.decision.target, step.decision.signals)
    searches = [step.decision.signals["searches"] for step in steps]
    assert searches[-1] > searches[cuts[0] - 1], "and it goes on searching as it would have"


def test_a_journal_that_tells_nothing_of_the_kind_is_shown_as_before() -> None:
    scenario = adopting()
    policy = built(scenario, f"fugu-tuned:{MOVES},budget=20")
    past = [replace(step, decision=Decision(step.target, "")) for step in steps_of(scenario, "fugu")[:80]]
    remind(policy, past, scenario.job().limits)
    assert policy.decide(past[-1].seen).signals["searches"] >= 1
