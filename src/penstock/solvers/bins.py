"""Bins and what goes into them: hosts with limits, instances of operators with needs, and how full the hosts are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Three times 0.1 is 0.30000000000000004: the order of a sum must not decide what fits.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Item:
    """One instance of an operator, with what it needs; an operator of three instances is three items."""

    operator: str
    cpu: float
    memory_mb: float = 0.0
    network_mb_s: float = 0.0
    stays_on: str | None = None
    """The host that it is not moved from; None: it is to be placed."""

    def __post_init__(self) -> None:
        for key in ("cpu", "memory_mb", "network_mb_s"):
            between(f"operator '{self.operator}': {key}", getattr(self, key), 0)

    @property
    def needs(self) -> tuple[float, float, float]:
        return self.cpu, self.memory_mb, self.network_mb_s


@dataclass(frozen=True, slots=True)
class Host:
    """A worker as a bin: the most that it may be loaded with, usually a threshold times what it has."""

    name: str
    cpu: float
    memory_mb: float = math.inf
    network_mb_s: float = math.inf

    def __post_init__(self) -> None:
        for key in ("cpu", "memory_mb", "network_mb_s"):
            # Not `not < 0`: a limit that is no number would let everything in.
            if not getattr(self, key) >= 0:
                raise BadInput(f"host '{self.name}': {key} is {getattr(self, key):g}: it must be at least 0")

    @property
    def limits(self) -> tuple[float, float, float]:
        return self.cpu, self.memory_mb, self.network_mb_s


@dataclass(slots=True)
class Bins:
    """How full the hosts are, by column: 1,000 of them are looked at in 10 µs."""

    numbers: dict[str, int]
    limits: Floats
    is_open: Bools
    load: Floats
    room: Floats
    """CPU that is left on each host."""
    places: dict[int, int] = field(default_factory=dict)
    running: dict[str, list[int]] = field(default_factory=dict)
    opened: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, hosts: Sequence[Host], fresh: Sequence[Host]) -> Bins:
        names = [host.name for host in (*hosts, *fresh)]
        if len(set(names)) < len(names):
            raise BadInput(f"two hosts are named '{next(name for name in names if names.count(name) > 1)}'")
        limits = np.array([host.limits for host in (*hosts, *fresh)], dtype=np.float64).reshape(-1, 3).T
        is_open = np.arange(len(names)) < len(hosts)
        numbers = {name: number for number, name in enumerate(names)}
        return cls(numbers, limits * (1 + ROUNDING), is_open, np.zeros_like(limits), limits[0].copy())

    def index_of(self, item: Item) -> int:
        if item.stays_on not in self.numbers:
            raise unknown(f"host of operator '{item.operator}'", str(item.stays_on), self.numbers)
        return self.numbers[item.stays_on]

    def fits(self, item: Item) -> Bools:
        cpu, memory, network = item.needs
        fits: Bools = self.load[0] + cpu <= self.limits[0]
        fits &= self.load[1] + memory <= self.limits[1]
        fits &= self.load[2] + network <= self.limits[2]
        return fits

    def put(self, index: int, item: Item, host: int) -> None:
        self.places[index] = host
        if host < 0:
            return
        if not self.is_open[host]:
            self.is_open[host] = True
            self.opened.append(host)
        self.load[:, host] += item.needs
        self.room[host] -= item.cpu
        self.running.setdefault(item.operator, []).append(host)

    def result(self) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
        """The host of each item, in the order of the items, and the hosts that were opened."""
        names = list(self.numbers)
        places = tuple(None if place < 0 else names[place] for _, place in sorted(self.places.items()))
        return places, tuple(names[host] for host in self.opened)
