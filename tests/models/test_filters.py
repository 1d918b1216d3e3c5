"""Filters as shells: instances that come and go, bootstrapping, and what is learnt on the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import BadInput
from penstock.models.filters import Bootstrap, Filter, Floats, Kalman, Pure, Weierstrass, driven, measurement_noise
from penstock.models.transition import Learner, Sample, learn

NO_INPUT = np.zeros(2)
STILL = driven(np.zeros(1), np.zeros(1))


def rows(*values: float) -> Floats:
    return np.array(values)[:, np.newaxis]


def settled(loads: Floats, names: tuple[str, ...], ticks: int = 100, moves: Floats | None = None) -> Kalman:
    """A filter that has seen the same for 50 s."""
    width = loads.shape[1]
    ekf = Kalman(driven(np.zeros(width), np.zeros(width)), Bootstrap(r=0.01 * np.eye(width)), moves)
    for tick in range(ticks):
        ekf.step(tick * 0.5, names, loads, NO_INPUT)
    return ekf


def test_without_a_filter_what_is_measured_is_believed() -> None:
    z = rows(0.3, 0.9)
    assert Pure().step(0.0, ("a", "b"), z, NO_INPUT) is z


def test_weierstrass_forgets_after_its_window() -> None:
    gw = Weierstrass(variance_s2=1e6, window_s=10.0)
    for second in range(20):
        last = gw.step(float(second), ("a",), rows(1.0 if second < 5 else 0.0), NO_INPUT)
    # The window of 10 s holds seconds 9 … 19: none of the ones.
    assert last[0, 0] == 0.0


def test_weierstrass_judges_a_new_instance_by_its_own_past_alone() -> None:
    gw = Weierstrass()
    for second in range(30):
        gw.step(float(second), ("a",), rows(0.2), NO_INPUT)
    assert gw.step(30.0, ("a", "b"), rows(0.2, 0.8), NO_INPUT)[:, 0].tolist() == pytest.approx([0.2, 0.8])


def test_the_dead_time_passes_measurements_through_and_the_ease_in_is_not_yet_ready() -> None:
    ekf = Kalman(STILL, Bootstrap(dead_s=10.0, ease_s=10.0))
    ready = []
    for tick in range(60):
        out = ekf.step(tick * 0.5, ("a",), rows(0.1 * (tick % 3)), NO_INPUT)
        ready.append(ekf.is_ready)
        if tick < 20:
            assert out[0, 0] == pytest.approx(0.1 * (tick % 3))
    # 20 s after the first sample, at 0 s, is the sample of 20 s: the 41st.
    assert ready.index(True) == 40


def test_a_slow_sampler_waits_for_three_samples_whatever_the_dead_time() -> None:
    ekf = Kalman(STILL, Bootstrap(dead_s=10.0, ease_s=10.0))
    ready = []
    for minute in range(5):
        ekf.step(minute * 60.0, ("a",), rows(0.5), NO_INPUT)
        ready.append(ekf.is_ready)
    assert ready == [False, False, False, True, True]


def test_a_new_instance_begins_at_the_others_mean() -> None:
    ekf = settled(rows(0.4, 0.6), ("a", "b"))
    x = ekf.step(50.0, ("a", "b", "c"), rows(0.4, 0.6, 0.5), NO_INPUT)
    assert x[:, 0].tolist() == pytest.approx([0.4, 0.6, 0.5])


def test_what_leaves_is_shared_by_those_who_stay_but_not_the_memory_they_hold() -> None:
    loads = np.tile([0.3, 0.25], (4, 1))
    ekf = settled(loads, ("a", "b", "c", "d"), moves=np.array([1.0, 0.0]))
    x = ekf.step(50.0, ("a", "b"), np.tile([0.6, 0.25], (2, 1)), NO_INPUT)
    # 4 · 0.3 on two: 0.6 each at once, as the next measurement says.
    assert x.ravel().tolist() == pytest.approx([0.6, 0.25, 0.6, 0.25])


def test_a_fleet_of_strangers_begins_at_what_is_measured() -> None:
    ekf = settled(rows(0.9), ("a",))
    assert ekf.step(50.0, ("b", "c"), rows(0.2, 0.4), NO_INPUT)[:, 0].mean() == pytest.approx(0.3)


def test_a_negative_dead_time_is_refused() -> None:
    with pytest.raises(BadInput, match="neither may be negative"):
        Bootstrap(dead_s=-1.0)


@pytest.mark.parametrize("make", [Pure, Weierstrass, lambda: Kalman(STILL)])
@settings(deadline=None, max_examples=25)
@given(shift_s=st.integers(-1_000_000, 1_000_000), seed=st.integers(0, 100))
def test_shifting_all_times_changes_no_estimate(make: type[Filter], shift_s: int, seed: int) -> None:
    z = np.random.default_rng(seed).random((60, 2, 1))
    here, there = make(), make()
    for tick, row in enumerate(z):
        one = here.step(tick * 0.5, ("a", "b"), row, NO_INPUT)
        other = there.step(tick * 0.5 + shift_s, ("a", "b"), row, NO_INPUT)
        assert one.tolist() == other.tolist()


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 100))
def test_each_instance_has_a_filter_of_its_own(seed: int) -> None:
    z = np.random.default_rng(seed).random((80, 2, 1))
    crowd, alone = Weierstrass(), Weierstrass()
    for tick, row in enumerate(z):
        pair = crowd.step(tick * 0.5, ("a", "b"), row, NO_INPUT)
        single = alone.step(tick * 0.5, ("b",), row[1:], NO_INPUT)
        assert pair[1] == pytest.approx(single[0])


def test_noise_at_a_steady_rate_is_half_the_variance_of_changes_and_never_zero() -> None:
    rng = np.random.default_rng(1)
    z = 0.5 + 0.1 * rng.standard_normal((20_000, 1))
    assert measurement_noise(np.diff(z, axis=0))[0, 0] == pytest.approx(0.01, rel=0.05)
    assert measurement_noise(np.zeros((5, 1)))[0, 0] == 1e-6


def steps_run(noise: float, lag: int = 1, seconds: int = 600) -> list[Sample]:
    """A worker of 5 events a second under 1 and 3 a second by turns; its meter is a sample behind."""
    rng = np.random.default_rng(3)
    rates = np.array([3.0 if second // 30 % 2 else 1.0 for second in range(seconds)])
    seen = np.concatenate([rates[:1].repeat(lag), rates[: seconds - lag]]) if lag else rates
    changes = np.diff(rates, prepend=rates[0])
    return [
        Sample(("a",), rows(load / 5.0 + noise * rng.standard_normal()), np.array([rate, change]))
        for load, rate, change in zip(seen, rates, changes, strict=True)
    ]


def test_a_run_of_steps_teaches_b_and_the_noise() -> None:
    learnt = learn(steps_run(noise=0.02))
    assert learnt is not None
    assert learnt.b[0] == pytest.approx(1 / 5.0, rel=0.1)
    assert abs(learnt.a[0]) < 0.002
    assert learnt.r[0, 0] == pytest.approx(0.02**2, rel=0.2)
    assert learnt.instances == 1.0


def test_a_run_of_one_step_teaches_nothing() -> None:
    assert learn(steps_run(0.0)[:1]) is None


def test_the_learner_finds_the_slope_while_it_runs_and_believes_nothing_before() -> None:
    rng = np.random.default_rng(3)
    learner = Learner(metrics=1)
    found = []
    for second in range(600):
        done = 3.0 if second // 30 % 2 else 1.0
        learner.add(1.0, np.array([0.1 + done / 5.0 + 0.1 * rng.standard_normal()]), done)
        found.append(float(learner.slope()[0]))
    assert found[29] == 0.0  # one throughput tells no slope
    assert found[40] == pytest.approx(1 / 5.0, rel=0.3)  # ten samples of the next do
    assert found[-1] == pytest.approx(1 / 5.0, rel=0.05)


def test_noise_alone_teaches_the_learner_nothing_nor_does_a_load_that_falls_with_the_rate() -> None:
    rng = np.random.default_rng(4)
    unrelated, falling = Learner(metrics=1), Learner(metrics=1)
    for _ in range(500):
        done = float(rng.random())
        unrelated.add(1.0, np.array([0.5 + 0.1 * rng.standard_normal()]), done)
        falling.add(1.0, np.array([1.0 - 0.5 * done]), done)
    assert (unrelated.slope().tolist(), falling.slope().tolist()) == ([0.0], [0.0])


def test_luck_in_a_dead_time_does_not_make_a_filter_that_guesses_its_noise_nervous() -> None:
    calm = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        ekf = Kalman(STILL)
        late = [ekf.step(tick * 0.5, ("a",), rows(0.5 + 0.1 * rng.standard_normal()), NO_INPUT) for tick in range(200)]
        # With Q a hundredth of R the gain is 0.095, and 0.22 of the noise is left; with Q as R, 0.67.
        calm += bool(np.std(late[50:]) < 0.4 * 0.1)
    assert calm >= 50
