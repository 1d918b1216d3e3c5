"""What a search may choose from: ranges of numbers, with or without a grid, and options without an order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.core.errors import BadInput

Setting = float | str
Point = dict[str, Setting]


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, both included; with a step, only those on its grid.

    >>> Range(0.75, 0.9, 0.05).values()
    (0.75, 0.8, 0.85, 0.9)
    """

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.high < math.inf:
            raise BadInput(f"a range from {self.low:g} to {self.high:g} is empty or endless: low, then high")
        if self.step is not None and not 0 < self.step < math.inf:
            raise BadInput(f"a range's step is {self.step:g}: it must be above 0")

    @property
    def count(self) -> int | None:
        """How many values it has; None: no grid."""
        return None if self.step is None else math.floor((self.high - self.low) / self.step + 1e-9) + 1

    def values(self) -> tuple[float, ...]:
        if self.count is None:
            raise BadInput(f"a range from {self.low:g} to {self.high:g} without a step has no grid: give it a step")
        return tuple(self.at(index / self.count) for index in range(self.count))

    def at(self, place: float) -> float:
        """The value at a place from 0 to 1 (excluded, on a grid)."""
        if self.step is None or self.count is None:
            return self.low + place * (self.high - self.low)
        # 3/7 of 7 is 3, but 2.9999999999999996 for others; 0.75 + 3 · 0.01 has a long tail of digits.
        index = min(self.count - 1, math.floor(place * self.count + 1e-9))
        return round(self.low + index * self.step, 12)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some options, without an order."""

    options: tuple[Setting, ...]

    def __post_init__(self) -> None:
        if not self.options or len(set(self.options)) < len(self.options):
            raise BadInput("a choice needs at least one option, each once")

    @property
    def count(self) -> int:
        return len(self.options)

    def values(self) -> tuple[Setting, ...]:
        return self.options

    def at(self, place: float) -> Setting:
        return self.options[min(self.count - 1, math.floor(place * self.count))]


Space = Mapping[str, Range | Choice]


def size(space: Space) -> int | None:
    """How many points a space has; None: it has no grid.

    >>> size({"upper": Range(0.75, 0.89, 0.01), "packing": Choice(("first-fit", "best-fit"))})
    30
    """
    counts = [axis.count for axis in space.values()]
    return None if None in counts else math.prod(count for count in counts if count is not None)


def grid(space: Space) -> Iterator[Point]:
    """Every point of a space, the last axis fastest."""
    for values in itertools.product(*(axis.values() for axis in space.values())):
        yield dict(zip(space, values, strict=True))
