"""Safety margins around any policy, one small wrapper each. What was replayed with them is what runs.

`guarded` composes them in one visible place; as parameters of any policy: `threshold:cooldown_s=300,confirm_s=120`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.errors import BadInput
from penstock.core.loop import Decision, Policy
from penstock.core.observation import Observation


class _Guard:
    """What all guards share: they need and remember what the policy inside does."""

    def __init__(self, policy: Policy, span_s: float) -> None:
        self.inside = policy
        self.needs = policy.needs
        self.memory_s = policy.memory_s + span_s
        self._span_s = span_s


class WarmUp(_Guard):
    """Changes nothing in the first seconds: the first measurements are of a cold job."""

    _begun_s: float | None = None

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        if self._begun_s is None:
            self._begun_s = seen.time_s - seen.span_s
        left_s = self._begun_s + self._span_s - seen.time_s
        return _held(seen, decision, f"warming up, {left_s:.0f} s left") if left_s > 0 else decision


class Cooldown(_Guard):
    """After a change, none for a while: the last one must show its effect first."""

    _changed_s: float | None = None

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        if decision.target == seen.target:
            return decision
        if self._changed_s is not None and seen.time_s < self._changed_s + self._span_s:
            left_s = self._changed_s + self._span_s - seen.time_s
            return _held(seen, decision, f"cooling down, {left_s:.0f} s left")
        self._changed_s = seen.time_s
        return decision


class Confirmed(_Guard):
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
            return _held(seen, decision, f"to be confirmed for {left_s:.0f} s more")
        return decision


class DownWindow(_Guard):
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


def _held(seen: Observation, decision: Decision, why: str) -> Decision:
    if decision.target == seen.target:
        return decision
    return Decision(seen.target, f"{decision.reason} (held: {why})", decision.signals)


@dataclass(frozen=True, slots=True)
class Guards:
    """How long each guard holds; 0 leaves it out."""

    warm_up_s: float = 0.0
    cooldown_s: float = 0.0
    confirm_s: float = 0.0
    down_window_s: float = 0.0

    def __post_init__(self) -> None:
        for name, span_s in self.given().items():
            if not span_s > 0:
                raise BadInput(f"{name}={span_s:g}: a guard holds for more than 0 seconds")

    def given(self) -> Mapping[str, float]:
        return {name: getattr(self, name) for name in GUARDS if getattr(self, name) != 0}

    def around(self, policy: Policy) -> Policy:
        """The order matters: a held change must not start a cooldown, so the cooldown stands outside."""
        for name, span_s in self.given().items():
            policy = GUARDS[name](policy, span_s)
        return policy


GUARDS: Mapping[str, type[WarmUp | Cooldown | Confirmed | DownWindow]] = {
    "down_window_s": DownWindow,
    "confirm_s": Confirmed,
    "cooldown_s": Cooldown,
    "warm_up_s": WarmUp,
}
