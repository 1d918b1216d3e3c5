"""`penstock reproduce`: each paper's claims, theirs beside ours."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from penstock.cli.numbers import integer
from penstock.cli.progress import bar, page
from penstock.core.errors import BadInput
from penstock.reproduce import mst
from penstock.reproduce.claims import Claim, as_json, as_table, read_claims
from penstock.sim.series import read_series

ABOUT = """\
Recompute a paper's claims and show them beside ours. A claim that does not hold is shown as not
holding, with the reason; one that cannot be told from what was published has a dash.

  mst    paper 1 (Imai): validation points (§5.2), training subsets (Table 1), elastic scheduling (Table 3)
  plasticc  paper 3 (Kumbhare): look-ahead against reactive scheduling (Figures 5-7), at equal throughput too:
         some 440 runs of twelve hours as one Spark job, ten minutes on two cores (--quick: three)
  fugu   paper 2 (Heinze): the cost function's example, cost and violations of 16 static configurations, of the online
         tuner and of reinforcement learning in nine scenarios; some 500 runs as one Spark job, ten minutes on two cores
  mead   paper 4 (Russo Russo): queueing models beside measured (Figure 3), response and CPU shares by model and bound
         (Tables I-III), thresholds, best fixed shares; half an hour on two cores (--quick: five minutes)
  ekf    paper 5 (Borkowski): scaling events of PURE, GW and EKF (Tables 2-5), break-even, and an ablation:
         1,378 runs as one Spark job, ten minutes on two cores (--quick: two). Columns: PURE GW EKF, mean (σ)
"""
# Which papers take what; the others would ignore it.
OPTIONS = {
    "trace": ("mst", "mead"),
    "traces": ("fugu",),
    "seeds": ("ekf", "mead", "plasticc"),
    "runs": ("ekf",),
    "plots": ("plasticc",),
}
# A thousand repeats are days of work: more is a slip of the finger.
SEEDS_MOST = 1000


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("reproduce", description=ABOUT, formatter_class=form)
    parser.add_argument("paper", choices=tuple(_CLAIMS), metavar="PAPER", help=", ".join(_CLAIMS))
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="mst: World Cup 98, requests per minute, for Table 3; mead: BC-pAug89, gaps in µs (a stand-in)",
    )
    parser.add_argument("--traces", type=Path, metavar="DIR", help="fugu: a folder of real traces (stand-ins)")
    parser.add_argument(
        "--seeds", type=integer(1, SEEDS_MOST), metavar="N", help="runs of each (ekf 20, mead 10, plasticc 3)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer runs; no grid of thresholds, no errors")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="ekf: keep all runs there; called again, it goes on")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="plasticc: draw Figures 5-7 there, as SVG")
    parser.add_argument("--claims", type=Path, metavar="FILE", help="show an earlier --output json, run nothing")
    parser.add_argument(
        "--output", choices=("table", "json", "page"), default="table", help="page: Markdown (all but mst)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.output == "page" and options.paper == "mst":
        raise BadInput("--output page is for ekf, fugu, mead and plasticc: mst has no page")
    for name in OPTIONS:
        if getattr(options, name) is not None and options.paper not in OPTIONS[name]:
            raise BadInput(f"--{name} is for {' and '.join(OPTIONS[name])}: {options.paper} does not take it")
    if options.plots:
        _plots_can_be_drawn(options)
    claims = read_claims(options.claims) if options.claims else _CLAIMS[options.paper](options)
    if options.plots:
        from penstock.reproduce.plasticc_plots import write_plots

        write_plots(options.plots, claims)
    if options.output == "json":
        print(as_json(claims))
    elif options.output == "page":
        print(_page(options, claims))
    else:
        page().print(as_table(claims))
    return 0


def _plots_can_be_drawn(options: argparse.Namespace) -> None:
    from penstock.reproduce.plasticc_plots import folder_for_plots

    if options.quick and not options.claims:
        raise BadInput("--plots needs the errors and biases of a whole run: leave --quick out")
    folder_for_plots(options.plots)


def _mst(options: argparse.Namespace) -> list[Claim]:
    series = read_series(options.trace) if options.trace else None
    with bar("replaying 500 hours for six applications"):
        return mst.claims(series)


def _ekf(options: argparse.Namespace) -> list[Claim]:
    from penstock.reproduce import ekf  # pyspark takes a second to load

    with bar("three scenarios, three filters, and the ablation", total=1.0) as done:
        return ekf.claims(ekf.SEEDS if options.seeds is None else options.seeds, options.quick, done, options.runs)


def _plasticc(options: argparse.Namespace) -> list[Claim]:
    from penstock.reproduce import plasticc

    with bar("twelve hours, again and again", total=1.0) as done:
        return plasticc.claims(plasticc.SEEDS if options.seeds is None else options.seeds, options.quick, done)


def _fugu(options: argparse.Namespace) -> list[Claim]:
    from penstock.reproduce import fugu  # pyspark takes a second to load

    with bar("nine scenarios, 16 configurations, tuners and learners", total=1.0) as done:
        return fugu.claims(options.traces, options.quick, done)


def _mead(options: argparse.Namespace) -> list[Claim]:
    from penstock.reproduce import mead  # pyspark takes a second to load

    with bar("three streams, three models, and what else can be done", total=1.0) as done:
        return mead.claims(options.trace, options.seeds or mead.SEEDS, options.quick, done)


_CLAIMS = {"mst": _mst, "fugu": _fugu, "plasticc": _plasticc, "mead": _mead, "ekf": _ekf}


def _page(options: argparse.Namespace, claims: list[Claim]) -> str:
    as_page: Callable[[list[Claim]], str] = import_module(f"penstock.reproduce.{options.paper}_page").as_page
    try:
        return as_page(claims)
    except (LookupError, ArithmeticError, TypeError, ValueError, StopIteration) as error:
        if options.claims is None:
            raise
        what = f"{type(error).__name__} {error}".strip()
        raise BadInput(f"{options.claims} lacks claims of {options.paper} that its page needs: {what}") from None
