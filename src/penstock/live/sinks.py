"""Where the results of `penstock run` go, and how often each of them arrives there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.apps.app import load_module
from penstock.core.errors import BadInput
from penstock.core.text import one_line
from penstock.live.kafka import KafkaSource

CHOICES = "parquet:DIR, json:DIR, kafka:TOPIC, console, noop, module:function (a foreachBatch), or app (it writes)"
_FILES = ("parquet", "json")
# What Spark's file sink keeps of what it wrote: batches that are in it are not written again.
_WRITTEN = "_spark_metadata"
_ARRIVES = {
    # Files of a batch that was cut short stay where they are; Spark does not read them, another reader might.
    "parquet": "every row exactly once, as Spark reads it",
    "json": "every row exactly once, as Spark reads it",
    "kafka": "every row at least once: after a failure some come twice",
    "foreachBatch": "every batch at least once: after a failure one comes twice, with the same number",
    "console": "shown, and kept nowhere",
    "noop": "computed, and thrown away",
    "app": "written by the app itself, as it says",
}


@dataclass(frozen=True, slots=True)
class Sink:
    """A place for results.

    >>> Sink.parse("parquet:out/")
    Sink(kind='parquet', place='out')
    >>> print(Sink.parse("noop"))
    noop: computed, and thrown away
    """

    kind: str
    place: str = ""

    @classmethod
    def parse(cls, text: str) -> Sink:
        kind, colon, place = text.partition(":")
        if kind in ("console", "noop", "app") and not colon:
            return cls(kind)
        if kind in (*_FILES, "kafka") and place:
            return cls(kind, str(Path(place)) if kind in _FILES else place)
        if colon and place.isidentifier() and kind not in _ARRIVES:
            return cls("foreachBatch", text)
        raise BadInput(f"--to {one_line(text, 80)}: write {CHOICES}")

    @property
    def is_kept(self) -> bool:
        """Do results stay there? Then a restart must know what was written."""
        return self.kind not in ("console", "noop", "app")

    @property
    def folder(self) -> Path | None:
        return Path(self.place).absolute() if self.kind in _FILES else None

    @property
    def checkpoint(self) -> Path | None:
        """Beside a folder of results, where none was named."""
        return self.folder.with_name(f"{self.folder.name}.checkpoint") if self.folder else None

    def __str__(self) -> str:
        where = f"{self.kind}:{self.place}" if self.kind in (*_FILES, "kafka") else self.place or self.kind
        return f"{where}: {_ARRIVES[self.kind]}"

    def check(self, checkpoint: Path | None, mode: str) -> None:
        """Refuse what would lose rows, write them again, or spoil somebody's files; before anything starts."""
        if self.is_kept and checkpoint is None:
            raise BadInput(f"--to {self.kind} needs --checkpoint DIR: without it a restart writes everything again")
        if self.kind == "foreachBatch":
            self.function()
        if self.folder is None:
            return
        if mode != "append":
            raise BadInput(
                f"--to {self.kind} takes rows that never change, and the app's output mode is {mode}: give "
                "--output-mode append (an aggregation then needs a watermark), or another sink"
            )
        _check_folder(self.folder, checkpoint)

    def writer(self, result: DataFrame, kafka: KafkaSource | None) -> DataStreamWriter:
        """The results on their way there."""
        if self.kind == "foreachBatch":
            return result.writeStream.foreachBatch(self.function())
        if self.kind == "kafka":
            assert kafka is not None
            target = KafkaSource(kafka.address, self.place, kafka.options)
            return _as_messages(result).writeStream.format("kafka").options(**target.writer_options())
        writer = result.writeStream.format(self.kind)
        return writer.option("path", str(self.folder)) if self.folder else writer

    def function(self) -> Callable[[DataFrame, int], None]:
        """The user's own: `def write(batch, number)`."""
        module_name, _, name = self.place.partition(":")
        found = getattr(load_module(module_name), name, None)
        if not callable(found):
            raise BadInput(f"--to {self.place}: {module_name} has no function '{name}(batch, number)'")
        return cast(Callable[[DataFrame, int], None], found)


def _check_folder(folder: Path, checkpoint: Path | None) -> None:
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--to {folder}: it is a file, and results are a folder of files")
    has_written = (folder / _WRITTEN).is_dir()
    if folder.is_dir() and any(folder.iterdir()) and not has_written:
        raise BadInput(f"--to {folder}: there are files in it that no such job wrote; name a new folder")
    has_begun = checkpoint is not None and (checkpoint / "metadata").exists()
    # Spark leaves out batches whose numbers are written already: with another checkpoint, their rows would be lost.
    if has_written and not has_begun:
        raise BadInput(
            f"--to {folder}: it has results of another checkpoint than {checkpoint}; name that, or a new folder"
        )
    if has_begun and not has_written:
        raise BadInput(
            f"--checkpoint {checkpoint}: it has begun with another sink than {folder}; name both as they were"
        )


def _as_messages(result: DataFrame) -> DataFrame:
    """Kafka takes a column `value` (and `key`); any other rows become JSON."""
    if "value" in result.columns and set(result.columns) <= {"key", "value", "headers", "partition"}:
        return result
    return result.select(F.to_json(F.struct("*")).alias("value"))
