"""Queues: against reference values of 12 digits and more, against closed forms, and at their limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import BadInput
from penstock.models.markov.absorbing import Absorbing, solve_m
from penstock.models.markov.map import Map, poisson
from penstock.models.queues import PhaseType, Response, fitted_service, kingman, m_g_1, m_ph_1, map_ph_1
from tests.models.reference import MAPS, REFERENCE

DIGITS = 1e-8
LOADS = st.floats(0.05, 0.95)


def close(value: float) -> Any:
    return pytest.approx(value, rel=DIGITS)


@pytest.mark.parametrize("case", REFERENCE["queues"], ids=lambda case: case["id"])
def test_every_reference_queue_is_met_to_eight_digits(case: dict[str, Any]) -> None:
    queue = map_ph_1(MAPS[case["arrival"]], PhaseType(case["alpha"], case["S"]))
    assert queue.levels is not None
    assert queue.law is not None
    assert queue.utilisation == close(case["rho"])
    assert queue.mean_s == close(case["mean_response"])
    assert queue.wait_s == close(case["mean_wait"])
    assert queue.mean_number == close(case["mean_number"])
    assert queue.moment(2) == close(case["response_m2"])
    assert queue.levels.empty == close(case["p_empty"])
    assert queue.levels.variance == close(case["var_number"])
    assert queue.law.decay == close(case["tail_decay_rate"])
    for percent in (50, 90, 95, 99):
        assert queue.percentile_s(percent / 100) == close(case[f"p{percent}"])
        assert queue.exceeds(case[f"p{percent}"]) == close(1 - percent / 100)


@pytest.mark.parametrize("case", REFERENCE["high_load"], ids=lambda case: str(case["rho"]))
def test_digits_are_kept_up_to_a_utilisation_of_four_nines(case: dict[str, float]) -> None:
    queue = map_ph_1(MAPS["mmpp2_bursty"], PhaseType.erlang(2, case["rho"]))
    assert queue.mean_number == close(case["mean_number"])
    assert queue.percentile_s(0.95) == close(case["p95"])


@pytest.mark.parametrize("case", REFERENCE["near_decomposable"], ids=lambda case: str(case["eps"]))
def test_digits_are_kept_where_the_arrival_process_almost_falls_apart(case: dict[str, float]) -> None:
    eps = case["eps"]
    d1 = np.array([[2 - eps, eps], [eps / 3, (2 - eps) / 3]])
    queue = map_ph_1(Map(-np.diag(d1.sum(axis=1)), d1), PhaseType.erlang(2, 0.9))
    assert queue.mean_s == close(case["mean_response"])
    assert queue.percentile_s(0.95) == close(case["p95"])


@given(LOADS, st.floats(1e-6, 1e6), st.floats(0.01, 0.999))
def test_poisson_arrivals_and_exponential_service_are_m_m_1(load: float, mean_s: float, p: float) -> None:
    queue = map_ph_1(poisson(load / mean_s), PhaseType.exponential(mean_s))
    # The response of M/M/1 is exponential with mean 1 / (μ − λ) = E[S] / (1 − ρ).
    assert queue.mean_s == close(mean_s / (1 - load))
    assert queue.percentile_s(p) == close(-math.log(1 - p) * mean_s / (1 - load))


@given(LOADS, st.integers(1, 20), st.floats(1e-3, 1e3))
def test_poisson_arrivals_are_pollaczek_and_khinchine(load: float, phases: int, mean_s: float) -> None:
    queue = m_ph_1(load / mean_s, PhaseType.erlang(phases, mean_s))
    # E[S²] of Erlang-k is (1 + 1/k) E[S]².
    assert queue.mean_s == close(mean_s + load * mean_s * (1 + 1 / phases) / (2 * (1 - load)))
    assert queue.mean_s == close(m_g_1(load / mean_s, mean_s, (1 + 1 / phases) * mean_s**2).mean_s)


@given(LOADS)
def test_the_second_moment_of_the_wait_is_takacs(load: float) -> None:
    service = PhaseType.hyperexponential([0.2, 0.8], [3.0, 0.5])
    rate = load / service.mean_s
    queue = m_ph_1(rate, service)
    wait = rate * service.moment(2) / (2 * (1 - load))
    # E[W²] = 2E[W]² + λE[S³]/(3(1 − ρ)); R = W + S, independent.
    squared = 2 * wait**2 + rate * service.moment(3) / (3 * (1 - load))
    assert queue.moment(2) == close(squared + 2 * wait * service.mean_s + service.moment(2))


@given(st.floats(0.05, 0.95))
def test_renewal_arrivals_and_exponential_service_are_the_root_of_gi_m_1(load: float) -> None:
    # E2/M/1, mean gap 1: σ = (2 / (2 + μ(1 − σ)))² with μ = 1/ρ; the response is exponential with rate μ(1 − σ).
    queue = map_ph_1(MAPS["erlang2_renewal"], PhaseType.exponential(load))
    sigma = 0.0
    for _ in range(20_000):
        sigma = (2 / (2 + (1 - sigma) / load)) ** 2
    assert queue.mean_s == pytest.approx(load / (1 - sigma), rel=1e-6)


@settings(max_examples=25)
@given(st.floats(1e-6, 1e6), st.sampled_from(["mmpp2_bursty", "map4_kpc", "map2_hypo"]))
def test_another_unit_of_time_changes_nothing_else(unit: float, name: str) -> None:
    arrivals, service = MAPS[name], PhaseType.erlang(2, 0.7 * MAPS[name].mean_s)
    here = map_ph_1(arrivals, service)
    there = map_ph_1(arrivals.with_rate(arrivals.rate / unit), service.with_mean(service.mean_s * unit))
    assert there.mean_s == pytest.approx(here.mean_s * unit, rel=1e-10)
    assert there.percentile_s(0.95) == pytest.approx(here.percentile_s(0.95) * unit, rel=1e-10)


def test_the_tail_and_the_percentile_are_inverse() -> None:
    queue = map_ph_1(MAPS["map4_kpc"], PhaseType.erlang(3, 0.6))
    for p in (0.001, 0.3, 0.9, 0.999, 1 - 1e-9):
        assert queue.exceeds(queue.percentile_s(p)) == pytest.approx(1 - p, rel=1e-6)
    assert queue.exceeds(0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("load", [1.0, 1.0000001, 5.0])
def test_a_utilisation_of_one_or_more_is_infinite(load: float) -> None:
    service = PhaseType.erlang(2, load)
    for queue in (map_ph_1(MAPS["poisson"], service), kingman(1.0, 1.0, service), m_g_1(1.0, load, 2 * load**2)):
        assert queue.utilisation == pytest.approx(load)
        assert queue.mean_s == math.inf
        assert not queue.is_stable
    queue = map_ph_1(MAPS["mmpp2_bursty"], service)
    assert isinstance(queue, Response)
    assert (queue.percentile_s(0.95), queue.mean_number, queue.wait_s, queue.exceeds(1e9)) == (math.inf,) * 3 + (1.0,)


def test_kingman_is_the_papers_approximation_and_has_no_percentile() -> None:
    # ρ 0.9, c_a² 5.776, c_s² 0.5, E[S] 0.9: 0.9 (1 + 9 · 3.138) = 26.3.
    queue = kingman(1.0, MAPS["mmpp2_bursty"].scv, PhaseType.erlang(2, 0.9))
    assert queue.mean_s == pytest.approx(0.9 * (1 + 9 * (5.776119402985 + 0.5) / 2))
    with pytest.raises(BadInput, match="mean only"):
        queue.percentile_s(0.95)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 95.0, math.nan])
def test_a_percentile_is_a_share(p: float) -> None:
    with pytest.raises(BadInput, match="share"):
        m_ph_1(0.5, PhaseType.exponential(1.0)).percentile_s(p)


@given(st.floats(0.021, 30.0), st.floats(1e-3, 1e3))
def test_service_is_fitted_to_its_mean_and_variability(scv: float, mean_s: float) -> None:
    service = fitted_service(mean_s, scv)
    assert service.mean_s == pytest.approx(mean_s)
    assert service.scv == pytest.approx(scv, rel=1e-6)


@given(st.floats(1.05, 20.0), st.floats(1.02, 10.0))
def test_service_is_fitted_to_its_third_moment_where_two_exponentials_can(scv: float, above: float) -> None:
    r = (1 + scv) / 2
    service = fitted_service(2.0, scv, third=6 * r**2 * above * 8)
    assert [service.moment(k) for k in (1, 2, 3)] == pytest.approx([2.0, 2 * r * 4, 6 * r**2 * above * 8], rel=1e-6)


def test_service_whose_third_moment_cannot_be_met_keeps_the_first_two() -> None:
    service = fitted_service(1.0, 4.0, third=1.0)
    assert [service.mean_s, service.scv] == pytest.approx([1.0, 4.0])


def test_constant_service_is_fifty_phases() -> None:
    assert fitted_service(1.0, 0.0).phases == 50


@pytest.mark.parametrize(
    ("alpha", "s", "says"),
    [
        ([0.5, 0.4], [[-1.0, 0.0], [0.0, -1.0]], "sums to 0.9"),
        ([1.0], [[-1.0, 0.0]], "n × n"),
        ([1.0, 0.0], [[-1.0, 2.0], [0.0, -1.0]], "sum to 0 or less"),
        ([1.0, 0.0], [[-1.0, 1.0], [1.0, -1.0]], "never end"),
        ([math.nan], [[-1.0]], "finite"),
        (["x"], [[-1.0]], "numbers"),
    ],
)
def test_what_is_no_phase_type_is_refused(alpha: list[float], s: list[list[float]], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        PhaseType(alpha, s)


@pytest.mark.parametrize("mean_s", [0.0, -1.0, math.nan, math.inf])
def test_a_service_time_is_above_zero(mean_s: float) -> None:
    with pytest.raises(BadInput, match="above 0"):
        PhaseType.erlang(2, mean_s)


def test_service_times_are_drawn_from_their_phases() -> None:
    service = PhaseType([0.3, 0.7], [[-2.0, 1.0], [0.5, -4.0]])
    drawn = service.sample(400_000, np.random.default_rng(1))
    # 400,000 draws: the standard error of the mean is below 0.2 %.
    assert [float(np.mean(drawn**k)) for k in (1, 2)] == pytest.approx([service.moment(k) for k in (1, 2)], rel=0.02)


@settings(max_examples=50)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_compiled_elimination_is_the_plain_one_and_solves(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates, ends, right = rng.random((n, n)), rng.random(n), rng.random((n, 2))
    x = solve_m(rates, ends, right)
    plain = solve_m.__wrapped__  # type: ignore[attr-defined]
    assert x == pytest.approx(plain(rates, ends, right), rel=1e-12)
    a = np.diag(rates.sum(axis=1) - np.diag(rates) + ends) - rates + np.diag(np.diag(rates))
    assert a @ x == pytest.approx(right, rel=1e-9)


def test_times_one_after_the_other_add_up() -> None:
    one = Absorbing(np.array([1.0]), np.zeros((1, 1)), np.array([2.0]))
    both = one.then(one)  # Erlang-2 with mean 1
    assert [both.moment(k) for k in (1, 2)] == pytest.approx([1.0, 1.5])
    assert both.percentile(0.95) == pytest.approx(2.3719322, rel=1e-7)  # (1 + 2t) e^(−2t) = 0.05


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PhaseType.erlang(0, 1.0), "0 phases"),
        (lambda: PhaseType.erlang(-1, 1.0), "-1 phases"),
        (lambda: PhaseType.erlang(1.5, 1.0), "1.5 phases"),  # type: ignore[arg-type]
        (lambda: PhaseType.hyperexponential([0.5, 0.5], [1.0, 0.0]), "every mean service time"),
        (lambda: PhaseType.hyperexponential([0.5, 0.5], [1.0, math.inf]), "every mean service time"),
        (lambda: fitted_service(0.0, 2.0, 1.0), "above 0"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_service_that_cannot_be_is_one_line(make: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make()
