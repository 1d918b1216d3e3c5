"""What each alternate of our apps costs and is worth: seconds a row on one core, and what of the results it has."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.alternating import every_visitor
from penstock.apps.app import App, Variant
from penstock.apps.catalogue import APPS
from penstock.apps.cell_images import analysed, cells
from penstock.apps.images import Lines, messages_of
from penstock.pipeline.session import session

ROWS = {"patterns": 400_000, "visitors": 1_000_000, "images": 400}
REPEATS = 5


def main() -> None:
    with session("local[1]", "costs", {"spark.sql.shuffle.partitions": "4"}) as spark:
        print("| app | alternate | µs a row | cost, to the first | value | how its value was measured |")
        print("|---|---|---|---|---|---|")
        for name in ROWS:
            app = APPS[name]
            with tempfile.TemporaryDirectory() as folder:
                app.generate(spark, ROWS[name], 1).write.text(f"{folder}/rows")
                rows = spark.read.text(f"{folder}/rows").withColumn("timestamp", F.current_timestamp())
                took = costs(app, rows)
                worth = VALUES[name](rows)
            for variant, taken_s, (value, how) in zip(app.variants, took, worth, strict=True):
                figures = f"{1e6 * taken_s / ROWS[name]:.2f} | {taken_s / took[0]:.3f} | {value:.3f}"
                print(f"| {name} | {variant.name} | {figures} | {how} |", flush=True)


def costs(app: App, rows: DataFrame) -> list[float]:
    """Seconds, the middle of five rounds in which all take turns; what reading alone takes is not theirs."""
    lines = Lines.of([row[0] for row in rows.select("value").collect()]) if app.name == "images" else None

    def run(variant: Variant) -> None:
        if lines is not None:
            messages_of(lines, every=1 if variant.name == "full" else 2)
        else:
            variant.transform(rows).write.format("noop").mode("overwrite").save()

    taken: dict[str, list[float]] = {each.name: [] for each in app.variants}
    for _ in range(REPEATS + 1):
        for variant in app.variants:
            begun_s = time.monotonic()
            run(variant)
            taken[variant.name].append(time.monotonic() - begun_s)
    return [statistics.median(each[1:]) for each in taken.values()]


def worth_of_patterns(rows: DataFrame) -> Sequence[tuple[float, str]]:
    totals = [
        float(each.transform(rows).agg(F.sum("count")).first()[0])  # type: ignore[index]
        for each in APPS["patterns"].variants
    ]
    return [(total / totals[0], "matches that are counted, of all") for total in totals]


def worth_of_visitors(rows: DataFrame) -> Sequence[tuple[float, str]]:
    truth = {row["site"]: row["visitors"] for row in every_visitor(rows).collect()}
    found = []
    for variant in APPS["visitors"].variants:
        told = {row["site"]: row["visitors"] for row in variant.transform(rows).collect()}
        off = statistics.fmean(abs(told[site] / count - 1) for site, count in truth.items())
        found.append((1 - off, f"1 − mean error of a site's count, of {statistics.fmean(truth.values()):.0f}"))
    return found


def worth_of_images(rows: DataFrame) -> Sequence[tuple[float, str]]:
    images = Lines.of([row[0] for row in rows.select("value").collect()]).images
    counts = []
    for every in (1, 2):
        each = [analysed(cells(side, count, seed)[::every, ::every])[0] for _, side, count, seed in images]
        counts.append(np.array(each, dtype=float))
    off = np.abs(counts[1] - counts[0]).sum() / counts[0].sum()
    return [(1.0, "by definition"), (1 - float(off), "1 − mean difference of an image's cells to the full count")]


VALUES: dict[str, Callable[[DataFrame], Sequence[tuple[float, str]]]] = {
    "patterns": worth_of_patterns,
    "visitors": worth_of_visitors,
    "images": worth_of_images,
}


if __name__ == "__main__":
    main()
