"""`penstock run` and `penstock.attach` on a real cluster: workers follow, nothing is left, a restart goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from penstock.apps.catalogue import APPS
from penstock.core.journal import Journal
from penstock.core.loop import Step
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.control_options import Wanted
from penstock.live.driver import RunPlan, _watch
from tests.live.processes import lines_of, wait_for_none

pytestmark = pytest.mark.spark

POLICY = """
from penstock import Decision, Knob
class Later:
    needs, memory_s = frozenset({Knob.WORKERS}), 0.0
    wishes = [1, 2, 1]
    def __init__(self, job): pass
    def decide(self, seen):
        if len(self.wishes) > 1 and len(seen.running.workers) == self.wishes[0]:
            self.wishes.pop(0)
        return Decision(seen.target.resized(self.wishes[0]), f"{len(self.wishes) - 1} wishes more")
"""


@pytest.fixture
def incoming(tmp_path: Path) -> Iterator[Path]:
    """A folder into which a file of 200 rows comes every second."""
    folder, done = tmp_path / "incoming", threading.Event()
    folder.mkdir()

    def feed() -> None:
        number = 0
        while not done.wait(1.0):
            number += 1
            scratch = folder / f".{number}"
            scratch.write_text("some words come and some go\n" * 200)
            scratch.replace(folder / f"{number:05}.txt")

    thread = threading.Thread(target=feed)
    thread.start()
    yield folder
    done.set()
    thread.join()


def running(steps: list[Step]) -> list[int]:
    return [len(step.seen.running.workers) for step in steps]


def is_last_wish_met(step: Step) -> bool:
    """One executor, then two, then one again: each when it was there, however long that took."""
    return "0 wishes more" in step.decision.reason and len(step.seen.running.workers) == 1


def command(folder: Path, *words: object) -> list[str]:
    common = ["--min", "1", "--max", "2", "--trigger", "2s", "--tick", "2s", "--cores", "0.5", "--partitions", "4"]
    places = ["--checkpoint", str(folder / "checkpoint"), "--journal", str(folder / "journal.jsonl")]
    return [sys.executable, "-m", "penstock", "run", "wordcount", *common, *places, *map(str, words)]


def environment(folder: Path) -> dict[str, str]:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(scratch)}


def test_a_job_follows_its_policy_and_goes_on_after_ctrl_c(incoming: Path, tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(POLICY)
    words = command(tmp_path, "--files", incoming, "--policy", f"{tmp_path}/later.py:Later", "--metrics-port", "0")
    process = subprocess.Popen(words, env=environment(tmp_path), stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "journal.jsonl"
    _wait_until(lambda: journal.exists() and len(list(Journal.open(journal))) > 5, process)
    _wait_until(lambda: is_last_wish_met(list(Journal.open(journal))[-1]), process)
    process.send_signal(signal.SIGUSR1)
    _wait_until(lambda: "paused" in list(Journal.open(journal))[-1].decision.reason, process)
    process.send_signal(signal.SIGUSR1)
    _wait_until(lambda: "paused" not in list(Journal.open(journal))[-1].decision.reason, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    steps = list(Journal.open(journal))
    assert max(running(steps)) == 2
    assert running(steps)[-1] == 1
    last = steps[-1].seen
    assert last.processed > 0
    # Files of 200 rows each: no batch is counted in part, and none is left out but those before the first look.
    assert last.processed % 200 == 0
    assert last.arrived >= last.processed
    for line in (
        "starting a Spark cluster on this machine: 2 workers",
        "starting Spark's driver",
        "starting wordcount",
    ):
        assert line in said
    assert re.search(r"attached: \d executors, 1 … 2, policy .*Later, objective latency<=120s, .* lag from ", said)
    assert "executors=1->2" in said
    assert wait_for_none(tmp_path / "scratch") == []

    # The same job again with a policy that replays too, unchanged: the later of two --policy counts.
    mine = f"{Path(__file__).parents[2] / 'examples' / 'mine.py'}:Mine"
    again = subprocess.Popen(
        [*words, "--policy", mine, "--for", "1h"], env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    )
    _wait_until(lambda: "/s needs " in list(Journal.open(journal))[-1].decision.reason, again)
    again.send_signal(signal.SIGINT)
    _, said = again.communicate(timeout=600)
    assert again.returncode == 130, said
    more = list(Journal.open(journal))
    assert more[len(steps)].seen.time_s > steps[-1].seen.time_s
    assert more[len(steps)].seen.arrived >= last.processed
    assert wait_for_none(tmp_path / "scratch") == []


ATTACHING = """
import os, signal, sys, time
import penstock
from penstock.live.executors import executors
from pyspark.sql import SparkSession
master, folder, checkpoint, journal, blind = sys.argv[1:]
spark = (SparkSession.builder.master(master).config("spark.cores.max", "2").config("spark.executor.cores", "1")
         .config("spark.sql.shuffle.partitions", "4").config("spark.driver.host", "127.0.0.1").getOrCreate())
rows = spark.readStream.format("text").load(folder)
query = (rows.groupBy("value").count().writeStream.format("noop").outputMode("update").queryName("mine")
         .option("checkpointLocation", checkpoint).trigger(processingTime="2 seconds").start())
