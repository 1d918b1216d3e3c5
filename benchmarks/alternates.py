"""A job with two alternates on 1 to 4 workers of a quarter of a core, over two days of two minutes: look-ahead or not.

`scripts/bench alternates` makes the runs of four minutes each whose journals are not there (`--only NAME`: one of them)
and writes the page; `scripts/bench alternates --costs yes` measures what each alternate of our apps costs and is worth.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from benchmarks import alternate_costs
from benchmarks.feeding import FileFeeder
from penstock.apps.catalogue import APPS
from penstock.core.loop import Step
from penstock.core.objective import Objective
from penstock.pipeline.session import session
from penstock.report.page import write_page
from penstock.runs.comparison import Comparison, run_of_journal

FOLDER = Path("docs/live/alternates")
APP = "patterns"
DAY_S, DAYS, LOW, PEAK = 120.0, 2, 3000.0, 30_000.0
OBJECTIVE = "latency<=30s"
COMMON = "plan_s=10,step_s=10,least=0.95"
POLICIES = {
    "ahead": f"plasticc:forecast=holt-winters,season_s={DAY_S:.0f},interval_s=60,{COMMON}",
    "reactive": f"plasticc:forecast=caf,interval_s=20,{COMMON}",
    "deadline": "deadline",
}


def day(at_s: float) -> float:
    """A day is a wave: least at its begin."""
    return LOW + (PEAK - LOW) * (1 - math.cos(2 * math.pi * at_s / DAY_S)) / 2


def main(*words: str) -> None:
    options = dict(zip(words[::2], words[1::2], strict=True))
    if "--costs" in options:
        alternate_costs.main()
        return
    only = options.get("--only")
    names = [only] if only else [*POLICIES]
    FOLDER.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not journal_of(name).exists()]
    if missing:
        with session("local[1]", "lines") as spark:
            lines = [row[0] for row in APPS[APP].generate(spark, 50_000, 0).collect()]
        for name in missing:
            run(name, lines)
    write([name for name in POLICIES if journal_of(name).exists()])


def journal_of(name: str) -> Path:
    return FOLDER / f"{name}.jsonl"


def run(name: str, lines: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-alternates-") as scratch:
        incoming, journal = Path(scratch) / "incoming", Path(scratch) / "journal.jsonl"
        incoming.mkdir()
        control = ["--policy", POLICIES[name], "--min", "1", "--max", "4", "--tick", "5s", "--objective", OBJECTIVE]
        job = ["--trigger", "10s", "--partitions", "2", "--files", str(incoming), "--journal", str(journal)]
        command = [sys.executable, "-m", "penstock", "run", APP, *control, *job, "--for", f"{DAY_S * DAYS:.0f}s"]
        log = journal_of(name).with_suffix(".log")
        with log.open("w", encoding="utf-8") as said, subprocess.Popen(command, stderr=said) as process:
            # The first day begins with the first batch: a cluster takes half a minute to come.
            while process.poll() is None and "attached:" not in log.read_text(encoding="utf-8"):
                _short_wait(incoming, lines)
            feeder = FileFeeder(day, incoming, lines)
            feeder.start()
            process.wait()
            feeder.stop()
        if process.returncode:
            raise SystemExit(f"{name} failed: {log.read_text(encoding='utf-8')[-2000:]}")
        shutil.move(journal, journal_of(name))
        print(f"{name}: {feeder.fed} rows", flush=True)


def _short_wait(incoming: Path, lines: Sequence[str]) -> None:
    """A few rows meanwhile: a job is attached to when its query runs, and that begins with a first file."""
    import time

    time.sleep(0.5)
    first = incoming / "000000.txt"
    if not first.exists():
        first.write_text("\n".join(lines[:5000]) + "\n", encoding="utf-8")


def write(names: Sequence[str]) -> None:
    runs = [run_of_journal(journal_of(name))[0] for name in names]
    named = [replace(each, header=replace(each.header, policy=name)) for name, each in zip(names, runs, strict=True)]
    write_page(FOLDER / "report.html", Comparison(f"{APP}, live, two short days", OBJECTIVE, tuple(named)))
    rows = [row_of(name) for name in names]
    text = "\n".join([*HEAD, *rows, "", *(line for name in names for line in switches(name))]) + "\n"
    (FOLDER / "README.md").write_text(text, encoding="utf-8")
    print(text)


def row_of(name: str) -> str:
    """From the second day on: before, nobody has seen a day."""
    from penstock.core.journal import Journal

    steps = [step for step in Journal.open(journal_of(name)) if step.seen.time_s >= DAY_S]
    bound, before = Objective.parse(OBJECTIVE), {each.name: each.value for each in APPS[APP].variants}
    span_s = sum(step.seen.span_s for step in steps)
    pairs = list(pairwise(steps))
    late_s = sum(
        bound.missed_s(after.seen, bool(bound.missed(after.seen, after.seen.arrived - start.seen.arrived)))
        for start, after in pairs
    )
    workers = sum(len(step.seen.running.workers) * step.seen.span_s for step in steps)
    value = sum(before[running(step)] * step.seen.span_s for step in steps) / span_s
    served = (steps[-1].seen.processed - steps[0].seen.processed) / (steps[-1].seen.arrived - steps[0].seen.arrived)
    worst = max(step.seen.latency_s or 0.0 for step in steps)
    changes = sum(running(start) != running(after) for start, after in pairs)
    moved = sum(len(start.target.workers) != len(after.target.workers) for start, after in pairs)
    figures = f"{value:.3f} | {served:.3f} | {late_s / span_s:.1%} | {worst:.0f} s | {workers / 3600:.3f}"
    return f"| [{name}]({journal_of(name).name}) | {figures} | {changes} | {moved} |"


def running(step: Step) -> str:
    return step.seen.running.alternate.get(APP, APPS[APP].variants[0].name)


def switches(name: str) -> list[str]:
    """How long each switch took until its first batch had ended, as the journal's notes say."""
    from penstock.core.journal import Journal

    told = [
        re.findall(r"its first batch after (\d+) s", step.decision.reason) for step in Journal.open(journal_of(name))
    ]
    took = sorted(int(each) for found in told for each in found)
    if not took:
        return [f"- {name}: no switch."]
    middle = took[len(took) // 2]
    spans = f"from the end of the query to its first batch {middle} s, {took[-1]} s at most"
    return [f"- {name}: {len(took)} switches; {spans}."]


HEAD = (
    "# Live: two alternates, two short days",
    "",
    "Made by `scripts/bench alternates` on a machine of 2 cores, one run each: the app `patterns` (all 48 patterns, or",
    "the hot six at 0.2 of the cost) on a Spark cluster of 1 to 4 workers of a quarter of a core, fed with files:",
    f"two days of {DAY_S:.0f} s, each a wave between {LOW:,.0f} and {PEAK:,.0f} rows/s; a batch every 10 s",
    f"and a decision every 5 s, the objective {OBJECTIVE}.",
    "",
    *(f"- {name}: `{policy}`" for name, policy in POLICIES.items()),
    "",
    "Figures of the second day: before it, nobody has seen one. Value: of the alternate that ran, over time. Served:",
    "of what arrived. [The report](report.html) draws the runs. One run each shows how the job behaves, not which",
    "policy is better.",
    "",
    "| run | value | served | time missed | oldest event | worker hours | switches | changes of workers |",
    "|---|---|---|---|---|---|---|---|",
)
