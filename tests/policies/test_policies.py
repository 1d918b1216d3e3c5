"""What every policy must do, and what the simple ones do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import control
from penstock.core.score import Score, score
from penstock.policies.registry import POLICIES, Named
from penstock.runs.replayed import replay
from penstock.sim.plant import SimulatedPlant
from penstock.sim.recorded import RecordedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.workloads import Load
from penstock.testing import check_policy

# A search of 500 at each of 240 changes of the load would take the contract a minute.
SHORT = {"static": "static:workers=4", "fugu-tuned": "fugu-tuned:budget=20", "tuned": "tuned:threshold:budget=5"}
RUNNABLE = [SHORT.get(name, name) for name in POLICIES]


def world(rates: list[float], at_start: int = 1) -> Scenario:
    still = Scenario.constant(rate=1.0, capacity_per_worker=10.0, workers_at_start=at_start)
    return replace(still, load=Load.of(np.array(rates) * 60.0, 60.0))


def outcome(name: str, scenario: Scenario) -> Score:
    return score(replay(scenario, Named.parse(name).build(scenario.job())), scenario.objective, scenario.price)


@pytest.mark.parametrize("name", [*RUNNABLE, "threshold:cooldown_s=300,confirm_s=120,down_window_s=300,warm_up_s=60"])
def test_every_policy_keeps_the_contract(name: str) -> None:
    check_policy(Named.parse(name).build)


def test_static_peak_takes_what_the_busiest_interval_needs() -> None:
    scenario = world([5.0, 34.0, 5.0, 5.0])
    steps = list(replay(scenario, Named.parse("static-peak").build(scenario.job())))
    assert [len(step.target.workers) for step in steps] == [4, 4, 4, 4]


def test_static_average_takes_what_the_mean_rate_needs() -> None:
    scenario = world([5.0, 34.0, 5.0, 5.0])  # 49/4 = 12.25/s on workers of 10/s
    steps = list(replay(scenario, Named.parse("static-average").build(scenario.job())))
    assert len(steps[-1].target.workers) == 2


def test_thresholds_bring_the_load_to_the_geometric_middle() -> None:
    scenario = world([18.0, 18.0, 18.0], at_start=2)
    steps = list(replay(scenario, Named.parse("threshold:upper=0.8,lower=0.4").build(scenario.job())))
    # 2 workers at 90 %: 2 · 0.9 / √(0.8 · 0.4) = 3.18, so 4; their load is then 45 %.
    assert [len(step.target.workers) for step in steps] == [4, 4, 4]
    assert steps[0].decision.reason == "load 90% of 2 workers is above 80%; for 57% it takes 4"


def test_static_has_no_future_to_know_on_a_live_job() -> None:
    live: Job = replace(world([1.0]).job(), oracle=None)
    with pytest.raises(BadInput, match="only in a replay"):
        Named.parse("static-peak").build(live)


def test_more_workers_never_miss_more() -> None:
    scenario = world([5.0, 34.0, 50.0, 20.0, 5.0] * 4)
    shares = [outcome(f"static:workers={count}", scenario).violation_share for count in range(1, 7)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def test_a_recorded_run_is_a_plant_too() -> None:
    scenario = world([5.0, 34.0, 50.0, 20.0, 5.0])
    recorded = list(replay(scenario, Named.parse("threshold").build(scenario.job())))
    plant = RecordedPlant(recorded)
    again = list(control(plant, Named.parse("threshold").build(scenario.job()), scenario.limits, plant.ticks()))
    assert [step.target for step in again] == [step.target for step in recorded]


def test_a_policy_that_needs_what_a_plant_lacks_is_refused_before_the_first_tick() -> None:
    from penstock.core.allocation import Knob

    scenario = world([1.0])
    policy = Named.parse("threshold").build(scenario.job())
    policy.needs = frozenset({Knob.PLACEMENT})
    plant = SimulatedPlant(scenario)
    with pytest.raises(BadInput, match="Threshold needs placement, which this plant cannot change"):
        next(control(plant, policy, scenario.limits, plant.ticks()))


class TestNames:
    def test_the_nearest_name_is_offered(self) -> None:
        with pytest.raises(BadInput, match="did you mean 'threshold'"):
            Named.parse("treshold")

    def test_an_unknown_parameter_is_named_with_the_nearest(self) -> None:
        with pytest.raises(BadInput, match="'uper': did you mean 'upper'"):
            Named.parse("threshold:uper=0.9")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("threshold:upper", "should be key=value"),
            ("threshold:upper=high", "must be a number"),
            ("static:workers=2.5", "must be a whole number"),
            ("threshold:cooldown_s=5x", "not a duration"),
        ],
    )
    def test_a_bad_value_is_one_line(self, text: str, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            Named.parse(text)

    def test_a_parameter_that_must_be_given_is_asked_for(self) -> None:
        with pytest.raises(BadInput, match="needs workers: write static:workers="):
            Named.parse("static").build(world([1.0]).job())

    def test_thresholds_the_wrong_way_round_are_refused(self) -> None:
        with pytest.raises(BadInput, match="0 < lower < upper <= 1"):
            Named.parse("threshold:upper=0.2").build(world([1.0]).job())


MINE = """
from penstock import Decision, Knob

