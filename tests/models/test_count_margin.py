"""How many will come, hardly more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.models.count_margin import CountMargin


def noted(counts: list[float], ahead_s: float = 100.0) -> CountMargin:
    margin = CountMargin(10.0, ahead_s)
    for count in counts:
        margin.note(count)
    return margin


def test_of_a_poisson_stream_it_is_the_poisson_quantile() -> None:
    counts = np.random.default_rng(1).poisson(100.0, 2000)
    # 1,000 are expected in ten ticks, and a deviation is √1000: 1.5 of them above are 1,047.
    assert noted(list(counts)).upper(10.0, 1.5) * 100 == pytest.approx(1047, rel=0.02)


def test_bursts_that_last_some_ticks_make_more_room_than_those_that_do_not() -> None:
    rng = np.random.default_rng(2)
    lasting = np.repeat(rng.choice([50.0, 150.0], 400), 5)
    brief = rng.permutation(lasting)
    assert noted(list(lasting)).variance(1000.0) > 2 * noted(list(brief)).variance(1000.0)


def test_the_variance_of_a_stretch_is_that_of_counts_added_up() -> None:
    rng, state, counts = np.random.default_rng(3), 0, []
    for _ in range(20_000):
        state = state if rng.random() < 0.8 else 1 - state
        counts.append(float(rng.poisson((60.0, 140.0)[state])))
    sums = np.asarray(counts).reshape(-1, 10).sum(axis=1)
    found = np.mean([noted(counts[at - 2000 : at]).variance(1000.0) for at in range(2000, 20_001, 2000)])
    assert found == pytest.approx(sums.var(), rel=0.25)


@given(st.lists(st.floats(0.0, 1e6), max_size=60), st.floats(0.0, 1e5), st.floats(0.0, 3.0))
def test_it_is_never_below_what_is_expected(counts: list[float], rate: float, kappa: float) -> None:
    assert noted(counts).upper(rate, kappa) >= rate
