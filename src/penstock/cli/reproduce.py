"""`penstock reproduce`: each paper's claims, theirs beside ours."""

from __future__ import annotations

import argparse
from pathlib import Path

from penstock.cli.numbers import count
from penstock.cli.progress import bar, page
from penstock.core.errors import BadInput
from penstock.reproduce import mst
from penstock.reproduce.claims import Claim, as_json, as_table, read_claims
from penstock.sim.series import read_series

ABOUT = """\
Recompute a paper's claims and show them beside ours. A claim that does not hold is shown as not
holding, with the reason; one that cannot be told from what was published has a dash.

  mst    paper 1 (Imai): validation points (§5.2), training subsets (Table 1), elastic scheduling (Table 3)
  ekf    paper 5 (Borkowski): scaling events of PURE, GW and EKF (Tables 2-5), break-even, and an ablation:
         978 runs as one Spark job, four minutes on two cores (--quick: one). Columns: PURE GW EKF, mean (σ)
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("reproduce", description=ABOUT, formatter_class=form)
    parser.add_argument("paper", choices=("mst", "ekf"), metavar="PAPER", help="mst or ekf")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="mst: World Cup 98, requests per minute, for Table 3"
    )
    parser.add_argument("--seeds", type=count, default=20, metavar="N", help="ekf: runs of each configuration (20)")
    parser.add_argument("--quick", action="store_true", help="ekf: three seeds, and no grid of thresholds")
    parser.add_argument("--claims", type=Path, metavar="FILE", help="ekf: show an earlier --output json, run nothing")
    parser.add_argument("--output", choices=("table", "json", "page"), default="table", help="page: ekf, as Markdown")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    claims = _ekf(options) if options.paper == "ekf" else _mst(options)
    if options.output == "json":
        print(as_json(claims))
    elif options.output == "page":
        print(_page(options.paper, claims))
    else:
        page().print(as_table(claims))
    return 0


def _mst(options: argparse.Namespace) -> list[Claim]:
    series = read_series(options.trace) if options.trace else None
    with bar("replaying 500 hours for six applications"):
        return mst.claims(series)


def _ekf(options: argparse.Namespace) -> list[Claim]:
    if options.claims:
        return read_claims(options.claims)
    from penstock.reproduce import ekf  # pyspark takes a second to load

    with bar("three scenarios, three filters, and the ablation", total=1.0) as done:
        return ekf.claims(options.seeds, options.quick, done)


def _page(paper: str, claims: list[Claim]) -> str:
    if paper != "ekf":
        raise BadInput(f"--output page is for ekf only: {paper} has no page")
    from penstock.reproduce.ekf_page import as_page

    return as_page(claims)
