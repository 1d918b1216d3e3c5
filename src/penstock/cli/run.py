"""`penstock run`: a streaming job that scales itself."""

from __future__ import annotations

import argparse
import logging
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.job_options import add_places, kafka_of
from penstock.cli.numbers import cores, count, port, workers
from penstock.core.errors import BadInput
from penstock.core.objective import Limits
from penstock.core.text import masked
from penstock.core.units import duration_s

if TYPE_CHECKING:
    from penstock.core.loop import Step
    from penstock.live.control_options import Wanted
    from penstock.live.driver import RunPlan
    from penstock.live.sinks import Sink

ABOUT = """\
Run a streaming app and keep it at the right number of executors: the same policies that `penstock
replay` compares. Without --master, on a real Spark cluster on this machine. Ctrl-C ends the job at a
batch boundary and keeps its checkpoint; started again with the same --checkpoint and --journal, it
goes on where it stopped. Results go --to a folder (each row exactly once), a topic of the same broker or
a function of yours (at least once), or nowhere (noop: our own apps, if nothing else is said). An app may
also return a DataStreamWriter, or a query that it has started: --to app. Where an app has several
implementations (see `penstock apps`; VARIANTS in a module), deadline and plasticc switch between them,
from one batch to the next. To scale a job of your own, put one line into it instead:

  controller = penstock.attach(spark, query, limits=(1, 8), journal="job.jsonl")
"""
EXAMPLES = """\
examples:
  penstock run wordcount --source kafka --broker 127.0.0.1:9092 --topic text --min 1 --max 5 --journal run.jsonl
  penstock run mymodule:transform --files incoming/ --to parquet:out --min 1 --max 4 --policy mst
  penstock run mymodule:transform --files incoming/ --to mymodule:write --checkpoint state --min 1 --max 4
  penstock run patterns --files incoming/ --min 1 --max 4 --policy plasticc:step_s=1m,plan_s=2m
  penstock run wordcount --files incoming/ --min 1 --max 4 --dry-run        # decide and journal, change nothing
  penstock serve run.jsonl                                                  # watch it
  kill -USR1 PID                                                            # freeze it; again: let it go on
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("run", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("app", metavar="APP", help="one of `penstock apps`, or module:function")
    parser.add_argument("--policy", default="deadline", metavar="NAME", help="see `penstock policies` (deadline)")
    parser.add_argument("--min", type=workers, required=True, metavar="N", help="fewest executors")
    most = "most executors; a standalone cluster starts with all of them"
    parser.add_argument("--max", type=workers, required=True, metavar="N", help=most)
    parser.add_argument("--dry-run", action="store_true", help="decide and journal, but change nothing")
    _add_job(parser)
    _add_control(parser)
    add_places(parser)
    parser.set_defaults(run=run)


def _add_job(parser: argparse.ArgumentParser) -> None:
    job = parser.add_argument_group("the job")
    job.add_argument("--files", type=Path, metavar="DIR", help="read the files that come into this folder")
    job.add_argument(
        "--to", metavar="SINK", help="where results go: parquet:DIR, json:DIR, kafka:TOPIC, console, noop, …"
    )
    modes = ("append", "update", "complete")
    job.add_argument("--output-mode", choices=modes, help="of the results (the app's OUTPUT_MODE, or update)")
    job.add_argument("--trigger", default="10s", metavar="T", help="a batch every so often (10s)")
    job.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="kept across restarts (beside results; else removed)"
    )
    job.add_argument("--partitions", type=count, default=10, metavar="N", help="of the state (10)")
    job.add_argument("--rows-max", type=count, metavar="N", help="rows, or files, that a batch may read")
    job.add_argument("--cores", type=cores, metavar="N", help="of each executor (0.25; 1 with --master)")
    job.add_argument("--for", dest="seconds", metavar="TIME", help="end after so long: 10m")


def _add_control(parser: argparse.ArgumentParser) -> None:
    control = parser.add_argument_group("the controller")
    control.add_argument("--tick", default="15s", metavar="T", help="a decision every so often (15s)")
    control.add_argument("--objective", default="latency<=120s", metavar="TEXT", help="(latency<=120s)")
    control.add_argument("--model", type=Path, metavar="FILE", help="what `penstock fit` wrote; else it is learnt")
    control.add_argument("--journal", metavar="FILE", help="every step; a file, or an address that Spark can write")
    control.add_argument("--metrics-port", type=port, metavar="P", help="Prometheus metrics on loopback")
    control.add_argument("--pause-file", metavar="FILE", help="while it is there, nothing is changed; so does SIGUSR1")
    control.add_argument("--safe", type=workers, metavar="N", help="executors to fall back to when nothing can be seen")
    control.add_argument("--price", default="0.10/h", metavar="PRICE", help="of an executor (0.10/h)")


def run(options: argparse.Namespace) -> int:
    from penstock.live.driver import run_job
    from penstock.live.pause import Pause

    log_to_stderr()
    with tempfile.TemporaryDirectory(prefix="penstock-run-", ignore_cleanup_errors=True) as scratch:
        options.pause_file = Path(options.pause_file or Path(scratch) / "pause").absolute()
        Pause(str(options.pause_file)).listen()  # while the cluster starts, too
        run_job(_plan(options, Path(scratch)), _nothing)
    return 0


def _plan(options: argparse.Namespace, scratch: Path) -> RunPlan:
    """What is wrong with it is said before a cluster is started."""
    from penstock.apps.app import find_app
    from penstock.apps.catalogue import APPS
    from penstock.live.driver import RunPlan, controlled

    kafka = kafka_of(options)
    if options.source == "kafka" and (options.files or kafka is None or not kafka.topic):
        raise BadInput("--source kafka takes --broker HOST:PORT and --topic NAME, and no --files")
    if kafka is None and options.files is None:
        raise BadInput("nothing to read: give --files DIR, or --source kafka --broker HOST:PORT --topic NAME")
    if kafka is not None:
        kafka.partitions()  # a topic that does not exist is said now, not by a query in two minutes
    elif not options.files.is_dir():
        raise BadInput(f"--files {options.files}: no such folder")
    app = find_app(options.app, APPS)
    sink = _sink(options, is_ours=options.app in APPS)
    checkpoint = options.checkpoint or sink.checkpoint
    if sink.kind == "kafka" and kafka is None:
        raise BadInput("--to kafka goes to the broker that is read: give --source kafka --broker HOST:PORT")
    sink.check(checkpoint, options.output_mode or app.output_mode)
    wanted = replace(
        _wanted(options),
        app=app.name,
        source=options.source,
        cores=options.cores or (1.0 if options.master else 0.25),
        partitions=options.partitions,
    )
    plan = RunPlan(
        app=app,
        wanted=wanted,
        folder=options.files or scratch,
        checkpoint=(checkpoint or scratch / "checkpoint").absolute(),
        sink=sink,
        output_mode=options.output_mode,
        trigger_s=duration_s(options.trigger, "--trigger"),
        cores=wanted.cores or 1.0,
        partitions=options.partitions,
        master=options.master,
        kafka=kafka,
        rows_max=options.rows_max,
        seconds=duration_s(options.seconds, "--for") if options.seconds else None,
    )
    told = controlled(plan)
    told.policy_for(told.job(app.name))
    return plan


def _sink(options: argparse.Namespace, is_ours: bool) -> Sink:
    """Where results go. Those of our apps are there to be measured; a user's may be somebody's orders."""
    from penstock.live.sinks import CHOICES, Sink

    if options.to is None and not is_ours and not options.dry_run:
        raise BadInput(f"nobody says where the results go: --to {CHOICES}")
    return Sink.parse(options.to or "noop")


def _wanted(options: argparse.Namespace) -> Wanted:
    from penstock.live.control_options import Wanted
    from penstock.live.recorder import check_journal
    from penstock.live.remote import is_address

    if options.journal and not is_address(options.journal):
        check_journal(Path(options.journal))
    return Wanted(
        policy=options.policy,
        limits=Limits(options.min, options.max),
        tick=options.tick,
        objective=options.objective,
        model=options.model,
        journal=options.journal,
        metrics_port=options.metrics_port,
        pause_file=str(options.pause_file),
        safe_workers=options.safe,
        dry_run=options.dry_run,
        price=options.price,
    )


def log_to_stderr() -> None:
    """A handler of our own: libraries may have set up the root's already."""
    from penstock.live.control_log import FORM, ToStderr

    ours = logging.getLogger("penstock")
    ours.setLevel(logging.INFO)
    ours.handlers = [each for each in ours.handlers if not isinstance(each, ToStderr)]  # one is enough
    ours.addHandler(ToStderr(Masked(FORM)))
    ours.propagate = False


class Masked(logging.Formatter):
    """A log without passwords."""

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


def _nothing(_: Step) -> None:
    """The log says what changes."""
