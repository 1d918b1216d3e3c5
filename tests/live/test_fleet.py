"""A real fleet: queries move between Spark applications, one is killed, and every event is counted exactly once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.fleet_feed import FedQuery, FleetFeeder

from penstock.core.journal import Journal
from penstock.core.loop import Step
from tests.live.processes import wait_for_none

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
SHUTTLE = f"{ROOT / 'benchmarks' / 'jobs' / 'shuttle.py'}:Shuttle"
PATIENCE_S = 900.0
TICKS = ["AAA\ttech\t1.5", "BBB\ttech\t2.5", "CCC\tretail\t3.5"]
TAGS = ["see #spark and #spring", "no tag", "#other #spark"]
HEAD = 'name = "test"\nstate = "{}/state"\n[hosts]\nleast = 1\nmost = 2\ncores = 0.5\nmemory_mb = 512\n'


def steps_of(journal: Path) -> list[Step]:
    return list(Journal.open(journal)) if journal.exists() and journal.stat().st_size else []


def moves_in(steps: list[Step]) -> int:
    return sum(len(re.findall(r" moved from w\d+ to w\d+ in ", step.decision.reason)) for step in steps)


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None
        assert time.monotonic() < until_s
        time.sleep(0.5)


def host_processes() -> list[int]:
    """Of hosts: the Python process of each."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"penstock.live.fleet_host" in words:
                found.append(int(each.name))
    return found


def test_after_moves_and_a_killed_host_every_event_was_counted_once_and_nothing_is_left(tmp_path: Path) -> None:
    queries = [
        FedQuery("tech", "candlesticks", {"sector": "tech", "window_s": 10}, tmp_path / "i1", tmp_path / "o1", TICKS),
        FedQuery(
            "retail", "candlesticks", {"sector": "retail", "window_s": 60}, tmp_path / "i2", tmp_path / "o2", TICKS
        ),
        FedQuery("sp", "hashtags", {"prefix": "sp", "window_s": 20}, tmp_path / "i3", tmp_path / "o3", TAGS),
    ]
    fleet, journal, scratch = tmp_path / "fleet.toml", tmp_path / "fleet.jsonl", tmp_path / "scratch"
    fleet.write_text(HEAD.format(tmp_path) + "".join(query.toml() for query in queries))
    scratch.mkdir()
    words = ["fleet", str(fleet), "--policy", SHUTTLE, "--tick", "2s", "--journal", str(journal)]
    before = set(host_processes())
    log = tmp_path / "log"
    with log.open("w") as says:
        command = [sys.executable, "-m", "penstock", *words]
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)}, stderr=says)
    feeder = FleetFeeder(queries, lambda _: 50.0)
    try:
        feeder.start()
        wait_until(lambda: moves_in(steps_of(journal)) >= 2, process)
        os.kill(min(set(host_processes()) - before), signal.SIGKILL)
        wait_until(lambda: any("is gone" in step.decision.reason for step in steps_of(journal)), process)
        moved = moves_in(steps_of(journal))
        wait_until(lambda: moves_in(steps_of(journal)) >= moved + 2, process)
        feeder.stop()
        wait_until(lambda: all(query.counted() == query.expected for query in queries), process)
        wait_until(lambda: steps_of(journal)[-1].seen.backlog == 0, process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        said = log.read_text()
    assert process.returncode == 130, said
    assert {query.name: query.counted() for query in queries} == {query.name: query.expected for query in queries}
    last = steps_of(journal)[-1].seen
    # Rows of batches whose report died with the host are counted, too.
    assert last.processed == sum(query.fed for query in queries)
    assert re.search(r"host w\d+ is gone \(it ended: .*\): \d queries go on elsewhere", said)
    assert set(host_processes()) <= before
    assert wait_for_none(scratch) == []
