"""MAPs that were fitted: which of them may be believed, and what is to be said about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from penstock.core.errors import BadInput
from penstock.models.arrivals.window import MODEST, Window
from penstock.models.markov.map import Map, poisson
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.lindley import driven
from penstock.models.queues.qbd import map_ph_1

# A candidate whose queue at half load is so many times the window's own has run away.
RUNAWAY, RUNAWAY_LOAD = 20.0, 0.5


@dataclass(frozen=True, eq=False)
class FittedMap(Map):
    """A MAP in seconds, and where it comes from."""

    method: str
    score: float
    """Lower is better; comparable between MAPs of one method and window."""
    window: int
    """Which of the windows given it was fitted to."""
    arrivals: int
    notes: tuple[str, ...]

    def __init__(self, D0: npt.ArrayLike, D1: npt.ArrayLike, **about: object) -> None:  # noqa: N803
        super().__init__(D0, D1)
        for name, value in about.items():
            object.__setattr__(self, name, value)

    @property
    def confidence(self) -> str:
        """`low` below 2,000 arrivals: predictions then scatter by 40 %."""
        return "low" if self.arrivals < MODEST else "usual"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A MAP with mean gap 1 that may be given back."""

    map: Map
    method: str
    score: float
    notes: tuple[str, ...] = ()
    key: tuple[float, ...] = ()

    def finished(self, window: Window, position: int) -> FittedMap:
        """In seconds, with the window's ties and its rate."""
        arrivals = self.map.in_batches(window.tied, window.step) if window.tied else self.map
        arrivals = arrivals.with_rate(window.rate)
        notes = (*window.notes, *self.notes)
        if window.drifts:
            notes += ("the rate drifts within the window: give shorter windows beside it",)
        return FittedMap(
            arrivals.D0, arrivals.D1, method=self.method, score=self.score, window=position,
            arrivals=window.count, notes=notes,
        )  # fmt: skip


def best_of(candidates: Sequence[Candidate], window: Window, best: int) -> list[Candidate]:
    """The best of those that have not run away; without any, a Poisson stream, which is said."""
    own = driven(window.gaps, [RUNAWAY_LOAD], [np.random.default_rng(0)])[0].mean
    sane = [one for one in candidates if _queue(one.map) <= RUNAWAY * own]
    kept = sorted(sane, key=lambda one: one.score)[:best]
    lost = len(candidates) - len(sane)
    note = (f"{lost} candidates left out: their queue ran away from the window's own",) if lost else ()
    if not kept:
        return [Candidate(poisson(1.0), "poisson", 0.0, (*note, "no candidate was left: taken as Poisson"))]
    return [replace(one, notes=(*one.notes, *note)) for one in kept]


def _queue(arrivals: Map) -> float:
    """Mean response at half load in service times; infinite where none can be computed."""
    try:
        return map_ph_1(arrivals.with_rate(1.0), PhaseType.erlang(2, RUNAWAY_LOAD)).mean_s / RUNAWAY_LOAD
    except BadInput:
        return float("inf")
