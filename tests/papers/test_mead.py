"""Paper 4 (MEAD): one test for each equation, property and claim about its models."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.models.arrivals import Map, compose, fit_maps, tails
from penstock.models.markov.map2 import map2
from penstock.models.queues import PhaseType, kingman, m_ph_1, map_ph_1, network
from penstock.models.queues.paths import Station

BURSTY = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]])
SECOND = Map([[-0.4, 0.0], [0.0, -2.0]], [[0.385, 0.015], [0.025, 1.975]])


def test_eq_1_moments_by_hand() -> None:
    # H2: 0.25 of the gaps have mean 2.5, 0.75 have mean 0.5. E[X²] = 2 (0.25 · 6.25 + 0.75 · 0.25) = 3.5.
    gaps = Map([[-0.4, 0.0], [0.0, -2.0]], [[0.1, 0.3], [0.5, 1.5]])
    assert [gaps.moment(k) for k in (1, 2, 3)] == pytest.approx([1.0, 3.5, 6 * (0.25 * 2.5**3 + 0.75 * 0.5**3)])


def test_eq_2_takes_the_squared_mean_where_the_paper_prints_the_second_moment() -> None:
    e, pi, m, p = np.ones(2), BURSTY.at_arrivals, BURSTY.stays, BURSTY.embedded
    joint = float(pi @ m @ p @ m @ e)
    m1, m2 = BURSTY.moment(1), BURSTY.moment(2)
    assert (
        float(BURSTY.autocorrelation([1])[0])
        == pytest.approx((joint - m1**2) / (m2 - m1**2))
        == pytest.approx(0.3702, abs=1e-4)
    )
    # As printed it would be −0.63, although bursts follow bursts.
    assert (joint - m2) / (m2 - m1**2) == pytest.approx(-0.63, abs=0.01)


def test_the_embedded_chain_is_stochastic_and_has_its_equilibrium() -> None:
    assert BURSTY.embedded.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert BURSTY.at_arrivals @ BURSTY.embedded == pytest.approx(BURSTY.at_arrivals)


def test_property_i_statistics_of_a_composition_are_closed_forms_of_its_parts() -> None:
    both = compose(BURSTY, SECOND)
    assert both.states == 4
    for k in (1, 2, 3):
        assert both.moment(k) == pytest.approx(BURSTY.moment(k) * SECOND.moment(k) / math.factorial(k))
    lags = [1, 2, 10]
    factors = (1 + BURSTY.scv * BURSTY.autocorrelation(lags)) * (1 + SECOND.scv * SECOND.autocorrelation(lags))
    assert 1 + both.scv * both.autocorrelation(lags) == pytest.approx(factors)


def test_property_ii_two_states_follow_from_their_statistics() -> None:
    gamma = float(np.trace(BURSTY.embedded)) - 1
    again = map2(BURSTY.moment(1), BURSTY.moment(2), BURSTY.moment(3), gamma).map
    assert again.autocorrelation([1, 5]) == pytest.approx(BURSTY.autocorrelation([1, 5]))
    # Another form of the same process: the same queue.
    service = PhaseType.erlang(2, 0.7)
    assert map_ph_1(again, service).percentile_s(0.95) == pytest.approx(map_ph_1(BURSTY, service).percentile_s(0.95))


def test_section_iv_c_several_windows_and_several_maps_of_each() -> None:
    buffer = BURSTY.sample(20_000, np.random.default_rng(0))
    windows = tails(buffer, (1, 2, 4))
    assert [len(window) for window in windows] == [20_000, 10_000, 5000]
    assert all((window[-1] == buffer[-1]) for window in windows)
    found = fit_maps(windows, "kpc", best=3)
    assert {fit.window for fit in found} == {0, 1, 2}
    # The conservative prediction is the worst of all: finite, and no less than each.
    worst = max(map_ph_1(fit, PhaseType.erlang(2, 0.5)).mean_s for fit in found)
    assert 0.5 < worst / map_ph_1(BURSTY, PhaseType.erlang(2, 0.5)).mean_s < 3


def test_fig_3_without_correlation_all_models_agree_within_ten_percent() -> None:
    gaps = np.random.default_rng(0).exponential(1.0, 30_000)
    fitted = fit_maps(gaps)[0]
    for load in (0.3, 0.5, 0.7, 0.9):
        service = PhaseType.erlang(2, load / fitted.rate)
        exact = m_ph_1(fitted.rate, service).mean_s
        for other in (map_ph_1(fitted, service), kingman(fitted.rate, float(gaps.var() / gaps.mean() ** 2), service)):
            assert other.mean_s == pytest.approx(exact, rel=0.1)


def test_fig_3_with_bursts_only_the_map_sees_them() -> None:
    fitted = fit_maps(BURSTY.sample(50_000, np.random.default_rng(3)))[0].with_rate(1.0)
    service = PhaseType.erlang(2, 0.7)
    exact = map_ph_1(BURSTY, service).mean_s
    # 63 service times; M/G/1 says 2.75, Kingman 8.4.
    assert m_ph_1(1.0, service).mean_s < exact / 20
    assert kingman(1.0, BURSTY.scv, service).mean_s < exact / 7
    assert map_ph_1(fitted, service).mean_s == pytest.approx(exact, rel=0.25)


def test_section_v_a_the_path_of_the_log_application() -> None:
    # Demand of parser : counter : matcher as 0.3 : 0.2 : 1, the matcher at 0.85 of its 40 % share.
    matcher = 0.85 * 0.4
    shares = {"parser": 0.4, "counter": 0.4, "matcher": 0.4}
    demand = {"parser": 0.3 * matcher, "counter": 0.2 * matcher, "matcher": matcher}
    served = {name: PhaseType.erlang(2, demand[name] / shares[name]) for name in shares}
    stations = {
        "parser": Station(served["parser"]),
        "counter": Station(served["counter"], ("parser",)),
        "matcher": Station(served["matcher"], ("parser",)),
    }
    found = network(BURSTY, stations)
    slow, quick = found["parser", "matcher"], found["parser", "counter"]
    assert slow.utilisation == pytest.approx(0.85)
    assert quick.mean_s < slow.mean_s < slow.percentile_s(0.95)
    # One level more for the matcher alone brings more than for the parser.
    more = network(BURSTY, stations | {"matcher": Station(served["matcher"].with_mean(matcher / 0.55), ("parser",))})
    assert more["parser", "matcher"].mean_s < 0.6 * slow.mean_s
