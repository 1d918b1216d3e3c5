"""Guards against haste: warm-up, cooldown, confirmation, a window for scaling in, and none of it while late."""

from __future__ import annotations

from collections import deque

from penstock.core.allocation import Allocation
from penstock.core.job import Job
from penstock.core.loop import Decision, Policy
from penstock.core.observation import Observation


class Guard:
    """What all guards share: they need and remember what the policy inside does."""

    def __init__(self, policy: Policy, span_s: float, job: Job) -> None:
        self.inside = policy
        self.needs = policy.needs
        self.memory_s = policy.memory_s + span_s
        self._span_s, self._job = span_s, job

    def grows(self, seen: Observation, target: Allocation) -> int:
        """1 where a target is more than what was asked for last, -1 where it is less: counted in cores."""
        wanted, asked = self._job.cores(target), self._job.cores(seen.target)
        return (wanted > asked) - (wanted < asked)


class WarmUp(Guard):
    """Changes nothing in the first seconds: the first measurements are of a cold job."""

    _begun_s: float | None = None

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        if self._begun_s is None:
            self._begun_s = seen.time_s - seen.span_s
        left_s = self._begun_s + self._span_s - seen.time_s
        return held(seen, decision, f"warming up, {left_s:.0f} s left") if left_s > 0 else decision


class Cooldown(Guard):
    """After a change, none for a while: the last one must show its effect first."""

    _changed_s: float | None = None
    _before: Observation | None = None

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        # A change is what was applied, not what was wished: a wish that limits, a pause or the plant refused is none.
        if self._before is not None and self._before.target != seen.target:
            self._changed_s = self._before.time_s
        self._before = seen
        if self._changed_s is not None and seen.time_s < self._changed_s + self._span_s:
            left_s = self._changed_s + self._span_s - seen.time_s
            return held(seen, decision, f"cooling down, {left_s:.0f} s left")
        return decision


class Confirmed(Guard):
    """A change in one direction must be wanted for a while before it is made."""

    _direction = 0
    _since_s = 0.0

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        direction = self.grows(seen, decision.target)
        if direction != self._direction:
            self._direction, self._since_s = direction, seen.time_s
        left_s = self._since_s + self._span_s - seen.time_s
        if direction and left_s > 0:
            return held(seen, decision, f"to be confirmed for {left_s:.0f} s more")
        return decision


class DownWindow(Guard):
    """Never less than the most that was wanted within the window, counted in cores."""

    def __init__(self, policy: Policy, span_s: float, job: Job) -> None:
        super().__init__(policy, span_s, job)
        self._wanted: deque[tuple[float, float]] = deque()  # times rise, cores fall: the first is the most

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        cores = self._job.cores(decision.target)
        while self._wanted and self._wanted[-1][1] <= cores:
            self._wanted.pop()
        self._wanted.append((seen.time_s, cores))
        while self._wanted[0][0] <= seen.time_s - self._span_s:
            self._wanted.popleft()
        most = self._wanted[0][1]
        if most <= cores or self.grows(seen, decision.target) >= 0:
            return decision
        kept = self._least(seen.target, most)
        why = f"{decision.reason} (held at {len(kept.workers)}: wanted within the last {self._span_s:.0f} s)"
        return Decision(kept, why, decision.signals)

    def _least(self, asked: Allocation, cores: float) -> Allocation:
        """What was asked for, without the workers that even the most did not need; a placement stays as it is."""
        if asked.instances or asked.cpu_share:
            return asked
        for count in range(len(asked.workers), 0, -1):
            if self._job.cores(asked.resized(count - 1)) < cores:
                return asked.resized(count)
        return asked


class HoldWhileLate(Guard):
    """No fewer workers while the objective is missed. After so long it lets go: then workers are not what it takes.

    A batch that waits for one cold worker leaves the others idle: live, the mean CPU was 21 % with events 75 s old.
    Where nobody knows whether the objective is missed, a batch that took longer than its trigger counts as late.
    """

    _since_s: float | None = None

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        missed = self._job.objective.missed(seen, seen.input_rate * seen.span_s)
        is_late = missed if missed is not None else seen.batch is not None and seen.batch.overran
        if not is_late:
            self._since_s = None
            return decision
        self._since_s = seen.time_s if self._since_s is None else self._since_s
        falls = self.grows(seen, decision.target) < 0
        is_new = seen.time_s < self._since_s + self._span_s
        why = "the objective is missed" if missed else "batches overrun their trigger"
        return held(seen, decision, why) if falls and is_new else decision


def held(seen: Observation, decision: Decision, why: str) -> Decision:
    """The present target instead of the one that was decided; a decision to change nothing stays as it is."""
    if decision.target == seen.target:
        return decision
    return Decision(seen.target, f"{decision.reason} (held: {why})", decision.signals)
