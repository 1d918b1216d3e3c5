"""The last decisions of a run; those that changed nothing share a line."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from penstock.core.loop import Step
from penstock.report import show
from penstock.report.explanation import change
from penstock.runs.actions import Watch

# More than a screen has room for; the journal and `penstock explain` have the rest.
ENTRIES_MAX = 40


@dataclass(frozen=True, slots=True)
class Decided:
    """One scaling action, or neighbouring decisions that left all as it was; the reason is the last one's."""

    step: int
    """The last one's number; the first step is 1."""
    since_s: float
    time_s: float
    outcome: str
    reason: str
    before: int
    after: int
    acted: bool
    count: int = 1

    @property
    def way(self) -> str:
        """Where it went: `up`, `down`, `moved`, or `kept`."""
        if not self.acted:
            return "kept"
        return "moved" if self.after == self.before else "up" if self.after > self.before else "down"


class Decisions:
    """Takes steps as they come and keeps the last decisions, the newest first."""

    def __init__(self) -> None:
        self._watch = Watch()
        self._entries: deque[Decided] = deque(maxlen=ENTRIES_MAX)

    def add(self, step: Step, number: int) -> None:
        entry = self._entry(step, number)
        last = self._entries[0] if self._entries else None
        if last is not None and not (entry.acted or last.acted) and last.outcome == entry.outcome:
            entry = replace(entry, since_s=last.since_s, count=last.count + 1)
            self._entries.popleft()
        self._entries.appendleft(entry)

    def last(self, at_most: int = ENTRIES_MAX) -> list[Decided]:
        return list(self._entries)[:at_most]

    def _entry(self, step: Step, number: int) -> Decided:
        time_s, decision = step.seen.time_s, step.decision
        acted = self._watch.action(step, number) is not None
        before, after, wanted = (len(each.workers) for each in (step.seen.target, step.target, decision.target))
        outcome = change(step.seen.target, step.target) if acted else f"{show.several(after, 'worker')} kept"
        if wanted != after:
            outcome += f", {wanted} wanted"
        return Decided(number, time_s, time_s, outcome, decision.reason, before, after, acted)
