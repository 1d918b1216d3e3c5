"""Fronts as tables for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from penstock.core.text import one_line
from penstock.report import show
from penstock.runs.fronts import ALLOWED, Contest, Point, Standing, cheapest, front

NONE = "never"


def as_tables(contests: Iterable[Contest]) -> Iterator[Table]:
    """A table a trace: what each policy costs at equal violations."""
    return map(_table, contests)


def _table(contest: Contest) -> Table:
    title = Text(one_line(contest.trace))
    table = Table(
        title=title, title_justify="left", box=None, pad_edge=False, header_style="bold", caption_justify="left"
    )
    table.add_column("policy", no_wrap=True)
    headings = [f"≤ {show.share(allowed)} missed" for allowed in ALLOWED]
    tuned = ("tuned", "missed") if contest.trained else ()
    for heading in (*headings, "× bound", "actions/day", *tuned, "as it comes", "missed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for family, group in contest.families().items():
        table.add_row(Text(one_line(family, 24)), *cells(contest, group))
    table.caption = Text("\n".join(map(one_line, (sentence(contest), *contest.setting))))
    return table


def cells(contest: Contest, group: list[Point]) -> list[str]:
    """Cost at each violation, to the bound and actions of the first that is kept; what was tuned before, where there is
    a part to tune on; and the policy's default."""
    best = [cheapest(group, allowed) for allowed in ALLOWED]
    first = next((point for point in best if point is not None), None)
    default = next((point for point in group if point.is_default), None)
    return [
        *(NONE if point is None else show.money(point.cost) for point in best),
        show.NOTHING if first is None else show.multiple(contest.to_bound(first)),
        show.NOTHING if first is None else show.count(first.actions_a_day),
        *(_pair(contest.tuned(group[0].family)) if contest.trained else ()),
        *_pair(default),
    ]


def _pair(point: Point | None) -> tuple[str, str]:
    return (show.NOTHING, show.NOTHING) if point is None else (show.money(point.cost), show.share(point.missed))


def sentence(contest: Contest) -> str:
    """How the default stands against what people have."""
    stands = contest.standing()
    if stands is None:
        return ""
    parts = [f"deadline as it comes: {show.money(stands.ours.cost)}, missed {show.share(stands.ours.missed)}"]
    for what, other in _others(stands).items():
        ratio = stands.ratio(other)
        if other is not None and ratio is not None:
            parts.append(f"{ratio:.3f} × {what}, {other.policy} ({show.share(other.missed)})")
        elif what != "the best peer tuned before" or contest.trained:
            parts.append(f"{what}: none misses at most {show.share(stands.allowed)}")
    return "; ".join(parts)


def _others(stands: Standing) -> dict[str, Point | None]:
    return {
        "the best peer tuned before": stands.tuned,
        "the best peer in hindsight": stands.hindsight,
        "the best peer as it comes": stands.default,
    }


def as_record(contest: Contest) -> dict[str, Any]:
    """One trace for programs."""
    stands = contest.standing()
    return {
        "trace": contest.trace,
        "bound": contest.bound,
        "setting": list(contest.setting),
        "policies": [_family(contest, name, group) for name, group in contest.families().items()],
        "standing": None if stands is None else _standing(stands),
    }


def _family(contest: Contest, name: str, group: list[Point]) -> dict[str, Any]:
    best = {f"{allowed:g}": cheapest(group, allowed) for allowed in ALLOWED}
    return {
        "policy": name,
        "at": {key: None if point is None else _point(contest, point) for key, point in best.items()},
        "tuned": None if (chosen := contest.tuned(name)) is None else _point(contest, chosen),
        "front": [point.policy for point in front(group)],
        "points": [_point(contest, point) for point in group],
    }


def _point(contest: Contest, point: Point) -> dict[str, Any]:
    return asdict(point) | {"to_bound": contest.to_bound(point)}


def _standing(stands: Standing) -> dict[str, Any]:
    others = {"tuned": stands.tuned, "hindsight": stands.hindsight, "default": stands.default}
    told = {
        name: None if other is None else {"policy": other.policy, "missed": other.missed, "ratio": stands.ratio(other)}
        for name, other in others.items()
    }
    return {"cost": stands.ours.cost, "missed": stands.ours.missed, "allowed": stands.allowed, **told}
