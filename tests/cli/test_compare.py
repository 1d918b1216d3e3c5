"""`penstock compare` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.main import main


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four hours with a busy one in each half."""
    path = tmp_path / "rates.csv"
    counts = [600 + (3000 if minute % 120 >= 60 else 0) for minute in range(240)]
    path.write_text("t_s,requests\n" + "".join(f"{60 * minute},{count}\n" for minute, count in enumerate(counts)))
    return path


@pytest.mark.spark
def test_settings_of_policies_are_compared_at_equal_violations(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["deadline", "hpa", "hpa:target=0.4|0.6"]
    words = ["compare", str(trace), "--train", "0.5", "--output", "json", "--master", "local[2]"]
    words += ["--report", str(tmp_path / "page.html"), *(word for name in names for word in ("--policy", name))]
    assert main(words) == 0
    [record] = json.loads(capsys.readouterr().out)
    assert [family["policy"] for family in record["policies"]] == ["deadline", "hpa"]
    hpa = record["policies"][1]
    assert [point["policy"] for point in hpa["points"]] == ["hpa", "hpa:target=0.4", "hpa:target=0.6"]
    assert hpa["tuned"]["policy"].startswith("hpa")
    assert all(point["cost"] >= record["bound"] for point in hpa["points"] if point["missed"] == 0)
    assert "<svg" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "no such file: none.csv"),
        (["{trace}", "{trace}"], "two traces have the same file name"),
        (["{trace}", "--train", "1.5"], "--train"),
        (["{trace}", "--policy", "hpaa"], "hpaa"),
        (["{trace}", "--policy", "mst", "--policy", "hpa:target=70|90"], "target"),  # and not after Spark has run
    ],
)
def test_what_is_wrong_is_one_line(
    words: list[str], message: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *(word.format(trace=trace) for word in words)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
