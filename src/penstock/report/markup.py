"""The parts of the page that stand without a script: what was compared, the verdict, the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from penstock.core.score import Score
from penstock.report import show
from penstock.runs.comparison import Comparison, Run

COLOURS = 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: how a score is sorted, and how it is shown. Less is better, unless nothing is."""

    heading: str
    meaning: str
    value: Callable[[Score], float | None]
    shown: Callable[[float], str]
    ranked: bool = True


COLUMNS = (
    Column("Cost", "worker time × price, paid from the request on", lambda s: s.cost, show.money),
    Column("Missed", "share of the time in which the objective did not hold", lambda s: s.violation_share, show.share),
    Column("Unknown", "share of the time in which nobody knew whether it held", lambda s: s.unknown_share, show.share),
    Column("Stretches", "how many times the objective began to be missed", lambda s: s.violations, show.count),
    Column("Late events", "events served later than the objective allows", lambda s: s.late_events, show.count),
    Column("Actions", "ticks that changed what was asked for", lambda s: s.scaling_actions, show.count),
    Column("Started", "workers started", lambda s: s.workers_started, show.count, ranked=False),
    Column("Stopped", "workers given up", lambda s: s.workers_stopped, show.count, ranked=False),
    Column("p50", "half of the events were served within this time", lambda s: s.latency_p50_s, show.duration),
    Column("p95", "95 % of the events were served within this time", lambda s: s.latency_p95_s, show.duration),
    Column("p99", "99 % of the events were served within this time", lambda s: s.latency_p99_s, show.duration),
    Column("Load", "what was processed, of what the workers could have", lambda s: s.load, show.share, ranked=False),
)
# Only where there is any: a simulated run knows all.
SELDOM = "Unknown"
# Beside the cost, because it is the same quantity.
BOUND_AFTER = "Cost"


def colour(number: int) -> str:
    """The class of a run; beyond eight the colours come again, dashed and with square dots."""
    return f"c{number % COLOURS}" + (" again" if number >= COLOURS else "")


def table(comparison: Comparison) -> str:
    """The runs, a row each; below them what no policy can beat."""
    heads = "".join(_heads(comparison))
    rows = "".join(_row(comparison, number, run) for number, run in enumerate(comparison.runs))
    return (
        f'<div class="scroll"><table id="scores"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_bound(comparison)}"
    )


def _heads(comparison: Comparison) -> Iterable[str]:
    yield '<th scope="col" class="name"><button type="button">Policy</button></th>'
    for column in _columns(comparison):
        yield _head(column.heading, column.meaning)
        if column.heading == BOUND_AFTER and comparison.to_bound(1.0) is not None:
            yield _head("× bound", "cost as a multiple of the lower bound")


def _head(heading: str, meaning: str) -> str:
    return f'<th scope="col" title="{escape(meaning)}"><button type="button">{escape(heading)}</button></th>'


def _row(comparison: Comparison, number: int, run: Run) -> str:
    name = escape(run.name)
    note = " <em>knows the future</em>" if run.knows_future else ""
    cells = [f'<th scope="row" class="name" data-v="{name}"><i class="dot {colour(number)}"></i>{name}{note}</th>']
    for column in _columns(comparison):
        value = column.value(run.score)
        best = column.ranked and _leads(value, [column.value(other.score) for other in comparison.runs])
        cells.append(_cell(value, show.NOTHING if value is None else column.shown(value), best))
        if column.heading == BOUND_AFTER and (ratio := comparison.to_bound(run.score.cost)) is not None:
            cells.append(_cell(ratio, show.multiple(ratio) + show.UNDERCUT * comparison.undercut_by(run), best=False))
    return f'<tr data-run="{number}">{"".join(cells)}</tr>'


def _columns(comparison: Comparison) -> list[Column]:
    known = not any(run.score.unknown_share for run in comparison.runs)
    return [column for column in COLUMNS if not (known and column.heading == SELDOM)]


def _leads(value: float | None, values: list[float | None]) -> bool:
    """Is it the least, and is there one that is worse?"""
    known = [each for each in values if each is not None]
    return value is not None and value == min(known) < max(known)


def _cell(value: float | None, shown: str, best: bool) -> str:
    return f'<td data-v="{"NaN" if value is None else repr(value)}"{" class=best" if best else ""}>{escape(shown)}</td>'


def _bound(comparison: Comparison) -> str:
    if comparison.bound_lower is None and comparison.bound_cost is None:
        return ""
    texts = []
    if comparison.bound_lower is not None:
        texts.append(f"No plan within the objective costs less than <b>{show.money(comparison.bound_lower)}</b>.")
    if comparison.bound_cost is not None:
        texts.append(f"With the whole future known it can be had for <b>{show.money(comparison.bound_cost)}</b>.")
    if any(map(comparison.undercut_by, comparison.runs)):
        texts.append(f"{show.UNDERCUT_MEANS}.")
    if comparison.bound_note:
        texts.append(f"About this bound: {escape(comparison.bound_note)}.")
    return f'<p class="bound"><i class="diamond"></i>{" ".join(texts)}</p>'


def facts(comparison: Comparison) -> str:
    """What the runs have in common, and what was assumed because nobody said it."""
    pairs = {name: text for name, text in _common(comparison.runs).items() if text}
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in pairs.items())
    assumed = "".join(
        f"<div><dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(str(text))}</dd></div>"
        for name, text in comparison.assumed.items()
    )
    derived = f'<h3>Not given, so assumed</h3><dl class="assumed">{assumed}</dl>' if assumed else ""
    notes = "".join(f"<p>{escape(note[0].upper() + note[1:])}.</p>" for note in comparison.notes)
    return f'<div id="facts"><dl class="facts">{items}</dl>{derived}{notes}</div>'


def _common(runs: tuple[Run, ...]) -> Mapping[str, str]:
    if not runs:
        return {}
    header, score, curves = runs[0].header, runs[0].score, runs[0].curves
    price = f"{show.money(header.price.per_hour)} per worker hour, billed by the {header.price.billing}"
    # Where a fact differs, it belongs to one policy and stands in that policy's panel.
    shared = {k: v for k, v in header.facts.items() if all(run.header.facts.get(k) == v for run in runs)}
    ends_s = [float(curves.starts_s[0]), curves.end_s] if header.origin_s is not None and curves.steps else []
    dates = [show.moment(time_s, header.origin_s)[:16] for time_s in ends_s]
    return {
        "objective": show.objective(str(header.objective)),
        "price": price,
        "limits": str(header.limits),
        "steps": f"{curves.steps:,} of {show.duration(header.tick_s)}, {show.duration(score.duration_s)} in all",
        "dates": f"{' – '.join(dates)} UTC" if dates else "",
        "seed": "" if header.seed is None else str(header.seed),
    } | dict(show.fact(name, value) for name, value in shared.items() if not isinstance(value, Mapping))
