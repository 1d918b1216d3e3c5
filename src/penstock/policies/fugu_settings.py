"""What paper 2's scaling can be set to: one configuration, the space of Table 1, the 16 baselines of Table 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.core.bounds import between
from penstock.core.errors import BadInput
from penstock.solvers.packing import VARIANTS, Packing, variant
from penstock.solvers.space import Choice, Point, Range, Space

# Loads are whole thousandths of a host: a CPU load is known to a percent at best, and whole numbers add up in any
# order to the same, so that the readable form and the compiled one agree to the last digit.
HOST = 1000
# Fixed, "to avoid any malfunction of the system" (§3.1): what memory and network may be used to.
MEMORY_LIMIT = NETWORK_LIMIT = 900
# Above this much CPU a host is overloaded as far as latencies go (§3.3).
SATURATED = 950


@dataclass(frozen=True, slots=True)
class Settings:
    """One configuration: when to scale, and how operators are packed. Durations are counted in measurements.

    >>> Settings(upper=0.3)
    Traceback (most recent call last):
    penstock.core.errors.BadInput: fugu:upper=0.3,lower=0.35: it must be 0 <= lower < upper <= 1
    """

    upper: float = 0.8
    """A host above this load is overloaded."""
    lower: float = 0.35
    """Hosts that are not above this load on average are too many."""
    upper_ticks: int = 2
    """For so many measurements in a row, before operators leave a host."""
    lower_ticks: int = 10
    """For so many measurements in a row, before a host is released."""
    grace_ticks: int = 2
    """So many measurements after a move no operator leaves the hosts that it touched."""
    packing: str = "first-fit"

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.upper <= 1:
            raise BadInput(f"fugu:upper={self.upper:g},lower={self.lower:g}: it must be 0 <= lower < upper <= 1")
        for key in ("upper_ticks", "lower_ticks"):
            between(f"fugu:{key}", getattr(self, key), 1, 100_000)
        between("fugu:grace_ticks", self.grace_ticks, 0, 100_000)
        variant(self.packing)

    @classmethod
    def at(cls, point: Point | Mapping[str, Any]) -> Settings:
        """The configuration at a point of the space."""
        ticks = {key: int(point[key]) for key in ("upper_ticks", "lower_ticks", "grace_ticks")}
        return cls(float(point["upper"]), float(point["lower"]), packing=str(point["packing"]), **ticks)

    @property
    def way(self) -> Packing:
        return variant(self.packing)

    @property
    def limits(self) -> tuple[int, int, int]:
        """What CPU, memory and network of a host may be loaded to, in thousandths."""
        return round(self.upper * HOST), MEMORY_LIMIT, NETWORK_LIMIT

    @property
    def kept(self) -> tuple[int, int, int]:
        """What is left on a host that was overloaded: at least 10 % below its limit (§2.2)."""
        cpu, memory, network = (limit * 9 // 10 for limit in self.limits)
        return cpu, memory, network

    @property
    def lowest(self) -> int:
        """The lower threshold in thousandths."""
        return round(self.lower * HOST)

    def row(self) -> tuple[int, ...]:
        """The configuration as the compiled form takes it."""
        way = self.way
        ticks = (self.upper_ticks, self.lower_ticks, self.grace_ticks)
        return (self.limits[0], self.lowest, *ticks, int(way.best), int(way.decreasing), int(way.neighbours))

    def text(self) -> str:
        """As it stands in a policy's name."""
        return ",".join(f"{key}={value:g}" if key != "packing" else f"{key}={value}" for key, value in self.items())

    def items(self) -> list[tuple[str, Any]]:
        return list(asdict(self).items())


# Table 1. Both thresholds' upper ends are left out: only then are there 720,000 configurations.
SPACE: Space = {
    "lower": Range(0.0, 0.49, 0.01),
    "lower_ticks": Range(3, 10, 1),
    "upper": Range(0.75, 0.89, 0.01),
    "upper_ticks": Range(2, 4, 1),
    "grace_ticks": Range(1, 5, 1),
    "packing": Choice(tuple(VARIANTS)),
}
# Table 2: four lower thresholds for each upper one. The rows at 0.9 lie outside the space above.
TABLE_2 = tuple(
    Settings(upper, round(first + 0.05 * step, 2))
    for upper, first in ((0.75, 0.2), (0.8, 0.25), (0.85, 0.3), (0.9, 0.35))
    for step in range(4)
)
