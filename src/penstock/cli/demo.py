"""`penstock demo`: from a raw log to a report, on data of its own."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from penstock.cli.progress import bar, page
from penstock.cli.replay import ALL
from penstock.core.units import show_duration
from penstock.policies.naming import Named
from penstock.report.compare import Outputs, compare
from penstock.report.page import write_page
from penstock.report.tables import as_table
from penstock.sim.accesslog import write_access_log
from penstock.sim.derive import Given, World
from penstock.sim.series import read_series
from penstock.sim.workloads import FlashCrowd, Jitter, Load, Sine, make_load

DAY_S = 86400.0
BEGIN = datetime(2024, 5, 6, tzinfo=UTC)
# Beside the plain thresholds, the same with guards: the calm that a first user should see.
POLICIES = (*ALL[:3], "threshold:down_window_s=15m,cooldown_s=5m", *ALL[3:])

ABOUT = """\
The main job, on an embedded default: generates a raw access log (four days, tens of MB, a daily
cycle, noise and one flash crowd), turns it into a rate series with Spark, replays it through all
policies, and writes a report. Needs nothing but Java.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("demo", description=ABOUT, formatter_class=form)
    parser.add_argument("--folder", type=Path, default=Path("demo-output"), metavar="DIR", help="(demo-output)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.pipeline.request import TraceRequest
    from penstock.pipeline.trace import make_trace

    say, folder = page(), options.folder
    folder.mkdir(parents=True, exist_ok=True)
    log, rates, report = folder / "access.log", folder / "rates.parquet", folder / "report.html"
    with bar("generating a log") as progress:
        lines = write_access_log(demo_load(options.seed), log, BEGIN, options.seed)
        progress(1)
    say.print(f"1. a raw log: {lines:,} requests, {log.stat().st_size / 1e6:.0f} MB ({log})", soft_wrap=True)
    with bar("counting arrivals (Spark)", total=1.0) as progress:
        summary = make_trace(TraceRequest(log, rates), progress)
    length = show_duration(summary.intervals * summary.every_s)
    say.print(f"2. Spark counted them per minute: {length}, peak {summary.peak_rate:.1f}/s ({rates})", soft_wrap=True)
    with bar("replaying", total=1.0) as progress:
        scenario = World.of_series("the demo's access log", read_series(rates), Given()).scenario()
        journals = Outputs(folder, progress)
        comparison = compare(scenario, [Named.parse(name) for name in POLICIES], journals)
    say.print(f"3. {len(POLICIES)} policies replayed it:\n", as_table(comparison))
    write_page(report, comparison)
    say.print(f"\n4. the report: {report}", soft_wrap=True)
    return 0


def demo_load(seed: int) -> Load:
    """Four days of a small site, and a crowd on the third evening."""
    crowd = FlashCrowd(peak=6.0, at_s=2.8 * DAY_S, rise_s=600.0, fade_s=2400.0)
    return make_load((Sine(0.3, 2.0), Jitter(0.15, 1800.0), crowd), 4 * DAY_S, 60.0, seed)
