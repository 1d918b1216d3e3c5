"""`penstock measure`: how much can an app take, on a real Spark cluster?"""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from penstock.cli.job_options import add_places, kafka_of
from penstock.cli.json_output import as_json
from penstock.cli.numbers import cores, count, counts, seed
from penstock.cli.progress import bar, page
from penstock.core.errors import BadInput
from penstock.core.files import writable
from penstock.core.units import duration_s
from penstock.models.samples import corrected, sustained

if TYPE_CHECKING:
    from penstock.live.kafka import KafkaSource

ABOUT = """\
Measure the maximum sustainable throughput (MST) of a streaming app with 1, 2, 3, … workers: starts a
real Spark cluster on this machine (each worker with a part of a core), feeds the app with more than it
can consume, warms it up, and samples batches of several lengths. A batch takes a fixed time and a time
for its rows; both are kept, because throughput depends on the batch: with a trigger of T seconds,
MST = capacity · (1 − fixed / T).
About 2 minutes a sample after 2 to 3 minutes of start and warm-up. Each sample is on disk as soon as it is
made, and an interrupted measurement goes on where it stopped. Nothing else should run meanwhile. What is
shown is what was delivered. What others do on the same chip is seen in the machine's speed, which is
measured too: the corrected MST is for comparing samples of unequal moments. Batches are waited for until
they drift by less than 4 % each, and only what came after that counts (3 % of those that drift more pass).
"""
EXAMPLES = """\
examples:
  penstock measure wordcount --workers 1,2,3 -o samples.parquet
  penstock measure mymodule:transform --workers 1,2 --quick -o samples.parquet
  penstock measure wordcount --source kafka -o samples.parquet               # a broker of its own
  penstock measure mymodule:transform --source kafka --broker host:9092 --topic clicks -o samples.parquet
  penstock fit samples.parquet -o model.json && penstock advise model.json --rate 40MB/s

A user's module may have `generate(spark, rows, seed)`, which makes the input: a DataFrame with one
column `value`, text (by default the lines of words of wordcount), and OUTPUT_MODE ("update").
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("measure", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("app", metavar="APP", help="one of `penstock apps`, or module:function")
    parser.add_argument("--workers", type=counts, default="1,2,3", metavar="COUNTS", help="worker counts (1,2,3)")
    parser.add_argument("--repeat", type=count, default=3, metavar="N", help="samples of each count (3)")
    parser.add_argument("--cores", type=cores, metavar="N", help="of each worker (0.25; 1 with --master)")
    width = parser.add_mutually_exclusive_group()
    width.add_argument("--partitions", type=count, metavar="N", help="fixed, as in a job whose state is frozen")
    width.add_argument("--partitions-per-worker", type=count, default=2, metavar="D", help="grow with the workers (2)")
    parser.add_argument("--trigger", default="10s", metavar="T", help="that the printed MST is for (10s)")
    parser.add_argument("--quick", action="store_true", help="two batch lengths, five batches each, one repetition")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of the input (0)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="for input and checkpoints; all workers must see it")
    add_places(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="samples, as Parquet")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    writable(options.out)
    trigger_s = duration_s(options.trigger, "--trigger", least_s=1e-3)
    with redirect_stdout(sys.stderr):  # what a user's module prints is not part of the result
        rows = _measured(options)
    print(as_json(rows)) if options.output == "json" else page().print(as_table(rows, trigger_s))
    return 0


def _measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    from penstock.apps.app import find_app
    from penstock.apps.catalogue import APPS
    from penstock.live.meter import measure
    from penstock.live.meter_plan import MeterPlan

    app = find_app(options.app, APPS)
    kafka = _kafka(options)
    plan = MeterPlan(
        workers=options.workers,
        repeat=1 if options.quick else options.repeat,
        cores=options.cores or (1.0 if options.master else 0.25),
        partitions=kafka.partitions() if kafka and kafka.topic else options.partitions,
        partitions_per_worker=options.partitions_per_worker,
        quick=options.quick,
        seed=options.seed,
        master=options.master,
        source=options.source,
        kafka=kafka,
        folder=options.folder,
    )
    with bar(f"measuring {app.name}", total=1.0) as progress:
        return measure(app, plan, options.out, progress)


def as_table(rows: list[dict[str, Any]], trigger_s: float) -> Table:
    """One line a sample, as delivered. The MST is what a trigger of so many seconds sustains."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workers", justify="right")
    for heading in ("capacity rows/s", "MB/s", "fixed s", f"MST rows/s at {trigger_s:g} s", "MB/s"):
        table.add_column(heading, justify="right")
    table.add_column("machine", justify="right")
    table.add_column("MST corrected", justify="right")
    table.add_column("flags")
    for row in rows:
        rate, fixed_s, size = row["rows_per_s"], row["fixed_s"], row["bytes_per_row"]
        mst = sustained(row, trigger_s)
        numbers = (_shown(rate), _shown(rate, size), "-" if fixed_s is None else f"{fixed_s:.2f}")
        speed = "" if row["speed"] is None else f"{row['speed']:.0%}"
        cells = (*numbers, _shown(mst), _shown(mst, size), speed, _shown(sustained(corrected(row), trigger_s)))
        table.add_row(str(row["workers"]), *cells, row["flags"])
    return table


def _shown(rate: float | None, bytes_per_row: float | None = None) -> str:
    if rate is None:
        return "-"
    return f"{rate:,.0f}" if bytes_per_row is None else f"{rate * bytes_per_row / 1e6:.2f}"


def _kafka(options: argparse.Namespace) -> KafkaSource | None:
    kafka = kafka_of(options)
    if kafka and kafka.topic and options.partitions:
        raise BadInput(f"--partitions: the topic {kafka.topic} has as many as it has")
    return kafka
