"""Jobs that nobody here wrote, with one line put in: what was fed, what `attach` saw, what was answered, who ran.

Spark's own example jobs are taken from the installed package as they are (default trigger, 200 partitions), beside jobs
of our own for what they lack. Each runs under `spark-submit` on a local cluster with a real broker, or a socket, and is
fed at known rates. `scripts/bench foreign` runs all in half an hour, and writes docs/foreign.md as it goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark

from benchmarks.foreign_output import all_tables, listed
from benchmarks.foreign_page import CORES, FAULTS, HEAD, LIGHT, LINES, STEPS, WORDS, Foreign, Outcome, rows
from benchmarks.foreign_run import JobFailed, attached, fed, log_of, settings_of, steps_in, submitted, wait
from penstock.core.journal import Journal
from penstock.core.loop import Step
from penstock.live.cluster import Cluster, ClusterSpec

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
    Foreign("a service of 0.2 ms a row", OWN / "service.py", load=STEPS),
    Foreign("join of two streams", OWN / "join.py", lines=KEYS, reads=2, output=listed),
    Foreign("slow foreachBatch", OWN / "slow.py", load=((20.0, 45.0), (200.0, 60.0), (20.0, 45.0)), output=listed),
)


def main() -> None:
    """Each job in turn; the page is written as it goes, and keeps what the other code gave."""
    src = os.environ.get(BEFORE, "")
    code = "before" if src else "after"
    for job in JOBS:
        with tempfile.TemporaryDirectory(prefix="penstock-foreign-") as folder:
            try:
                new = rows(run(job, Path(folder), src), code)
            except JobFailed as error:
                print(error, file=sys.stderr)
                new = [f"| {job.name} | {code} | could not be run | | | | | | | | |"]
        print("\n".join(new), flush=True)
        keep(job.name, code, new)


def keep(name: str, code: str, lines: list[str]) -> None:
    """These rows of the page are new; the others stay as they were."""
    kept: dict[str, dict[str, list[str]]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept.setdefault(name, {})[code] = lines
    _write(kept)


def _write(kept: Mapping[str, Mapping[str, list[str]]]) -> None:
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    found = [line for job in JOBS for code in ("before", "after") for line in kept.get(job.name, {}).get(code, ())]
    rest = PAGE.read_text(encoding="utf-8").partition(END)[2] if PAGE.exists() else ""
    faults = kept.get("faults", {}).get("after", [])
    lines = [*HEAD, *found, *((*FAULTS, *faults) if faults else ())]
    PAGE.write_text("\n".join(lines) + f"\n\n{END}{rest}", encoding="utf-8")


def run(job: Foreign, folder: Path, python_path: str = "") -> Outcome:
    """Feed it, wait until all is answered and the executors have gone down, end it."""
    with contextlib.ExitStack() as stack:
        feeder, words = stack.enter_context(fed(job))
        cluster = stack.enter_context(Cluster.start(ClusterSpec(job.workers, CORES)))
        journal = folder / "journal.jsonl"
        script = attached(job, folder, journal)
        settings = {**settings_of(job, folder), **cluster.settings}
        process = stack.enter_context(submitted(script, words, settings, python_path))
        if not wait(lambda: len(steps_in(journal)) > 0, process, folder, START_S):
            raise JobFailed(f"{job.name} did not begin within {START_S:.0f} s: {log_of(folder)[-2000:]}")
        feeder.start()
        wait(lambda: time.time() > feeder.begun_s + job.seconds, process, folder, job.seconds + 60)
        feeder.stop()
        wait(lambda: job.output(folder) >= job.puts * feeder.fed, process, folder, DRAIN_S)
        base, due = steps_in(journal)[0].seen.processed, job.reads * feeder.fed
        exact = wait(lambda: steps_in(journal)[-1].seen.processed - base == due, process, folder, AGREE_S)
        wait(lambda: _is_down(steps_in(journal)), process, folder, DOWN_S)
        origin_s = Journal.open(journal).header.origin_s or 0.0
        return Outcome(job, steps_in(journal), feeder, origin_s, log_of(folder), exact, job.output(folder))


def _is_down(steps: Sequence[Step]) -> bool:
    """Do fewer run than ran at the most, and as many as are asked for?"""
    counts, asked = [len(step.seen.running.workers) for step in steps], len(steps[-1].target.workers)
    return counts[-1] == asked < max(counts)
