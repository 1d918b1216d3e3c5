"""A live fleet: eight of paper 2's queries on one to four hosts, load up and down twice, placed by `fugu-tuned`.

`scripts/bench fleet` runs it (some twenty minutes); its journal and log go under `docs/fleet/`, and what came of
it as docs/fleet.md: what was fed is compared with what the queries put out, key by key. With a journal there, only the
page is written anew.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.fleet_feed import FedQuery, FleetFeeder
from penstock.apps.catalogue import APPS
from penstock.core.journal import Journal
from penstock.core.loop import Step
from penstock.pipeline.session import session
from penstock.runs.comparison import run_of_journal

FOLDER, PAGE = Path("docs/fleet"), Path("docs/fleet.md")
JOURNAL, LOG, FED = FOLDER / "fleet.jsonl", FOLDER / "fleet.log", FOLDER / "fed.json"
POLICY = "fugu-tuned:pause_s=8,longest=60"
# Every batch costs a query about a core second however few rows it has: at a batch every 10 s those alone kept four
# hosts at half their load, and none could go.
OBJECTIVE, TICK, TRIGGER = "latency<=120s", "10s", "30s"
HOSTS = {"least": 1, "most": 4, "cores": 0.4, "memory_mb": 512}
PEAK, LEVELS, HELD_S = 20_000.0, (0.05, 0.5, 1.0, 0.05, 0.05, 0.05, 1.0, 0.5, 0.05, 0.05, 0.05, 0.05), 70.0
WARM_S = 20.0
DRAIN_S = 120.0
LINES = 5000
MOVES_LEAST = 10
QUERIES: tuple[tuple[str, str, dict[str, str | int], float], ...] = (
    ("tech", "candlesticks", {"sector": "tech", "window_s": 10}, 1.0),
    ("retail", "candlesticks", {"sector": "retail", "window_s": 20}, 1.5),
    ("energy", "candlesticks", {"sector": "energy", "window_s": 30}, 0.5),
    ("finance", "candlesticks", {"sector": "finance", "window_s": 60}, 1.0),
    ("tags-a", "hashtags", {"prefix": "a", "window_s": 20}, 1.0),
    ("tags-s", "hashtags", {"prefix": "s", "window_s": 60}, 0.5),
    ("house1", "meter-loads", {"house": "house1", "window_s": 20}, 1.5),
    ("house2", "meter-loads", {"house": "house2", "window_s": 60}, 1.0),
)


def rate(at_s: float) -> float:
    """Of all queries together, events a second: up in steps and down, twice."""
    step = int((at_s - WARM_S) // HELD_S)
    return PEAK * (LEVELS[step] if 0 <= step < len(LEVELS) else LEVELS[0]) / sum(each[3] for each in QUERIES)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not JOURNAL.exists():
        with tempfile.TemporaryDirectory(prefix="penstock-fleet-bench-") as scratch:
            run(Path(scratch))
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def run(scratch: Path) -> None:
    queries = fed_queries(scratch)
    fleet, journal = scratch / "fleet.toml", scratch / JOURNAL.name
    hosts = "".join(f"{key} = {value}\n" for key, value in HOSTS.items())
    head = f'name = "fleet"\nstate = "{scratch / "state"}"\n[hosts]\n{hosts}'
    fleet.write_text(head + "".join(f'{each.toml()}trigger = "{TRIGGER}"\n' for each in queries))
    control = ["--policy", POLICY, "--objective", OBJECTIVE, "--tick", TICK, "--journal", str(journal)]
    feeder = FleetFeeder(queries, rate)
    with (scratch / "log").open("w") as said:
        process = subprocess.Popen([sys.executable, "-m", "penstock", "fleet", str(fleet), *control], stderr=said)
        try:
            _wait(lambda: bool(steps(journal)), process, 300.0)  # all queries run: now the load begins
            feeder.start()
            time.sleep(WARM_S + HELD_S * len(LEVELS))
            feeder.stop()
            _wait(lambda: all(each.counted() == each.expected for each in queries), process, DRAIN_S)
        finally:
            process.send_signal(signal.SIGTERM)  # one that a shell put in the background never hears SIGINT
            process.wait(120)
    shutil.copy(journal, JOURNAL)
    shutil.copy(scratch / "log", LOG)
    FED.write_text(json.dumps([_compared(each) for each in queries], indent=1) + "\n", encoding="utf-8")


def fed_queries(scratch: Path) -> list[FedQuery]:
    with session("local[1]", "lines", {"spark.driver.memory": "512m"}) as spark:
        lines = {
            app: [row[0].partition("\t")[2] for row in APPS[app].generate(spark, LINES, 1).collect()]
            for app in {each[1] for each in QUERIES}
        }
    return [
        FedQuery(name, app, dict(given), scratch / "in" / name, scratch / "out" / name, lines[app], share)
        for name, app, given, share in QUERIES
    ]


def steps(journal: Path) -> list[Step]:
    return list(Journal.open(journal)) if journal.exists() and journal.stat().st_size else []


def _wait(is_so: Callable[[], bool], process: subprocess.Popen[bytes], most_s: float) -> None:
    until_s = time.monotonic() + most_s
    while not is_so() and process.poll() is None and time.monotonic() < until_s:
        time.sleep(1.0)


def _compared(query: FedQuery) -> dict[str, object]:
    counted, expected = query.counted(), query.expected
    wrong = sum(counted[key] != expected[key] for key in {*counted, *expected})
    total = {"expected": sum(expected.values()), "counted": sum(counted.values())}
    return {"query": query.name, "app": query.app, "fed": query.fed, **total, "keys": len(expected), "wrong": wrong}


def page() -> str:
    seen, fed = steps(JOURNAL), json.loads(FED.read_text(encoding="utf-8"))
    reasons = " ".join(step.decision.reason for step in seen)
    pauses = [float(each) for each in re.findall(r" moved from w\d+ to w\d+ in ([\d.]+) s", reasons)]
    score = run_of_journal(JOURNAL)[0].score
    hosts = [len(step.seen.running.workers) for step in seen]
    adopted = max((step.decision.signals.get("adopted", 0.0) for step in seen), default=0.0)
    whole = all(each["counted"] == each["expected"] and not each["wrong"] for each in fed)
    rows = [
        f"| {each['query']} | {each['app']} | {each['fed']:,} | {each['expected']:,} | {each['counted']:,} |"
        f" {each['keys']:,} | {each['wrong']} |"
        for each in fed
    ]
    verdict = "every event was counted exactly once" if whole else "**events were lost or counted twice**"
    took = f"{statistics.median(pauses):.1f} s in the median, {max(pauses):.1f} s at most" if pauses else "none"
    return "\n".join(
        [
            *HEAD,
            f"**{len(pauses)} moves, {verdict}.** A move took {took}, from the word to stop until the query ran again.",
            f"Hosts that ran: {min(hosts)} to {max(hosts)}; {score.workers_started} were started and"
            f" {score.workers_stopped} ended; {score.worker_hours:.2f} host hours, where {HOSTS['most']} hosts all of"
            f" the time are {HOSTS['most'] * (seen[-1].seen.time_s - seen[0].seen.time_s) / 3600:.2f}.",
            f"The objective {OBJECTIVE} was missed for {score.violation_share:.1%} of the time (for"
            f" {score.unknown_share:.1%} nobody knew). The tuner adopted"
            f" {adopted:.0f} configurations.",
            *not_shown(seen, len(pauses)),
            "",
            "| query | app | fed | to be counted | counted | keys | keys that differ |",
            "|---|---|--:|--:|--:|--:|--:|",
            *rows,
            "",
            "`fed` are events put into a query's folder; `to be counted` those that its filter takes: a tweet has two.",
            "",
            *timeline(seen),
            *TAIL,
        ]
    )


def not_shown(seen: Sequence[Step], moves: int) -> list[str]:
    """What this run was to show, and does not."""
    hosts, load = [len(step.seen.running.workers) for step in seen], seen[-1].decision.signals.get("load", 0.0)
    missing = [f"at least {MOVES_LEAST} moves"] if moves < MOVES_LEAST else []
    if min(hosts[hosts.index(max(hosts)) :]) == max(hosts):
        missing.append(
            "hosts that go when the load does: with"
            f" {LEVELS[-1]:.0%} of it, batches still took {load:.0%} of {hosts[-1]} hosts"
        )
    return ["", f"**Asked for and not shown by this run:** {'; '.join(missing)}."] if missing else []


def timeline(seen: Sequence[Step]) -> list[str]:
    """The load and the hosts, minute by minute."""
    lines = [
        "| minute | events/s | backlog | latency | hosts asked for | hosts that run |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    minutes: dict[int, Step] = {}
    for step in seen:
        minutes.setdefault(int((step.seen.time_s - seen[0].seen.time_s) // 60), step)
    for minute, step in minutes.items():
        each = step.seen
        waits = "unknown" if each.backlog is None else f"{each.backlog:,.0f}"
        late = "unknown" if each.latency_s is None else f"{each.latency_s:.0f} s"
        counts = f"{len(step.target.workers)} | {len(each.running.workers)}"
        lines.append(f"| {minute} | {each.input_rate:,.0f} | {waits} | {late} | {counts} |")
    return [*lines, ""]


HEAD = (
    "# A fleet: queries placed on several Spark applications",
    "`penstock fleet queries.toml --policy fugu-tuned` runs many streaming queries on several hosts, each a Spark",
    "application; the policy says which host has which query and how many there are.",
    "",
    "## Measured",
    "Made by `scripts/bench fleet` on a machine of 2 cores that others used, too; one run: eight of paper 2's queries,",
    f"hosts of {HOSTS['cores']:g} cores and {HOSTS['memory_mb']} MB,",
    f"policy `{POLICY}`, a decision every {TICK}. Its [journal](fleet/fleet.jsonl) and [log](fleet/fleet.log).",
    "",
)
TAIL = (
    "The load goes up and down twice. One run shows that it works, and not what a policy is worth: for that see"
    " [fugu.md](fugu.md).",
    "",
)
