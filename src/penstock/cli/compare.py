"""`penstock compare`: is this better than what I have? Traces × policies × parameters × seeds, as one Spark job."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from penstock.cli.json_output import as_json
from penstock.cli.main import say
from penstock.cli.numbers import integer, real
from penstock.cli.progress import bar, page
from penstock.cli.replay import add_series, add_world, world_of
from penstock.core.errors import BadInput
from penstock.core.files import writable
from penstock.report.fronts_page import write_fronts
from penstock.report.fronts_table import as_record, as_tables
from penstock.runs.contest import SETTINGS, bound_of, comparable, parted, setting
from penstock.runs.fronts import Contest, points
from penstock.sim.derive import World

ABOUT = """\
Replay traces through policies with many settings each, as one Spark job, and compare what each policy costs
at equal violations (0.1 % and 1 % of the time), to the bound, and how often it scales. Without --policy, what
people have today (HPA, KEDA, Flink, Spark, …) and ours. Loads are scaled so that each peak takes as many
workers. With --train, all figures are of the rest of each trace, and for each policy the setting that was
cheapest on the first part is shown too: the columns "at most … missed" choose in hindsight, "tuned" does not.
"""
EXAMPLES = """\
examples:
  penstock compare rates.csv --report fronts.html
  penstock compare a.csv b.csv --train 0.33 -o results.parquet --output json
  penstock compare rates.csv --scenario batches.toml --policy deadline --policy 'hpa:target=0.5|0.6|0.7'
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("compare", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="rate series: CSV or Parquet")
    parser.add_argument("--policy", action="append", metavar="NAME", help="repeatable; a|b|c tries each value")
    parser.add_argument("--scenario", type=Path, metavar="FILE", help="TOML without a load: workers, batches, …")
    parser.add_argument("--train", type=real(0.01, 0.9), metavar="SHARE", help="choose settings on this first part")
    parser.add_argument("--peak-workers", type=integer(0, 5000), default=32, metavar="N", help="of each peak (32)")
    parser.add_argument("--seeds", type=integer(1, 10_000), default=1, metavar="N", help="seeds 0 … N-1 (1)")
    parser.add_argument("--bare", action="store_true", help="ours, too, without the safety rules of a live run")
    add_series(parser)
    add_world(parser)
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--output", choices=("table", "json"), default="table", help="on stdout (table)")
    outputs.add_argument("-o", "--out", type=Path, metavar="FILE", help="keep all cells, as Parquet; resumes")
    outputs.add_argument("--report", type=Path, metavar="FILE", help="write one self-contained HTML page of fronts")
    outputs.add_argument("--master", metavar="URL", help="a Spark master (local[*])")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    for path in filter(None, (options.out, options.report)):
        writable(path)
    worlds = [_world(options, trace) for trace in options.traces]
    if len({world.name for world in worlds}) < len(worlds):
        raise BadInput("two traces have the same file name: results could not be told apart")
    parts = [parted(world, options.train) for world in worlds] if options.train else [(None, each) for each in worlds]
    with redirect_stdout(sys.stderr):  # what a user's policy prints is not part of the result
        rows = _rows(options, [world for pair in parts for world in pair if world is not None])
    known = points(rows)
    contests = [
        Contest(
            rest.name,
            known.get(rest.name, []),
            known.get(first.name, []) if first else [],
            bound_of(rest),
            setting(rest, options.train, options.seeds, options.bare),
        )
        for first, rest in parts
    ]
    if options.report:
        write_fronts(options.report, contests)
    if options.output == "json":
        print(as_json([as_record(contest) for contest in contests]))
    else:
        page().print(*as_tables(contests), sep="\n")
    return _failures(rows)


def _world(options: argparse.Namespace, trace: Path) -> World:
    one = argparse.Namespace(**{**vars(options), "trace": trace})
    return comparable(world_of(one), options.peak_workers)


def _rows(options: argparse.Namespace, worlds: Iterable[World]) -> list[dict[str, Any]]:
    from penstock.pipeline.sweep_job import Plan, expanded, need_some, sweep, swept

    worlds = list(worlds)
    need_some(options.policy or (), worlds[0])
    policies = expanded(*(options.policy or SETTINGS))
    plan = Plan(tuple(worlds), tuple(dict.fromkeys(policies)), tuple(range(options.seeds)), options.bare)
    with tempfile.TemporaryDirectory(prefix="penstock-compare-") as folder:
        output = options.out or Path(folder) / "results.parquet"
        with bar(f"{len(plan.cells())} replays", total=1.0) as progress:
            sweep(plan, output, options.master, progress)
        return swept(plan, output)


def _failures(rows: list[dict[str, Any]]) -> int:
    failed = [row for row in rows if row["error"] is not None]
    if failed:
        first = failed[0]
        where = f"{first['policy']} on {first['world']}"
        say(f"{len(failed)} of {len(rows)} cells failed, the first ({where}) with: {first['error']}")
    return BadInput.exit_code if failed else 0
