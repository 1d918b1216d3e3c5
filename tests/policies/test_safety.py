"""What is kept when a policy fails, when workers do not come, and while a person pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.allocation import Allocation, Knob, Worker
from penstock.core.journal import Header, Journal, JournalWriter
from penstock.core.loop import Decision, Policy
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.policies.registry import Named
from penstock.policies.safety import FailsStatic, Paused, StartTimeout
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import WorkerSpec

JOB = Scenario.constant(rate=1.0, capacity_per_worker=10.0).job()


class Does:
    """Wants so many workers, one entry a tick; an exception is raised, anything else returned as it is."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 30.0

    def __init__(self, entries: Sequence[Any]) -> None:
        self._entries = iter(entries)

    def decide(self, seen: Observation) -> Decision:
        entry = next(self._entries)
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, int):
            return Decision(seen.target.resized(entry), "as wished", {"wish": entry})
        return entry  # type: ignore[no-any-return]


def seen(minute: float, target: Allocation, running: Allocation | None = None) -> Observation:
    return Observation(60.0 * minute, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, target if running is None else running, target)


def driven(policy: Policy, ticks: int, at_start: int = 2) -> list[Decision]:
    """Decisions of some minutes; workers come at once."""
    target, decisions = Allocation.of(at_start), []
    for minute in range(1, ticks + 1):
        decisions.append(policy.decide(seen(minute, target)))
        target = decisions[-1].target
    return decisions


def counts(decisions: Sequence[Decision]) -> list[int]:
    return [len(decision.target.workers) for decision in decisions]


class TestAPolicyThatFails:
    def test_keeps_the_present_target_says_so_once_and_is_asked_again(self) -> None:
        policy = FailsStatic(Does([3, ValueError("no\nidea"), ValueError("x"), 5, 5]), JOB, failures_max=4)
        decisions = driven(policy, 5)
        assert counts(decisions) == [3, 3, 3, 5, 5]
        said = [decision.reason for decision in decisions]
        assert said[0] == said[4] == "as wished"
        assert said[1].startswith(
            "the policy failed, and is asked again every tick; 3 workers stay: ValueError: no idea"
        )
        assert "test_safety.py, line" in said[1]
        assert said[2] == "the policy still fails: 3 workers stay"
        assert said[3] == "as wished (the policy works again after 2 failures)"

    def test_is_pinned_after_so_many_failures_until_it_works_as_often(self) -> None:
        bad = RuntimeError("down")
        # Two failures in a row pin to 4. One good decision is not enough, a failure begins the count anew.
        policy = FailsStatic(Does([bad, bad, bad, 7, bad, 7, 7, 7]), JOB, failures_max=2, safe_workers=4)
        decisions = driven(policy, 8)
        assert counts(decisions) == [2, 4, 4, 4, 4, 4, 7, 7]
        said = [decision.reason for decision in decisions]
        assert said[1].startswith(
            "failed 2 times in a row: pinned to 4 workers until the policy has worked 2 times in a row: RuntimeError"
        )
        assert said[2] == said[4] == "pinned to 4 workers: the policy still fails"
        assert said[3] == said[5]
        assert said[3] == "as wished (held: pinned to 4 workers until the policy has worked 2 times in a row)"
        assert said[6] == "as wished (the policy works again after 4 failures)"
        assert said[7] == "as wished"

    def test_without_a_safe_count_keeps_what_is_there(self) -> None:
        assert counts(driven(FailsStatic(Does([3] + [OSError()] * 9), JOB, failures_max=2), 10)) == [3] * 10

    def test_a_safe_count_lies_within_the_limits(self) -> None:
        job = replace(JOB, limits=Limits(1, 6))
        assert counts(driven(FailsStatic(Does([OSError()]), job, failures_max=1, safe_workers=99), 1)) == [6]

    @pytest.mark.parametrize(
        ("nonsense", "message"),
        [
            (None, "decided None: decide(seen) must return a Decision"),
            (Decision(7, "seven"), "a target 7: it must be an Allocation"),  # type: ignore[arg-type]
            (Decision(Allocation((Worker("w1"), Worker("w1"))), "twins"), "2 workers with 1 names"),
            (Decision(Allocation.of(1), ""), "a reason is one line"),
            (Decision(Allocation.of(1), "two\nlines"), "a reason is one line"),
            (Decision(Allocation.of(1), "why", {"load": float("nan")}), "the signal load = nan"),
            (Decision(replace(Allocation.of(2), instances={"a": ("w1",)}), "all"), "does not declare in its needs"),
        ],
    )
    def test_nonsense_is_a_failure(self, nonsense: object, message: str) -> None:
        [decision] = driven(FailsStatic(Does([nonsense]), JOB, failures_max=3), 1)
        assert counts([decision]) == [2]
        assert message in decision.reason
        assert "\n" not in decision.reason

    def test_a_placement_is_kept_and_not_resized(self) -> None:
        placed = replace(Allocation.of(2), instances={"parse": ("w1", "w2")})
        policy = FailsStatic(Does([OSError()]), JOB, failures_max=1, safe_workers=1)
        assert policy.decide(seen(1, placed)).target == placed

    def test_remembers_the_failures_and_the_good_decisions_that_end_a_pin(self) -> None:
        assert FailsStatic(Does([]), JOB, failures_max=5).memory_s == 30.0 + 2 * 5 * 60.0

    def test_a_replay_goes_on_to_its_end(self) -> None:
        class Flaky(Does):
            def decide(self, seen: Observation) -> Decision:
                if 600 < seen.time_s <= 1200:
                    raise ZeroDivisionError
                return Decision(seen.target.resized(3), "three")

        scenario = Scenario.constant(rate=10.0, capacity_per_worker=10.0, workers_at_start=1)
        steps = list(replay(scenario, FailsStatic(Flaky([]), scenario.job(), failures_max=3, safe_workers=5)))
        # Failing from minute 11 on: pinned from the third failure, minute 13; good from minute 21, released at 23.
        assert [len(step.target.workers) for step in steps] == [3] * 12 + [5] * 10 + [3] * 38

    def test_a_journal_folds_what_goes_on_failing(self, tmp_path: Path) -> None:
        scenario = Scenario.constant(rate=10.0, capacity_per_worker=10.0, workers_at_start=1)
        job = scenario.job()
        header = Header(job.name, "broken", job.limits, job.objective, job.price, job.tick_s)
        with JournalWriter.at(tmp_path / "journal", header) as journal:
            for step in replay(scenario, FailsStatic(Does([OSError("x")] * 60), job, failures_max=99)):
                journal.write(step)
        text = (tmp_path / "journal").read_text()
        assert (text.count("the policy failed"), text.count("the policy still fails")) == (1, 1)
        assert len(list(Journal.open(tmp_path / "journal"))) == 60


