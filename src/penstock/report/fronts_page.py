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
from penstock.runs.saving import DEFAULT

WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT = 760, 400, 60, 46, 20
LEAST = 1e-4
"""Violations below a ten-thousandth of the time, none among them, are drawn there: the axis is logarithmic."""
# As many as policies are usually compared, each of its own; ours is in the colour of the text.
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
    "#d4a017", "#3b528b",
)  # fmt: skip


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
    held = "".join(f"<p>{escape(text[0].upper() + text[1:])}.</p>" for text in contest.setting)
    return f'<section class="card"><h2>{name}</h2><p>{words}</p>{plot(contest)}{_table(contest)}{held}</section>'


def _table(contest: Contest) -> str:
    headings = ("Policy", *(f"≤ {show.share(each)} missed" for each in ALLOWED), "× bound", "actions a day")
    tuned = ("tuned", "missed") if contest.trained else ()
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in (*headings, *tuned, "as it comes", "missed"))
    rows = ""
    for family, group in contest.families().items():
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells(contest, group))
        rows += f'<tr><th scope="row" class="name">{escape(family)}</th>{row}</tr>'
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


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
    """Every setting is a dot, each policy's front a line; what is dearer is a triangle at the upper edge."""
    axes, parts = _Axes(contest), []
    colours = _colours(contest)
    for number, (family, group) in enumerate(contest.families().items()):
        colour, is_beyond = colours[family], number > len(COLOURS)
        dashes = ' stroke-dasharray="5 4"' if is_beyond else ""
        best = " ".join(f"{axes.x(point.missed):.1f},{axes.y(point.cost):.1f}" for point in front(group))
        line = f'fill="none" stroke="{colour}" stroke-width="2"{dashes}'
        parts.append(f'<polyline points="{best}" {line}/>')
        parts += [_mark(axes, point, colour) for point in group]
        y = 30 + 17 * number
        parts.append(f'<path d="M {WIDTH + 4},{y - 4} h 18" {line}/>')
        parts.append(f'<text x="{WIDTH + 27}" y="{y}">{escape(family)}</text>')
    if any(point.cost > axes.most for group in contest.families().values() for point in group):
        y = 38 + 17 * len(colours)
        parts.append(f'<text x="{WIDTH + 4}" y="{y}">\u25b2 dearer than shown</text>')
    head = f'<svg viewBox="0 0 {WIDTH + 150} {HEIGHT}" role="img" font-size="12" fill="currentColor">'
    drawn = "".join((head, *_frame(contest, axes), *parts, "</svg>"))
    return f'<div class="scroll"><div class="wide">{drawn}</div></div>'


def _colours(contest: Contest) -> dict[str, str]:
    others = [family for family in contest.families() if family != DEFAULT]
    return {DEFAULT: "currentColor"} | {family: COLOURS[n % len(COLOURS)] for n, family in enumerate(others)}


def _mark(axes: _Axes, point: Point, colour: str) -> str:
    told = f"<title>{escape(f'{point.policy}: {show.money(point.cost)}, missed {show.share(point.missed)}')}</title>"
    x, y, radius = axes.x(point.missed), axes.y(point.cost), 5 if point.is_default else 3
    if point.cost > axes.most:
        shape = f"M {x:.1f},{y - radius:.1f} l {radius},{2 * radius} h -{2 * radius} z"
        return f'<path d="{shape}" fill="{colour}">{told}</path>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}">{told}</circle>'


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
        yield f'<text x="{LEFT + 4}" y="{y_bound + 14:.1f}">no plan costs less</text>'
    yield f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">time missed; large dots: as it comes</text>'
