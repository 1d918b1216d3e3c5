"""Paper 1 on this machine: measure six apps with 1 to 5 workers, train on 1, 2, 3, predict 4 and 5. About 4 hours.

Samples lie in `bench-mst/` as they are made, two for each count, so an interrupted run goes on where it stopped. The
end of it writes `docs/measured.md` and the samples that `penstock reproduce mst` reads. `--page` measures nothing: it
writes the page from the samples that are committed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mst_page import Measurement, agreement, cost_of, page
from penstock.apps.catalogue import APPS
from penstock.live.meter import measure
from penstock.live.meter_plan import MeterPlan
from penstock.models.samples import is_reconstructed, read_rows, write_samples
from penstock.reproduce.mst_measured import MEASURED

FOLDER = Path("bench-mst")
PAGE = Path("docs/measured.md")
NAMES = ("wordcount", "grep", "rolling-count", "page-view", "data-clean", "unique-visitor")
COUNTS = (1, 2, 3, 4, 5)
REPEATS = 2


@dataclass(frozen=True, slots=True)
class Run:
    """One app from one source."""

    app: str
    source: str = "files"
    label: str = ""
    workers: tuple[int, ...] = COUNTS

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.app}-{self.source}{self.label}.parquet"


RUNS = (*map(Run, NAMES), Run("wordcount", "kafka"))
AGAIN = tuple(Run("wordcount", label=label, workers=(2,)) for label in ("-again", "-again-2"))


def main(*options: str) -> None:
    lines = page(measurements(read_rows(MEASURED)), is_reconstructed(MEASURED))
    if options != ("--page",):
        FOLDER.mkdir(exist_ok=True)
        costs = [cost for run in (*RUNS, *AGAIN) if (cost := measured(run)) is not None]
        rows = [row for run in RUNS for row in read_rows(run.path)]
        lines = [*page(measurements(rows), False), *agreement(*(read_rows(run.path) for run in AGAIN)), *cost_of(costs)]
        write_samples(rows, MEASURED)
    print("\n".join(lines))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measurements(rows: list[dict[str, Any]]) -> list[Measurement]:
    """The samples of each app and source, in the order of the page."""
    return [
        Measurement(run.app, run.source, [r for r in rows if (r["app"], r["source"]) == (run.app, run.source)])
        for run in RUNS
    ]


class Cost:
    """CPU of the meter itself while batches run: it is told of progress once a second, and not while it preloads."""

    def __init__(self) -> None:
        self.cpu_s = self.wall_s = 0.0
        self._last = (0.0, 0.0)

    def tell(self, _share: float, _doing: str) -> None:
        now = (time.monotonic(), time.process_time())
        passed_s = now[0] - self._last[0]
        if passed_s < 1.5:
            self.wall_s += passed_s
            self.cpu_s += now[1] - self._last[1]
        self._last = now


def measured(run: Run) -> float | None:
    """Measure what is missing; returns the share of a core that the meter itself took, if it ran."""
    begun, cost = time.monotonic(), Cost()
    had = len(read_rows(run.path)) if run.path.exists() else 0
    rows = measure(APPS[run.app], MeterPlan(run.workers, repeat=REPEATS, source=run.source), run.path, cost.tell)
    if len(rows) == had:
        return None
    print(f"{run.path.stem}: {len(rows) - had} samples in {time.monotonic() - begun:.0f} s", flush=True)
    return cost.cpu_s / cost.wall_s
