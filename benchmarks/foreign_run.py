"""Runs a job that nobody here wrote, with one line put in: feeder, settings, `spark-submit`, log."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.feeding import Feeder, KafkaFeeder, SocketFeeder
from benchmarks.foreign_output import OUT
from benchmarks.foreign_page import TICK_S, Foreign
from penstock.core.errors import PenstockError
from penstock.core.journal import Journal
from penstock.core.loop import Step
from penstock.live.jars import kafka_jars
from penstock.live.kafka import Broker


class JobFailed(Exception):
    """A job that did not begin, or ended by itself."""


def attached(job: Foreign, folder: Path, journal: Path) -> Path:
    """The job with one line put in, before it waits for its query."""
    line = f'import penstock; penstock.attach(spark, query, limits=(1, {job.workers}), tick="{TICK_S:g}s", '
    return with_line(job, folder, line + f'journal="{journal}")')


def with_line(job: Foreign, folder: Path, line: str) -> Path:
    text, count = re.subn(
        r"^( *)(query\.awaitTermination\(\))", rf"\1{line}\n\1\2", job.script.read_text(), flags=re.MULTILINE
    )
    if count != 1:
        raise SystemExit(f"{job.script} waits for its query {count} times: nowhere to put the line")
    script = folder / job.script.name
    script.write_text(text, encoding="utf-8")
    return script


@contextlib.contextmanager
def fed(job: Foreign) -> Iterator[tuple[Feeder, list[str]]]:
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


def settings_of(job: Foreign, folder: Path) -> dict[str, str]:
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
def submitted(
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


def wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path, patience_s: float) -> bool:
    """Was it so within this time? A job that ends meanwhile is a failure."""
    deadline = time.monotonic() + patience_s
    while not ready():
        if process.poll() is not None:
            raise JobFailed(f"the job has ended: {log_of(folder)[-3000:]}")
        if time.monotonic() > deadline:
            return False
        time.sleep(1.0)
    return True


def steps_in(journal: Path) -> list[Step]:
    try:
        return list(Journal.open(journal))
    except PenstockError:
        return []


def log_of(folder: Path) -> str:
    """What Spark logged, and then what the job's own Python printed: spark-submit puts its stderr on stdout, too."""
    return (folder / "job.log").read_text(errors="replace") + printed(folder)


def printed(folder: Path) -> str:
    return (folder / OUT).read_text(errors="replace")
