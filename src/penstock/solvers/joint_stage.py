"""One stage of a joint plan: what it asks, what is there, what may be rented; the best alternates and cores for it."""

from __future__ import annotations

import numpy as np

from penstock.models.flow_table import Floats
from penstock.solvers.joint_alternates import Choice, choose, power_of
from penstock.solvers.joint_cover import Cover
from penstock.solvers.layout import Layout
from penstock.solvers.lookahead import Offer, Rules, machine_of

# Where no core may be rented, what is asked beyond those that are there counts so many dollars.
NOT_FOR_MONEY = 1e6
COVERED = 3
"""For how many choices of alternates machines are picked: those that look best without."""


class JointStage:
    """From where a layout is to some step, at a throughput."""

    def __init__(self, layout: Layout, rules: Rules, aim: tuple[float, int], ends: Floats) -> None:
        """`aim`: the throughput, and the step before which the stage ends; `ends`: when paid hours end, in steps."""
        level, end = aim
        at, step_s = layout.at, layout.known.step_s
        self._layout, self._rules, self._ends = layout, rules, ends
        self._hour = round(3600.0 / step_s)
        is_here = ends >= at - 1e-9
        mean = [each.core_s[at:end].sum() / ((end - at) * step_s) for each in layout.machines]
        self._speed = np.where(is_here, mean, 0.0)
        due = [number for number in range(len(ends)) if is_here[number] and ends[number] < end]
        # With another hour comes what is left of this one.
        hours = {each: 1 + max(0.0, float(ends[each]) - at) / self._hour for each in due}
        self._due = {each: layout.machines[each].price / hours[each] for each in due}
        self._stays = np.clip((ends - at) / self._hour, 0.0, 1.0)
        self._stays[due] = 0.0
        self._offers = _timely(layout, rules, end)
        self._choice = self._choose_for(layout.known.arriving[at:end].mean(axis=0) / step_s * level)
        self._growth = _growth(layout, end, self._hour)

    def _choose_for(self, arriving: Floats) -> Choice:
        """What is paid for counts as what as much power would cost."""
        cores = sorted({(each.speed, each.price / each.cores) for each in self._offers}) or [(1.0, NOT_FOR_MONEY)]
        speeds, prices = np.array(cores).T.copy()
        power = self._speed * self._layout.cores
        paid = float((power.sum() - power[list(self._due)].sum()) * (prices / speeds).min())
        weight = self._rules.weight(self._layout)
        return Choice(self._layout.table, arriving, speeds, prices, paid, weight, self._rules.sigma)

    def best(self, only: list[int] | None) -> tuple[list[int], Cover]:
        """Alternates and cores with the best of weight · Γ − σ · dollars."""
        layout = self._layout
        first = [0] * len(layout.places)
        last = [min(range(len(each)), key=each.__getitem__) for each in layout.table.costs_s]
        options = (
            [only] if only else [*choose(self._choice, (layout.active, first, last))[:COVERED], layout.active, last]
        )
        found = [(each, self._cover(each)) for each in _distinct(options)]
        return max(found, key=lambda each: self._score(*each))

    def _score(self, active: list[int], cover: Cover) -> tuple[bool, float]:
        values = self._layout.table.values
        value = sum(each[number] for each, number in zip(values, active, strict=True)) / len(active)
        score = self._choice.weight * value - self._rules.sigma * cover.price
        return cover.is_met, score if cover.is_met else -float(np.maximum(cover.lacks, 0.0).sum())

    def _cover(self, active: list[int]) -> Cover:
        """Instances where they are as far as that costs nothing; all placed anew where it is cheaper."""
        # Nobody is without an instance, also where nothing is to come.
        power = np.maximum(power_of(self._choice, active), 1e-6)
        kept = self._filled(power, self._kept())
        if not kept.bought:
            return kept
        anew = self._filled(power, [[] for _ in power])
        return anew if (anew.is_met, -anew.price) > (kept.is_met, -kept.price) else kept

    def _kept(self) -> list[list[int]]:
        """Instances on machines that are there, no more of them than cores."""
        left = self._layout.cores.copy()
        found: list[list[int]] = []
        for where in self._layout.places:
            found.append([])
            for machine in where:
                if self._speed[machine] > 0 and left[machine] > 0:
                    left[machine] -= 1
                    found[-1].append(machine)
        return found

    def _filled(self, power: Floats, places: list[list[int]]) -> Cover:
        machines, offers = self._layout.machines, self._rules.offers
        least = min((each.price / (each.cores * each.speed) for each in offers), default=0.0)
        dear = frozenset(each.kind for each in offers if each.price / (each.cores * each.speed) > 1.001 * least)
        core = min((each.speed for each in offers if each.kind not in dear), default=0.0)
        found = Cover(
            speed=self._speed,
            left=self._layout.cores.copy(),
            stays=self._stays.copy(),
            kinds=[each.kind for each in machines],
            due=self._due,
            lacks=power.copy(),
            ahead=power * self._growth,
            needs_little=power * self._growth < core,
            dear=dear,
            most=self._rules.machines_max - len(machines),
            places=[[] for _ in places],
        )
        found.place([[each for each in where if each not in self._due] for where in places])
        found.trim()
        found.fill()
        found.buy(self._offers)
        return found.pruned() if found.is_met else found

    def apply(self, active: list[int], cover: Cover) -> Floats:
        """Make it so; returns after how many steps the paid hours end then."""
        layout, ends = self._layout, self._ends.copy()
        number = {machine: machine for machine in range(len(layout.machines))}
        for machine, offer in cover.new.items():
            if machine in cover.bought:
                number[machine] = layout.rent(machine_of(layout, offer))
                ends = np.append(ends, np.inf)
        for machine in cover.bought:
            if machine in self._due:
                ends[machine] += self._hour
        for place, alternate in enumerate(active):
            if layout.active[place] != alternate:
                layout.switch(place, alternate)
        for place, where in enumerate(cover.places):
            _replace(layout, place, [number[each] for each in where])
        return ends

    def part_met(self, cover: Cover) -> float:
        """A little less than the part of the power asked that there is."""
        lacks = np.maximum(cover.lacks, 0.0)
        has = sum(float(self._speed[each]) for where in cover.places for each in where if each < len(self._speed))
        has += sum(cover.new[each].speed for where in cover.places for each in where if each in cover.new)
        return 0.98 * has / max(1e-9, has + float(lacks.sum()))


