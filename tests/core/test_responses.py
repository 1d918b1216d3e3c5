"""Response times in bins: collected in one go, they are what they are one by one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.responses import Collected, Responses, bin_of

TIMES = st.floats(0.0, 500.0)
SPREADS = st.lists(st.tuples(TIMES, TIMES, st.floats(0.1, 1e6)), max_size=8)


@given(SPREADS, st.sampled_from([1.0, 120.0]))
def test_what_is_collected_is_the_sum_of_all_spreads(spreads: list[tuple[float, float, float]], unit_s: float) -> None:
    collected = Collected(unit_s)
    for low_s, high_s, events in spreads:
        collected.add(low_s, high_s, events)
    one_by_one = Responses.merged(Responses.spread(*spread, unit_s) for spread in spreads)
    together = collected.taken()
    assert together.count == pytest.approx(one_by_one.count)
    assert together.sum_s == pytest.approx(one_by_one.sum_s)
    assert dict(together.bins) == pytest.approx(dict(one_by_one.bins), rel=1e-6, abs=1e-6)


def test_many_events_within_a_moment_do_not_blur_the_few_that_took_longer() -> None:
    spreads = [(0.0, 316.0, 3.0), (0.0, 1e-6, 1e6)]
    collected = Collected(1.0)
    for low_s, high_s, events in spreads:
        collected.add(low_s, high_s, events)
    # Of three spread over 316 s, those above 100 s: at 10¹² events a second a running sum is off by a tenth of them.
    assert collected.taken().later_than(100.0) == pytest.approx(3 * 216 / 316)


def test_what_was_taken_does_not_come_again() -> None:
    collected = Collected()
    collected.add(1.0, 9.0, 5.0)
    assert collected.taken().count == 5.0
    assert collected.taken() == Responses()


def test_no_event_is_late_by_a_rounding() -> None:
    collected = Collected(unit_s=120.0)
    for low_s in range(1, 60):
        collected.add(float(low_s), 119.9, 1e9 / low_s)
    assert collected.taken().later_than(120.0) == 0.0


def test_an_event_that_is_never_answered_has_a_bin() -> None:
    assert bin_of(math.inf) == bin_of(1e12)


def test_what_was_answered_at_once_took_no_time() -> None:
    served = Responses.merged([Responses.spread(0.0, 0.0, 60, unit_s=120.0), Responses.spread(30.0, 30.0, 40, 120.0)])
    assert served.percentile(0.5) == 0.0
    assert served.percentile(0.95) == pytest.approx(30.0, rel=0.025)
