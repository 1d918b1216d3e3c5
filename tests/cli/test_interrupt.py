"""Ctrl-C: one line, exit code 130, nothing half-written, nothing left running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def _without_progress(text: str) -> str:
    """On a busy machine a command says every half minute how far it is, as in `16 replays, 0% (30 s)`."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not re.search(r"^(?!penstock: ).* \([\d.]+ (s|min)\)$", line)
    )


def interrupted(words: list[str], folder: Path, ready: str) -> subprocess.CompletedProcess[str]:
    """Run a command, wait until a file whose name contains `ready` is there, and press Ctrl-C."""
    command = [sys.executable, "-m", "penstock", *words]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 600  # on a machine that has other work, 120 s were not enough
    while not any(ready in path.name for path in folder.rglob("*")):
        assert process.poll() is None, process.communicate()
        if time.monotonic() > deadline:
            process.kill()
            raise AssertionError("the command never got to work", process.communicate())
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def running_in_session(leader: int) -> list[str]:
    """Processes of the session that a command led: none should be left. A zombie is gone, but for its parent."""
    left = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if fields and fields[0] != "Z" and int(fields[3]) == leader:
            left.append((entry / "comm").read_text())
    return left


@pytest.fixture
def long_series(tmp_path: Path) -> Path:
    path = tmp_path / "rates.csv"
    rows = "".join(f"{60 * minute},{minute % 977}\n" for minute in range(60_000))
    path.write_text("t_s,requests\n" + rows)
    return path


def test_a_replay_leaves_no_half_journal(long_series: Path) -> None:
    folder = long_series.parent
    words = ["replay", str(long_series), "--policy", "threshold", "--journal", "runs", "--report", "page.html"]
    done = interrupted(words, folder, ".part")
    assert (done.returncode, _without_progress(done.stderr)) == (130, "penstock: interrupted\n")
    assert sorted(path.name for path in folder.rglob("*")) == ["rates.csv", "runs"]


@pytest.mark.spark
def test_a_sweep_keeps_what_is_done_and_goes_on_from_there(tmp_path: Path) -> None:
    scenario = tmp_path / "world.toml"
    scenario.write_text("tick_s = 60\nduration_s = 1200000\n[workload]\nshape = 'sine'\nlow = 1\nhigh = 50\n")
    words = ["sweep", "world.toml", "--policy", "threshold", "--seeds", "16", "-o", "results.parquet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    partial = tmp_path / "results.parquet.partial"
    deadline = time.monotonic() + 120
    while not list(partial.glob("part-*.parquet")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert _without_progress(err) == "penstock: interrupted\n"
    assert not (tmp_path / "results.parquet").exists()
    deadline = time.monotonic() + 10
    while running_in_session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running_in_session(process.pid) == []
    again = subprocess.run(
        [sys.executable, "-m", "penstock", *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "16 cells, " in again.stdout
    assert "of them done before" in again.stdout
    assert not partial.exists()
