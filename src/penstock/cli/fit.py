"""`penstock fit`: from measured samples to a capacity model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from penstock.cli.json_output import as_json
from penstock.cli.numbers import counts, real, seed, shown
from penstock.cli.progress import page
from penstock.core.errors import BadInput
from penstock.core.files import reads, same_place, writable
from penstock.core.text import some_of
from penstock.models.advice import doubts
from penstock.models.capacity import weights, write_model
from penstock.models.curve_fitting import KINDS, LEAVE_ONE_OUT, VALIDATION, Fitted, Selection, fit_model
from penstock.models.samples import Measured, read_samples
from penstock.report.fitpage import write_plot

ABOUT = """\
Fit throughput against workers: the two models of paper 1 (inverse time, quadratic), a line, and the
universal scalability law. The one with the lowest error on worker counts it has not seen is kept,
with the fixed time of a batch, and with intervals from resampled measurements where each count was
measured more than once. Rates and errors are those of throughput as delivered; errors on samples
corrected for the machine's speed stand beside them, where it was measured.
--select validation chooses as paper 1 does: train on --train, and compare the models where they part by
10 % (Algorithm 1, eq 13 for more than two), on samples of those counts.
"""
EXAMPLES = """\
examples:
  penstock fit samples.parquet -o model.json --plot model.svg
  penstock fit samples.parquet -o model.json --train 1,2,3      # the other counts test the prediction
  penstock fit samples.parquet -o model.json --train 1,2,3 --select validation --models inverse-time,quadratic
  penstock fit samples.parquet -o model.json --under-weight 4   # rather too many workers than too few
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("fit", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("samples", type=Path, metavar="SAMPLES", help="what `penstock measure` wrote")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="the model, as JSON")
    parser.add_argument("--train", type=counts, metavar="COUNTS", help="train on these worker counts only: 1,2,3")
    parser.add_argument("--select", choices=(LEAVE_ONE_OUT, VALIDATION), default=LEAVE_ONE_OUT, help="(leave-one-out)")
    parser.add_argument("--models", type=_kinds, default=KINDS, metavar="KINDS", help=f"of {', '.join(KINDS)} (all)")
    help_ = "how much more an error weighs where a model promises too much (1)"
    parser.add_argument("--under-weight", type=real(1, 1000), default=1.0, metavar="W", help=help_)
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
    selection = Selection(options.select, options.under_weight, options.models)
    fitted = fit_model(measured, options.train, options.seed, selection)
    write_model(fitted.model, options.out)
    if options.plot:
        write_plot(options.plot, fitted, measured.samples)
    if options.output == "json":
        print(as_json(_record(fitted, measured)))
    else:
        _print(fitted, measured)
    return 0


def _need_measured(counts: tuple[int, ...], measured: Measured) -> None:
    for count in counts:
        if count not in measured.about.workers:
            known = some_of(map(str, measured.about.workers))
            raise BadInput(f"--train: {count} workers were not measured (measured: {known})")


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for kind in kinds:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"{shown(kind)} is no model: there are {', '.join(KINDS)}")
    return kinds


def _record(fitted: Fitted, measured: Measured) -> dict[str, object]:
    return {
        "chosen": fitted.model.curve.kind,
        "fixed_s": asdict(fitted.model.fixed),
        "measure_next": fitted.measure_next,
        "validated_on": fitted.validated_on,
        "has_confidence": bool(fitted.model.others),
        "flagged": measured.flagged,
        "unsettled": fitted.model.about.unsettled,
        "short": fitted.model.about.short,
        "limited": fitted.model.about.limited,
        "fits": [
            {"kind": fit.curve.kind, "weights": weights(fit.curve)}
            | asdict(fit.errors)
            | {"corrected": fit.corrected and asdict(fit.corrected)}
            for fit in fitted.fits
        ],
    }


def _print(fitted: Fitted, measured: Measured) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model")
    columns = {"training": "training", "left out": "left_out", "validation": "validation", "test": "test"}
    if not fitted.validated_on:
        del columns["validation"]
    for heading in columns:
        table.add_column(heading, justify="right")
    for heading in ("left out, corrected", "test, corrected") if measured.corrected else ():
        table.add_column(heading, justify="right")
    table.add_column("weights")
    for fit in sorted(fitted.fits, key=lambda fit: fit.curve is not fitted.model.curve):
        chosen = " *" if fit.curve is fitted.model.curve else ""
        errors = [_percent(getattr(fit.errors, key)) for key in columns.values()]
        if fit.corrected:
            errors += [_percent(fit.corrected.left_out), _percent(fit.corrected.test)]
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in weights(fit.curve).items())
        table.add_row(fit.curve.kind + chosen, *errors, numbers)
    page().print(table)
    for line in _notes(fitted, measured):
        page().print(line, soft_wrap=True)


def _notes(fitted: Fitted, measured: Measured) -> Iterator[str]:
    model = fitted.model
    fixed = model.fixed
    yield f"a batch takes {fixed.base_s:.2f} s + {fixed.per_worker_s:.3f} s a worker before its first row"
    if not model.others:
        yield "no confidence interval: one sample per count; measure with --repeat 3"
    if measured.flagged:
        yield f"{measured.flagged} flagged samples were left out"
    yield from doubts(model.about)
    yield f"measure next: {', '.join(map(str, fitted.measure_next))} workers"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
