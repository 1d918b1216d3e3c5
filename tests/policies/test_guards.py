"""Guards, on a policy whose wishes are written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput
from penstock.core.kinds import WorkerKind
from penstock.core.loop import Decision, control, needs_lag
from penstock.core.objective import Objective
from penstock.core.observation import Batch, Observation
from penstock.policies.guards import OPTIONS, Guards, safe, safety
from penstock.policies.registry import Named
from penstock.policies.safety import Paused
from penstock.runs.replayed import replay
from penstock.sim.recorded import RecordedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import WorkerSpec
from penstock.sim.workloads import FlashCrowd, Sine, make_load
from penstock.testing import check_policy

JOB = Scenario.constant(rate=1.0, capacity_per_worker=10.0).job()
ALL = "failures_max=3,safe_workers=2,hold_while_late_s=5m,start_timeout_s=5m,effect_s=5m,"
ALL += "cooldown_s=2m,confirm_s=1m,down_window_s=5m,warm_up_s=1m"


class Wishes:
    """Wants so many workers, one number a tick."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 60.0

    def __init__(self, wishes: Sequence[int]) -> None:
        self._wishes = iter(wishes)

    def decide(self, seen: Observation) -> Decision:
        return Decision(seen.target.resized(next(self._wishes)), "as wished")


def asked(guards: Guards, wishes: Sequence[int], at_start: int = 1) -> list[int]:
    """What is asked for after each minute."""
    policy, target, counts = guards.around(Wishes(wishes), JOB), Allocation.of(at_start), []
    for minute in range(1, len(wishes) + 1):
        seen = Observation(60.0 * minute, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, target, target)
        target = policy.decide(seen).target
        counts.append(len(target.workers))
    return counts


def test_without_guards_a_policy_has_its_way() -> None:
    assert asked(Guards(), [3, 1, 4]) == [3, 1, 4]


def test_a_cooldown_holds_every_change_for_a_while_after_the_last() -> None:
    assert asked(Guards(cooldown_s=120.0), [3, 5, 6, 6, 2]) == [3, 3, 6, 6, 2]


def test_a_change_that_was_held_does_not_start_a_cooldown() -> None:
    guards = Guards(cooldown_s=120.0, confirm_s=60.0)
    assert asked(guards, [3, 3, 3, 3]) == [1, 3, 3, 3]


def test_a_change_must_be_wanted_for_a_while() -> None:
    assert asked(Guards(confirm_s=120.0), [3, 1, 3, 3, 3]) == [1, 1, 1, 1, 3]


def test_the_window_keeps_the_most_that_was_wanted_within_it() -> None:
    # The 5 of minute 2 is forgotten at minute 5, the 3 of minute 3 at minute 6.
    assert asked(Guards(down_window_s=180.0), [2, 5, 3, 1, 1, 1], at_start=5) == [2, 5, 5, 5, 3, 1]


def test_the_window_never_delays_growth() -> None:
    assert asked(Guards(down_window_s=600.0), [2, 5, 9]) == [2, 5, 9]


def test_nothing_changes_while_warming_up() -> None:
    assert asked(Guards(warm_up_s=180.0), [4, 4, 4, 4]) == [1, 1, 4, 4]


def test_a_guard_remembers_as_long_as_it_holds() -> None:
    guarded = Guards(cooldown_s=300.0, confirm_s=100.0).around(Wishes([]), JOB)
    assert (guarded.memory_s, guarded.needs) == (460.0, frozenset({Knob.WORKERS}))


def test_a_held_decision_says_so() -> None:
    policy, one = Guards(cooldown_s=100.0).around(Wishes([2, 3]), JOB), Allocation.of(1)
    first = policy.decide(Observation(60.0, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, one, one)).target
    held = policy.decide(Observation(120.0, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, one, first))
    assert held.reason == "as wished (held: cooling down, 40 s left)"


def test_a_guard_that_holds_for_less_than_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="cooldown_s is -5: it must be at least 0"):
        Guards(cooldown_s=-5.0)


def asked_when(latencies_s: Sequence[float], wishes: Sequence[int]) -> list[int]:
    """What is asked for at each of these latencies, from 4 workers on. The bound is 60 s; the guard holds for 180."""
    job = replace(JOB, objective=Objective(60.0))
    policy, target, counts = Guards(hold_while_late_s=180.0).around(Wishes(wishes), job), Allocation.of(4), []
    for minute, latency_s in enumerate(latencies_s, 1):
        seen = Observation(60.0 * minute, 60.0, 0, 0, 0, 0, 0, 0, latency_s, 0, target, target)
        target = policy.decide(seen).target
        counts.append(len(target.workers))
    return counts


def test_nobody_is_given_up_while_the_objective_is_missed_but_more_may_come() -> None:
    assert asked_when([10, 70, 80, 50], [4, 3, 5, 3]) == [4, 4, 5, 3]


def test_what_is_late_for_long_is_not_late_for_want_of_workers() -> None:
    # Late from the first minute on; at the fourth, three minutes later, the guard lets go.
    assert asked_when([70, 70, 70, 70], [3, 3, 3, 3]) == [4, 4, 4, 3]
    # A minute in time, and it counts anew.
    assert asked_when([70, 70, 50, 70, 70], [3, 3, 4, 3, 3]) == [4, 4, 4, 4, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"safe_workers": 3}, "safe_workers=3 is for after failures_max failures: give both"),
        ({"failures_max": -1}, "it must be from 0 to"),
        ({"effect_s": -1.0}, "effect_s is -1"),
        ({"hold_while_late_s": -1.0}, "hold_while_late_s is -1"),
    ],
)
def test_guards_that_make_no_sense_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Guards(**given)  # type: ignore[arg-type]


