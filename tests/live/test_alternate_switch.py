"""A query that is switched to another implementation while rows come: nothing is lost, nothing counts twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.core.journal import Journal
from penstock.core.loop import Step
from tests.live.processes import wait_for_none

pytestmark = [pytest.mark.spark, pytest.mark.slow]

APP = """
import json
from pathlib import Path
from pyspark.sql import functions as F
from penstock.apps.app import Variant

def plain(rows):
    "Count rows by their value."
    return rows.groupBy("value").count().withColumn("by", F.lit("plain"))

def spread(rows):
    return rows.repartition(3, "value").groupBy("value").count().withColumn("by", F.lit("spread"))

def other(rows):
    "Its state has another column: Spark refuses it in the same checkpoint."
    counted = rows.groupBy("value").agg(F.count("*").alias("count"), F.max("timestamp").alias("last"))
    return counted.select("value", "count", F.lit("other").alias("by"), F.col("last").cast("string").alias("last"))

VARIANTS = (Variant("plain", plain), Variant("spread", spread, cost=0.5, value=0.9), Variant("other", other, cost=0.1))

def write(batch, number):
    told = [row.asDict() for row in batch.collect()]
    Path("batches").mkdir(exist_ok=True)
    Path(f"batches/{number}.json").write_text(json.dumps(told))
"""

POLICY = """
from dataclasses import replace
from penstock import Decision, Knob
ORDER = ["plain", "spread", "plain", "other"]
class Turning:
    "The next implementation, three ticks after the one before ran; a second worker meanwhile."
    needs, memory_s = frozenset({Knob.WORKERS, Knob.ALTERNATE}), 0.0
    def __init__(self, job):
        (operator,) = job.dataflow.operators
        assert [each.name for each in operator.alternates] == ["plain", "spread", "other"], operator
        self.name, self.at, self.ticks = operator.name, 0, 0
    def decide(self, seen):
        self.ticks = self.ticks + 1 if seen.running.alternate.get(self.name) == ORDER[self.at] else 0
        if self.ticks >= 3 and self.at + 1 < len(ORDER):
            self.at, self.ticks = self.at + 1, 0
        target = seen.target.resized(1 + self.at % 2)
        return Decision(replace(target, alternate={self.name: ORDER[self.at]}), f"the turn of {ORDER[self.at]}")
"""
ROWS = 200


@pytest.fixture
def incoming(tmp_path: Path) -> Iterator[Path]:
    """A folder into which a file of 200 rows, of ten values, comes every half second until `enough` is there."""
    folder, done = tmp_path / "incoming", threading.Event()
    folder.mkdir()

    def feed() -> None:
        number = 0
        while not done.wait(0.5) and not (tmp_path / "enough").exists():
            number += 1
            (folder / f".{number}").write_text("".join(f"v{row % 10}\n" for row in range(ROWS)))
            (folder / f".{number}").replace(folder / f"{number:05}.txt")

    thread = threading.Thread(target=feed)
    thread.start()
    yield folder
    done.set()
    thread.join()


def test_a_query_is_switched_between_batches_and_every_row_counts_once(incoming: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(APP)
    (tmp_path / "turning.py").write_text(POLICY)
    scratch, journal = tmp_path / "scratch", tmp_path / "journal.jsonl"
    scratch.mkdir()
    words = ["--min", "1", "--max", "2", "--trigger", "1s", "--tick", "2s", "--cores", "0.5", "--partitions", "3"]
    places = ["--checkpoint", "checkpoint", "--journal", str(journal), "--to", "mine:write", "--files", str(incoming)]
    command = [sys.executable, "-m", "penstock", "run", "mine:plain", "--policy", "turning.py:Turning"]
    process = subprocess.Popen(
        [*command, *words, *places],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_until(lambda: any("other was refused" in step.decision.reason for step in _steps(journal)), process)
    (tmp_path / "enough").touch()
    fed = ROWS * len(list(incoming.glob("[0-9]*.txt")))
    _wait_until(lambda: _counted(tmp_path) == fed, process)
    _wait_until(lambda: _steps(journal)[-1].seen.processed == fed, process)
    process.send_signal(2)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said

    steps, batches = _steps(journal), _batches(tmp_path)
    # Ten values, each in every tenth row: all of them are counted once, whoever counted them.
    assert {row["value"]: row["count"] for row in batches[-1]} == {f"v{value}": fed // 10 for value in range(10)}
    ran = [batch[0]["by"] for batch in batches if batch]
    turns = [by for number, by in enumerate(ran) if number == 0 or ran[number - 1] != by]
    assert turns == ["plain", "spread", "plain"]
    assert sorted(int(path.stem) for path in (tmp_path / "batches").iterdir()) == list(range(len(batches)))
    # The journal says what runs, what is asked for, what was refused and why; counters never fall.
    active = [step.seen.running.alternate["mine:plain"] for step in steps]
    assert {"plain", "spread"} <= {*active}
    assert active[-1] == "plain"
    assert any(step.target.alternate == {"mine:plain": "spread"} for step in steps)
    reasons = " ".join(step.decision.reason for step in steps)
    assert "alternate spread in place of plain" in reasons
    assert "alternate other was refused, plain goes on" in reasons
    arrived = [step.seen.arrived for step in steps]
    assert arrived == sorted(arrived)
    assert max(len(step.seen.running.workers) for step in steps) == 2
    assert wait_for_none(scratch) == []


def _steps(journal: Path) -> list[Step]:
    return list(Journal.open(journal)) if journal.exists() and journal.stat().st_size else []


def _batches(folder: Path) -> list[list[dict[str, object]]]:
    found = sorted((folder / "batches").glob("*.json"), key=lambda path: int(path.stem))
    return [json.loads(path.read_text() or "[]") for path in found]


def _counted(folder: Path) -> int:
    """Rows by the last count of each value; a batch tells those values that came in it, here always all."""
    told = [batch for batch in _batches(folder) if batch]
    return sum(int(str(row["count"])) for row in told[-1]) if told else 0


def _wait_until(ready: object, process: subprocess.Popen[str], patience_s: float = 400.0) -> None:
    assert callable(ready)
    deadline = time.monotonic() + patience_s
    while not ready():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.5)
