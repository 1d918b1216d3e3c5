"""`penstock shares`: the log analysis live, with CPU shares that follow its load."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.numbers import real
from penstock.core.errors import BadInput
from penstock.core.objective import Objective
from penstock.core.units import duration_s

if TYPE_CHECKING:
    from penstock.live.share_run import SharesWanted

ABOUT = """\
Analyse a log over Kafka with three Spark applications, and let a policy turn how much CPU each may use
(paper 4): a parser drops malformed lines, a counter counts by status, a matcher searches for attacks. Each runs in
a cgroup of its own on this machine; a quota of about 5 ms is its share: 100 % is half a core for the matcher, a
quarter for each of the others. Parser and matcher use Spark's real-time mode; the counter keeps state, which that
mode does not, so it has a batch every 5 s, and no bound of a policy is planned for it.

TOPIC has one partition, and is read from its beginning. Give each line the header `us`, the microseconds since 1970 at
which it was sent: Kafka's own times are milliseconds. Results go to topics beside it, removed at the end.
"""
EXAMPLES = """\
examples:
  penstock cluster --kafka                        a broker to try it on; then, with lines in a topic of it:
  penstock shares --broker 127.0.0.1:9092 --topic lines --for 10m --journal shares.jsonl
  penstock shares --broker … --topic lines --policy "mead:percentile=0.95,every_s=10"
  penstock shares --broker … --topic lines --policy share-threshold --objective "latency<=500ms"
  penstock status shares.jsonl; penstock explain shares.jsonl; penstock serve shares.jsonl

`mead` plans with shares as the quotas that they are; `mead:service=core` takes a share for a slower core, as its paper
does, and gives more. What a line costs is measured first on the lines that come, half a minute at a time until it
settles (one and a half to four minutes); or give it with --costs.
Without the right to make cgroups it is refused (exit code 2). SIGUSR1 pauses it, and lets it go on.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    help_ = "a log analysis whose CPU shares follow its load"
    parser = commands.add_parser("shares", help=help_, description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("--broker", required=True, metavar="HOST:PORT", help="an existing Kafka broker")
    parser.add_argument("--topic", required=True, metavar="NAME", help="of lines; one partition")
    parser.add_argument("--policy", metavar="NAME", help="mead, share-threshold, … (mead:percentile=0.95)")
    parser.add_argument(
        "--objective", default="latency<=1s", metavar="TEXT", help="of the matcher's path (latency<=1s)"
    )
    parser.add_argument("--tick", default="5s", metavar="T", help="a decision every so often (5s)")
    parser.add_argument("--for", dest="seconds", metavar="TIME", help="end after so long: 10m")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="every step; a new file")
    parser.add_argument("--pause-file", default="", metavar="FILE", help="while it is there, nothing is changed")
    parser.add_argument("--dry-run", action="store_true", help="decide and journal, but leave all at 100 %%")
    costs = "seconds of CPU a line, as in parser:0.0008+matcher:0.002 (measured)"
    parser.add_argument("--costs", default="", metavar="TEXT", help=costs)
    parser.add_argument(
        "--least", type=real(0.3, 1), default=0.4, metavar="S", help="the least share that a policy may give (0.4)"
    )
    parser.add_argument("--warm-up", default="90s", metavar="T", help="without quotas, for compilers (90s)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.cli.run import log_to_stderr
    from penstock.live.kafka import KafkaSource
    from penstock.live.share_run import checked, run_shares

    log_to_stderr()
    run_shares(checked(_wanted(options)), KafkaSource(options.broker, options.topic))
    return 0


def _wanted(options: argparse.Namespace) -> SharesWanted:
    from penstock.apps.logs import OPERATORS
    from penstock.live.recorder import check_journal
    from penstock.live.share_run import SharesWanted
    from penstock.policies.share_levels import by_operator

    if options.journal:
        check_journal(options.journal)
    rows = [name for name, each in OPERATORS.items() if each.is_real_time]
    costs = by_operator(options.costs, rows, "--costs")
    if costs and len(costs) < len(rows):
        raise BadInput(f"--costs {options.costs}: give those of {' and '.join(rows)}, or none")
    policy = {"policy": options.policy} if options.policy is not None else {}
    return SharesWanted(
        **policy,
        objective=Objective.parse(options.objective),
        tick_s=duration_s(options.tick, "--tick", least_s=1.0),
        least=options.least,
        journal=options.journal,
        pause_file=options.pause_file,
        is_dry=options.dry_run,
        warm_s=duration_s(options.warm_up, "--warm-up"),
        costs_s=costs,
        seconds=duration_s(options.seconds, "--for") if options.seconds else None,
    )
