"""Algorithm 1 of paper 3, corrected: cross-over steps found backwards, one small change at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from penstock.models.flow_table import Floats
from penstock.solvers.layout import Layout, Machine, Stage, needs
from penstock.solvers.repacking import repack

SURE = 1e-9


@dataclass(frozen=True)
class Offer:
    """A kind of worker that may be rented."""

    kind: str
    cores: int
    speed: float
    """Of one core, as a new worker is expected to have it."""
    price: float
    """For a billed hour."""
    start_s: float


@dataclass(frozen=True)
class Rules:
    """What a plan aims at, and what it may use."""

    low: float
    high: float
    """The band [Ω̂, Ω̂ + 2ε]; a two-sided one, Ω̂ ± ε, ends below Ω̂."""
    sigma: float
    period_s: float
    """T, over which value and cost are counted."""
    offers: tuple[Offer, ...]
    machines_max: int
    by_interval: bool = False
    """Does a value count for the rest of the interval only, and a VM for its hour? Else an hour for both."""
    alternates: bool = True
    """May alternates be switched?"""

    def weight(self, layout: Layout) -> float:
        """The part of the period for which a change of an alternate counts."""
        rest_s = (layout.known.steps - layout.at) * layout.known.step_s
        return (rest_s if self.by_interval else 3600.0) / self.period_s


@dataclass(frozen=True)
class Planned:
    """Stages, and the machines to launch for them."""

    stages: tuple[Stage, ...]
    launches: tuple[Machine, ...]
    relative: float
    """Ω over the interval, if all comes as forecast."""
    feasible: bool
    """Does it reach the band's lower end? Else it is the best that was found."""


@dataclass
class _Turns:
    """What was done at one cross-over: nothing is undone there, or the walk would not end."""

    up: set[int] = field(default_factory=set)
    down: set[int] = field(default_factory=set)
    failed: set[tuple[int, bool]] = field(default_factory=set)


def look_ahead(layout: Layout, rules: Rules) -> Planned:
    """A plan for the interval (paper 3, Algorithm 1)."""
    turns, feasible = _Turns(), True
    for _ in range(100 + 20 * len(layout.places)):
        met = last_met(layout, rules)
        if met == layout.known.steps - 1:
            break
        if met + 1 > layout.at:
            layout.advance(met + 1)
            turns = _Turns()
        rest = layout.totals().relative(layout.at)
        done = scale_up(layout, rules, turns) if rest < rules.low else scale_down(layout, rules, turns)
        if not done:
            feasible = feasible and rest >= rules.low * (1 - SURE)
            if layout.at + 1 >= layout.known.steps:
                break
            layout.advance(layout.at + 1)
            turns = _Turns()
    repack(layout, rules.low)
    return planned(layout, rules, feasible)


def planned(layout: Layout, rules: Rules, feasible: bool = True) -> Planned:
    """A layout as a plan."""
    stages = layout.finished()
    wanted = {name for stage in stages for places in stage.instances.values() for name in places}
    launches = tuple(each for each in layout.machines if each.launch is not None and each.name in wanted)
    relative = layout.totals().relative()
    return Planned(stages, launches, relative, feasible and relative >= rules.low * (1 - 1e-6))


def last_met(layout: Layout, rules: Rules) -> int:
    """The last step up to which Ω, from the last cross-over on, is within the band; the one before it if none is."""
    now, at = layout.totals(), layout.at
    deliverable = np.cumsum(now.deliverable[at:])
    relative = np.where(deliverable > 0, np.cumsum(now.delivered[at:]) / np.maximum(deliverable, 1e-300), rules.low)
    within = (relative >= rules.low * (1 - SURE)) & (relative <= rules.high * (1 + SURE))
    found = np.flatnonzero(within)
    return at + int(found[-1]) if len(found) else at - 1


def scale_up(layout: Layout, rules: Rules, turns: _Turns) -> bool:
    """More for the bottleneck: free cores, which cost nothing; else a new worker or a cheaper alternate of it."""
    asked_s, has_s = layout.asked(), layout.has_s()
    order = list(_bottlenecks(needs(asked_s, has_s)))
    if _fill(layout, rules, (asked_s, has_s), turns):
        return True
    offer = offered(layout, rules)
    loss_vm = rules.sigma * offer.price if offer is not None else math.inf
    for place in order:
        if place in turns.down:
            continue
        cheaper = _cheaper(layout, place) if rules.alternates else None
        loss_value = _gain(layout, place, cheaper) * -rules.weight(layout) if cheaper is not None else math.inf
        if cheaper is not None and loss_value < loss_vm:
            layout.switch(place, cheaper)
        elif offer is not None:
            layout.add(place, rent(layout, offer))
        else:
            continue
        turns.up.add(place)
        return True
    return False


