"""What the default policy would save against the best of what else was replayed, at which violations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.runs.comparison import Comparison, Run

DEFAULT = "deadline"
STRICT, LOOSE = 0.001, 0.01
"""Of the time: at these violations policies are compared."""


@dataclass(frozen=True, slots=True)
class Saving:
    """The default beside one other."""

    ours: Run
    other: Run
    """The cheapest that keeps to what is allowed; where none does, that which misses least."""
    allowed: float
    """Of the time: a thousandth, or what the default misses where that is more. As `penstock compare` judges."""
    cheaper: Run | None = None
    """The cheapest that misses up to a hundredth, where it costs less than both."""

    @property
    def cost(self) -> float:
        """Saved; negative where ours costs more."""
        return self.other.score.cost - self.ours.score.cost

    @property
    def share(self) -> float | None:
        """Of what the other costs; None where that is nothing."""
        return self.cost / self.other.score.cost if self.other.score.cost > 0 else None

    @property
    def is_fair(self) -> bool:
        """Does the other keep to what is allowed?"""
        return _missed(self.other) <= self.allowed

    @property
    def sentence(self) -> str:
        """For whoever pays: one sentence, and a second where less money buys more misses."""
        ours, other = self.ours, self.other
        share = "" if self.share is None else f" ({abs(self.share):.1%})"
        what = f"would save ${self.cost:,.2f}{share} against"
        if self.cost < 0:
            what = f"would cost ${-self.cost:,.2f}{share} more than"
        if self.is_fair:
            than = f"the cheapest of the others that misses at most {self.allowed:.3%} of the time, {_told(other)}"
        else:
            than = f"{_told(other)}, though each of the others misses more than {self.allowed:.3%} of the time"
        first = f"{ours.name} {what} {than}, and misses {_missed(ours):.3%} itself."
        return f"{first} At up to {LOOSE:.0%}: {_told(self.cheaper)}." if self.cheaper else first


def _told(run: Run) -> str:
    return f"{run.name} (${run.score.cost:,.2f}, missed {_missed(run):.3%})"


def saving_of(comparison: Comparison) -> Saving | None:
    """The default beside the best other that one can have; None where there is no such pair."""
    ours = next((run for run in comparison.runs if run.name == DEFAULT), None)
    others = [run for run in comparison.runs if run is not ours and not run.knows_future]
    others = [run for run in others if not run.name.startswith(f"{DEFAULT}:")]
    if ours is None or not others:
        return None
    allowed = max(STRICT, _missed(ours))
    fair = [run for run in others if _missed(run) <= allowed]
    if not fair:
        return Saving(ours, min(others, key=lambda run: (_missed(run), run.score.cost)), allowed)
    other = _cheapest(fair)
    loose = _cheapest([run for run in others if _missed(run) <= max(LOOSE, allowed)])
    least = min(ours.score.cost, other.score.cost)
    return Saving(ours, other, allowed, loose if loose.score.cost < least else None)


def _cheapest(runs: Sequence[Run]) -> Run:
    return min(runs, key=lambda run: (run.score.cost, _missed(run)))


def _missed(run: Run) -> float:
    """What nobody knows is not kept."""
    return run.score.violation_share + run.score.unknown_share
