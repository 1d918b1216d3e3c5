"""`penstock explain`: why a step was taken, and what a run came to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.cli.json_output import finite
from penstock.cli.main import say
from penstock.cli.numbers import count
from penstock.core.journal import Journal
from penstock.core.text import one_line
from penstock.report import show
from penstock.report.explanation import NAMES, Digest, Why, change, digest, digest_record, shown, why, why_record

ABOUT = """\
Reads a journal, simulated or live, and says what was seen, decided and why.

  penstock explain run.jsonl                      the run in short: header, score, last 10 scaling actions
  penstock explain run.jsonl --step 120           step 120: what was seen, what was wanted and why, what changed
  penstock explain run.jsonl --step 120 --output json | jq .decision.reason

Steps count from 1. A journal is what `penstock replay --journal` and `penstock run` write.
"""


def add(commands: Any) -> None:
    """Register the command."""
    form = argparse.RawDescriptionHelpFormatter
    command = commands.add_parser("explain", help="why a step was taken", description=ABOUT, formatter_class=form)
    command.add_argument("journal", type=Path, metavar="JOURNAL", help="a journal (JSON lines)")
    command.add_argument("--step", type=count, metavar="N", help="the step to explain; the first is 1")
    command.add_argument("--output", choices=("text", "json"), default="text", help="how it is printed")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Explain a step or a whole run."""
    journal = Journal.open(options.journal)
    as_json = options.output == "json"
    if options.step is None:
        short = digest(journal)
        print(_dumped(digest_record(short)) if as_json else "\n".join(map(one_line, _digest_lines(short))))
    else:
        found = why(journal, options.step)
        print(_dumped(why_record(found)) if as_json else "\n".join(map(one_line, _why_lines(found))))
    if journal.damaged:
        lines = "1 damaged line was" if journal.damaged == 1 else f"{journal.damaged} damaged lines were"
        say(f"{lines} left out of {options.journal}; steps are counted without them")
    return 0


def _dumped(content: object) -> str:
    return json.dumps(finite(content), indent=2, allow_nan=False, default=str)


def _line(label: str, text: str) -> str:
    return f"{label:<10} {text}"


def _why_lines(found: Why) -> Iterator[str]:
    header, step = found.header, found.step
    moment = show.moment(step.seen.time_s, header.origin_s) + ("" if header.origin_s is None else " UTC")
    yield f"Step {found.number}, {moment}: {header.policy} on {header.job}"
    yield _line(
        "seen", ", ".join(f"{NAMES.get(name, name)} {shown(name, value)}" for name, value in found.seen.items())
    )
    yield _line("objective", f"{show.objective(str(header.objective))}: {show.verdict(found.missed)}")
    yield _line("wanted", f"{show.several(len(step.decision.target.workers), 'worker')}: {step.decision.reason}")
    yield _line("limits", _limits(found))
    yield _line("applied", change(step.seen.target, step.target))
    if step.decision.signals:
        yield _line("signals", ", ".join(f"{name} {value:.4g}" for name, value in step.decision.signals.items()))
    yield _line("changed", _changes(found))


def _limits(found: Why) -> str:
    if not found.cut:
        return f"{found.header.limits}: not reached"
    wanted, applied = len(found.step.decision.target.workers), len(found.step.target.workers)
    return f"{found.header.limits}: cut from {wanted} to {applied}"


def _changes(found: Why) -> str:
    if found.before is None:
        return "nothing before the first step"
    changes = (
        f"{NAMES.get(name, name)} {shown(name, was)} → {shown(name, now)}" for name, (was, now) in found.changed.items()
    )
    return ", ".join(changes) or "nothing since the step before"


def _digest_lines(found: Digest) -> Iterator[str]:
    header, score = found.header, found.score
    yield f"{header.policy} on {header.job}: {found.steps:,} steps, {show.duration(score.duration_s)}"
    yield _line("setting", f"{show.objective(str(header.objective))}, {header.limits}, {_price(found)}")
    yield _line("facts", _facts(found))
    yield _line("cost", f"{show.money(score.cost)}, {show.count(score.worker_hours)} worker hours")
    late, stretches = show.several(score.late_events, "late event"), show.several(score.violations, "stretch")
    unknown = f", unknown {show.share(score.unknown_share)} of the time" if score.unknown_share else ""
    yield _line("missed", f"{show.share(score.violation_share)} of the time, {stretches}, {late}{unknown}")
    moved = f"{show.several(score.workers_started, 'worker')} started, {show.count(score.workers_stopped)} stopped"
    yield _line("scaled", f"{show.several(score.scaling_actions, 'time')}, {moved}")
    latencies = (score.latency_p50_s, score.latency_p95_s, score.latency_p99_s)
    yield _line("latency", "p50 {}, p95 {}, p99 {}".format(*map(show.duration, latencies)))
    counts = (score.arrived, score.processed, score.backlog)
    yield _line("events", "{} arrived, {} processed, {} waiting".format(*map(show.count, counts)))
    yield from _action_lines(found)


def _price(found: Digest) -> str:
    price = found.header.price
    return f"{show.money(price.per_hour)} per worker hour billed by the {price.billing}"


def _facts(found: Digest) -> str:
    seed = {} if found.header.seed is None else {"seed": found.header.seed}
    facts = {"tick_s": found.header.tick_s} | seed | dict(found.header.facts)
    shown = (show.fact(name, value) for name, value in facts.items() if not isinstance(value, dict))
    return ", ".join(" ".join(pair) for pair in shown)


def _action_lines(found: Digest) -> Iterator[str]:
    if not found.actions:
        yield "No scaling action."
        return
    total = found.score.scaling_actions
    yield f"Last {len(found.actions)} of {total} scaling actions:" if total > 1 else "The scaling action:"
    width = len(str(found.actions[-1].step))
    for action in found.actions:
        when = f"step {action.step:>{width}}  {show.moment(action.time_s, found.header.origin_s)}"
        yield f"  {when}  {action.before} → {show.several(action.after, 'worker')}: {action.reason}"
