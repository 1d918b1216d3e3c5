"""A large budget of `penstock tune`, as one Spark job."""

from __future__ import annotations

import pytest

from penstock.pipeline.tuning_job import budgets, spread_search
from penstock.policies.registry import Named
from penstock.runs.tuning import Budget, divided, searched, tune, worth
from tests.cli.test_tune import day


def test_a_large_budget_is_searches_of_about_500_with_seeds_of_their_own() -> None:
    found = budgets(Budget(1201, seed=7))
    assert [(each.evaluations, each.seed) for each in found] == [(401, 7), (400, 8), (400, 9)]
    assert len(budgets(Budget(500))) == 1


@pytest.mark.spark
def test_spark_finds_the_best_of_the_searches_that_it_spreads() -> None:
    named, (train, _) = Named.parse("threshold"), divided(day(), 0.6)
    found = spread_search()(train, named, Budget(1002, 0.2), lambda _: None)
    alone = [searched(train, named, each) for each in budgets(Budget(1002, 0.2))]
    assert found.value == min(each.value for each in alone)
    assert found.evaluations == 1002


@pytest.mark.spark
def test_a_space_that_is_small_enough_is_looked_at_whole() -> None:
    named, budget = Named.parse("mst"), Budget(1100)
    found = tune(day(), named, budget, search=spread_search())
    train, _ = divided(day(), 0.6)
    assert found.evaluations == 51
    least = min(worth(train, named, budget, {"spare": round(0.02 * number, 2)}) for number in range(51))
    assert (max(0.0, found.train.violation_share - budget.violations), found.train.cost) == least
