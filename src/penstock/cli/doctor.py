"""`penstock doctor`: configuration checks, one line each."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.json_output import as_json
from penstock.cli.numbers import count, workers
from penstock.cli.progress import page
from penstock.core.errors import BadInput
from penstock.core.units import duration_s

if TYPE_CHECKING:
    from penstock.live.job_checks import Finding

ABOUT = """\
Check the configuration, one line for each problem: what this machine lacks for a cluster of its own (Java, the
right to make cgroups); with APP, whether Spark would start it, whether its trigger leaves anything to scale, and
whether there are partitions enough for the executors; with --master, what of a session's settings would keep a job
from being scaled (local[*], dynamic allocation, no decommissioning).

With SCRIPT.py, a job of your own is run up to where its queries would start: on a small session here, without a
network and without the right to write anything (the kernel holds that; where it cannot, nothing is run). Looked at are
the session's settings, each query's trigger, checkpoint, sources and output mode, and what penstock.attach is given;
--master and --conf are what its spark-submit would be given. Batches are not run: a hot partition shows only in a job
that runs, which `penstock run` and `penstock.attach` examine when they begin, or
`penstock.live.job_checks.examine(spark, [query], workers_max=8)`.
"""
EXAMPLES = """\
examples:
  penstock doctor                                             this machine
  penstock doctor job.py --max 8 --arguments "host:9092 clicks"   a job of yours, up to where its queries start
  penstock doctor wordcount --max 8 --partitions 4            more executors than partitions
  penstock doctor mymodule:transform --trigger availableNow   a job that ends by itself
  penstock doctor --master spark://host:7077 --conf spark.dynamicAllocation.enabled=true
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("doctor", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("app", nargs="?", metavar="APP", help="a script, one of `penstock apps`, or module:function")
    parser.add_argument("--arguments", metavar="TEXT", default="", help="of the script, as a shell takes them")
    parser.add_argument("--master", metavar="URL", help="examine a session on this cluster too; a script's own master")
    parser.add_argument("--max", type=workers, metavar="N", help="executors that the limits would allow")
    parser.add_argument("--cores", type=count, default=1, metavar="N", help="task slots of each executor (1)")
    parser.add_argument("--partitions", type=count, metavar="N", help="of its state: spark.sql.shuffle.partitions")
    parser.add_argument("--trigger", metavar="T", help="of the job: 10s, availableNow, once, realTime, continuous")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of the job")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.live.job_checks import examine_machine

    found = [*_job(options), *examine_machine()]
    with redirect_stdout(sys.stderr):  # what a user's module prints is not part of the result
        if options.app and options.app.endswith(".py"):
            found += _script(options)
        else:
            found += _app(options) if options.app else []
            found += _session(options) if options.master else []
    if options.output == "json":
        print(as_json([asdict(finding) for finding in found]))
    elif not found:
        print("no problems found")
    else:
        for finding in found:
            page().print(f"{'NO ' if finding.is_fatal else 'note'} {finding.what}: {finding.says}", soft_wrap=True)
    return 1 if any(finding.is_fatal for finding in found) else 0


def _script(options: argparse.Namespace) -> list[Finding]:
    from penstock.live.script_checks import examine_script

    try:
        words = shlex.split(options.arguments)
    except ValueError as error:
        raise BadInput(f"--arguments {options.arguments}: {error}") from None
    settings = _settings(options) | ({"spark.master": options.master} if options.master else {})
    return examine_script(Path(options.app), words, settings, options.max)


def _app(options: argparse.Namespace) -> list[Finding]:
    """An app that cannot be found or loaded is bad input, said as such."""
    from penstock.apps.app import find_app
    from penstock.apps.catalogue import APPS
    from penstock.live.job_checks import examine_app

    return examine_app(find_app(options.app, APPS))


def _job(options: argparse.Namespace) -> list[Finding]:
    """What the job's own settings say, without running it."""
    from penstock.live.job_checks import examine_trigger, examine_width

    found = examine_trigger(options.trigger) if options.trigger else []
    if options.trigger and not found:
        duration_s(options.trigger, "--trigger")
    if options.max and options.partitions:
        found += examine_width(options.max, options.cores, options.partitions)
    return found


def _session(options: argparse.Namespace) -> list[Finding]:
    from penstock.live.job_checks import examine
    from penstock.pipeline.session import session

    with session(options.master, "penstock doctor", _settings(options)) as spark:
        return examine(spark, (), options.max)


def _settings(options: argparse.Namespace) -> dict[str, str]:
    wrong = [each for each in options.conf if "=" not in each]
    if wrong:
        raise BadInput(f"--conf {wrong[0]}: write KEY=VALUE")
    return dict(each.split("=", 1) for each in options.conf)
