"""One page of fronts: for each trace, every policy's cost against its violations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from penstock.core.files import whole
from penstock.report import show
from penstock.report.fronts_table import cells, sentence
from penstock.report.page import Assets, around
from penstock.runs.fronts import ALLOWED, Contest, Point, front

WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT = 760, 400, 60, 46, 20
LEAST = 1e-4
"""Violations below a ten-thousandth of the time, none among them, are drawn there: the axis is logarithmic."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b", "#17becf")


def write_fronts(path: Path, contests: Sequence[Contest]) -> None:
    """Write the page; a failure leaves what stood under `path` as it was."""
    with whole(path) as scratch:
        scratch.write_bytes(fronts_page(contests).encode("utf-8", errors="replace"))


def fronts_page(contests: Sequence[Contest]) -> str:
    """The text of the page."""
    title = f"{len(contests)} traces, cost against violations" if len(contests) != 1 else contests[0].trace
    body = "".join(_section(contest) for contest in contests)
    head = f'<header><p class="brand">Penstock comparison</p><h1>{escape(title)}</h1></header>'
    return around(title, f"{head}<main>{body}</main>", Assets((), ("report.css",)))


def _section(contest: Contest) -> str:
    name, words = escape(contest.trace), escape(sentence(contest))
    return f'<section class="card"><h2>{name}</h2><p>{words}</p>{plot(contest)}{_table(contest)}</section>'


def _table(contest: Contest) -> str:
    headings = ("Policy", *(f"≤ {show.share(each)} missed" for each in ALLOWED), "× bound", "actions a day")
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in (*headings, "as it comes", "missed"))
    rows = ""
    for family, group in contest.families().items():
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells(contest, group))
        rows += f'<tr><th scope="row" class="name">{escape(family)}</th>{row}</tr>'
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


class _Axes:
    """Violations to the right, as a logarithm; cost upwards, from 0 to four times the bound, or the cheapest half."""

    def __init__(self, contest: Contest) -> None:
        costs = sorted(point.cost for point in contest.points) or [1.0]
        self.most = 1.05 * min(costs[-1], 4 * (contest.bound or costs[len(costs) // 2])) or 1.0

    def x(self, missed: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(max(LEAST, missed)) + 4) / 4

    def y(self, cost: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * min(1.0, cost / self.most)


def plot(contest: Contest) -> str:
    """Every setting is a dot, each policy's front a line; dearer ones stand at the upper edge."""
    axes, parts = _Axes(contest), []
    for number, (family, group) in enumerate(contest.families().items()):
        colour = COLOURS[number % len(COLOURS)]
        dashes = ' stroke-dasharray="5 4"' if number >= len(COLOURS) else ""
        best = " ".join(f"{axes.x(point.missed):.1f},{axes.y(point.cost):.1f}" for point in front(group))
        parts.append(f'<polyline points="{best}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts += [_dot(axes, point, colour) for point in group]
        parts.append(f'<text x="{WIDTH + 8}" y="{30 + 17 * number}" fill="{colour}">{escape(family)}</text>')
    head = f'<svg viewBox="0 0 {WIDTH + 140} {HEIGHT}" role="img" font-size="12" fill="currentColor">'
    return f"{head}{''.join(_frame(contest, axes))}{''.join(parts)}</svg>"


def _dot(axes: _Axes, point: Point, colour: str) -> str:
    told = f"{point.policy}: {show.money(point.cost)}, missed {show.share(point.missed)}"
    radius = 5 if point.is_default else 3
    return (
        f'<circle cx="{axes.x(point.missed):.1f}" cy="{axes.y(point.cost):.1f}" r="{radius}" fill="{colour}">'
        f"<title>{escape(told)}</title></circle>"
    )


def _frame(contest: Contest, axes: _Axes) -> Iterable[str]:
    yield f'<path d="M {LEFT},20 V {HEIGHT - BOTTOM} H {WIDTH - RIGHT}" fill="none" stroke="#888"/>'
    for missed in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        label = f"≤ {show.share(missed)}" if missed == LEAST else show.share(missed)
        x, y = axes.x(missed), HEIGHT - BOTTOM
        yield f'<path d="M {x:.1f},20 V {y}" stroke="#8884"/>'
        yield f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{label}</text>'
    for part in (0.25, 0.5, 0.75, 1.0):
        cost = axes.most * part
        yield f'<text x="{LEFT - 6}" y="{axes.y(cost):.1f}" text-anchor="end">{show.money(cost)}</text>'
    if contest.bound is not None:
        y_bound = axes.y(contest.bound)
        yield f'<path d="M {LEFT},{y_bound:.1f} H {WIDTH - RIGHT}" stroke="#888" stroke-dasharray="2 3"/>'
        yield f'<text x="{WIDTH - RIGHT}" y="{y_bound - 4:.1f}" text-anchor="end">no plan costs less</text>'
    yield f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">time missed; large dots: as it comes</text>'
