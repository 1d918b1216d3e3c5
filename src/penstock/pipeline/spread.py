"""One function on many items, as one Spark job: for work that is Python and takes seconds an item."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from penstock.pipeline.session import session
from penstock.pipeline.sweep_job import prepare
from penstock.pipeline.watch import watched

Item = TypeVar("Item")
Result = TypeVar("Result")


def spread(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    master: str | None = None,
    done: Callable[[float], None] | None = None,
    per_task: int = 1,
) -> list[Result]:
    """What `work` makes of each item, in their order; both must be of this package, or pickle by value."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-") as folder,
        session(master, "penstock spread") as spark,
        watched(spark, done),
    ):
        prepare(spark, (), Path(folder))
        tasks = max(1, -(-len(items) // per_task))
        found: list[Result] = spark.sparkContext.parallelize(items, tasks).map(work).collect()
    return found
