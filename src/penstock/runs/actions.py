"""Scaling actions of a run: when, from how many workers to how many, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from penstock.core.allocation import Allocation, Knob
from penstock.core.loop import Step

# A screen is about 1,500 pixels wide: more marks than that cannot be told apart.
ACTIONS_MAX = 1500


@dataclass(frozen=True, slots=True)
class Action:
    """One change of the applied target, or several neighbouring ones drawn as one mark.

    >>> out, back = Action(60.0, 1, 2, 3, "busy"), Action(120.0, 2, 3, 1, "idle")
    >>> both = Action.joined([out, back])
    >>> both.count, both.before, both.after, both.reason, both.last_reason
    (2, 2, 1, 'busy', 'idle')
    """

    time_s: float
    step: int
    """The first step is 1."""
    before: int
    """Workers asked for until then, and after."""
    after: int
    reason: str
    count: int = 1
    until_s: float | None = None
    """The last of several; `None` for a single action."""
    last_reason: str = ""

    @classmethod
    def joined(cls, marks: Sequence[Action]) -> Action:
        """One mark for neighbours: from the first to the last, and how many there were."""
        first, last = marks[0], marks[-1]
        if first is last:
            return first
        return cls(
            first.time_s,
            first.step,
            first.before,
            last.after,
            first.reason,
            sum(mark.count for mark in marks),
            last.time_s if last.until_s is None else last.until_s,
            last.last_reason or last.reason,
        )


class Watch:
    """Tells the steps that are scaling actions: as in the score, an equal target, or another batch size, is none."""

    def __init__(self) -> None:
        self._target: Allocation | None = None

    def action(self, step: Step, number: int) -> Action | None:
        before = step.seen.target if self._target is None else self._target
        self._target = after = step.target
        if before is after or not after.turned(before) - {Knob.BATCH_SIZE}:
            return None
        return Action(step.seen.time_s, number, len(before.workers), len(after.workers), step.decision.reason)


class Actions:
    """Notes scaling actions; neighbours share a mark as soon as there are more than a screen can show."""

    def __init__(self) -> None:
        self._watch = Watch()
        self._marks: list[Action] = []

    @property
    def count(self) -> int:
        return sum(mark.count for mark in self._marks)

    @property
    def merged(self) -> int:
        """How many actions share a mark with another: it changes when marks do that stood already."""
        return self.count - len(self._marks)

    def note(self, step: Step, number: int) -> None:
        """Look at one step."""
        action = self._watch.action(step, number)
        if action is None:
            return
        self._marks.append(action)
        if len(self._marks) > ACTIONS_MAX:
            # Half as many, so that the next merge is at least 750 actions away.
            self._marks = list(self.marks(ACTIONS_MAX // 2))

    def marks(self, at_most: int = ACTIONS_MAX) -> tuple[Action, ...]:
        """The actions, those within an equal stretch of time as one mark when there are too many."""
        marks = self._marks
        if len(marks) <= at_most:
            return tuple(marks)
        start_s = marks[0].time_s
        every_s = (marks[-1].time_s - start_s) / max(1, at_most - 1) or 1.0
        groups = groupby(marks, key=lambda mark: (mark.time_s - start_s) // every_s)
        return tuple(Action.joined(list(group)) for _, group in groups)
