"""The comparison in one sentence and a few large numbers."""

from __future__ import annotations

from html import escape

from penstock.report import show
from penstock.runs.comparison import Comparison, Run

# "Keeps the objective" for the headline: the three nines of a service level are for whoever reads the table.
MISSED_MAX = 0.01


def headline(comparison: Comparison) -> str:
    """What a hurried reader should know."""
    if not comparison.runs:
        return "Nothing was run."
    if len(comparison.runs) == 1:
        return _single(comparison, comparison.runs[0])
    runs = _attainable(comparison)
    kept = [run for run in runs if _keeps(run)]
    if not kept:
        best = min(runs, key=lambda run: (run.score.violation_share, run.score.cost))
        return f"No policy keeps the objective 99 % of the time. Closest: {_sentence(comparison, best)}"
    best = min(kept, key=lambda run: (run.score.cost, run.score.violation_share))
    return f"Cheapest that keeps the objective at least 99 % of the time: {_sentence(comparison, best)}"


def _attainable(comparison: Comparison) -> tuple[Run, ...]:
    """Praise is for policies that one can have, unless there are no others."""
    return tuple(run for run in comparison.runs if not run.knows_future) or comparison.runs


def _sentence(comparison: Comparison, run: Run) -> str:
    ratio = comparison.to_bound(run.score.cost)
    beside = f", {show.multiple(ratio)} the lower bound" if ratio is not None else ""
    missed = show.share(run.score.violation_share)
    return f"<b>{escape(run.name)}</b>, {show.money(run.score.cost)}{beside}, missed {missed} of the time."


def _keeps(run: Run) -> bool:
    """What nobody knows is not kept."""
    return run.score.violation_share + run.score.unknown_share <= MISSED_MAX


def _single(comparison: Comparison, run: Run) -> str:
    score = run.score
    objective = f"The objective <b>{escape(show.objective(comparison.objective))}</b>"
    unknown = f" Unknown {show.share(score.unknown_share)} of the time." if score.unknown_share else ""
    if not score.violations:
        kept = "was kept all the time." if not unknown else "was not seen to be missed."
        return f"{objective} {kept}{unknown}"
    times = "once" if score.violations == 1 else f"{show.count(score.violations)} times"
    return f"{objective} was missed {times}, {show.share(score.violation_share)} of the time.{unknown}"


def tiles(comparison: Comparison) -> str:
    """Large numbers: the leaders of a comparison, or the score of a single run."""
    runs = comparison.runs
    if not runs:
        return ""
    return f'<div class="tiles">{_of_one(comparison, runs[0]) if len(runs) == 1 else _of_many(comparison)}</div>'


def _of_many(comparison: Comparison) -> str:
    runs = _attainable(comparison)
    # A run that hardly serves is always cheap and calm; it leads only where none does better.
    kept_runs = [run for run in runs if _keeps(run)]
    among = f" with at most {show.share(MISSED_MAX)} missed" if 0 < len(kept_runs) < len(runs) else ""
    runs = tuple(kept_runs) or runs
    cheap = min(runs, key=lambda run: (run.score.cost, run.score.violation_share))
    kept = min(runs, key=lambda run: (run.score.violation_share, run.score.cost))
    calm = min(runs, key=lambda run: (run.score.scaling_actions, run.score.violation_share))
    tiles = [
        _tile(f"Lowest cost{among}", show.money(cheap.score.cost), _besides(cheap, "cost")),
        _tile("Least missed", show.share(kept.score.violation_share), _besides(kept, "missed")),
        _tile(f"Fewest actions{among}", show.count(calm.score.scaling_actions), _besides(calm, "actions")),
    ]
    if comparison.bound_lower is not None:
        tiles.append(
            _tile("Lower bound", show.money(comparison.bound_lower), "no plan within the objective costs less")
        )
    return "".join(tiles)


def _besides(run: Run, shown: str) -> str:
    """The other two of cost, violations and actions: a comparison always shows all three."""
    score = run.score
    three = {
        "cost": show.money(score.cost),
        "missed": f"missed {show.share(score.violation_share)}",
        "actions": show.several(score.scaling_actions, "action"),
    }
    rest = " · ".join(text for name, text in three.items() if name != shown)
    return f"<b>{escape(run.name)}</b><br>{rest}"


def _of_one(comparison: Comparison, run: Run) -> str:
    score = run.score
    ratio = comparison.to_bound(score.cost)
    beside = f"{show.multiple(ratio)} the lower bound" if ratio else f"{show.count(score.worker_hours)} worker hours"
    stretches = f"{show.several(score.violations, 'stretch')} · {show.several(score.late_events, 'late event')}"
    stretches += f" · unknown {show.share(score.unknown_share)}" if score.unknown_share else ""
    moved = f"{show.several(score.workers_started, 'worker')} started, {show.count(score.workers_stopped)} stopped"
    latency = f"p50 {show.duration(score.latency_p50_s)} · p99 {show.duration(score.latency_p99_s)}"
    return "".join(
        (
            _tile("Cost", show.money(score.cost), beside),
            _tile("Objective missed", show.share(score.violation_share), stretches),
            _tile("Scaling actions", show.count(score.scaling_actions), moved),
            _tile("Latency p95", show.duration(score.latency_p95_s), latency),
        )
    )


def _tile(label: str, number: str, beside: str) -> str:
    """`beside` is markup already."""
    return f'<div class="tile"><span>{escape(label)}</span><strong>{escape(number)}</strong><p>{beside}</p></div>'
