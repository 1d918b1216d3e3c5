"""A kind is recognised where it is certain, and asked for where it is not. No JVM is started here."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import BadInput
from penstock.pipeline.recognise import recognise
from penstock.pipeline.request import TraceRequest

HOUR = [f"2020-01-01 {hour:02}:00,{hour},0.5" for hour in range(5)]


def kind(path: Path, text: str | bytes, **options: Any) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return recognise(TraceRequest(path, Path("rates.parquet"), **options)).kind.name


def table(header: str, *rows: str) -> str:
    return "\n".join([header, *rows]) + "\n"


@pytest.mark.parametrize(
    ("name", "text", "known"),
    [
        (
            "a.csv",
            table("timestamp,requests", "2020-01-01 00:00,1", "2020-01-01 00:01,2", "2020-01-01 00:02,0"),
            "counts",
        ),
        ("a.csv", table("t_s;packets", "0.0;37", "0.1;36", "0.2;51", "0.4;3"), "counts"),
        ("a.csv", table("iat_us", "168", "2668"), "iat"),
        ("a.csv", table("ms_since_midnight_new_york", "34200014", "34200014"), "times"),
        ("a.csv", table("arrived", "2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00.7Z"), "times"),
        ("a.csv", table("2020-01-01 00:00:01", "2020-01-01 00:00:05"), "times"),
        ("a.txt", '1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 -\n', "log"),
        ("a.json", '{"status":"success","data":{"resultType":"matrix","result":[]}}', "prometheus"),
        ("a.json", '{"id":"1","runId":"2","timestamp":"x","sources":[]}\n', "progress"),
        ("app-1", '{"Event":"SparkListenerLogStart","Spark Version":"4.2.0"}\n', "eventlog"),
        ("wc_day1_1", b"\x35\x77" * 30, "wc98"),
    ],
)
def test_what_is_certain_is_recognised_plain_and_gzipped(
    tmp_path: Path, name: str, text: str | bytes, known: str
) -> None:
    assert kind(tmp_path / name, text) == known
    assert kind(tmp_path / f"{name}.gz", gzip.compress(text if isinstance(text, bytes) else text.encode())) == known


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.csv",
            table("requests", "1", "0"),
            "what the numbers in 'requests' mean is not certain: pass --kind counts --step",
        ),
        ("a.csv", table("value_us", "8188", "4677"), "'value_us' mean is not certain"),
        ("a.csv", table("when,requests,errors", *HOUR), "choose one with --column (requests, errors)"),
        (
            "a.csv",
            table("when,size", "2020-01-01 00:00:01,5", "2020-01-01 00:00:07,5", "2020-01-01 00:00:09,5"),
            "--kind times",
        ),
        (
            "a.csv",
            table("when,load", *(f"2020-01-01 00:0{i},{i}.5" for i in range(5))),
            "whether 'load' counts events or is a rate is not certain",
        ),
        ("a.csv", table("name", "x", "y"), "no column of numbers"),
        ("a.csv", b"\x00\x01\x02\x03" * 50, "begins with bytes 00 01 02 03"),
        ("a.txt", "hello\n", "its kind is not certain; it begins with 'hello': pass --kind"),
        ("a.json", '{"status":"success","data":{"resultType":"vector","result":[]}}', "dump a query_range"),
        ("a.csv", "", "the file is empty"),
        ("a.csv.gz", gzip.compress(b""), "the file is empty"),
    ],
)
def test_what_is_not_certain_is_asked_for(tmp_path: Path, name: str, text: str | bytes, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        kind(tmp_path / name, text)


def test_an_unknown_column_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'requests'"):
        kind(tmp_path / "a.csv", table("when,requests,errors", *HOUR), column="reqests")


def test_a_chosen_column_settles_what_is_counted(tmp_path: Path) -> None:
    assert kind(tmp_path / "a.csv", table("when,requests,errors", *HOUR), column="requests") == "counts"


def test_a_number_without_a_unit_is_not_taken_for_a_time(tmp_path: Path) -> None:
    text = table("timestamp", "160000", "160001")
    with pytest.raises(BadInput, match="pass --unit s, ms, us, ns, min, h or d"):
        kind(tmp_path / "a.csv", text, kind="times")
    assert kind(tmp_path / "a.csv", text, kind="times", unit="s") == "times"


def test_a_binary_file_given_as_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is binary"):
        kind(tmp_path / "a.csv", b"\x00\x01\x02\x03" * 50, kind="counts")


def test_missing_sources_and_mixed_or_empty_directories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or directory"):
        recognise(TraceRequest(tmp_path / "nowhere", Path("rates.parquet")))
    with pytest.raises(BadInput, match="holds no files"):
        recognise(TraceRequest(tmp_path, Path("rates.parquet")))
    kind(tmp_path / "a.csv", table("iat_us", "168", "2668"))
    (tmp_path / "b.json").write_text('{"id":"1","runId":"2","sources":[]}')
    with pytest.raises(BadInput, match=r"different kinds \(progress, table\)"):
        recognise(TraceRequest(tmp_path, Path("rates.parquet")))


def test_unknown_kinds_and_lengths_of_nothing_are_refused() -> None:
    with pytest.raises(BadInput, match="did you mean 'counts'"):
        TraceRequest(Path("a"), Path("b"), kind="count")
    with pytest.raises(BadInput, match="--every must be longer"):
        TraceRequest(Path("a"), Path("b"), every_s=0)
