"""Paper 3 (Kumbhare et al.): what its text fixes of cores, throughput, forecasts and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.core.dataflow import Dataflow, Operator
from penstock.models.flow import Conditions, Deployed, over, step
from penstock.models.forecast import Forecaster, Quantity, caf, waaf, wpa, wpo, wpp
from penstock.models.forecast_oracle import LEAST, Errors, KnownFuture, Spread

TRUTH = [40.0, 10.0, 30.0, 20.0, 60.0]


def oracle(errors: Errors | None = None, truth: list[float] = TRUTH, seed: int = 0) -> Forecaster:
    return KnownFuture(truth, errors, seed)


class TestSection3:
    def test_a_message_of_3_6_s_takes_2_s_on_a_core_of_1_8(self) -> None:
        deployed = Deployed(Dataflow((Operator("pe", 3.6),)), {"pe": ("vm",)})
        assert step(deployed, Conditions(2.0, {"pe": 9.0}, {"vm": 1.8})).served["pe"] == pytest.approx(1.0)

    def test_omega_over_a_period_may_hold_where_that_of_a_step_does_not(self) -> None:
        deployed = Deployed(Dataflow((Operator("pe", 1.0),)), {"pe": ("vm",) * 10})
        steps = [Conditions(300.0, {"pe": rate}, {"vm": 1.0}) for rate in (5.0, 5.0, 15.0)]
        period = over([deployed] * 3, steps, shed=True)
        # 5, 5 and 10 of 15 a second.
        assert [each.relative for each in period.steps] == pytest.approx([1.0, 1.0, 10 / 15])
        assert period.relative == pytest.approx(20 / 25)

    def test_carried_backlog_may_lift_omega_of_a_step_above_1(self) -> None:
        deployed = Deployed(Dataflow((Operator("pe", 1.0),)), {"pe": ("vm",) * 10})
        steps = [Conditions(300.0, {"pe": rate}, {"vm": 1.0}) for rate in (15.0, 5.0)]
        assert over([deployed] * 2, steps).steps[1].relative == pytest.approx(10 / 5)


class TestSection5B:
    def after(self, forecaster: Forecaster, values: list[float]) -> list[float]:
        for value in values:
            forecaster.note(value)
        return list(forecaster.ahead(3))

    def test_caf_takes_the_most_recent_value_for_all_steps(self) -> None:
        assert self.after(caf(), TRUTH) == [60.0] * 3

    def test_waaf_takes_the_mean_of_the_last_three(self) -> None:
        assert self.after(waaf(), TRUTH) == pytest.approx([(30 + 20 + 60) / 3] * 3)

    def test_wpa_takes_the_mean_of_what_is_predicted(self) -> None:
        assert self.after(wpa(oracle()), TRUTH[:1]) == [(10 + 30 + 20) / 3] * 3

    def test_wpo_takes_the_lowest_rate_and_the_highest_speed(self) -> None:
        assert self.after(wpo(oracle(), Quantity.RATE), TRUTH[:1]) == [10.0] * 3
        assert self.after(wpo(oracle(), Quantity.SPEED), TRUTH[:1]) == [30.0] * 3

    def test_wpp_takes_the_highest_rate_and_the_lowest_speed(self) -> None:
        assert self.after(wpp(oracle(), Quantity.RATE), TRUTH[:1]) == [30.0] * 3
        assert self.after(wpp(oracle(), Quantity.SPEED), TRUTH[:1]) == [10.0] * 3


def drawn(errors: Errors, steps: int = 5, seeds: int = 4000) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Forecasts of a constant 1, a row for each seed."""
    return np.array([list(oracle(errors, [1.0] * 20, seed).ahead(steps)) for seed in range(seeds)])


class TestSection6A2:
    def test_a_perfect_oracle_gives_the_truth_and_then_holds_its_last_value(self) -> None:
        assert list(oracle().ahead(7)) == [*TRUTH, 60.0, 60.0]

    @pytest.mark.parametrize("steps", [2, 6, 12])
    def test_the_bound_grows_linearly_to_twice_the_error_so_that_its_mean_is_the_error(self, steps: int) -> None:
        bounds = [Errors(0.2).bound(each, steps) for each in range(steps)]
        assert (bounds[0], bounds[-1]) == pytest.approx((0.0, 0.4))
        assert np.diff(bounds) == pytest.approx(0.4 / (steps - 1))
        assert np.mean(bounds) == pytest.approx(0.2)

    def test_read_literally_an_error_of_20_percent_ends_with_a_deviation_of_45_percent(self) -> None:
        assert Errors(0.2).deviation(4, 5) == pytest.approx(math.sqrt(0.4 / 2))  # 0.447
        assert Errors(0.2, spread=Spread.DEVIATION).deviation(4, 5) == pytest.approx(0.2)

    @pytest.mark.parametrize("spread", Spread)
    def test_errors_that_are_drawn_have_that_deviation_and_no_mean(self, spread: Spread) -> None:
        errors = Errors(0.04, spread=spread)
        found = drawn(errors)
        # At 4 % the literal deviation is at most 0.2: five of them lie above zero, and clipping takes nothing.
        assert found.std(axis=0) == pytest.approx([errors.deviation(each, 5) for each in range(5)], rel=0.05)
        assert found.mean(axis=0) == pytest.approx(np.ones(5), abs=0.02)

    def test_the_current_step_is_known_but_for_the_bias(self) -> None:
        assert drawn(Errors(0.2), seeds=10)[:, 0].tolist() == [1.0] * 10
        assert drawn(Errors(0.2, bias=-0.05), seeds=10)[:, 0] == pytest.approx(0.95)

    def test_a_bias_moves_all_steps(self) -> None:
        assert drawn(Errors(0.02, bias=0.05)).mean(axis=0) == pytest.approx(np.full(5, 1.05), abs=0.02)

    def test_forecasts_stay_above_zero(self) -> None:
        assert drawn(Errors(0.2))[:, -1].min() == LEAST

    def test_new_predictions_are_better_for_the_same_step(self) -> None:
        errors = Errors(0.1, spread=Spread.DEVIATION)
        far, near = [], []
        for seed in range(300):
            knows = KnownFuture([1.0] * 12, errors, seed)
            far.append(abs(knows.ahead(6)[5] - 1))
            for _ in range(4):
                knows.note(1.0)
            near.append(abs(knows.ahead(6)[1] - 1))
        assert np.mean(near) < 0.5 * np.mean(far)

    def test_errors_are_drawn_anew_with_each_step(self) -> None:
        knows = oracle(Errors(0.1), [1.0] * 20)
        before = list(knows.ahead(5))
        knows.note(1.0)
        assert list(knows.ahead(5))[1:] != before[1:]

    def test_the_truth_lies_within_its_interval_in_nine_of_ten(self) -> None:
        within = 0
        for seed in range(2000):
            found = oracle(Errors(0.1, spread=Spread.DEVIATION), [1.0] * 5, seed).ahead(5)
            low, high = found.lower[4], found.upper[4]
            assert low is not None
            assert high is not None
            within += low <= 1.0 <= high
        assert within / 2000 == pytest.approx(0.9, abs=0.03)
