"""The adaptive window: against the algorithm as it is written, and against another implementation."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import drift

from penstock.core.errors import BadInput
from penstock.models.drift import Adwin, threshold

loads = st.lists(st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.9, 1.0, 3.0]) | st.floats(0, 12), max_size=60)


def as_written(values: list[float], delta: float, shortest: int, as_cited: bool) -> list[list[float]]:
    """The window after each value, by paper 2 §4: drop the oldest while any split differs by more than ε."""
    window: list[float] = []
    windows = []

    def differs(cut: int) -> bool:
        old, new = window[:cut], window[cut:]
        return abs(statistics.fmean(old) - statistics.fmean(new)) > threshold(len(old), len(new), delta, as_cited)

    for value in values:
        window.append(value)
        while len(window) > shortest and any(differs(cut) for cut in range(1, len(window))):
            window.pop(0)
        windows.append(list(window))
    return windows


@given(values=loads, delta=st.sampled_from([0.02, 0.2, 0.9]), shortest=st.integers(1, 12), as_cited=st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_window_is_that_of_the_algorithm_as_written(
    values: list[float], delta: float, shortest: int, as_cited: bool
) -> None:
    window = Adwin(delta, shortest, longest=64, as_cited=as_cited)
    before = 0
    for value, kept in zip(values, as_written(values, delta, shortest, as_cited), strict=True):
        dropped = window.add(value)
        assert window.size == len(kept) == before + 1 - dropped
        assert window.mean == pytest.approx(statistics.fmean(kept), abs=1e-9)
        before = window.size


def test_a_window_without_values_has_no_mean() -> None:
    assert (Adwin().size, Adwin().mean) == (0, None)


def test_a_step_is_told_once_and_then_the_new_mean_is_known() -> None:
    window = Adwin(delta=0.2)
    told = [window.add(value) > 0 for value in [0.2] * 200 + [0.8] * 200]
    assert not any(told[:200])
    first = told.index(True)
    # 200 + k values: 4 · 0.6² · 200k/(200 + k) > ln(4 · (200 + k)/0.2) = 8.3 from k = 6 on.
    assert first == 205
    assert not any(told[220:])
    assert window.mean == pytest.approx(0.8, abs=0.02)


def test_the_floor_holds_and_the_change_is_told_until_it_has_left_the_window() -> None:
    window = Adwin(delta=0.2, shortest=30)
    dropped = [window.add(value) for value in [0.0] * 100 + [5.0] * 60]
    assert window.size >= 30
    changed = [index for index, count in enumerate(dropped) if count]
    # From the first 5 until the last 0 has left 30 values.
    assert changed == list(range(100, 130))
    assert window.mean == 5.0


def test_a_window_shorter_than_its_floor_grows_to_it() -> None:
    window = Adwin(shortest=10)
    assert [window.add(value) for value in [0.0, 9.0] * 5] == [0] * 10
    assert window.size == 10


def test_the_longest_window_forgets_without_telling_a_change() -> None:
    window = Adwin(longest=50)
    for number in range(1000):
        assert window.add(0.5 + 0.01 * (number % 2)) == 0
    assert window.size == 50
    assert window.mean == pytest.approx(0.505)


def test_long_streams_lose_no_digits() -> None:
    window = Adwin(longest=100)
    for number in range(100_000):
        window.add(1e3 + 0.1 * (number % 2))
    # 10⁵ values of 10³ sum to 10⁸, of which a double has 8 digits behind the point; begun anew, 11.
    assert window.mean == pytest.approx(1000.05, abs=1e-10)


def test_false_alarms_are_rarer_in_the_cited_form() -> None:
    rng = np.random.default_rng(7)
    alarms = {True: 0, False: 0}
    for _ in range(10):
        values = (rng.random(400) < 0.3).astype(float).tolist()
        for as_cited in alarms:
            window = Adwin(delta=0.2, as_cited=as_cited)
            alarms[as_cited] += sum(window.add(value) > 0 for value in values)
    assert alarms[True] <= 1
    assert alarms[True] < alarms[False]


@pytest.mark.parametrize("as_cited", [False, True])
def test_river_finds_the_same_step(as_cited: bool) -> None:
    """River's compares some cuts, every 32 values, with another bound: it drifts alike, not step by step."""
    rng = np.random.default_rng(11)
    values = np.concatenate([rng.random(1000) < 0.2, rng.random(1000) < 0.7]).astype(float).tolist()
    untyped: Any = drift
    ours, theirs = Adwin(delta=0.002, as_cited=as_cited), untyped.ADWIN(delta=0.002)
    told: dict[str, list[int]] = {"ours": [], "theirs": []}
    for index, value in enumerate(values):
        if ours.add(value):
            told["ours"].append(index)
        theirs.update(value)
        if theirs.drift_detected:
            told["theirs"].append(index)
    for name in told:
        assert 1000 <= told[name][0] < 1100, name
    assert ours.mean == pytest.approx(0.7, abs=0.05)
    assert ours.mean == pytest.approx(theirs.estimation, abs=0.05)


def test_bad_input_is_one_line() -> None:
    window = Adwin()
    for value in (math.nan, math.inf, 1e7):
        with pytest.raises(BadInput, match="value of an adaptive window"):
            window.add(value)
    assert window.size == 0
    with pytest.raises(BadInput, match="delta is 0"):
        Adwin(delta=0.0)
    with pytest.raises(BadInput, match="shortest is 9"):
        Adwin(shortest=9, longest=8)


@given(values=loads, delta=st.sampled_from([0.02, 0.2, 0.9]), begin=st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_a_window_that_is_recalled_by_its_lengths_goes_on_like_the_one_that_it_was(
    values: list[float], delta: float, begin: int
) -> None:
    window, again = Adwin(delta, longest=16), Adwin(delta, longest=16)
    half = begin + 16
    for number, value in enumerate(values):
        dropped = window.add(value)
        if begin <= number < half:
            again.recall(value, window.size)
        elif number >= half:
            assert again.add(value) == dropped
            assert again.size == window.size
            assert again.mean == pytest.approx(window.mean, abs=1e-9)
