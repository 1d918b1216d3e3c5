"""`penstock trace` as a command: its summary, its one-line errors, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.cli.main import main
from tests.live.processes import lines_of

TABLE = "timestamp,requests\n" + "".join(f"2020-01-01 00:0{i},{i}\n" for i in range(5))
COMMAND = [sys.executable, "-c", "from penstock.cli.main import run; run()", "trace"]


@pytest.fixture(scope="module")
def warm() -> Iterator[None]:
    """One JVM for all commands of this file."""
    from penstock.pipeline.session import session

    with session("local[2]"):
        yield


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.spark
def test_the_summary_says_what_was_read_and_written(
    warm: None, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "rates.parquet"
    assert main(["trace", str(source), "-o", str(output)]) == 0
    said = capsys.readouterr()
    for words in (
        "(counts)",
        "rows read",
        "intervals",
        "5 of 60 s",
        "mean rate",
        "peak rate",
        "2020-01-01 00:04:00 UTC",
    ):
        assert words in said.out
    assert lines_of(said.err) == []
    assert pq.read_table(output)["arrivals"].to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.spark
def test_the_json_summary_is_one_document(
    warm: None, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(source), "-o", str(tmp_path / "r.parquet"), "--every", "5m", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["rows"], found["intervals"], found["arrivals"]) == ("counts", 5, 1, 10)
    assert found["first"] == "2020-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.csv", "-o", "r.parquet"], "nowhere.csv: no such file or directory"),
        (["a.csv", "-o", "nowhere/r.parquet"], "the folder nowhere does not exist"),
        (["a.csv", "-o", "r.parquet", "--every", "soon"], "--every 'soon' is not a duration"),
        (["a.csv", "-o", "r.parquet", "--column", "requets"], "did you mean 'requests'?"),
        (["a.csv", "-o", "r.parquet", "--stats"], "--stats needs single arrivals"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(source.parent)
    assert main(["trace", *arguments]) == 2
    seen = capsys.readouterr()
    assert said in seen.err
    assert seen.err.count("\n") == 1
    assert sorted(path.name for path in source.parent.iterdir()) == ["a.csv"]


def test_without_java_nothing_is_started(source: Path) -> None:
    environment = {"PATH": str(source.parent), "JAVA_HOME": ""}
    command = [*COMMAND, str(source), "-o", str(source.parent / "r.parquet")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("penstock: Spark needs Java 17 or newer")
    assert ended.stderr.count("\n") == 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("name", "is_working"), [("SIGINT", False), ("SIGINT", True), ("SIGTERM", True)])
def test_an_interrupt_leaves_no_output_no_scratch_and_no_jvm(tmp_path: Path, name: str, is_working: bool) -> None:
    """Once while the JVM starts, and then in the middle of a Spark job."""
    scratch, out = tmp_path / "tmp", tmp_path / "out"
    scratch.mkdir()
    out.mkdir()
    source = tmp_path / "access.log"
    line = '10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /{} HTTP/1.0" 200 1\n'
    source.write_text("".join(line.format(i) for i in range(1000)) * 5000)
    command = [*COMMAND, str(source), "-o", str(out / "rates.parquet")]
    environment = os.environ | {"TMPDIR": str(scratch)}
    running = subprocess.Popen(
        command, env=environment, cwd=out, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        list(out.glob(".*/intervals")) if is_working else descendants(running.pid)
    ):
        time.sleep(0.1)
    time.sleep(0.5 if is_working else 0.0)  # into the tasks, which go on writing when nobody wants it any more
    children = descendants(running.pid)
    assert children
    running.send_signal(getattr(signal, name))
    said, complaint = running.communicate(timeout=60)
    # On a busy machine it may have said what it waits for.
    assert (running.returncode, said, complaint.splitlines()[-1]) == (130, "", "penstock: interrupted")
    assert list(out.iterdir()) == []
    assert list(scratch.iterdir()) == []
    assert [child for child in children if is_running(child)] == []


def descendants(process: int) -> list[int]:
    """All processes below one, from /proc; those that end meanwhile are left out."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def is_running(process: int) -> bool:
    """Not ended; one that has ended but that nobody has waited for does not run."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
