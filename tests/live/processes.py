"""Starts jobs in processes of their own, and says what a process left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATIENCE_S = 600.0  # a busy machine is no failure


def run_job(name: str, *words: Any) -> dict[str, Any]:
    """Run a job to its end; returns what it said."""
    said = run_lines(name, *words)
    return said[0] if said else {}


def run_lines(name: str, *words: Any) -> list[dict[str, Any]]:
    """The same for a job that says several things."""
    command = [sys.executable, "-m", "tests.live.jobs", name, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-2000:]
    return [dict(json.loads(line)) for line in done.stdout.splitlines()]


def lines_of(errors: str) -> list[str]:
    """What a command said, without what a busy machine makes it say while it waits."""
    waits = re.compile(r"^penstock: waiting for |^(?!penstock: ).* \([\d.]+ (s|min)\)$")
    return [line for line in errors.strip().splitlines() if not waits.search(line)]


@contextlib.contextmanager
def started(words: list[str], tmpdir: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A Python process; it is killed at the end, if it still runs."""
    environment = {**os.environ, **({"TMPDIR": str(tmpdir)} if tmpdir else {})}
    process = subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        _, errors = process.communicate(timeout=PATIENCE_S)
        raise AssertionError(f"said nothing, but: {errors[-2000:]}")
    return line


def with_tmpdir(folder: Path) -> list[str]:
    """Command lines of processes whose scratch is in the folder: those that a start in it left, too."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if f"TMPDIR={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[-200:])
    return found


def wait_for_none(folder: Path, patience_s: float = 120.0) -> list[str]:
    """What still runs in the folder after a while: nothing, it is hoped."""
    deadline = time.monotonic() + patience_s
    while (left := with_tmpdir(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def left_in(folder: Path) -> list[str]:
    """Names in the user's folder of holdings."""
    return sorted(path.name for home in folder.glob("penstock-*") for path in home.iterdir())
