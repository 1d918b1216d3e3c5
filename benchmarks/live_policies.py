"""The live pyramid under `deadline` with and without batch sizes, `filtered`, and Spark's dynamic allocation.

The job, the load and the cluster are those of `scripts/bench live`, fed from files. Each control has three runs of
twelve minutes, taken in turns, so that a slow hour of a shared machine meets all of them. A run whose journal is there
is not made again; `scripts/bench live_policies --runs N` makes at most N now (0: only the page). Dynamic allocation is
Spark's own, with its defaults but for the limits; a controller that changes nothing (`dry_run`) looks on and keeps the
journal.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.feeding import FileFeeder
from benchmarks.live import HELD_S, LEVELS, OBJECTIVE, PEAK, WARM_S, image_lines, pyramid
from penstock.apps.catalogue import APPS
from penstock.core.objective import Limits
from penstock.live.attach import attached
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.control_options import Wanted
from penstock.models.calibration import calibrate
from penstock.models.evidence import Evidence
from penstock.pipeline.session import session
from penstock.report.page import write_page
from penstock.runs.calibrated_replay import MeasuredVsSimulated, read_evidence, simulate
from penstock.runs.comparison import Comparison, Run, run_of_journal
from penstock.sim.calibrated_file import write_scenario
from penstock.sim.toml import read_scenario

FOLDER = Path("docs/live/policies")
POLICIES = {
    "deadline": "deadline",
    "deadline-as-it-comes": "deadline:without=batches",
    "filtered": "filtered",
    "dynamic-allocation": "spark-dynamic",
}
RUNS = 3
WORKERS, CORES, PARTITIONS, TRIGGER_S = 5, 0.25, 10, 20.0
SECONDS = WARM_S + HELD_S * len(LEVELS)
DYNAMIC = {
    "spark.cores.max": str(WORKERS),
    "spark.executor.cores": "1",
    "spark.executor.memory": "1024m",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.adaptive.enabled": "false",
    "spark.decommission.enabled": "true",
    "spark.driver.memory": "1g",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(WORKERS),
}


@dataclass(frozen=True, slots=True)
class Live:
    """One run."""

    policy: str
    number: int

    @property
    def journal(self) -> Path:
        return FOLDER / f"{self.policy}-{self.number}.jsonl"


def main(*words: str) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench live_policies")
    parser.add_argument("--runs", type=int, default=RUNS * len(POLICIES), help="at most so many now; 0: the page only")
    options = parser.parse_args(words)
    FOLDER.mkdir(parents=True, exist_ok=True)
    lives = [Live(policy, number) for number in range(1, RUNS + 1) for policy in POLICIES]
    missing = [live for live in lives if not live.journal.exists()][: options.runs]
    lines = image_lines() if missing else []
    for live in missing:
        run(live, lines)
    write([live for live in lives if live.journal.exists()])


def run(live: Live, lines: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-live-") as scratch:
        incoming, journal = Path(scratch) / "incoming", Path(scratch) / live.journal.name
        incoming.mkdir()
        feeder, begun = FileFeeder(pyramid, incoming, lines), time.monotonic()
        feeder.start()
        (dynamic if live.policy == "dynamic-allocation" else ours)(live, incoming, journal)
        feeder.stop()
        shutil.move(journal, live.journal)
        print(f"{live.journal.stem}: {feeder.fed} rows in {time.monotonic() - begun:.0f} s", flush=True)


def ours(live: Live, incoming: Path, journal: Path) -> None:
    control = ["--policy", POLICIES[live.policy], "--min", "1", "--max", str(WORKERS), "--tick", "20s"]
    job = ["--trigger", "20s", "--partitions", str(PARTITIONS), "--objective", OBJECTIVE, "--journal", str(journal)]
    words = ["run", "images", *control, *job, "--files", str(incoming), "--for", f"{SECONDS:.0f}s"]
    done = subprocess.run([sys.executable, "-m", "penstock", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{live.journal.stem} failed: {done.stderr[-2000:]}")


def dynamic(_: Live, incoming: Path, journal: Path) -> None:
    """As a user would have it: dynamic allocation on, and nobody else who scales."""
    app, limits = APPS["images"], Limits(1, WORKERS)
    wanted = Wanted(f"static:workers={WORKERS}", limits, "20s", "20s", OBJECTIVE, journal=journal, dry_run=True)
    with _dynamic_session() as spark, tempfile.TemporaryDirectory() as state:
        rows = spark.readStream.format("text").load(str(incoming)).selectExpr("value", "current_timestamp() timestamp")
        writer = app.transform(rows).writeStream.format("noop").outputMode(app.output_mode)
        query = writer.option("checkpointLocation", state).trigger(processingTime=f"{TRIGGER_S:g} seconds").start()
        controller = attached(spark, (query,), replace(wanted, app="images", source="files", cores=CORES))
        query.awaitTermination(round(SECONDS))
        controller.stop()
        query.stop()


@contextlib.contextmanager
def _dynamic_session() -> Iterator[SparkSession]:
    with (
        Cluster.start(ClusterSpec(WORKERS, CORES)) as cluster,
        session(cluster.url, "dynamic allocation", DYNAMIC | cluster.settings) as spark,
    ):
        yield spark


def write(lives: Sequence[Live]) -> None:
    """The report of all runs, and the page: what each missed and cost, and what the calibrated simulator foresaw."""
    runs: dict[Live, Run] = {live: run_of_journal(live.journal)[0] for live in lives}
    named = tuple(replace(run, header=replace(run.header, policy=live.journal.stem)) for live, run in runs.items())
    write_page(FOLDER / "report.html", Comparison("images, live, a pyramid load", OBJECTIVE, named))
    foreseen = simulated(lives)
    rows = [measured_row(live, run, foreseen[live]) for live, run in runs.items()]
    total = [total_row(policy, [runs[live] for live in lives if live.policy == policy]) for policy in POLICIES]
    lines = [*HEAD, *filter(None, total), "", *beside(runs), "", *EACH, *rows]
    print("\n".join(lines))
    (FOLDER / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def simulated(lives: Sequence[Live]) -> Mapping[Live, MeasuredVsSimulated]:
    """Each run's load under its own policy, in a simulator that learnt from the runs of the others' policies."""
    shown = {live: as_ran(live, read_evidence(live.journal)[0]) for live in lives}
    found = {}
    for policy in {live.policy for live in lives}:
        teachers = [each for live, each in shown.items() if live.policy != policy]
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "scenario.toml"
            write_scenario(path, calibrate(teachers), teachers, with_load=True)
            file = read_scenario(path)
        for live in lives:
            if live.policy == policy:
                found[live] = simulate(live.journal.stem, shown[live], file)
    return found


def as_ran(live: Live, evidence: Evidence) -> Evidence:
    """A dry run's journal names the policy that looked on: what scaled was another, without any rule of ours."""
    policy = POLICIES[live.policy]
    rules = {} if live.policy == "dynamic-allocation" else evidence.header.rules
    return replace(evidence, header=replace(evidence.header, job="images", policy=policy, rules=rules))


