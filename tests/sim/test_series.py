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
    nanos = table.set_column(0, "time", times.cast(pa.timestamp("ns", "UTC")))
    pyarrow.parquet.write_table(nanos, tmp_path / "nanos.parquet", version="2.6")
    for name in ("rates.csv.gz", "rates.parquet", "nanos.parquet"):
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


@pytest.mark.parametrize("name", ["rate", "requests_per_s", "req/s", "sum(rate(http_requests_total[5m]))", "qps"])
def test_a_rate_counts_for_as_long_as_its_interval_is(tmp_path: Path, name: str) -> None:
    text = f"timestamp,{name}\n2024-05-01 00:00,1\n2024-05-01 00:05,2\n"
    assert read(tmp_path, text).arrivals.tolist() == [300, 600]


def test_a_rate_per_minute_is_not_one_per_second(tmp_path: Path) -> None:
    text = "timestamp,requests_per_minute\n2024-05-01 00:00,1\n2024-05-01 00:05,2\n"
    assert read(tmp_path, text).arrivals.tolist() == [5, 10]


def test_numbers_that_are_not_whole_may_be_counts_or_rates(tmp_path: Path) -> None:
    text = "timestamp,value\n2024-05-01 00:00,1.5\n2024-05-01 00:01,2.5\n"
    with pytest.raises(BadInput, match=r"pass --kind counts .* or --kind rates"):
        read(tmp_path, text)
    assert read(tmp_path, text, SeriesOptions(kind="counts")).arrivals.tolist() == [1.5, 2.5]
    assert read(tmp_path, text, SeriesOptions(kind="rates")).arrivals.tolist() == [90, 150]


def test_a_counter_is_not_taken_for_counts(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'requests_total' only grows"):
        read(tmp_path, "t_s,requests_total\n0,10\n60,30\n120,60\n")


@pytest.mark.parametrize("text", ["iat_us\n168\n2668\n9\n", "inter_arrival_ms\n168\n2668\n9\n"])
@pytest.mark.parametrize("every_s", [None, 60.0])
def test_inter_arrival_times_are_recognised(tmp_path: Path, text: str, every_s: float | None) -> None:
    with pytest.raises(BadInput, match=r"holds inter-arrival times .*penstock trace .*--every 1s"):
        read(tmp_path, text, SeriesOptions(every_s=every_s))


def test_single_arrivals_are_left_to_trace(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="one arrival a row: `penstock trace"):
        read(tmp_path, "arrived\n2024-05-01 00:00:01\n2024-05-01 00:00:07\n")


@pytest.mark.parametrize(
    ("column", "first", "second", "tick_s"),
    [
        ("minute", "0", "1", 60),
        ("hour", "5", "6", 3600),
        ("t_s", "0", "10", 10),
        ("ts", "1714521600000000", "1714521660000000", 60),
        ("event_time", "1714521600000000000", "1714521660000000000", 60),
        ("Time", "2024-05-01 00:00:00 UTC", "2024-05-01 00:00:30 UTC", 30),
        ("Time", "2024-05-01 00:00:00.000000000", "2024-05-01 00:00:30.000000000", 30),
        ("Datum", "01.05.2024 9:59", "01.05.2024 10:00", 60),
        ("Date", "5/13/2024 9:59", "5/13/2024 10:00", 60),
        ("date", "2024/5/1 9:59", "2024/5/1 10:00", 60),
    ],
)
def test_times_as_other_tools_write_them(tmp_path: Path, column: str, first: str, second: str, tick_s: float) -> None:
    load = read(tmp_path, f"{column},requests\n{first},1\n{second},2\n")
    assert (load.tick_s, load.arrivals.tolist()) == (tick_s, [1, 2])


def test_a_day_and_a_month_that_may_be_either_are_asked_for(tmp_path: Path) -> None:
    text = "Date,requests\n01/02/2024 10:00,1\n01/02/2024 10:01,2\n"
    with pytest.raises(BadInput, match="pass --dates dmy or --dates mdy"):
        read(tmp_path, text)
    for order, month in (("dmy", 2), ("mdy", 1)):
        load = read(tmp_path, text, SeriesOptions(dates=order))
        assert load.origin_s == datetime(2024, month, 3 - month, 10, tzinfo=UTC).timestamp()


def test_digits_that_contradict_the_unit_in_a_name_are_asked_for(tmp_path: Path) -> None:
    text = "epoch_s,n\n1714521600000,1\n1714521660000,2\n"
    with pytest.raises(BadInput, match="the digits of ms, not of s: pass --unit"):
        read(tmp_path, text)
    assert read(tmp_path, text, SeriesOptions(unit="ms")).tick_s == 60


@pytest.mark.parametrize(
    "text",
    [
        '"Time";"requests"\n2024-05-01T00:00:00.000Z;1\n2024-05-01T00:01:00.000Z;2\n',
        'sep=;\n"Time";"requests"\n2024-05-01 00:00:00;1\n2024-05-01 00:01:00;2\n',
        "time\trequests\n2024-05-01 00:00\t1\n2024-05-01 00:01\t2\n",
        ",timestamp,requests\n0,2024-05-01 00:00,1\n1,2024-05-01 00:01,2\n",
        ",requests\n2024-05-01 00:00,1\n2024-05-01 00:01,2\n",
        "host,timestamp,requests\nweb1,2024-05-01 00:00,1\nweb1,2024-05-01 00:01,2\n",
        "2024-05-01 00:00,1\n2024-05-01 00:01,2\n",
        'timestamp,"a, quoted",requests\n2024-05-01 00:00,x,1\n2024-05-01 00:01,y,2\n',
    ],
)
def test_tables_of_other_tools(tmp_path: Path, text: str) -> None:
    load = read(tmp_path, text)
    assert (load.arrivals.tolist(), load.tick_s) == ([1, 2], 60)
    assert load.origin_s == datetime(2024, 5, 1, tzinfo=UTC).timestamp()


def test_the_line_of_a_bad_value_counts_what_stands_before_the_rows(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="line 4: n is 'many'"):
        read(tmp_path, "sep=;\nt_s;n\n0;1\n60;many\n120;3\n")
    with pytest.raises(BadInput, match="line 2: column2 is negative"):
        read(tmp_path, "2024-05-01 00:00,1\n2024-05-01 00:01,-2\n")


def test_an_interval_that_the_times_contradict_is_refused(tmp_path: Path) -> None:
    text = "t_s,n\n0,1\n300,2\n600,3\n"
    with pytest.raises(BadInput, match="--every 60 s, but its times are 5 min apart"):
        read(tmp_path, text, SeriesOptions(every_s=60.0))
    assert read(tmp_path, text, SeriesOptions(every_s=300.0)).tick_s == 300


def test_an_interval_settles_a_series_with_more_gaps_than_neighbours(tmp_path: Path) -> None:
    load = read(tmp_path, "t_s,n\n0,1\n120,2\n240,3\n300,4\n", SeriesOptions(every_s=60.0))
    assert load.times_s.tolist() == [60, 180, 300, 360]