other = (spark.readStream.format("rate").option("rampUpTime", "1h").load().writeStream.format("noop").queryName("other")
         .option("checkpointLocation", checkpoint + "-other").trigger(processingTime="10 seconds").start())
places = dict(policy="static:workers=1", tick="2s", journal=journal)
assert penstock.attach(spark, query, limits=(1, 9), **places) is None       # above spark.cores.max
assert penstock.attach(spark, query, limits=(1, 2), policy="nonsense") is None
assert penstock.attach(spark, other, limits=(1, 2), policy=blind) is None   # it needs what nobody tells
controller = penstock.attach(spark, query, other, limits=(1, 2), **places)
assert controller.is_running
assert penstock.attach(spark, query, limits=(1, 2), policy="static:workers=1") is None   # a job has one
def wait_for(done):
    for _ in range(600):
        if done(): return
        time.sleep(1)
    raise AssertionError("it did not happen")
def lines():
    return open(journal).read().splitlines()
def reason():
    return lines()[-1]
wait_for(lambda: len(executors(spark)) == 1)  # two queries rarely rest at once: it is ended after a minute all the same
seen = len(lines())
wait_for(lambda: len(lines()) > seen + 2)
os.kill(os.getpid(), signal.SIGUSR1)  # would end a process that does not take it
wait_for(lambda: "paused" in reason())
os.kill(os.getpid(), signal.SIGUSR1)
wait_for(lambda: "paused" not in reason())
controller.stop()
assert query.isActive and other.isActive
query.stop(); other.stop(); spark.stop()
print("the job ran on")
"""


def test_one_line_in_a_job_of_ones_own_scales_it_and_never_stops_it(incoming: Path, tmp_path: Path) -> None:
    script, journal = tmp_path / "job.py", tmp_path / "journal.jsonl"
    script.write_text(ATTACHING)
    (tmp_path / "blind.py").write_text(POLICY.replace("class Later:", "class Blind:\n    needs_lag = True"))
    with Cluster.start(ClusterSpec(2, cores=0.5)) as cluster:
        blind = f"{script.with_name('blind.py')}:Blind"
        words = [sys.executable, script, cluster.url, incoming, tmp_path / "checkpoint", journal, blind]
        done = subprocess.run(
            [*map(str, words)], env=environment(tmp_path), capture_output=True, text=True, timeout=1500
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the job ran on" in done.stdout
    blind_says = "blind.py:Blind needs the backlog. rate: nobody tells what waits there"
    for expected in ("spark.cores.max is 2", "unknown policy 'nonsense'", "has a controller already", blind_says):
        assert expected in done.stderr
    # Nobody has set up logging in the job: it is heard all the same.
    assert "attached: 2 executors, 1 … 2, policy static:workers=1, objective latency<=120s" in done.stderr
    assert "scaling executors=2->1" in done.stderr
    assert "the pause is over" in done.stderr
    steps = list(Journal.open(journal))
    assert running(steps)[-1] == 1
    # Two queries are two operators of one job; the source of one does not tell what waits in it, and that is said.
    assert set(steps[-1].seen.operators) == {"mine", "other"}
    assert any("does not tell what waits in it" in step.decision.reason for step in steps)
    assert any("paused by a signal" in step.decision.reason for step in steps)
    assert {(step.seen.backlog, step.seen.latency_s) for step in steps} == {(None, None)}
    assert all(step.seen.operators["mine"].backlog is not None for step in steps)


def test_a_run_for_some_time_ends_by_itself() -> None:
    class Endless:
        isActive = True  # noqa: N815  as PySpark names it

        def exception(self) -> None:
            """None."""

    plan = RunPlan(APPS["wordcount"], Wanted(), Path(), Path(), seconds=0.01)
    _watch(cast(StreamingQuery, Endless()), plan)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to read: give --files DIR"),
        (["--files", "nowhere"], "no such folder"),
        (["--files", ".", "--policy", "nonsense"], "unknown policy 'nonsense'"),
        (["--files", ".", "--min", "3"], "the least number of workers (3) is above the most (2)"),
        (["--files", ".", "--tick", "fast"], "is not a duration"),
        (["--files", ".", "--model", "none.json"], "no such model file"),
        (["--files", ".", "--master", "spark://127.0.0.1:1"], "does not answer"),
        (["--files", ".", "--safe", "-1"], "-1 is no whole number from 0 to 10000"),
        (["--files", ".", "--partitions", "0"], "0 is no whole number from 1"),
        (["--files", ".", "--cores", "none"], "none is no number from 0.01 to 1024"),
        (["--files", ".", "--source", "kafka"], "--source kafka takes --broker HOST:PORT and --topic NAME"),
    ],
)
def test_what_cannot_be_run_is_one_line(words: list[str], message: str, tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, *words), cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=600
    )
    assert done.returncode in (2, 3)
    (line,) = lines_of(done.stderr)
    assert message in line
    assert wait_for_none(tmp_path / "scratch") == []


def _wait_until(ready: object, process: subprocess.Popen[str], patience_s: float = 600.0) -> None:
    assert callable(ready)
    deadline = time.monotonic() + patience_s
    while not ready():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.5)
