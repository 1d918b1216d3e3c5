"""How much workers can do with the implementations that run now: learnt with these, else by their relative cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from penstock.core.dataflow import Dataflow
from penstock.core.job import CapacityModel
from penstock.models.learned import Learned

# First batches are cold: learnt from fewer than these, an implementation is given what another one tells of it.
WARM = 6
# Of a cost: one that is given as 0 is no division by it, and no worker serves a million times what it did.
LEAST = 1e-6


class AlternateCapacity:
    """A capacity model of a job whose operators have alternates; what it was told is of their first ones.

    >>> from penstock.core.dataflow import Alternate, Operator
    >>> full, sampled = Alternate("full", 1.0), Alternate("sampled", 0.25, value=0.9)
    >>> model = AlternateCapacity(Learned(), Dataflow((Operator("images", alternates=(full, sampled)),)))
    >>> model.note("images", rows=8000.0, work_s=4.0, fixed_s=1.0, crew=("w1", "w2"))
    >>> model.capacity(4)
    4000.0
    >>> model.follow({"images": "sampled"})
    >>> model.capacity(4)
    16000.0
    """

    def __init__(self, told: CapacityModel, flow: Dataflow) -> None:
        self._told, self._flow = told, flow
        self._first = flow.switched({}).demand_s
        self._costs: dict[tuple[tuple[str, str], ...], float] = {}
        self._learnt: dict[float, Learned] = {1.0: told} if isinstance(told, Learned) else {}
        self.cost = 1.0
        """Of an event with what runs now, relative to the first alternates."""

    @property
    def learns(self) -> bool:
        return bool(self._learnt)

    @property
    def is_known(self) -> bool:
        """Was a capacity told, or has a batch with rows ended?"""
        return not isinstance(self._told, Learned) or any(model.is_known for model in self._learnt.values())

    def follow(self, alternate: Mapping[str, str]) -> None:
        """From now on these implementations run."""
        self.cost = self.cost_of(alternate)

    def cost_of(self, alternate: Mapping[str, str]) -> float:
        """Of an event with these implementations, relative to the first ones."""
        key = tuple(sorted(alternate.items()))
        if key not in self._costs:
            demand_s = self._flow.switched(dict(alternate)).demand_s
            self._costs[key] = max(LEAST, demand_s / self._first) if self._first else 1.0
        return self._costs[key]

    def note(self, query: str, rows: float, work_s: float, fixed_s: float, crew: Collection[str]) -> None:
        """Take in a batch that what runs now has done."""
        self._learning.note(query, rows, work_s, fixed_s, crew)

    def mix(self, rates: Mapping[str, float]) -> None:
        """Take in how many rows of each query come."""
        self._learning.mix(rates)

    def capacity(self, workers: float) -> float:
        model, times = self._best(self.cost)
        return model.capacity(workers) * times

    def fixed_s(self, workers: float) -> float:
        return self._best(self.cost)[0].fixed_s(workers)

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        return self.sustainable_at(self.cost, workers, trigger_s)

    def sustainable_at(self, cost: float, workers: float, trigger_s: float | None) -> float:
        """The same with implementations of another relative cost."""
        model, times = self._best(cost)
        return model.sustainable(workers, trigger_s) * times

    @property
    def _learning(self) -> Learned:
        return self._learnt.setdefault(self.cost, Learned())

    def _best(self, cost: float) -> tuple[CapacityModel, float]:
        """A model, and what to multiply it by: learnt at this cost, or at the nearest one.

        Live, all patterns were given up for good: their only batches, cold, told of 260 rows/s; warm, one did 9,000.
        """
        known = [each for each, model in self._learnt.items() if model.is_known]
        if not known:
            return self._told, 1 / cost
        own = self._nearest(known, cost)
        warm = [each for each in known if self._learnt[each].batches >= WARM]
        if own[0].batches >= WARM or not warm:
            return own
        other = self._nearest(warm, cost)
        return max(own, other, key=lambda found: found[0].capacity(1.0) * found[1])

    def _nearest(self, costs: Collection[float], cost: float) -> tuple[Learned, float]:
        nearest = min(costs, key=lambda each: abs(math.log(each / cost)))
        return self._learnt[nearest], nearest / cost
