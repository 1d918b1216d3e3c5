"""Closed forms of composed and two-state MAPs, and the kernels of hidden chains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.models.arrivals import compose
from penstock.models.arrivals.descent import descend, descend_thriftily
from penstock.models.arrivals.hidden import backward, fit_hidden, forward, spread_out
from penstock.models.markov.chains import Floats
from penstock.models.markov.kpc import Blocks
from penstock.models.markov.map2 import map2
from penstock.models.queues.lindley import responses
from tests.models.reference import MAPS, REFERENCE


@settings(max_examples=60)
@given(st.integers(1, 3), st.integers(0, 10_000))
def test_the_closed_forms_of_compositions_are_those_of_their_matrices(blocks: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    r = rng.uniform(1.1, 3.0, (1, blocks))
    made = Blocks(
        r, r**2 * rng.uniform(1.1, 3.0, (1, blocks)), rng.uniform(0.0, 0.99, (1, blocks)), int(rng.integers(1, 4))
    )
    whole = made.map(0)
    assert whole.scv == pytest.approx(float(made.scv[0]), rel=1e-9)
    assert whole.moment(3) == pytest.approx(6 * float(made.total_t[0]), rel=1e-9)
    assert whole.autocorrelation([1, 3, 10]) == pytest.approx(made.correlation(np.array([1.0, 3.0, 10.0]))[0], rel=1e-7)
    assert whole.joint_moment((2, 3)) == pytest.approx(
        float(made.joint(np.array([2.0]), np.array([3.0]))[0, 0]), rel=1e-9
    )


def test_the_closed_form_of_the_distribution_is_that_of_samples() -> None:
    made = Blocks(np.array([[1.6, 2.0]]), np.array([[3.5, 6.0]]), np.array([[0.5, 0.0]]), shape=2)
    gaps = made.map(0).sample(200_000, np.random.default_rng(0))
    for x in (0.1, 0.5, 2.0):
        assert float(np.mean(gaps <= x)) == pytest.approx(float(made.distribution(np.array([x]))[0, 0]), abs=0.01)


@pytest.mark.parametrize("name", ["map4_kpc", "map8_kpc"])
def test_reference_compositions_are_met(name: str) -> None:
    whole = compose(*(MAPS[part] for part in REFERENCE["kpc_of"][name]))
    for here, there in ((whole.D0, MAPS[name].D0), (whole.D1, MAPS[name].D1)):
        assert here == pytest.approx(there, abs=1e-12)


@settings(max_examples=100)
@given(st.floats(1.1, 20.0), st.floats(1.1, 10.0), st.floats(-0.05, 0.999))
def test_two_states_have_the_four_numbers_they_are_made_from(scv: float, above: float, gamma: float) -> None:
    r = (1 + scv) / 2
    m3 = 6 * r**2 * above * 8
    found = map2(2.0, 2 * r * 4, m3, gamma)
    if not found.notes:
        assert [found.map.mean_s, found.map.scv, found.map.moment(3)] == pytest.approx([2.0, scv, m3], rel=1e-6)
        assert float(found.map.autocorrelation([3])[0]) == pytest.approx(
            0.5 * (1 - 1 / scv) * gamma**3, rel=1e-4, abs=1e-9
        )


@pytest.mark.parametrize("name", ["map2_hypo", "erlang2_renewal"])
def test_two_states_below_poissons_variability_are_made_from_their_numbers(name: str) -> None:
    known = MAPS[name]
    gamma = float(np.trace(known.embedded) - 1)
    found = map2(known.mean_s, known.moment(2), known.moment(3), gamma).map
    assert [found.moment(k) for k in (1, 2, 3)] == pytest.approx([known.moment(k) for k in (1, 2, 3)], rel=1e-6)
    assert found.autocorrelation([1, 2]) == pytest.approx(known.autocorrelation([1, 2]), rel=1e-4, abs=1e-9)


@given(st.floats(0.3, 30.0), st.floats(0.01, 100.0), st.floats(-1.5, 1.5))
def test_whatever_is_asked_of_two_states_a_valid_process_comes(scv: float, third: float, gamma: float) -> None:
    found = map2(1.0, 1 + scv, 6 * third, gamma)
    assert found.map.mean_s == pytest.approx(1.0)
    assert found.map.scv == pytest.approx(max(scv, 0.5), rel=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(0, 10_000))
def test_the_compiled_passes_are_the_plain_ones(states: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chances, p = rng.random((30, states)), rng.dirichlet(np.ones(states), states)

    def run(one: Callable[..., Floats], two: Callable[..., None]) -> tuple[Floats, Floats, Floats]:
        ahead, pairs = np.empty((30, states)), np.empty((states, states))
        shrinks = one(chances, p, ahead)
        two(chances, p, shrinks, ahead, pairs)
        return shrinks, ahead, pairs

    plain = run(forward.__wrapped__, backward.__wrapped__)  # type: ignore[attr-defined]
    for here, there in zip(run(forward, backward), plain, strict=True):
        assert here == pytest.approx(there, rel=1e-10)
    # Probabilities of the states at each gap sum to 1, expected transitions to the number of gaps but one.
    assert plain[1].sum(axis=1) == pytest.approx(np.ones(30))
    assert plain[2].sum() == pytest.approx(29)


def test_rounds_of_em_never_lose_likelihood() -> None:
    gaps = MAPS["map4_kpc"].sample(5000, np.random.default_rng(1))
    gaps /= gaps.mean()
    found = [fit_hidden(gaps, spread_out(4), rounds).log_likelihood for rounds in (2, 6, 12, 30)]
    assert found == sorted(found)


def test_lindleys_recursion_is_its_loop() -> None:
    rng = np.random.default_rng(0)
    gaps, services = rng.exponential(1.0, 500), rng.exponential(0.8, 500)
    wait, loop = 0.0, []
    for k in range(500):
        wait = max(0.0, wait + services[k - 1] - gaps[k]) if k else 0.0
        loop.append(wait + services[k])
    assert responses(gaps, services) == pytest.approx(loop)


def test_least_squares_finds_the_bottom_of_a_curved_valley() -> None:
    def valley(x: Floats) -> Floats:
        """Rosenbrock's: 10 (x₂ − x₁²) and 1 − x₁."""
        return np.stack([10 * (x[..., 1] - x[..., 0] ** 2), 1 - x[..., 0]], axis=-1)

    many, costs = descend(valley, np.array([[-1.2, 1.0], [2.0, 2.0]]), 60)
    assert many == pytest.approx(np.ones((2, 2)), abs=1e-3)
    assert costs == pytest.approx(np.zeros(2), abs=1e-6)
    one, cost = descend_thriftily(valley, np.array([-1.2, 1.0]), 200)
    assert one == pytest.approx(np.ones(2), abs=0.05)
    assert cost < 1e-3
