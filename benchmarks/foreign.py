"""Jobs that nobody here wrote, with one line put in: what was fed, what `attach` saw, what was answered, who ran.

Spark's own example jobs are taken from the installed package as they are (default trigger, 200 partitions), beside jobs
of our own for what they lack. Each runs under `spark-submit` on a local cluster with a real broker, or a socket, and is
fed at known rates. `scripts/bench foreign` runs all in half an hour, and writes docs/foreign.md as it goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyspark

from benchmarks.feeding import Feeder, KafkaFeeder, SocketFeeder
from benchmarks.foreign_output import OUT, all_tables, listed
from benchmarks.foreign_page import CORES, HEAD, LIGHT, LINES, STEPS, TICK_S, WORDS, Foreign, Outcome, rows
from penstock.core.errors import PenstockError
from penstock.core.journal import Journal
from penstock.core.loop import Step
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.jars import kafka_jars
from penstock.live.kafka import Broker

EXAMPLES = Path(pyspark.__file__).parent / "examples" / "src" / "main" / "python" / "sql" / "streaming"
OWN = Path(__file__).with_name("jobs")
PAGE = Path("docs/foreign.md")
END = "<!-- what follows is written by hand, and kept -->\n"
KEPT = Path("docs/foreign.json")
START_S, DRAIN_S, AGREE_S, DOWN_S = 300.0, 150.0, 30.0, 90.0
BEFORE = "PENSTOCK_BEFORE"
"""Names the `src` of an older commit, whose code the jobs then import."""
# Each key once, so that a row of the one stream meets itself in the other and nobody else.
KEYS = tuple(f"k{number}" for number in range(200_000))

JOBS = (
    Foreign("Kafka word count", EXAMPLES / "structured_kafka_wordcount.py", lines=LINES, puts=40),
    Foreign(
        "windowed word count",
        EXAMPLES / "structured_network_wordcount_windowed.py",
        feeds="socket",
        words=("120", "60"),  # each row is in two windows
        load=LIGHT,
        lines=WORDS[:1],
        puts=2,
    ),
    # Spark 4.2 refuses its own structured_sessionization.py: no session windows in the output mode `update`.
    Foreign(
        "session windows",
        EXAMPLES / "structured_network_wordcount_session_window.py",
        feeds="socket",
        load=LIGHT,
        output=all_tables,
    ),
    Foreign("a service of 0.3 ms a row", OWN / "service.py", load=STEPS),
    Foreign("join of two streams", OWN / "join.py", lines=KEYS, reads=2, output=listed),
    Foreign("slow foreachBatch", OWN / "slow.py", load=((20.0, 45.0), (200.0, 60.0), (20.0, 45.0)), output=listed),
)


class JobFailed(Exception):
    """A job that did not begin, or ended by itself."""


def main() -> None:
    """Each job in turn; the page is written as it goes, and keeps what the other code gave."""
    src = os.environ.get(BEFORE, "")
    code = "before" if src else "after"
    kept: dict[str, dict[str, list[str]]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for job in JOBS:
        with tempfile.TemporaryDirectory(prefix="penstock-foreign-") as folder:
            try:
                new = rows(run(job, Path(folder), src), code)
            except JobFailed as error:
                print(error, file=sys.stderr)
                new = [f"| {job.name} | {code} | could not be run | | | | | | | | |"]
        print("\n".join(new), flush=True)
        kept.setdefault(job.name, {})[code] = new
        write(kept)


def write(kept: Mapping[str, Mapping[str, list[str]]]) -> None:
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    found = [line for job in JOBS for code in ("before", "after") for line in kept.get(job.name, {}).get(code, ())]
    rest = PAGE.read_text(encoding="utf-8").partition(END)[2] if PAGE.exists() else ""
    PAGE.write_text("\n".join([*HEAD, *found]) + f"\n\n{END}{rest}", encoding="utf-8")


def run(job: Foreign, folder: Path, python_path: str = "") -> Outcome:
    """Feed it, wait until all is answered and the executors have gone down, end it."""
    with contextlib.ExitStack() as stack:
        feeder, words = stack.enter_context(_fed(job))
        cluster = stack.enter_context(Cluster.start(ClusterSpec(job.workers, CORES)))
        journal = folder / "journal.jsonl"
        script = attached(job, folder, journal)
        settings = {**_settings(job, folder), **cluster.settings}
        process = stack.enter_context(_submitted(script, words, settings, python_path))
        if not _wait(lambda: len(_steps(journal)) > 0, process, folder, START_S):
            raise JobFailed(f"{job.name} did not begin within {START_S:.0f} s: {_log(folder)[-2000:]}")
        feeder.start()
        _wait(lambda: time.time() > feeder.begun_s + job.seconds, process, folder, job.seconds + 60)
        feeder.stop()
        _wait(lambda: job.output(folder) >= job.puts * feeder.fed, process, folder, DRAIN_S)
        base, due = _steps(journal)[0].seen.processed, job.reads * feeder.fed
        exact = _wait(lambda: _steps(journal)[-1].seen.processed - base == due, process, folder, AGREE_S)
        _wait(lambda: _is_down(_steps(journal)), process, folder, DOWN_S)
        origin_s = Journal.open(journal).header.origin_s or 0.0
        return Outcome(job, _steps(journal), feeder, origin_s, _log(folder), exact, job.output(folder))


def attached(job: Foreign, folder: Path, journal: Path) -> Path:
    """The job with one line put in, before it waits for its query."""
    line = f'import penstock; penstock.attach(spark, query, limits=(1, {job.workers}), tick="{TICK_S:g}s", '
    line += f'journal="{journal}")'
    text, count = re.subn(
        r"^( *)(query\.awaitTermination\(\))", rf"\1{line}\n\1\2", job.script.read_text(), flags=re.MULTILINE
    )
    if count != 1:
        raise SystemExit(f"{job.script} waits for its query {count} times: nowhere to put the line")
    script = folder / job.script.name
    script.write_text(text, encoding="utf-8")
    return script


@contextlib.contextmanager
def _fed(job: Foreign) -> Iterator[tuple[Feeder, list[str]]]:
    if job.feeds == "socket":
        feeder = SocketFeeder(job.rate, job.lines)
        try:
            yield feeder, ["127.0.0.1", str(feeder.port), *job.words]
        finally:
            feeder.close()
        return
    with Broker.start() as broker:
        broker.create_topic("fed", partitions=12)  # with 4, a third executor would take no task from the others
        yield (
            KafkaFeeder(job.rate, broker.address, "fed", job.lines),
            [broker.address, "subscribe", "fed", *job.words],
        )


def _settings(job: Foreign, folder: Path) -> dict[str, str]:
    return {
        "spark.cores.max": str(job.workers),
        "spark.executor.cores": "1",
        "spark.decommission.enabled": "true",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": str(job.partitions),
        "spark.sql.streaming.checkpointLocation": str(folder / "checkpoints"),
        "spark.jars": kafka_jars().spark_jars,
        "spark.ui.enabled": "false",
    }


@contextlib.contextmanager
def _submitted(
    script: Path, words: Sequence[str], settings: Mapping[str, str], python_path: str
) -> Iterator[subprocess.Popen[bytes]]:
    folder = script.parent
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [
        str(Path(sys.executable).with_name("spark-submit")),
        *given,
        str(script),
        *words,
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path}
    with (folder / "job.log").open("wb") as log, (folder / OUT).open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=log, env=environment, cwd=folder)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(ready: object, process: subprocess.Popen[bytes], folder: Path, patience_s: float) -> bool:
    """Was it so within this time? A job that ends meanwhile is a failure."""
    assert callable(ready)
    deadline = time.monotonic() + patience_s
    while not ready():
        if process.poll() is not None:
            raise JobFailed(f"the job has ended: {_log(folder)[-3000:]}")
        if time.monotonic() > deadline:
            return False
        time.sleep(1.0)
    return True


def _is_down(steps: Sequence[Step]) -> bool:
    """Do fewer run than ran at the most, and as many as are asked for?"""
    counts, asked = [len(step.seen.running.workers) for step in steps], len(steps[-1].target.workers)
    return counts[-1] == asked < max(counts)


def _steps(journal: Path) -> list[Step]:
    try:
        return list(Journal.open(journal))
    except PenstockError:
        return []


def _log(folder: Path) -> str:
    return (folder / "job.log").read_text(errors="replace")
