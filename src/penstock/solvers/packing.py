"""Which operators stay on a host, and where the others go (paper 2 §2.2): subset sum, and eight ways of bin packing.

CPU is what is packed; memory and network are caps. Packing is incremental: what stays on its host is not touched.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.bounds import between
from penstock.core.dataflow import Dataflow
from penstock.core.errors import unknown
from penstock.solvers.bins import ROUNDING, Bins, Floats, Host, Item

# 0.01 % of a core: a measured CPU load is known to a percent at best. 105 loads between units lose 0.005 in total.
UNIT = 1e-4
# A set of sums is then 125 kB; beyond, a double no longer tells whole units from what lies beside them.
UNITS_MOST = 1_000_000
# Two halves of 16 have 65,536 sums each: 10 ms.
HALVED_MOST = 32


@dataclass(frozen=True, slots=True)
class Packed:
    """Where each item goes."""

    items: tuple[Item, ...]
    places: tuple[str | None, ...]
    """The host of each item, in the order of the items; None: it fits nowhere."""
    opened: tuple[str, ...] = ()
    """The hosts that are new, in the order in which they were opened."""

    @property
    def unplaced(self) -> tuple[Item, ...]:
        """The items for which there is no room."""
        return tuple(item for item, place in zip(self.items, self.places, strict=True) if place is None)

    @property
    def instances(self) -> dict[str, tuple[str, ...]]:
        """For each operator the host of each of its instances, as `Allocation` has them; the unplaced are left out."""
        there: dict[str, tuple[str, ...]] = {item.operator: () for item in self.items}
        for item, place in zip(self.items, self.places, strict=True):
            if place is not None:
                there[item.operator] += (place,)
        return there

    def problems(self) -> list[str]:
        """One line for each item that fits nowhere: what it needs."""
        return [f"operator '{item.operator}' fits on no host: {_needs(item)}" for item in self.unplaced]


def _needs(item: Item) -> str:
    return f"it needs CPU {item.cpu:g}, {item.memory_mb:g} MB of memory and {item.network_mb_s:g} MB/s of network"


@dataclass(frozen=True, slots=True)
class Packing:
    """One of the eight ways.

    >>> items = [Item("parse", 0.5, stays_on="w1"), Item("count", 0.5), Item("sink", 0.2)]
    >>> packed = VARIANTS["first-fit"].pack(items, [Host("w1", 0.8)], fresh=[Host("w2", 0.8)])
    >>> packed.instances, packed.opened
    ({'parse': ('w1',), 'count': ('w2',), 'sink': ('w1',)}, ('w2',))
    """

    best: bool = False
    """The fullest host on which it fits, instead of the first."""
    decreasing: bool = False
    """The largest CPU load is placed first, instead of the first in order."""
    neighbours: bool = False
    """A host that runs a predecessor or a successor is preferred: less goes over the network."""

    @property
    def name(self) -> str:
        fit = "best-fit" if self.best else "first-fit"
        return fit + self.decreasing * "-decreasing" + self.neighbours * "-neighbours"

    def pack(
        self,
        items: Sequence[Item],
        hosts: Sequence[Host],
        fresh: Sequence[Host] = (),
        beside: Mapping[str, Collection[str]] | None = None,
    ) -> Packed:
        """Each item on one host, none above its limit; `fresh` hosts are opened in order where nothing else has room.

        A host that is above its limit by what stays on it gets nothing more. `beside`: see `neighbours_of`.
        """
        bins = Bins.of(hosts, fresh)
        for index, item in enumerate(items):
            if item.stays_on is not None:
                bins.put(index, item, bins.index_of(item))
        moved = [index for index, item in enumerate(items) if item.stays_on is None]
        if self.decreasing:
            moved.sort(key=lambda index: -items[index].cpu)
        for index in moved:
            near = (beside or {}).get(items[index].operator, ()) if self.neighbours else ()
            bins.put(index, items[index], self._choose(bins, items[index], near))
        return Packed(tuple(items), *bins.result())

    def _choose(self, bins: Bins, item: Item, near: Collection[str]) -> int:
        """The host for an item: by its index, or −1."""
        fits = bins.fits(item)
        running = fits & bins.is_open
        preferred = sorted({host for operator in near for host in bins.running.get(operator, ()) if running[host]})
        if preferred:
            return min(preferred, key=lambda host: bins.room[host]) if self.best else preferred[0]
        if running.any():
            # Of hosts that are equally full argmin takes the first, as argmax does of those that fit.
            return int(np.where(running, bins.room, math.inf).argmin() if self.best else running.argmax())
        return int(fits.argmax()) if fits.any() else -1


VARIANTS: Mapping[str, Packing] = {
    packing.name: packing for packing in itertools.starmap(Packing, itertools.product((False, True), repeat=3))
}


def variant(name: str) -> Packing:
    """The way of packing that has this name.

    >>> variant("best-fit-decreasing")
    Packing(best=True, decreasing=True, neighbours=False)
    """
    if name not in VARIANTS:
        raise unknown("packing", name, VARIANTS)
    return VARIANTS[name]


def neighbours_of(flow: Dataflow) -> dict[str, tuple[str, ...]]:
    """For each operator those that feed it, and those that it feeds."""
    beside = {operator.name: operator.after for operator in flow.operators}
    for operator in flow.operators:
        for name in operator.after:
            beside[name] += (operator.name,)
    return beside


def subset_sum(loads: Sequence[float], limit: float, unit: float = UNIT) -> tuple[int, ...]:
    """Which of the loads stay: the set with the largest sum that is not above the limit, by their indices.

    Exact for loads in whole units, and for up to 32 others; of more than that each counts as the next whole unit, so
    that the limit holds. Of sets with the same sum, the one that keeps the earlier ones: whoever is hard to move.

    >>> subset_sum([0.5, 0.3, 0.4, 0.4], limit=0.8)
    (0, 1)
    """
    for load in loads:
        between("a load of a subset sum", load, 0)
    between("the unit of a subset sum", unit, 1e-12)
    between("the limit of a subset sum", limit, 0, UNITS_MOST * unit)
    # 0.1 + 0.2 is 3000.0000000000005 units and 0.3 is 2999.9999999999995: 3000 are meant.
    whole = [math.ceil(load / unit - ROUNDING) for load in loads]
    is_whole = all(units - load / unit <= ROUNDING * max(1, units) for units, load in zip(whole, loads, strict=True))
    if is_whole or len(loads) > HALVED_MOST:
        return subset_sum_bits(whole, math.floor(limit / unit + ROUNDING))
    return _subset_sum_halved(np.array(loads) / unit, limit / unit)


def _subset_sum_halved(loads: Floats, limit: float) -> tuple[int, ...]:
    """For loads that are no whole numbers: all sums of one half of them, each with the largest of the other half."""
    near = len(loads) * ROUNDING  # the order of a sum must not decide
    small = np.flatnonzero(loads <= limit + near)
    half = len(small) // 2
    first, second = _sums(loads[small[:half]]), _sums(loads[small[half:]])
    order = np.sort(second)
    found = np.searchsorted(order, limit + near - first, side="right") - 1
    totals = np.where(found < 0, -math.inf, first + order[found])
    enough = totals.max() - near
    one = int(np.flatnonzero(totals >= enough)[-1])
    rest = first[one] + second
    other = int(np.flatnonzero((rest >= enough) & (rest <= limit + near))[-1])
    number = one << len(small) - half | other
    return tuple(int(index) for place, index in enumerate(reversed(small)) if number >> place & 1)[::-1]


def _sums(loads: Floats) -> Floats:
    """Of every set; the first load is the highest bit of its number, so the later of two sets keeps earlier ones."""
    sums = np.zeros(1)
    for load in loads[::-1]:
        sums = np.concatenate([sums, sums + load])
    return sums


def subset_sum_plain(weights: Sequence[int], limit: int) -> tuple[int, ...]:
    """The same for whole numbers, readable: for each sum that can be reached, the set that keeps the earlier ones."""
    sets: dict[int, tuple[int, ...]] = {0: ()}
    for index in reversed(range(len(weights))):
        total = weights[index]
        sets |= {other + total: (index, *kept) for other, kept in sets.items() if other + total <= limit}
    return sets[max(sets)]


def subset_sum_bits(weights: Sequence[int], limit: int) -> tuple[int, ...]:
    """The same, fast: the sums that can be reached are the bits of a number, and a weight shifts them."""
    within = (1 << limit + 1) - 1
    reached = [1]  # by the last 0, 1, 2, … of the weights
    for weight in reversed(weights):
        # A shift by a weight beyond the limit would only be masked away, and 10¹² bits would not fit the memory.
        more = reached[-1] << weight & within if weight <= limit else 0
        reached.append(reached[-1] | more)
    left = reached.pop().bit_length() - 1
    kept: list[int] = []
    for index, (weight, by_later) in enumerate(zip(weights, reversed(reached), strict=True)):
        if weight <= left and by_later >> left - weight & 1:
            kept.append(index)
            left -= weight
    return tuple(kept)
