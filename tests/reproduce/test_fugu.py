"""Paper 2 beside ours: scenarios, what a run is in the paper's figures, baselines."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.policies.registry import Named
from penstock.reproduce.fugu import judged
from penstock.reproduce.fugu_runs import OURS, Result, measured, policies
from penstock.reproduce.fugu_table import BASELINES, Table
from penstock.reproduce.fugu_worlds import MEASUREMENTS, PER_HOUR, scenarios
from penstock.runs.replayed import replay


def test_there_are_nine_scenarios_of_90_minutes_with_35_20_and_10_queries() -> None:
    worlds = [scenario for scenario, _ in scenarios()]
    assert [len(world.dataflow.sources) for world in worlds] == [35] * 3 + [20] * 3 + [10] * 3
    assert {len(world.load.arrivals) * world.tick_s for world in worlds} == {5400.0}
    assert not any(is_real for _, is_real in scenarios())


def test_the_arrivals_of_the_queries_add_up_and_the_mean_is_what_was_set() -> None:
    for scenario, _ in scenarios():
        total = np.sum(list(scenario.load.by_source.values()), axis=0)
        assert total == pytest.approx(scenario.load.arrivals)
        busy = scenario.load.arrivals.mean() / scenario.tick_s * scenario.dataflow.demand_s / 2
        assert 1.3 < busy < 2.3


def test_a_folder_of_traces_that_is_not_there_is_one_line(tmp_path: object) -> None:
    from pathlib import Path

    with pytest.raises(BadInput, match="no such folder of traces"):
        scenarios(Path(str(tmp_path)) / "none")


def test_every_policy_of_the_experiment_can_be_built() -> None:
    job = scenarios()[6][0].job()
    names = policies(seeds=1, frontier=2)
    assert len(names) == 16 + 2 + 4 + 3 + 9 + 5 + 2
    for text in names.values():
        Named.parse(text).build(job)


def test_a_minute_costs_its_largest_number_of_hosts() -> None:
    scenario = scenarios()[6][0]
    steps = list(islice(replay(scenario, Named.parse("fugu").build(scenario.job())), 12))
    hosts = [len(step.target.workers) for step in steps]
    expected = (max(hosts[:6]) + max(hosts[6:])) * PER_HOUR / 60
    assert measured(scenario, steps).cost == pytest.approx(expected)
    assert MEASUREMENTS == 540


def table() -> Table:
    """Made-up results: the n-th of the 16 costs 1 + n/10 and violates 30 − n times."""
    results = {}
    worlds = {f"{kind}-{number}": False for kind in ("financial", "twitter", "energy") for number in (1, 2, 3)}
    for world in worlds:
        for place, called in enumerate(BASELINES):
            results[world, called] = Result(1 + place / 10, 30 - place, 5)
        for called in policies(seeds=1, frontier=1):
            results.setdefault((world, called), Result(1.4, 20, 5))
    return Table(results, worlds)


def test_naive_is_the_median_and_the_top_3_are_the_best_by_trade_off() -> None:
    pair = table()["twitter-1", "naive"]
    assert (pair.cost, pair.violations) == pytest.approx((1.75, 22.5))
    # cost/2.5 and violations/30: each step costs 1/25 more and saves 1/30, so the first are the best: 1, 1.1, 1.2.
    best = table()["twitter-1", "top 3"]
    assert (best.cost, best.violations) == pytest.approx((1.1, 29.0))


def test_a_change_is_in_percent_of_the_other_and_in_violations() -> None:
    cost, late = table().change(OURS, "naive")
    assert (cost, late) == pytest.approx((-20.0, -2.5))


def test_the_frontier_is_beaten_where_no_static_configuration_is_as_cheap_with_as_few_violations() -> None:
    # With at most 20 violations the cheapest of the 16 costs 2.0, and the drawn one 1.4, as much as tuned.
    assert not table().is_beaten("twitter-1")


def test_all_claims_are_made_and_figure_3_costs_10() -> None:
    claims = {claim.id: claim for claim in judged(table())}
    assert claims["figure-3-cost"].ours == 10
    assert claims["figure-3-cost"].holds
    assert claims["ours-naive-cost"].ours == pytest.approx(-20.0)
    assert claims["ours-naive-cost"].holds
    assert all(claim.why for claim in claims.values() if claim.holds is False)


def test_the_best_learner_is_chosen_by_the_metric_of_the_top_3_and_not_by_violations_alone() -> None:
    runs = {("energy-1", "rl 0.1 0.1"): Result(2.0, 10, 5), ("energy-1", "rl 0.9 0.9"): Result(1.0, 12, 5)}
    # (2/2 + 10/12)/2 = 0.92 against (1/2 + 12/12)/2 = 0.75.
    assert Table(runs, {"energy-1": False})["energy-1", "rl best"].violations == 12


def test_violations_vary_threefold_only_if_they_do_in_every_scenario() -> None:
    results = dict(table()._results)
    calm = {("twitter-2", called): replace(results["twitter-2", called], violations=20) for called in BASELINES}
    assert {each.id: each.holds for each in judged(table())}["violation-ratio"] is False  # 30 to 15
    wide = {key: replace(run, violations=run.violations * run.violations) for key, run in results.items()}
    assert {each.id: each.holds for each in judged(Table(wide, table().is_real))}["violation-ratio"] is True
    assert {each.id: each.holds for each in judged(Table(wide | calm, table().is_real))}["violation-ratio"] is False