def test_a_pause_file_needs_someone_who_looks_for_it() -> None:
    with pytest.raises(BadInput, match="pause_file=stop: nobody here looks for files"):
        Guards(pause_file="stop").around(Wishes([]), JOB)


def test_a_cooldown_counts_from_what_was_applied_and_not_from_what_was_wished() -> None:
    policy, one = Guards(cooldown_s=120.0).around(Wishes([9, 9, 9]), JOB), Allocation.of(1)
    # The wish for 9 is refused, twice; the third is still free to go.
    for minute in (1, 2, 3):
        wish = policy.decide(Observation(60.0 * minute, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, one, one))
        assert len(wish.target.workers) == 9


@pytest.mark.parametrize("name", [f"threshold:{ALL}", f"mst:{ALL}", "threshold:effect_s=2m,start_timeout_s=2m"])
def test_a_guarded_policy_keeps_the_contract(name: str) -> None:
    check_policy(Named.parse(name).build)
    check_policy(Named.parse(name).build_safe)


def test_every_option_has_a_name_that_a_policy_takes() -> None:
    text = f"threshold:{ALL},pause_file=stop-here"
    assert set(Named.parse(text).guards) == set(OPTIONS)
    with pytest.raises(BadInput, match=r"failures_max must be a whole number, not '2\.5'"):
        Named.parse("threshold:failures_max=2.5")
    with pytest.raises(BadInput, match="'start_timout_s': did you mean 'start_timeout_s'"):
        Named.parse("threshold:start_timout_s=5m")


def test_a_pause_file_by_name_freezes_a_replay(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    stop.touch()
    scenario = Scenario.constant(rate=100.0, capacity_per_worker=10.0, workers_at_start=1)
    steps = list(replay(scenario, Named.parse(f"threshold:pause_file={stop}").build(scenario.job())))
    assert {len(step.target.workers) for step in steps} == {1}
    assert sum(f"(paused by {stop} until it is gone)" in step.decision.reason for step in steps) == 1
    assert sum("(paused)" in step.decision.reason for step in steps) == len(steps) - 1


def chain(policy: object) -> list[str]:
    names = []
    while hasattr(policy, "inside"):
        names.append(type(policy).__name__)
        policy = policy.inside
    return names


def test_the_live_controller_has_every_safety_rule_and_what_was_given_on_top() -> None:
    assert chain(safe(Wishes([]), JOB)) == ["Ineffective", "StartTimeout", "HoldWhileLate", "FailsStatic"]
    named = Named.parse("threshold:cooldown_s=60,effect_s=0,start_timeout_s=90").build_safe(JOB)
    assert chain(named) == ["Paused", "StartTimeout", "Cooldown", "HoldWhileLate", "FailsStatic"]
    assert isinstance(named, Paused)


def test_defaults_follow_the_job() -> None:
    # Five ticks of 60 s.
    assert safety(JOB) == {"failures_max": 5, "hold_while_late_s": 300.0, "start_timeout_s": 300.0, "effect_s": 300.0}
    slow = replace(JOB, kinds=(WorkerKind(start_s=120.0),), tick_s=10.0, trigger_s=60.0)
    assert safety(slow) == {"failures_max": 5, "hold_while_late_s": 300.0, "start_timeout_s": 600.0, "effect_s": 300.0}


@pytest.mark.parametrize(
    "name", [f"threshold:{ALL}", "threshold:effect_s=3m,start_timeout_s=2m,cooldown_s=3m,hold_while_late_s=2m"]
)
def test_a_restart_that_replays_the_tail_goes_on_as_if_nothing_had_happened(name: str) -> None:
    # Starts take longer than start_timeout_s of the second, and the crowd makes both scale: the guards have work.
    load = make_load((Sine(20.0, 200.0, 14400.0), FlashCrowd(300.0, 7200.0)), 21600.0, 60.0, seed=0)
    still = Scenario.constant(rate=1.0, capacity_per_worker=20.0)
    scenario = replace(still, load=load, worker=WorkerSpec(start_s=150.0))
    steps = list(replay(scenario, Named.parse(name).build(scenario.job())))
    assert sum("held" in step.decision.reason for step in steps) > 10
    for cut in range(200, len(steps), 23):
        fresh = Named.parse(name).build(scenario.job())
        tail = [step for step in steps[:cut] if step.seen.time_s > steps[cut - 1].seen.time_s - fresh.memory_s]
        plant = RecordedPlant(tail)
        for _ in control(plant, fresh, scenario.limits, plant.ticks()):
            pass
        ours = [len(fresh.decide(step.seen).target.workers) for step in steps[cut:]]
        assert ours == [len(step.decision.target.workers) for step in steps[cut:]], f"cut at {cut}"


def test_where_lateness_is_unknown_batches_that_overrun_their_trigger_keep_workers() -> None:
    policy, target = Guards(hold_while_late_s=600.0).around(Wishes([1] * 4), JOB), Allocation.of(3)
    counts = []
    for minute, took_s in enumerate((12.0, 9.0, 12.0, 0.0), 1):
        batch = Batch(100.0, 10.0, took_s, 1.0, 0.0) if took_s else None
        seen = Observation(60.0 * minute, 60.0, 0, 0, 0, 0, 0, None, None, 0, target, target, batch=batch)
        decision = policy.decide(seen)
        counts.append((len(decision.target.workers), "overrun" in decision.reason))
    assert counts == [(3, True), (1, False), (3, True), (1, False)]


def test_a_policy_that_needs_the_backlog_is_known_through_its_guards() -> None:
    class Blind(Wishes):
        needs_lag = True

    assert needs_lag(Named.parse("threshold").build_safe(JOB)) is False
    assert needs_lag(safe(Blind([1]), JOB)) is True