def _replace(layout: Layout, place: int, wanted: list[int]) -> None:
    """Instances of an operator on these machines; those that are there stay."""
    now, missing = list(layout.places[place]), []
    for machine in wanted:
        if machine in now:
            now.remove(machine)
        else:
            missing.append(machine)
    for machine in missing:
        layout.add(place, machine)
    for machine in now:
        layout.add(place, machine, -1)


def _distinct(options: list[list[int]]) -> list[list[int]]:
    return [list(each) for each in dict.fromkeys(tuple(each) for each in options)]


def _timely(layout: Layout, rules: Rules, end: int) -> list[Offer]:
    """Kinds that are up within the stage."""
    late_s, end_s = layout.at * layout.known.step_s, end * layout.known.step_s
    if len(layout.machines) >= rules.machines_max:
        return []
    return [each for each in rules.offers if max(each.start_s, late_s) < end_s]


def _growth(layout: Layout, end: int, hour: int) -> float:
    """What comes in the hour ahead to what comes in the stage; what is not known yet is as the last step that is."""
    known, at = layout.known, layout.at
    later = known.arriving[np.minimum(np.arange(at, at + hour), known.steps - 1)].mean(axis=0)
    return float(later.sum() / max(1e-9, known.arriving[at:end].mean(axis=0).sum()))
