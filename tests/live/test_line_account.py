"""Lines at an operator that serves them in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.line_account import LineAccount, responses_of

GAPS = st.lists(st.floats(0.001, 3.0), min_size=1, max_size=30)


def account(sent: list[float]) -> LineAccount:
    lines = LineAccount(1.0)
    lines.sent(np.asarray(sent))
    return lines


def test_a_line_that_was_dropped_is_done_when_a_later_one_comes_out() -> None:
    lines = account([1.0, 2.0, 3.0])
    lines.answered(np.array([2.0]), np.array([2.5]))
    assert (lines.waiting, lines.processed, lines.oldest_s) == (1, 2, 3.0)
    assert lines.take_responses().count == 1


def test_each_line_is_answered_by_the_first_batch_that_has_seen_it() -> None:
    lines = account([1.0, 2.0, 3.0, 4.0])
    # One batch put out two keys at 5 s, the next one key at 9 s: lines of 1, 2 and 3 s were in the first.
    lines.answered_in_batches(np.array([1.0, 3.0, 4.0]), np.array([5.0, 5.0, 9.0]))
    taken = lines.take_responses()
    assert taken.count == 4
    assert taken.sum_s == pytest.approx(4.0 + 3.0 + 2.0 + 5.0)
    assert lines.waiting == 0


def test_lines_of_two_senders_that_stand_out_of_order_are_answered_too() -> None:
    lines = account([10.0, 10.2, 10.05, 10.1])
    lines.answered_in_batches(np.array([10.1]), np.array([12.0]))
    assert lines.processed == 4


def test_time_is_late_while_the_oldest_line_is_older_than_the_bound() -> None:
    lines = account([10.0, 10.5, 19.0])
    lines.answered(np.array([10.0, 10.5]), np.array([13.0, 13.5]))
    # Late from 11 to 13 by the first, to 13.5 by the second; the third is 1 s old at 20 s.
    assert lines.late_s(1.0, 10.0, 20.0) == pytest.approx(2.5)
    assert lines.late_s(1.0, 12.0, 20.0) == pytest.approx(1.5)


@given(GAPS, st.lists(st.floats(0.0, 5.0), min_size=30, max_size=30), st.floats(0.1, 3.0))
def test_late_time_is_what_a_fine_grid_counts(gaps: list[float], more: list[float], bound_s: float) -> None:
    sent = np.cumsum(gaps)
    done = np.maximum.accumulate(sent + np.asarray(more[: len(sent)]))
    lines = account(list(sent))
    lines.answered(sent, done)
    grid = np.linspace(0.0, 20.0, 20_001)
    counted = sum(((sent + bound_s <= at) & (at < done)).any() for at in grid) * 0.001
    assert lines.late_s(bound_s, 0.0, 20.0) == pytest.approx(counted, abs=0.001 * (len(sent) + 2))


@given(st.lists(st.floats(0.0, 1e6), max_size=50))
def test_a_histogram_counts_and_sums_all_times(times: list[float]) -> None:
    found = responses_of(np.asarray(times), 0.25)
    assert found.count == sum(found.bins.values()) == len(times)
    assert found.sum_s == pytest.approx(sum(times))
