"""Any independent runs as one Spark job: a cell is a record, so is its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.pipeline.python import use_this_python
from penstock.pipeline.session import session
from penstock.pipeline.watch import watched

Record = dict[str, Any]
_SCHEMA = pa.schema([("result", pa.string())])


def run_cells(
    cells: Sequence[Record], run: Callable[[Record], Record], done: Callable[[float], None] | None = None
) -> list[Record]:
    """The result of each cell, in the order of the cells. `run` is a function of a module, so that it can travel."""

    def results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                found = {"number": row["number"], "result": run(json.loads(row["cell"]))}
                yield pa.RecordBatch.from_pylist([{"result": json.dumps(found)}], _SCHEMA)

    with session(None, "penstock cells") as spark, watched(spark, done):
        use_this_python(spark)
        context = spark.sparkContext
        rows = [(number, json.dumps(cell)) for number, cell in enumerate(cells)]
        tasks = max(1, min(len(rows), max(2 * context.defaultParallelism, len(rows) // 4)))
        frame = spark.createDataFrame(context.parallelize(rows, tasks), "number long, cell string")
        found = [json.loads(row["result"]) for row in frame.mapInArrow(results, "result string").collect()]
    return [each["result"] for each in sorted(found, key=lambda each: each["number"])]