def _fill(layout: Layout, rules: Rules, load: tuple[Floats, Floats], turns: _Turns) -> bool:
    """Free cores, each for the operator that is then the tightest: a quarter of what lacks, and one by one at the end.

    All that each lacks at once cost 14 % more: Ω is met on average, by some streams before others.
    """
    asked_s, has_s = load
    need = needs(asked_s, has_s)
    need[list(turns.down)] = -1.0
    short = 1 - layout.totals().relative(layout.at) / rules.low
    filled = False
    for _ in range(max(1, int(sum(map(len, layout.places)) * short / 4))):
        machine, place = layout.free(), int(need.argmax())
        if machine is None or need[place] < 0:
            break
        layout.add(place, machine)
        has_s[place] += layout.rest_s(machine)
        need[place] = asked_s[place] / has_s[place]
        turns.up.add(place)
        filled = True
    return filled


def scale_down(layout: Layout, rules: Rules, turns: _Turns) -> bool:
    """A more valuable alternate, or an instance less, of what has more than it needs: whichever profits more."""
    options = sorted(_savings(layout, rules, turns), key=lambda each: each[0], reverse=True)
    for _, place, number in options:
        before = layout.active[place]
        machine = layout.slowest(place)
        if number is None:
            layout.add(place, machine, -1)
        else:
            layout.switch(place, number)
        if layout.totals().relative(layout.at) >= rules.low:
            turns.down.add(place)
            return True
        if number is None:
            layout.add(place, machine)
        else:
            layout.switch(place, before)
        # What does not fit now does not fit later either: at this step there is only less.
        turns.failed.add((place, number is None))
    return False


def rent(layout: Layout, offer: Offer) -> int:
    """A new machine, launched ahead so that it is up at step `at`, if there is still time for that."""
    return layout.rent(machine_of(layout, offer))


def machine_of(layout: Layout, offer: Offer) -> Machine:
    known, at = layout.known, layout.at
    up_s = max(0.0, at * known.step_s - offer.start_s) + offer.start_s
    ends_s = (np.arange(known.steps) + 1) * known.step_s
    core_s = offer.speed * np.clip(ends_s - up_s, 0.0, known.step_s)
    return Machine(f"new-{layout.launched + 1}", offer.kind, offer.cores, core_s, offer.price, launch=at)


def offered(layout: Layout, rules: Rules) -> Offer | None:
    """The kind whose power costs least, the smallest of those; None where no more may be rented, or none comes in time.

    Not the kind that covers what is lacking now for the least money: that is a small one each time, and with many of
    them 60 minutes of look-ahead cost 17 % more.
    """
    if len(layout.machines) >= rules.machines_max:
        return None
    left_s = (layout.known.steps - layout.at) * layout.known.step_s
    # One that is launched for a later step is up by then; one for this very step comes later.
    late_s = layout.at * layout.known.step_s
    timely = [offer for offer in rules.offers if max(0.0, offer.start_s - late_s) < left_s]
    return min(timely, key=lambda each: (each.price / (each.cores * each.speed), each.price), default=None)


def _bottlenecks(need: Floats) -> Iterator[int]:
    """Operators that lack the most first; where all have enough on the whole, but too late, the tightest."""
    order = np.argsort(-need)
    yield int(order[0])
    yield from (int(place) for place in order[1:] if need[place] > 1)


def _cheaper(layout: Layout, place: int) -> int | None:
    """The alternate with the next lower cost."""
    costs_s, now = layout.table.costs_s[place], layout.active[place]
    lower = [(cost_s, number) for number, cost_s in enumerate(costs_s) if cost_s < costs_s[now]]
    return max(lower)[1] if lower else None


def _gain(layout: Layout, place: int, number: int) -> float:
    """What a switch adds to Γ."""
    values = layout.table.values[place]
    return (values[number] - values[layout.active[place]]) / len(layout.places)


def _savings(layout: Layout, rules: Rules, turns: _Turns) -> Iterator[tuple[float, int, int | None]]:
    """What might be done: its gain, an operator, and the alternate to switch to; None: an instance less."""
    asked_s, has_s = layout.asked(), layout.has_s()
    steps, weight = layout.known.steps, rules.weight(layout)
    for place, where in enumerate(layout.places):
        if place in turns.up:
            continue
        need_s, has = rules.low * float(asked_s[place]), float(has_s[place])
        if len(where) > 1 and (place, True) not in turns.failed:
            machine = layout.machines[slowest := layout.slowest(place)]
            if need_s <= has - layout.rest_s(slowest):
                # A core that is paid for beyond the interval saves nothing yet.
                renewed = machine.ends < steps or machine.launch is not None
                yield (rules.sigma * machine.price / machine.cores if renewed else 0.0), place, None
        number, costs_s = layout.active[place] - 1, layout.table.costs_s[place]
        if rules.alternates and number >= 0 and (place, False) not in turns.failed:
            dearer = costs_s[number] / costs_s[number + 1] if costs_s[number + 1] else math.inf
            if need_s * dearer <= has:
                yield _gain(layout, place, number) * weight, place, number
