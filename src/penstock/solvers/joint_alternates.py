"""Alternates of all operators chosen together, each with the cores that it and those behind it need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.models.compiled import compiled
from penstock.models.flow_table import Floats, FlowTable, Ints

# Pairs are tried where there are few: 300 operators with three alternates have 180,000. More are switched at once.
SINGLES_MOST = 100


@dataclass(frozen=True)
class Choice:
    """What one stage needs to be chosen for: power that is asked of sources, prices of cores, cores that are there."""

    table: FlowTable
    arriving: Floats
    """Messages a second at each operator, at the throughput that is aimed at: 0 but at sources."""
    speeds: Floats
    """Of one core of each kind that may be rented, and the price of that core for an hour."""
    prices: Floats
    paid: float
    """What the cores that are paid for would cost in an hour, if they were rented."""
    weight: float
    """Of a unit of Γ, for as long as a core is charged."""
    sigma: float


def power_of(choice: Choice, active: Sequence[int]) -> Floats:
    """Power that each operator needs, in cores as costs are counted in."""
    table, found = choice.table, choice.arriving.copy()
    for place in range(len(active)):
        for position in range(int(table.first[place]), int(table.first[place + 1])):
            before = int(table.parents[position])
            found[place] += found[before] * table.selectivities[before][active[before]]
    costs_s = [each[number] for each, number in zip(table.costs_s, active, strict=True)]
    power: Floats = found * np.array(costs_s)
    return power


def choose(choice: Choice, starts: Iterable[Sequence[int]]) -> list[list[int]]:
    """The best alternates that one switch, or two at once, lead to from each start; the best first.

    Whole cores make steps of the price, on which a climb stops early: from each start it is also tried with parts
    of cores, and goes on from there with whole ones.
    """
    tables = _Tables.of(choice)
    found: dict[tuple[int, ...], float] = {}
    for start in starts:
        begun = np.array(start, dtype=np.int64)
        for first in (begun, tables.climbed(begun, whole=False)):
            best = tables.climbed(first, whole=True)
            found[tuple(best.tolist())] = float(tables.scores(best[None, :], whole=True)[0])
    return [list(each) for each in sorted(found, key=lambda each: -found[each])]


@dataclass(frozen=True)
class _Tables:
    """Alternates as arrays of (operator, alternate); those that an operator lacks are repetitions of its last."""

    choice: Choice
    counts: Ints
    costs_s: Floats
    selectivities: Floats
    values: Floats

    @classmethod
    def of(cls, choice: Choice) -> _Tables:
        table = choice.table
        counts = np.array([len(each) for each in table.costs_s], dtype=np.int64)
        widest = int(counts.max())

        def padded(rows: tuple[tuple[float, ...], ...]) -> Floats:
            return np.array([(*row, *[row[-1]] * (widest - len(row))) for row in rows])

        return cls(choice, counts, padded(table.costs_s), padded(table.selectivities), padded(table.values))

    def scores(self, batch: Ints, whole: bool) -> Floats:
        given, table = self.choice, self.choice.table
        return score_all(
            (table.first, table.parents, given.arriving),
            (self.costs_s, self.selectivities, self.values),
            (given.speeds, given.prices, given.paid),
            (given.weight, given.sigma, whole),
            batch,
        )

    def climbed(self, begun: Ints, whole: bool) -> Ints:
        best, score = begun, float(self.scores(begun[None, :], whole)[0])
        while True:
            for batch in self._around(best, score, whole):
                scores = self.scores(batch, whole)
                highest = int(scores.argmax())
                if scores[highest] > score + 1e-12:
                    best, score = batch[highest], float(scores[highest])
                    break
            else:
                return best

    def _around(self, active: Ints, score: float, whole: bool) -> Iterable[Ints]:
        """Of many operators, all switches that are better by themselves, half of them, a quarter; one switch; two."""
        numbers = np.arange(self.values.shape[1])
        is_other = (numbers[None, :] < self.counts[:, None]) & (numbers[None, :] != active[:, None])
        places, kinds = np.nonzero(is_other)
        if not len(places):
            return
        singles = _switched(active, [(places, kinds)])
        if len(places) > SINGLES_MOST:
            gains = self.scores(singles, whole) - score
            better = np.argsort(-gains)[: int((gains > 1e-12).sum())]
            yield from self._several(active, (places[better], kinds[better]))
        yield singles
        if len(places) <= SINGLES_MOST:
            left, right = np.triu_indices(len(places), 1)
            apart = places[left] != places[right]
            left, right = left[apart], right[apart]
            if len(left):
                yield _switched(active, [(places[left], kinds[left]), (places[right], kinds[right])])

    def _several(self, active: Ints, better: tuple[Ints, Ints]) -> Iterable[Ints]:
        places, kinds = better
        count = len(places)
        while count > 1:
            several = active.copy()
            # Of one operator, the best is the last to be set.
            several[places[:count][::-1]] = kinds[:count][::-1]
            yield several[None, :]
            count //= 2


def _switched(active: Ints, switches: Sequence[tuple[Ints, Ints]]) -> Ints:
    """A row for each switch, or for each pair of them."""
    found = np.repeat(active[None, :], len(switches[0][0]), axis=0)
    for places, kinds in switches:
        found[np.arange(len(places)), places] = kinds
    return found


@compiled
def score_all(
    flow: tuple[Ints, Ints, Floats],
    kinds: tuple[Floats, Floats, Floats],
    cores: tuple[Floats, Floats, float],
    worth: tuple[float, float, bool],
    batch: Ints,
) -> Floats:
    """weight · Γ − σ · dollars an hour, of each row of alternates.

    An operator is charged for the cheapest cores that cover it: whole ones of the cheapest power, and for what is left
    whichever kind is then cheapest.
    """
    first, parents, arriving = flow
    costs_s, selectivities, values = kinds
    speeds, prices, paid = cores
    weight, sigma, whole = worth
    operators = len(arriving)
    cheapest = 0
    for kind in range(len(speeds)):
        if prices[kind] / speeds[kind] < prices[cheapest] / speeds[cheapest]:
            cheapest = kind
    speed, price = speeds[cheapest], prices[cheapest]
    found, messages = np.zeros(len(batch)), np.zeros(operators)
    for row in range(len(batch)):
        value, dollars = 0.0, -paid
        for place in range(operators):
            number = batch[row, place]
            came = arriving[place]
            for position in range(first[place], first[place + 1]):
                before = parents[position]
                came += messages[before] * selectivities[before, batch[row, before]]
            messages[place] = came
            value += values[place, number]
            power = came * costs_s[place, number]
            if whole:
                full = np.floor(power / speed * (1 - 1e-12))
                least, left = price, max(1e-9, power - full * speed)
                for kind in range(len(speeds)):
                    least = min(least, prices[kind] * np.ceil(left / speeds[kind] * (1 - 1e-12)))
                dollars += full * price + least
            else:
                dollars += power * price / speed
        found[row] = weight * value / operators - sigma * max(0.0, dollars)
    return found
