"""`penstock forecast`: the right forecaster first, intervals that hold, one line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.cli.main import main


@pytest.fixture(scope="module")
def daily(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine days of a wave with a little noise, in steps of ten minutes."""
    rng = np.random.default_rng(1)
    steps = np.arange(9 * 144)
    counts = 600 * (50 + 40 * np.sin(2 * np.pi * steps / 144) + rng.normal(0, 1, len(steps)))
    path = tmp_path_factory.mktemp("series") / "rates.csv"
    rows = "\n".join(f"{600 * (step + 1)},{count:.0f}" for step, count in zip(steps, counts, strict=True))
    path.write_text("t_s,arrivals\n" + rows + "\n")
    return path


def record(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["forecast", *words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_season_beats_the_last_value_an_hour_ahead_and_intervals_hold(
    daily: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = record(capsys, str(daily), "--horizon", "1h")
    assert (found["horizon_s"], found["step_s"]) == (3600.0, 600.0)
    by_name = {each["name"]: each for each in found["forecasters"]}
    assert found["best"] == found["forecasters"][0]["name"]
    assert "holt-winters" in found["best"]
    assert by_name["holt-winters"]["mae"] < 0.5 * by_name["caf"]["mae"]
    errors = [each["mae"] for each in found["forecasters"]]
    assert errors == sorted(errors)
    for name in ("caf", "holt-winters", "seasonal-naive"):
        assert by_name[name]["coverage"] == pytest.approx(0.9, abs=0.05)
    # The last value, an hour ahead, is worse than one step ahead.
    assert by_name["caf"]["mase"] > 1


def test_nothing_of_the_future_is_known(daily: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another end of the series changes no forecast before it: the errors up to there are the same."""
    lines = daily.read_text().splitlines()
    short = tmp_path / "short.csv"
    short.write_text("\n".join(lines[:1000]) + "\n")
    found = {each["name"]: each["mae"] for each in record(capsys, str(short), "--horizon", "10m")["forecasters"]}
    values = [float(line.split(",")[1]) / 600 for line in lines[1:1000]]
    begin = -(-len(values) * 2 // 3)
    last = [abs(after - before) for before, after in zip(values[begin - 1 :], values[begin:], strict=False)]
    assert found["caf"] == pytest.approx(sum(last) / len(last))


def test_the_table_names_all_and_the_help_tells_how(daily: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", str(daily), "--horizon", "1h"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("outlook", "seasonal-naive", "holt-winters", "90 % interval"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--horizon", "15m"], "multiple of the step"),
        (["--horizon", "many"], "--horizon"),
        (["--horizon", "90d", "--step", "1h"], "500 at most"),
        (["--horizon", "4d", "--step", "1h"], "too few"),
        (["--horizon", "1h", "--step", "7m"], "--step"),
    ],
)
def test_what_cannot_be_forecast_is_one_line(
    daily: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["forecast", str(daily), *words]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1
