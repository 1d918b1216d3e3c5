"""`penstock replay`: what would each policy have cost, and missed?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from penstock.cli.numbers import real, seed, workers
from penstock.cli.progress import bar, page
from penstock.core.bounds import TICK_LEAST_S
from penstock.core.column_names import UNITS_S
from penstock.core.dates import ORDERS
from penstock.core.errors import BadInput
from penstock.core.files import writable
from penstock.core.journal import read_header
from penstock.core.objective import BILLING_S, Objective, Price
from penstock.core.text import one_line
from penstock.core.units import duration_s, per_second
from penstock.models.capacity import read_model
from penstock.policies.registry import Named
from penstock.report.comparison_table import as_csv, as_json, as_table
from penstock.report.page import write_page
from penstock.runs.compare import Outputs, Shown, compare, file_names
from penstock.runs.comparison import Comparison
from penstock.runs.saving import saving_of
from penstock.sim.derive import Given, World
from penstock.sim.series import SeriesOptions, read_series

MISSED = 1
# What people have today, ours, and what nobody can beat.
USUAL = ("static-peak", "hpa", "keda", "flink", "deadline", "clairvoyant")

ABOUT = """\
Replay a rate series through scaling policies, and compare what each would have cost, how long it
would have missed the objective, and how often it would have scaled.

TRACE is CSV or Parquet: a time column and a column of counts per interval (what `penstock trace`
writes, or a file of your own). A column whose name ends in rate, /s or _per_minute holds events per second
or minute. Single arrivals and inter-arrival times become a series with `penstock trace`.
What you leave out is derived from the trace, and said.
"""
EXAMPLES = """\
examples:
  penstock replay rates.parquet                # static, HPA, KEDA, Flink and the default: what would you save?
  penstock replay rates.csv --capacity-per-worker 50/s --max 40 --objective "latency<=90s" --report page.html
  penstock replay rates.csv --policy threshold:upper=0.7,cooldown_s=5m --policy mine.py:Mine --output json
  penstock replay --scenario world.toml --policy threshold --check      # exit code 1 when the objective is missed

