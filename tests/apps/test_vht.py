"""The streaming tree is the one that a single process grows of the same batches, through restarts and repeats too."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.apps.catalogue import APPS
from penstock.apps.hoeffding import LEAF, Statistics, Tree, learn
from penstock.apps.shared_tree import SETTING
from penstock.apps.vht import RULES, parsed
from penstock.core.errors import BadInput
from penstock.pipeline.session import session

VHT = APPS["vht"]
FILES, ROWS_PER_FILE, FILES_PER_BATCH = 8, 5000, 2
BAD = ["", "no row", "4" * 200 + "-7", "5" + "4" * 199 + " 7", "4" * 200 + " x", "é" * 100 + " 7"]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", "tests", {"spark.sql.shuffle.partitions": "4"}) as running:
        yield running


@pytest.fixture(scope="module")
def batches(spark: SparkSession) -> list[list[list[str]]]:
    """The lines of every file, by batch; lines that are no rows are in the second batch."""
    lines = [row["value"] for row in VHT.generate(spark, FILES * ROWS_PER_FILE, 1).collect()]
    files = [lines[at : at + ROWS_PER_FILE] for at in range(0, len(lines), ROWS_PER_FILE)]
    files[2] = BAD + files[2]
    return [files[at : at + FILES_PER_BATCH] for at in range(0, FILES, FILES_PER_BATCH)]


def alone(batches: list[list[list[str]]]) -> list[dict[str, Any]]:
    """What the app should say, by one process with all attributes in one group."""
    tree, groups = Tree.of_one_leaf(RULES), [Statistics.none(range(RULES.attributes), RULES)]
    said = []
    for number, files in enumerate(batches):
        lines = [line for file in files for line in file]
        x, y = parsed(pa.array(lines))
        right = int((tree.class_at(tree.leaf_of(x)) == y).sum())
        tree, groups, splits = learn(tree, groups, (x, y), RULES)
        tally = {"batch": number, "rows": len(x), "right": right, "skipped": len(lines) - len(x)}
        leaves = int((tree.attribute == LEAF).sum())
        said.append({**tally, "leaves": leaves, "splits": [asdict(split) for split in splits]})
    return said


def add_files(folder: Path, batches: list[list[list[str]]], first: int) -> None:
    for number, lines in enumerate((file for files in batches for file in files), first * FILES_PER_BATCH):
        path = folder / f"{number}.txt"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1.7e9 + number, 1.7e9 + number))  # Spark reads the oldest first


def run(spark: SparkSession, source: Path, checkpoint: Path) -> list[dict[str, Any]]:
    reader = spark.readStream.option("maxFilesPerTrigger", FILES_PER_BATCH)
    rows = reader.text(str(source)).withColumn("timestamp", F.current_timestamp())
    found: list[dict[str, Any]] = []
    writer = VHT.transform(rows).writeStream.outputMode(VHT.output_mode).trigger(availableNow=True)
    query = writer.foreachBatch(lambda batch, _: found.extend(row.asDict(recursive=True) for row in batch.collect()))
    query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    return found


@pytest.fixture(scope="module")
def streamed(
    spark: SparkSession, batches: list[list[list[str]]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Any]]]:
    """The stream's folder, and what it said; it ends after two batches and is started again."""
    folder = tmp_path_factory.mktemp("vht")
    (folder / "in").mkdir()
    add_files(folder / "in", batches[:2], 0)
    found = run(spark, folder / "in", folder / "checkpoint")
    add_files(folder / "in", batches[2:], 2)
    return folder, found + run(spark, folder / "in", folder / "checkpoint")


@pytest.mark.spark
def test_the_stream_makes_the_splits_of_one_process(
    streamed: tuple[Path, list[dict[str, Any]]], batches: list[list[list[str]]]
) -> None:
    _, found = streamed
    assert found == alone(batches)
    assert [len(batch["splits"]) for batch in found][:3] == [0, 1, 5]  # the root, then each of its five branches
    assert [batch["skipped"] for batch in found] == [0, len(BAD), 0, 0]


@pytest.mark.spark
def test_a_batch_that_is_run_again_says_the_same(
    spark: SparkSession, streamed: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    folder, found = streamed
    forget_last_batch(folder / "checkpoint", tmp_path / "checkpoint")
    assert run(spark, folder / "in", tmp_path / "checkpoint") == found[-1:]


@pytest.mark.spark
def test_a_tree_that_is_not_there_says_which_setting_helps(
    spark: SparkSession, streamed: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    folder, _ = streamed
    forget_last_batch(folder / "checkpoint", tmp_path / "checkpoint")
    spark.conf.set(SETTING, str(tmp_path / "elsewhere"))
    try:
        with pytest.raises(
            StreamingQueryException, match=f"the tree of batch 2 is not at .*: set {SETTING} to a folder"
        ):
            run(spark, folder / "in", tmp_path / "checkpoint")
    finally:
        spark.conf.unset(SETTING)


def forget_last_batch(checkpoint: Path, copy: Path) -> None:
    """A checkpoint as after a crash: the last batch was begun, and not committed."""
    shutil.copytree(checkpoint, copy)
    for path in (copy / "commits").glob("*3*"):
        path.unlink()


@pytest.mark.spark
def test_what_cannot_work_is_refused_in_one_line(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match="vht learns from a stream"):
        VHT.transform(spark.range(1).select(F.lit("x").alias("value")))
    spark.conf.set(SETTING, "hdfs://host/trees")
    try:
        with pytest.raises(BadInput, match=f"set {SETTING} to a folder that every worker sees"):
            VHT.transform(spark.readStream.format("rate").load().select(F.lit("x").alias("value")))
    finally:
        spark.conf.unset(SETTING)


@pytest.mark.spark
def test_generated_rows_are_the_same_for_a_seed_and_even(spark: SparkSession) -> None:
    lines = [row["value"] for row in VHT.generate(spark, 4000, 3).collect()]
    assert lines == [row["value"] for row in VHT.generate(spark, 4000, 3).collect()]
    assert set(lines).isdisjoint(row["value"] for row in VHT.generate(spark, 4000, 4).collect())
    x, _ = parsed(pa.array(lines))
    assert x.shape == (4000, 200)
    # 4000 rows: a value's share of a column has a deviation of √(0.2 · 0.8 / 4000) = 0.0063; six of them are 0.038.
    shares = np.stack([(x == value).mean(axis=0) for value in range(5)])
    assert np.abs(shares - 0.2).max() < 0.038
    # Columns that were copies of one another, in any partition, would agree far more often than one time in five.
    agree = [(x[:, :-shift] == x[:, shift:]).mean() for shift in range(1, 200)]
    assert max(agree) < 0.25


def test_a_line_is_two_hundred_digits_a_space_and_a_class() -> None:
    x, y = parsed(pa.array([*BAD, None, "01234" * 40 + " 9", "4" * 200 + " 0"]))
    assert x.tolist() == [[0, 1, 2, 3, 4] * 40, [4] * 200]
    assert y.tolist() == [9, 0]
    assert [part.size for part in parsed(pa.array(BAD))] == [0, 0]
