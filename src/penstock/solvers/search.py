"""The best of many settings, by trying few of them: recursive random search (Ye and Kalyanaraman 2003; paper 2 §3.4).

Only the order of the values counts: a value may be a cost, or (violations, cost) where a constraint comes first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Generic, TypeVar

from penstock.core.bounds import SEED_MOST, between
from penstock.core.errors import BadInput
from penstock.solvers.space import Point, Range, Setting, Space, grid, size

Value = TypeVar("Value", float, tuple[float, ...])
# A point is evaluated once. On a small grid most draws repeat one, so they have an end of their own.
DRAWS_PER_EVALUATION = 20


@dataclass(frozen=True, slots=True)
class Found(Generic[Value]):
    """The best point that was tried, what it is worth, and how many were."""

    point: Point
    value: Value
    evaluations: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """How the search looks; p, r, q, v and c as the authors recommend."""

    confidence: float = 0.99
    """p: exploring has met the best `promising` part of the space with this probability."""
    promising: float = 0.1
    """r: the part of the space that is promising, and the volume of the first box around a promising point."""
    local_confidence: float = 0.99
    """q: failures in a box mean with this probability that less than `improving` of it is better."""
    improving: float = 0.8
    """v"""
    shrink: float = 0.5
    """c: the volume of the next box, relative to the one that failed."""
    # A volume of 0.001, as published, is a side of 0.32 on six axes: on the mean of 40 seeds it missed the best of a
    # smooth function of 720,000 points by 9 %, and this by 1 %.
    smallest: float = 0.01
    """The side of a box, relative to its axis, below which it is left."""

    def __post_init__(self) -> None:
        for key in self.__slots__:
            between(f"recursive random search: {key}", getattr(self, key), 1e-12, 1 - 1e-12)

    @property
    def explorations(self) -> int:
        """Samples of one round of exploring: n = ln(1 − p) / ln(1 − r)."""
        return math.ceil(math.log(1 - self.confidence) / math.log(1 - self.promising))

    @property
    def failures(self) -> int:
        """Failures in a row before a box shrinks: l = ln(1 − q) / ln(1 − v)."""
        return math.ceil(math.log(1 - self.local_confidence) / math.log(1 - self.improving))


def exhaustive(objective: Callable[[Point], Value], space: Space) -> Found[Value]:
    """The best of all points, the first of equals: what a search is measured against.

    >>> exhaustive(lambda at: (at["x"] - 2.25) ** 2, {"x": Range(0, 9, 1)})
    Found(point={'x': 2}, value=0.0625, evaluations=10)
    """
    best: Found[Value] | None = None
    for number, point in enumerate(grid(space), start=1):
        value = _valued(objective, point)
        # Not `min`: a whole space of 720,000 points must not be kept.
        better = best is None or value < best.value
        best = Found(point, value, number) if best is None or better else replace(best, evaluations=number)
    assert best is not None, "a grid has at least one point"
    return best


def recursive_random(
    objective: Callable[[Point], Value], space: Space, budget: int, seed: int, tuning: Tuning | None = None
) -> Found[Value]:
    """The best point of a search with so many evaluations at most; the same for the same seed.

    >>> best = recursive_random(lambda at: (at["x"] - 2.2) ** 2, {"x": Range(-100.0, 100.0)}, budget=300, seed=1)
    >>> round(best.point["x"]), best.evaluations
    (2, 300)
    """
    between("the budget of a search", budget, 1)
    between("the seed of a search", seed, 0, SEED_MOST)
    if not space:
        raise BadInput("a search needs at least one range or choice")
    search = _Search(objective, space, budget, random.Random(seed))
    search.run(tuning or Tuning())
    return search.found()


def _valued(objective: Callable[[Point], Value], point: Point) -> Value:
    value = objective(point)
    # Nothing is less than what is no number: it would stay the best for ever.
    if any(math.isnan(part) for part in (value if isinstance(value, tuple) else (value,))):
        raise BadInput(f"the objective of a search is no number at {point}")
    return value


class _Search(Generic[Value]):
    """Points are places from 0 to 1 on each axis; what was evaluated is kept."""

    def __init__(self, objective: Callable[[Point], Value], space: Space, budget: int, rng: random.Random) -> None:
        self._objective: Callable[[Point], Value] = objective
        self._space, self._rng = space, rng
        self._evaluations = min(budget, size(space) or budget)
        self._draws = DRAWS_PER_EVALUATION * budget
        self._tried: dict[tuple[Setting, ...], Value] = {}
        self._best: tuple[Point, Value] | None = None

    @property
    def is_spent(self) -> bool:
        return len(self._tried) >= self._evaluations or self._draws <= 0

    def found(self) -> Found[Value]:
        assert self._best is not None, "a search has a budget of at least one"
        return Found(*self._best, len(self._tried))

    def run(self, tuning: Tuning) -> None:
        """Rounds of exploring. The best of the first is exploited; later what beats a usual round's best, at once."""
        rounds: list[Value] = []
        while not self.is_spent:
            promising = median_low(rounds) if rounds else None
            places, value = self._explore(tuning, promising)
            rounds.append(value)
            if promising is None:
                self._exploit(places, value, tuning)

    def _explore(self, tuning: Tuning, promising: Value | None) -> tuple[list[float], Value]:
        """The best of one round.

        The authors compare with the mean over the rounds. The median takes their order alone, and one round that met
        nothing but violations (paper 2: MAX and more) does not make every point promising.
        """
        best: tuple[list[float], Value] | None = None
        for _ in range(tuning.explorations):
            places = [self._rng.random() for _ in self._space]
            value = self._value(places)
            if best is None or value < best[1]:
                best = places, value
            if promising is not None and value < promising:
                self._exploit(places, value, tuning)
            if self.is_spent:
                break
        assert best is not None, "a round has at least one sample"
        return best

    def _exploit(self, places: list[float], value: Value, tuning: Tuning) -> None:
        """Boxes around the best point so far: moved to a better one, shrunk where there is none."""
        side, failures = tuning.promising ** (1 / len(places)), 0
        while side > tuning.smallest and not self.is_spent:
            near = self._near(places, side)
            here = self._value(near)
            failures = 0 if here < value else failures + 1
            if here <= value:
                # An equal one too, though it is a failure: costs are whole hosts, and on a plateau it is the way on.
                places, value = near, here
            if failures == tuning.failures:
                side, failures = tuning.shrink ** (1 / len(places)) * side, 0

    def _near(self, places: list[float], side: float) -> list[float]:
        """A point of the box with this side around another; at a border the box is moved inwards, not cut.

        Options have no order: one is drawn anew with the probability of the side, but at least once in as many samples
        as there are axes, or a box that began with the wrong option could hardly leave it.
        """
        rng, anew = self._rng, max(side, 1 / len(places))
        near = []
        for place, axis in zip(places, self._space.values(), strict=True):
            if isinstance(axis, Range):
                near.append(min(max(place - side / 2, 0.0), 1 - side) + side * rng.random())
            else:
                near.append(rng.random() if rng.random() < anew else place)
        return near

    def _value(self, places: list[float]) -> Value:
        self._draws -= 1
        settings = tuple(axis.at(place) for axis, place in zip(self._space.values(), places, strict=True))
        if settings not in self._tried:
            point = dict(zip(self._space, settings, strict=True))
            self._tried[settings] = value = _valued(self._objective, point)
            if self._best is None or value < self._best[1]:
                self._best = point, value
        return self._tried[settings]
