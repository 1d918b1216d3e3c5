"""`penstock sweep`: thousands of replays as one Spark job."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path

from penstock.cli.json_output import as_json
from penstock.cli.main import say
from penstock.cli.numbers import integer
from penstock.cli.progress import bar
from penstock.core.errors import BadInput
from penstock.core.files import writable
from penstock.core.text import one_line
from penstock.sim.derive import Given, World

ABOUT = """\
Replay every policy in every scenario with every seed, as one Spark job. Results go to one Parquet
file, a row a cell: world, policy, seed and all scores. An interrupted sweep goes on where it
stopped, and a larger one reuses what is done.
"""
EXAMPLES = """\
examples:
  penstock sweep world.toml --policy threshold --seeds 20 -o results.parquet
  penstock sweep a.toml b.toml --policy 'threshold:upper=0.7|0.8|0.9,lower=0.3|0.5' --seeds 100 -o results.parquet
  penstock sweep world.toml --policy mine.py:Mine --master spark://host:7077 -o results.parquet
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("sweep", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("scenario", nargs="+", type=Path, metavar="SCENARIO", help="TOML files with a load")
    parser.add_argument("--policy", action="append", required=True, metavar="NAME", help="a|b|c tries each value")
    parser.add_argument("--bare", action="store_true", help="without the safety rules of a live run")
    parser.add_argument("--seeds", type=integer(1, 1_000_000), default=1, metavar="N", help="seeds 0 … N-1 (1)")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="results, as Parquet")
    parser.add_argument("--master", metavar="URL", help="a Spark master (local[*])")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.pipeline.sweep_job import Plan, expanded, need_some, sweep

    writable(options.out)
    worlds = tuple(World.of_file(path, Given()) for path in options.scenario)
    with redirect_stdout(sys.stderr):  # what a user's policy prints is not part of the result
        plan = Plan(worlds, expanded(*options.policy), tuple(range(options.seeds)), options.bare)
        need_some(options.policy, worlds[0])
        with bar(f"{len(plan.cells())} replays", total=1.0) as progress:
            summary = sweep(plan, options.out, options.master, progress)
    if options.output == "json":
        print(as_json(asdict(summary) | {"output": str(summary.output)}, None))
    else:
        before = f", {summary.done_before} of them done before" if summary.done_before else ""
        print(f"{summary.cells} cells{before}: {one_line(str(summary.output))}")
    if summary.failed:
        say(f"{summary.failed} of {summary.cells} cells failed, the first with: {summary.first_error}")
        return BadInput.exit_code
    return 0
