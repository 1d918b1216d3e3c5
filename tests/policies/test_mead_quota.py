"""Responses where a share is a quota, held against rows that are followed one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.models.arrivals import Map, poisson
from penstock.models.markov.chains import Floats
from penstock.models.queues import Quota
from penstock.policies.mead_plan import Goal, Markovian, Predictor, plan, timed_paths
from penstock.policies.mead_quota import QuotaPredictor, Rows, need_plain_paths, rows_drawn
from penstock.policies.share_levels import Levels

SHARES = Levels(5, 0.4).shares
COST = 0.4 * 0.85 / 300
BURSTY = Map([[-5.0, 1.0], [0.2, -20.2]], [[4.0, 0.0], [0.0, 20.0]]).with_rate(300.0)
FLOW = Dataflow(
    (
        Operator("parser", 0.3 * COST),
        Operator("counter", 0.2 * COST, after=("parser",)),
        Operator("matcher", COST, after=("parser",)),
    )
)
PATH = ("parser", "matcher")
ROWS = 1_000_000


def followed(flow: Dataflow, arrivals: Map, shares: dict[str, float], cores: float = 1.0) -> Floats:
    """Responses of a million rows of another seed than the model's, along the parser and the matcher."""
    rng = np.random.default_rng(77)
    came = np.cumsum(arrivals.sample(ROWS, rng))
    begun = came.copy()
    for name in PATH:
        work = rng.standard_gamma(2.0, len(came)) * flow.costs_s[name] * cores / 2
        came = Quota.of_linux(shares[name] * cores).finish(came, work)
        kept = rng.random(len(came)) < flow.selectivities[name]
        if name != PATH[-1]:
            came, begun = came[kept], begun[kept]
    return np.asarray(came - begun)[ROWS // 50 :]


@pytest.mark.parametrize(
    ("arrivals", "share", "cores"), [(poisson(300.0), 0.4, 1.0), (BURSTY, 0.7, 0.5), (BURSTY, 0.9, 0.25)]
)
@pytest.mark.parametrize("kept", [1.0, 0.3])
def test_a_path_under_quotas_takes_as_long_as_rows_that_are_followed(
    arrivals: Map, share: float, cores: float, kept: float
) -> None:
    flow = Dataflow((replace(FLOW.operators[0], selectivity=kept), *FLOW.operators[1:]))
    shares = dict.fromkeys(flow.order, share)
    truth = followed(flow, arrivals, shares, cores)
    found = QuotaPredictor(flow, [Markovian(arrivals)], dict.fromkeys(flow.order, cores))
    assert found.along(PATH, shares, 0.0) == pytest.approx(truth.mean(), rel=0.15)
    assert found.along(PATH, shares, 0.95) == pytest.approx(np.quantile(truth, 0.95), rel=0.15)
    # As a slower core it takes longer.
    assert Predictor(flow, [Markovian(arrivals)]).along(PATH, shares, 0.95) > np.quantile(truth, 0.95)


def test_near_full_load_it_is_not_left_to_what_was_drawn() -> None:
    # At 0.95 the p95 of 50,000 rows is anywhere from 0.6 to 1.0 times that of six million.
    share = 300.0 * COST / 0.95
    shares = dict.fromkeys(FLOW.order, share)
    found = QuotaPredictor(FLOW, [Markovian(BURSTY)]).along(PATH, shares, 0.95)
    exact = Predictor(FLOW, [Markovian(BURSTY)]).along(PATH, shares, 0.95)
    # A backlog of seconds is worked off as fast by a quota as by a slower core of that share.
    assert 0.98 * exact < found <= exact


def test_a_burst_that_is_hardly_ever_drawn_is_not_corrected_as_if_it_were_calm() -> None:
    # Levels of 50,000 rows, a draw's whole length: at the busy one quotas help little, at the calm one a lot.
    calm, busy = 0.3 * 0.7 / COST, 0.95 * 0.7 / COST
    leaves = [rate / 50_000 for rate in (calm, busy)]
    arrivals = Map([[-calm - leaves[0], leaves[0]], [leaves[1], -busy - leaves[1]]], [[calm, 0.0], [0.0, busy]])
    shares = dict.fromkeys(FLOW.order, 0.7)
    for percentile in (0.0, 0.95):
        exact = Predictor(FLOW, [Markovian(arrivals)]).along(PATH, shares, percentile)
        found = QuotaPredictor(FLOW, [Markovian(arrivals)]).along(PATH, shares, percentile)
        assert 0.9 * exact < found < 1.01 * exact


def test_rows_that_become_many_are_drawn_fewer() -> None:
    flow = Dataflow((Operator("parser", 1e-4, 20.0), Operator("matcher", 1e-4, after=("parser",))))
    assert rows_drawn(flow) == 2500
    need_plain_paths(flow)
    assert QuotaPredictor(flow, [Markovian(poisson(50.0))]).along(PATH, {"parser": 1.0, "matcher": 1.0}, 0.95) > 1e-3
    thousands = Dataflow((Operator("parser", 1e-4, 2000.0), flow.operators[1]))
    with pytest.raises(BadInput, match="of 25 rows only 25 reach parser"):
        need_plain_paths(thousands)


def test_the_worst_of_all_models_counts() -> None:
    shares = dict.fromkeys(FLOW.order, 0.55)
    calm, bursty = ([Markovian(each)] for each in (poisson(300.0), BURSTY))
    both = QuotaPredictor(FLOW, [*calm, *bursty])
    assert both.along(PATH, shares, 0.95) == QuotaPredictor(FLOW, bursty).along(PATH, shares, 0.95)
    assert both.along(PATH, shares, 0.95) > QuotaPredictor(FLOW, calm).along(PATH, shares, 0.95)
    fast = [Markovian(poisson(800.0))]  # 0.9 cores of work: 55 % of one is too little
    assert QuotaPredictor(FLOW, [*calm, *fast]).along(PATH, shares, 0.95) == math.inf
    assert QuotaPredictor(FLOW, [*calm, *fast]).slowness(PATH, shares, by_load=True) == pytest.approx(800 * COST / 0.55)


@pytest.mark.parametrize("percentile", [0.0, 0.95])
@pytest.mark.parametrize("cores", [0.25, 1.0])
def test_more_of_a_quota_is_not_predicted_to_be_slower(percentile: float, cores: float) -> None:
    quota = QuotaPredictor(FLOW, [Markovian(BURSTY)], dict.fromkeys(FLOW.order, cores))
    for path in timed_paths(FLOW):
        told = [quota.along(path, dict.fromkeys(path, share), percentile) for share in SHARES]
        # Below a fifth of a core periods grow with the quota: by less than half a percent is let pass.
        assert all(more < 1.005 * less for less, more in pairwise(told))
        assert told[0] > told[-1]


def test_a_share_of_half_a_core_is_half_a_quota() -> None:
    # Costs are those at a whole share: on half a core a row needs half of that CPU time.
    half = QuotaPredictor(FLOW, [Markovian(BURSTY)], dict.fromkeys(FLOW.order, 0.5))
    halved = Dataflow(tuple(replace(each, cost_s=each.cost_s / 2) for each in FLOW.operators))
    whole = QuotaPredictor(halved, [Markovian(BURSTY)])
    shares = dict.fromkeys(FLOW.order, 0.8)
    of_whole = {name: share / 2 for name, share in shares.items()}
    assert half.along(PATH, shares, 0.95) == pytest.approx(whole.along(PATH, of_whole, 0.95))


def test_each_operator_of_a_path_is_as_slow_as_it_adds() -> None:
    found, shares = QuotaPredictor(FLOW, [Markovian(BURSTY)]), {"parser": 0.4, "matcher": 0.7}
    parser, matcher = (found.slowness(PATH[:length], shares, by_load=False) for length in (1, 2))
    assert parser == found.along(PATH[:1], shares, 0.0)
    assert parser + matcher == pytest.approx(found.along(PATH, shares, 0.0))


def test_a_row_that_is_doubled_comes_twice() -> None:
    flow = Dataflow((Operator("parser", 1e-4, 2.0), Operator("matcher", 1e-3, after=("parser",))))
    times_s = np.arange(100, dtype=np.float64)  # none waits for another
    given = (("parser", 1.0), ("matcher", 1.0))
    rows = Rows(times_s, flow, {})
    # The first copy takes a service, the second waits for it: in the mean one and a half, with the parser's.
    assert rows.response_s(given, 0.0) == pytest.approx(1e-4 + 1.5e-3, rel=0.15)
    found = QuotaPredictor(flow, [Markovian(poisson(300.0))])
    assert math.isinf(found.along(PATH, {"parser": 1.0, "matcher": 0.5}, 0.0))


def test_planned_by_quotas_the_same_bound_takes_smaller_shares() -> None:
    # A row of the matcher needs 0.28 ms of CPU: a whole core for so long, or a tenth of one ten times as long.
    goal, few = Goal({"matcher": 0.005}, 0.95), [Markovian(BURSTY)]
    by_core = plan(Predictor(FLOW, few), SHARES, goal)
    by_quota = plan(QuotaPredictor(FLOW, few, dict.fromkeys(FLOW.order, 0.25)), SHARES, goal)
    assert max(by_quota.expected_s.values()) <= 0.005
    assert 0 < sum(by_quota.levels.values()) < sum(by_core.levels.values())


def test_from_infinite_to_infinite_it_goes_on_by_utilisation() -> None:
    # At 600/s the matcher needs 0.68 of a core: 40 % and 55 % are both too little.
    found = plan(QuotaPredictor(FLOW, [Markovian(poisson(600.0))]), SHARES, Goal({"matcher": 0.1}))
    assert (found.levels["parser"], found.levels["matcher"]) == (0, 2)


def test_flows_that_rows_cannot_be_followed_through_are_refused() -> None:
    parser, counter, matcher = FLOW.operators
    for operators, says in (
        ((parser, Operator("other", COST), matcher), "both sources"),
        ((parser, counter, replace(matcher, after=("parser", "counter"))), "join at matcher"),
        ((replace(parser, selectivity=1e-3), counter, matcher), "of 50,000 rows only 50 reach"),
    ):
        with pytest.raises(BadInput, match=says):
            need_plain_paths(Dataflow(operators))
    need_plain_paths(FLOW)
