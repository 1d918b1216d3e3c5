"""`penstock reproduce`: each paper's claims, theirs beside ours."""

from __future__ import annotations

import argparse
from pathlib import Path

from penstock.cli.progress import bar, page
from penstock.reproduce import mst
from penstock.reproduce.claims import as_json, as_table
from penstock.sim.series import read_series

ABOUT = """\
Recompute a paper's claims and show them beside ours. A claim that does not hold is shown as not
holding, with the reason; one that cannot be told from what was published has a dash.

  mst    paper 1 (Imai): validation points (§5.2), training subsets (Table 1), elastic scheduling (Table 3)
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("reproduce", description=ABOUT, formatter_class=form)
    parser.add_argument("paper", choices=("mst",), metavar="PAPER", help="mst")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="World Cup 98, requests per minute (a stand-in)")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    series = read_series(options.trace) if options.trace else None
    with bar("replaying 500 hours for six applications"):
        claims = mst.claims(series)
    if options.output == "json":
        print(as_json(claims))
    else:
        page().print(as_table(claims))
    return 0
