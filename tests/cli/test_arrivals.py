"""`penstock arrivals`: what it prints of a stream that is known, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from penstock.cli.main import main
from penstock.models.arrivals import Map

BURSTY = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]]).with_rate(100.0)


@pytest.fixture(scope="module")
def gaps_s() -> Any:
    return BURSTY.sample(20_000, np.random.default_rng(1))


def record(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["arrivals", *words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_stream_is_described_fitted_and_priced(
    tmp_path: Path, gaps_s: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "gaps.txt"
    trace.write_text("\n".join(map(repr, gaps_s.tolist())))
    found = record(capsys, str(trace), "--kind", "iat")
    assert found["rate"] == pytest.approx(1 / gaps_s.mean())
    assert found["scv"] == pytest.approx(gaps_s.var() / gaps_s.mean() ** 2)
    away = gaps_s - gaps_s.mean()
    assert found["skewness"] == pytest.approx(float(np.mean(away**3) / gaps_s.std() ** 3))
    assert found["autocorrelation"]["1"] == pytest.approx(float(away[1:] @ away[:-1] / (away @ away)))
    assert found["dispersion"] > 20
    fitted = found["map"]
    assert Map(fitted["D0"], fitted["D1"]).rate == pytest.approx(found["rate"])
    assert (fitted["method"], fitted["states"]) == ("calibrated", len(fitted["D0"]))
    assert found["headroom"] == pytest.approx(found["capacity"]["needed"] / found["capacity"]["poisson"])
    # Bursts of 3 times the rate that last: much more than a Poisson stream needs.
    assert found["headroom"] > 1.5
    assert 0.5 < found["fit"]["0.5"]["mean"] < 2


def test_ties_are_taken_out_for_the_fit_and_not_out_of_the_statistics(
    tmp_path: Path, gaps_s: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tied = np.where(np.random.default_rng(2).random(len(gaps_s)) < 0.1, 0.0, gaps_s)
    trace = tmp_path / "tied.txt"
    trace.write_text("\n".join(map(repr, tied.tolist())))
    found = record(capsys, str(trace), "--kind", "iat", "--method", "em")
    away = tied - tied.mean()
    assert found["rate"] == pytest.approx(1 / tied.mean())
    assert found["scv"] == pytest.approx(tied.var() / tied.mean() ** 2)
    assert found["skewness"] == pytest.approx(float(np.mean(away**3) / tied.std() ** 3))
    assert found["autocorrelation"]["10"] == pytest.approx(float(away[10:] @ away[:-10] / (away @ away)))
    assert found["dispersion_by_gaps"]["10"] == pytest.approx(
        float(tied.reshape(-1, 10).sum(axis=1).var() / 10 / tied.mean() ** 2)
    )
    assert any("in batches" in note for note in found["notes"])


def test_an_outage_is_left_out_of_the_fit_and_of_what_the_fit_is_held_against(
    tmp_path: Path, gaps_s: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, broken = tmp_path / "plain.txt", tmp_path / "broken.txt"
    plain.write_text("\n".join(map(repr, gaps_s.tolist())))
    broken.write_text("\n".join(map(repr, [*gaps_s.tolist(), 1e5])))
    one, two = (record(capsys, str(path), "--kind", "iat", "--method", "em") for path in (plain, broken))
    assert "1 gaps of more than 50 times" in two["notes"][0]
    for key in ("rate", "scv", "fit", "headroom"):
        assert one[key] == two[key]


def test_the_same_stream_is_the_same_in_every_form(
    tmp_path: Path, gaps_s: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    times = np.append(5.0, 5.0 + np.cumsum(gaps_s))
    packed = tmp_path / "gaps.csv.gz"
    packed.write_bytes(gzip.compress(("gap\n" + "\n".join(repr(1e6 * gap) for gap in gaps_s.tolist())).encode()))
    table = tmp_path / "times.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"ts": times[::-1].copy(), "row": np.arange(len(times))}), table)
    how = ("--method", "kpc", "--mean", "--bound", "1s")
    one = record(capsys, str(packed), "--kind", "iat", "--unit", "us", *how)
    two = record(capsys, str(table), "--kind", "times", "--column", "ts", *how)
    assert "20000 timestamps were out of order: sorted" in two["notes"]
    for key in ("rate", "scv", "headroom"):
        assert one[key] == pytest.approx(two[key], rel=1e-3)
    assert one["objective"] == {"bound_s": 1.0, "percentile": None}


def test_the_autocorrelation_is_drawn_as_it_is_and_as_it_was_fitted(
    tmp_path: Path, gaps_s: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, picture = tmp_path / "gaps.txt", tmp_path / "lags.svg"
    trace.write_text("\n".join(map(repr, gaps_s.tolist())))
    found = record(capsys, str(trace), "--kind", "iat", "--method", "kpc", "--plot", str(picture))
    drawn = xml.etree.ElementTree.parse(picture).getroot()
    dots = [each for each in drawn if each.tag.endswith("circle")]
    line = next(each.attrib["points"] for each in drawn if each.tag.endswith("polyline"))
    # The first dot is lag 1: its distance from the fit's first point is that of the two values, on the axis' scale.
    low, high = (float(each.text or "") for each in _labels(drawn)[:5:4])
    per_pixel = (high - low) / (440 - 50 - 30)
    apart = (float(line.split()[0].split(",")[1]) - float(dots[0].attrib["cy"])) * per_pixel
    seen, fitted = found["autocorrelation"]["1"], found["map"]["autocorrelation"]["1"]
    assert apart == pytest.approx(seen - fitted, abs=2e-3)
    assert len(dots) == len(line.split()) > 40
    for wrong in (tmp_path / "none" / "lags.svg", trace):
        assert main(["arrivals", str(trace), "--kind", "iat", "--plot", str(wrong)]) == 2


def _labels(drawn: Any) -> list[Any]:
    return [each for each in drawn if each.tag.endswith("text") and each.attrib.get("dominant-baseline") == "middle"]


def test_a_person_gets_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "gaps.txt"
    trace.write_text("\n".join(map(repr, np.random.default_rng(0).exponential(0.01, 3000).tolist())))
    assert main(["arrivals", str(trace), "--kind", "iat"]) == 0
    out = capsys.readouterr().out
    assert "3,001 arrivals" in out
    assert "1.00 times what a Poisson stream needs" in out
    assert "no sign of bursts: Poisson" in out


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("1\n" * 99, (), "99 gaps between arrivals; at least 100 are needed"),
        ("1\n" * 200 + "-1\n", (), "gap 201 is -1"),
        ("1\n" * 200 + "nan\n", (), "1 values are missing"),
        ("1,2\n" * 200, (), "has 2 columns; name one with --column"),
        ("a\n" + "x\n" * 200, (), "not of numbers"),
        ("a\n" + "1\n" * 200, ("--column", "b"), "unknown column of .* 'b' \\(known: a\\)"),
        ("1\n" * 200, ("--bound", "soon"), "--bound"),
        ("1\n" * 200, ("--percentile", "95"), "no number from 0.5"),
        ("1\n2,3\n", (), "cannot be read as a table of numbers"),
        ("", (), "cannot be read as a table of numbers"),
    ],
)
def test_what_is_wrong_is_one_line(
    text: str, words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "gaps.csv"
    trace.write_text(text)
    assert main(["arrivals", str(trace), "--kind", "iat", *words]) == 2
    said = capsys.readouterr().err
    assert re.search(says, said)
    assert said.count("\n") == 1


def test_a_file_that_is_not_there_or_is_a_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "none.parquet"):
        assert main(["arrivals", str(path), "--kind", "iat"]) == 2
        assert path.name in capsys.readouterr().err
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(b"no gzip at all")
    assert main(["arrivals", str(broken), "--kind", "iat"]) == 2


def test_a_heading_that_is_no_text_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gaps.csv"
    path.write_bytes(b"\xff\xfe gap\n" + b"0.5\n" * 200)
    assert main(["arrivals", str(path), "--kind", "iat"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("kind", ["iat", "times"])
def test_gaps_of_ages_are_one_line(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text("1e-3\n" * 200 + "1e200\n" * 3)
    assert main(["arrivals", str(path), "--kind", kind, "--method", "kpc"]) == 2
    assert "is --unit right?" in capsys.readouterr().err
