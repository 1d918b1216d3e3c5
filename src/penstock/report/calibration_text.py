"""A calibration for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from penstock.models.calibration import Calibration
from penstock.models.capacity import weights
from penstock.report import show
from penstock.runs.calibrated_replay import MeasuredVsSimulated


def rows(found: MeasuredVsSimulated) -> Iterator[tuple[str, str, str, str, str]]:
    """What, measured, simulated, between what over the seeds, how far off: for a person."""
    off = "–" if found.cost_off is None else f"{100 * found.cost_off:+.1f} %"
    yield "cost", *_shown(found, "cost", show.money), off
    yield "missed", *_shown(found, "violation_share", show.share), f"{100 * found.violation_off:+.2f} points"
    for name in ("scaling_actions", "workers_started"):
        apart = getattr(found.simulated, name) - getattr(found.measured, name)
        yield name.replace("_", " "), *_shown(found, name, show.count), f"{apart:+.3g}"


def in_short(runs: Sequence[MeasuredVsSimulated], overall: MeasuredVsSimulated) -> str:
    """How far single runs are off, and then all of them as one, where errors of single runs cancel."""
    costs = [abs(run.cost_off) for run in runs if run.cost_off is not None]
    cost = f"its cost by up to {100 * max(costs):.1f} % and " if costs else ""
    missed = 100 * max(abs(run.violation_off) for run in runs)
    total = "" if overall.cost_off is None else f"cost {100 * overall.cost_off:+.1f} %, "
    return (
        f"a run alone is off: {cost}the time missed by up to {missed:.1f} points; "
        f"all {len(runs)} as one: {total}time missed {100 * overall.violation_off:+.1f} points"
    )


def _shown(found: MeasuredVsSimulated, name: str, form: Callable[[float], str]) -> tuple[str, str, str]:
    values = [getattr(each, name) for each in (found.measured, found.simulated, found.least, found.most)]
    measured, simulated, least, most = map(form, values)
    return measured, simulated, f"{least} … {most}"


def learnt_record(found: Calibration) -> dict[str, Any]:
    """A calibration for programs."""
    return {
        "starts": asdict(found.starts) if found.starts else None,
        "capacity": {"kind": found.capacity.curve.kind} | weights(found.capacity.curve),
        "fixed_s": found.capacity.fixed.base_s,
        "fixed_shared_s": found.capacity.fixed.shared_s,
        "batches": _batches_record(found),
        "cpu": asdict(found.cpu) if found.cpu else None,
        "given_up": found.given_up,
        "lost": found.lost,
        "unknown": list(found.unknown),
    }


def _batches_record(found: Calibration) -> dict[str, Any] | None:
    if found.service is None:
        return None
    names = ("seen", "error", "warm_s", "warm_speed", "warm_seen", "first_s", "first_seen", "busy", "spread")
    own = {name: getattr(found.service, name) for name in names}
    return {
        **own,
        **{name: getattr(found, name) for name in ("trigger_s", "tasks", "latency_includes_service", "drains")},
    }
