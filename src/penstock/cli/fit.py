"""`penstock fit`: from measured samples to a capacity model."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from penstock.cli.numbers import counts, seed
from penstock.cli.progress import page
from penstock.core.errors import BadInput
from penstock.core.files import reads, same_place, writable
from penstock.core.text import some_of
from penstock.models.capacity import weights, write_model
from penstock.models.curve_fitting import Fitted, fit_model
from penstock.models.samples import Measured, read_samples
from penstock.report.fitpage import write_plot

ABOUT = """\
Fit throughput against workers: the two models of paper 1 (inverse time, quadratic), a line, and the
universal scalability law. The one with the lowest error on worker counts it has not seen is kept,
with the fixed time of a batch, and with intervals from resampled measurements.
"""
EXAMPLES = """\
examples:
  penstock fit samples.parquet -o model.json --plot model.svg
  penstock fit samples.parquet -o model.json --train 1,2,3      # the other counts test the prediction
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("fit", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("samples", type=Path, metavar="SAMPLES", help="what `penstock measure` wrote")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="the model, as JSON")
    parser.add_argument("--train", type=counts, metavar="COUNTS", help="train on these worker counts only: 1,2,3")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw samples and curves as SVG")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of the resampling (0)")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    reads(options.samples)
    for path in filter(None, (options.out, options.plot)):
        writable(path)
    if options.plot and same_place(options.plot, options.out):
        raise BadInput(f"--plot {options.plot}: it is also the model's file; name another")
    measured = read_samples(options.samples)
    _need_measured(options.train or (), measured)
    fitted = fit_model(measured, options.train, options.seed)
    write_model(fitted.model, options.out)
    if options.plot:
        write_plot(options.plot, fitted, measured.samples)
    if options.output == "json":
        print(json.dumps(_record(fitted, measured), indent=1))
    else:
        _print(fitted, measured)
    return 0


def _need_measured(counts: tuple[int, ...], measured: Measured) -> None:
    for count in counts:
        if count not in measured.about.workers:
            known = some_of(map(str, measured.about.workers))
            raise BadInput(f"--train: {count} workers were not measured (measured: {known})")


def _record(fitted: Fitted, measured: Measured) -> dict[str, object]:
    return {
        "chosen": fitted.model.curve.kind,
        "fixed_s": asdict(fitted.model.fixed),
        "measure_next": fitted.measure_next,
        "flagged": measured.flagged,
        "fits": [
            {"kind": fit.curve.kind, "weights": weights(fit.curve)}
            | {key: getattr(fit, key) for key in ("rmse", "training", "validation", "test")}
            for fit in fitted.fits
        ],
    }


def _print(fitted: Fitted, measured: Measured) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model")
    for heading in ("training", "left out", "test"):
        table.add_column(heading, justify="right")
    table.add_column("weights")
    for fit in sorted(fitted.fits, key=lambda fit: fit.curve is not fitted.model.curve):
        chosen = " *" if fit.curve is fitted.model.curve else ""
        errors = [_percent(value) for value in (fit.training, fit.validation, fit.test)]
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in weights(fit.curve).items())
        table.add_row(fit.curve.kind + chosen, *errors, numbers)
    console = page()
    console.print(table)
    fixed = fitted.model.fixed
    console.print(f"a batch takes {fixed.base_s:.2f} s + {fixed.per_worker_s:.3f} s a worker before its first row")
    if measured.flagged:
        console.print(f"{measured.flagged} flagged samples were left out")
    console.print(f"measure next: {', '.join(map(str, fitted.measure_next))} workers")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
