"""An attached job that is disturbed: paused, its disk full, stopped for a minute, its policy hanging, told to stop.

`scripts/bench faults` takes some eight minutes, and writes its table into docs/foreign.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.feeding import KafkaFeeder
from benchmarks.foreign import JOBS, keep
from benchmarks.foreign_page import CORES, TICK_S
from benchmarks.foreign_run import log_of, printed, settings_of, submitted, wait, with_line
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.kafka import Broker

JOB = next(job for job in JOBS if job.script.name == "service.py")
LINE = (
    "import penstock, obeys; obeys.listen(penstock.attach(spark, query, policy='obeys.py:Hangs', "
    f"limits=(1, {JOB.workers}), tick='{TICK_S:g}s', journal='disk/journal.jsonl'))"
)
OBEYS = Path(__file__).with_name("jobs") / "obeys.py"
LOW, HIGH = 300.0, 6000.0
SAID = re.compile(r"penstock:? (?P<words>.+)")


@dataclass(slots=True)
class Disturbed:
    """The job while it runs, and what is seen of it from outside."""

    folder: Path
    process: subprocess.Popen[bytes]
    page: str
    """Of Spark's master."""
    rate: list[float]
    rows: list[str] = field(default_factory=list)

    @property
    def executors(self) -> int:
        with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:
            return sum(int(worker["coresused"]) for worker in json.load(answer)["workers"])

    @property
    def pid(self) -> int:
        """Of the job's Python; its JVM is the process that was started."""
        return int((self.folder / "pid").read_text())

    def wait(self, seconds: float) -> None:
        wait(lambda: False, self.process, self.folder, seconds)

    @contextlib.contextmanager
    def case(self, what: str) -> Iterator[None]:
        """One row of the table."""
        put, executors, said = JOB.output(self.folder), self.executors, len(printed(self.folder))
        yield
        words = [match["words"].strip() for match in SAID.finditer(printed(self.folder)[said:])]
        told = "<br>".join(f"`{each[:200]}`" for each in dict.fromkeys(words)) or "nothing"
        answered = JOB.output(self.folder) - put
        row = f"| {what} | {self.rate[0]:,.0f}/s | {answered:,} | {executors} → {self.executors} | {told} |"
        print(row, flush=True)
        self.rows.append(row)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-faults-") as name, _started(Path(name)) as (job, feeder):
        # So few rows need fewer executors than it began with: there is something to hold, and to get back.
        wait(lambda: job.executors <= JOB.workers // 2, job.process, job.folder, 180)
        for case in (_paused, _full, _stopped, _hanging, _told_to_stop):
            case(job)
        feeder.stop()
        done = wait(lambda: JOB.output(job.folder) >= feeder.fed, job.process, job.folder, 120)
        put = JOB.output(job.folder)
        all_there = f"{put:,} of {feeder.fed:,} rows fed" + (", exact" if done and put == feeder.fed else "")
        keep("faults", "after", [*job.rows, f"| the whole run | | {all_there} | | |"])
        print(all_there)


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[tuple[Disturbed, KafkaFeeder]]:
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker.start())
        broker.create_topic("fed", partitions=12)
        cluster = stack.enter_context(Cluster.start(ClusterSpec(JOB.workers, CORES)))
        stack.enter_context(_small_disk(folder / "disk"))
        (folder / "obeys.py").write_text(OBEYS.read_text(), encoding="utf-8")
        script = with_line(JOB, folder, LINE)
        words, settings = [broker.address, "subscribe", "fed"], {**settings_of(JOB, folder), **cluster.settings}
        process = stack.enter_context(submitted(script, words, settings, str(folder)))
        if not wait(lambda: "penstock attached" in printed(folder), process, folder, 300):
            raise SystemExit(f"the job did not begin: {log_of(folder)[-2000:]}")
        rate = [LOW]
        feeder = KafkaFeeder(lambda _: rate[0], broker.address, "fed", JOB.lines)
        feeder.start()
        yield Disturbed(folder, process, cluster.page, rate), feeder


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """A disk of 1 MB. To mount one takes root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _paused(job: Disturbed) -> None:
    job.rate[0] = HIGH
    with job.case("SIGUSR1, and 20 times the rate for 40 s"):
        os.kill(job.pid, signal.SIGUSR1)
        job.wait(40)
    with job.case("SIGUSR1 again, 60 s"):
        os.kill(job.pid, signal.SIGUSR1)
        job.wait(60)
    job.rate[0] = LOW


def _full(job: Disturbed) -> None:
    with job.case("the journal's disk is full for 40 s"):
        filler = job.folder / "disk" / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))
        job.wait(40)
    with job.case("there is room again, 20 s"):
        filler.unlink()
        job.wait(20)


def _stopped(job: Disturbed) -> None:
    """The driver whole, its JVM and its Python."""
    with job.case("SIGSTOP for 60 s, then SIGCONT and 45 s"):
        both = (job.process.pid, job.pid)
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(60)
        for pid in both:
            os.kill(pid, signal.SIGCONT)
        job.wait(45)


def _hanging(job: Disturbed) -> None:
    hang = job.folder / "hang"
    with job.case("the policy hangs for 50 s"):
        hang.touch()
        job.wait(50)
    with job.case("it answers again, 30 s"):
        hang.unlink()
        job.wait(30)


def _told_to_stop(job: Disturbed) -> None:
    job.rate[0] = HIGH
    with job.case("`controller.stop()`, and 20 times the rate for 40 s"):
        (job.folder / "stop").touch()
        job.wait(40)
    job.rate[0] = LOW
