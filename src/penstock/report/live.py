"""A run that may still go on: its score, curves and last decisions, read from its journal as that grows."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from penstock.core.follow import Follower
from penstock.core.journal import Header
from penstock.core.loop import Step
from penstock.core.score import Scorer
from penstock.report.decided import Decisions
from penstock.runs.comparison import Run
from penstock.runs.run_curves import Curves

# About a fifth of a second of reading: a page that asks meanwhile is answered soon.
LINES = 4000


class LiveRun:
    """Follows one journal in constant memory, whatever its length; a finished journal is one that stopped growing."""

    def __init__(self, path: Path) -> None:
        self._follower = Follower(path)
        self.generation = 0
        """How many runs the file has held; a rotated journal of the same run goes on."""
        self._files = self._follower.files
        self._fresh()

    def _fresh(self) -> None:
        self.header: Header = self._follower.header
        self._scorer = Scorer(self.header.objective, self.header.price, self.header.kinds)
        self.curves = Curves(self.header.objective)
        self.decisions = Decisions()
        self.last: Step | None = None
        self.missed: bool | None = False
        """Did the last step miss the objective? None: nobody can tell."""
        self.generation += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.__exit__()

    def advance(self, lines: int = LINES) -> bool:
        """Read what is new, at most so many lines; was there anything?"""
        steps = self._follower.read(lines)
        if self._files != self._follower.files and steps:
            self._files = self._follower.files
            if not self._goes_on(steps[0]):
                self._fresh()
        for step in steps:
            self._add(step)
        return bool(steps)

    @property
    def path(self) -> Path:
        return self._follower.path

    @property
    def steps(self) -> int:
        return self.curves.steps

    @property
    def share(self) -> float:
        """How much of the journal is read, 0…1."""
        return self._follower.share

    @property
    def trouble(self) -> str:
        """What a person should know about the file; empty where all is well."""
        follower = self._follower
        if follower.trouble or not follower.damaged:
            return follower.trouble
        if follower.damaged == 1:
            return f"{follower.first_damaged} is damaged and left out"
        beside = f"{follower.damaged} lines are left out, as they are damaged or lean on one that is"
        return f"{follower.first_damaged} is damaged; {beside}"

    def silent_s(self, now_s: float) -> float:
        """How long ago (now in Unix time) the journal last grew."""
        return max(0.0, now_s - self._follower.changed_s)

    def run(self) -> Run:
        """The run as it is now, for tables and pages."""
        return Run(self.header, self._scorer.result(), self.curves)

    def _goes_on(self, step: Step) -> bool:
        """Is the new file the next part of the same run?"""
        old, new = self.header, self._follower.header
        same = (old.job, old.policy, old.origin_s, old.tick_s) == (new.job, new.policy, new.origin_s, new.tick_s)
        return same and self.last is not None and step.seen.time_s > self.last.seen.time_s

    def _add(self, step: Step) -> None:
        arrived = self.last.seen.arrived if self.last else 0.0
        self.missed = self.header.objective.missed(step.seen, step.seen.arrived - arrived, step.could)
        self._scorer.add(step)
        self.curves.add(step)
        self.decisions.add(step, self.curves.steps)
        self.last = step
