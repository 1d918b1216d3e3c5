"""How a run stands, for a terminal: numbers, small curves, the last decisions, on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from penstock.core.text import one_line
from penstock.report import show
from penstock.report.decided import Decided
from penstock.report.live import LiveRun
from penstock.report.run_state import Figure, figures, is_silent, silence
from penstock.runs.run_curves import Curves

BLOCKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 32
# Fewer columns than this have no room for curves beside the words.
SPARK_FROM = 90
SIGNALS_MAX = 6
DECISIONS_MAX, DECISIONS_MIN = 8, 3
# Lines beside figures, signals and decisions: two of heading, two empty, a title, the prompt, one to spare.
OTHER_LINES = 7
STYLES = {"up": "bold blue", "down": "bold green", "moved": "bold magenta", "kept": "dim"}
ARROWS = {"up": "▲", "down": "▼", "moved": "◆", "kept": "·"}


@dataclass(frozen=True, slots=True)
class Screen:
    """What `penstock status` prints, cut to the terminal it is printed on."""

    live: LiveRun
    now_s: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        live, width = self.live, options.max_width
        yield _head(live, live.silent_s(self.now_s))
        yield Text(_setting(live), style="dim")
        if live.last is None:
            return
        yield ""
        rows = [*figures(live, live.run().score), *_signal_rows(live)]
        yield _grid(live.curves, rows, with_curves=width >= SPARK_FROM)
        yield ""
        yield Text("Last decisions", style="bold")
        room = console.height - OTHER_LINES - len(rows) if console.is_terminal else DECISIONS_MAX
        entries = live.decisions.last(max(DECISIONS_MIN, min(DECISIONS_MAX, room)))
        yield _decision_table(live, entries)


def _head(live: LiveRun, silent_s: float) -> Text:
    step, header = live.last, live.header
    text = Text(one_line(f"{header.policy} on {header.job}", 200), style="bold")
    if step is not None:
        moment = show.moment(step.seen.time_s, header.origin_s) + ("" if header.origin_s is None else " UTC")
        text.append(f"  step {live.steps:,}, {moment}", style="not bold")
    text.append(f"  {silence(live, silent_s)}", style="yellow" if is_silent(live, silent_s) else "green")
    return text


def _setting(live: LiveRun) -> str:
    header = live.header
    objective, every = show.objective(str(header.objective)), show.duration(header.tick_s)
    return f"{objective}, {header.limits}, a step every {every}, {show.money(header.price.per_hour)} per worker hour"


def _signal_rows(live: LiveRun) -> Iterator[Figure]:
    """The signals of the last decision; their thresholds and filtered values are what it was made of."""
    signals = live.last.decision.signals if live.last else {}
    for name, value in list(signals.items())[:SIGNALS_MAX]:
        yield Figure(f"  {name}", show.count(value), "signal", f"signal {name}")


def _grid(curves: Curves, rows: list[Figure], with_curves: bool) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    if with_curves:
        grid.add_column(no_wrap=True, style="cyan")
    known = set(curves.names)
    for row in rows:
        value = Text(row.value, style="bold red" if row.is_bad else "bold")
        drawn = sparkline(curves.band(row.curve).mean) if row.curve in known else ""
        grid.add_row(
            Text(one_line(row.label, 60)), value, Text(row.beside, style="dim"), *([drawn] if with_curves else [])
        )
    return grid


def sparkline(values: npt.NDArray[np.float64], width: int = SPARK_WIDTH) -> str:
    """A curve in one line, from 0 (or the least, below it) to the greatest; a space where nothing is known.

    >>> sparkline(np.array([0.0, 1.0, np.nan, 7.0])), sparkline(np.arange(8.0), width=4), sparkline(np.zeros(3))
    ('▁▂ █', '▂▄▆█', '▁▁▁')
    """
    parts = [part[np.isfinite(part)] for part in np.array_split(values, min(width, len(values)) or 1)]
    means = [float(part.mean()) if part.size else None for part in parts]
    known = [mean for mean in means if mean is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    steps = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if mean is None else BLOCKS[round((mean - low) * steps)] for mean in means)


def _decision_table(live: LiveRun, entries: list[Decided]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for entry in entries:
        times = f" (and {entry.count - 1:,} before)" if entry.count > 1 else ""
        style = STYLES[entry.way]
        # As Text, not markup: a reason with "[red]" in it is a reason, not a colour.
        grid.add_row(
            Text(show.moment(entry.time_s, live.header.origin_s), style="dim"),
            Text(ARROWS[entry.way], style=style),
            Text(entry.outcome, style=style),
            Text(one_line(entry.reason + times)),
        )
    return grid