class Mine:
    needs = frozenset({Knob.WORKERS})
    memory_s = 0.0
    def __init__(self, job, spare: float = 0.2):
        self.job, self.spare = job, spare
    def decide(self, seen):
        wanted = self.job.workers_for(seen.input_rate * (1 + self.spare))
        return Decision(seen.target.resized(wanted), f"{seen.input_rate:.0f}/s needs {wanted}")

class Broken(Mine):
    def decide(self, seen):
        return 1 / 0

class Silent(Mine):
    def decide(self, seen):
        return None

class Leaves(Mine):
    def decide(self, seen):
        raise SystemExit(0)

class Sees(Mine):
    def decide(self, seen):
        return Decision(seen.target.resized(2 if seen.backlog > 600 else 1), "by what waits")

class Needs(Sees):
    needs_lag = True
"""


class TestAPolicyOfOnesOwn:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(MINE)
        return path

    def test_runs_with_its_parameters_and_with_guards(self, file: Path) -> None:
        scenario = world([9.0, 34.0, 34.0])
        policy = Named.parse(f"{file}:Mine:spare=0.5,cooldown_s=1m").build(scenario.job())
        # 9 · 1.5 = 13.5/s need 2 workers, 34 · 1.5 = 51/s need 6.
        assert [len(step.target.workers) for step in replay(scenario, policy)] == [2, 6, 6]

    def test_keeps_the_contract(self, file: Path) -> None:
        check_policy(Named.parse(f"{file}:Mine").build)

    def test_one_that_cannot_do_without_the_backlog_says_so(self, file: Path) -> None:
        check_policy(Named.parse(f"{file}:Needs").build)
        with pytest.raises(AssertionError, match=r"without backlog and latency: .* set needs_lag = True, or mind None"):
            check_policy(Named.parse(f"{file}:Sees").build)

    def test_what_it_raises_is_one_line_that_says_where(self, file: Path) -> None:
        with pytest.raises(BadInput, match=r"Broken at 60 s failed: ZeroDivisionError.*mine.py, line 15"):
            outcome(f"{file}:Broken", world([1.0]))

    def test_one_that_calls_sys_exit_has_failed_and_ends_no_replay(self, file: Path) -> None:
        with pytest.raises(BadInput, match=r"Leaves at 60 s failed: SystemExit: 0 \(mine.py, line 23\)"):
            outcome(f"{file}:Leaves", world([1.0]))
        scenario = world([9.0, 34.0, 34.0])
        guarded = Named.parse(f"{file}:Leaves:failures_max=2").build(scenario.job())
        assert len(list(replay(scenario, guarded))) == 3
        file.write_text("import sys\nsys.exit(0)\n")
        with pytest.raises(BadInput, match=r"cannot be loaded: SystemExit: 0 \(line 2\)"):
            Named.parse(f"{file}:Mine")

    def test_something_else_than_a_decision_is_refused(self, file: Path) -> None:
        with pytest.raises(BadInput, match="must return a Decision"):
            outcome(f"{file}:Silent", world([1.0]))

    def test_a_class_that_is_not_there_is_named_with_the_nearest(self, file: Path) -> None:
        with pytest.raises(BadInput, match="did you mean 'Mine'"):
            Named.parse(f"{file}:Mina")

    def test_a_file_that_is_not_there_or_not_python_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="no such policy file"):
            Named.parse(f"{tmp_path}/none.py:Mine")
        (tmp_path / "bad.py").write_text("class Mine:\n  def\n")
        with pytest.raises(BadInput, match=r"SyntaxError.*line 2"):
            Named.parse(f"{tmp_path}/bad.py:Mine")