A policy is name[:key=value,…] or file.py:Class[:key=value,…]; `penstock policies` lists them.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    help_ = "compare policies on a rate series: cost, violations, scaling actions"
    parser = commands.add_parser("replay", help=help_, description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("trace", nargs="?", type=Path, metavar="TRACE", help="rate series: CSV or Parquet")
    parser.add_argument(
        "--policy", action="append", metavar="NAME", help="repeatable; if not given, ours beside what people have today"
    )
    parser.add_argument("--ablate", action="store_true", help="also without each of its parts: what is each worth?")
    parser.add_argument("--bare", action="store_true", help="without the safety rules that stand around a live policy")
    parser.add_argument("--scenario", type=Path, metavar="FILE", help="TOML: workers, noise, batches, operators, …")
    add_series(parser)
    add_world(parser)
    _add_outputs(parser)
    parser.set_defaults(run=run)


def add_series(parser: argparse.ArgumentParser) -> None:
    series = parser.add_argument_group("the series (asked for where a file does not say it)")
    series.add_argument("--column", metavar="NAME", help="the column of counts, where there are several")
    series.add_argument("--kind", choices=("counts", "rates"), help="counts per interval, or events per second")
    series.add_argument("--every", metavar="TIME", help="the interval, for a series without times (60s)")
    series.add_argument("--time", metavar="NAME", help="the column of times, where there are several")
    series.add_argument("--unit", choices=tuple(UNITS_S), help="unit of times that are numbers")
    series.add_argument("--dates", choices=ORDERS, help="is 01/02/2024 in February (dmy) or January (mdy)?")
    series.add_argument("--tick", metavar="TIME", help="another interval: longer adds up, shorter spreads evenly")


def add_world(parser: argparse.ArgumentParser) -> None:
    world = parser.add_argument_group("the world (derived from the trace where not given)")
    capacity = world.add_mutually_exclusive_group()
    capacity.add_argument("--capacity-per-worker", metavar="RATE", help="what one worker does: 50/s")
    capacity.add_argument("--model", type=Path, metavar="FILE", help="a capacity model (JSON)")
    world.add_argument("--scale", type=real(1e-9, 1e9), default=1.0, metavar="N", help="multiply the load (1)")
    world.add_argument("--start", metavar="TIME", help="from asking for a worker until it serves: 90s")
    world.add_argument("--min", type=workers, metavar="N", help="fewest workers (1)")
    world.add_argument("--max", type=workers, metavar="N", help="most workers (twice what the peak needs)")
    world.add_argument("--objective", metavar="TEXT", help='"latency<=120s", or rate: arrivals within capacity')
    world.add_argument("--price", metavar="PRICE", help="of a worker: 0.10/h")
    world.add_argument("--billing", choices=tuple(BILLING_S), help="each started unit is paid in full (second)")
    world.add_argument("--seed", type=seed, metavar="N", help="of all that a scenario draws at random (0)")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--output", choices=("table", "json", "csv"), default="table", help="on stdout (table)")
    outputs.add_argument("--journal", type=Path, metavar="DIR", help="write each policy's steps to DIR")
    outputs.add_argument("--report", type=Path, metavar="FILE", help="write one self-contained HTML page")
    outputs.add_argument("--no-bound", action="store_true", help="without the bound, which takes long for long series")
    outputs.add_argument("--check", action="store_true", help="exit with 1 if a policy misses the objective")


def run(options: argparse.Namespace) -> int:
    with redirect_stdout(sys.stderr):  # what a user's policy prints is not part of the result
        comparison = _compared(options)
    if options.report:
        write_page(options.report, comparison)
    if options.output == "json":
        print(as_json(comparison))
    elif options.output == "csv":
        print(as_csv(comparison), end="")
    else:
        page().print(as_table(comparison))
        if saving := saving_of(comparison):
            page().print(f"\n{saving.sentence}", markup=False, highlight=False, soft_wrap=True)
        if options.report:
            print(f"report: {one_line(str(options.report))}", file=sys.stderr)
    missed = any(run.score.violations for run in comparison.runs)
    return MISSED if options.check and missed else 0


def _compared(options: argparse.Namespace) -> Comparison:
    policies = [Named.parse(name) for name in _names(options)]
    scenario = world_of(options).scenario()
    if options.report:
        writable(options.report)
    if options.journal:
        _make_folder(options.journal, file_names([named.name for named in policies]).values())
    with bar(f"replaying {scenario.name}", total=1.0) as progress:
        return compare(scenario, policies, Outputs(options.journal, progress, _shown(options)), options.bare)


def _shown(options: argparse.Namespace) -> Shown:
    """CSV has costs as multiples of the bound; what its schedule costs is in tables, pages and JSON alone."""
    if options.no_bound:
        return "nothing"
    return "lower" if options.output == "csv" and not options.report else "schedule"


def _names(options: argparse.Namespace) -> list[str]:
    """The policies asked for; with --ablate, each again without each of its parts."""
    names: list[str] = list(options.policy or (("deadline",) if options.ablate else USUAL))
    if not options.ablate:
        return names
    found = []
    for name in names:
        parts = getattr(Named.parse(name).maker, "parts", ())
        if not parts:
            raise BadInput(f"--ablate: policy {name} has no parts to leave out; deadline has")
        if "without" in Named.parse(name).parameters:
            raise BadInput(
                f"--ablate leaves out one part after the other by itself: give {name.partition(':')[0]} whole"
            )
        joint = "," if ":" in name else ":"
        found += [name, *(f"{name}{joint}without={part}" for part in parts)]
    return found


def world_of(options: argparse.Namespace) -> World:
    """The world that the options, the file and the trace describe together."""
    given = _given(options)
    if options.trace is not None:
        every_s = duration_s(options.every, "--every", least_s=TICK_LEAST_S) if options.every is not None else None
        known = SeriesOptions(options.column, every_s, options.kind, options.time, options.unit, options.dates)
        series = read_series(options.trace, known)
        return World.of_series(options.trace.name, series, given, options.scenario)
    if options.scenario is None:
        raise BadInput("nothing to replay: name a rate series, or a scenario file with a load (--scenario)")
    return World.of_file(options.scenario, given)


def _given(options: argparse.Namespace) -> Given:
    per_worker = options.capacity_per_worker
    price = None
    if options.price is not None or options.billing:
        price = Price.parse("0.10/h" if options.price is None else options.price, options.billing or "second")
    return Given(
        capacity=read_model(options.model) if options.model else None,
        per_worker=per_second(per_worker, "--capacity-per-worker") if per_worker is not None else None,
        start_s=duration_s(options.start, "--start") if options.start is not None else None,
        workers_min=options.min,
        workers_max=options.max,
        objective=Objective.parse(options.objective) if options.objective is not None else None,
        price=price,
        seed=options.seed,
        tick_s=duration_s(options.tick, "--tick", least_s=TICK_LEAST_S) if options.tick is not None else None,
        scale=options.scale,
    )


def _make_folder(path: Path, names: Iterable[str]) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write journals to {path}: {error.strerror or error}") from None
    for name in names:
        _need_replay(path / name)


def _need_replay(path: Path) -> None:
    """A journal that is replaced must be of a replay: those of live jobs, and other files, are somebody's."""
    writable(path)
    if not path.exists():
        return
    try:
        with path.open(encoding="utf-8") as file:
            is_replay = read_header(file.readline(1_000_000), path).seed is not None
    except (BadInput, UnicodeDecodeError):
        is_replay = False
    if not is_replay:
        raise BadInput(f"cannot write {path}: it is there, and no replay's journal; name another folder")
