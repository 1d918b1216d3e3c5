"""Paper 4's parts: events a second through three operators, and how long an analysis of the policy takes."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from penstock.models.arrivals import Map, fit_maps
from penstock.models.markov.chains import Floats
from penstock.models.queues import Quota
from penstock.policies.mead_plan import Goal, Markovian, Predictor, plan
from penstock.policies.mead_quota import DRAWN, QuotaPredictor, Rows
from penstock.policies.share_levels import Levels
from penstock.reproduce.mead_worlds import MMPP2, STREAMS, flow_of
from penstock.sim.engine import Segment
from penstock.sim.events import Events
from penstock.sim.specs import EventSpec

COUNT, STRETCH = 8_000_000, 30_000
FOLLOWED, LOADS = 6_000_000, (0.3, 0.5, 0.7, 0.85, 0.95, 0.98)
RUNS = 5


def main() -> None:
    rng = np.random.default_rng(0)
    arrivals = MMPP2.with_rate(300.0)
    gaps = arrivals.sample(COUNT, rng)
    flow = flow_of(STREAMS["SYNT"])
    work = {name: rng.standard_gamma(2.0, COUNT) * cost / 2 for name, cost in flow.costs_s.items()}
    for what, asked, period_s, given in (
        ("a share as a slower core, nothing drawn", 50, None, work),
        ("a share as a quota of 5 ms, nothing drawn", None, 0.005, work),
        ("arrivals and service times drawn", 5, None, {}),
    ):
        speeds = [speed(arrivals, gaps, given, period_s) for _ in range(RUNS)]
        told = f" (asked: {asked})" if asked else ""
        print(f"events through three operators, {what}: {median(speeds) / 1e6:.0f} million/s of CPU time{told}")
    analysis(arrivals)
    quotas()


def quotas() -> None:
    """A p95 predicted for quotas against that of millions of rows, followed one by one; what was drawn alone beside."""
    arrivals, cores = MMPP2.with_rate(300.0), 0.5
    path, flow = ("parser", "matcher"), flow_of(STREAMS["SYNT"])
    rng = np.random.default_rng(77)
    times = np.cumsum(arrivals.sample(FOLLOWED, rng))
    work = {name: rng.standard_gamma(2.0, FOLLOWED) * flow.costs_s[name] * cores / 2 for name in path}
    few = Rows(times[:DRAWN], flow, dict.fromkeys(path, cores))
    model = QuotaPredictor(flow, [Markovian(arrivals)], dict.fromkeys(path, cores))
    told = []
    for load in LOADS:
        share = 300.0 * flow.costs_s["matcher"] / load
        ends = times
        for name in path:
            ends = Quota.of_linux(share * cores).finish(ends, work[name])
        truth = float(np.quantile((ends - times)[FOLLOWED // 50 :], 0.95))
        drawn = few.response_s(tuple((name, share) for name in path), 0.95)
        ratio = model.along(path, dict.fromkeys(path, share), 0.95) / truth
        told.append(f"{ratio:.2f} ({drawn / truth:.2f}) at {load:g}")
    print(f"p95 under quotas over that of {FOLLOWED:,} rows, by load (drawn alone): {', '.join(told)}")


def speed(arrivals: Map, gaps: Floats, work: dict[str, Floats], period_s: float | None) -> float:
    """Events a second of CPU time, binned by response, in stretches of 100 s; of drawn ones, with the drawing."""
    flow = flow_of(STREAMS["SYNT"])
    rng = np.random.default_rng(1)
    times = np.cumsum(gaps)
    begun = time.process_time()
    if not work:
        times = np.cumsum(arrivals.sample(COUNT, rng))
    engine, now_s, step_s = Events(flow, EventSpec(times, work_s=work, quota_period_s=period_s)), 0.0, STRETCH / 300.0
    while now_s < times[-1]:
        engine.advance(Segment(now_s, now_s + step_s, 1.0, speeds={"w1": 1.0}), {})
        now_s += step_s
    return COUNT / (time.process_time() - begun)


def analysis(arrivals: Map) -> None:
    """2 windows × 5 MAPs × 5 levels × 3 operators, 95th percentile: all of them, and what Figure 5 asks for."""
    gaps = arrivals.sample(50_000, np.random.default_rng(2))
    flow, shares = flow_of(STREAMS["SYNT"]), Levels().shares
    fitted = fit_maps([gaps, gaps[-25_000:]], best=5)
    ten = [*fitted, *[arrivals.with_rate(300.0 + n) for n in range(10 - len(fitted))]]
    whole, planned, by_quotas = [], [], []
    for _ in range(RUNS):
        predictor = Predictor(flow, [Markovian(each) for each in ten])
        begun = time.perf_counter()
        for name in flow.order:
            for share in shares:
                for response in filter(lambda each: each.is_stable, predictor.operator(name, share)):
                    response.percentile_s(0.95)
        whole.append(time.perf_counter() - begun)
        predictor = Predictor(flow, [Markovian(each) for each in ten])
        begun = time.perf_counter()
        plan(predictor, shares, Goal({"counter": 0.5, "matcher": 0.5}, 0.95))
        planned.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        plan(
            QuotaPredictor(flow, [Markovian(each) for each in ten]),
            shares,
            Goal({"counter": 0.5, "matcher": 0.5}, 0.95),
        )
        by_quotas.append(time.perf_counter() - begun)
    print(f"all 150 queues with their 95th percentile: {median(whole):.2f} s (asked: 1)")
    print(f"plan of Figure 5 with 10 MAPs, 95th percentile along both paths: {median(planned):.2f} s")
    print(f"the same with shares as quotas: {median(by_quotas):.2f} s")
    begun = time.perf_counter()
    fit_maps([gaps, gaps[-25_000:]], best=5)
    print(f"fit of both windows (calibrated): {time.perf_counter() - begun:.2f} s")
