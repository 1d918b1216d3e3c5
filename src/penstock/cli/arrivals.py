"""`penstock arrivals`: how bursty a stream is, and what that costs."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from penstock.cli.json_output import as_json
from penstock.cli.numbers import integer, real, seed
from penstock.cli.progress import page
from penstock.core.files import reads, writable
from penstock.core.units import duration_s
from penstock.models.arrivals import DEFAULT, METHODS
from penstock.models.arrivals.gap_files import KINDS, UNITS, read_gaps
from penstock.models.arrivals.summary import LAGS, Summary, Wanted, summary
from penstock.report.correlogram import Correlogram, log_lags, write_correlogram

ABOUT = """\
Statistics of the gaps between arrivals, a Markovian arrival process fitted to the latest of them (paper 4),
how well its queue predicts the window's own, and what bursts cost: the capacity that keeps a bound on the
response time, over that of a Poisson stream of the same rate.
"""
EXAMPLES = """\
examples:
  penstock arrivals gaps.csv --kind iat --unit us --bound 50ms --plot lags.svg
  penstock arrivals times.parquet --kind times --column ts --output json
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("arrivals", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="a number a line, CSV (.gz too) or Parquet")
    parser.add_argument("--kind", choices=KINDS, required=True, help="gaps between arrivals, or their times")
    parser.add_argument("--unit", choices=tuple(UNITS), default="s", help="of the numbers (s)")
    parser.add_argument("--column", metavar="NAME", help="where there are several")
    parser.add_argument("--method", choices=tuple(METHODS), default=DEFAULT, help=f"of the fit ({DEFAULT})")
    window = integer(100, 1_000_000)
    parser.add_argument("--window", type=window, default=50_000, metavar="N", help="latest gaps to fit (50000)")
    parser.add_argument("--bound", metavar="TIME", help="of the response, as 50ms (ten mean gaps)")
    level = real(0.5, 0.9999)
    parser.add_argument("--percentile", type=level, default=0.95, metavar="P", help="that must keep the bound (0.95)")
    parser.add_argument("--mean", action="store_true", help="the bound is on the mean, not on a percentile")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the autocorrelation, seen and fitted, as SVG")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of the fit's draws (0)")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    bound_s = duration_s(options.bound, "--bound", 1e-9) if options.bound else None
    reads(options.trace)
    if options.plot:
        writable(options.plot)
    gaps, notes = read_gaps(options.trace, options.kind, options.unit, options.column)
    percentile = None if options.mean else options.percentile
    found = summary(gaps, Wanted(options.method, options.window, bound_s, percentile, options.seed))
    if options.plot:
        write_correlogram(options.plot, _correlogram(found))
    if options.output == "json":
        record = found.record()
        print(as_json(record | {"notes": [*notes, *record["notes"]]}))
    else:
        _print(found, notes)
    return 0


def _correlogram(found: Summary) -> Correlogram:
    correlations = found.stream.correlations
    lags = log_lags(min(LAGS[-1], len(correlations) - 1))
    fitted = found.fitted.autocorrelation(lags).tolist()
    return Correlogram(lags, correlations[lags].tolist(), fitted, found.stream.noise)


def _print(found: Summary, notes: tuple[str, ...]) -> None:
    record, console = found.record(), page()
    console.print(f"{record['arrivals']:,} arrivals, {record['rate']:.6g} a second")
    console.print(f"gaps: SCV {record['scv']:.3f}, skewness {record['skewness']:.2f} (Poisson: 1 and 2)")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("lag", "autocorrelation", "of the MAP"):
        table.add_column(heading, justify="right")
    for lag, value in record["autocorrelation"].items():
        table.add_row(lag, f"{value:.4f}", f"{record['map']['autocorrelation'][lag]:.4f}")
    console.print(table)
    sums = ", ".join(f"{value:.1f} over {block}" for block, value in record["dispersion_by_gaps"].items())
    console.print(f"dispersion: {sums} gaps (Poisson: 1)")
    fitted = record["map"]
    console.print(f"MAP: {fitted['states']} states by {fitted['method']}, from {fitted['arrivals']:,} gaps")
    for load, ratio in record["fit"].items():
        console.print(f"  at {load} of capacity: mean {ratio['mean']:.2f}, p95 {ratio['p95']:.2f} of the window's own")
    _print_headroom(found)
    for note in (*notes, *record["notes"]):
        console.print(f"note: {note}")


def _print_headroom(found: Summary) -> None:
    kept = found.headroom
    what = "mean" if kept.percentile is None else f"p{100 * kept.percentile:g}"
    page().print(
        f"{what} response within {kept.bound_s:.4g} s: {kept.capacity:.6g} a second are needed, "
        f"{kept.ratio:.2f} times what a Poisson stream needs"
    )
