"""Rate series from files: what is certain is read, what is not is asked for, what is wrong is named by its line."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from penstock.core.errors import BadInput
from penstock.sim.series import SeriesOptions, read_series
from penstock.sim.workloads import Load


def read(folder: Path, text: str, options: SeriesOptions | None = None, name: str = "rates.csv") -> Load:
    path = folder / name
    path.write_text(text)
    return read_series(path, options)


def test_counts_with_calendar_times(tmp_path: Path) -> None:
    load = read(tmp_path, "timestamp,requests\n2024-05-01 00:00,60\n2024-05-01 00:01,120\n2024-05-01 00:02,0\n")
    assert (load.arrivals.tolist(), load.times_s.tolist(), load.tick_s) == ([60, 120, 0], [60, 120, 180], 60)
    assert load.origin_s == datetime(2024, 5, 1, tzinfo=UTC).timestamp()
    assert load.peak == 2.0


@pytest.mark.parametrize(
    ("column", "first", "second", "tick_s"),
    [
        ("time", "2024-05-01T00:00:00Z", "2024-05-01T00:00:30Z", 30),
        ("timestamp", "1714521600", "1714521900", 300),
        ("timestamp", "1714521600000", "1714521660000", 60),
        ("t_s", "0.0", "0.5", 0.5),
        ("t_hour", "0", "1", 3600),
    ],
)
def test_times_as_people_write_them(tmp_path: Path, column: str, first: str, second: str, tick_s: float) -> None:
    assert read(tmp_path, f"{column},n\n{first},1\n{second},2\n").tick_s == tick_s


def test_a_column_named_a_rate_holds_events_per_second(tmp_path: Path) -> None:
    load = read(tmp_path, "t_s,requests_per_s\n0,10\n60,20\n")
    assert load.arrivals.tolist() == [600, 1200]


def test_a_gap_stays_a_gap(tmp_path: Path) -> None:
    load = read(tmp_path, "t_s,n\n0,1\n60,2\n120,3\n3600,4\n3660,5\n")
    assert load.times_s.tolist() == [60, 120, 180, 3660, 3720]
    assert len(load.arrivals) == 5


def test_an_empty_cell_is_a_gap(tmp_path: Path) -> None:
    load = read(tmp_path, "t_s,a,b\n0,1,1\n60,2,\n120,3,3\n180,4,4\n", SeriesOptions(column="b"))
    assert (load.times_s.tolist(), load.arrivals.tolist()) == ([60, 180, 240], [1, 3, 4])


def test_a_gzipped_file_and_a_parquet_file_read_alike(tmp_path: Path) -> None:
    text = "timestamp,n\n2024-05-01 00:00,1\n2024-05-01 00:01,2\n"
    plain = read(tmp_path, text)
    (tmp_path / "rates.csv.gz").write_bytes(gzip.compress(text.encode()))
    times = pa.array([1714521600, 1714521660], pa.timestamp("s", "UTC"))
    table = pa.table({"time": times, "arrivals": [1.0, 2.0], "bytes": [10.0, 20.0]})
    pyarrow.parquet.write_table(table, tmp_path / "rates.parquet")
    for name in ("rates.csv.gz", "rates.parquet"):
        load = read_series(tmp_path / name)
        assert load.arrivals.tolist() == plain.arrivals.tolist()
        assert load.origin_s == plain.origin_s


def test_a_series_without_times_needs_its_interval(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--every"):
        read(tmp_path, "requests\n1\n2\n")
    assert read(tmp_path, "requests\n1\n2\n", SeriesOptions(every_s=5.0)).times_s.tolist() == [5, 10]


def test_one_of_several_columns_must_be_chosen(tmp_path: Path) -> None:
    text = "t_s,AAPL,IBM\n0,1,10\n60,2,20\n"
    with pytest.raises(BadInput, match=r"--column \(AAPL, IBM\)"):
        read(tmp_path, text)
    with pytest.raises(BadInput, match="did you mean 'IBM'"):
        read(tmp_path, text, SeriesOptions(column="IBN"))
    assert read(tmp_path, text, SeriesOptions(column="IBM")).arrivals.tolist() == [10, 20]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t_s,n\n0,1\n60,many\n", "line 3: n is 'many'"),
        ("t_s,n\n0,1\n60,\n120,x\n", "line 4: n is 'x'"),
        ("t_s,n\n0,1\n60,-2\n", "line 3: n is negative"),
        ("t_s,n\n0,nan\n60,2\n", "line 2: n is not a finite number"),
        ("t_s,n\n0,1\n60,inf\n", "line 3: n is not a finite number"),
        ("t_s,n\n60,1\n0,2\n", "line 3: the time is not later"),
        ("t_s,n\n0,1\n0,2\n", "line 3: the time is not later"),
        ("t_s,n\n0,1\n60,2\n120,3\n150,3\n", "line 5: the time is not a multiple of 60 s"),
        ("time,n\n2024-05-01 00:00,1\nyesterday,2\n", "line 3: time is 'yesterday'"),
        ("time,n\n5,1\n6,2\n", "times in 'time' are numbers, and its name has no unit .* pass --unit s"),
        ("t_s,n\n", "is empty"),
        ("", "is empty"),
        ("1,2\n3,4\n", "no header"),
        ("t_s,n\n0,1,7\n", "not a CSV"),
        ("t_s,n\n0,1\n", "one row only"),
        ("t_s\n0\n60\n", "only a column of times"),
    ],
)
def test_what_is_wrong_is_one_line_that_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read(tmp_path, text)


def test_files_that_are_no_series_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_series(tmp_path / "none.csv")
    with pytest.raises(BadInput, match="directory without Parquet files"):
        read_series(tmp_path)
    (tmp_path / "photo.csv").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(BadInput, match="binary file"):
        read_series(tmp_path / "photo.csv")
    (tmp_path / "rates.parquet").write_bytes(b"not parquet")
    with pytest.raises(BadInput, match="not a CSV or Parquet file"):
        read_series(tmp_path / "rates.parquet")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"t_s,n\n0,1\n60,2\n" * 1000)[:40])
    with pytest.raises(BadInput, match=r"cut\.csv\.gz"):
        read_series(tmp_path / "cut.csv.gz")
