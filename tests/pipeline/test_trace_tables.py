"""Counts, points in time and inter-arrival times, from CSV and Parquet."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.core.errors import BadInput
from penstock.pipeline.request import TraceSummary
from penstock.sim.series import read_series

pytestmark = pytest.mark.spark
Trace = Callable[..., TraceSummary]


def at(text: str) -> float:
    """Seconds since 1970 of a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def counts(path: Path, lines: list[str], header: str = "timestamp,requests") -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_counts_at_the_wanted_interval_are_written_as_they_stand(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = counts(tmp_path / "a.csv", ["2020-01-01 00:00,5", "2020-01-01 00:01,0", "2020-01-01 00:02,7.0"])
    summary = trace(source)
    start = at("2020-01-01 00:00")
    assert rates() == {start: 5, start + 60: 0, start + 120: 7}
    assert rates("bytes") == {start: None, start + 60: None, start + 120: None}
    assert (summary.kind, summary.rows, summary.intervals, summary.gaps) == ("counts", 3, 3, 0)
    assert summary.mean_rate == pytest.approx((5 + 0 + 7) / 180)
    assert summary.peak_rate == pytest.approx(7 / 60)
    schema = pq.read_schema(summary.output)
    assert schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert sorted(path.name for path in summary.output.parent.iterdir()) == ["rates.parquet"]


def test_finer_counts_are_added_up_and_a_missing_interval_is_a_gap(trace: Trace, rates: Any, tmp_path: Path) -> None:
    minutes = [minute for minute in range(20) if not 5 <= minute < 15]
    source = counts(tmp_path / "a.csv", [f"2020-01-01 00:{minute:02}:00,{minute}" for minute in minutes])
    summary = trace(source, every_s=300)
    start = at("2020-01-01 00:00")
    assert rates() == {start: 0 + 1 + 2 + 3 + 4, start + 900: 15 + 16 + 17 + 18 + 19}
    assert (summary.intervals, summary.gaps, summary.gap_s) == (2, 1, 600)


def test_shuffled_counts_off_the_clock_keep_their_own_times(trace: Trace, rates: Any, tmp_path: Path) -> None:
    moments = [datetime(2015, 2, 26, 21, 42, 53, tzinfo=UTC) + timedelta(minutes=5 * i) for i in range(12)]
    lines = [f"{moment:%Y-%m-%d %H:%M:%S},{i}" for i, moment in enumerate(moments)]
    random.Random(1).shuffle(lines)
    trace(counts(tmp_path / "a.csv", lines), every_s=900)
    first = moments[0].timestamp()
    sums = dict.fromkeys(rates(), 0)
    assert first - 900 < min(sums) <= first
    assert sum(rates().values()) == sum(range(12))
    assert {(beginning - first) % 300 for beginning in sums} == {0}


def test_an_interval_with_some_of_its_counts_is_kept_and_mentioned(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = counts(tmp_path / "a.csv", ["2020-01-01 00:00,5", "2020-01-01 00:01,6", "2020-01-01 00:02,7"])
    summary = trace(source, every_s=120)
    assert list(rates().values()) == [11, 7]
    assert "lack some of their 2 counts" in summary.notes[0]


@pytest.mark.parametrize(("every_s", "said"), [(30, "pass --every 60s or a multiple"), (90, "pass --every 120s")])
def test_an_interval_that_the_counts_cannot_make_is_refused(
    trace: Trace, tmp_path: Path, every_s: float, said: str
) -> None:
    source = counts(tmp_path / "a.csv", [f"2020-01-01 00:0{i},{i}" for i in range(5)])
    with pytest.raises(BadInput, match=said):
        trace(source, every_s=every_s)
    assert list((tmp_path / "out").iterdir()) == []


def test_bad_counts_are_set_aside_with_their_reason(trace: Trace, rates: Any, tmp_path: Path) -> None:
    bad = ["2020-01-01 00:05,NaN", "2020-01-01 00:06,-3", "2020-01-01 00:07,many", "2020-01-01 00:08,", "noon,3"]
    source = counts(tmp_path / "a.csv", [*(f"2020-01-01 00:{i + 10},1" for i in range(6)), *bad])
    summary = trace(source)
    assert summary.rows == 11
    assert summary.bad == {
        "the count is missing": 1,
        "the count is negative": 1,
        "the count is not a number": 1,
        "the count is not finite": 1,
        "the time is not a date or number": 1,
    }
    assert summary.quarantine == tmp_path / "out" / "rates.parquet.quarantine"
    kept = [line.split("\t") for line in summary.quarantine.read_text().splitlines()]
    assert sorted(line for _, _, line in kept) == sorted(bad)
    assert {Path(file).name for _, file, _ in kept} == {"a.csv"}
    assert sum(rates().values()) == 6


def test_a_mostly_bad_source_is_refused_with_its_first_bad_line(trace: Trace, tmp_path: Path) -> None:
    lines = [*(f"2020-01-01 00:0{i},1" for i in range(3)), *["2020-01-01 00:09,-1"] * 4]
    with pytest.raises(BadInput, match=r"4 of 7 lines cannot be used; the first because the count is negative"):
        trace(counts(tmp_path / "a.csv", lines), kind="counts")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_list_of_counts_needs_the_interval_of_a_row(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = tmp_path / "a.csv.gz"
    source.write_bytes(gzip.compress(b"requests\n1\n2\n3\n4\n"))
    with pytest.raises(BadInput, match="pass --step"):
        trace(source, kind="counts")
    trace(source, every_s=2, kind="counts", step_s=1)
    assert rates() == {0: 1 + 2, 2: 3 + 4}


def test_single_times_give_quiet_intervals_and_a_long_silence_is_a_gap(
    trace: Trace, rates: Any, tmp_path: Path
) -> None:
    lines = ["2020-01-01T00:00:10", "2020-01-01T00:00:20", "2020-01-01T00:03:00", "2020-01-01T01:03:00"]
    source = counts(tmp_path / "a.csv", lines, header="arrived")
    summary = trace(source)
    start = at("2020-01-01 00:00")
    # Three quiet minutes are less than an hour; from 00:03 to 01:03 is an hour: 59 intervals lie between.
    assert rates() == {start: 2, start + 60: 0, start + 120: 0, start + 180: 1, start + 3780: 1}
    assert (summary.kind, summary.gaps, summary.gap_s) == ("times", 1, 59 * 60)
    summary = trace(source, gap_s=3601)
    assert (summary.intervals, summary.gaps) == (64, 0)


def test_numbers_with_a_unit_in_their_name_are_times(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = counts(tmp_path / "a.csv", ["0", "999", "1000", "2500"], header="ms_since_midnight")
    assert trace(source, every_s=1).kind == "times"
    assert rates() == {0: 2, 1: 1, 2: 1}


def test_inter_arrival_times_are_added_up_in_the_order_of_the_file(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = counts(tmp_path / "a.csv", ["400000", "500000", "x", "200000", "3000000"], header="iat_us")
    summary = trace(source, every_s=1)
    # Arrivals at 0.4, 0.9, 1.1 and 4.1 s; the bad line takes no time.
    assert rates() == {0: 2, 1: 1, 2: 0, 3: 0, 4: 1}
    assert (summary.kind, summary.bad) == ("iat", {"the inter-arrival time is not a number": 1})


def test_parquet_is_read_like_csv(trace: Trace, rates: Any, tmp_path: Path) -> None:
    moments = [datetime(2020, 1, 1, 0, i, tzinfo=UTC) for i in range(4)]
    source = tmp_path / "a.parquet"
    pq.write_table(pa.table({"when": moments, "requests": [1, 2, None, 4], "bytes": [10.0, 20.0, 30.0, 40.0]}), source)
    summary = trace(source, every_s=60)
    start = moments[0].timestamp()
    assert rates() == {start: 1, start + 60: 2, start + 180: 4}
    assert rates("bytes") == {start: 10, start + 60: 20, start + 180: 40}
    assert (summary.bad, summary.gaps) == ({"the count is missing": 1}, 1)


def test_nanoseconds_as_pandas_writes_them_are_times(trace: Trace, rates: Any, tmp_path: Path) -> None:
    moments = pa.array([datetime(2020, 1, 1, 0, i, tzinfo=UTC) for i in range(3)], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"timestamp": moments, "requests": [1, 2, 3]}), tmp_path / "a.parquet", version="2.6")
    trace(tmp_path / "a.parquet")
    assert rates() == {at("2020-01-01 00:00") + 60 * i: i + 1 for i in range(3)}


def test_what_is_written_can_be_read_again(trace: Trace, rates: Any, tmp_path: Path) -> None:
    trace(counts(tmp_path / "a.csv", [f"2020-01-01 00:0{i},{i}" for i in range(4)]))
    again = tmp_path / "again.parquet"
    (tmp_path / "out" / "rates.parquet").rename(again)
    assert trace(again, every_s=120).kind == "counts"
    assert list(rates().values()) == [0 + 1, 2 + 3]


def test_the_tables_of_a_directory_add_up(trace: Trace, rates: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in [1]"
    folder.mkdir()
    counts(folder / "a.csv", [f"2020-01-01 00:0{i},1" for i in range(3)])
    counts(folder / "b.csv", [f"2020-01-01 00:0{i},10" for i in range(1, 5)])
    (folder / "_SUCCESS").touch()
    trace(folder)
    assert list(rates().values()) == [1, 11, 11, 10, 10]


@pytest.mark.parametrize(
    ("header", "total"), [("timestamp,rate", 60 * 6), ("timestamp,requests_per_minute", 6), ("timestamp,requests", 6)]
)
def test_a_rate_is_as_many_arrivals_here_as_in_a_replay(
    trace: Trace, rates: Any, tmp_path: Path, header: str, total: float
) -> None:
    source = counts(tmp_path / "a.csv", [f"2020-01-01 00:0{i},{i}" for i in range(4)], header)
    trace(source, every_s=120)
    assert sum(rates().values()) == total
    assert read_series(source).arrivals.sum() == total


OTHER_TOOLS = {
    "excel": ("Date;Requests", "{at.day}.{at.month}.{at.year} {at.hour}:{at:%M};{n}"),
    "grafana": ('sep=;\n"Time";"requests"', "{at:%Y-%m-%dT%H:%M:%S}.000Z;{n}"),
    "log": ("time\trequests", "{at:%Y-%m-%d %H:%M:%S},000\t{n}"),
    "pandas": (",requests", "{at:%Y-%m-%d %H:%M:%S+00:00},{n}"),
    "epoch": ("timestamp,value", "{at:%s}000,{n}"),
}


@pytest.mark.parametrize("tool", OTHER_TOOLS)
def test_tables_of_other_tools_read_alike_here_and_in_a_replay(
    trace: Trace, rates: Any, tmp_path: Path, tool: str
) -> None:
    header, row = OTHER_TOOLS[tool]
    moments = [datetime(2020, 1, 13, 9, 58 + i) if i < 2 else datetime(2020, 1, 13, 10, i - 2) for i in range(4)]
    rows = [row.replace("{at:%s}", f"{at(str(moment)):.0f}").format(at=moment, n=n) for n, moment in enumerate(moments)]
    source = counts(tmp_path / "a.csv", rows, header)
    trace(source)
    start = at("2020-01-13 09:58")
    assert rates() == {start + 60 * n: n for n in range(4)}
    load = read_series(source)
    assert (load.origin_s, load.arrivals.tolist()) == (start, [0, 1, 2, 3])


def test_one_count_out_of_place_does_not_make_gaps_of_the_others(trace: Trace, tmp_path: Path) -> None:
    source = counts(tmp_path / "a.csv", ["0,1", "60,2", "120,3", "150,4"], header="t_s,requests")
    with pytest.raises(BadInput, match=r"most are 60 s apart, some 30 s\): pass --step"):
        trace(source)
