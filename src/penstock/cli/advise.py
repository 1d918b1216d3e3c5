"""`penstock advise`: how many workers for a rate?"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from penstock.cli.json_output import as_json
from penstock.cli.numbers import real, workers
from penstock.cli.progress import page
from penstock.core.objective import Price
from penstock.core.units import duration_s, rows_per_second
from penstock.models.advice import Advice, Need, advise
from penstock.models.capacity import read_model

ABOUT = """\
The fewest workers that sustain a rate, as sure as you ask, from a model that `penstock fit` made:
with the capacity and headroom, the price, the maxOffsetsPerTrigger to set, and what another trigger
would change. Rates are what the workers delivered when they were measured; a confidence is told only
where each worker count was measured more than once.
"""
EXAMPLES = """\
examples:
  penstock advise model.json --rate 40MB/s
  penstock advise model.json --rate 5000/s --trigger 30s --confidence 0.99 --price 0.20/h
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("advise", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("model", type=Path, metavar="MODEL", help="what `penstock fit` wrote")
    parser.add_argument("--rate", required=True, metavar="RATE", help="40MB/s (MB = 10^6 bytes), or 5000/s")
    parser.add_argument("--trigger", default="10s", metavar="TIME", help="of the job (10s)")
    parser.add_argument("--confidence", type=real(0.5, 0.999), default=0.95, metavar="SHARE", help="(0.95)")
    parser.add_argument("--max", type=workers, default=128, metavar="N", help="most workers (128)")
    parser.add_argument("--price", default="0.10/h", metavar="PRICE", help="of a worker (0.10/h)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    model = read_model(options.model)
    rate = rows_per_second(options.rate, model.about.bytes_per_row, "--rate")
    trigger_s = duration_s(options.trigger, "--trigger", least_s=1e-3)
    advice = advise(model, Need(rate, trigger_s, options.confidence, options.max))
    per_hour = Price.parse(options.price).per_hour * advice.workers
    if options.output == "json":
        print(as_json(asdict(advice) | {"cost_per_hour": per_hour}))
    else:
        _print(advice, per_hour, options.confidence, model.about.bytes_per_row)
    return 0


def _print(advice: Advice, per_hour: float, confidence: float, bytes_per_row: float | None) -> None:
    def shown(rows: float) -> str:
        return f"{rows:,.0f} rows/s" + (f" ({rows * bytes_per_row / 1e6:.1f} MB/s)" if bytes_per_row else "")

    out = page()
    out.print(f"{advice.workers} workers for {shown(advice.rate)}, {per_hour:.2f} an hour", style="bold")
    out.print(f"  they sustain {shown(advice.capacity)}, as delivered when measured: headroom {advice.headroom:.0%}")
    if advice.capacity_low is not None:
        out.print(f"  with {confidence:.0%} confidence at least {shown(advice.capacity_low)}")
    out.print(f"  maxOffsetsPerTrigger {advice.max_offsets_per_trigger:,} for a trigger of {advice.trigger_s:g} s")
    others = ", ".join(f"{t:g} s: {n if n else 'none suffice'}" for t, n in advice.other_triggers.items())
    out.print(f"  workers with another trigger: {others}")
    for warning in advice.warnings:
        out.print(f"  warning: {warning}")
