"""Fitting MAPs to windows: recovery of known processes, every edge of what a window can be, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.models.arrivals import (
    DEFAULT,
    METHODS,
    FittedMap,
    Map,
    Window,
    fit_maps,
    gaps_of,
    poisson,
    tails,
)
from penstock.models.arrivals.fitted import Candidate, best_of
from penstock.models.arrivals.hidden import fit_hidden, spread_out
from penstock.models.arrivals.queue_calibrated import calibrate
from penstock.models.markov.chains import Floats
from penstock.models.markov.map2 import map2
from penstock.models.queues import PhaseType, map_ph_1
from penstock.models.queues.lindley import driven
from tests.models.reference import MAPS

EVERY = pytest.mark.parametrize("method", METHODS)


def drawn(name: str, count: int = 20_000, seed: int = 1) -> Floats:
    return MAPS[name].sample(count, np.random.default_rng(seed))


def response(arrivals: Map, load: float) -> float:
    """Mean response of MAP/E2/1 in service times, at mean gap 1."""
    return map_ph_1(arrivals.with_rate(1.0), PhaseType.erlang(2, load)).mean_s / load


# Recovery


@EVERY
@pytest.mark.parametrize("name", ["mmpp2_bursty", "map2_h2_gamma095"])
def test_the_queue_of_a_known_process_is_predicted(method: str, name: str) -> None:
    found = fit_maps(drawn(name, 50_000), method)[0]
    for load in (0.5, 0.7):
        assert 0.8 < response(found, load) / response(MAPS[name], load) < 1.25


@EVERY
def test_a_fit_has_the_rate_of_its_window_in_seconds(method: str) -> None:
    gaps = 3e-6 * drawn("mmpp2_bursty")
    for found in fit_maps(gaps, method):
        assert found.rate == pytest.approx(1 / gaps.mean())


@EVERY
def test_the_unit_of_time_changes_nothing_else(method: str) -> None:
    gaps = drawn("map2_h2_gamma095", 5000)
    here, there = fit_maps(gaps, method)[0], fit_maps(1e6 * gaps, method)[0]
    # Microseconds or seconds: rounding of the unit is all that differs, and an iteration may magnify it.
    assert response(there, 0.7) == pytest.approx(response(here, 0.7), rel=1e-3)


@EVERY
def test_the_same_window_is_fitted_alike(method: str) -> None:
    gaps = drawn("map4_kpc", 5000)
    one, two = (fit_maps(gaps, method, rng=np.random.default_rng(4)) for _ in range(2))
    assert [fit.D1.tolist() for fit in one] == [fit.D1.tolist() for fit in two]


def test_by_default_a_long_memory_that_no_moments_show_is_predicted() -> None:
    # Bursts on four time scales, as packets have: the sum of slow two-state streams.
    packets = poisson(0.2)
    for slow in (0.5, 0.02, 0.001):
        packets = packets.superposed(Map([[-slow, slow], [slow, -slow - 1.0]], [[0.0, 0.0], [0.0, 1.0]]))
    gaps = packets.sample(50_000, np.random.default_rng(2))
    seen = driven(gaps / gaps.mean(), (0.5, 0.7), [np.random.default_rng(5)])
    found = fit_maps(gaps)[0]
    assert found.method == DEFAULT == "calibrated"
    for load, window in zip((0.5, 0.7), seen, strict=True):
        queue = map_ph_1(found.with_rate(1.0), PhaseType.erlang(2, load))
        assert 1 / 1.5 < queue.mean_s / load / window.mean < 1.5
        assert 1 / 1.5 < queue.percentile_s(0.95) / load / window.p95 < 1.5


def test_a_chain_whose_queue_is_within_the_windows_scatter_is_not_bent() -> None:
    gaps = drawn("mmpp2_bursty")
    chain = fit_hidden(gaps / gaps.mean(), spread_out(2), 30)
    own = chain.map().with_rate(1.0).sample(20_000, np.random.default_rng(0))
    bent = calibrate(own / own.mean(), chain, np.random.default_rng(0))
    assert response(bent.map, 0.5) == pytest.approx(response(chain.map(), 0.5), rel=0.1)


# Windows


def test_the_best_of_each_window_are_given() -> None:
    gaps = drawn("mmpp2_bursty")
    found = fit_maps(tails(gaps), "kpc", best=2)
    assert {fit.window for fit in found} == {0, 1}
    assert next(fit.arrivals for fit in found if fit.window == 1) == 10_000
    assert all(sum(fit.window == window for fit in found) <= 2 for window in (0, 1))


@EVERY
def test_no_more_than_asked_for_and_no_more_states_than_allowed(method: str) -> None:
    for found in (
        fit_maps(drawn("map4_kpc", 5000), method, best=1),
        fit_maps(drawn("map4_kpc", 5000), method, states_max=2),
    ):
        assert all(isinstance(fit, FittedMap) for fit in found)
    assert len(fit_maps(drawn("map4_kpc", 5000), method, best=1)) == 1
    assert max(fit.states for fit in fit_maps(drawn("map4_kpc", 5000), method, states_max=2)) <= 2


def test_a_buffer_that_is_not_full_is_used_as_it_is() -> None:
    assert fit_maps(drawn("mmpp2_bursty", 3000))[0].arrivals == 3000


# Every row of the table of edge cases


def test_gaps_without_correlation_are_fitted_as_such() -> None:
    found = fit_maps(drawn("h2_renewal"))
    assert {fit.method for fit in found} == {"renewal"}
    assert max(abs(found[0].autocorrelation([1, 2, 5]))) < 1e-9
    assert response(found[0], 0.7) == pytest.approx(response(MAPS["h2_renewal"], 0.7), rel=0.1)


def test_a_stream_without_bursts_is_poisson() -> None:
    found = fit_maps(drawn("poisson"))
    assert (found[0].states, found[0].method) == (1, "poisson")


def test_a_short_window_gets_a_variability_that_errs_on_the_safe_side_and_says_so() -> None:
    gaps = drawn("h2_renewal", 300)
    found = fit_maps(gaps)[0]
    assert (found.method, found.confidence) == ("short", "low")
    assert found.scv > Window.of(gaps).scv
    assert "fewer than 500" in found.notes[0]


@EVERY
@pytest.mark.parametrize("seed", range(4))
def test_a_modest_window_gets_two_states_whose_memory_it_can_have_seen(method: str, seed: int) -> None:
    gaps = drawn("mmpp2_bursty", 1000, seed)
    for found in fit_maps(gaps, method):
        assert found.states <= 2
        assert found.confidence == "low"
        # γ is at most 1 − 10/n (a calibrated one may be bent a little beyond): nothing near 1e10 service times.
        assert response(found, 0.5) < 20 * driven(gaps / gaps.mean(), [0.5], [np.random.default_rng(0)])[0].mean * 1.01


@EVERY
def test_negative_autocorrelation_is_kept(method: str) -> None:
    found = fit_maps(drawn("map2_negacf", 50_000), method)[0]
    assert float(found.autocorrelation([1])[0]) == pytest.approx(-0.1, abs=0.03)
    assert response(found, 0.7) == pytest.approx(response(MAPS["map2_negacf"], 0.7), rel=0.1)


@EVERY
@pytest.mark.parametrize("shape", [2, 4])
def test_gaps_less_variable_than_poisson_with_memory(method: str, shape: int) -> None:
    # Erlang gaps whose mean switches slowly between 0.6 and 1.4: SCV below 1, correlation above 0.
    rng = np.random.default_rng(0)
    level = np.where(np.cumsum(rng.random(20_000) < 0.02) % 2, 0.6, 1.4)
    gaps = level * rng.gamma(shape, 1 / shape, 20_000)
    window = Window.of(gaps)
    found = fit_maps(gaps, method)[0]
    assert found.scv == pytest.approx(window.scv, rel=0.25)
    assert float(found.autocorrelation([1])[0]) > 0.5 * window.correlations[1]
    seen = driven(gaps, [0.8], [np.random.default_rng(1)])[0].mean
    assert response(found, 0.8) / seen == pytest.approx(1.0, abs=0.25)


def test_a_third_moment_that_no_two_states_have_is_projected_and_said() -> None:
    found = map2(1.0, 6.0, 20.0, 0.5)  # r = 3, t = 3.33: t must exceed r² = 9
    assert (found.map.scv, found.map.moment(3)) == pytest.approx((5.0, 6 * 9 * 1.05))
    assert "third moment" in found.notes[0]


def test_few_equal_times_are_spread_within_the_clocks_step() -> None:
    gaps = drawn("mmpp2_bursty")
    gaps[::200] = 0.0  # 0.5 %
    window = Window.of(gaps)
    assert (window.tied, len(window)) == (0.0, 20_000)
    assert window.gaps.min() > 0
    assert "equal times" in fit_maps(gaps, "em")[0].notes[0]


@EVERY
def test_many_equal_times_are_batches(method: str) -> None:
    rng = np.random.default_rng(0)
    # Poisson batches of geometric size, mean 1/(1 − 0.3), on a clock of milliseconds.
    gaps = np.where(rng.random(30_000) < 0.3, 0.0, np.ceil(rng.exponential(100.0, 30_000))) / 1000
    found = fit_maps(gaps, method)[0]
    assert found.rate == pytest.approx(1 / gaps.mean())
    assert "batches" in found.notes[0]
    # Never faster than the clock's step, up to the scaling to the mean.
    assert -found.D0.diagonal().min() < 1.2 / 0.001
    seen = driven(gaps / gaps.mean(), (0.5, 0.8), [rng])
    for load, window in zip((0.5, 0.8), seen, strict=True):
        assert response(found, load) / window.mean == pytest.approx(1.0, abs=0.15)


def test_a_coarse_clock_is_not_taken_for_batches() -> None:
    # Bursts of three times the mean rate, 300/s in the mean, on a clock of milliseconds: a third of the gaps are zero.
    gaps = 0.003 * drawn("mmpp2_bursty", 50_000)
    rounded = np.diff(np.floor(np.cumsum(gaps) * 1000)) / 1000
    assert np.mean(rounded == 0) > 0.3
    found = fit_maps(rounded)[0]
    assert "spread over the clock's step" in found.notes[0]
    for load in (0.5, 0.7):
        assert 0.75 < response(found, load) / response(MAPS["mmpp2_bursty"], load) < 1.3


def test_equal_times_in_a_regular_stream_are_batches_too() -> None:
    rng = np.random.default_rng(0)
    # A row or more every second, give or take 30 ms, on a clock of milliseconds: Erlang gaps between the batches.
    gaps = np.where(rng.random(5000) < 0.5, 0.0, np.round(1 + 0.03 * rng.standard_normal(5000), 3))
    found = fit_maps(gaps)[0]
    assert found.rate == pytest.approx(1 / gaps.mean())
    assert "batches" in found.notes[0]


@pytest.mark.parametrize("draw", ["pareto", "lognormal", "weibull"])
def test_heavy_tails_without_correlation_are_fitted_by_their_distribution(draw: str) -> None:
    rng = np.random.default_rng(0)
    gaps = {
        "pareto": rng.pareto(1.5, 20_000),
        "lognormal": rng.lognormal(0, 2, 20_000),
        "weibull": rng.weibull(0.4, 20_000),
    }[draw]
    found = fit_maps(gaps)[0]
    assert found.method == "renewal"
    for load, own in zip((0.3, 0.7), driven(gaps / gaps.mean(), (0.3, 0.7), [rng]), strict=True):
        assert 0.6 < response(found, load) / own.mean < 1.7


def test_a_single_burst_is_no_endless_queue() -> None:
    gaps = np.repeat([1.0, 50.0, 1.0], 3000) * np.random.default_rng(0).exponential(1.0, 9000)
    own = driven(gaps / gaps.mean(), [0.7], [np.random.default_rng(1)])[0].mean
    assert 0.3 < response(fit_maps(gaps)[0], 0.7) / own < 4


def test_one_huge_gap_does_not_decide_the_third_moment() -> None:
    gaps = drawn("h2_renewal")
    heavy = gaps.copy()
    heavy[100] = 40 * np.quantile(gaps, 0.999)
    assert Window.of(heavy).third < 2 * Window.of(gaps).third


def test_a_long_memory_is_predicted_by_em_too() -> None:
    found = fit_maps(drawn("map8_kpc", 50_000), "em")[0]
    assert found.states == 8
    assert response(found, 0.5) / response(MAPS["map8_kpc"], 0.5) == pytest.approx(1.0, abs=0.25)


def test_a_shift_of_the_level_is_said() -> None:
    rng = np.random.default_rng(0)
    shifted = np.append(rng.exponential(1.0, 5000), rng.exponential(2.0, 5000))
    assert any("drifts" in note for note in fit_maps(shifted, "kpc")[0].notes)
    assert not Window.of(rng.exponential(1.0, 10_000)).drifts


@pytest.mark.parametrize("method", ["em", "calibrated"])
def test_a_rate_that_changed_once_is_not_taken_for_its_last_level(method: str) -> None:
    # Nobody saw the last level end: the likeliest chain never leaves it, and was a Poisson process (0.01 of the queue).
    rng = np.random.default_rng(1)
    gaps = np.append(rng.exponential(0.5, 2500), rng.exponential(1.5, 2500))
    own = driven(gaps / gaps.mean(), [0.7], [rng])[0]
    found = fit_maps(gaps, method)[0]
    assert found.scv > 1.3
    assert 0.5 < response(found, 0.7) / own.mean < 5


def test_an_outage_is_left_out_and_said() -> None:
    gaps = drawn("poisson")
    gaps[5000] = 50_000.0
    found = fit_maps(gaps)[0]
    assert found.rate == pytest.approx(1.0, rel=0.05)
    assert "left out" in found.notes[0]


def test_timestamps_out_of_order_are_sorted_and_counted() -> None:
    gaps, late = gaps_of([3.0, 1.0, 2.0, 7.0])
    assert (gaps.tolist(), late) == ([1.0, 1.0, 4.0], 1)


def test_constant_gaps_are_fifty_phases() -> None:
    found = fit_maps(np.full(1000, 0.25))[0]
    assert (found.states, found.method) == (50, "constant")
    assert found.rate == pytest.approx(4.0)
    assert Window.of(np.full(600, 0.25)).skewness == 0.0


def test_a_candidate_that_runs_away_or_falls_apart_is_left_out_before_the_worst_is_taken() -> None:
    window = Window.of(drawn("mmpp2_bursty"))
    # γ = 1 − 1e-7: the queue of one state, overloaded, grows for ever.
    apart = np.array([[3.0 * (1 - 1e-7), 3e-7], [2e-8, 0.2 * (1 - 1e-7)]])
    runaway = Map(-np.diag(apart.sum(axis=1)), apart)
    kept = best_of([Candidate(runaway, "kpc", 0.0), Candidate(MAPS["mmpp2_bursty"], "kpc", 1.0)], window, 5)
    assert [one.map for one in kept] == [MAPS["mmpp2_bursty"]]
    assert "ran away" in kept[0].notes[0]
    alone = best_of([Candidate(runaway, "kpc", 0.0)], window, 5)
    assert "taken as Poisson" in alone[0].notes[1]


# Refused


@pytest.mark.parametrize(
    ("gaps", "says"),
    [
        (np.ones(99), "99 gaps between arrivals; at least 100 are needed"),
        (np.append(np.ones(200), -1.0), "gap 201 is -1; gaps are finite and not negative"),
        (np.append(np.ones(200), math.nan), "gap 201 is nan"),
        (np.append(np.ones(200), math.inf), "gap 201 is inf"),
        (np.zeros(200), "all gaps are zero"),
        (np.append(np.zeros(998), 3.0), "a mean gap of 0 s"),  # the one gap is an outage
        (np.full(200, 1e-300), "a mean gap of 1e-300 s: 1e-15 s at least"),
        (["a"] * 200, "must be numbers"),
    ],
)
def test_windows_that_cannot_be_are_refused_in_one_line(gaps: Floats, says: str) -> None:
    with pytest.raises(BadInput, match=says) as raised:
        fit_maps(gaps)
    assert "\n" not in str(raised.value)


def test_an_unknown_method_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'kpc'"):
        fit_maps(np.ones(200), "kcp")
    with pytest.raises(BadInput, match="at least 1 and 2"):
        fit_maps(np.ones(200), best=0)
    with pytest.raises(BadInput, match="no finite numbers"):
        gaps_of([1.0, math.nan])
