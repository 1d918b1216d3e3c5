"""`penstock forecast`: which forecaster would have told what came?"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from penstock.cli.json_output import as_json
from penstock.cli.progress import bar, page
from penstock.core.column_names import UNITS_S
from penstock.core.dates import ORDERS
from penstock.core.errors import BadInput
from penstock.core.units import duration_s, show_duration
from penstock.models.ranking import Ranked, ranked
from penstock.sim.resample import resampled
from penstock.sim.series import SeriesOptions, read_series
from penstock.sim.workloads import Load

STEPS_MOST = 500
ABOUT = """\
Rank forecasters on a rate series: each forecast is made from what lay before it, on the last third of the
series, for every step up to the horizon. Intervals are 90 %, learnt from a forecaster's own errors.

mase: its error, to that of "the last value" one step ahead. coverage: how often the truth lay in its interval.
"""
EXAMPLES = """\
examples:
  penstock forecast rates.parquet --horizon 30m
  penstock forecast rates.csv --horizon 2m --step 1m --output json
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("forecast", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="rate series: CSV or Parquet")
    parser.add_argument("--horizon", default="30m", metavar="TIME", help="how far ahead (30m)")
    parser.add_argument("--step", metavar="TIME", help="of the forecasts (a sixth of the horizon, or the interval)")
    parser.add_argument("--column", metavar="NAME", help="the column of counts, where there are several")
    parser.add_argument("--kind", choices=("counts", "rates"), help="counts per interval, or events per second")
    parser.add_argument("--every", metavar="TIME", help="the interval, for a series without times (60s)")
    parser.add_argument("--time", metavar="NAME", help="the column of times, where there are several")
    parser.add_argument("--unit", choices=tuple(UNITS_S), help="unit of times that are numbers")
    parser.add_argument("--dates", choices=ORDERS, help="is 01/02/2024 in February (dmy) or January (mdy)?")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    horizon_s = duration_s(options.horizon, "--horizon", 1e-3)
    load = read_series(options.trace, _series(options))
    load, notes = _stepped(load, horizon_s, options.step)
    steps = round(horizon_s / load.tick_s)
    if steps < 1 or abs(steps * load.tick_s - horizon_s) > 1e-6 * horizon_s:
        raise BadInput(
            f"--horizon {show_duration(horizon_s)}: it must be a multiple of the step, {show_duration(load.tick_s)}"
        )
    if steps > STEPS_MOST:
        raise BadInput(f"--horizon {show_duration(horizon_s)} is {steps} steps: {STEPS_MOST} at most; give --step")
    with bar("forecasting the last third", total=1.0) as done:
        found = ranked((load.arrivals / load.tick_s).tolist(), load.tick_s, steps, done)
    if options.output == "json":
        print(as_json(_record(found, horizon_s, load.tick_s, notes)))
    else:
        _print(found, horizon_s, load.tick_s, notes)
    return 0


def _series(options: argparse.Namespace) -> SeriesOptions:
    every_s = duration_s(options.every, "--every", 1e-3) if options.every else None
    return SeriesOptions(
        column=options.column,
        kind=options.kind,
        every_s=every_s,
        time=options.time,
        unit=options.unit,
        dates=options.dates,
    )


def _stepped(load: Load, horizon_s: float, step: str | None) -> tuple[Load, list[str]]:
    """The series in steps, and what a reader should know of it."""
    notes = []
    whole = max(1, int(horizon_s / 6 / load.tick_s + 1e-9))
    while whole > 1 and abs(horizon_s / (whole * load.tick_s) % 1) > 1e-6:
        whole -= 1
    step_s = duration_s(step, "--step", 1e-3) if step else whole * load.tick_s
    load, note = resampled(load, step_s, "--step")
    if note:
        notes.append(note)
    gaps = int(((load.times_s[1:] - load.times_s[:-1]) > 1.5 * load.tick_s).sum())
    if gaps:
        notes.append(f"{gaps} gaps are cut out: a season is later by them")
    return load, notes


def _record(found: list[Ranked], horizon_s: float, step_s: float, notes: list[str]) -> dict[str, object]:
    named = [asdict(each) for each in found]
    return {"horizon_s": horizon_s, "step_s": step_s, "forecasters": named, "best": found[0].name, "notes": notes}


def _print(found: list[Ranked], horizon_s: float, step_s: float, notes: list[str]) -> None:
    console = page()
    ahead = f"every {show_duration(step_s)} up to {show_duration(horizon_s)} ahead"
    console.print(f"{found[0].forecasts:,} forecasts, {ahead}, on the last third")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("forecaster")
    for heading in ("error /s", "of all", "mase", "90 % interval held"):
        table.add_column(heading, justify="right")
    for each in found:
        shown = [
            _shown(value, form) for value, form in ((each.wape, ".1%"), (each.mase, ".2f"), (each.coverage, ".1%"))
        ]
        table.add_row(each.name, f"{each.mae:.4g}", *shown)
    console.print(table)
    for note in notes:
        console.print(f"note: {note}")


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
