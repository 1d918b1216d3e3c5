"""`penstock fleet`: many streaming queries on several Spark applications, placed by a policy."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.numbers import port
from penstock.cli.run import log_to_stderr as log_to_stderr
from penstock.core.units import duration_s

if TYPE_CHECKING:
    from penstock.live.control_options import Wanted
    from penstock.live.fleet_spec import FleetSpec

ABOUT = """\
Run many streaming queries on several hosts, and let a policy say which host has which query, and how many
hosts there are. A host is a Spark application of its own, here a process with a limit on its CPU. A query
has its own checkpoint: to move it is to stop it at a batch boundary and to resume it on the other host, so
no event is lost or counted twice. Queries of a host that dies go on elsewhere; one that fails on resume goes
back to where it ran. Ctrl-C ends the hosts and keeps the checkpoints; the same command goes on from them.

The queries stand in a TOML file:

  state = "fleet-state"              # a folder for checkpoints
  [hosts]
  least = 1
  most = 4
  cores = 0.5                        # of each host
  memory_mb = 768                    # of its heap
  [[query]]
  name = "tech"
  app = "candlesticks"               # one of `penstock apps`, or module:function
  files = "incoming/ticks"           # text files that come into a folder
  to = "out/tech"                    # results, each exactly once; without it they are thrown away
  parameters = { sector = "tech", window_s = 30 }
  [[workload]]                       # paper 2's: financial (35 queries), twitter (20), energy (10)
  name = "energy"
  files = "incoming/meters"
  count = 4

Results whose rows never change (append) are one table of Parquet files, as Spark reads it; those that do
(update) are a folder a batch, batch=N, and of each key the row of the largest N holds.

With `master = "spark://host:7077"` (or yarn, k8s://…) under [hosts], each host is a client on this machine of
that cluster, and its tasks run there: files, checkpoints and results must lie where the cluster sees them
under the same paths, and a limit on CPU holds for the client alone. That was not tried on several machines.
"""
EXAMPLES = """\
examples:
  penstock fleet queries.toml --policy fugu-tuned --journal fleet.jsonl
  penstock fleet queries.toml --policy fugu:upper=0.7,lower=0.3,pause_s=5 --tick 5s --objective 'latency<=30s'
  penstock fleet queries.toml --policy static:workers=2          # queries spread evenly over two hosts
  penstock serve fleet.jsonl                                     # watch it; status, explain and score read it too
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("fleet", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("queries", type=Path, metavar="QUERIES", help="a TOML file")
    parser.add_argument("--policy", default="fugu-tuned", metavar="NAME", help="see `penstock policies` (fugu-tuned)")
    parser.add_argument("--dry-run", action="store_true", help="run the queries, decide and journal, move nothing")
    parser.add_argument("--tick", default="10s", metavar="T", help="a decision every so often (10s)")
    parser.add_argument("--objective", default="latency<=30s", metavar="TEXT", help="(latency<=30s)")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="every step; gone on with where it is there")
    parser.add_argument("--metrics-port", type=port, metavar="P", help="Prometheus metrics on loopback")
    parser.add_argument("--pause-file", metavar="FILE", help="while it is there, nothing is moved; so does SIGUSR1")
    parser.add_argument("--price", default="0.10/h", metavar="PRICE", help="of a host (0.10/h)")
    parser.add_argument("--for", dest="seconds", metavar="TIME", help="end after so long: 10m")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.live.fleet import FleetPlan, run_fleet
    from penstock.live.fleet_spec import read_fleet
    from penstock.live.pause import Pause

    log_to_stderr()
    seconds = duration_s(options.seconds, "--for") if options.seconds else None
    with tempfile.TemporaryDirectory(prefix="penstock-fleet-", ignore_cleanup_errors=True) as scratch:
        options.pause_file = Path(options.pause_file or Path(scratch) / "pause").absolute()
        Pause(str(options.pause_file)).listen()
        spec = read_fleet(options.queries)
        plan = FleetPlan(spec, _wanted(options, spec), seconds)
        plan.check()
        run_fleet(plan)
    return 0


def _wanted(options: argparse.Namespace, spec: FleetSpec) -> Wanted:
    from penstock.live.control_options import Wanted
    from penstock.live.recorder import check_journal

    if options.journal:
        check_journal(options.journal)
    return Wanted(
        policy=options.policy,
        limits=spec.hosts.limits,
        tick=options.tick,
        objective=options.objective,
        journal=options.journal,
        metrics_port=options.metrics_port,
        pause_file=str(options.pause_file),
        dry_run=options.dry_run,
        price=options.price,
    )
