"""Jobs that nobody here wrote, with one line put in: what was fed, what `attach` saw, what was answered, who ran.

Spark's own example jobs are taken from the installed package as they are (default trigger, 200 partitions), beside jobs
of our own for what they lack. Each runs under `spark-submit` on a local cluster with a real broker, or a socket, and is
fed at known rates. `scripts/bench foreign [JOB…]` runs all of them in some forty minutes, or those that are named, and
writes docs/foreign.md when all were run.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from benchmarks.feeding import Feeder, KafkaFeeder, SocketFeeder
from penstock.core.errors import PenstockError
from penstock.core.journal import Journal
from penstock.core.loop import Step
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.jars import kafka_jars
from penstock.live.kafka import Broker

EXAMPLES = Path(pyspark.__file__).parent / "examples" / "src" / "main" / "python" / "sql" / "streaming"
OWN = Path(__file__).with_name("jobs")
PAGE = Path("docs/foreign.md")
WORKERS, CORES, TICK_S = 4, 0.5, 5.0
START_S, DRAIN_S, DOWN_S = 240.0, 300.0, 240.0
STEPS = ((300.0, 75.0), (3000.0, 75.0), (10_000.0, 90.0), (2000.0, 90.0), (200.0, 90.0))
SHORT = ((200.0, 60.0), (2000.0, 75.0), (200.0, 75.0))
# 40 words a line: 10,000 lines a second are more than one worker of a quarter of a core can count.
LINES = tuple(" ".join(f"w{(7 * line + 13 * word) % 997}" for word in range(40)) for line in range(200))
KEYS = tuple(f"k{number}" for number in range(100))


@dataclass(frozen=True, slots=True)
class Foreign:
    """One job, and how it is fed: rates and how long each is held."""

    name: str
    script: Path
    feeds: str = "kafka"
    words: tuple[str, ...] = ()
    load: tuple[tuple[float, float], ...] = SHORT
    lines: Sequence[str] = field(default=LINES, repr=False)
    reads: int = 1
    """How many times a row is read: twice, where two streams of one topic are joined."""

    def rate(self, at_s: float) -> float:
        for rate, held_s in self.load:
            if at_s < held_s:
                return rate
            at_s -= held_s
        return 0.0

    @property
    def seconds(self) -> float:
        return sum(held_s for _, held_s in self.load)


JOBS = (
    Foreign(
        "Kafka word count",
        EXAMPLES / "structured_kafka_wordcount.py",
        load=((300.0, 60.0), (3000.0, 75.0), (200.0, 75.0)),
    ),
    Foreign("windowed word count", EXAMPLES / "structured_network_wordcount_windowed.py", "socket", ("20", "10")),
    Foreign("sessionization", EXAMPLES / "structured_sessionization.py", "socket", lines=KEYS),
    Foreign("heavy rows, 200 partitions", OWN / "heavy.py", lines=KEYS, load=STEPS),
    Foreign("join of two streams", OWN / "join.py", lines=KEYS, reads=2),
    Foreign("slow foreachBatch", OWN / "slow.py", lines=KEYS, load=((20.0, 60.0), (200.0, 90.0), (20.0, 90.0))),
)


@dataclass(slots=True)
class Outcome:
    """What was found out of one job."""

    job: Foreign
    steps: list[Step]
    feeder: Feeder
    origin_s: float
    log: str
    exact: bool = False
    """Did all that was fed come to be counted as processed, and no more?"""

    def phases(self) -> Iterator[tuple[float, float, float, int]]:
        """Of each rate: what was fed a second, what was seen, the most that the backlog was off by, in batches, and
        the executors at its end. The first 15 s belong to the rate before."""
        begin_s = self.feeder.begun_s
        for _, held_s in self.job.load:
            inside = [step for step in self.steps if begin_s + 15 < self._at(step) <= begin_s + held_s]
            begin_s += held_s
            if len(inside) > 1:
                first, last = inside[0], inside[-1]
                fed = self._fed_at(last) - self._fed_at(first)
                span_s = last.seen.time_s - first.seen.time_s
                came = last.seen.arrived - first.seen.arrived
                off = max(self._off(step) for step in inside)
                yield fed / span_s, came / span_s, off, len(last.seen.running.workers)

    def _at(self, step: Step) -> float:
        return self.origin_s + step.seen.time_s

    def _fed_at(self, step: Step) -> int:
        return self.job.reads * self.feeder.fed_at(self._at(step))

    def _off(self, step: Step) -> float:
        """How far the backlog was off what was fed and not answered, in batches."""
        seen = step.seen
        if seen.backlog is None:
            return float("nan")
        truth = self._fed_at(step) - (seen.processed - self.steps[0].seen.processed)
        rows = max(seen.batch.rows if seen.batch else 0.0, seen.input_rate * TICK_S, 1.0)
        return abs(seen.backlog - truth) / rows

    @property
    def executors(self) -> str:
        """Each count that ran, in the order of time."""
        counts = [len(step.seen.running.workers) for step in self.steps]
        kept = [count for place, count in enumerate(counts) if place == 0 or counts[place - 1] != count]
        return " ".join(map(str, kept))


def main(names: Sequence[str] = ()) -> None:
    chosen = [job for job in JOBS if not names or any(name.lower() in job.name.lower() for name in names)]
    found = []
    for job in chosen:
        with tempfile.TemporaryDirectory(prefix="penstock-foreign-") as folder:
            found.append(run(job, Path(folder)))
        print("\n".join(rows(found[-1])), flush=True)
    if len(found) == len(JOBS):
        PAGE.write_text("\n".join([*HEAD, *(row for each in found for row in rows(each))]) + "\n", encoding="utf-8")


def rows(found: Outcome) -> list[str]:
    last, first = found.steps[-1].seen, found.steps[0].seen
    counted = "exact" if found.exact else f"{last.processed - first.processed:,.0f} answered"
    lines = []
    for number, (fed, seen, off, count) in enumerate(found.phases()):
        name = f"{found.job.name} | {found.feeder.fed:,} | {counted} | {found.executors}" if number == 0 else " | | | "
        backlog = "unknown" if off != off else f"{off:.2f}"
        lines.append(f"| {name} | {fed:,.0f}/s | {seen:,.0f}/s | {seen / fed - 1:+.1%} | {backlog} | {count} |")
    return lines


def run(job: Foreign, folder: Path, python_path: str = "") -> Outcome:
    """Feed it, wait until all is answered and the executors have gone down, end it."""
    with contextlib.ExitStack() as stack:
        feeder, words = stack.enter_context(_fed(job))
        cluster = stack.enter_context(Cluster.start(ClusterSpec(WORKERS, CORES)))
        journal = folder / "journal.jsonl"
        script = attached(job, folder, journal)
        process = stack.enter_context(_submitted(cluster, script, words, folder, python_path))
        _wait(lambda: len(_steps(journal)) > 0, process, folder, START_S)
        feeder.start()
        _wait(lambda: time.time() > feeder.begun_s + job.seconds, process, folder, job.seconds + 60)
        feeder.stop()
        base = _steps(journal)[0].seen.processed
        exact = _wait(
            lambda: _steps(journal)[-1].seen.processed - base == job.reads * feeder.fed, process, folder, DRAIN_S
        )
        _wait(lambda: _is_down(_steps(journal)), process, folder, DOWN_S)
        header = Journal.open(journal).header
        return Outcome(job, _steps(journal), feeder, header.origin_s or 0.0, _log(folder), exact)


def attached(job: Foreign, folder: Path, journal: Path) -> Path:
    """The job with one line put in, before it waits for its query."""
    line = f'import penstock; penstock.attach(spark, query, limits=(1, {WORKERS}), tick="{TICK_S:g}s", '
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
        broker.create_topic("fed", partitions=4)
        yield (
            KafkaFeeder(job.rate, broker.address, "fed", job.lines),
            [broker.address, "subscribe", "fed", *job.words],
        )


@contextlib.contextmanager
def _submitted(
    cluster: Cluster, script: Path, words: Sequence[str], folder: Path, python_path: str
) -> Iterator[subprocess.Popen[bytes]]:
    settings: Mapping[str, str] = {
        **cluster.settings,
        "spark.cores.max": str(WORKERS),
        "spark.executor.cores": "1",
        "spark.decommission.enabled": "true",
        "spark.driver.memory": "1g",
        "spark.sql.streaming.checkpointLocation": str(folder / "checkpoints"),
        "spark.jars": kafka_jars().spark_jars,
        "spark.ui.enabled": "false",
    }
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [
        str(Path(sys.executable).with_name("spark-submit")),
        "--master",
        cluster.url,
        *given,
        str(script),
        *words,
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path}
    with (folder / "job.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
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
            raise SystemExit(f"the job has ended: {_log(folder)[-3000:]}")
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


HEAD = (
    "# Jobs that nobody here wrote",
    "",
    "Made by `scripts/bench foreign`. Spark's own example jobs, taken from the installed package with one line put in,",
    '`penstock.attach(spark, query, limits=(1, 4), tick="5s", journal=…)`, and two jobs of our own for what they lack.',
    "Nobody told it where the lag is, how often a batch is due, or what the job can do.",
    "",
    f"A cluster of 1 to {WORKERS} executors of {CORES:g} core on a machine of 2 cores. *Off* is the rate seen against",
    "the rate fed; *backlog off* the most that the backlog seen differed from what was fed and not yet answered, in",
    "batches; *executors* those that ran, in the order of time, and at the end of each rate. Answered is *exact* where",
    "all that was fed was counted once when the load had gone.",
    "",
    "| job | fed | answered | executors | fed at | seen | off | backlog off | executors then |",
    "|---|---|---|---|---|---|---|---|---|",
)
