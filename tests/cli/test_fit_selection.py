"""Paper 1's selection where a user can reach it, and samples as they were delivered, from `fit` to `advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.cli.measure import as_table
from penstock.cli.progress import page
from penstock.models.capacity import read_model
from penstock.models.samples import read_rows, write_samples
from penstock.models.throughput_curves import InverseTime
from penstock.reproduce.mst_measured import MEASURED
from tests.cli.test_fit_advise import row


def command(*words: object) -> int:
    return main([str(word) for word in words])


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    write_samples(rows, path)
    return path


@pytest.fixture
def bending(tmp_path: Path) -> Path:
    """It bends as model 1 does: up to 4 workers a parabola fits nearly as well, with 12 it does not."""
    truth = InverseTime(2e-6, 1e-5)
    return written(tmp_path / "s.parquet", [row(m, 0, truth.rate(m)) for m in (1, 2, 3, 4, 7, 12)])


def chosen(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_selection_by_validation_measures_where_the_models_part(
    bending: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("fit", bending, "-o", tmp_path / "m.json", "--select", "validation", "--output", "json")
    assert command(*words, "--train", "1,2,3,4", "--models", "inverse-time,quadratic") == 0
    result = chosen(capsys)
    assert result["chosen"] == "inverse-time"
    assert result["validated_on"] == [7]
    assert all(fit["validation"] is not None for fit in result["fits"])
    assert all(fit["test"] is not None for fit in result["fits"])  # 12 workers are left


def test_selection_by_validation_says_what_to_measure_where_nobody_did(
    bending: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("fit", bending, "-o", tmp_path / "m.json", "--select", "validation", "--train", "1,2,3,4,7")
    assert command(*words, "--models", "inverse-time,quadratic") == 2
    said = capsys.readouterr().err
    assert "trained on 1,2,3,4,7, the models part at " in said
    assert "penstock measure --workers " in said
    assert not (tmp_path / "m.json").exists()


def test_under_provisioning_can_be_made_to_weigh_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Of 6,450 rows/s with 7 workers a line promises 6,725, the parabola 1,025 m - 25 m² 5,950: farther off, and safe.
    rates = {1: 1000.0, 2: 1950.0, 3: 2850.0, 7: 6450.0}
    path = written(tmp_path / "s.parquet", [row(m, 0, rate) for m, rate in rates.items()])
    words = ("fit", path, "-o", tmp_path / "m.json", "--train", "1,2,3", "--select", "validation", "--output", "json")
    for weight, expected in (("1", "linear"), ("10", "quadratic")):
        assert command(*words, "--models", "linear,quadratic", "--under-weight", weight) == 0
        result = chosen(capsys)
        assert (result["validated_on"], result["chosen"]) == ([7], expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--models", "cubic"], "cubic is no model: there are inverse-time"),
        (["--under-weight", "0.5"], "0.5 is no number from 1 to 1000"),
        (["--select", "best"], "invalid choice: 'best'"),
    ],
)
def test_bad_choices_are_one_line(
    bending: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("fit", bending, "-o", "m.json", *words) == 2
    said = capsys.readouterr().err
    assert (message in said, said.count("\n")) == (True, 1)


def test_advice_promises_what_those_workers_delivered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Four workers of word count delivered 35.7 MB/s; 48.6 were promised for them, "with 95 % confidence".
    rows = [row for row in read_rows(MEASURED) if (row["app"], row["source"]) == ("wordcount", "files")]
    path = written(tmp_path / "wordcount.parquet", rows)
    assert command("fit", path, "-o", tmp_path / "m.json") == 0
    assert "left out, corrected" in capsys.readouterr().out
    model = read_model(tmp_path / "m.json")
    assert model.sustainable(4, 10.0) * (model.about.bytes_per_row or 0) == pytest.approx(35.7e6, rel=0.05)
    assert command("advise", tmp_path / "m.json", "--rate", "40MB/s") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("5 workers")
    assert "confidence at least" not in shown
    assert "no confidence interval: one sample per count" in shown


def test_what_may_not_have_settled_and_what_was_not_limited_is_said_where_it_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        row(1, 0, 1e5, limited=False),
        row(2, 0, 2e5, limited=False, flags="did not settle, batches too short to tell"),
    ]
    path = written(tmp_path / "s.parquet", rows)
    assert command("fit", path, "-o", tmp_path / "m.json") == 0
    fitted = capsys.readouterr().out
    assert command("advise", tmp_path / "m.json", "--rate", "1000/s") == 0
    advised = capsys.readouterr().out
    for shown in (fitted, advised):
        assert "not known to have settled: samples of 2 workers" in shown
        assert "too short to tell: batches of 2 workers" in shown
        assert "no CPU limit held while measuring" in shown


def test_the_table_of_a_measurement_shows_what_was_delivered_and_labels_what_was_corrected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sample = row(2, 0, 1000.0, fixed_s=2.0, speed=0.5, rows_per_s_corrected=2000.0, fixed_s_corrected=1.0)
    dry = row(1, 0, 0.0, flags="source ran dry", speed=None) | dict.fromkeys(
        ("rows_per_s", "fixed_s", "rows_per_s_corrected", "fixed_s_corrected")
    )
    page().print(as_table([dry, sample], 10.0))
    shown = capsys.readouterr().out
    # 1,000 · (1 − 2/10) delivered; 2,000 · (1 − 1/10) on the undisturbed machine.
    assert "800" in shown
    assert "1,800" in shown
    assert "MST corrected" in shown
    assert shown.splitlines()[1].split()[1] == "-"  # nothing measured is not 0


def test_a_plan_names_counts_within_the_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("plan-measurements", "--budget", "7", "--sizes", "2,3", "--output", "json") == 0
    plans = json.loads(capsys.readouterr().out)
    assert [plan["max"] for plan in plans] == [2, 3, 4, 5]
    assert all(plan["workers"] == sum(plan["counts"]) <= 7 for plan in plans)
    assert plans[0]["partitions_eq1"] == [1, 1]
    assert command("plan-measurements", "--cores", "2", "--operators", "3", "--max", "5", "--sizes", "3") == 0
    assert "by eq 1" in capsys.readouterr().out
    assert command("plan-measurements", "--budget", "2") == 2
    assert "raise --max or --budget" in capsys.readouterr().err
    one = written(tmp_path / "one.parquet", [row(m, 0, 1e5 * m) for m in (1, 2, 3, 4)])
    two = written(tmp_path / "two.parquet", [row(m, 0, 1e5 * m) for m in (1, 2, 8)])
    assert command("plan-measurements", one) == 0
    capsys.readouterr()
    assert command("plan-measurements", one, two) == 2
    assert "measured with different worker counts" in capsys.readouterr().err
