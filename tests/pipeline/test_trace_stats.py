"""Statistics of inter-arrival times, against the same sums written out in Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from penstock.models.arrivals.summary import LAGS as FITTED_LAGS
from penstock.models.arrivals.window import Window as ArrivalWindow
from penstock.pipeline import stats
from penstock.pipeline.order import with_previous
from penstock.pipeline.request import TraceSummary

pytestmark = pytest.mark.spark
Trace = Callable[..., TraceSummary]


def bursty(count: int) -> list[int]:
    """Inter-arrival times in µs that remember: calm and busy stretches."""
    rng, busy, gaps = random.Random(5), False, []
    for _ in range(count):
        busy = busy != (rng.random() < 0.05)
        gaps.append(round(rng.expovariate(1 / (1_000 if busy else 20_000))))
    return gaps


def autocorrelation(gaps: np.ndarray, lag: int) -> float:
    off = gaps - gaps.mean()
    return float((off[lag:] * off[:-lag]).sum() / (off * off).sum())


def test_moments_and_autocorrelations_are_exact_for_inter_arrival_times(trace: Trace, tmp_path: Path) -> None:
    gaps = np.array(bursty(5_000), dtype=float)
    source = tmp_path / "a.csv"
    source.write_text("iat_us\n" + "\n".join(f"{gap:.0f}" for gap in gaps))
    found = trace(source, every_s=1, stats=True).stats
    assert found is not None
    assert found.count == 5_000
    assert found.mean_s == pytest.approx(gaps.mean() / 1e6, rel=1e-12)
    assert found.scv == pytest.approx(gaps.var() / gaps.mean() ** 2, rel=1e-10)
    assert found.skewness == pytest.approx(((gaps - gaps.mean()) ** 3).mean() / gaps.std() ** 3, rel=1e-10)
    for lag, value in found.autocorrelation.items():
        assert value == pytest.approx(autocorrelation(gaps, lag), rel=1e-9, abs=1e-12)
    sums = gaps.reshape(50, 100).sum(axis=1)
    assert found.dispersion_of_intervals_100 == pytest.approx(sums.var() / (100 * gaps.mean() ** 2), rel=1e-10)


def test_shuffled_times_with_ties_give_the_same_as_their_sorted_differences(trace: Trace, tmp_path: Path) -> None:
    rng = random.Random(2)
    times = [rng.randrange(4_000) for _ in range(3_000)]
    source = tmp_path / "a.csv"
    source.write_text("t_ms\n" + "\n".join(map(str, times)))
    summary = trace(source, every_s=1, stats=True)
    gaps = np.diff(np.array(sorted(times), dtype=float))
    found = summary.stats
    assert found is not None
    assert found.count == 2_999
    assert found.scv == pytest.approx(gaps.var() / gaps.mean() ** 2, rel=1e-10)
    assert found.autocorrelation[1] == pytest.approx(autocorrelation(gaps, 1), rel=1e-9)
    per_second = np.bincount(np.array(times) // 1000)
    assert found.dispersion_of_counts == pytest.approx(per_second.var() / per_second.mean(), rel=1e-10)


def test_a_log_says_that_its_ties_come_from_its_resolution(trace: Trace, tmp_path: Path) -> None:
    line = '10.0.0.1 - - [10/Oct/2000:13:55:{:02} +0000] "GET / HTTP/1.0" 200 1'
    source = tmp_path / "access.log"
    source.write_text("\n".join(line.format(second) for second in (1, 1, 4, 5)))
    summary = trace(source, stats=True)
    # The differences are 0, 3 and 1 s.
    assert summary.stats is not None
    assert summary.stats.mean_s == pytest.approx(4 / 3)
    assert "resolution of 1 s" in summary.notes[-1]


def test_cutting_the_order_into_chunks_changes_nothing(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "BLOCK", 256)
    # A block gets rows of the one before it only: no lag may be longer than a block.
    monkeypatch.setattr(stats, "LAGS", tuple(lag for lag in stats.LAGS if lag <= 256))
    gaps = np.array(bursty(2_000), dtype=float)
    times = np.concatenate([[0], gaps.cumsum()]).astype(int)
    rows, counts = np.unique(times, return_counts=True)
    values = ",".join(f"({at}L, {count}L)" for at, count in zip(rows, counts, strict=True))
    points = spark.sql(f"SELECT * FROM VALUES {values} AS points(at, events)").repartition(5)
    previous = {row["at"]: row["previous"] for row in with_previous(points, "at", "at", chunk_rows=100).collect()}
    assert previous == dict(zip(rows.tolist(), [None, *rows.tolist()[:-1]], strict=True))
    series = stats.gaps_between(points, chunk_rows=100)
    assert [row["gap"] for row in series.orderBy("index").collect()] == gaps.tolist()
    sums = stats.lagged(series, gaps.mean()).first()
    assert sums is not None
    off = gaps - gaps.mean()
    for lag in stats.LAGS:
        assert sums[f"lag{lag}"] == pytest.approx((off[lag:] * off[:-lag]).sum(), rel=1e-9)


def test_a_log_of_any_size_has_the_statistics_that_are_fitted_in_memory(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Many blocks, so that all lags reach from one into another.
    monkeypatch.setattr(stats, "BLOCK", 2048)
    gaps = np.array(bursty(12_000), dtype=float) + 1.0
    source = tmp_path / "a.csv"
    source.write_text("iat_us\n" + "\n".join(f"{gap:.0f}" for gap in gaps))
    found = trace(source, every_s=1, stats=True).stats
    assert found is not None
    window = ArrivalWindow.of(gaps / 1e6)
    assert found.scv == pytest.approx(window.scv, rel=1e-9)
    assert found.skewness == pytest.approx(window.skewness, rel=1e-9)
    assert set(FITTED_LAGS) <= set(found.autocorrelation)
    for lag in FITTED_LAGS:
        assert found.autocorrelation[lag] == pytest.approx(float(window.correlations[lag]), rel=1e-9, abs=1e-12)
