"""Markovian arrival processes: statistics, sampling, composition, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import BadInput
from penstock.models.arrivals import Map
from penstock.models.markov.chains import stationary
from penstock.models.markov.map import poisson
from penstock.models.markov.sampling import walk
from tests.models.reference import MAPS, REFERENCE


def random_map(states: int, seed: int) -> Map:
    rng = np.random.default_rng(seed)
    d0, d1 = rng.random((states, states)) * 10 ** rng.uniform(-2, 1, (states, 1)), rng.random((states, states))
    np.fill_diagonal(d0, 0.0)
    np.fill_diagonal(d0, -(d0.sum(axis=1) + d1.sum(axis=1)))
    return Map(d0, d1)


@pytest.mark.parametrize("name", MAPS)
def test_every_reference_statistic_is_met_to_eight_digits(name: str) -> None:
    known: dict[str, Any] = REFERENCE["arrivals"][name]
    arrivals = MAPS[name]
    found = {
        "mean": arrivals.mean_s,
        "m2": arrivals.moment(2),
        "m3": arrivals.moment(3),
        "scv": arrivals.scv,
        "skewness": arrivals.skewness,
        "idi_inf": arrivals.dispersion(),
        "E_X0_X1_X2": arrivals.joint_moment((1, 1)),
    }
    assert found == pytest.approx({key: known[key] for key in found}, rel=1e-8)
    for value, reference in zip(arrivals.autocorrelation(known["acf_lags"]), known["acf"], strict=True):
        # None: below what 40 digits resolve. What is 0 comes out as rounding.
        assert reference is None or value == pytest.approx(reference, rel=1e-8, abs=1e-30 if reference else 1e-15)


def test_moments_are_the_derivatives_of_the_transform_for_poisson() -> None:
    assert [poisson(2.0).moment(k) for k in (1, 2, 3)] == pytest.approx([0.5, 0.5, 0.75])
    assert poisson(2.0).dispersion() == pytest.approx(1.0)


@given(st.integers(1, 5), st.integers(0, 10_000), st.integers(2, 60))
def test_the_dispersion_of_n_arrivals_sums_their_autocorrelations(states: int, seed: int, n: int) -> None:
    arrivals = random_map(states, seed)
    lags = list(range(1, n))
    weights = 1 - np.array(lags) / n
    expected = arrivals.scv * (1 + 2 * float(weights @ arrivals.autocorrelation(lags)))
    assert arrivals.dispersion(n) == pytest.approx(expected, rel=1e-8)


@given(st.integers(1, 5), st.integers(0, 10_000), st.floats(0.01, 1.0))
def test_thinning_keeps_that_share_of_the_rate(states: int, seed: int, share: float) -> None:
    arrivals = random_map(states, seed)
    assert arrivals.thinned(share).rate == pytest.approx(share * arrivals.rate)


def test_thinned_poisson_is_poisson_and_two_of_them_together_too() -> None:
    assert poisson(4.0).thinned(0.25).dispersion() == pytest.approx(1.0)
    both = MAPS["mmpp2_bursty"].superposed(poisson(3.0))
    assert [both.rate, both.states] == pytest.approx([4.0, 2])
    # Counts of independent streams add: IDC(∞) = (46.714 · 1 + 1 · 3) / 4.
    assert both.dispersion() == pytest.approx((46.7142857142857 + 3) / 4)


def test_another_rate_keeps_variability_and_correlation() -> None:
    fast = MAPS["map4_kpc"].with_rate(318.0)
    assert fast.rate == pytest.approx(318.0)
    assert (fast.scv, fast.dispersion()) == pytest.approx((MAPS["map4_kpc"].scv, MAPS["map4_kpc"].dispersion()))


@pytest.mark.parametrize("name", ["mmpp2_bursty", "map2_hypo", "map2_negacf", "erlang2_renewal"])
def test_samples_have_the_statistics_of_their_process(name: str) -> None:
    arrivals = MAPS[name]
    gaps = arrivals.sample(1_000_000, np.random.default_rng(3))
    # The standard error of the mean is √(IDI / n): 0.7 % for the burstiest of these.
    assert gaps.mean() == pytest.approx(arrivals.mean_s, rel=0.03)
    centred = gaps - gaps.mean()
    lag1 = float(centred[1:] @ centred[:-1] / (centred @ centred))
    assert lag1 == pytest.approx(float(arrivals.autocorrelation([1])[0]), abs=0.03)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(0, 10_000))
def test_the_compiled_walk_is_the_plain_one(states: int, seed: int) -> None:
    arrivals = random_map(states, seed)
    jumps = np.hstack([arrivals.D0 - np.diag(np.diag(arrivals.D0)), arrivals.D1])
    ladders = np.cumsum(jumps / jumps.sum(axis=1, keepdims=True), axis=1)
    ladders[:, -1] = 1.0
    here, there = np.empty(200), np.empty(200)
    stays = -1 / np.diag(arrivals.D0)
    walk(ladders, stays, 0, here, np.random.default_rng(seed))
    walk.__wrapped__(ladders, stays, 0, there, np.random.default_rng(seed))  # type: ignore[attr-defined]
    assert here == pytest.approx(there, rel=1e-12)


def test_the_same_seed_gives_the_same_gaps() -> None:
    one, two = (MAPS["map4_kpc"].sample(1000, np.random.default_rng(9)) for _ in range(2))
    assert (one == two).all()


@given(st.integers(1, 8), st.integers(0, 10_000))
def test_the_stationary_distribution_solves_its_equation(n: int, seed: int) -> None:
    q = np.random.default_rng(seed).random((n, n))
    np.fill_diagonal(q, 0.0)
    np.fill_diagonal(q, -q.sum(axis=1))
    assert stationary(q) @ q == pytest.approx(np.zeros(n), abs=1e-12)


@pytest.mark.parametrize(
    ("d0", "d1", "says"),
    [
        ([[-1.0]], [[0.5]], "row 1 of D0 \\+ D1 sums to -0.5; every row must sum to zero"),
        ([[-1.0, 1.0], [0.0, -1.0]], [[0.0, 0.0], [0.0, 1.0]], "irreducible"),
        ([[-1.0, 0.0], [0.0, -2.0]], [[1.0, 0.0], [0.0, 2.0]], "irreducible"),  # γ = 1
        ([[-1.0, 1.0], [1.0, -1.0]], [[0.0, 0.0], [0.0, 0.0]], "nothing ever arrives"),
        ([[-1.0]], [[-1.0]], "negative"),
        ([[-1.0, -1.0], [1.0, -1.0]], [[2.0, 0.0], [0.0, 0.0]], "negative"),
        ([[-1.0]], [[1.0, 0.0], [0.0, 1.0]], "must match"),
        ([[-1.0, 1.0]], [[0.0, 0.0]], "square"),
        ([[math.nan]], [[1.0]], "finite"),
        ([["a"]], [[1.0]], "numbers"),
        ([[-1.0], [1.0, 2.0]], [[1.0]], "numbers"),
    ],
)
def test_what_is_no_map_is_refused_in_one_line(d0: Any, d1: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says) as raised:
        Map(d0, d1)
    assert "\n" not in str(raised.value)


def test_lags_and_shares_have_ranges() -> None:
    with pytest.raises(BadInput, match="lags"):
        MAPS["poisson"].autocorrelation([0])
    with pytest.raises(BadInput, match="above 0 and at most 1"):
        MAPS["poisson"].thinned(0.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_is_above_zero(rate: float) -> None:
    with pytest.raises(BadInput, match="above 0"):
        MAPS["map4_kpc"].with_rate(rate)
