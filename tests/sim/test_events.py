"""The engine of single events (paper 4): the queues that theory knows, shares, quotas, and nothing lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput, PlantError
from penstock.core.journal import Header, Journal, JournalWriter
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Observation
from penstock.core.responses import bin_of
from penstock.models.arrivals import Map, poisson
from penstock.models.arrivals.spaced import SpacedArrivals
from penstock.models.capacity import linear
from penstock.models.markov.chains import Floats
from penstock.models.queues import PhaseType, Quota, map_ph_1, under_quota
from penstock.sim.engine import Segment
from penstock.sim.event_kernel import at_speed, bin_counts, bin_responses, bin_table, by_bin, in_quota
from penstock.sim.events import Events
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import EventSpec, PlacedSpec
from penstock.sim.workloads import Load

BURSTY = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]])
FORK = Dataflow(
    (
        Operator("parser", 0.3, selectivity=0.9),
        Operator("counter", 0.2, after=("parser",)),
        Operator("matcher", 0.5, after=("parser",)),
    )
)


def one(cost_s: float) -> Dataflow:
    return Dataflow((Operator("only", cost_s),))


def world(flow: Dataflow, spec: EventSpec, duration_s: float, tick_s: float = 10.0) -> Scenario:
    load = Load.of(spec.counts(tick_s, duration_s), tick_s)
    return Scenario(
        "events", load, flow, linear(1.0), Limits(1, 1), objective=Objective(1.0), events=spec, workers_at_start=1
    )


def seen(scenario: Scenario, **share: float) -> list[Observation]:
    plant, found = SimulatedPlant(scenario), []
    plant.apply(replace(Allocation.of(1), cpu_share=share))
    for _ in plant.ticks():
        observed = plant.observe()
        assert observed is not None
        found.append(observed)
    return found


def mean_response(scenario: Scenario, sink: str, **share: float) -> float:
    paths = [each.paths[sink] for each in seen(scenario, **share)]
    return sum(path.sum_s for path in paths) / sum(path.count for path in paths)


def arrivals(process: Map, count: int, seed: int = 1) -> tuple[Floats, float]:
    times_s = np.cumsum(process.sample(count, np.random.default_rng(seed)))
    return times_s, math.ceil(times_s[-1] / 1000 + 0.1) * 1000.0


def test_poisson_arrivals_and_exponential_service_are_m_m_1() -> None:
    times_s, duration_s = arrivals(poisson(1.0), 2_000_000)
    scenario = world(one(0.5), EventSpec(times_s, phases=1), duration_s, 1000.0)
    # 1 / (μ − λ) = 1 / (2 − 1); the mean of 2 million has a standard error of about 0.2 %.
    assert mean_response(scenario, "only") == pytest.approx(1.0, rel=0.015)


@pytest.mark.parametrize(("load", "rel"), [(0.3, 0.03), (0.5, 0.06)])
def test_bursty_arrivals_and_erlang_service_are_map_ph_1(load: float, rel: float) -> None:
    times_s, duration_s = arrivals(BURSTY, 4_000_000)
    exact = map_ph_1(BURSTY, PhaseType.erlang(2, load))
    steps = seen(world(one(load), EventSpec(times_s), duration_s, 1000.0))
    paths = [each.paths["only"] for each in steps]
    assert sum(path.sum_s for path in paths) / 4_000_000 == pytest.approx(exact.mean_s, rel=rel)
    within = 1 - sum(path.later_than(1.0) for path in paths) / 4_000_000
    assert within == pytest.approx(1 - exact.exceeds(1.0), abs=0.01)


def test_a_share_of_a_core_is_a_slower_core() -> None:
    times_s, duration_s = arrivals(poisson(1.0), 500_000)
    whole = mean_response(world(one(0.5), EventSpec(times_s), duration_s, 1000.0), "only")
    half = mean_response(world(one(0.25), EventSpec(times_s), duration_s, 1000.0), "only", only=0.5)
    assert half == pytest.approx(whole, rel=1e-9)


def test_a_quota_is_a_bucket_and_agrees_with_the_model_of_one() -> None:
    # Poisson 300/s, 1 ms each, 40 % of a core: a slower core would take 8.1 ms, a period of 100 ms far less.
    times_s, duration_s = arrivals(poisson(300.0), 600_000)
    for period_s in (0.1, 0.005):
        spec = EventSpec(times_s, quota_period_s=period_s)
        ours = mean_response(world(one(1e-3), spec, duration_s, 1000.0), "only", only=0.4)
        drawn = under_quota(poisson(300.0), PhaseType.erlang(2, 1e-3), Quota(0.4, period_s))
        assert ours == pytest.approx(drawn.mean_s, rel=0.1)


def test_a_tandem_and_a_fork_are_lindleys_recursion_one_after_the_other() -> None:
    rng = np.random.default_rng(4)
    times_s = np.cumsum(rng.exponential(1.0, 500))
    work = {name: rng.gamma(2, cost / 2, 500) for name, cost in FORK.costs_s.items()}
    flow = Dataflow(tuple(replace(operator, selectivity=1.0) for operator in FORK.operators))
    engine = Events(flow, EventSpec(times_s, work_s=work))
    engine.advance(Segment(0.0, 1e4, 1.0, speeds={"w1": 1.0}), {})

    def finish(came: Floats, demand: Floats) -> Floats:
        ends, free = [], 0.0
        for at, needs in zip(came, demand, strict=True):
            free = max(free, at) + needs
            ends.append(free)
        return np.array(ends)

    parsed = finish(times_s, work["parser"])
    paths = engine.take(1e4).paths
    for name in ("counter", "matcher"):
        assert paths[name].sum_s == pytest.approx(float((finish(parsed, work[name]) - times_s).sum()))


@given(st.lists(st.floats(0.2, 200.0), min_size=1, max_size=8), st.booleans())
@settings(max_examples=40, deadline=None)
def test_where_time_is_cut_changes_nothing(cuts: list[float], is_quota: bool) -> None:
    times_s = np.cumsum(np.random.default_rng(5).exponential(0.9, 200))
    results = []
    for ends in ([500.0], [*sorted({round(cut, 3) for cut in cuts}), 500.0]):
        engine = Events(FORK, EventSpec(times_s, quota_period_s=0.7 if is_quota else None))
        engine.apply(replace(Allocation.of(1), cpu_share={"matcher": 0.8}))
        begin = 0.0
        for end in ends:
            engine.advance(Segment(begin, end, 1.0, speeds={"w1": 1.0}), {})
            begin = end
        results.append(engine.take(500.0))
    whole, cut = results
    assert cut.processed == whole.processed == 200
    assert cut.paths["matcher"].sum_s == pytest.approx(whole.paths["matcher"].sum_s, rel=1e-6)
    assert cut.operators["matcher"].cores == pytest.approx(whole.operators["matcher"].cores, abs=2e-4)


@given(st.lists(st.sampled_from([0.1, 0.4, 1.0]), min_size=3, max_size=3), st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_nothing_is_lost(shares: list[float], seed: int) -> None:
    times_s = np.cumsum(np.random.default_rng(seed).exponential(0.5, 400))
    flow = Dataflow((replace(FORK.operators[0], selectivity=1.4), *FORK.operators[1:]))
    names = dict(zip(flow.order, shares, strict=True))
    for each in seen(world(flow, EventSpec(times_s), 250.0), **names):
        assert each.backlog is not None
        assert each.arrived == each.processed + each.backlog
        parser = each.operators["parser"]
        for name in ("counter", "matcher"):
            operator = each.operators[name]
            assert operator.arrived is not None
            assert operator.processed is not None
            assert operator.arrived == operator.processed + (operator.backlog or 0.0)
            # Both read the same copies of what the parser put out.
            assert operator.arrived == each.operators["counter"].arrived
            assert operator.arrived >= (parser.processed or 0.0)
    assert each.arrived == len(times_s[times_s < 250.0])


def test_dropped_events_are_processed_and_not_delivered() -> None:
    times_s = np.cumsum(np.full(10_000, 1.0))
    last = seen(world(FORK, EventSpec(times_s), 10_010.0))[-1]
    assert last.processed == 10_000
    # Nine of ten reach each of two sinks.
    assert last.delivered == pytest.approx(18_000, rel=0.02)
    assert last.deliverable == pytest.approx(18_000)


def test_a_new_share_holds_for_who_waits_and_for_the_one_in_service() -> None:
    spec = EventSpec(np.array([0.0, 1.0]), phases=0)
    engine = Events(one(8.0), spec)
    engine.apply(replace(Allocation.of(1), cpu_share={"only": 0.5}))
    engine.advance(Segment(0.0, 10.0, 1.0, speeds={"w1": 1.0}), {})  # 5 of 8 core-seconds
    assert engine.take(10.0).operators["only"].load == pytest.approx(1.0)
    engine.apply(replace(Allocation.of(1), cpu_share={"only": 1.0}))
    engine.advance(Segment(10.0, 40.0, 1.0, speeds={"w1": 1.0}), {})
    # The first ends at 13, the second at 21: responses of 13 and 20.
    assert engine.take(40.0).paths["only"].sum_s == pytest.approx(33.0)


def test_while_the_job_pauses_nothing_is_served() -> None:
    engine = Events(one(2.0), EventSpec(np.array([0.0]), phases=0))
    engine.advance(Segment(0.0, 10.0, 0.0), {})
    assert engine.take(10.0).backlog == 1
    engine.advance(Segment(10.0, 20.0, 1.0, speeds={"w1": 1.0}), {})
    assert engine.take(20.0).paths["only"].sum_s == pytest.approx(12.0)


def test_policies_meet_the_same_events_and_the_same_service_times() -> None:
    times_s = np.cumsum(np.random.default_rng(6).exponential(1.0, 2000))
    runs = [seen(world(FORK, EventSpec(times_s), 4000.0), matcher=share)[-1] for share in (0.6, 1.0)]
    assert runs[0].delivered == runs[1].delivered


def test_a_tick_tells_every_gap_and_none_twice() -> None:
    times_s = np.array([0.5, 1.0, 9.0, 12.0, 31.0])
    gaps = []
    for each in seen(world(one(0.1), EventSpec(times_s), 40.0)):
        assert isinstance(each.arrivals, SpacedArrivals)
        gaps += each.arrivals.gaps_s.tolist()
    assert gaps == np.diff(times_s).tolist()


def test_responses_are_binned_as_everywhere() -> None:
    rng = np.random.default_rng(7)
    took = np.concatenate([np.exp(rng.normal(0, 6, 5000)), [1.0, 1.05, 1.05**2, 1e-12, 0.0]])
    who, counts = np.arange(len(took)), bin_counts()
    total = bin_responses(took, (who, np.zeros(len(took)), 1.0), bin_table(), counts)
    assert total == pytest.approx(float(took.sum()))
    by_hand: dict[int, float] = {}
    for each in took.tolist():
        by_hand[bin_of(each)] = by_hand.get(bin_of(each), 0.0) + 1
    assert by_bin(counts) == by_hand


@pytest.mark.parametrize("kernel", [at_speed, in_quota])
def test_a_compiled_kernel_does_what_the_plain_one_does(kernel: Callable[..., int]) -> None:
    rng = np.random.default_rng(8)
    came, work = np.cumsum(rng.exponential(1.0, 300)), rng.gamma(2, 0.2, 300)
    terms, results = (0.8, 200.0, 0.4, 0.7), []
    for run in (kernel, kernel.__wrapped__):  # type: ignore[attr-defined]
        state, ends = np.zeros(5), np.zeros(300)
        results.append((run(came, work, state, terms, ends), state.tolist(), ends.tolist()))
    assert results[0] == results[1]


def test_a_journal_keeps_the_digest_and_not_the_gaps(tmp_path: Path) -> None:
    times_s = np.cumsum(np.random.default_rng(9).exponential(0.1, 300))
    steps = [
        Step(each, Decision(each.target, "as it is"), each.target)
        for each in seen(world(one(0.01), EventSpec(times_s), 20.0))
    ]
    header = Header("job", "none", Limits(1, 1), Objective(1.0), Price(), 10.0)
    with JournalWriter.at(tmp_path / "j.jsonl", header) as journal:
        for step in steps:
            journal.write(step)
    read = list(Journal.open(tmp_path / "j.jsonl"))
    assert [step.seen.arrivals for step in read] == [step.seen.arrivals for step in steps]
    assert not any(isinstance(step.seen.arrivals, SpacedArrivals) for step in read)
    assert (tmp_path / "j.jsonl").stat().st_size < 5000


def test_what_is_no_tree_is_refused() -> None:
    join = Dataflow((Operator("a"), Operator("b", after=("a",)), Operator("c", 1.0, after=("a", "b"))))
    with pytest.raises(BadInput, match="'c' reads several"):
        world(join, EventSpec(np.array([1.0])), 10.0)
    with pytest.raises(BadInput, match="there are 2 sources"):
        world(Dataflow((Operator("a", 1.0), Operator("b"))), EventSpec(np.array([1.0])), 10.0)
    with pytest.raises(BadInput, match="no alternates"):
        world(Dataflow((Operator("a", alternates=(Alternate("x", 1.0),)),)), EventSpec(np.array([1.0])), 10.0)
    with pytest.raises(BadInput, match="neither"):
        replace(world(one(1.0), EventSpec(np.array([1.0])), 10.0), placed=PlacedSpec())
    with pytest.raises(BadInput, match="in order"):
        EventSpec(np.array([2.0, 1.0]))


def test_a_share_that_cannot_be_is_refused_and_what_runs_stays() -> None:
    plant = SimulatedPlant(world(one(1.0), EventSpec(np.array([1.0])), 10.0))
    for share, what in (({"only": 1.5}, "above 0 and at most 1"), ({"onyl": 0.5}, "only")):
        with pytest.raises(PlantError, match=what):
            plant.apply(replace(Allocation.of(1), cpu_share=share))