def measured_row(live: Live, run: Run, foreseen: MeasuredVsSimulated) -> str:
    score, sim = run.score, foreseen.simulated
    paid = f"{score.worker_hours:.3f} | {score.scaling_actions} | {score.latency_p95_s:.0f} s"
    low, high = foreseen.least.violation_share, foreseen.most.violation_share
    theirs = f"{sim.violation_share:.1%} ({low:.0%} … {high:.0%}) | {sim.cost / run.header.price.per_hour:.3f}"
    return f"| [{live.journal.stem}]({live.journal.name}) | {score.violation_share:.1%} | {paid} | {theirs} |"


def total_row(policy: str, runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    hours = [run.score.worker_hours for run in runs]
    missed = [run.score.violation_share for run in runs]
    spread = f"{statistics.fmean(missed):.1%} ({min(missed):.1%} … {max(missed):.1%})"
    paid = f"{statistics.fmean(hours):.3f} ({min(hours):.3f} … {max(hours):.3f})"
    return f"| {policy} | `{POLICIES[policy]}` | {len(runs)} | {spread} | {paid} |"


def beside(runs: Mapping[Live, Run]) -> list[str]:
    """`deadline` against the others, and why it has the workers that it has."""
    hours = {
        policy: statistics.fmean(each)
        for policy in POLICIES
        if (each := [run.score.worker_hours for live, run in runs.items() if live.policy == policy])
    }
    if "deadline" not in hours:
        return []
    told = [
        f"{hours['deadline'] / each - 1:+.0%} worker hours against {policy}"
        for policy, each in hours.items()
        if policy != "deadline"
    ]
    started = sum(run.score.workers_started for live, run in runs.items() if live.policy == "deadline")
    why = f"It starts with all {WORKERS}, and until it has seen one worker start it gives up one every five minutes;"
    return [f"`deadline`: {', '.join(told)}.", f"{why} in these runs it asked for {started}."]


HEAD = (
    "# Live: what controls the pyramid",
    "",
    "Made by `scripts/bench live_policies` on a machine of 2 cores: the image job of paper 5 on a Spark cluster of 1",
    f"to {WORKERS} workers of a quarter of a core, fed from files for {SECONDS / 60:.1f} minutes, in steps up to",
    f"{PEAK:.0f} images/s and down again, a batch and a decision every 20 s, the objective {OBJECTIVE}.",
    "*deadline-as-it-comes* is `deadline` without its batch sizes. Dynamic allocation is Spark's own, with its",
    "defaults (limits 1 and 5, shuffle tracking); what it asks for and has not got yet is not counted as paid, which",
    "favours it. It starts with one executor, the others with all five. While the second and third runs were made,",
    "replays ran beside them at idle priority.",
    "[The report](report.html) draws every run.",
    "",
    "| control | policy | runs | time missed, mean (least … most) | worker hours |",
    "|---|---|---|---|---|",
)
EACH = (
    "Each run, and what a simulator foresaw that was calibrated on the journals of the three *other* controls: mean",
    "and range of its replays.",
    "",
    "| run | time missed | worker hours | actions | 95 % within | foreseen: missed | worker hours |",
    "|---|---|---|---|---|---|---|",
)


if __name__ == "__main__":
    main(*sys.argv[1:])
