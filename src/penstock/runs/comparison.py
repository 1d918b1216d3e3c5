"""What is compared: runs over one trace, under one objective, beside what no policy can beat."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.core.errors import BadInput
from penstock.core.journal import Header, Journal
from penstock.core.score import Score, Scorer
from penstock.runs.run_curves import Curves


@dataclass(frozen=True, slots=True)
class Run:
    """One policy's run: what it was, its numbers, its curves."""

    header: Header
    score: Score
    curves: Curves

    @property
    def name(self) -> str:
        return self.header.policy

    @property
    def knows_future(self) -> bool:
        """Then nobody can have it, however good its score."""
        return self.name.partition(":")[0] == "clairvoyant"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side.

    >>> Comparison("nasa", "latency<=120s", (), bound_lower=10.0).to_bound(12.5)
    1.25
    """

    trace: str
    objective: str
    runs: tuple[Run, ...]
    bound_lower: float | None = None
    """No plan within the objective costs less."""
    bound_cost: float | None = None
    """A plan made with the whole future known, and kept within the objective, costs this."""
    bound_note: str = ""
    """How sure the bound is, where it is not quite."""
    assumed: Mapping[str, str] = field(default_factory=dict)
    """What was derived because nobody said it: `{"capacity": "50/s a worker"}`."""

    objective_note: str = ""
    """What the objective itself costs, where a looser one would save much."""
    notes: Sequence[str] = ()
    """What else a fair reader must know: which policies run as they are, and whose rules lean on what was assumed."""

    def to_bound(self, cost: float) -> float | None:
        """A cost as a multiple of the lower bound; `None` without one."""
        lower = self.bound_lower
        return cost / lower if lower is not None and 0 < lower < math.inf else None

    def undercut_by(self, run: Run) -> bool:
        """Does it cost less than the bound, as only those can that miss the objective?"""
        ratio = self.to_bound(run.score.cost)
        return ratio is not None and ratio < 1 and run.score.violation_share > 0


def run_of_journal(path: Path) -> tuple[Run, int]:
    """A journal, scored and made into curves; and how many of its lines were damaged."""
    journal = Journal.open(path)
    scorer = Scorer(journal.header.objective, journal.header.price, journal.header.kinds)
    curves = Curves(journal.header.objective)
    for step in journal:
        scorer.add(step)
        curves.add(step)
    if not curves.steps:
        raise BadInput(f"{path} has no steps: the run wrote its header and nothing more")
    return Run(journal.header, scorer.result(), curves), journal.damaged
