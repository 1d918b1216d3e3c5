"""Results of `penstock run` arrive, once each, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from penstock.cli.main import main
from penstock.core.errors import BadInput
from penstock.live.sinks import Sink
from penstock.pipeline.session import session
from tests.live.processes import wait_for_none
from tests.live.test_run import environment

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("text", "kind", "kept"),
    [
        ("parquet:out", "parquet", True),
        ("json:a/b", "json", True),
        ("kafka:clicks", "kafka", True),
        ("orders:each", "foreachBatch", True),
        ("console", "console", False),
        ("noop", "noop", False),
        ("app", "app", False),
    ],
)
def test_a_sink_is_told_by_its_name(text: str, kind: str, kept: bool) -> None:
    assert (Sink.parse(text).kind, Sink.parse(text).is_kept) == (kind, kept)


@pytest.mark.parametrize("text", ["", "parquet", "parquet:", "kafka:", "noop:x", "a b", "console:", "x:1"])
def test_what_is_no_sink_is_said_with_the_choices(text: str) -> None:
    with pytest.raises(BadInput, match="parquet:DIR, json:DIR, kafka:TOPIC, console, noop, module:function"):
        Sink.parse(text)


def test_results_of_another_checkpoint_are_not_gone_on_with(tmp_path: Path) -> None:
    """Spark would leave out batches whose numbers are there already, and their rows would be lost."""
    sink = Sink.parse(f"parquet:{tmp_path / 'out'}")
    sink.check(tmp_path / "state", "append")
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(BadInput, match="it has results of another checkpoint"):
        sink.check(tmp_path / "state", "append")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "metadata").touch()
    sink.check(tmp_path / "state", "append")
    with pytest.raises(BadInput, match="it has begun with another sink"):
        Sink.parse(f"parquet:{tmp_path / 'new'}").check(tmp_path / "state", "append")


def test_a_folder_with_other_files_is_spared(tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").touch()
    with pytest.raises(BadInput, match="there are files in it that no such job wrote"):
        Sink.parse(f"parquet:{tmp_path}").check(tmp_path / "state", "append")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "nobody says where the results go: --to parquet:DIR"),
        ("--to parquet:out", "takes rows that never change, and the app's output mode is update"),
        ("--to kafka:t", "give --source kafka"),
        ("--to orders:nothing --checkpoint c", "orders has no function 'nothing(batch, number)'"),
        ("--to orders:each", "needs --checkpoint DIR"),
    ],
)
def test_a_sink_that_cannot_be_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    monkeypatch.chdir(EXAMPLES)
    files = ["--files", str(tmp_path), "--min", "1", "--max", "2"]
    assert main(["run", "orders:by_country", *files, *words.split()]) == 2
    assert said in capsys.readouterr().err


def orders(folder: Path, first: int, count: int) -> None:
    """Files of 10 orders, each with a number of its own as its cents; whole when they get their names."""
    for start in range(first, first + count, 10):
        part = folder / f".{start}"
        part.write_text("".join(f"country{n % 7},{n}\n" for n in range(start, start + 10)))
        part.rename(folder / f"{start}.csv")


def started(folder: Path) -> subprocess.Popen[bytes]:
    words = ["run", "orders:each", "--files", str(folder / "incoming"), "--to", f"parquet:{folder / 'out'}"]
    words += ["--output-mode", "append", "--min", "1", "--max", "1", "--policy", "static:workers=1", "--cores", "0.5"]
    words += ["--trigger", "1s", "--tick", "2s", "--rows-max", "2", "--partitions", "2"]
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "penstock", *words]
        return subprocess.Popen(command, cwd=EXAMPLES, env=environment(folder), stdout=log, stderr=log)


def wait_for_rows(folder: Path, process: subprocess.Popen[bytes], least: int) -> None:
    deadline = time.monotonic() + 400
    while sum(pyarrow.parquet.read_metadata(path).num_rows for path in whole_files(folder)) < least:
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
        time.sleep(0.5)


def whole_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "out").glob("*.parquet") if path.stat().st_size]


@pytest.mark.spark
@pytest.mark.slow
def test_every_order_arrives_once_through_a_kill_and_a_restart(tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    orders(tmp_path / "incoming", 0, 200)
    process = started(tmp_path)
    wait_for_rows(tmp_path, process, 60)
    process.kill()
    process.wait()
    orders(tmp_path / "incoming", 200, 100)
    process = started(tmp_path)
    wait_for_rows(tmp_path, process, 300)
    time.sleep(3)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(200) == 130
    with session("local[2]", "count") as spark:
        found = sorted(row["cents"] for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == list(range(300))
    assert wait_for_none(tmp_path / "scratch") == []
