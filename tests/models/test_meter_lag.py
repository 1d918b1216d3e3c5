"""How late a meter is: found in the data, and allowed for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from penstock.models.meter_lag import PAPERS_LAG, MeterLag, lagged, shown
from penstock.models.transition import Learner, Sample, learn


def steps_run(lag: float, noise: float = 0.02, seconds: int = 900) -> list[Sample]:
    """A worker of 5 events a second under 1 and 3 a second by turns, whose meter is so many samples behind."""
    rng = np.random.default_rng(5)
    rates = np.array([3.0 if second // 15 % 2 else 1.0 for second in range(seconds)])
    whole, part = int(lag), lag - int(lag)
    late = np.concatenate([rates[:1].repeat(whole + 1), rates])
    seen = (1 - part) * late[1 : seconds + 1] + part * late[:seconds]
    changes = np.diff(rates, prepend=rates[0])
    return [
        Sample(("a",), np.array([[load / 5.0 + noise * rng.standard_normal()]]), np.array([rate, change]))
        for load, rate, change in zip(seen, rates, changes, strict=True)
    ]


@pytest.mark.parametrize("lag", [0.0, 0.5, 1.0, 2.0, 4.0])
def test_whatever_the_lag_b_and_the_lag_are_found(lag: float) -> None:
    learnt = learn(steps_run(lag))
    assert learnt is not None
    assert learnt.lag == pytest.approx(lag, abs=0.1)
    assert learnt.b[0] == pytest.approx(1 / 5.0, rel=0.1)
    assert learnt.r[0, 0] == pytest.approx(0.02**2, rel=0.25)


@pytest.mark.parametrize("lag", [0.0, 2.0])
def test_equation_5_as_printed_finds_nothing_where_the_meter_is_not_one_sample_late(lag: float) -> None:
    learnt = learn(steps_run(lag), lag=PAPERS_LAG)
    assert learnt is not None
    assert abs(learnt.b[0]) < 0.02


def test_noise_alone_leaves_the_papers_lag() -> None:
    rng = np.random.default_rng(1)
    meter = MeterLag()
    rates = 2.0 + rng.random(300)
    for before, now in pairwise(rates.tolist()):
        meter.follow(("a",), np.array([[0.5 + 0.1 * rng.standard_normal()]]), np.array([now, now - before]))
    assert meter.lag == PAPERS_LAG


def test_few_samples_choose_no_lag() -> None:
    meter = MeterLag()
    for sample in steps_run(4.0, seconds=45):
        meter.follow(sample.names, sample.z, sample.u)
    assert meter.lag == PAPERS_LAG


def ahead(lag: float, changes: list[float]) -> float:
    meter, rate = MeterLag(lag), 10.0
    for change in changes:
        rate += change
        meter.follow(("a",), np.array([[0.5]]), np.array([rate, change]))
    return meter.ahead()


def test_a_measurement_lacks_what_a_later_meter_has_not_shown_and_has_what_an_earlier_one_shows_already() -> None:
    # Equation 5 adds the last sample's change by itself, so with its own lag nothing is missing.
    assert ahead(1.0, [0.0, 3.0]) == 0.0
    # On time: the 3 are in the measurement, and would be added once more.
    assert ahead(0.0, [0.0, 3.0]) == -3.0
    # Two samples late: the 2 of the sample before are in neither.
    assert ahead(2.0, [2.0, 3.0]) == 2.0
    assert ahead(2.0, [2.0, 3.0, 0.0, 0.0]) == 0.0
    # Half a sample late: half of the 3 is there already.
    assert ahead(0.5, [2.0, 3.0]) == -1.5


def test_shares_of_what_is_shown_and_of_the_inputs_agree() -> None:
    changes = np.arange(6.0)
    assert lagged(np.append(9.0, changes), 1.5).tolist() == [9.0, 1.5]
    assert shown(0.0, np.arange(2.0)).tolist() == [1.0, 1.0]


class TestB:
    """What is believed of b while a job runs."""

    def believed(self, learner: Learner, model: float | None) -> float:
        return float(learner.believed(model)[0])

    def test_before_anything_ran_the_capacity_model_is_believed(self) -> None:
        assert self.believed(Learner(1), 0.05) == 0.05
        assert self.believed(Learner(1), None) == 0.0

    def test_a_model_that_all_measurements_contradict_is_not(self) -> None:
        learner = Learner(1)
        learner.add(20.0, np.array([0.3]), 3.0)
        # 0.3 of a worker did 3 events a second: one costs 0.1 at most, and 0.05 in the middle.
        assert self.believed(learner, 0.6) == pytest.approx(0.05)
        assert self.believed(learner, 0.08) == pytest.approx(0.08)

    def test_a_line_that_is_sure_outweighs_a_model_that_is_wrong(self) -> None:
        rng, learner = np.random.default_rng(2), Learner(1)
        for _ in range(400):
            done = 4 * float(rng.random())
            learner.add(1.0, np.array([0.1 + 0.2 * done + 0.05 * rng.standard_normal()]), done)
        assert self.believed(learner, 0.1) == pytest.approx(0.2, rel=0.05)

    def test_a_jump_that_a_late_meter_does_not_show_yet_teaches_nothing(self) -> None:
        learner, processed = Learner(1), 0.0
        for second in range(200):
            processed += 1.0 if second < 199 else 4.5
            learner.follow(1.0, 1.0, np.array([0.22]), processed, in_batches=False)
        assert self.believed(learner, 0.22) == pytest.approx(0.22)
