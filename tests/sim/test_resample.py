"""A load at another interval: nothing is lost, and what was made up is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import BadInput
from penstock.sim.resample import resampled
from penstock.sim.workloads import Load


def test_longer_intervals_are_sums_and_what_lacks_some_is_said() -> None:
    load, note = resampled(Load.of(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 60.0), 120.0)
    assert (load.arrivals.tolist(), load.times_s.tolist(), load.tick_s) == ([1 + 2, 3 + 4, 5], [120, 240, 360], 120)
    assert note is not None
    assert "1 of 3 lack some" in note


def test_shorter_intervals_share_evenly_and_that_is_said() -> None:
    load, note = resampled(Load.of(np.array([60.0, 120.0]), 60.0), 20.0)
    assert load.arrivals.tolist() == [20, 20, 20, 40, 40, 40]
    assert load.times_s.tolist() == [20, 40, 60, 80, 100, 120]
    assert note == "arrivals of 60 s were spread evenly over 20 s: bursts are lost"


def test_a_gap_stays_a_gap() -> None:
    known = Load(np.array([1.0, 2.0, 3.0, 4.0]), np.array([60.0, 120.0, 420.0, 480.0]), 60.0, origin_s=5.0)
    longer, _ = resampled(known, 120.0)
    assert (longer.times_s.tolist(), longer.arrivals.tolist(), longer.origin_s) == ([120, 480], [3, 7], 5.0)
    shorter, _ = resampled(known, 30.0)
    assert shorter.times_s.tolist() == [30, 60, 90, 120, 390, 420, 450, 480]


def test_the_same_interval_is_no_change() -> None:
    load = Load.of(np.array([1.0, 2.0]), 60.0)
    assert resampled(load, 60.0) == (load, None)


@pytest.mark.parametrize(("tick_s", "right"), [(90.0, "120 s is"), (25.0, "30 s is")])
def test_an_interval_that_is_no_multiple_is_refused(tick_s: float, right: str) -> None:
    with pytest.raises(BadInput, match=right):
        resampled(Load.of(np.array([1.0]), 60.0), tick_s)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.sampled_from([5.0, 20.0, 60.0, 180.0, 600.0]))
def test_nothing_is_lost(counts: list[int], tick_s: float) -> None:
    load, _ = resampled(Load.of(np.array(counts, dtype=np.float64), 60.0), tick_s)
    assert load.arrivals.sum() == pytest.approx(sum(counts))
    assert (np.diff(load.times_s) > 0).all()