class TestWorkersThatDoNotCome:
    def decided(self, wishes: Sequence[int], came: Sequence[int], within_s: float = 120.0) -> list[Decision]:
        """One wish a minute, and how many workers run then."""
        policy, target, decisions = StartTimeout(Does(wishes), within_s, JOB), Allocation.of(2), []
        for minute, running in enumerate(came, start=1):
            decisions.append(policy.decide(seen(minute, target, target.resized(running))))
            target = decisions[-1].target
        return decisions

    def test_no_more_are_asked_for_and_it_is_said_once(self) -> None:
        # 3 are asked for after minute 1; two minutes later, at minute 3, the third has not come.
        decisions = self.decided([3, 4, 5, 6, 7], [2, 2, 2, 2, 2])
        assert counts(decisions) == [3, 4, 4, 4, 4]
        assert [decision.reason for decision in decisions] == [
            "as wished",
            "as wished",
            "as wished (held: workers do not come) (2 of 4 workers did not come within 120 s:"
            " no more are asked for until one comes)",
            "as wished (held: workers do not come)",
            "as wished (held: workers do not come)",
        ]

    def test_one_that_comes_sets_it_free_for_a_while(self) -> None:
        decisions = self.decided([4, 4, 5, 5, 6, 7], [2, 2, 2, 3, 3, 3])
        # Late at minute 3. One comes in minute 4, so the clock runs from minute 3; late again at minute 5.
        assert counts(decisions) == [4, 4, 4, 5, 5, 5]

    def test_the_arrival_of_all_is_said(self) -> None:
        decisions = self.decided([3, 3, 3, 3, 3], [2, 2, 2, 3, 3])
        assert "1 of 3 workers did not come" in decisions[2].reason
        assert [decision.reason for decision in decisions[3:]] == ["as wished (all 3 workers have come)", "as wished"]

    def test_scaling_in_is_never_held(self) -> None:
        assert counts(self.decided([5, 5, 5, 1, 1], [2, 2, 2, 2, 1])) == [5, 5, 5, 1, 1]

    def test_a_worker_that_comes_and_goes_is_no_progress(self) -> None:
        # It comes in minute 2, dies, and comes back: the clock runs from minute 1, when the first arrival began.
        decisions = self.decided([4, 5, 6, 7, 8], [2, 3, 2, 3, 2])
        assert counts(decisions) == [4, 5, 5, 5, 5]

    def test_in_a_replay_a_policy_whose_workers_never_come_stops_asking(self) -> None:
        class Upward(Does):
            def decide(self, seen: Observation) -> Decision:
                return Decision(seen.target.resized(len(seen.target.workers) + 1), "more")

        still = Scenario.constant(rate=100.0, capacity_per_worker=10.0, workers_at_start=1)
        scenario = replace(still, worker=WorkerSpec(start_s=1e9))
        # One more at each of the minutes 1 … 5; at minute 6 the first has been awaited for 300 s.
        steps = list(replay(scenario, StartTimeout(Upward([]), 300.0, JOB)))
        assert [len(step.target.workers) for step in steps] == [2, 3, 4, 5, 6] + [6] * 55
        assert sum("did not come" in step.decision.reason for step in steps) == 1

    def test_the_default_of_a_live_run_does_the_same(self) -> None:
        still = Scenario.constant(rate=100.0, capacity_per_worker=10.0, workers_at_start=1)
        scenario = replace(still, worker=WorkerSpec(start_s=(100.0, 1e9)))
        steps = list(replay(scenario, Named.parse("threshold").build_safe(scenario.job())))
        assert max(len(step.target.workers) for step in steps) == 2


class TestAPause:
    def test_freezes_the_target_says_so_once_and_ends(self) -> None:
        flags = iter([False, True, True, False, False])
        decisions = driven(Paused(Does([3, 4, 5, 6, 7]), lambda: next(flags), "stop.txt until it is gone"), 5)
        assert counts(decisions) == [3, 3, 3, 6, 7]
        assert [decision.reason for decision in decisions] == [
            "as wished",
            "as wished (paused by stop.txt until it is gone)",
            "as wished (paused)",
            "as wished (the pause is over)",
            "as wished",
        ]
        assert decisions[2].signals == {"wish": 5}  # the policy goes on thinking

    def test_needs_and_remembers_what_the_policy_does(self) -> None:
        always: Callable[[], bool] = lambda: True  # noqa: E731
        policy = Paused(Does([]), always, "a signal")
        assert (policy.needs, policy.memory_s) == (frozenset({Knob.WORKERS}), 30.0)
