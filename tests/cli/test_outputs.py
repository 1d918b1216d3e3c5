"""No command ever removes, empties or replaces what it did not make, whatever is named as an output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.models.samples import SCHEMA, write_samples
from tests.cli.worlds import World

SCENARIO = """\
duration_s = 600.0
limits = {workers_min = 1, workers_max = 4}
capacity = {per_worker = 50.0}
[[workload]]
shape = "constant"
rate = 60.0
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good inputs of every command."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "rates.csv").write_text("t_s,arrivals\n" + "".join(f"{60 * n},{100 + n}\n" for n in range(30)))
    (folder / "world.toml").write_text(SCENARIO)
    World().journal(folder / "run.jsonl", seed=1)
    row = dict.fromkeys(SCHEMA.names) | {"app": "wordcount", "source": "files", "repeat": 0, "flags": "", "setup": "{}"}
    row |= {"fixed_s": 1.0, "bytes_per_row": 100.0, "cores": 0.25, "partitions_per_worker": 2.0, "speed": 1.0}
    write_samples([row | {"workers": n, "rows_per_s": 100.0 * n} for n in (1, 2, 3)], folder / "samples.parquet")
    return folder


COMMANDS = {
    "replay --report": ("replay rates.csv --policy static-peak --report", "rates.csv"),
    "replay --journal": ("replay rates.csv --policy static-peak --journal", "rates.csv"),
    "fit -o": ("fit samples.parquet -o", "samples.parquet"),
    "fit --plot": ("fit samples.parquet -o model.json --plot", "samples.parquet"),
    "calibrate -o": ("calibrate run.jsonl -o", "run.jsonl"),
    "trace -o": ("trace rates.csv -o", "rates.csv"),
    "trace --quarantine": ("trace rates.csv -o rates.parquet --quarantine", "rates.csv"),
    "sweep -o": ("sweep world.toml --policy static-peak -o", "world.toml"),
    "measure -o": ("measure wordcount --workers 1 -o", "world.toml"),
}
PLACES = ("full", "full/..", "full/sub", ".", "..", "link-to-folder", "link-to-file", "pipe", "INPUT")
# These make a folder, or go into one that is there; nothing in it is replaced but journals of the same names.
INTO_FOLDERS = {("replay --journal", place) for place in ("full", "full/..", "full/sub", ".", "..", "link-to-folder")}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", PLACES)
def test_what_was_there_before_is_there_after(
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    place: str,
) -> None:
    words, source = COMMANDS[command]
    here = tmp_path / "here"
    here.mkdir()
    for path in prepared.iterdir():
        (here / path.name).write_bytes(path.read_bytes())
    (here / "full" / "sub").mkdir(parents=True)
    (here / "full" / "sub" / "mine.txt").write_text("mine")
    (here / "link-to-folder").symlink_to("full")
    (here / "link-to-file").symlink_to("full/sub/mine.txt")
    os.mkfifo(here / "pipe")
    monkeypatch.chdir(here)
    before = _contents(tmp_path)
    code = main([*words.split(), source if place == "INPUT" else place])
    after = _contents(tmp_path)
    assert {path: after.get(path) for path in before} == before
    said = capsys.readouterr().err.splitlines()
    assert (code, len(said)) == ((0, 0) if (command, place) in INTO_FOLDERS else (2, 1)), said


def _contents(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        found[str(path)] = path.read_bytes().hex() if path.is_file() else f"{path.lstat().st_mode:o}"
    return found


def test_calibrate_spares_a_series_beside_its_output(
    prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rates.csv").write_text("my own series")
    assert main(["calibrate", str(prepared / "run.jsonl"), "-o", str(tmp_path / "rates.toml")]) == 2
    assert (tmp_path / "rates.csv").read_text() == "my own series"
    assert "rates.csv exists" in capsys.readouterr().err


def test_the_demo_takes_no_folder_with_somebody_elses_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "access.log").write_text("my own log")
    assert main(["demo", "--folder", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["access.log"]
    assert "name a new folder" in capsys.readouterr().err


def test_a_sweep_spares_a_folder_that_only_looks_like_its_own(prepared: Path, tmp_path: Path) -> None:
    (tmp_path / "out.parquet.partial").mkdir()
    (tmp_path / "out.parquet.partial" / "notes.txt").write_text("mine")
    words = ["sweep", str(prepared / "world.toml"), "--policy", "static-peak", "-o", str(tmp_path / "out.parquet")]
    assert main(words) == 2
    assert (tmp_path / "out.parquet.partial" / "notes.txt").read_text() == "mine"


def test_a_sweep_refuses_an_output_that_holds_something_else(
    prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.parquet"
    output.write_bytes((prepared / "samples.parquet").read_bytes())
    assert main(["sweep", str(prepared / "world.toml"), "--policy", "static-peak", "-o", str(output)]) == 2
    assert output.read_bytes() == (prepared / "samples.parquet").read_bytes()
    assert "holds no results of a sweep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("trace logs -o logs/b.log", "logs/b.log"),
        ("trace rates.csv -o new.parquet", "new.parquet.quarantine"),
        ("calibrate run.jsonl -o learnt.toml", "learnt.csv"),
        ("calibrate run.jsonl -o run.jsonl.1 --no-load", "run.jsonl.1"),
        ("replay --scenario traced.toml --policy static-peak --report rates.csv", "rates.csv"),
        ("replay rates.csv --policy mine.py:Mine --report mine.py", "mine.py"),
        ("replay rates.csv --policy threshold --journal full", "full/threshold.jsonl"),
        ("replay rates.csv --policy static-peak --policy threshold --journal full", "full/threshold.jsonl"),
        ("replay threshold.jsonl --policy threshold --journal .", "threshold.jsonl"),
        ("fit samples.parquet -o link/m.json --plot full/m.json", "full/m.json"),
    ],
)
def test_what_nobody_named_as_an_output_is_not_replaced(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, kept: str
) -> None:
    for path in prepared.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "logs").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "link").symlink_to("full")
    for name in ("logs/a.log", "logs/b.log"):
        (tmp_path / name).write_text('h - - [01/May/2024:00:00:00 +0000] "GET / HTTP/1.0" 200 5\n')
    (tmp_path / "run.jsonl.1").write_bytes((tmp_path / "run.jsonl").read_bytes())
    (tmp_path / "threshold.jsonl").write_bytes((tmp_path / "rates.csv").read_bytes())
    (tmp_path / "traced.toml").write_text('[trace]\npath = "rates.csv"\n')
    # A calibration without a load, beside a series that it does not speak of.
    (tmp_path / "learnt.toml").write_text("# Learnt by `penstock calibrate`\n")
    for name in ("learnt.csv", "new.parquet.quarantine", "full/threshold.jsonl", "full/m.json"):
        (tmp_path / name).write_text("precious")
    (tmp_path / "mine.py").write_bytes((Path(__file__).parents[2] / "examples" / "mine.py").read_bytes())
    before = (tmp_path / kept).read_bytes()
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert (tmp_path / kept).read_bytes() == before


def test_a_replay_replaces_its_own_journals(prepared: Path, tmp_path: Path) -> None:
    words = ["replay", str(prepared / "rates.csv"), "--policy", "static-peak", "--journal", str(tmp_path / "out")]
    assert main(words) == 0
    assert main(words) == 0
