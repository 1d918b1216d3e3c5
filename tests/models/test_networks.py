"""Paths of queues, micro-batches, quotas and service demands, against simulations of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats
from penstock.models.markov.map import Map, poisson
from penstock.models.queues import (
    BatchServer,
    PhaseType,
    Quota,
    Station,
    departures,
    learn_demand,
    map_ph_1,
    micro_batches,
    network,
    under_quota,
)
from penstock.models.queues.departing import departure_joint, departure_moment
from penstock.models.queues.paths import paths, visits
from penstock.models.queues.quota import finish
from tests.models.reference import MAPS, REFERENCE


def tandem(case: dict[str, Any]) -> dict[str, Station]:
    first, second = PhaseType.erlang(2, case["rho1"]), PhaseType.erlang(2, case["rho2"])
    return {"first": Station(first), "second": Station(second, ("first",))}


@pytest.mark.parametrize("case", REFERENCE["departures"], ids=lambda case: f"{case['arrival']}-{case['rho']}")
def test_every_reference_departure_is_met_to_eight_digits(case: dict[str, Any]) -> None:
    arrivals, service = MAPS[case["arrival"]], PhaseType.erlang(2, case["rho"])
    moments = [departure_moment(arrivals, service, k) for k in (1, 2, 3)]
    assert moments == pytest.approx([case["dep_m1"], case["dep_m2"], case["dep_m3"]], rel=1e-8)
    joint = departure_joint(arrivals, service)
    assert joint == pytest.approx(case["dep_E_D0D1"], rel=1e-8)
    lag1 = (joint - moments[0] ** 2) / (moments[1] - moments[0] ** 2)
    assert lag1 == pytest.approx(case["dep_lag1_acf"], rel=1e-8)


def test_departures_of_independent_arrivals_are_marshalls() -> None:
    # c_d² = c_a² + 2ρ²c_s² − 2λE[W](1 − ρ)
    arrivals, service = MAPS["h2_renewal"], PhaseType.erlang(2, 0.5)
    wait = map_ph_1(arrivals, service).wait_s
    scv = departure_moment(arrivals, service, 2) / departure_moment(arrivals, service, 1) ** 2 - 1
    assert scv == pytest.approx(2.5 + 2 * 0.25 * 0.5 - 2 * wait * 0.5)


@pytest.mark.parametrize("case", REFERENCE["departures"], ids=lambda case: f"{case['arrival']}-{case['rho']}")
def test_departures_have_the_exact_moments_where_queues_are_short(case: dict[str, Any]) -> None:
    left = departures(MAPS[case["arrival"]], PhaseType.erlang(2, case["rho"]), levels=12)
    assert left.mean_s == pytest.approx(case["dep_m1"], rel=1e-9)
    assert [left.moment(2), left.moment(3)] == pytest.approx([case["dep_m2"], case["dep_m3"]], rel=1e-6)
    # Joint moments lose what is lumped: 4 % at most here.
    assert left.joint_moment((1,)) == pytest.approx(case["dep_E_D0D1"], rel=0.04)


@pytest.mark.parametrize(
    "case", REFERENCE["tandems"], ids=lambda case: f"{case['arrival']}-{case['rho1']}-{case['rho2']}"
)
def test_a_tandem_lies_between_lumped_departures_and_the_sources_own_arrivals(case: dict[str, Any]) -> None:
    low, high = (network(MAPS[case["arrival"]], tandem(case), way)["first", "second"] for way in ("lumped", "source"))
    assert low.stations["second"].mean_s < 1.05 * case["R2"]
    assert high.stations["second"].mean_s > 0.95 * case["R2"]
    assert low.mean_s < 1.05 * case["total_mean"] < 1.05 * 1.05 * high.mean_s
    assert high.percentile_s(0.95) == pytest.approx(case["total_p95"], rel=0.15)


def test_a_path_of_one_is_its_queue_and_shares_of_a_core_scale_it() -> None:
    queue = map_ph_1(MAPS["map4_kpc"], PhaseType.erlang(2, 0.7))
    path = network(MAPS["map4_kpc"], {"only": Station(PhaseType.erlang(2, 0.35).with_mean(0.35 / 0.5))})["only",]
    assert [path.mean_s, path.percentile_s(0.95)] == pytest.approx([queue.mean_s, queue.percentile_s(0.95)])


def test_a_fork_copies_and_a_filter_thins() -> None:
    service = PhaseType.erlang(2, 0.5)
    stations = {
        "parser": Station(PhaseType.erlang(2, 0.2), selectivity=0.8),
        "counter": Station(service, ("parser",)),
        "matcher": Station(service, ("parser",)),
    }
    found = network(poisson(1.0), stations)
    assert list(found) == [("parser", "counter"), ("parser", "matcher")]
    # Poisson, thinned to 0.8: M/E2/1 with ρ 0.4: 0.5 + 0.8 · 0.375 / (2 · 0.6).
    assert found["parser", "matcher"].stations["matcher"].mean_s == pytest.approx(0.75)
    assert found["parser", "matcher"].utilisation == pytest.approx(0.4)


@pytest.mark.parametrize("way", ["source", "lumped"])
def test_rows_that_meet_or_multiply_are_all_counted(way: str) -> None:
    stations = {
        "a": Station(PhaseType.exponential(0.1), selectivity=2.0),
        "b": Station(PhaseType.exponential(0.1), selectivity=0.5),
        "join": Station(PhaseType.exponential(0.1), ("a", "b")),
    }
    assert visits(stations) == {"a": 1.0, "b": 1.0, "join": 2.5}
    found = network(poisson(1.0), stations, way)
    assert list(found) == [("a", "join"), ("b", "join")] == paths(stations)
    assert found["a", "join"].stations["join"].utilisation == pytest.approx(0.25)
    # Rows of a batch come at once: geometric batches of 2.5 take 2.5 times what M/M/1 takes with single rows.
    single = map_ph_1(poisson(2.5), PhaseType.exponential(0.1)).mean_s
    joined = found["a", "join"].stations["join"].mean_s
    assert joined == pytest.approx(2.5 * single, rel=0.01) if way == "source" else single < joined < 2.5 * single


def test_a_path_with_a_full_operator_is_infinite() -> None:
    stations = {"a": Station(PhaseType.erlang(2, 0.5)), "b": Station(PhaseType.erlang(2, 1.5), ("a",))}
    for way in ("source", "lumped"):
        path = network(poisson(1.0), stations, way)["a", "b"]
        assert (path.mean_s, path.percentile_s(0.95), path.is_stable) == (math.inf, math.inf, False)
        assert path.utilisation == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("stations", "way", "says"),
    [
        ({}, "source", "no station"),
        ({"a": Station(PhaseType.exponential(1), ("b",))}, "source", "'a' reads 'b', which must come before it"),
        ({"a": Station(PhaseType.exponential(1), selectivity=0.0)}, "source", "selectivity of 0"),
        ({"a": Station(PhaseType.exponential(1))}, "sauce", "did you mean 'source'"),
    ],
)
def test_networks_that_cannot_be_are_refused(stations: dict[str, Station], way: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        network(poisson(0.1), stations, way)


# Micro-batches


def batched(arrivals: Map, server: BatchServer, rows: int, seed: int) -> Floats:
    """Response times of rows, batch by batch."""
    times = np.cumsum(arrivals.sample(rows, np.random.default_rng(seed)))
    done, clock, found = 0, 0.0, []
    while done < rows:
        if not server.trigger_s:
            clock = max(clock, times[done])
        upto = int(np.searchsorted(times, clock, side="right"))
        takes = server.fixed_s + server.per_row_s * (upto - done) if upto > done else 0.0
        found.append(clock + takes - times[done:upto])
        done, clock = upto, clock + max(takes, server.trigger_s)
    return np.concatenate(found)[rows // 20 :]


@pytest.mark.parametrize(
    ("name", "rate", "server", "rows"),
    [
        ("poisson", 3.0, BatchServer(0.5, 0.1), 20_000),  # a row or two in a batch: idle times matter
        ("poisson", 200.0, BatchServer(0.5, 0.0035), 100_000),
        ("map2_negacf", 20.0, BatchServer(0.5, 0.025), 100_000),
        ("mmpp2_bursty", 100.0, BatchServer(0.5, 0.005), 200_000),
        ("mmpp2_bursty", 2000.0, BatchServer(0.2, 0.00025, trigger_s=1.0), 400_000),
        ("poisson", 3.0, BatchServer(0.2, 0.15, trigger_s=1.0), 20_000),
        ("mmpp2_bursty", 5.0, BatchServer(0.5, 0.14), 200_000),  # bursts of twice what the server can do
    ],
)
def test_batches_take_what_a_simulation_takes(name: str, rate: float, server: BatchServer, rows: int) -> None:
    arrivals = MAPS[name].with_rate(rate)
    found = micro_batches(arrivals, server)
    simulated = [batched(arrivals, server, rows, seed) for seed in range(3)]
    assert found.mean_s == pytest.approx(float(np.mean([run.mean() for run in simulated])), rel=0.12)
    assert found.percentile_s(0.95) == pytest.approx(
        float(np.mean([np.quantile(r, 0.95) for r in simulated])), rel=0.15
    )


def test_without_time_for_rows_a_batch_is_a_fixed_time() -> None:
    # Poisson 400/s, 1 s a batch: half a second in the mean until the next starts, and its second.
    found = micro_batches(poisson(400.0), BatchServer(1.0, 0.0))
    assert [found.mean_s, found.rows] == pytest.approx([1.5, 400.0], rel=1e-3)
    assert found.percentile_s(0.95) == pytest.approx(1.95, rel=2e-3)
    assert found.exceeds(1.0) == pytest.approx(1.0, abs=1e-3)


def test_more_rows_than_a_server_can_do_are_infinite() -> None:
    found = micro_batches(poisson(100.0), BatchServer(1.0, 0.01))
    assert (found.mean_s, found.percentile_s(0.5), found.rows, found.is_stable) == (math.inf, math.inf, math.inf, False)
    assert found.utilisation == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("fixed_s", "per_row_s", "trigger_s"), [(-1.0, 0.1, 0.0), (1.0, math.nan, 0.0), (0.0, 0.1, 0.0), (1.0, 0.1, -1.0)]
)
def test_a_batch_takes_some_time(fixed_s: float, per_row_s: float, trigger_s: float) -> None:
    with pytest.raises(BadInput, match="micro-batches"):
        BatchServer(fixed_s, per_row_s, trigger_s)


# Quotas


def ticked(times: Floats, demands: Floats, terms: tuple[float, float, float], tick_s: float) -> Floats:
    """A CPU simulated tick by tick: the oldest that waits is served while its period has quota left."""
    quota_s, period_s, kept_s = terms
    ends, left = np.full(len(times), math.nan), demands.copy()
    used, kept, period, now, has_run = 0.0, 0.0, 0, 0, True
    for tick in range(round((times[-1] + 100 * demands.sum()) / tick_s)):
        clock = tick * tick_s
        if int((clock + tick_s / 2) / period_s) > period:
            kept = min(quota_s - used, kept_s) if has_run else kept  # periods in which it idles leave no more
            period, used, has_run = int((clock + tick_s / 2) / period_s), -kept, False
        if times[now] <= clock + 1e-12 and used < quota_s - 1e-12:
            left[now], used, has_run = left[now] - tick_s, used + tick_s, True
            if left[now] <= 1e-12:
                ends[now], now = clock + tick_s, now + 1
                if now == len(times):
                    break
    return ends


@pytest.mark.parametrize("kept_s", [0.0, 0.003])
def test_a_quota_is_a_bucket_that_is_filled_once_a_period(kept_s: float) -> None:
    rng = np.random.default_rng(0)
    # On a grid of 1 ms: periods of 20 ms with 8 ms of CPU.
    times: Floats = np.cumsum(rng.integers(0, 30, 60)) * np.float64(1e-3)
    demands: Floats = rng.integers(1, 12, 60) * np.float64(1e-3)
    found = finish(times, demands, (0.008, 0.020, kept_s))
    assert found == pytest.approx(ticked(times, demands, (0.008, 0.020, kept_s), 1e-3), abs=1.5e-3)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 1.0), st.floats(1e-3, 10.0), st.floats(0.0, 0.5))
def test_the_compiled_bucket_is_the_plain_one_and_no_faster_than_a_whole_core(
    seed: int, share: float, period: float, kept: float
) -> None:
    rng = np.random.default_rng(seed)
    times, demands = np.cumsum(rng.exponential(1.0, 50)), rng.exponential(0.3, 50)
    terms = (share * period, period, kept * period)
    found = finish(times, demands, terms)
    plain = finish.__wrapped__(times, demands, terms)  # type: ignore[attr-defined]
    assert found == pytest.approx(plain, rel=1e-12)
    assert (found >= finish(times, demands, (period, period, 0.0)) - 1e-9).all()
    assert (found <= finish(times, demands, (share * period, period, 0.0)) + 1e-9).all()


def test_a_short_period_is_a_slower_server_and_a_long_one_is_not() -> None:
    # Poisson 300/s, 1 ms of CPU, 40 % of a core: a server of that share takes 8.1 ms.
    arrivals, service = poisson(300.0), PhaseType.erlang(2, 0.001)
    slower = map_ph_1(arrivals, service.with_mean(0.001 / 0.4)).mean_s
    short, usual = (under_quota(arrivals, service, Quota(0.4, period_s)) for period_s in (0.0002, 0.1))
    assert short.mean_s == pytest.approx(slower, rel=0.06)
    assert usual.mean_s < 0.3 * slower
    assert short.percentile_s(0.95) == pytest.approx(
        map_ph_1(arrivals, service.with_mean(0.0025)).percentile_s(0.95), rel=0.08
    )


def test_a_quota_below_the_demand_is_infinite_and_wrong_ones_are_refused() -> None:
    found = under_quota(poisson(100.0), PhaseType.exponential(0.005), Quota(0.5))
    assert (found.mean_s, found.percentile_s(0.5), found.is_stable) == (math.inf, math.inf, False)
    for share, period_s in ((0.0, 0.1), (1.5, 0.1), (0.5, 0.0), (0.5, math.inf)):
        with pytest.raises(BadInput, match="quota"):
            Quota(share, period_s)
    with pytest.raises(BadInput, match="kept"):
        Quota(0.5, kept_s=-1.0)


# Demands


@given(st.floats(1e-6, 1.0), st.floats(0.0, 0.5), st.integers(0, 1000))
def test_demand_is_the_slope_of_cpu_over_rows(mean_s: float, idle: float, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(1, 1000, 20).astype(float)
    found = learn_demand(rows.tolist(), (10 * idle + mean_s * rows).tolist(), span_s=10.0)
    assert [found.mean_s, found.idle] == pytest.approx([mean_s, idle], rel=1e-6, abs=1e-9)


def test_noise_is_in_the_error_of_a_demand() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(100, 1000, 200).astype(float)
    found = learn_demand(rows.tolist(), (0.3 + 0.002 * rows + rng.normal(0, 0.05, 200)).tolist(), span_s=10.0)
    assert abs(found.mean_s - 0.002) < 4 * found.error_s < 0.0002


def test_rows_that_do_not_vary_tell_of_no_idle_cpu() -> None:
    found = learn_demand([100.0, 100.0, 100.0], [1.0, 1.1, 0.9], span_s=1.0)
    assert [found.mean_s, found.idle] == pytest.approx([0.01, 0.0])


@pytest.mark.parametrize(
    ("rows", "cpu_s", "span_s", "says"),
    [
        ([1.0], [1.0, 2.0], 1.0, "as many"),
        ([1.0, math.nan], [1.0, 2.0], 1.0, "finite"),
        ([1.0, -1.0], [1.0, 2.0], 1.0, "negative"),
        ([0.0, 0.0], [1.0, 2.0], 1.0, "no rows"),
        ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 1.0, "does not grow"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 0.0, "above 0"),
    ],
)
def test_demands_that_cannot_be_are_refused(rows: list[float], cpu_s: list[float], span_s: float, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        learn_demand(rows, cpu_s, span_s)


def test_near_its_limit_a_queue_says_so() -> None:
    assert map_ph_1(poisson(0.996), PhaseType.exponential(1.0)).is_near_limit
    assert not map_ph_1(poisson(0.99), PhaseType.exponential(1.0)).is_near_limit
