"""A comparison as a table for a terminal, as JSON, and as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from penstock.core.text import one_line
from penstock.report import show
from penstock.runs.comparison import Comparison, Run
from penstock.runs.saving import saving_of

WIDTH_MAX = 100
# Enough of a name to know a policy by; a column goes before a name is cut shorter.
NAME_MIN = 16
_HEADINGS = ("cost", "/bound", "missed", "times", "late", "actions", "+/−", "p50", "p95", "p99", "load")
# Cost, violations and actions stay whatever the width: a comparison always shows all three.
_DROPPED_FIRST = ("load", "p50", "+/−", "times", "p99", "late", "p95", "/bound")
_SCORES = (
    "violation_share",
    "violations",
    "late_events",
    "scaling_actions",
    "workers_started",
    "workers_stopped",
    "latency_p50_s",
    "latency_p95_s",
    "latency_p99_s",
)
_MORE_SCORES = ("arrived", "processed", "backlog", "load", "worker_hours", "duration_s", "unknown_share")


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The comparison as a table that fits where it is printed, within 100 columns."""

    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _table(self.comparison, min(WIDTH_MAX, options.max_width))


def as_table(comparison: Comparison) -> ScoreTable:
    """What `rich` prints: the policy, then numbers to the right; a narrow terminal loses the least of them."""
    return ScoreTable(comparison)


def _table(comparison: Comparison, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", caption_justify="left")
    rows = [_cells(comparison, run) for run in comparison.runs]
    widths = _widths(comparison, rows, width)
    # A long name is cut, never a number.
    table.add_column("policy", no_wrap=True, overflow="ellipsis", max_width=max(8, width - 1 - sum(widths.values())))
    for heading in widths:
        table.add_column(heading, justify="right", no_wrap=True)
    for run, row in zip(comparison.runs, rows, strict=True):
        kept = [cell for heading, cell in zip(_HEADINGS, row, strict=True) if heading in widths]
        # As Text, not markup: a policy named "[red]" is a name, not a colour.
        table.add_row(Text(one_line(run.name)), *kept)
    table.caption = _caption(comparison)
    return table


def _widths(comparison: Comparison, rows: list[list[str]], width: int) -> dict[str, int]:
    """The columns that there is room for, and how wide they are."""
    widths = {cells[0]: max(map(len, cells)) + 1 for cells in zip(_HEADINGS, *rows, strict=True)}
    least = _name_least([run.name for run in comparison.runs])
    for heading in _DROPPED_FIRST:
        if sum(widths.values()) + least + 1 > width:
            del widths[heading]
    return widths


def _name_least(names: Sequence[str]) -> int:
    """How much of each name must be left, so that no two look alike."""
    longest = max(map(len, names), default=0)
    alike = (length for length in range(NAME_MIN, longest) if len({name[: length - 1] for name in names}) == len(names))
    return min(longest, next(alike, longest))


def as_json(comparison: Comparison) -> str:
    """The comparison for programs. NaN and infinity are not JSON: they become null."""
    content = {
        "trace": comparison.trace,
        "objective": comparison.objective,
        "bound": {
            "cost": _finite(comparison.bound_cost),
            "lower": _finite(comparison.bound_lower),
            "note": comparison.bound_note,
        },
        "policies": [_record(comparison, run) for run in comparison.runs],
        "objective_note": comparison.objective_note,
        "saving": _saving(comparison),
        "assumed": dict(comparison.assumed),
        "notes": list(comparison.notes),
    }
    return json.dumps(content, indent=2, allow_nan=False)


def _saving(comparison: Comparison) -> dict[str, Any] | None:
    saving = saving_of(comparison)
    if saving is None:
        return None
    ours, other = saving.ours, saving.other
    return {
        "policy": ours.name,
        "against": other.name,
        "cost": _finite(saving.cost),
        "share": _finite(saving.share),
        "violation_share": ours.score.violation_share,
        "violation_share_against": other.score.violation_share,
        "sentence": saving.sentence,
    }


def as_csv(comparison: Comparison) -> str:
    """One line a policy, under the names that the JSON has."""
    text = io.StringIO()
    records = [_record(comparison, run) for run in comparison.runs]
    writer = csv.DictWriter(text, fieldnames=_record_names(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _record_names() -> list[str]:
    return ["name", "cost", *_SCORES, "cost_to_bound", *_MORE_SCORES]


def _record(comparison: Comparison, run: Run) -> dict[str, Any]:
    score = run.score
    record: dict[str, Any] = {"name": run.name, "cost_to_bound": _finite(comparison.to_bound(score.cost))}
    record |= {name: _finite(getattr(score, name)) for name in ("cost", *_SCORES, *_MORE_SCORES)}
    return {name: record[name] for name in _record_names()}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _cells(comparison: Comparison, run: Run) -> list[str]:
    score = run.score
    return [
        show.money(score.cost),
        show.multiple(comparison.to_bound(score.cost)) + show.UNDERCUT * comparison.undercut_by(run),
        show.share(score.violation_share),
        show.count(score.violations),
        show.count(score.late_events),
        show.count(score.scaling_actions),
        f"{show.count(score.workers_started)}/{show.count(score.workers_stopped)}",
        *(show.duration(value) for value in (score.latency_p50_s, score.latency_p95_s, score.latency_p99_s)),
        show.share(score.load),
    ]


def _caption(comparison: Comparison) -> Text:
    parts = [f"{comparison.trace}, objective {comparison.objective}"]
    if comparison.bound_lower is not None:
        parts.append(f"no plan costs less than {show.money(comparison.bound_lower)}")
    if comparison.bound_cost is not None:
        parts.append(f"with the future known: {show.money(comparison.bound_cost)}")
    if comparison.bound_note:
        parts.append(f"about this bound: {comparison.bound_note}")
    if any(map(comparison.undercut_by, comparison.runs)):
        parts.append(show.UNDERCUT_MEANS)
    unknown = [
        f"{run.name} {show.share(run.score.unknown_share)}" for run in comparison.runs if run.score.unknown_share
    ]
    if unknown:
        parts.append(f"of the time nobody knew whether the objective held: {', '.join(unknown)}")
    if comparison.objective_note:
        parts.append(comparison.objective_note)
    if comparison.assumed:
        parts.append("not given, so assumed: " + "; ".join(comparison.assumed.values()))
    parts.extend(comparison.notes)
    return Text("\n".join(map(one_line, parts)))
