"""What Spark writes: intermediate tables, and results that are one file under their final name."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from penstock.core.files import whole


def stored(rows: DataFrame, folder: Path) -> DataFrame:
    """The rows, computed once and kept on disk: later steps read these and not the source again."""
    rows.write.parquet(str(folder))
    return rows.sparkSession.read.schema(rows.schema).parquet(str(folder))


def write_series(series: DataFrame, output: Path, scratch: Path) -> None:
    """A rate series, in the order of time, as one Parquet file."""
    ordered = series.repartition(1).sortWithinPartitions("time")
    ordered.write.parquet(str(scratch / "series"))
    _move(scratch / "series", "part-*.parquet", output)


def write_lines(bad: DataFrame, output: Path, scratch: Path) -> None:
    """Bad lines as text: reason, file and line, separated by tabs."""
    text = bad.selectExpr("concat_ws('\t', reason, file, line) AS value")
    text.coalesce(1).write.text(str(scratch / "quarantine"))
    _move(scratch / "quarantine", "part-*.txt", output)


def _move(folder: Path, pattern: str, output: Path) -> None:
    with whole(output) as part:
        next(folder.glob(pattern)).replace(part)
