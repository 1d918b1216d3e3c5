"""`penstock demo`: from a measurement and a raw log to a report, on data of its own."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from penstock.cli.measure import as_table as as_samples
from penstock.cli.numbers import seed
from penstock.cli.progress import bar, page
from penstock.core.files import own_folder, whole
from penstock.core.units import show_duration
from penstock.models.advice import doubts
from penstock.models.capacity import Capacity, write_model
from penstock.models.curve_fitting import fit_model
from penstock.models.samples import read_samples
from penstock.policies.registry import Named
from penstock.report.comparison_table import as_json, as_table
from penstock.report.page import write_page
from penstock.runs.compare import Outputs, compare
from penstock.runs.comparison import Comparison
from penstock.sim.accesslog import write_access_log
from penstock.sim.derive import START_S, Given, World
from penstock.sim.series import read_series
from penstock.sim.specs import BatchSpec, WorkerSpec
from penstock.sim.toml import ScenarioFile
from penstock.sim.workloads import FlashCrowd, Jitter, Load, Sine, make_load

DAY_S = 86400.0
BEGIN = datetime(2024, 5, 6, tzinfo=UTC)
# Beside the plain thresholds, the same with guards: the calm that a first user should see.
CALM = "threshold:down_window_s=15m,cooldown_s=5m"
POLICIES = ("static-peak", "static-average", "threshold", CALM, "mst", "filtered", "deadline", "clairvoyant")

ABOUT = """\
The main job, on an embedded default: measures how much word count can take on a real Spark cluster of
1 and 2 workers (each a quarter of a core), fits a model, generates a raw access log (four days, a
daily cycle, noise and one flash crowd), turns it into a rate series with Spark, replays it through all
policies on workers like those measured, and writes a report. Needs nothing but Java; about 3 minutes.
"""
PEAK_WORKERS = 8
UNLIMITED = f"""\
   without the right to make cgroups the workers were not limited to a quarter of a core: each had a whole one, less
   what the driver took. {PEAK_WORKERS} of them stand for {PEAK_WORKERS} such cores, which nobody measured here:
   take the replay as an example, or measure as root"""
TRIGGER_S = 10.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("demo", description=ABOUT, formatter_class=form)
    parser.add_argument("--folder", type=Path, default=Path("demo-output"), metavar="DIR", help="(demo-output)")
    parser.add_argument("--seed", type=seed, default=1, metavar="N")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    folder = own_folder(options.folder, "a demo's output")
    report = folder / "report.html"
    model = _measure(folder)
    rates = _count(folder, options.seed)
    comparison = _replay(folder, rates, model)
    page().print(f"4. {len(POLICIES)} policies replayed it on such workers:\n", as_table(comparison))
    write_page(report, comparison)
    with whole(folder / "comparison.json") as scratch:
        scratch.write_text(as_json(comparison) + "\n", encoding="utf-8")
    page().print(f"\n5. the report: {report}", soft_wrap=True)
    return 0


def _measure(folder: Path) -> Capacity:
    """What 1 and 2 workers can take, on a real cluster; and the model of it."""
    from penstock.apps.catalogue import APPS
    from penstock.live.meter import measure
    from penstock.live.meter_plan import MeterPlan

    samples, path = folder / "samples.parquet", folder / "model.json"
    samples.unlink(missing_ok=True)  # each demo measures anew
    with bar("measuring word count", total=1.0) as progress:
        rows = measure(APPS["wordcount"], MeterPlan(workers=(1, 2), repeat=1, quick=True), samples, progress)
    page().print(f"1. word count, measured on a cluster of our own ({samples}):\n", as_samples(rows, TRIGGER_S))
    fitted = fit_model(read_samples(samples))
    write_model(fitted.model, path)
    sustained = fitted.model.sustainable(PEAK_WORKERS, TRIGGER_S)
    words = f"{PEAK_WORKERS} workers would sustain {sustained:,.0f} rows/s, extrapolated from 1 and 2 ({path})"
    page().print(f"\n2. a model of it ({fitted.model.curve.kind}): {words}", soft_wrap=True)
    if fitted.model.about.limited is False:
        page().print(UNLIMITED, soft_wrap=True)
    for doubt in doubts(replace(fitted.model.about, limited=None)):
        page().print(f"   {doubt}", soft_wrap=True)
    return fitted.model


def _count(folder: Path, seed: int) -> Path:
    """A raw log, and its arrivals per minute."""
    from penstock.pipeline.request import TraceRequest
    from penstock.pipeline.trace_job import make_trace

    log, rates = folder / "access.log", folder / "rates.parquet"
    with bar("generating a log") as progress:
        lines = write_access_log(demo_load(seed), log, BEGIN, seed)
        progress(1)
    with bar("counting arrivals (Spark)", total=1.0) as progress:
        summary = make_trace(TraceRequest(log, rates), progress)
    length = show_duration(summary.intervals * summary.every_s)
    size = f"{lines:,} requests, {log.stat().st_size / 1e6:.0f} MB"
    counted = f"counted per minute by Spark: {length}, peak {summary.peak_rate:.1f}/s ({rates})"
    page().print(f"3. a raw log of {size}, {counted}", soft_wrap=True)
    return rates


def _replay(folder: Path, rates: Path, model: Capacity) -> Comparison:
    """The log's load, scaled so that its peak needs eight such workers, through every policy."""
    series = read_series(rates)
    scale = model.sustainable(PEAK_WORKERS, TRIGGER_S) / series.peak
    batches = ScenarioFile(worker=WorkerSpec(start_s=START_S), batch=BatchSpec(TRIGGER_S))
    world = World("the demo's access log", Given(capacity=model, scale=scale), batches, series)
    with bar("replaying", total=1.0) as progress:
        return compare(world.scenario(), [Named.parse(name) for name in POLICIES], Outputs(folder, progress))


def demo_load(seed: int) -> Load:
    """Four days of a small site, and a crowd on the third evening."""
    crowd = FlashCrowd(peak=6.0, at_s=2.8 * DAY_S, rise_s=600.0, fade_s=2400.0)
    return make_load((Sine(0.3, 2.0), Jitter(0.15, 1800.0), crowd), 4 * DAY_S, 60.0, seed)
