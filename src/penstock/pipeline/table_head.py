"""How a CSV or Parquet table begins."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core.csv_head import csv_head
from penstock.core.errors import BadInput
from penstock.core.first_cells import ROWS, Sample
from penstock.pipeline.head import PARQUET, Head
from penstock.sim.series_file import texts


@dataclass(frozen=True, slots=True)
class Table:
    """The first rows of a table, and how its lines are read."""

    format: str
    sample: Sample
    before: tuple[str, ...] = ()
    """The lines that are no rows: a header, and what declares a separator."""
    delimiter: str = ","


def table(begin: Head) -> Table:
    """The first rows of a CSV or Parquet file."""
    if begin.start.startswith(PARQUET):
        return _parquet(begin)
    found = csv_head(begin.lines, str(begin.path))
    return Table("csv", found.sample, found.before, found.delimiter)


def _parquet(begin: Head) -> Table:
    try:
        with pq.ParquetFile(begin.path) as file:
            batch = next(file.iter_batches(batch_size=ROWS), None)
            names = tuple(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{begin.path}: is not a whole Parquet file ({str(error).splitlines()[0][:120]})") from None
    columns = [[]] * len(names) if batch is None else [texts(column) for column in batch.columns]
    return Table("parquet", Sample.of(names, columns))
