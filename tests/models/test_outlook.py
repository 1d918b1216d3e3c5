"""What is to come, by hand and on streams whose future is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.core.allocation import Allocation
from penstock.core.observation import Batch, Observation, WorkerTable
from penstock.models.capacity import linear
from penstock.models.outlook import Outlook
from penstock.models.tracking import Stalls, StartTimes, TrackedCapacity


def followed(rates: list[float], tick_s: float = 60.0, ahead_s: float = 150.0) -> list[tuple[float, float]]:
    """Expected and upper rate after each tick."""
    outlook, found = Outlook(tick_s, ahead_s), []
    for rate in rates:
        outlook.note(rate * tick_s)
        found.append((outlook.rate, outlook.upper))
    return found


def test_a_stream_that_stands_still_and_comes_back_is_no_error() -> None:
    found = followed([10.0] * 50 + [0.0] * 50 + [10.0] * 50)
    assert all(math.isfinite(upper) and upper >= rate >= 0 for rate, upper in found)
    assert found[99][0] < 0.1
    assert found[-1][0] == pytest.approx(10.0, rel=0.1)


def test_outages_do_not_teach_to_follow_the_last_tick() -> None:
    # Through an outage the last tick is always right; between outages it is noise, which a mean averages out.
    ticks = np.arange(4000)
    whole = 1000.0 * np.exp(np.random.default_rng(5).normal(0.0, 0.2, len(ticks)))
    torn = np.where(ticks % 1000 >= 980, 0.0, whole)
    calm = (ticks > 1000) & (ticks % 1000 > 100) & (ticks % 1000 < 970)
    without, with_outages = (
        float(np.std(np.log([rate for rate, _ in followed(list(rates))])[calm])) for rates in (whole, torn)
    )
    assert with_outages < 2.5 * without  # 3.5 times, where each step was learnt from in full


def test_a_daily_rise_is_expected_on_the_second_day() -> None:
    day = [100.0 if minute < 720 else 1000.0 for minute in range(1440)]
    found = followed(day * 5)
    first, last = found[719][0], found[4 * 1440 + 719][0]
    assert first == pytest.approx(100.0, rel=0.05)
    assert last > 1.5 * first  # the jump comes within the next minutes, as on each day before


def test_the_upper_rate_is_seldom_exceeded_and_not_far_above() -> None:
    rng = np.random.default_rng(3)
    tick_s, rate = 10.0, 50.0
    counts = rng.poisson(rate * tick_s, 5000)
    found = followed([count / tick_s for count in counts], tick_s, ahead_s=100.0)
    came = np.convolve(counts, np.ones(10), "valid") / 100.0
    upper = np.array([each[1] for each in found])[1000:-10]
    exceeded = float(np.mean(came[1001 : 1001 + len(upper)] > upper))
    assert exceeded < 0.15
    assert upper.mean() < 1.08 * rate


def seen(time_s: float, running: int, target: Allocation, pending: dict[str, float]) -> Observation:
    there = target.only({worker.name for worker in target.workers[:running]})
    return Observation(time_s, 10.0, 0, 0, 0, 0, 0, 0, 0, 0, there, target, pending=pending)


def test_starts_are_learnt_from_workers_that_were_pending_and_run() -> None:
    starts, target = StartTimes(None), Allocation.of(2)
    for tick in range(1, 20):
        starts.note(seen(10.0 * tick, 1, target, {"w2": 0.0}))
    before = starts.expected_s
    starts.note(seen(200.0, 2, target, {}))
    # It came between 190 and 200 s, which is longer than the 90 s that nobody had said.
    assert before == 90.0
    assert starts.expected_s == pytest.approx(90.0 + 0.5 * (195.0 - 90.0))


def test_a_gap_in_what_was_seen_is_no_start_that_took_as_long() -> None:
    starts, target = StartTimes(None), Allocation.of(2)
    starts.note(seen(10.0, 1, target, {"w2": 0.0}))
    starts.note(seen(60_010.0, 1, target, {"w2": 0.0}))  # a night that the trace leaves out
    starts.note(seen(60_020.0, 2, target, {}))
    assert starts.expected_s == 90.0


def joined(tick: int, ran_s: dict[str, tuple[float, float]]) -> Observation:
    """A look every 300 s at workers, each paid since, and running since."""
    crew, (paid, ran) = Allocation.of(len(ran_s)), zip(*ran_s.values(), strict=True)
    table = WorkerTable(tuple(ran_s), {"paid_since_s": paid, "runs_since_s": ran})
    return Observation(300.0 * tick, 300.0, 0, 0, 0, 0, 0, 0, 0, 0, crew, crew, table)


def test_a_start_within_one_tick_is_seen_too() -> None:
    # Ticks of 5 minutes never show a worker that is pending for 40 s; taken for unseen, none was given up any more.
    starts = StartTimes(90.0)
    starts.note(joined(1, {"w1": (0.0, 0.0)}))
    before = starts.were_seen
    starts.note(joined(2, {"w1": (0.0, 0.0), "w2": (300.0, 340.0)}))
    assert (before, starts.were_seen) == (False, True)
    assert starts.expected_s == pytest.approx(90.0 - 0.1 * (90.0 - 40.0))


def test_a_worker_that_nobody_asked_for_says_nothing_of_starts() -> None:
    starts = StartTimes(90.0)
    starts.note(joined(1, {"w1": (0.0, 0.0)}))
    starts.note(joined(2, {"w1": (0.0, 0.0), "w2": (410.0, 410.0)}))
    assert (starts.were_seen, starts.expected_s) == (False, 90.0)


class TestTrackedCapacity:
    def observation(self, tick: int, done: float, waits: float, batch: Batch | None = None) -> Observation:
        crew = Allocation.of(4)  # a live plant makes it anew at every look
        return Observation(60.0 * tick, 60.0, 0, 60.0 * done * tick, 0, 0, 0, waits, 0, 0, crew, crew, batch=batch)

    def setup_method(self) -> None:
        self.tracked = TrackedCapacity(fading=1.0)

    def test_workers_that_do_less_than_the_model_says_are_found_out(self) -> None:
        for tick in range(1, 4):
            self.tracked.note(self.observation(tick, done=30.0, waits=5000.0), linear(10.0))
        assert self.tracked.ratio == pytest.approx(0.75)

    def test_workers_that_wait_for_events_tell_nothing(self) -> None:
        for tick in range(1, 4):
            self.tracked.note(self.observation(tick, done=30.0, waits=0.0), linear(10.0))
        assert self.tracked.ratio == 1.0

    def test_in_batches_a_batch_tells_it_once(self) -> None:
        # 800 rows of a model that does 40/s, in 27 s: 2 s before the first row, and 25 s instead of 20.
        batch = Batch(800.0, 30.0, 27.0, 2.0, 5.0, number=7)
        for tick in range(1, 4):
            self.tracked.note(self.observation(tick, done=0.0, waits=9.0, batch=batch), linear(10.0, fixed_s=2.0))
        assert self.tracked.ratio == 1.0  # it was there when all began: on which workers, nobody knows
        self.tracked.note(self.observation(4, 0.0, 9.0, Batch(800.0, 30.0, 27.0, 2.0, 5.0, 8)), linear(10.0, 2.0))
        assert self.tracked.ratio == pytest.approx(20.0 / 25.0)


class TestStalls:
    def look(self, stalls: Stalls, time_s: float, number: int, took_s: float, since: tuple[float, ...]) -> float:
        """A batch of 400 rows on workers of 10/s that has just ended."""
        names = tuple(f"w{place}" for place in range(len(since)))
        crew, batch = Allocation.of(len(since)), Batch(400.0, 30.0, took_s, 2.0, 0.0, number)
        table = WorkerTable(names, {"runs_since_s": since})
        stalls.note(
            Observation(time_s, 30.0, 0, 0, 0, 0, 0, 0, 0, 0, crew, crew, table, batch=batch), linear(10.0, 2.0)
        )
        return stalls.expected_s

    def test_a_batch_that_waits_for_a_new_worker_shows_how_long_and_others_show_nothing(self) -> None:
        stalls = Stalls()
        assert self.look(stalls, 100.0, 1, 60.0, (0.0, 0.0)) == 0.0  # slow, but nobody is new
        # One joins at 110 s. By themselves the two would have taken 2 + 400 / 20 = 22 s.
        assert self.look(stalls, 180.0, 2, 72.0, (0.0, 0.0, 110.0)) == pytest.approx(0.5 * 50.0)
        # The next one is the first that it does from begin to end: it took no longer than it should.
        assert self.look(stalls, 240.0, 3, 22.0, (0.0, 0.0, 110.0)) == pytest.approx(0.9 * 25.0)
        assert self.look(stalls, 300.0, 4, 60.0, (0.0, 0.0, 110.0)) == pytest.approx(0.9 * 25.0)
