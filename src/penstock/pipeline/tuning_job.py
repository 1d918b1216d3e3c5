"""The search of `runs/tuning` as one Spark job: for budgets of thousands of replays."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from penstock.pipeline.spread import spread
from penstock.policies.registry import Named
from penstock.runs.tuning import Budget, Done, Search, Values, searched, space_of, worth
from penstock.sim.scenario import Scenario
from penstock.solvers.search import Found
from penstock.solvers.space import grid, size

# A search of 500 explores and exploits some rounds; more of them from other seeds are as good as a longer one.
EACH = 500
# Tasks of a whole space, for two cores as for a cluster of 16.
SLICES = 32


def spread_search(master: str | None = None) -> Search:
    """Searches side by side; where the budget is enough for the whole space, all of that. The same on any cluster."""

    def search(train: Scenario, named: Named, budget: Budget, done: Done) -> Found[Values]:
        whole = size(space_of(named))
        if whole is not None and whole <= budget.evaluations:
            parts = min(SLICES, whole)
            found = spread(lambda part: _slice(train, named, budget, part, parts), range(parts), master, done)
        else:
            found = spread(lambda each: searched(train, named, each), budgets(budget), master, done)
        return replace(min(found, key=lambda each: each.value), evaluations=sum(each.evaluations for each in found))

    return search


def budgets(budget: Budget) -> list[Budget]:
    """A large budget as searches of about the same size, each from a seed of its own."""
    count = -(-budget.evaluations // EACH)
    sizes = [budget.evaluations // count + (number < budget.evaluations % count) for number in range(count)]
    return [replace(budget, evaluations=each, seed=budget.seed + number) for number, each in enumerate(sizes)]


def _slice(train: Scenario, named: Named, budget: Budget, part: int, parts: int) -> Found[Values]:
    """The best of every so many-th point of the whole space."""
    points = list(islice(grid(space_of(named)), part, None, parts))
    values = [worth(train, named, budget, point) for point in points]
    best = min(range(len(points)), key=values.__getitem__)
    return Found(points[best], values[best], len(points))
