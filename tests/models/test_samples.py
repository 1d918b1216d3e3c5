"""Samples on disk: delivered beside corrected, files of earlier versions, and samples that may not have settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from penstock.models.capacity import Capacity
from penstock.models.curve_fitting import fit_model, resampled
from penstock.models.samples import (
    NEWER,
    SCHEMA,
    corrected,
    is_reconstructed,
    read_rows,
    read_samples,
    sustained,
    write_samples,
)
from penstock.models.throughput_curves import Linear
from penstock.models.training import Samples

ROW: dict[str, Any] = {
    "app": "grep",
    "source": "files",
    "repeat": 0,
    "fixed_s": 1.0,
    "bytes_per_row": 50.0,
    "cores": 0.25,
    "partitions": None,
    "partitions_per_worker": 2.0,
    "flags": "",
    "setup": "{}",
    "speed": 0.8,
}


def rows_of(*counts: int, **changes: Any) -> list[dict[str, Any]]:
    return [ROW | {"workers": m, "rows_per_s": 1000.0 * m} | changes for m in counts]


def earlier(rows: list[dict[str, Any]], path: Path) -> Path:
    """A file as it was written before delivered figures were kept."""
    schema = pa.schema([field for field in SCHEMA if field.name not in NEWER])
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


def test_an_earlier_file_opens_and_tells_what_was_delivered(tmp_path: Path) -> None:
    path = earlier(rows_of(1, 2), tmp_path / "old.parquet")
    one, two = read_rows(path)
    # It says what the undisturbed machine would have done; at 0.8 of its speed it did 0.8 of that.
    assert (one["rows_per_s"], one["fixed_s"]) == pytest.approx((800, 1.25))
    assert (one["rows_per_s_corrected"], one["fixed_s_corrected"]) == (1000, 1)
    assert (sustained(one, 10.0), sustained(corrected(two), 10.0)) == pytest.approx((700, 1800))
    assert (is_reconstructed(path), one["limited"]) == (True, None)
    write_samples([one, two], tmp_path / "new.parquet")
    assert read_rows(tmp_path / "new.parquet") == [one, two]
    assert not is_reconstructed(tmp_path / "new.parquet")


def test_where_the_speed_was_not_measured_nothing_is_called_corrected(tmp_path: Path) -> None:
    (one,) = read_rows(earlier(rows_of(1, speed=None), tmp_path / "old.parquet"))
    assert (one["rows_per_s"], one["rows_per_s_corrected"]) == (1000, None)
    assert read_samples(tmp_path / "old.parquet").corrected is None


def test_models_and_errors_are_of_what_was_delivered_with_corrected_errors_beside(tmp_path: Path) -> None:
    # A line of 1,000 rows/s a worker on the undisturbed machine, which was slow while 3 workers were measured.
    speeds = {1: 1.0, 2: 1.0, 3: 0.5}
    rows = [row | {"speed": speeds[row["workers"]]} for row in rows_of(1, 2, 3)]
    fitted = fit_model(read_samples(earlier(rows, tmp_path / "old.parquet")), train=[1, 2])
    line = next(fit for fit in fitted.fits if fit.curve.kind == "linear")
    assert line.errors.test == pytest.approx(1.0)  # 3,000 promised, 1,500 delivered
    assert line.corrected is not None
    assert line.corrected.test == pytest.approx(0.0)


def test_a_sample_that_may_not_have_settled_is_used_only_where_there_is_no_better_one_and_that_is_kept(
    tmp_path: Path,
) -> None:
    rows = [*rows_of(1), *rows_of(1, 2, flags="did not settle", rows_per_s=5.0), *rows_of(2, flags="source ran dry")]
    rows += rows_of(3, flags="did not settle, bound by the driver")
    write_samples(rows, tmp_path / "samples.parquet")
    measured = read_samples(tmp_path / "samples.parquet")
    assert measured.samples.workers.tolist() == [1, 2]
    assert measured.samples.rates.tolist() == [1000, 5]
    assert (measured.about.unsettled, measured.flagged) == ((2,), 3)


def test_a_confidence_takes_repeats_of_every_count() -> None:
    once = Samples.of({1: [10.0, 11.0, 10.5], 2: [20.0]})
    assert resampled(Linear, once, seed=0) == ()
    assert Capacity(Linear(10.0)).interval(2, None, 0.95) is None


@pytest.mark.parametrize("repeats", [2, 3])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(repeats: int) -> None:
    rng = np.random.default_rng(3)
    held = 0
    for run in range(200):
        rates = {m: (10.0 * m * np.exp(0.05 * rng.standard_normal(repeats))).tolist() for m in (1, 2, 3, 4)}
        samples = Samples.of(rates)
        model = Capacity(Linear.fit(samples.workers, samples.rates), others=resampled(Linear, samples, seed=run))
        low, high = model.interval(4, None, 0.95) or (0.0, 0.0)
        held += low <= 40.0 <= high
    assert held / 200 >= 0.85
