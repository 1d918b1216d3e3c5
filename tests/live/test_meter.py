"""`penstock measure` on a real cluster, from files and from Kafka; and what goes wrong, in one line each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import ExternalError
from penstock.live.feed import need_room
from penstock.live.jars import kafka_jars
from penstock.live.kafka import Broker
from penstock.models.samples import read_rows, write_samples
from tests.live.processes import left_in, lines_of, started, wait_for_none

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).parents[2] / "examples"


def penstock(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """The command as a user gives it, its scratch in a folder of its own; nothing of it may be left there."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *map(str, words)],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert wait_for_none(scratch) == []
    assert [path.name for path in scratch.iterdir() if not path.name.startswith("penstock-")] == []
    assert left_in(scratch) in ([], ["lock"])
    return done


def failed(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a command that failed."""
    assert done.returncode in (2, 3), done.stdout + done.stderr
    (line,) = lines_of(done.stderr)
    return line


def test_from_a_job_of_ones_own_to_a_number_of_workers(tmp_path: Path) -> None:
    command = ("measure", "orders:by_country", "--workers", "1,2", "--quick", "-o", "samples.parquet")
    done = penstock(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    one, two = read_rows(tmp_path / "samples.parquet")
    assert (one["workers"], two["workers"], one["app"]) == (1, 2, "orders:by_country")
    assert one["rows_per_s"] > 0  # how fast is for benchmarks: a busy machine may measure two below one
    assert two["rows_per_s"] > 0
    assert 0 < one["fixed_s"] < 10
    # What was delivered, and beside it what the undisturbed machine would have done.
    assert one["rows_per_s_corrected"] > 0
    assert 0.05 < one["speed"] < 2
    assert isinstance(one["limited"], bool)
    # "country17,4200\n": 10 to 15 bytes
    assert 10 < one["bytes_per_row"] < 16
    assert json.loads(one["setup"])["spark"]["spark.executor.cores"] == "1"
    fitted = penstock(tmp_path, "fit", "samples.parquet", "-o", "model.json")
    assert "not known to have settled: samples of 1, 2 workers" in fitted.stdout
    # On a busy machine a batch may spend half of a trigger of 10 s before its first row.
    rate = f"{min(one['rows_per_s'], two['rows_per_s']) * 0.1:.3f}/s"
    advice = penstock(tmp_path, "advise", "model.json", "--rate", rate, "--trigger", "60s", "--output", "json")
    assert json.loads(advice.stdout)["workers"] >= 1


def test_a_measurement_that_is_complete_is_not_made_again_and_one_of_something_else_is_refused(tmp_path: Path) -> None:
    from penstock.apps.catalogue import APPS
    from penstock.live.conditions import describe
    from penstock.live.meter_plan import MeterPlan
    from penstock.live.sampler import Sampling

    setup = describe(APPS["grep"], MeterPlan().settings, Sampling(), True)
    row: dict[str, Any] = {
        "app": "grep",
        "source": "files",
        "workers": 1,
        "repeat": 0,
        "rows_per_s": 5.0,
        "fixed_s": 1.0,
    }
    row |= {"bytes_per_row": 9.0, "cores": 0.25, "partitions": None, "partitions_per_worker": 2.0, "flags": ""}
    write_samples([row | {"setup": setup}], tmp_path / "samples.parquet")
    made = (tmp_path / "samples.parquet").stat().st_mtime_ns
    done = penstock(tmp_path, "measure", "grep", "--workers", "1", "--repeat", "1", "-o", "samples.parquet")
    assert (done.returncode, "5" in done.stdout) == (0, True)
    assert (tmp_path / "samples.parquet").stat().st_mtime_ns == made
    other = penstock(tmp_path, "measure", "wordcount", "--workers", "1", "-o", "samples.parquet")
    assert "samples of app grep, not wordcount: choose another file" in failed(other)
    changed = json.loads(setup) | {"machine": {"cpus": 999}}
    write_samples([row | {"setup": json.dumps(changed)}], tmp_path / "samples.parquet")
    moved = penstock(tmp_path, "measure", "grep", "--workers", "1", "-o", "samples.parquet")
    assert "another set-up (machine.cpu" in failed(moved)


BROKEN = """
from pyspark.sql import functions as F
def raising(rows): return rows.select(F.raise_error(F.lit("no such order")).alias("value"))
def wrong_column(rows): return rows.select("valeu")
def not_streaming(rows): return rows.sparkSession.range(3)
def with_a_bug(rows): return rows.select(1 / 0)
"""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raising", "app broken:raising failed in Spark: "),
        ("wrong_column", "app broken:wrong_column failed: AnalysisException: "),
        ("not_streaming", "app broken:not_streaming is not streaming: "),
        ("with_a_bug", "app broken:with_a_bug failed: ZeroDivisionError: division by zero"),
    ],
)
def test_an_app_that_does_not_work_is_one_line(function: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    line = failed(penstock(tmp_path, "measure", f"broken:{function}", "--workers", "1", "--quick", "-o", "s.parquet"))
    assert message in line
    if function == "raising":
        assert "no such order" in line
    assert not (tmp_path / "s.parquet").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workers", "0"], "0 is no whole number from 1 to 10000"),
        (["--repeat", "0"], "0 is no whole number from 1"),
        (["--partitions-per-worker", "0"], "0 is no whole number from 1"),
        (["--master", "spark://127.0.0.1:1"], "the master spark://127.0.0.1:1 does not answer"),
        (["--master", "local[2]"], "it has no executors to count"),
        (["--master", "spark://elsewhere:7077"], "give --folder a path that all its workers see"),
        (["--topic", "clicks"], "--topic is for --source kafka"),
        (["--source", "kafka", "--topic", "clicks"], "give --broker host:port"),
        (["--source", "kafka", "--broker", "127.0.0.1:1", "--topic", "clicks"], "127.0.0.1:1 does not answer"),
        (["--trigger", "10"], "is not a duration"),
    ],
)
def test_a_measurement_that_cannot_be_made_is_refused_before_anything_starts(
    words: list[str], message: str, tmp_path: Path
) -> None:
    assert message in failed(penstock(tmp_path, "measure", "grep", "-o", "s.parquet", *words))


def test_a_disk_too_full_to_preload_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExternalError, match=r"MB free: 2000000000064 MB are needed to preload"):
        need_room(tmp_path, 1e18)


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest) -> None:
    """Where Kafka's jars cannot be had, its tests are skipped, loudly."""
    try:
        kafka_jars()
    except ExternalError as error:
        if os.environ.get("CI"):
            raise
        terminal: Any = request.config.pluginmanager.getplugin("terminalreporter")
        terminal.write_line(f"\nKAFKA IS NOT TESTED: {error}", red=True)
        pytest.skip(str(error))


@pytest.mark.usefixtures("kafka")
def test_the_same_from_kafka(tmp_path: Path) -> None:
    words = ("--source", "kafka", "--workers", "1,2", "--quick", "-o", "samples.parquet")
    done = penstock(tmp_path, "measure", "grep", *words)
    assert done.returncode == 0, done.stderr
    one, two = read_rows(tmp_path / "samples.parquet")
    assert (one["source"], one["flags"]) == ("kafka", "settling not tested")
    assert one["rows_per_s"] > 0
    assert two["rows_per_s"] > 0
    assert penstock(tmp_path, "fit", "samples.parquet", "-o", "model.json").returncode == 0
    advice = penstock(tmp_path, "advise", "model.json", "--rate", "1MB/s", "--output", "json")
    assert json.loads(advice.stdout)["workers"] == 1


@pytest.mark.usefixtures("kafka")
def test_a_topic_that_does_not_exist_and_a_broker_that_stops_in_the_middle(tmp_path: Path) -> None:
    with Broker.start() as broker:
        broker.create_topic("clicks")
        (tmp_path / "secret").write_text("kafka.ssl.key.password=canary-Zk81mQ\n")
        place = ("--source", "kafka", "--broker", broker.address, "--options", str(tmp_path / "secret"))
        missing = penstock(tmp_path, "measure", "grep", *place, "--topic", "click", "-o", "s.parquet")
        assert "unknown topic" in failed(missing)
        assert "did you mean 'clicks'" in missing.stderr
        scratch = tmp_path / "scratch"
        words = ["-m", "penstock", "measure", "grep", *place, "--workers", "1", "-o", str(tmp_path / "s.parquet")]
        with started(words, scratch) as process:
            time.sleep(40)  # by then it makes a topic or reads it
            assert process.poll() is None
            broker.stop()
            _, said = process.communicate(timeout=120)
        assert process.returncode == 3, said
        assert re.search(rf"{broker.address} (stopped answering|does not answer)", said)
        assert len(lines_of(said)) == 1
        assert "canary-Zk81mQ" not in said + missing.stderr
        assert wait_for_none(scratch) == []
