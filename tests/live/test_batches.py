"""What batches tell, on numbers made up to know the answer."""

from __future__ import annotations

import pytest

from penstock.live.batches import BatchTime, Use, flags, has_converged, split


def test_a_progress_report_becomes_a_batch() -> None:
    report = {"batchId": 7, "numInputRows": 3000, "durationMs": {"addBatch": 1200, "triggerExecution": 1500}}
    assert BatchTime.of(report) == BatchTime(7, 3000, 1.5)
    assert BatchTime.of(report).rate == 2000


def test_a_batch_keeps_what_it_took_and_the_correction_is_derived() -> None:
    slow = BatchTime(7, 3000, 2.0, speed=0.75)
    # It took 2 s on a machine at three quarters of its speed; alone it would have taken 1.5 s.
    assert (slow.rate, slow.corrected.seconds, slow.corrected.rate) == (1500, 1.5, 2000)
    assert slow.corrected.corrected == slow.corrected
    sizes = [[BatchTime(0, rows, 1.0 + rows / 50_000, speed=0.5)] * 3 for rows in (20_000, 100_000)]
    delivered, corrected = split(sizes), split([[each.corrected for each in size] for size in sizes])
    assert (delivered.fixed_s, delivered.rows_per_s) == pytest.approx((1.0, 50_000))
    assert (corrected.fixed_s, corrected.rows_per_s) == pytest.approx((0.5, 100_000))


def test_four_of_five_samples_near_the_one_before_have_converged() -> None:
    assert has_converged([50, 80, 100, 101, 99, 100, 102])
    assert has_converged([100, 101, 130, 129, 130, 128])
    assert not has_converged([100, 120, 100, 120, 100, 120])
    assert not has_converged([100, 100, 100, 100, 100])


def batch(rows: int, seconds: float) -> BatchTime:
    return BatchTime(0, rows, seconds)


def test_fixed_time_and_capacity_are_a_line_through_the_medians() -> None:
    # 1.5 s, and 50,000 rows/s; one batch of each size met a garbage collection.
    sizes = [[batch(rows, 1.5 + rows / 50_000)] * 6 + [batch(rows, 9.0)] for rows in (20_000, 60_000, 180_000)]
    found = split(sizes)
    assert (found.fixed_s, found.rows_per_s) == pytest.approx((1.5, 50_000))


def test_the_fixed_time_is_never_negative() -> None:
    found = split([[batch(10_000, 0.1)], [batch(20_000, 0.4)]])
    # The best line through the origin for relative errors: rates of 100,000 and 50,000.
    assert (found.fixed_s, found.rows_per_s) == pytest.approx((0, (1e5**2 + 5e4**2) / 1.5e5))


def test_batches_that_take_no_longer_when_larger_are_all_fixed_time() -> None:
    found = split([[batch(10_000, 2.0)], [batch(20_000, 1.9)]])
    assert found.fixed_s == pytest.approx(1.9)
    assert found.rows_per_s == pytest.approx(20_000 / 1.9)


@pytest.mark.parametrize(
    ("use", "got", "settled", "expected"),
    [
        (Use({"1": 0.9, "2": 0.8}), 7, True, []),
        (Use({"1": 0.9, "2": 0.8}), 5, True, ["source ran dry"]),
        (Use({"1": 0.9, "2": 0.8}), 7, False, ["did not settle"]),
        (Use({"1": 0.9, "2": 0.8}), 7, None, ["settling not tested"]),
        (Use({"1": 0.2, "2": 0.1}), 7, True, ["bound by the driver"]),
        (Use({"1": 0.9, "2": 0.1, "3": 0.2}), 7, True, ["bound by one hot partition"]),
        (Use({}), 7, True, []),
        (Use({"1": 0.9}, lost=1), 7, True, ["lost an executor"]),
    ],
)
def test_a_sample_that_is_not_to_be_trusted_says_why(
    use: Use, got: int, settled: bool | None, expected: list[str]
) -> None:
    assert flags(use, 7, got, settled) == expected
