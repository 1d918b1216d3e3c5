"""A policy's parameters, searched by replaying a load: violations first, then cost; tried on the rest of the load."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown
from penstock.core.score import Score, score
from penstock.policies.clairvoyant import Clairvoyant
from penstock.policies.parameters import parameters_of
from penstock.policies.registry import POLICIES, Named
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.workloads import Load
from penstock.solvers.search import Found, recursive_random
from penstock.solvers.space import Choice, Point, Range, Space

INTERVALS_LEAST = 20
# After the search each part is replayed twice more, and bounded: in a bar, so much of a replay.
PART_WEIGHT = 10


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to search, and what is allowed."""

    evaluations: int = 500
    violations: float = 0.001
    """The share of time in which the objective may be missed."""
    train: float = 0.6
    """The first part of the load, which is searched on; the rest is for the test."""
    seed: int = 0

    def __post_init__(self) -> None:
        between("--budget", self.evaluations, 1, 1_000_000)
        between("--violations", self.violations, 0, 1)
        between("--train", self.train, 0.05, 0.95)


@dataclass(frozen=True, slots=True)
class Part:
    """The tuned policy on one part of the load, beside what was there before and what nobody can beat."""

    cost: float
    violation_share: float
    bound: float | None
    """None: there is no bound for such a job."""
    untuned_cost: float
    untuned_violation_share: float


@dataclass(frozen=True, slots=True)
class Tuned:
    """What the search found."""

    policy: str
    parameters: Mapping[str, Any]
    evaluations: int
    train: Part
    test: Part
    assumed: Mapping[str, str] = field(default_factory=dict)
    """What nobody gave. A replay of one part alone would assume another peak, and with it other limits."""

    @property
    def name(self) -> str:
        """The policy with its parameters, as `--policy` takes it."""
        first, _, rest = self.policy.partition(":")
        bare = f"{first}:{rest.partition(':')[0]}" if first.endswith(".py") else first
        given = ",".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{bare}:{given}" if given else self.policy


Values = tuple[float, ...]
"""What is minimised: the violations beyond what is allowed, then the cost."""
Done = Callable[[float], None]
Search = Callable[[Scenario, Named, Budget, Done], Found[Values]]


def searched(train: Scenario, named: Named, budget: Budget, done: Done = lambda _: None) -> Found[Values]:
    """The best of so many settings, one after the other."""
    tried = 0

    def value(point: Point) -> Values:
        nonlocal tried
        tried += 1
        done(tried / budget.evaluations)
        return worth(train, named, budget, point)

    return recursive_random(value, space_of(named), budget.evaluations, budget.seed)


def worth(train: Scenario, named: Named, budget: Budget, point: Point) -> Values:
    """What a setting comes to on a load."""
    try:
        found = _score(train, _with(named, point))
    except BadInput:  # thresholds that cross, say: the space is a box, and what makes sense is not
        return math.inf, math.inf
    return max(0.0, found.violation_share - budget.violations), found.cost


def tune(
    scenario: Scenario,
    named: Named,
    budget: Budget | None = None,
    done: Done = lambda _: None,
    search: Search = searched,
) -> Tuned:
    """The parameters that miss the objective no longer than allowed in the first part, and cost the least there."""
    budget = budget or Budget()
    space = space_of(named)
    train, test = divided(scenario, budget.train)
    weight = budget.evaluations + 2 * PART_WEIGHT
    found = search(train, named, budget, lambda share: done(share * budget.evaluations / weight))
    if found.value[0] == math.inf:
        raise BadInput(f"policy {named.name}: all {found.evaluations} settings tried are refused: {found.point}")
    best, untuned = _with(named, found.point), _untuned(named, space)
    first = _part(train, named, best)
    before = max(0.0, first.untuned_violation_share - budget.violations), first.untuned_cost
    if untuned and before <= found.value:
        # A short search may well find nothing better than what is there.
        best = _with(named, untuned)
        first = replace(first, cost=first.untuned_cost, violation_share=first.untuned_violation_share)
    done(1 - PART_WEIGHT / weight)
    rest = _part(test, named, best)
    done(1.0)
    return Tuned(named.name, dict(best.parameters), found.evaluations, first, rest, dict(scenario.assumed))


def space_of(named: Named) -> Space:
    """What may be searched: the policy's `space`, without what its name sets already."""
    space: Space = getattr(named.maker, "space", {})
    if not isinstance(space, Mapping) or not all(isinstance(axis, (Range, Choice)) for axis in space.values()):
        raise BadInput(f"policy {named.name}: space is {reprlib.repr(space)}; it must be a dict of Range and Choice")
    for key in space:
        if key not in parameters_of(named.maker):
            raise unknown(f"parameter of {named.name} in its space", str(key), parameters_of(named.maker))
    left = {key: axis for key, axis in space.items() if key not in named.parameters}
    if space and not left:
        raise BadInput(f"policy {named.name} has nothing left to tune: its name sets {', '.join(space)}")
    if not left:
        known = ", ".join(name for name, maker in POLICIES.items() if hasattr(maker, "space"))
        raise BadInput(f"policy {named.name} has nothing to tune: a class needs a `space`, as {known} have")
    return left


def _untuned(named: Named, space: Space) -> Point:
    """The defaults of what is searched; nothing where one has none, or is of another kind."""
    defaults = {key: parameters_of(named.maker)[key].default for key in space}
    return defaults if all(isinstance(value, (int, float, str)) for value in defaults.values()) else {}


def divided(scenario: Scenario, share: float) -> tuple[Scenario, Scenario]:
    """The first part of a load, and the rest."""
    load = scenario.load
    cut = round(share * len(load.arrivals))
    if min(cut, len(load.arrivals) - cut) < INTERVALS_LEAST:
        raise BadInput(
            f"{scenario.name} has {len(load.arrivals)} intervals: both parts need {INTERVALS_LEAST} at least"
        )
    return replace(scenario, load=_cut(load, slice(None, cut))), replace(scenario, load=_cut(load, slice(cut, None)))


def _cut(load: Load, part: slice) -> Load:
    by_source = {name: each[part] for name, each in load.by_source.items()}
    times_s = load.times_s[part]
    return replace(load, arrivals=load.arrivals[part], times_s=times_s - times_s[0] + load.tick_s, by_source=by_source)


def _with(named: Named, point: Point) -> Named:
    known = parameters_of(named.maker)
    chosen = {key: int(value) if str(known[key].annotation) == "int" else value for key, value in point.items()}
    return replace(named, parameters={**named.parameters, **chosen})


def _score(scenario: Scenario, named: Named) -> Score:
    job = scenario.job()
    return score(replay(scenario, named.build(job, named.rules(job))), scenario.objective, scenario.price, job.kinds)


def _part(scenario: Scenario, named: Named, best: Named) -> Part:
    tuned, before, job = _score(scenario, best), _score(scenario, named), scenario.job()
    bound = Clairvoyant(job).bound.lower if len(job.kinds) == 1 else None
    return Part(tuned.cost, tuned.violation_share, bound, before.cost, before.violation_share)
