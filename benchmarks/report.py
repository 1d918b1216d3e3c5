"""What a report costs: curves within a replay, the size of the page, and how long a browser takes to draw it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from penstock.core.loop import Step
from penstock.core.score import Scorer
from penstock.policies.registry import Named
from penstock.report.page import write_page
from penstock.runs.compare import compare
from penstock.runs.replayed import replay
from penstock.runs.run_curves import Curves
from penstock.sim.scenario import Scenario
from penstock.sim.specs import WorkerSpec
from penstock.sim.workloads import Jitter, Sine, make_load

DAYS = 90
STEPS_TIMED = 20_000
CURVES_S, PAGE_BYTES, OPEN_S = 4e-6, 1_000_000, 1.0
POLICIES = ("static-peak", "static-average", *(f"threshold:upper={upper}" for upper in (0.6, 0.7, 0.8, 0.9)))
SWITCHES = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


def main() -> None:
    load = make_load((Sine(200.0, 2500.0), Jitter(0.1, 300.0)), DAYS * 86400.0, 60.0, seed=1)
    scenario = replace(Scenario.constant(1.0, 50.0), load=load, worker=WorkerSpec(start_s=90.0))
    curves_s, score_s = timed(scenario)
    print(f"curves  {curves_s * 1e6:.2f} µs a step, {1 / curves_s:,.0f} steps/s ({CURVES_S / curves_s:.2f} × target)")
    print(f"        {curves_s / score_s:.2f} of what the score takes")
    comparison = compare(scenario, [Named.parse(name) for name in POLICIES])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        begun = time.perf_counter()
        write_page(path, comparison)
        written_s, size = time.perf_counter() - begun, path.stat().st_size
        what = f"{len(POLICIES)} policies over {len(load.arrivals):,} steps"
        print(
            f"page    {size / 1e3:,.0f} kB for {what} ({size / PAGE_BYTES:.2f} of 1 MB), written in {written_s:.2f} s"
        )
        opened_s = open_times(path)
    if opened_s:
        best_s = min(opened_s)
        print(f"drawn   {best_s:.2f} s after navigation ({best_s / OPEN_S:.2f} of 1 s), best of {len(opened_s)}")
    else:
        print("drawn   not measured: no chromium here")


def timed(scenario: Scenario) -> tuple[float, float]:
    """Seconds a step for the curves and for the score, on the same steps: the best of three."""
    named = Named.parse("threshold")
    steps = [step for step, _ in zip(replay(scenario, named.build(scenario.job())), range(STEPS_TIMED), strict=False)]
    curves_s = min(seconds(Curves(scenario.objective), steps) for _ in range(3))
    return curves_s, min(seconds(Scorer(scenario.objective, scenario.price), steps) for _ in range(3))


def seconds(taker: Curves | Scorer, steps: Sequence[Step]) -> float:
    begun = time.perf_counter()
    for step in steps:
        taker.add(step)
    return (time.perf_counter() - begun) / len(steps)


def open_times(path: Path, times: int = 3) -> list[float]:
    """From navigation until all is drawn, in a fresh browser context each."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(SWITCHES))
        found = []
        for _ in range(times):
            page = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True).new_page()
            begun = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-drawn=yes]")
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            found.append(time.perf_counter() - begun)
        browser.close()
        return found
