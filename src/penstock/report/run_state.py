"""How a run stands: what a person reads first, on the live page and in the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from penstock.core.journal import Header
from penstock.core.loop import Step
from penstock.core.score import Score
from penstock.report import show
from penstock.report.decided import Decided
from penstock.report.explanation import seen_numbers
from penstock.report.live import LiveRun

# Ticks come late now and then; three of them missing are no accident. Below 10 s nobody would see it as silence.
SILENT_TICKS = 3
SILENT_LEAST_S = 10.0
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its name, and what stands beside it."""

    label: str
    value: str
    beside: str = ""
    curve: str = ""
    """The curve whose last value it is, where it is one's."""
    is_bad: bool = False


def figures(live: LiveRun, score: Score) -> list[Figure]:
    """What was seen last, then what the run came to so far; empty before the first step."""
    if live.last is None:
        return []
    return [*_seen_last(live.header, live.last, live.missed), *_so_far(live, score)]


def _seen_last(header: Header, step: Step, missed: bool | None) -> list[Figure]:
    seen = step.seen
    kept = f"{show.objective(str(header.objective))}: {show.verdict(missed)}"
    by_latency = header.objective.latency_s is not None
    load = seen.workers.mean("cpu") if seen.workers.columns else math.nan
    rate = ("Rate", f"{show.count(seen.input_rate)}/s")
    latency = ("Latency", show.duration(seen.latency_s) if seen.latency_s is not None else UNKNOWN)
    backlog = ("Backlog", show.count(seen.backlog) if seen.backlog is not None else UNKNOWN)
    return [
        Figure("Workers", show.count(len(seen.running.workers)), _asked(step), "running"),
        # The objective stands beside what it is about.
        Figure(*rate, "events arriving" if by_latency else kept, "rate", bool(missed) and not by_latency),
        Figure("Capacity", f"{show.count(seen.capacity)}/s", _needed(seen.input_rate, seen.capacity), "capacity"),
        Figure("Load", show.share(load), "mean over the workers", "load"),
        Figure(*backlog, _wait(seen.backlog, seen.capacity), "backlog"),
        Figure(*latency, kept if by_latency else "of the oldest event", "latency", bool(missed) and by_latency),
    ]


def _asked(step: Step) -> str:
    running, asked = len(step.seen.running.workers), len(step.target.workers)
    said = "all of them run" if asked == running else "starting" if asked > running else "leaving"
    alternates = "".join(f"; {name} by {kind}" for name, kind in step.seen.running.alternate.items())
    return f"{asked} asked for, {said}{alternates}"


def _needed(rate: float, capacity: float) -> str:
    return f"{show.share(rate / capacity)} of it is needed" if capacity > 0 else ""


def _wait(backlog: float | None, capacity: float) -> str:
    if backlog is None:
        return "a source does not tell it"
    if backlog <= 0 or capacity <= 0:
        return "events waiting"
    return f"events, {show.duration(backlog / capacity)} of work"


def _so_far(live: LiveRun, score: Score) -> list[Figure]:
    step, price = live.last, live.header.price.per_hour
    hourly = price * len(step.target.workers) if step else 0.0
    moved = f"{show.several(score.workers_started, 'worker')} started, {show.count(score.workers_stopped)} stopped"
    stretches = f"{show.several(score.violations, 'stretch')}, {show.several(score.late_events, 'late event')}"
    unknown = f"; unknown {show.share(score.unknown_share)}" if score.unknown_share else ""
    return [
        Figure("Cost so far", show.money(score.cost), f"{show.money(hourly)} an hour now"),
        Figure("Objective missed", show.share(score.violation_share), f"of the time; {stretches}{unknown}"),
        Figure("Scaling actions", show.count(score.scaling_actions), moved),
    ]


def is_silent(live: LiveRun, silent_s: float) -> bool:
    """Should more steps have come by now?"""
    return silent_s > max(SILENT_LEAST_S, SILENT_TICKS * live.header.tick_s)


def silence(live: LiveRun, silent_s: float) -> str:
    """Whether the journal grows, in words."""
    if live.last is None:
        return "no step yet"
    lasts = show.duration(round(silent_s))
    return f"no new step for {lasts}" if is_silent(live, silent_s) else f"last step {lasts} ago"


def standing(live: LiveRun, now_s: float) -> dict[str, Any]:
    """How the run stands, for programs."""
    run, step = live.run(), live.last
    names: tuple[str, ...] = Score.__slots__
    seen: dict[str, Any] = {} if step is None else seen_numbers(step) | {"target": len(step.target.workers)}
    return {
        "job": live.header.job,
        "policy": live.header.policy,
        "objective": str(live.header.objective),
        "steps": live.steps,
        "time_s": step.seen.time_s if step else None,
        "time": show.moment(step.seen.time_s, live.header.origin_s) if step else None,
        "silent_s": live.silent_s(now_s),
        "missed": live.missed,
        "now": seen,
        "alternate": dict(step.seen.running.alternate) if step else {},
        "signals": dict(step.decision.signals) if step else {},
        "score": {name: getattr(run.score, name) for name in names},
        "decisions": [decision_record(entry, live.header) for entry in live.decisions.last(10)],
        "trouble": live.trouble,
    }


def decision_record(entry: Decided, header: Header) -> dict[str, Any]:
    """A decision as JSON and the page have it."""
    return {
        "step": entry.step,
        "since": show.moment(entry.since_s, header.origin_s),
        "time": show.moment(entry.time_s, header.origin_s),
        "count": entry.count,
        "way": entry.way,
        "outcome": entry.outcome,
        "reason": entry.reason,
    }
