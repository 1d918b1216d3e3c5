"""`penstock tune`: search a policy's parameters on a load of one's own."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path

from penstock.cli.json_output import as_json
from penstock.cli.numbers import integer, real
from penstock.cli.progress import bar
from penstock.cli.replay import add_series, add_world, world_of
from penstock.core.text import one_line
from penstock.policies.registry import POLICIES, Named
from penstock.runs.tuning import Budget, Part, Search, Tuned, searched, tune

ABOUT = """\
Search a policy's parameters by replaying a load: those that miss the objective no longer than allowed come first,
and of them the cheapest. The first part of the load is searched on, the rest tells what the result is worth there.
"""
EXAMPLES = """\
examples:
  penstock tune rates.parquet --policy threshold
  penstock tune rates.csv --policy deadline --budget 200 --violations 0.01 --output json
  penstock tune --scenario placed.toml --policy fugu:pause_s=1,move_mb_s=10

What a policy's name sets is kept; the rest of what it lets be tuned is searched. A large budget is spread over
Spark: searches of 500 side by side, or all settings, where there are no more than that.
"""
# A replay of a day of minutes takes some 30 ms, 1,000 of them half a minute: Spark takes 10 s to start.
IN_PROCESS = 1000


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("tune", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("trace", nargs="?", type=Path, metavar="TRACE", help="rate series: CSV or Parquet")
    parser.add_argument("--policy", required=True, metavar="NAME", help="whose parameters")
    parser.add_argument("--budget", type=integer(1, 1_000_000), default=500, metavar="N", help="replays at most (500)")
    parser.add_argument("--violations", type=real(0, 1), default=0.001, metavar="SHARE", help="allowed (0.001)")
    parser.add_argument("--train", type=real(0.05, 0.95), default=0.6, metavar="SHARE", help="of the load (0.6)")
    parser.add_argument("--master", metavar="URL", help=f"Spark, for a budget above {IN_PROCESS} (local[*])")
    parser.add_argument("--scenario", type=Path, metavar="FILE", help="TOML: workers, noise, batches, operators, …")
    add_series(parser)
    add_world(parser)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with redirect_stdout(sys.stderr):  # what a user's policy prints is not part of the result
        found = _found(options)
    print(as_json(asdict(found)) if options.output == "json" else _text(found))
    return 0


def _found(options: argparse.Namespace) -> Tuned:
    named = Named.parse(options.policy)
    scenario = world_of(options).scenario()
    budget = Budget(options.budget, options.violations, options.train, scenario.seed)
    with bar(f"tuning {named.name} on {scenario.name}", total=1.0) as progress:
        return tune(scenario, named, budget, progress, _search(named, options))


def _search(named: Named, options: argparse.Namespace) -> Search:
    """In this process, or through Spark where it takes long enough; a user's file is there in this process alone."""
    if options.budget <= IN_PROCESS or named.maker not in POLICIES.values():
        return searched
    from penstock.pipeline.tuning_job import spread_search

    return spread_search(options.master)


def _text(found: Tuned) -> str:
    lines = [f"--policy {found.name}", f"{found.evaluations} replays"]
    lines += [_line("searched on", found.train), _line("the rest", found.test)]
    if found.assumed:
        lines.append("not given, so assumed: " + one_line("; ".join(found.assumed.values())))
    return "\n".join(lines)


def _line(what: str, part: Part) -> str:
    bound = "no bound" if part.bound is None else f"bound ${part.bound:.2f}"
    tuned = f"${part.cost:.2f}, missed {part.violation_share:.2%}"
    return f"{what}: {tuned}; untuned ${part.untuned_cost:.2f}, missed {part.untuned_violation_share:.2%}; {bound}"
