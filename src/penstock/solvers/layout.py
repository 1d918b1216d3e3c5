"""A deployment over the steps of an interval while it is planned: cores, instances, alternates (paper 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from penstock.models.flow_table import Floats, FlowSteps, FlowTable, FlowTotals, Ints, offered, totals


@dataclass(frozen=True)
class Machine:
    """A worker that runs, starts, or may be rented."""

    name: str
    kind: str
    cores: int
    core_s: Floats
    """Core-seconds, on a core as costs are counted in, that one of its cores has in each step; 0 before it is up."""
    price: float
    """For a billed hour."""
    ends: float = np.inf
    """After how many steps its paid hour ends; infinite where nothing is renewed within the interval."""
    launch: int | None = None
    """The step for which it is to be launched; None: it was asked for already."""


@dataclass(frozen=True)
class Interval:
    """What is known of the steps ahead."""

    step_s: float
    arriving: Floats
    """Messages of each step at each operator: 0 but at sources."""
    backlog: Floats

    @property
    def steps(self) -> int:
        return len(self.arriving)


@dataclass(frozen=True)
class Stage:
    """What is deployed from a step on."""

    step: int
    instances: Mapping[str, tuple[str, ...]]
    alternate: Mapping[str, str]


@dataclass
class Layout:
    """Changes hold from step `at` to the end; `at` never goes back. Whatever was before it is kept as a stage."""

    table: FlowTable
    known: Interval
    machines: list[Machine]
    places: list[list[int]]
    """For each operator, the machine of each instance."""
    active: list[int]
    """For each operator, its alternate, by falling value."""
    at: int = 0
    stages: dict[int, Stage] = field(default_factory=dict)
    launched: int = 0
    used: Ints = field(init=False)
    _now: FlowTotals | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        steps, operators = self.known.arriving.shape
        self.cores = np.array([each.cores for each in self.machines], dtype=np.int64)
        self.used = np.zeros(len(self.machines), dtype=np.int64)
        self._rest_s = self._rest()
        self.work_s, self.costs_s, self.selectivities = (np.zeros((steps, operators)) for _ in range(3))
        for place, where in enumerate(self.places):
            for machine in where:
                self.used[machine] += 1
                self.work_s[:, place] += self.machines[machine].core_s
        for place, number in enumerate(self.active):
            self.costs_s[:, place] = self.table.costs_s[place][number]
            self.selectivities[:, place] = self.table.selectivities[place][number]

    def branch(self) -> Layout:
        """A copy that goes its own way from here."""
        found = copy(self)
        found.machines, found.active, found.stages = list(self.machines), list(self.active), dict(self.stages)
        found.places = [list(each) for each in self.places]
        found.used, found.work_s = self.used.copy(), self.work_s.copy()
        found.costs_s, found.selectivities = self.costs_s.copy(), self.selectivities.copy()
        return found

    def totals(self) -> FlowTotals:
        """What comes of it; worked out again only after a change."""
        if self._now is None:
            steps = FlowSteps(self.known.arriving, self.costs_s, self.selectivities, self._has(), self.known.backlog)
            self._now = totals(self.table, steps)
        return self._now

    def advance(self, step: int) -> None:
        """From now on, changes hold from a later step."""
        if step > self.at:
            self._keep()
            self.work_s[self.at : step] = self._has()[self.at : step]
            self.at = step
            self._rest_s = self._rest()

    def add(self, place: int, machine: int, count: int = 1) -> None:
        """Instances of an operator on a machine; fewer with a negative count."""
        self.used[machine] += count
        for _ in range(abs(count)):
            if count > 0:
                self.places[place].append(machine)
            else:
                self.places[place].remove(machine)
        self.work_s[self.at :, place] += count * self.machines[machine].core_s[self.at :]
        self._now = None

    def switch(self, place: int, number: int) -> None:
        self.active[place] = number
        self.costs_s[self.at :, place] = self.table.costs_s[place][number]
        self.selectivities[self.at :, place] = self.table.selectivities[place][number]
        self._now = None

    def rent(self, machine: Machine) -> int:
        self.machines.append(machine)
        self.cores, self.used = np.append(self.cores, machine.cores), np.append(self.used, 0)
        self._rest_s = np.append(self._rest_s, machine.core_s[self.at :].sum())
        self.launched += 1
        return len(self.machines) - 1

    def free(self, besides: int = -1) -> int | None:
        """The machine with the fastest core to spare in the rest of the interval, if there is one."""
        if not len(self.machines):
            return None
        speed = np.where(self.used < self.cores, self._rest_s, 0.0)
        if besides >= 0:
            speed[besides] = 0.0
        fastest = int(speed.argmax())
        return fastest if speed[fastest] > 0 else None

    def least_shared(self) -> int | None:
        """The machine that has most for one instance more in the rest of the interval, where no core is free."""
        if not len(self.machines):
            return None
        return int((self._rest_s * np.minimum(1.0, self.cores / (self.used + 1))).argmax())

    def slowest(self, place: int) -> int:
        """The machine of an operator's slowest instance."""
        return min(self.places[place], key=lambda machine: float(self._rest_s[machine]))

    def rest_s(self, machine: int) -> float:
        """Core-seconds that one of a machine's cores has in the rest of the interval."""
        return float(self._rest_s[machine])

    def asked(self) -> Floats:
        """Core-seconds that are asked of each operator in the rest of the interval, if nothing is held back."""
        now, at = self.totals(), self.at
        first = offered(self.table.first, self.table.parents, self.selectivities[at], now.nominal[at], now.backlog[at])
        rest: Floats = first + now.nominal[at + 1 :].sum(axis=0)
        asked: Floats = rest * self.costs_s[at]
        return asked

    def has_s(self) -> Floats:
        """Core-seconds that each operator has in the rest of the interval."""
        total: Floats = self._has()[self.at :].sum(axis=0)
        return total

    def value(self) -> float:
        """Γ from step `at` on."""
        values = [each[number] for each, number in zip(self.table.values, self.active, strict=True)]
        return sum(values) / len(values)

    def finished(self) -> tuple[Stage, ...]:
        """All stages, in their order."""
        self._keep()
        return tuple(self.stages[step] for step in sorted(self.stages))

    def _has(self) -> Floats:
        """Core-seconds of each operator in each step: instances beyond the cores of a machine share them."""
        if (self.used <= self.cores).all():
            return self.work_s
        found = self.work_s.copy()
        found[self.at :] = 0.0
        for place, where in enumerate(self.places):
            for machine in where:
                part = min(1.0, self.cores[machine] / self.used[machine])
                found[self.at :, place] += part * self.machines[machine].core_s[self.at :]
        return found

    def _rest(self) -> Floats:
        return np.array([each.core_s[self.at :].sum() for each in self.machines], dtype=np.float64)

    def _keep(self) -> None:
        names = self.table.names
        instances = {
            name: tuple(self.machines[each].name for each in where)
            for name, where in zip(names, self.places, strict=True)
        }
        chosen = zip(names, self.table.alternates, self.active, strict=True)
        alternate = {name: kind for name, kinds, number in chosen if (kind := kinds[number]) is not None}
        self.stages[self.at] = Stage(self.at, instances, alternate)


def hours_end(paid_since_s: float, now_s: float, unit_s: float) -> float:
    """Seconds until what is paid for ends: each started unit is billed in full.

    >>> hours_end(0.0, 3000.0, 3600.0), hours_end(0.0, 3600.0, 3600.0)
    (600.0, 3600.0)
    """
    return unit_s - (now_s - paid_since_s) % unit_s


def needs(asked_s: Sequence[float] | Floats, has_s: Sequence[float] | Floats) -> Floats:
    """What is asked of each operator as a multiple of what it has."""
    asked, has = np.asarray(asked_s, dtype=np.float64), np.asarray(has_s, dtype=np.float64)
    found: Floats = np.where(asked <= 0, 0.0, asked / np.maximum(has, 1e-12))
    return found
