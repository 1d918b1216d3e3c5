"""`penstock plan-measurements`: which worker counts to measure, for a budget?"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.table import Table

from penstock.cli.json_output import as_json
from penstock.cli.numbers import cores, count, counts, real
from penstock.cli.progress import page
from penstock.core.errors import BadInput
from penstock.core.files import reads
from penstock.models.samples import read_rows, samples_of
from penstock.models.subset_search import Search, Subset, best_subset
from penstock.models.training import Samples, duplication
from penstock.reproduce.mst_measured import MEASURED

ABOUT = """\
Which worker counts to measure, so that models trained on them predict all others best (paper 1, §4.4):
every set of counts is tried on applications that were measured already. One line for each largest count, as
in the paper's Table 1: the best set, the workers it takes in all, and its error over all other counts, as a
share of the largest throughput. Without SAMPLES, on the six apps that Penstock was measured with, up to 5
workers; a plan is as good as those applications resemble yours.
"""
EXAMPLES = """\
examples:
  penstock plan-measurements --budget 6                      # at most 6 workers over all counts
  penstock plan-measurements mine.parquet other.parquet --max 16 --sizes 3,4 --under-weight 4
"""
OURS = 2  # partitions a worker, the default of `penstock measure`


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("plan-measurements", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("samples", type=Path, nargs="*", metavar="SAMPLES", help="what `penstock measure` wrote")
    parser.add_argument("--budget", type=count, metavar="N", help="most workers in all, over the counts of a set")
    parser.add_argument("--max", type=count, default=32, metavar="M", help="largest count to measure (32)")
    parser.add_argument("--sizes", type=counts, default=(2, 3, 4, 5), metavar="C", help="counts in a set (2,3,4,5)")
    help_ = "how much more an error weighs where a model promises too much (1)"
    parser.add_argument("--under-weight", type=real(1, 1000), default=1.0, metavar="W", help=help_)
    parser.add_argument("--cores", type=cores, default=0.25, metavar="G", help="of each worker, for eq 1 (0.25)")
    parser.add_argument("--operators", type=count, default=1, metavar="N", help="processing units, for eq 1 (1)")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    apps = [each for path in options.samples or [MEASURED] for each in _applications(reads(path))]
    found = list(_plans(apps, options))
    if not found:
        known = _list(apps[0].counts)
        raise BadInput(f"no set of {_list(options.sizes)} of the counts {known} fits: raise --max or --budget")
    if options.output == "json":
        print(as_json([_record(most, subset, options) for most, subset in found]))
    else:
        page().print(_table(found, options))
    return 0


def _applications(path: Path) -> Iterator[Samples]:
    """One for each app and source in a file."""
    rows = read_rows(path)
    for app, source in dict.fromkeys((row["app"], row["source"]) for row in rows):
        yield samples_of([row for row in rows if (row["app"], row["source"]) == (app, source)], path).samples


def _plans(apps: list[Samples], options: argparse.Namespace) -> Iterator[tuple[int, Subset]]:
    """The best set for each largest count, as far as there is one: counts must be left to test with."""
    for most in (each for each in apps[0].counts if each <= options.max):
        affordable = sorted(each for each in apps[0].counts if each <= most)
        sizes = tuple(size for size in options.sizes if _fits(affordable, size, apps[0], options.budget))
        if sizes:
            yield most, best_subset(apps, Search(sizes, most, options.budget, options.under_weight))


def _fits(known: list[int], size: int, app: Samples, budget: int | None) -> bool:
    return size <= len(known) and size < len(app.counts) and (budget is None or sum(known[:size]) <= budget)


def _record(most: int, subset: Subset, options: argparse.Namespace) -> dict[str, object]:
    ours, printed = _partitions(subset, options)
    return {
        "max": most,
        "counts": subset.counts,
        "workers": sum(subset.counts),
        "rmse": subset.rmse,
        "partitions": ours,
        "partitions_eq1": printed,
    }


def _table(found: list[tuple[int, Subset]], options: argparse.Namespace) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("up to", "measure", "workers in all", "error", "partitions", "by eq 1"):
        table.add_column(heading, justify="right")
    for most, subset in found:
        ours, printed = _partitions(subset, options)
        cells = (_list(subset.counts), str(sum(subset.counts)), f"{subset.rmse:.4f}", _list(ours), _list(printed))
        table.add_row(str(most), *cells)
    return table


def _partitions(subset: Subset, options: argparse.Namespace) -> tuple[list[int], list[int]]:
    """Ours, and as eq 1 has it."""
    printed = [duplication(each, options.cores, options.operators) for each in subset.counts]
    return [OURS * each for each in subset.counts], printed


def _list(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))
