"""Paper 1 on this machine: measure six apps with 1 to 5 workers, train on 1, 2, 3, predict 4 and 5. About 100 minutes.

Samples lie in `bench-mst/` as they are made, so an interrupted run goes on where it stopped. The end of it writes
`docs/measured.md` and the samples that `penstock reproduce mst` reads.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.apps.catalogue import APPS
from penstock.live.meter import measure
from penstock.live.meter_plan import MeterPlan
from penstock.models.capacity import Capacity
from penstock.models.curve_fitting import fit_model
from penstock.models.samples import read_rows, read_samples, write_samples
from penstock.reproduce.mst_measured import MEASURED, TRAINED, TRIGGER_S, sustained

FOLDER = Path("bench-mst")
PAGE = Path("docs/measured.md")
NAMES = ("wordcount", "grep", "rolling-count", "page-view", "data-clean", "unique-visitor")
COUNTS = (1, 2, 3, 4, 5)


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


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    costs = [cost for run in (*RUNS, *AGAIN) if (cost := measured(run)) is not None]
    lines = page(costs)
    print("\n".join(lines))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_samples([row for run in RUNS for row in read_rows(run.path)], MEASURED)


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
    rows = measure(APPS[run.app], MeterPlan(run.workers, repeat=1, source=run.source), run.path, cost.tell)
    if len(rows) == had:
        return None
    print(f"{run.path.stem}: {len(rows) - had} samples in {time.monotonic() - begun:.0f} s", flush=True)
    return cost.cpu_s / cost.wall_s


def page(costs: list[float]) -> list[str]:
    errors: list[tuple[Run, np.ndarray[Any, Any]]] = []
    rows = []
    for run in RUNS:
        model = fit_model(read_samples(run.path), TRAINED).model
        truth = truth_of(run.path)
        rows += [row(run, workers, truth, model) for workers in COUNTS]
        errors.append((run, np.array([abs(mst(model, m) / truth[m] - 1) for m in COUNTS])))
    return [*HEAD, *rows, "", *summary(errors), *agreement(), *cost(costs)]


def mst(model: Capacity, workers: int) -> float:
    return model.sustainable(workers, TRIGGER_S)


def truth_of(path: Path) -> dict[int, float]:
    """What was measured, as the MST of a trigger of ten seconds."""
    return {row["workers"]: sustained(row) for row in read_rows(path)}


def row(run: Run, workers: int, truth: dict[int, float], model: Capacity) -> str:
    size = (model.about.bytes_per_row or 0.0) / 1e6
    error = mst(model, workers) / truth[workers] - 1
    trained = "trained" if workers in TRAINED else "**predicted**"
    sample = next(each for each in read_rows(run.path) if each["workers"] == workers)
    cells = (
        run.app,
        run.source,
        str(workers),
        f"{truth[workers]:,.0f}",
        f"{truth[workers] * size:.2f}",
        f"{sample['fixed_s']:.2f}",
    )
    return (
        f"| {' | '.join(cells)} | {mst(model, workers) * size:.2f} | {error:+.1%} | {trained} | {sample['speed']:.0%} |"
    )


def summary(errors: list[tuple[Run, np.ndarray[Any, Any]]]) -> list[str]:
    lines = ["| app | source | paper's way: all counts | extrapolated: 4 and 5 |", "|---|---|---|---|"]
    for run, each in errors:
        lines.append(f"| {run.app} | {run.source} | {each.mean():.1%} | {each[len(TRAINED) :].mean():.1%} |")
    ours = [each for run, each in errors if run.source == "files"]
    beyond = [each[len(TRAINED) :].mean() for each in ours]
    every = [each.mean() for each in ours]
    lines += [
        "",
        f"Six apps from files, extrapolated: mean {np.mean(beyond):.1%}, worst {max(beyond):.1%} (asked: 10 %, 20 %).",
    ]
    return [
        *lines,
        f"In the paper's way: mean {np.mean(every):.1%}, worst {max(every):.1%} (the paper: up to 15.8 %).",
        "",
    ]


def agreement() -> list[str]:
    """The clusters of two runs of their own are as warm as each other; the one of the table has run for longer."""
    one, two = (truth_of(run.path)[2] for run in AGAIN)
    table = truth_of(RUNS[0].path)[2]
    return [
        f"Word count with 2 workers, measured twice in runs of their own: {one:,.0f} and {two:,.0f} rows/s,"
        f" {abs(one / two - 1):.1%} apart (asked: 10 %).",
        f"The table's {table:,.0f} is {abs(2 * table / (one + two) - 1):.1%} from their mean, most likely because it"
        " came after 5, 4 and 3 workers, on executors and a driver that had compiled for ten minutes more.",
    ]


def cost(costs: list[float]) -> list[str]:
    return [f"The meter took {max(costs):.2%} of a core while batches ran (asked: 1 %)."] if costs else []


HEAD = (
    "# Measured: maximum sustainable throughput of six apps",
    "",
    "Made by `scripts/bench mst` on a machine of 2 cores: a Spark cluster of 1 to 5 workers of a quarter of a core",
    "each, two partitions for each worker, one sample for each count. MST is for a trigger of 10 s: capacity ·",
    "(1 − fixed / 10 s). The machine is shared: beside each sample its speed was measured (the last column, as a share",
    "of its best), and the sample corrected for it. The model is trained on 1, 2 and 3 workers alone, its curve chosen",
    "by the error on counts left out, and then asked for all five.",
    "",
    "| app | source | workers | MST rows/s | MST MB/s | fixed s | model MB/s | error | | machine |",
    "|---|---|---|---|---|---|---|---|---|---|",
)
