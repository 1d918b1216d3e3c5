"""MEAD (paper 4): windows, the level-by-level plan, its baselines, and what it does when arrivals turn bursty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Policy, Step
from penstock.core.objective import Limits, Objective
from penstock.core.observation import Observation, OperatorStats
from penstock.models.arrivals import Map, poisson
from penstock.models.arrivals.spaced import SpacedArrivals
from penstock.models.capacity import linear
from penstock.models.markov.chains import Floats
from penstock.models.queues import PhaseType, kingman, map_ph_1
from penstock.policies.mead import Gaps, Mead
from penstock.policies.mead_plan import Goal, Markovian, Predictor, independent, plan, timed_paths
from penstock.policies.registry import Named
from penstock.policies.share_levels import Levels
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import EventSpec
from penstock.sim.workloads import Load

BURSTY = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]]).with_rate(300.0)
SHARES = Levels().shares
COST = 0.85 * 0.4 / 300
FLOW = Dataflow(
    (
        Operator("parser", 0.3 * COST),
        Operator("counter", 0.2 * COST, after=("parser",)),
        Operator("matcher", COST, after=("parser",)),
    )
)


def job(objective: str = "latency<=0.1s") -> Job:
    return Job("logs", FLOW, linear(300.0), Limits(1, 1), 10.0, objective=Objective.parse(objective))


def seen(time_s: float, gaps_s: Floats | None, shares: Mapping[str, float] | None = None) -> Observation:
    target = replace(Allocation.of(1), cpu_share=shares or {})
    spaced = None if gaps_s is None else SpacedArrivals.of_gaps(gaps_s)
    return Observation(time_s, 10.0, 0, 0, 0, 0, 300.0, 0.0, 0.0, 300.0, target, target, arrivals=spaced)


def driven(policy: Policy, windows: list[Floats | None]) -> list[dict[str, float]]:
    """The shares after each tick, of a policy whose wishes come true."""
    shares: dict[str, float] = {}
    found = []
    for tick, gaps_s in enumerate(windows, start=1):
        shares = dict(policy.decide(seen(10.0 * tick, gaps_s, shares)).target.cpu_share)
        found.append(shares)
    return found


def ticks(process: Map, count: int, seed: int = 0) -> list[Floats | None]:
    gaps = process.sample(3000 * count, np.random.default_rng(seed))
    return [gaps[3000 * tick : 3000 * (tick + 1)] for tick in range(count)]


# The plan, Fig 5


def test_the_worst_of_all_models_counts() -> None:
    both = Predictor(FLOW, [Markovian(poisson(300.0)), Markovian(BURSTY)])
    path, shares = ("parser", "matcher"), dict.fromkeys(FLOW.order, 0.55)
    one = Predictor(FLOW, [Markovian(BURSTY)])
    assert both.along(path, shares, 0.0) == one.along(path, shares, 0.0)
    # By hand: the parser's response and the matcher's, both seeing the source's arrivals.
    parts = [map_ph_1(BURSTY, PhaseType.erlang(2, cost / 0.55)).mean_s for cost in (0.3 * COST, COST)]
    assert one.along(path, shares, 0.0) == pytest.approx(sum(parts))


def test_calm_arrivals_need_the_least_shares_and_bursts_more_for_the_slowest_operator() -> None:
    goal = Goal({"counter": 0.1, "matcher": 0.1})
    assert set(plan(Predictor(FLOW, [Markovian(poisson(300.0))]), SHARES, goal).levels.values()) == {0}
    found = plan(Predictor(FLOW, [Markovian(BURSTY)]), SHARES, goal)
    assert found.levels["matcher"] > 0
    assert found.levels["counter"] == 0
    assert max(found.expected_s.values()) <= 0.1


@pytest.mark.parametrize("percentile", [0.0, 0.95])
@pytest.mark.parametrize("bound_s", [0.02, 0.05, 0.1, 0.3])
def test_the_plan_is_hardly_dearer_than_the_best_of_all_125(percentile: float, bound_s: float) -> None:
    predictor = Predictor(FLOW, [Markovian(BURSTY), Markovian(poisson(300.0))])
    goal = Goal({"counter": bound_s, "matcher": bound_s}, percentile)

    def keeps(levels: tuple[int, ...]) -> bool:
        shares = {name: SHARES[level] for name, level in zip(FLOW.order, levels, strict=True)}
        return all(predictor.along(path, shares, percentile) <= bound_s for path in timed_paths(FLOW))

    every = [levels for levels in product(range(5), repeat=3) if keeps(levels)]
    found = plan(predictor, SHARES, goal)
    if every:
        assert keeps(tuple(found.levels[name] for name in FLOW.order))
        assert sum(found.levels.values()) <= min(map(sum, every)) + 1
    else:
        assert max(found.expected_s.values()) > bound_s


def test_a_bound_that_no_share_keeps_is_not_paid_for_beyond_delta() -> None:
    # 0.1 ms is less than a service: a level that brings less than 5 % of the bound is taken back.
    goal = Goal({"matcher": 1e-4}, delta=1e6)
    found = plan(Predictor(FLOW, [Markovian(poisson(300.0))]), SHARES, goal)
    assert set(found.levels.values()) == {0}
    none = plan(Predictor(FLOW, [Markovian(poisson(300.0))]), SHARES, replace(goal, delta=0.0))
    assert none.levels["matcher"] == none.levels["parser"] == 4


def test_from_infinite_to_infinite_it_goes_on_by_utilisation() -> None:
    # At 600/s the matcher needs 0.68 of a core: 40 % and 55 % are both too little.
    predictor = Predictor(FLOW, [Markovian(poisson(600.0))])
    assert math.isinf(predictor.along(("parser", "matcher"), dict.fromkeys(FLOW.order, 0.55), 0.0))
    found = plan(predictor, SHARES, Goal({"matcher": 0.1}))
    assert (found.levels["parser"], found.levels["matcher"]) == (0, 2)
    assert max(found.expected_s.values()) < 0.1


def test_what_one_path_gave_the_parser_stays_for_the_next() -> None:
    heavy = Dataflow((replace(FLOW.operators[0], cost_s=COST), *FLOW.operators[1:]))
    predictor = Predictor(heavy, [Markovian(BURSTY)])
    both = plan(predictor, SHARES, Goal({"counter": 0.1, "matcher": 0.1}))
    first = plan(predictor, SHARES, Goal({"counter": 0.1}))
    assert both.levels["parser"] >= first.levels["parser"] > 0


def test_what_is_expected_of_a_path_is_so_with_the_levels_that_all_paths_got() -> None:
    heavy = Dataflow((replace(FLOW.operators[0], cost_s=COST), *FLOW.operators[1:]))
    predictor = Predictor(heavy, [Markovian(BURSTY)])
    # The counter's path is content with the least shares; the matcher's then raises the parser, which is on both.
    found = plan(predictor, SHARES, Goal({"counter": 10.0, "matcher": 0.1}))
    assert found.levels["parser"] > 0
    shares = {name: SHARES[level] for name, level in found.levels.items()}
    for path in (("parser", "counter"), ("parser", "matcher")):
        assert found.expected_s[path] == predictor.along(path, shares, 0.0)


# A share as a quota: test_mead_quota.py


def test_mead_plans_by_quotas_where_it_is_told_to() -> None:
    options = "percentile=0.95,bound_s=0.008,every_s=10,method=em,best=1,down_at_once=true"
    quarters = "+".join(f"{name}:0.25" for name in FLOW.order)
    core, quota = (
        driven(Named.parse(f"mead:{options},{how}").build(job()), ticks(BURSTY.with_rate(150.0), 3))[-1]
        for how in ("service=core", f"service=quota,cores={quarters}")
    )
    assert sum(quota.values()) < sum(core.values())
    for wrong, says in (
        ("service=cpu", "service"),
        ("service=quota,model=gi,percentile=0", "no arrivals to draw"),
        ("service=quota,cores=matcher:2", "cores of matcher"),
        ("service=quota,cores=nobody:1", "nobody"),
        ("cores=matcher:0.5", "give service=quota as well"),
    ):
        with pytest.raises(BadInput, match=says):
            Named.parse(f"mead:{wrong}").build(job())


def test_an_operator_behind_a_filter_sees_fewer_events() -> None:
    half = Dataflow((replace(FLOW.operators[0], selectivity=0.5), *FLOW.operators[1:]))
    for queue in (Markovian(poisson(300.0)), independent(300.0, 1.0)):
        found = Predictor(half, [queue]).operator("matcher", 0.4)[0]
        assert found.utilisation == pytest.approx(0.425)
        assert found.mean_s == pytest.approx(kingman(150.0, 1.0, PhaseType.erlang(2, COST / 0.4)).mean_s)


# The policy


def test_windows_are_the_latest_gaps_and_what_is_there_is_used() -> None:
    gaps = Gaps(5000)
    gaps.add(np.arange(99.0))
    assert gaps.windows([5000, 2500]) == []
    gaps.add(np.arange(1000.0))
    assert [len(window) for window in gaps.windows([5000, 2500])] == [1099]
    for _ in range(9):
        gaps.add(np.arange(1000.0))
    windows = gaps.windows([5000, 2500])
    assert [len(window) for window in windows] == [5000, 2500]
    assert all(window[-1] == 999.0 for window in windows)


def test_it_starts_with_all_of_the_cpu_and_goes_down_one_level_an_analysis() -> None:
    found = driven(Mead(job(), model="m"), ticks(poisson(300.0), 30))
    assert [each["matcher"] for each in found[:5]] == [1.0] * 5
    assert [each["matcher"] for each in found[5::6]] == [0.85, 0.7, 0.55, 0.4, 0.4]
    at_once = driven(Mead(job(), model="m", down_at_once=True), ticks(poisson(300.0), 6))
    assert at_once[-1] == dict.fromkeys(FLOW.order, 0.4)


def test_bursts_bring_the_shares_up_at_once_and_m_g_1_does_not_see_them() -> None:
    calm_then_bursty = [*ticks(poisson(300.0), 30), *ticks(BURSTY, 12)]
    maps = driven(Mead(job(), window=20_000, method="em"), calm_then_bursty)
    plain = driven(Mead(job(), window=20_000, model="m"), calm_then_bursty)
    assert maps[29]["matcher"] == plain[29]["matcher"] == 0.4
    assert maps[-1]["matcher"] >= 0.7
    assert plain[-1]["matcher"] == 0.4


def test_a_late_decision_is_the_same_decision_later() -> None:
    windows = ticks(poisson(300.0), 12)
    now, later = (driven(Mead(job(), model="m", delay_s=delay_s), windows) for delay_s in (0.0, 30.0))
    assert later[3:] == now[:-3]


def test_safety_plans_for_a_part_of_the_bound() -> None:
    whole, part = (Mead(job(), safety=safety, bound_s=0.4 / safety, method="em") for safety in (1.0, 0.25))
    windows = ticks(BURSTY, 6)
    assert driven(whole, windows)[-1] == driven(part, windows)[-1]
    assert "planned for 0.4 s" in part.decide(seen(70.0, None)).reason


def test_without_gaps_or_with_too_few_what_runs_stays_and_the_reason_says_so() -> None:
    policy = Mead(job(), every_s=10.0)
    shares = {"parser": 0.55, "counter": 0.4, "matcher": 0.7}
    decision = policy.decide(seen(10.0, None, shares))
    assert decision.target.cpu_share == shares
    assert decision.reason == "0 gaps between arrivals are known: 100 are needed"
    stuck = Mead(job(), every_s=10.0).decide(seen(10.0, np.zeros(200), shares))
    assert stuck.target.cpu_share == shares
    assert "all gaps are zero" in stuck.reason


@pytest.mark.parametrize(
    ("name", "objective", "said"),
    [
        ("mead:model=gi,percentile=0.95", "latency<=1s", "gives a mean only"),
        ("mead", "rate", "give bound_s"),
        ("mead:model=mm", "latency<=1s", "model"),
        ("mead:method=moments", "latency<=1s", "method"),
        ("mead:safety=0", "latency<=1s", "safety"),
        ("mead:bounds=parser:0.1", "latency<=1s", "parser"),
        ("mead:bounds=matcher:none", "latency<=1s", "operator:number"),
        ("share-threshold:upper=0.4", "latency<=1s", "lower < upper"),
        ("static-share:shares=matcher:1.5", "latency<=1s", "at most 1"),
        ("static-share:share=0", "latency<=1s", "share"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(name: str, objective: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        Named.parse(name).build(job(objective))
    assert "\n" not in str(refused.value)


def test_a_bound_of_its_own_for_a_path() -> None:
    tight = Mead(job(), model="m", bounds="counter:0.0008", down_at_once=True, every_s=10.0)
    [shares] = driven(tight, ticks(poisson(300.0), 1))
    # The counter alone takes 0.23 ms at full share and 0.57 ms at 40 %: only its own bound makes it go up.
    assert shares["counter"] > shares["matcher"] == 0.4


def test_an_outage_is_no_variability_for_g_i_g_1_either() -> None:
    gaps = poisson(300.0).sample(5000, np.random.default_rng(5))
    for each in (gaps, np.append(gaps, 1e4)):
        policy = Mead(job(), model="gi", every_s=10.0, down_at_once=True)
        assert driven(policy, [each]) == [dict.fromkeys(FLOW.order, 0.4)]


# Baselines


def test_thresholds_move_each_operator_by_one_level() -> None:
    policy = Named.parse("share-threshold").build(job())
    loads = {"parser": 0.6, "counter": 0.3, "matcher": 0.9}
    base = seen(10.0, None, dict.fromkeys(FLOW.order, 0.7))
    stats = {name: OperatorStats(load=load) for name, load in loads.items()}
    target = policy.decide(replace(base, operators=stats)).target
    assert target.cpu_share == {"parser": 0.7, "counter": 0.55, "matcher": 0.85}


def test_a_load_that_nobody_knows_moves_nothing() -> None:
    policy = Named.parse("share-threshold").build(job())
    decision = policy.decide(seen(10.0, None, dict.fromkeys(FLOW.order, 0.7)))
    assert set(decision.target.cpu_share.values()) == {0.7}
    assert "unknown" in decision.reason


def test_static_shares_stay() -> None:
    policy = Named.parse("static-share:share=0.4,shares=matcher:0.7").build(job())
    assert driven(policy, [None, None])[-1] == {"parser": 0.4, "counter": 0.4, "matcher": 0.7}


# Both in a world of events


def run(policy: str, times_s: Floats) -> list[Step]:
    spec = EventSpec(times_s)
    load = Load.of(spec.counts(10.0, 600.0), 10.0)
    world = Scenario(
        "logs", load, FLOW, linear(300.0), Limits(1, 1), objective=Objective(0.1), events=spec, workers_at_start=1
    )
    return list(replay(world, Named.parse(policy).build(world.job())))


def test_under_bursts_it_keeps_a_bound_that_m_g_1_breaks() -> None:
    # A calm start, so that both are at the least shares when bursts come.
    rng = np.random.default_rng(3)
    calm, bursty = poisson(300.0).sample(90_000, rng), BURSTY.sample(100_000, rng)
    times_s = np.cumsum(np.concatenate([calm, bursty]))
    means = {}
    for model in ("map,method=em", "m"):
        steps = run(f"mead:model={model},window=20000", times_s)
        paths = [step.seen.paths["matcher"] for step in steps]
        means[model] = sum(path.sum_s for path in paths) / sum(path.count for path in paths)
    assert means["map,method=em"] < 0.1 < means["m"]
