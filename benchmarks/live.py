"""The image job of paper 5, live: a pyramid load on up to 5 workers of a quarter of a core, EKF against PURE.

Ten minutes a run; `scripts/bench live` makes four (each filter, from Kafka and from files), and writes their journals
and one report under `docs/live/`.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.feeding import Feeder, FileFeeder, KafkaFeeder
from penstock.apps.catalogue import APPS
from penstock.live.kafka import Broker
from penstock.pipeline.session import session
from penstock.report.comparison import Comparison, Run, run_of_journal
from penstock.report.page import write_page
from penstock.report.tables import as_table

FOLDER = Path("docs/live")
PEAK = 160.0  # images a second: about what three workers of a quarter of a core do
HELD_S = 60.0
LEVELS = (0.25, 0.5, 0.75, 1.0, 0.75, 0.5, 0.25, 0.05, 0.05)
WARM_S = 60.0  # cluster, session and first batches; the load waits for them
POLICIES = {"ekf": "filtered", "pure": "filtered:filter=pure,sizing=step"}


@dataclass(frozen=True, slots=True)
class Live:
    """One run."""

    policy: str
    source: str

    @property
    def journal(self) -> Path:
        return FOLDER / f"{self.policy}-{self.source}.jsonl"


RUNS = tuple(Live(policy, source) for source in ("kafka", "files") for policy in POLICIES)


def pyramid(at_s: float) -> float:
    """Up in steps, and down again; 5 % of the peak before and after."""
    step = int((at_s - WARM_S) // HELD_S)
    return PEAK * (LEVELS[step] if 0 <= step < len(LEVELS) else 0.05)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = image_lines()
    for live in RUNS:
        if not live.journal.exists():
            run(live, lines)
    compare([live for live in RUNS if live.journal.exists()])


def image_lines() -> list[str]:
    with session("local[2]", "lines") as spark:
        return [row[0] for row in APPS["images"].generate(spark, 20_000, 0).collect()]


def run(live: Live, lines: Sequence[str]) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-live-") as scratch,
        _fed(live, lines, Path(scratch)) as (feeder, source),
    ):
        control = ["--policy", POLICIES[live.policy], "--min", "1", "--max", "5", "--tick", "5s"]
        job = ["--trigger", "5s", "--partitions", "10", "--objective", "latency<=30s", "--journal", str(live.journal)]
        seconds = WARM_S + HELD_S * len(LEVELS)
        words = ["run", "images", *control, *job, *source, "--for", f"{seconds:.0f}s"]
        feeder.start()
        begun = time.monotonic()
        done = subprocess.run([sys.executable, "-m", "penstock", *words], capture_output=True, text=True, check=False)
        feeder.stop()
        print(
            f"{live.journal.stem}: {feeder.fed} rows in {time.monotonic() - begun:.0f} s, exit code {done.returncode}"
        )
        if done.returncode:
            print(done.stderr[-2000:])


@contextlib.contextmanager
def _fed(live: Live, lines: Sequence[str], scratch: Path) -> Iterator[tuple[Feeder, list[str]]]:
    if live.source == "files":
        incoming = scratch / "incoming"
        incoming.mkdir()
        yield FileFeeder(pyramid, incoming, lines), ["--files", str(incoming)]
        return
    with Broker.start() as broker:
        broker.create_topic("images", partitions=10)
        where = ["--source", "kafka", "--broker", broker.address, "--topic", "images"]
        yield KafkaFeeder(pyramid, broker.address, "images", lines), where


def compare(lives: Sequence[Live]) -> None:
    """The same table and page as a replay's: they read journals alone."""
    from penstock.cli.progress import page

    runs: list[Run] = [run_of_journal(live.journal)[0] for live in lives]
    comparison = Comparison("images, live, a pyramid load", "latency<=30s", tuple(runs))
    page().print(as_table(comparison))
    write_page(FOLDER / "report.html", comparison)
