"""Panels beside each other as one small SVG file: lines over a few points, or a bar for each name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

# Colour-blind safe (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
WIDE, HIGH, LEFT, TOP, GAP = 250, 230, 60, 34, 44
ROW, NAMES = 20, 130


@dataclass(frozen=True, slots=True)
class Lines:
    """One panel: a line for each name.

    >>> panel = Lines("profit", "minutes", ("10", "30"), {"ours": (0.5, 0.6)})
    >>> line_chart([panel]).count("<polyline")
    1
    """

    title: str
    along: str
    """What the points are."""
    points: tuple[str, ...]
    lines: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Bars:
    """One panel: a value for each name."""

    title: str
    values: Mapping[str, float]
    mark: float | None = None
    """A value to compare with, as a dashed line."""
    digits: int = 2


def line_chart(panels: Sequence[Lines]) -> str:
    """All panels on the same scale; names stand to the right of the last."""
    values = [value for panel in panels for line in panel.lines.values() for value in line]
    ticks = _ticks(min(values), max(values))
    parts: list[str] = []
    for number, panel in enumerate(panels):
        parts += _line_panel(panel, LEFT + number * (WIDE + GAP), ticks)
    right = LEFT + len(panels) * (WIDE + GAP) - GAP + 14
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    for row, name in enumerate(names):
        parts.append(f'<text x="{right}" y="{TOP + 12 + 18 * row}" fill="{_colour(row)}">{escape(name)}</text>')
    return _svg(right + 110, TOP + HIGH + 44, parts)


def bar_chart(panels: Sequence[Bars]) -> str:
    """Names stand to the left of the first; each panel has a scale of its own, from 0."""
    names = list(panels[0].values)
    parts = [
        f'<text x="{NAMES - 8}" y="{TOP + ROW * row + 14}" text-anchor="end">{escape(name)}</text>'
        for row, name in enumerate(names)
    ]
    for number, panel in enumerate(panels):
        parts += _bar_panel(panel, names, NAMES + number * (WIDE + GAP))
    return _svg(NAMES + len(panels) * (WIDE + GAP), TOP + ROW * len(names) + 14, parts)


def _line_panel(panel: Lines, left: float, ticks: Sequence[float]) -> Iterator[str]:
    low, high = ticks[0], ticks[-1]
    bottom = TOP + HIGH

    def y(value: float) -> float:
        return bottom - HIGH * (value - low) / (high - low)

    def x(number: int) -> float:
        return left + WIDE * (number + 0.5) / len(panel.points)

    yield f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{escape(panel.title)}</text>'
    for tick in ticks:
        yield f'<path d="M {left},{y(tick):.1f} h {WIDE}" stroke="#ddd"/>'
        yield f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{_label(tick)}</text>'
    for number, label in enumerate(panel.points):
        yield f'<text x="{x(number):.1f}" y="{bottom + 16}" text-anchor="middle">{escape(label)}</text>'
    yield f'<text x="{left + WIDE / 2}" y="{bottom + 34}" text-anchor="middle">{escape(panel.along)}</text>'
    for row, line in enumerate(panel.lines.values()):
        at = [f"{x(number):.1f},{y(value):.1f}" for number, value in enumerate(line)]
        yield f'<polyline points="{" ".join(at)}" fill="none" stroke="{_colour(row)}" stroke-width="2"/>'
        for point in at:
            across, down = point.split(",")
            yield f'<circle cx="{across}" cy="{down}" r="3" fill="{_colour(row)}"/>'


def _bar_panel(panel: Bars, names: Sequence[str], left: float) -> Iterator[str]:
    most = max(*panel.values.values(), panel.mark or 0.0, 1e-9)
    # Room for the figure behind the longest.
    scale = (WIDE - 40) / most
    yield f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{escape(panel.title)}</text>'
    for row, name in enumerate(names):
        value, top = panel.values[name], TOP + ROW * row
        wide = max(0.0, value) * scale
        yield f'<rect x="{left}" y="{top + 3}" width="{wide:.1f}" height="{ROW - 6}" fill="{COLOURS[0]}"/>'
        yield f'<text x="{left + wide + 5:.1f}" y="{top + 14}">{value:.{panel.digits}f}</text>'
    if panel.mark is not None:
        line = f"M {left + panel.mark * scale:.1f},{TOP} v {ROW * len(names)}"
        yield f'<path d="{line}" stroke="{COLOURS[1]}" stroke-dasharray="4 3"/>'


def _ticks(low: float, high: float) -> list[float]:
    """Round values, some five of them, that hold both.

    >>> _ticks(0.36, 0.5)
    [0.35, 0.4, 0.45, 0.5]
    """
    rough = max(high - low, 1e-9) / 4
    power = 10 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 9) for number in range(first, max(last, first + 1) + 1)]


def _label(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _colour(row: int) -> str:
    return COLOURS[row % len(COLOURS)]


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"'
    # One panel alone would fill a page, and have letters three times as large as those of three.
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    inside = "\n".join(parts)
    return f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{inside}\n</svg>\n'
