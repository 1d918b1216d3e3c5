"""What a measured query reads: files, or a topic of Kafka, filled beforehand with more than it can consume."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.apps.app import App
from penstock.core.errors import WorldFailed

FILES = 8
ROWS_PER_FILE = 10_000


@dataclass(frozen=True, slots=True)
class FileFeed:
    """Eight files of rows, linked under as many names as are needed: a source that never runs dry costs no disk."""

    folder: Path
    bytes_per_row: float

    @classmethod
    def fill(cls, spark: SparkSession, app: App, folder: Path, seed: int) -> FileFeed:
        """Generate the rows, once for an app."""
        need_room(folder, 64e6)
        base = folder / "base"
        rows = app.generate(spark, FILES * ROWS_PER_FILE, seed).repartition(FILES)
        rows.write.mode("overwrite").text(str(base))
        sizes = [path.stat().st_size for path in base.glob("part-*.txt")]
        return cls(folder, sum(sizes) / (FILES * ROWS_PER_FILE))

    def stream(self, spark: SparkSession, name: str, batches: int, rows: int) -> DataFrame:
        """So many batches of about so many rows."""
        links = self.folder / name
        links.mkdir()
        parts = sorted((self.folder / "base").glob("part-*.txt"))
        per_batch = max(1, round(rows / ROWS_PER_FILE))
        for number in range(batches * per_batch):
            os.link(parts[number % len(parts)], links / f"{number:07}.txt")
        reader = spark.readStream.format("text").option("maxFilesPerTrigger", per_batch)
        return reader.load(str(links)).withColumn("timestamp", F.current_timestamp())


def need_room(folder: Path, size: float) -> None:
    free = shutil.disk_usage(folder).free
    if free < 2 * size:
        raise WorldFailed(f"{folder} has {free / 1e6:.0f} MB free: {2 * size / 1e6:.0f} MB are needed to preload")
