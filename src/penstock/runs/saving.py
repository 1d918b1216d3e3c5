"""What the default policy would save against the best of what else was replayed, at which violations."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.runs.comparison import Comparison, Run

DEFAULT = "deadline"


@dataclass(frozen=True, slots=True)
class Saving:
    """The default beside one other."""

    ours: Run
    other: Run
    """The cheapest that misses no more; where all miss more, that which misses least."""

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
        """Does the other miss no more?"""
        return _missed(self.other) <= _missed(self.ours)

    @property
    def sentence(self) -> str:
        """One sentence for whoever pays."""
        ours, other = self.ours, self.other
        share = "" if self.share is None else f" ({abs(self.share):.1%})"
        what = f"would save ${self.cost:,.2f}{share} against"
        if self.cost < 0:
            what = f"would cost ${-self.cost:,.2f}{share} more than"
        beside = f"{other.name} (${other.score.cost:,.2f}, missed {_missed(other):.3%} of the time)"
        if self.is_fair:
            than = f"the cheapest of the others that misses no more, {beside}"
        else:
            than = f"{beside}, though each of the others misses more"
        return f"{ours.name} {what} {than}, and misses {_missed(ours):.3%} itself."


def saving_of(comparison: Comparison) -> Saving | None:
    """The default beside the best other that one can have; None where there is no such pair."""
    ours = next((run for run in comparison.runs if run.name == DEFAULT), None)
    others = [run for run in comparison.runs if run is not ours and not run.knows_future]
    others = [run for run in others if not run.name.startswith(f"{DEFAULT}:")]
    if ours is None or not others:
        return None
    fair = [run for run in others if _missed(run) <= _missed(ours)]
    if fair:
        return Saving(ours, min(fair, key=lambda run: (run.score.cost, _missed(run))))
    return Saving(ours, min(others, key=lambda run: (_missed(run), run.score.cost)))


def _missed(run: Run) -> float:
    """What nobody knows is not kept."""
    return run.score.violation_share + run.score.unknown_share
