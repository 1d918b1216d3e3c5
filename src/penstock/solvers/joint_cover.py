"""Cores for what operators lack: those that are paid for, then the machines that cover most for a dollar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from penstock.models.flow_table import Floats, Ints
from penstock.solvers.lookahead import SURE, Offer


@dataclass
class Cover:
    """Which cores each operator has in a stage, while it is decided; machines by number, new ones after the others."""

    speed: Floats
    """Of one core of each machine, on average over the stage; 0 of one that is not there."""
    left: Ints
    """Cores of each that nobody has."""
    stays: Floats
    """The part of the hour to come for which each machine is paid."""
    kinds: list[str]
    due: dict[int, float]
    """Machines whose paid hour ends in the stage, and what they cost for another; all others are paid for."""
    lacks: Floats
    """Power that each operator still needs."""
    ahead: Floats
    """The same over the hour to come, in which paid hours end: what is bought is bought for that."""
    needs_little: npt.NDArray[np.bool_]
    """Operators that need less than a core of the cheapest kinds over that hour: dearer kinds are for these alone."""
    dear: frozenset[str]
    """Kinds whose power costs more than the cheapest."""
    most: int
    """Machines that may still be rented."""
    places: list[list[int]]
    new: dict[int, Offer] = field(default_factory=dict)
    bought: dict[int, float] = field(default_factory=dict)
    """Due and new machines that were taken, and their price."""

    def branch(self) -> Cover:
        """A copy that goes its own way from here."""
        found = copy(self)
        found.left, found.lacks, found.ahead = self.left.copy(), self.lacks.copy(), self.ahead.copy()
        found.places, found.bought = [list(each) for each in self.places], dict(self.bought)
        return found

    @property
    def price(self) -> float:
        return sum(self.bought.values())

    @property
    def is_met(self) -> bool:
        return bool(self.lacks.max() <= SURE)

    def drop(self, place: int, machine: int) -> None:
        self.places[place].remove(machine)
        self.left[machine] += 1
        self.lacks[place] += self.speed[machine]
        self.ahead[place] += self.speed[machine] * self.stays[machine]

    def give(self, place: int, machine: int) -> None:
        self.places[place].append(machine)
        self.left[machine] -= 1
        self.lacks[place] -= self.speed[machine]
        self.ahead[place] -= self.speed[machine] * self.stays[machine]

    def trim(self) -> None:
        """Instances that are one too many, the slowest first."""
        for place, where in enumerate(self.places):
            for machine in sorted(where, key=lambda each: float(self.speed[each])):
                if len(where) > 1 and self.lacks[place] + self.speed[machine] <= SURE:
                    self.drop(place, machine)

    def place(self, wanted: Sequence[Sequence[int]]) -> None:
        """Instances where they are wanted."""
        for place, where in enumerate(wanted):
            for machine in where:
                self.give(place, machine)

    def empty(self, machines: Iterable[int]) -> None:
        gone = set(machines)
        for place, where in enumerate(self.places):
            for machine in [each for each in where if each in gone]:
                self.drop(place, machine)

    def fill(self) -> None:
        """Cores that are there, each for whoever lacks most: the slowest that is enough, or else the fastest."""
        if not len(self.speed):
            return
        is_here: npt.NDArray[np.bool_] = np.ones(len(self.speed), dtype=np.bool_)
        is_here[[each for each in self.due if each not in self.bought]] = False
        while not self.is_met:
            place = int(self.lacks.argmax())
            speed = np.where(is_here & (self.left > 0), self.speed, 0.0)
            enough = speed >= self.lacks[place] - SURE
            machine = int(np.where(enough, speed, np.inf).argmin() if enough.any() else speed.argmax())
            if speed[machine] <= 0:
                return
            self.give(place, machine)

    def buy(self, offers: Sequence[Offer]) -> None:
        """One machine after the other, until nobody lacks anything or none may be had."""
        while not self.is_met:
            options = [*self._renewals(), *(self._rentals(offers) if self.most > 0 else ())]
            if not options:
                return
            machine, offer = self._best(options)
            if offer is None:
                self.bought[machine], self.stays[machine] = self.due[machine], 1.0
            else:
                machine = self.rent(offer)
            self._spread(machine)

    def _best(self, options: list[_Option]) -> tuple[int, Offer | None]:
        """The one that gives most for a dollar; those that could not, with all of their power, are not looked at."""
        lacks = np.maximum(np.maximum(self.lacks, self.ahead), 0.0)
        # Where nothing else is left, these too.
        of_dear = np.where(self.needs_little, lacks, 1e-3 * lacks)
        lacks, of_dear = np.sort(lacks)[::-1], np.sort(of_dear)[::-1]
        most, best = -1.0, options[0]
        for each in sorted(options, key=lambda each: -each.most):
            if each.most <= most:
                break
            given = _given(of_dear if each.kind in self.dear else lacks, each.speed, each.cores)
            if given / each.price > most:
                most, best = given / each.price, each
        return best.machine, best.offer

    def rent(self, offer: Offer) -> int:
        self.speed, self.left = np.append(self.speed, offer.speed), np.append(self.left, offer.cores)
        self.stays = np.append(self.stays, 1.0)
        self.kinds.append(offer.kind)
        machine, self.most = len(self.speed) - 1, self.most - 1
        self.new[machine], self.bought[machine] = offer, offer.price
        return machine

    def pruned(self) -> Cover:
        """Without machines whose instances fit on what is left elsewhere; the least used first."""
        found = self
        for machine in sorted(self.bought, key=lambda each: self._used(each)):
            # The power that lies idle must do for what it gives.
            others = float((found.speed * found.left).sum()) - found.speed[machine] * found.left[machine]
            if others < found._used(machine) * 0.5:
                continue
            trial = found.branch()
            trial.empty((machine,))
            trial.left[machine] = 0
            trial.fill()
            if trial.is_met:
                del trial.bought[machine]
                found = trial
        return found

    def _used(self, machine: int) -> float:
        return float(self.speed[machine]) * sum(where.count(machine) for where in self.places)

    def _renewals(self) -> Iterator[_Option]:
        for machine, price in self.due.items():
            if machine not in self.bought and self.speed[machine] > 0:
                # What runs already comes first among equals.
                yield _Option(
                    machine,
                    None,
                    self.kinds[machine],
                    float(self.speed[machine]),
                    int(self.left[machine]),
                    max(price, 1e-12) / 1.01,
                )

    def _rentals(self, offers: Sequence[Offer]) -> Iterator[_Option]:
        least = float(np.maximum(self.ahead, 0.0).sum()) / self.most
        for offer in [each for each in offers if each.speed * each.cores >= least] or offers:
            yield _Option(-1, offer, offer.kind, offer.speed, offer.cores, max(offer.price, 1e-12))

    def _spread(self, machine: int) -> None:
        while self.left[machine] > 0 and not self.is_met:
            self.give(int(self.lacks.argmax()), machine)


@dataclass(frozen=True, slots=True)
class _Option:
    """A machine that may be bought: for another hour, or a new one."""

    machine: int
    offer: Offer | None
    kind: str
    speed: float
    cores: int
    price: float

    @property
    def most(self) -> float:
        """Power for a dollar, if all of it is of use."""
        return self.speed * self.cores / self.price


def _given(lacks: Floats, speed: float, cores: int) -> float:
    """Power that cores give to those who lack it, by falling need: whole cores, then what is left, largest first."""
    whole = np.floor(lacks / speed + SURE)
    full = min(float(cores), float(whole.sum()))
    if full >= cores:
        return cores * speed
    rest = np.sort(np.maximum(lacks - whole * speed, 0.0))[::-1][: int(cores - full)]
    return full * speed + float(rest.sum())
