"""Guards against haste: warm-up, cooldown, confirmation, a window for scaling in, and none of it while late."""

from __future__ import annotations

from collections import deque

from penstock.core.loop import Decision, Policy
from penstock.core.objective import Objective
from penstock.core.observation import Observation


class Guard:
    """What all guards share: they need and remember what the policy inside does."""

    def __init__(self, policy: Policy, span_s: float) -> None:
        self.inside = policy
        self.needs = policy.needs
        self.memory_s = policy.memory_s + span_s
        self._span_s = span_s


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
        wanted, asked = len(decision.target.workers), len(seen.target.workers)
        direction = (wanted > asked) - (wanted < asked)
        if direction != self._direction:
            self._direction, self._since_s = direction, seen.time_s
        left_s = self._since_s + self._span_s - seen.time_s
        if direction and left_s > 0:
            return held(seen, decision, f"to be confirmed for {left_s:.0f} s more")
        return decision


class DownWindow(Guard):
    """Never fewer workers than the most that were wanted within the window."""

    def __init__(self, policy: Policy, span_s: float) -> None:
        super().__init__(policy, span_s)
        self._wanted: deque[tuple[float, int]] = deque()  # times rise, counts fall: the first is the most

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        count = len(decision.target.workers)
        while self._wanted and self._wanted[-1][1] <= count:
            self._wanted.pop()
        self._wanted.append((seen.time_s, count))
        while self._wanted[0][0] <= seen.time_s - self._span_s:
            self._wanted.popleft()
        most = min(self._wanted[0][1], len(seen.target.workers))
        if most <= count:
            return decision
        why = f"{decision.reason} (held at {most}: wanted within the last {self._span_s:.0f} s)"
        return Decision(seen.target.resized(most), why, decision.signals)


class Late(Guard):
    """No fewer workers while the objective is missed. After so long it lets go: then workers are not what it takes.

    A batch that waits for one cold worker leaves the others idle: live, the mean CPU was 21 % with events 75 s old.
    Where nobody knows whether the objective is missed, a batch that took longer than its trigger counts as late.
    """

    _since_s: float | None = None

    def __init__(self, policy: Policy, span_s: float, objective: Objective) -> None:
        super().__init__(policy, span_s)
        self._objective = objective

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        missed = self._objective.missed(seen, seen.input_rate * seen.span_s)
        is_late = missed if missed is not None else seen.batch is not None and seen.batch.overran
        if not is_late:
            self._since_s = None
            return decision
        self._since_s = seen.time_s if self._since_s is None else self._since_s
        falls = len(decision.target.workers) < len(seen.target.workers)
        is_new = seen.time_s < self._since_s + self._span_s
        why = "the objective is missed" if missed else "batches overrun their trigger"
        return held(seen, decision, why) if falls and is_new else decision


def held(seen: Observation, decision: Decision, why: str) -> Decision:
    """The present target instead of the one that was decided; a decision to change nothing stays as it is."""
    if decision.target == seen.target:
        return decision
    return Decision(seen.target, f"{decision.reason} (held: {why})", decision.signals)
