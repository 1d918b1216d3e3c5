"""`penstock doctor SCRIPT.py` on jobs as people write them: seen up to their queries, and nothing of them is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from penstock.cli.main import main
from penstock.live.script_checks import examine_script
from tests.live.processes import left_in

pytestmark = pytest.mark.spark

EXAMPLES = Path(pyspark.__file__).parent / "examples" / "src" / "main" / "python" / "sql" / "streaming"

WRITES = """
import os, socket, subprocess, sys, threading
import penstock
from pyspark.sql import SparkSession
out = sys.argv[1]
def refused(attempt):
    try:
        attempt()
    except (OSError, subprocess.CalledProcessError):
        return
    raise AssertionError("it was done")
refused(lambda: open(out + "/opened", "w"))
refused(lambda: os.remove(out + "/kept"))
refused(lambda: subprocess.run(["touch", out + "/touched"], check=True, stderr=subprocess.DEVNULL))
refused(lambda: socket.create_connection(("192.0.2.1", 9092), 5))
spark = (SparkSession.builder.master("yarn").config("spark.dynamicAllocation.enabled", "true")
         .config("spark.cores.max", "4").config("spark.executor.cores", "2")
         .config("spark.sql.shuffle.partitions", "6").getOrCreate())
spark.range(10).write.parquet(out + "/table")
spark.sql("CREATE TABLE kept AS SELECT 1 AS one")
spark.range(3).createOrReplaceTempView("seen")
assert spark.sql("SELECT COUNT(*) FROM seen").first()[0] == 3
rows = spark.readStream.format("rate").load()
def write(batch, number):
    batch.write.parquet(out + "/batches")
counts = rows.groupBy("value").count()
query = (counts.writeStream.queryName("counts").outputMode("update").foreachBatch(write)
         .option("checkpointLocation", out + "/checkpoint").trigger(processingTime="10 seconds").start())
now = rows.writeStream.format("console").queryName("now").trigger(availableNow=True).start()
bad = counts.writeStream.format("console").queryName("bad").start(checkpointLocation=out + "/other")
penstock.attach(spark, query, limits=(1, 8), tick=5)
penstock.attach(spark, query, limits=(1, 8)).stop()
while query.isActive:
    query.awaitTermination(10)
"""


def line(text: str) -> int:
    """Where in the script something is first said."""
    return next(number for number, said in enumerate(WRITES.splitlines(), 1) if text in said)


def test_a_job_that_writes_wherever_it_can_is_looked_at_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, out, scratch = tmp_path / "job.py", tmp_path / "out", tmp_path / "scratch"
    script.write_text(WRITES)
    for folder in (out, scratch):
        folder.mkdir()
    (out / "kept").touch()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    found = examine_script(script, [str(out)])
    said = {f"{finding.what}: {finding.says}": finding.is_fatal for finding in found}
    for begin, is_fatal in {
        "dynamic allocation: ": True,
        f"attach: line {line('tick=5')}: tick=5: write a duration with its unit": True,
        "limits: the limits allow 8 executors of 2 cores, spark.cores.max is 4": True,
        f"trigger: query now (line {line('now = ')}) ends by itself (availableNow)": True,
        f"query: query bad (line {line('bad = ')}) would not start: [STREAMING_OUTPUT_MODE": True,
        "checkpoint: query now": False,
        "partitions: 8 executors x 2 cores for 6 partitions": False,
    }.items():
        assert [fatal for words, fatal in said.items() if words.startswith(begin)][:1] == [is_fatal], (begin, said)
    assert not any(words.startswith(("script:", "master:", "checkpoint: query counts")) for words in said)
    looked = next(words for words in said if words.startswith("looked at: "))
    left = f"DataFrameWriter.parquet (line {line('/table')}), sql CREATE (line {line('CREATE')})"
    assert f"3 queries (counts, now, bad); left out: {left}; it ran on local[1]" in looked
    assert [path.name for path in out.iterdir()] == ["kept"]
    assert left_in(scratch) == ["lock"]


def test_sparks_own_example_is_looked_at_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    script = EXAMPLES / "structured_network_wordcount_windowed.py"
    words = ["--arguments", "localhost 9999 10 5", "--master", "spark://host:7077", "--conf", "spark.executor.cores=1"]
    conf = ["--conf", "spark.decommission.enabled=true", "--output", "json"]
    assert main(["doctor", str(script), "--max", "4", *words, *conf]) == 0
    found = {finding["what"]: finding["says"] for finding in json.loads(capsys.readouterr().out)}
    found.pop("cgroups", None)  # a machine's matter
    assert sorted(found) == ["checkpoint", "looked at"]
    assert "1 queries (1)" in found["looked at"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit('usage: job.py BROKER')", "it ended with usage: job.py BROKER"),
        ("x = 1\ny = x / 0\n", "ZeroDivisionError: division by zero (line 2)"),
        ("def broken(:\n", "SyntaxError: invalid syntax"),
        ("print('hello')\n", "it ended, and started no streaming query"),
    ],
)
def test_a_script_that_starts_no_query_says_why(text: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(text)
    words = [sys.executable, "-m", "penstock", "doctor", str(script), "--output", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert found["script"]["is_fatal"]
    assert said in found["script"]["says"]


def test_a_script_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "nowhere.py"]) == 2
    assert capsys.readouterr().err == "penstock: no such script: nowhere.py\n"
    assert main(["doctor", __file__, "--arguments", "'"]) == 2
    assert "--arguments ': No closing quotation" in capsys.readouterr().err
