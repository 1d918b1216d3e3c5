"""Paper 5 (Borkowski et al.): one test for each equation and each figure that can be checked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.objective import break_even, break_even_as_printed
from penstock.models.filters import (
    Bootstrap,
    Kalman,
    Motion,
    Pure,
    Weierstrass,
    driven,
    first_error,
    first_state,
    kernel,
    predict,
    system_noise,
    update,
)
from penstock.models.transition import least_squares
from penstock.reproduce.ekf_paper import FILTERS, TABLE_2, TABLES, printed_pairs, ratio, total

NO_INPUT = np.zeros(2)


def one(value: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([[value]])


def test_equation_5_moves_the_state_by_the_rate_and_its_change() -> None:
    motion = driven(np.array([0.01, 0.0]), np.array([0.2, 0.05]))
    # CPU 0.5 + 0.01 · 10 + 0.2 · 3 = 1.2: not clipped at 1. Memory 0.3 + 0 · 10 + 0.05 · 3 = 0.45.
    assert motion.f(np.array([0.5, 0.3]), np.array([10.0, 3.0])).tolist() == pytest.approx([1.2, 0.45])
    assert motion.jacobian(np.zeros(2), np.zeros(2)).tolist() == [[1, 0], [0, 1]]


def test_equations_10_and_12_predict_state_and_error() -> None:
    x, p = predict(np.array([0.5]), one(0.04), np.array([10.0, 2.0]), driven(np.zeros(1), np.array([0.1])), one(0.01))
    assert x[0] == pytest.approx(0.5 + 0.1 * 2)
    assert p[0, 0] == pytest.approx(1 * 0.04 * 1 + 0.01)


def test_equation_12_uses_the_jacobian_of_a_motion_that_is_not_linear() -> None:
    squares = Motion(lambda x, u: x**2 + u[0], lambda x, _u: np.diag(2 * x))
    x, p = predict(np.array([0.5, 3.0]), np.diag([0.04, 0.01]), np.array([1.0, 0.0]), squares, np.zeros((2, 2)))
    assert x.tolist() == [1.25, 10.0]
    assert np.diag(p).tolist() == pytest.approx([1.0**2 * 0.04, 6.0**2 * 0.01])


def test_equations_13_and_14_weigh_prediction_and_measurement() -> None:
    x, p = update(np.array([0.5]), one(0.03), np.array([0.9]), one(0.01))
    # G = 0.03 / (0.03 + 0.01) = 0.75; x = 0.5 + 0.75 · 0.4.
    assert x[0] == pytest.approx(0.8)
    # The step that the paper leaves out: P = (1 − 0.75) · 0.03.
    assert p[0, 0] == pytest.approx(0.0075)


def test_the_error_shrinks_as_section_2_4_says_and_would_not_without_the_missing_step() -> None:
    p, q, r = one(1.0), one(1e-4), one(0.01)
    errors = []
    for _ in range(50):
        x, p = update(np.array([0.5]), p, np.array([0.5]), r)
        x, p = predict(x, p, NO_INPUT, driven(np.zeros(1), np.zeros(1)), q)
        errors.append(p[0, 0])
    assert errors == sorted(errors, reverse=True)
    # The fixed point of P ← PR/(P + R) + Q is (Q + √(Q² + 4QR)) / 2 = (0.0001 + √(10⁻⁸ + 4·10⁻⁶)) / 2.
    assert errors[-1] == pytest.approx((1e-4 + math.sqrt(1e-8 + 4e-6)) / 2, rel=1e-3)


def test_equation_16_weighs_the_dead_time_by_recency() -> None:
    # (1 · 0.2 + 2 · 0.4 + 3 · 0.6) / 6
    assert first_state(np.array([[0.2], [0.4], [0.6]]))[0] == pytest.approx(2.8 / 6)


def test_equation_17_is_a_weighted_covariance_with_bessels_correction() -> None:
    z = np.array([[0.2, 1.0], [0.4, 1.0], [0.6, 4.0]])
    x0 = first_state(z)  # 2.8/6 and (1 + 2 + 12)/6 = 2.5
    p0 = first_error(z, x0)
    away = [0.2 - 2.8 / 6, 0.4 - 2.8 / 6, 0.6 - 2.8 / 6]
    assert p0[0, 0] == pytest.approx((1 * away[0] ** 2 + 2 * away[1] ** 2 + 3 * away[2] ** 2) / (6 - 1))
    assert p0[0, 1] == pytest.approx((1 * away[0] * -1.5 + 2 * away[1] * -1.5 + 3 * away[2] * 1.5) / 5)
    assert p0[0, 1] == p0[1, 0]


def test_equation_18_takes_the_measurement_noise_out_and_stays_positive() -> None:
    assert system_noise(one(0.05), one(0.02))[0, 0] == pytest.approx(0.03)
    # P₀ below R, which the paper assumes away: a hundredth of R is left.
    assert system_noise(one(0.01), one(0.02))[0, 0] == pytest.approx(0.0002)
    both = system_noise(np.array([[0.05, 0.0], [0.0, 0.001]]), np.diag([0.02, 0.02]))
    assert np.linalg.eigvalsh(both).min() == pytest.approx(0.0002)


def test_equation_19_is_a_gaussian_of_age_and_its_half_sums_to_one() -> None:
    ages_s = np.arange(0.0, 60.5, 0.5)
    weights = kernel(ages_s, variance_s2=9.0)
    assert weights.sum() == pytest.approx(1)
    # A sample of 3 s ago counts e^(−9/18) = 0.607 of one of now.
    assert weights[6] / weights[0] == pytest.approx(math.exp(-0.5))


def test_figure_4_a_filter_follows_the_trend_and_not_the_noise() -> None:
    rng = np.random.default_rng(5)
    times_s = np.arange(0.0, 300.0, 0.5)
    trend = 0.5 + 0.2 * np.sin(times_s / 60)
    errors = {}
    for name, each in (("pure", Pure()), ("gw", Weierstrass()), ("ekf", Kalman(driven(np.zeros(1), np.zeros(1))))):
        noisy = trend + 0.1 * rng.standard_normal(len(trend))
        seen = [each.step(t, ("b",), one(z), NO_INPUT)[0, 0] for t, z in zip(times_s, noisy, strict=True)]
        errors[name] = float(np.std(np.array(seen[60:]) - trend[60:]))
    assert errors["gw"] < 0.5 * errors["pure"]
    assert errors["ekf"] < 0.5 * errors["pure"]


def test_figure_9_the_filter_exceeds_one_where_the_meter_cannot() -> None:
    """A jump of the rate tells how many instances are missing, while the CPU can only say "full"."""
    ekf = Kalman(driven(np.zeros(1), np.array([1 / 4.5])), Bootstrap(r=one(0.0225)))
    for tick in range(100):
        load = ekf.step(tick * 0.5, ("b",), one(0.2), np.array([1.0, 0.0]))
    load = ekf.step(50.0, ("b",), one(0.2), np.array([65.0, 64.0]))
    # 0.2 + 64 / 4.5 = 14.4 instances' work on one.
    assert load[0, 0] == pytest.approx(0.2 + 64 / 4.5, rel=0.01)


@settings(deadline=None, max_examples=40)
@given(level=st.floats(0.05, 0.95), noise=st.floats(0.01, 0.3), seed=st.integers(0, 1000))
def test_on_a_constant_signal_the_filter_converges_to_it(level: float, noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ekf = Kalman(driven(np.zeros(1), np.zeros(1)), Bootstrap(r=one(noise**2)))
    measured = level + noise * rng.standard_normal(400)
    late = [ekf.step(tick * 0.5, ("b",), one(z), NO_INPUT)[0, 0] for tick, z in enumerate(measured)][200:]
    assert np.mean(late) == pytest.approx(level, abs=0.5 * noise)
    assert np.std(late) < noise


@settings(deadline=None, max_examples=40)
@given(a=st.floats(-0.01, 0.01), b=st.floats(0.01, 1.0), seed=st.integers(0, 1000))
def test_least_squares_recovers_the_motion_that_made_the_data(a: float, b: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0, 10, 50)
    inputs = np.column_stack([rates[1:], np.diff(rates)])
    found_a, found_b = least_squares((inputs @ [a, b])[:, np.newaxis], inputs)
    assert (found_a[0], found_b[0]) == (pytest.approx(a, abs=1e-9), pytest.approx(b, rel=1e-6))


def test_a_dead_time_at_one_rate_cannot_tell_a_from_b_so_both_are_zero() -> None:
    inputs = np.tile([5.0, 0.0], (20, 1))
    found_a, found_b = least_squares(np.full((20, 1), 0.01), inputs)
    assert (found_a.tolist(), found_b.tolist()) == ([0.0], [0.0])


def test_tables_3_to_5_give_the_papers_ratios() -> None:
    printed = {"pyramid": (0.139, 0.192), "square": (0.087, 0.097), "lab": (0.129, 0.190)}
    for scenario, (pure, gw) in printed.items():
        assert ratio(scenario, "events", "EKF", "PURE") == pytest.approx(pure, abs=6e-4)
        assert ratio(scenario, "events", "EKF", "GW") == pytest.approx(gw, abs=6e-4)
    assert [round(ratio(each, "vm", "EKF", "PURE"), 3) for each in TABLES] == [1.113, 1.07, 1.222]


def test_section_4_2_only_one_pair_is_not_significant() -> None:
    pairs = printed_pairs()
    assert len(pairs) == 45
    assert pairs["square", "vm", "GW", "EKF"] == pytest.approx(0.1092, abs=1e-3)
    assert sorted(pairs.values())[-2] < 0.004


def test_table_2_is_best_at_50_and_80_percent() -> None:
    assert len(TABLE_2) == 21
    assert min(TABLE_2, key=TABLE_2.__getitem__) == (50, 80)


def test_equations_20_to_23_as_printed_and_corrected() -> None:
    # 1.078 / 1.132 · $0.0612 and 1.078 / 1.776 · $0.0612; the paper prints 0.059 and 0.038.
    assert break_even_as_printed(0.0612, 0.078, 0.132) == pytest.approx(0.0583, abs=1e-4)
    assert break_even_as_printed(0.0612, 0.078, 0.776) == pytest.approx(0.0371, abs=1e-4)
    # Tables 3–5: 30.2 − 28.0 = 2.2 VM hours more, 182.6 − 158.5 = 24.1 thousand violations fewer than GW.
    hours = total("vm", "EKF") - total("vm", "GW")
    saved = 1000 * (total("sla", "GW") - total("sla", "EKF"))
    assert [hours, saved] == pytest.approx([2.2, 24_100])
    assert break_even(hours * 0.0612, saved) == pytest.approx(2.2 * 0.0612 / 24_100)
    assert break_even(1.0, 0.0) == math.inf
    assert FILTERS == ("PURE", "GW", "EKF")
