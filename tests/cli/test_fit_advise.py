"""`penstock fit` and `penstock advise`, from samples to a number of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.cli.main import main
from penstock.models.capacity import read_model
from penstock.models.samples import write_samples
from penstock.models.throughput_curves import InverseTime

TRUTH = InverseTime(serial=2e-6, parallel=1e-5)


def row(workers: int, repeat: int, rate: float, **changes: Any) -> dict[str, Any]:
    known = {"app": "wordcount", "source": "files", "workers": workers, "repeat": repeat, "rows_per_s": rate}
    more = {"fixed_s": 1.0 + 0.1 * workers, "bytes_per_row": 100.0, "cores": 0.25, "partitions": 4, "flags": ""}
    return known | more | {"partitions_per_worker": None, "setup": '{"machine": {"cpus": 2}}'} | changes


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    rows = [
        row(workers, repeat, TRUTH.rate(workers) * (1 + 0.02 * rng.standard_normal()))
        for workers in (1, 2, 3, 4, 5)
        for repeat in range(3)
    ]
    write_samples(rows, tmp_path / "samples.parquet")
    return tmp_path / "samples.parquet"


def command(*words: object) -> int:
    return main([str(word) for word in words])


def test_the_model_that_made_the_samples_is_chosen_and_predicts_what_it_has_not_seen(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.json"
    assert command("fit", samples, "-o", model, "--train", "1,2,3", "--output", "json") == 0
    result = json.loads(capsys.readouterr().out)
    chosen = next(fit for fit in result["fits"] if fit["kind"] == result["chosen"])
    assert chosen["test"] < 0.10
    line = next(fit for fit in result["fits"] if fit["kind"] == "linear")
    assert chosen["test"] < line["test"]
    assert read_model(model).sustainable(5, None) == pytest.approx(TRUTH.rate(5), rel=0.1)
    # 1 s and 0.1 s for each worker before the first row.
    assert read_model(model).fixed_s(4) == pytest.approx(1.4)


def test_the_table_names_what_to_measure_next_and_the_picture_is_drawn(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "model.svg"
    assert command("fit", samples, "-o", tmp_path / "model.json", "--plot", plot) == 0
    assert "measure next: " in capsys.readouterr().out
    drawn = plot.read_text()
    assert drawn.count("<circle") == 15
    assert drawn.count("<polyline") == 4


def test_advice_sustains_the_rate_with_the_confidence_asked(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("fit", samples, "-o", tmp_path / "model.json")
    capsys.readouterr()
    assert command("advise", tmp_path / "model.json", "--rate", "18MB/s", "--output", "json") == 0
    advice = json.loads(capsys.readouterr().out)
    # 18 MB/s are 180,000 rows/s. Two workers do 143,000 · (1 − 1.2/10) = 126,000; three 1/(5.33e-6) · 0.87 = 163,000;
    # four 222,000 · 0.86 = 191,000.
    assert advice["workers"] == 4
    assert advice["capacity_low"] >= 180_000
    assert advice["max_offsets_per_trigger"] == int(advice["capacity"] * 10)
    assert advice["cost_per_hour"] == pytest.approx(0.40)
    # A shorter trigger loses more to the fixed time, a longer one less.
    assert advice["other_triggers"]["5.0"] > 4 > advice["other_triggers"]["50.0"]


def test_advice_beyond_what_was_measured_and_beyond_the_partitions_warns(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("fit", samples, "-o", tmp_path / "model.json")
    command("advise", tmp_path / "model.json", "--rate", "250000/s", "--confidence", "0.5")
    shown = capsys.readouterr().out
    assert "beyond what was measured (1 to 5)" in shown
    assert "slots for 4 partitions" in shown
    assert "how sure" not in shown


def test_one_sample_a_count_tells_no_confidence_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_samples([row(workers, 0, TRUTH.rate(workers)) for workers in (1, 2, 3)], tmp_path / "samples.parquet")
    command("fit", tmp_path / "samples.parquet", "-o", tmp_path / "model.json")
    assert command("advise", tmp_path / "model.json", "--rate", "100000/s") == 0
    shown = capsys.readouterr().out
    assert "no confidence interval: one sample per count" in shown
    assert "confidence at least" not in shown
    assert read_model(tmp_path / "model.json").interval(2, 10.0, 0.95) is None


def test_a_rate_that_only_the_point_estimate_would_sustain_is_refused_with_the_lower_bound(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command("fit", samples, "-o", tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    low, _ = model.interval(3, 10.0, 0.95) or (0.0, 0.0)
    rate = (low + model.sustainable(3, 10.0)) / 2
    assert command("advise", tmp_path / "model.json", "--rate", f"{rate:.0f}/s", "--max", "3") == 2
    assert f"3 workers do at least {low:,.0f} rows/s" in capsys.readouterr().err


def test_a_model_in_other_units_is_refused(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.json"
    command("fit", samples, "-o", path)
    content = json.loads(path.read_text())
    assert content["units"] == {"rate": "rows/s", "time": "s"}
    path.write_text(json.dumps(content | {"units": {"rate": "MB/s", "time": "s"}}))
    assert command("advise", path, "--rate", "1000/s") == 2
    assert "a model is in rows/s and s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(1, 0, 1e5), row(1, 1, 1e5)], "measure at least two"),
        ([row(1, 0, 1e5), row(2, 0, 2e5, app="grep")], "different app (grep, wordcount)"),
        ([row(1, 0, 1e5), row(2, 0, 2e5, cores=1.0)], "different cores"),
        (
            [row(1, 0, 1e5), row(2, 0, 2e5, setup='{"machine": {"cpus": 8}}')],
            "different set-ups (machine.cpus: 2, 8)",
        ),
        ([row(1, 0, 1e5, flags="source ran dry")], "no sample that can be trusted"),
        ([], "is empty"),
    ],
)
def test_samples_that_make_no_model_are_refused(
    rows: list[dict[str, Any]], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_samples(rows, tmp_path / "samples.parquet")
    assert command("fit", tmp_path / "samples.parquet", "-o", tmp_path / "model.json") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rate", "40"], "write it with its unit"),
        (["--rate", "40MB"], "write it with its unit"),
        (["--rate", "fast"], "write it with its unit"),
        (["--rate", "400GB/s"], "above every capacity"),
        (["--rate", "1MB/s", "--confidence", "95"], "95 is no number from 0.5 to 0.999"),
        (["--rate", "1MB/s", "--trigger", "10"], "is not a duration"),
    ],
)
def test_bad_questions_are_one_line(
    samples: Path, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command("fit", samples, "-o", tmp_path / "model.json")
    capsys.readouterr()
    assert command("advise", tmp_path / "model.json", *words) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert message in shown.err


def test_two_counts_tell_no_slope_of_the_fixed_time(tmp_path: Path) -> None:
    rows = [row(1, 0, 1e5, fixed_s=0.9), row(2, 0, 2e5, fixed_s=1.5)]
    write_samples(rows, tmp_path / "samples.parquet")
    assert command("fit", tmp_path / "samples.parquet", "-o", tmp_path / "model.json") == 0
    assert read_model(tmp_path / "model.json").fixed_s(8) == pytest.approx(1.2)


def test_training_on_what_was_not_measured_is_refused(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("fit", samples, "-o", tmp_path / "m.json", "--train", "1,9") == 2
    assert "9 workers were not measured" in capsys.readouterr().err
    assert command("fit", tmp_path / "none.parquet", "-o", tmp_path / "m.json") == 2
    assert "no such file" in capsys.readouterr().err
