"""Forecasters, the readings of a forecast, and how a backtest scores them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.models.backtest import backtest
from penstock.models.forecast import (
    Banded,
    Flat,
    Forecast,
    Forecaster,
    SeasonalNaive,
    WindowMean,
    average,
    caf,
    peak,
    trough,
    waaf,
)
from penstock.models.forecast_oracle import Errors, KnownFuture
from penstock.models.holt_winters import HoltWinters, Season, Weights

MAKERS: dict[str, Callable[[], Forecaster]] = {
    "caf": caf,
    "waaf": waaf,
    "seasonal": lambda: SeasonalNaive(4),
    "additive": lambda: HoltWinters(4),
    "multiplicative": lambda: HoltWinters(4, Season.MULTIPLICATIVE),
    "no season": lambda: HoltWinters(4, Season.NONE),
    "peak": lambda: Flat(SeasonalNaive(4), peak),
    "banded": lambda: Banded(WindowMean(3), steps=6),
    "oracle": lambda: KnownFuture([5.0] * 10, Errors(0.2)),
}


def told(forecaster: Forecaster, values: list[float]) -> Forecaster:
    for value in values:
        forecaster.note(value)
    return forecaster


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
class TestEveryForecaster:
    def test_gives_as_many_steps_as_asked_none_below_zero(self, make: Callable[[], Forecaster]) -> None:
        forecaster = make()
        for value in (0.0, 9.0, 0.0, 0.0, 0.0, 100.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0):
            forecaster.note(value)
            found = forecaster.ahead(6)
            assert len(found) == len(found.lower) == len(found.upper) == 6
            assert all(0 <= each < math.inf for each in found)

    def test_asking_changes_nothing(self, make: Callable[[], Forecaster]) -> None:
        asked, silent = make(), make()
        for value in (1.0, 5.0, 2.0, 4.0, 1.5, 5.5, 2.5):
            asked.note(value)
            silent.note(value)
            assert asked.ahead(3) == asked.ahead(3)
        assert asked.ahead(3) == silent.ahead(3)

    def test_a_constant_stays_what_it_is(self, make: Callable[[], Forecaster]) -> None:
        if make is not MAKERS["oracle"]:
            assert list(told(make(), [5.0] * 30).ahead(3)) == pytest.approx([5.0] * 3)

    def test_no_step_at_all_is_refused(self, make: Callable[[], Forecaster]) -> None:
        with pytest.raises(BadInput, match="steps ahead is 0"):
            told(make(), [1.0]).ahead(0)


@pytest.mark.parametrize("name", ["caf", "waaf", "seasonal", "additive", "multiplicative", "peak"])
def test_nothing_is_forecast_from_nothing(name: str) -> None:
    with pytest.raises(BadInput, match="at least one value"):
        MAKERS[name]().ahead(1)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_forecaster_is_told_finite_values_alone(value: float) -> None:
    for make in (caf, lambda: SeasonalNaive(4), lambda: HoltWinters(4)):
        with pytest.raises(BadInput, match="a forecaster was told"):
            make().note(value)


def test_a_season_that_is_not_full_yet_gives_the_last_value() -> None:
    assert list(told(SeasonalNaive(4), [1.0, 2.0, 3.0]).ahead(2)) == [3.0, 3.0]
    assert list(told(HoltWinters(4), [1.0, 2.0, 3.0]).ahead(2)) == [3.0, 3.0]


def test_readings_take_the_mean_the_highest_and_the_lowest() -> None:
    values = Forecast((2.0, 6.0, 4.0))
    assert (average(values), peak(values), trough(values)) == (4.0, 6.0, 2.0)


def test_a_forecast_has_a_bound_for_each_step() -> None:
    with pytest.raises(BadInput, match="2 steps has 1 lower bounds"):
        Forecast((1.0, 2.0), (0.5,))


class TestHoltWinters:
    def test_one_additive_step_is_as_written_out(self) -> None:
        forecaster = told(HoltWinters(2, candidates=(Weights(0.5, 0.2, 0.4, damping=0.9),)), [8.0, 12.0, 10.0, 15.0])
        # First season: level 10, trend 0, seasons −2 and +2.
        # 10: level .5 · (10 + 2) + .5 · 10 = 11; trend .2 · (11 − 10) + .8 · .9 · 0 = .2;
        #     season .4 · (10 − 10) + .6 · −2 = −1.2
        # 15: base 11 + .9 · .2 = 11.18; level .5 · (15 − 2) + .5 · 11.18 = 12.09;
        #     trend .2 · (12.09 − 11) + .8 · .9 · .2 = .362; season .4 · (15 − 11.18) + .6 · 2 = 2.728
        # Ahead: 12.09 + .9 · .362 − 1.2 = 11.2158, and 12.09 + (.9 + .81) · .362 + 2.728 = 15.43702
        assert list(forecaster.ahead(2)) == pytest.approx([11.2158, 15.43702])

    def test_one_multiplicative_step_is_as_written_out(self) -> None:
        weights = (Weights(0.5, 0.2, 0.4, damping=0.9),)
        forecaster = told(HoltWinters(2, Season.MULTIPLICATIVE, weights), [8.0, 12.0, 10.0])
        # Level 10, seasons .8 and 1.2. 10: level .5 · 10 / .8 + .5 · 10 = 11.25; trend .2 · 1.25 = .25;
        # season .4 · 10 / 10 + .6 · .8 = .88. Ahead: (11.25 + .225) · 1.2, and (11.25 + .4275) · .88.
        assert list(forecaster.ahead(2)) == pytest.approx([11.475 * 1.2, 11.6775 * 0.88])

    def test_a_trend_fades(self) -> None:
        forecaster = told(HoltWinters(1, Season.NONE, (Weights(0.9, 0.5, damping=0.5),)), [1.0, 2.0, 3.0, 4.0, 5.0])
        rises = np.diff(forecaster.ahead(4))
        assert rises[1:] == pytest.approx(rises[:-1] * 0.5)
        assert rises[0] > 0

    def test_a_season_that_grows_with_the_level_is_better_met_as_a_product(self) -> None:
        steps = np.arange(600)
        series = ((10 + steps / 20) * (1 + 0.5 * np.sin(2 * np.pi * steps / 24))).tolist()
        errors = {kind: backtest(series, HoltWinters(24, kind), ahead=12).total.mae for kind in Season}
        assert errors[Season.MULTIPLICATIVE] < errors[Season.ADDITIVE] < errors[Season.NONE]

    def test_weights_are_chosen_by_what_errs_less(self) -> None:
        calm, nervous = Weights(0.05), Weights(0.9)
        noise = np.random.default_rng(1).normal(100, 10, 400).tolist()
        walk = (1000 + np.cumsum(np.random.default_rng(1).normal(0, 10, 400))).tolist()
        for series, best in ((noise, calm), (walk, nervous)):
            forecaster = HoltWinters(1, Season.NONE, (calm, nervous))
            told(forecaster, series)
            assert forecaster.weights == best

    def test_a_daily_curve_with_noise_is_met_better_than_by_the_day_before_or_the_last_value(self) -> None:
        steps, rng = np.arange(6 * 288), np.random.default_rng(5)
        series = ((40 + 35 * np.sin(2 * np.pi * steps / 288)) * rng.uniform(0.8, 1.2, len(steps))).tolist()
        makers = (lambda: HoltWinters(288), lambda: SeasonalNaive(288), caf)
        season, day_before, last = (backtest(series, make(), ahead=12, every=3).total.mae for make in makers)
        assert season < day_before
        assert season < last

    def test_weights_are_parts(self) -> None:
        with pytest.raises(BadInput, match=r"weight of the trend is 1\.5"):
            Weights(0.5, 1.5)
        with pytest.raises(BadInput, match="at least one set of weights"):
            HoltWinters(4, candidates=())


class TestBanded:
    def test_with_too_few_errors_no_bound_is_known(self) -> None:
        # 18 errors cannot leave 5 % on each side, 19 can: 1 of 20 places.
        assert told(Banded(caf(), steps=1), [1.0] * 19).ahead(1).lower == (None,)
        assert told(Banded(caf(), steps=1), [1.0] * 20).ahead(1).lower == (1.0,)

    def test_each_error_is_that_of_its_own_step(self) -> None:
        found = told(Banded(SeasonalNaive(3), steps=3), [1.0, 5.0, 9.0] * 20).ahead(3)
        # But for the first steps, before a season was full, no forecast erred: 2 of 57 errors, fewer than 5 %.
        assert found.lower == found.upper == found.values == (1.0, 5.0, 9.0)

    def test_beyond_the_distance_that_is_learnt_no_bound_is_known(self) -> None:
        found = told(Banded(caf(), steps=2), [1.0] * 100).ahead(3)
        assert found.upper == (1.0, 1.0, None)

    def test_intervals_hold_what_they_promise_and_widen_with_the_distance(self) -> None:
        walk = (10_000 + np.cumsum(np.random.default_rng(2).normal(0, 10, 6000))).tolist()
        found = backtest(walk, Banded(caf(), steps=6), ahead=6)
        assert [each.coverage for each in found.by_step] == pytest.approx([0.9] * 6, abs=0.03)
        last = told(Banded(caf(), steps=6), walk).ahead(6)
        widths = [high - low for low, high in zip(last.lower, last.upper, strict=True) if low and high]
        assert len(widths) == 6
        assert widths[5] > 1.8 * widths[0]  # √6 = 2.4 of a random walk


class TestBacktest:
    def test_errors_by_distance_are_as_written_out(self) -> None:
        found = backtest([2.0, 4.0, 4.0, 8.0, 0.0], caf(), ahead=2, begin=2)
        # From 4, 4 and 8: one step ahead errors 0, 4, 8 of 4, 8, 0; two ahead 4, 4 of 8, 0.
        one, two = found.by_step
        assert (one.count, one.mae, one.wape) == (3, 4.0, 12 / 12)
        assert one.mape == pytest.approx((0 / 4 + 4 / 8) / 2)  # a truth of zero has no percentage
        assert (two.count, two.mae, two.mape, two.wape) == (2, 4.0, 4 / 8, 8 / 8)
        assert one.mase == 4.0 / 2.0  # before the backtest begins, the last value erred by |4 − 2|
        assert (found.total.count, found.total.mae, found.total.step) == (5, 20 / 5, None)

    def test_what_cannot_be_told_is_none(self) -> None:
        found = backtest([0.0] * 9, caf(), ahead=1).total
        assert (found.mae, found.mape, found.wape, found.mase, found.coverage) == (0.0, None, None, None, None)

    def test_coverage_counts_the_truth_within_its_interval(self) -> None:
        class Fixed:
            def note(self, value: float) -> None: ...

            def ahead(self, steps: int) -> Forecast:
                return Forecast((5.0,) * steps, (4.0,) * steps, (6.0,) * (steps - 1) + (None,))

        found = backtest([5.0, 4.0, 6.5, 6.0, 9.0], Fixed(), ahead=2, begin=1)
        # One step ahead: 4, 6.5, 6, 9 of which 4 and 6 lie within; two ahead no upper bound is known.
        assert [(each.coverage, each.banded) for each in found.by_step] == [(0.5, 4), (None, 0)]

    def test_a_forecast_sees_only_what_lay_before_it(self) -> None:
        heard: list[float] = []

        class Listens:
            def note(self, value: float) -> None:
                heard.append(value)

            def ahead(self, steps: int) -> Forecast:
                return Forecast((heard[-1] + 1,) * steps)

        assert backtest([float(step) for step in range(30)], Listens(), ahead=1).total.mae == 0.0

    def test_the_last_third_is_what_counts_and_every_leaves_steps_out(self) -> None:
        found = backtest([1.0] * 30, caf(), ahead=1)
        assert (found.begin, found.total.count) == (20, 10)
        assert backtest([1.0] * 30, caf(), ahead=1, every=4).total.count == 3

    @pytest.mark.parametrize(("length", "begin"), [(5, 0), (5, 5), (1, None), (0, None)])
    def test_a_series_that_is_too_short_is_refused(self, length: int, begin: int | None) -> None:
        with pytest.raises(BadInput, match="cannot be forecast from value"):
            backtest([1.0] * length, caf(), 1, begin)
