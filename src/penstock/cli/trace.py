"""`penstock trace`: a raw log becomes a rate series."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from penstock.cli.progress import bar, page
from penstock.core.column_names import UNITS_S
from penstock.core.dates import ORDERS
from penstock.core.text import one_line
from penstock.core.units import duration_s, show_duration
from penstock.pipeline.formats import KINDS, about_kinds
from penstock.pipeline.request import SAMPLES, ArrivalStats, TraceRequest, TraceSummary

ABOUT = f"""\
Counts arrivals per interval in a raw source, as a Spark job, and writes them as Parquet:
time (the beginning of the interval, UTC), arrivals, bytes (where known).

  penstock trace access.log.gz -o rates.parquet                  an access log, per minute
  penstock trace counts.csv -o rates.parquet --every 5m          counts per interval, added up
  penstock trace mentions.csv -o rates.parquet --column AAPL --every 5m
  penstock trace iat_us.csv.gz -o rates.parquet --every 1s --stats
  penstock trace requests.csv -o rates.parquet --kind counts --step 1s
  penstock trace spark-events/ -o rates.parquet --every 10s      what a Spark job's event logs recorded
  penstock trace up.json -o rates.parquet --values counter       a Prometheus query_range dump
  penstock trace hdfs-mount/logs -o rates.parquet --master spark://host:7077

Kinds (.gz too); the kind is detected, or --kind is required:
{about_kinds()}

Missing intervals: where single arrivals are recorded ({about_kinds("events")}) a quiet interval is a row
with 0 arrivals, and a silence of --gap or more is a hole in the record: no rows. In the other kinds an
interval without a record is a hole. Lines that cannot be used go to OUTPUT.quarantine with the reason.
"""


def add(commands: Any) -> None:
    """Register the command."""
    form = argparse.RawDescriptionHelpFormatter
    command = commands.add_parser(
        "trace", help="a raw log becomes a rate series", description=ABOUT, formatter_class=form
    )
    option = command.add_argument
    option("source", type=Path, metavar="SOURCE", help="a file, or a directory of files of one kind")
    option("-o", "--out", type=Path, required=True, metavar="PATH", help="where the rate series goes (Parquet)")
    option("--every", default="60s", metavar="TIME", help="length of an interval (default 60s)")
    option("--kind", choices=tuple(KINDS), help="what the source is, where that is not certain")
    option("--column", metavar="NAME", help="the column to read, where several hold numbers")
    option("--time", metavar="NAME", help="the column of times, where there are several")
    option("--unit", choices=tuple(UNITS_S), help="unit of numbers that are times, where the name has none")
    option("--dates", choices=ORDERS, help="is 01/02/2024 in February (dmy) or January (mdy)?")
    option("--step", metavar="TIME", help="interval of each row, for counts that do not show it")
    option("--values", choices=SAMPLES, help="what the samples of a Prometheus dump are, where that is not certain")
    option("--gap", default="1h", metavar="TIME", help="a silence this long is a hole in the record (default 1h)")
    option("--stats", action="store_true", help="moments and autocorrelations of the inter-arrival times")
    option("--master", metavar="URL", help="Spark master (default local[*], embedded)")
    option("--quarantine", type=Path, metavar="PATH", help="where bad lines go (default OUTPUT.quarantine)")
    option("--output", choices=("table", "json"), default="table", help="how the summary is printed")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the trace and print its summary."""
    request = _request(options)
    # Imported here: PySpark takes 0.3 s to load, and `penstock --help` needs none of it.
    from penstock.pipeline.trace_job import make_trace

    with _progress() as done:
        summary = make_trace(request, done)
    if options.output == "json":
        print(json.dumps(dataclasses.asdict(summary), default=_plain, indent=2))
    else:
        _print(summary)
    return 0


def _request(options: argparse.Namespace) -> TraceRequest:
    return TraceRequest(
        source=options.source,
        output=options.out,
        every_s=duration_s(options.every, "--every"),
        kind=options.kind,
        column=options.column,
        time_column=options.time,
        unit=options.unit,
        dates=options.dates,
        step_s=None if options.step is None else duration_s(options.step, "--step"),
        values=options.values,
        gap_s=duration_s(options.gap, "--gap"),
        stats=options.stats,
        master=options.master,
        quarantine=options.quarantine,
    )


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[float], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    with bar("reading", total=1.0) as done:
        yield done


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _print(summary: TraceSummary) -> None:
    console = page()
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _lines(summary):
        table.add_row(name, one_line(value))
    console.print(table)
    for note in summary.notes:
        console.print(f"note: {one_line(note)}", soft_wrap=True)


def _lines(summary: TraceSummary) -> Iterator[tuple[str, str]]:
    every = show_duration(summary.every_s)
    yield "source", f"{summary.source} ({summary.kind})"
    yield "rows read", f"{summary.rows:,}"
    for reason, lines in summary.bad.items():
        yield "bad", f"{lines:,}: {reason}"
    if summary.quarantine is not None:
        yield "quarantine", str(summary.quarantine)
    yield "intervals", f"{summary.intervals:,} of {every}"
    yield "gaps", f"{summary.gaps:,} ({show_duration(summary.gap_s)})"
    yield "first", f"{summary.first:%Y-%m-%d %H:%M:%S} UTC"
    yield "last", f"{summary.last:%Y-%m-%d %H:%M:%S} UTC"
    yield "arrivals", f"{summary.arrivals:,.0f}"
    if summary.bytes is not None:
        yield "bytes", f"{summary.bytes:,.0f}"
    yield "mean rate", f"{summary.mean_rate:,.4g} events/s"
    yield "peak rate", f"{summary.peak_rate:,.4g} events/s"
    if summary.stats is not None:
        yield from _stats(summary.stats, every)
    yield "written", str(summary.output)


def _stats(stats: ArrivalStats, every: str) -> Iterator[tuple[str, str]]:
    yield "inter-arrival times", f"{stats.count:,}, mean {show_duration(stats.mean_s)}"
    yield "SCV", f"{stats.scv:.5g}"
    yield "skewness", f"{stats.skewness:.5g}"
    lags = (f"{lag}: {value:.3f}" for lag, value in stats.autocorrelation.items())
    yield "autocorrelation", "  ".join(lags)
    if stats.dispersion_of_intervals_100 is not None:
        yield "index of dispersion", f"{stats.dispersion_of_intervals_100:.5g} for intervals (sums of 100)"
    if stats.dispersion_of_counts is not None:
        yield "index of dispersion", f"{stats.dispersion_of_counts:.5g} of counts (per {every})"
