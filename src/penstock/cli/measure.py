"""`penstock measure`: how much can an app take, on a real Spark cluster?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.table import Table

from penstock.cli.progress import bar, page
from penstock.core.errors import BadInput
from penstock.core.files import writable

ABOUT = """\
Measure the maximum sustainable throughput of a streaming app with 1, 2, 3, … workers: starts a real
Spark cluster on this machine (each worker with a part of a core), feeds the app with more than it can
consume, waits until its speed has settled, and samples batches of several sizes. A batch takes a fixed
time and a time for its rows; both are kept, because throughput depends on the batch.
An interrupted measurement goes on where it stopped.

NOT VALIDATED YET: the figures can be far off.
"""
EXAMPLES = """\
examples:
  penstock measure wordcount --workers 1,2,3 -o samples.parquet
  penstock measure mymodule:transform --workers 1,2 --quick -o samples.parquet
  penstock fit samples.parquet -o model.json && penstock advise model.json --rate 40MB/s
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("measure", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("app", metavar="APP", help="one of `penstock apps`, or module:function")
    parser.add_argument("--workers", default="1,2,3", metavar="COUNTS", help="worker counts (1,2,3)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="samples of each count (3)")
    parser.add_argument("--cores", type=float, default=0.25, metavar="N", help="of each worker (0.25)")
    width = parser.add_mutually_exclusive_group()
    width.add_argument("--partitions", type=int, metavar="N", help="fixed, as in a job whose state is frozen")
    width.add_argument("--partitions-per-worker", type=int, default=2, metavar="D", help="grow with the workers (2)")
    parser.add_argument("--quick", action="store_true", help="two batch sizes, five batches each, one repetition")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the input (0)")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="samples, as Parquet")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.apps.app import find_app
    from penstock.apps.catalogue import APPS
    from penstock.live.meter import MeterPlan, measure

    print("penstock: the meter is not validated yet: its figures can be far off (see the changelog)", file=sys.stderr)
    writable(options.out)
    app = find_app(options.app, APPS)
    plan = MeterPlan(
        workers=_counts(options.workers),
        repeat=1 if options.quick else options.repeat,
        cores=options.cores,
        partitions=options.partitions,
        partitions_per_worker=options.partitions_per_worker,
        quick=options.quick,
        seed=options.seed,
    )
    with bar(f"measuring {app.name}", total=1.0) as progress:
        rows = measure(app, plan, options.out, lambda share, _: progress(share))
    if options.output == "json":
        print(json.dumps(rows, indent=1))
        return 0
    table = Table("workers", "rows/s", "MB/s", "fixed s", "flags", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        rate, size = row["rows_per_s"], row["bytes_per_row"]
        cells = (str(row["workers"]), f"{rate:,.0f}", f"{rate * size / 1e6:.2f}", f"{row['fixed_s']:.2f}", row["flags"])
        table.add_row(*cells)
    page().print(table)
    return 0


def _counts(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise BadInput(f"--workers {text}: write worker counts, as in 1,2,3")
    return tuple(dict.fromkeys(int(word) for word in words))
