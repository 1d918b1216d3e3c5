"""The image job: what it remembers, what it answers, and that a stream does the same as one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.apps.catalogue import APPS
from penstock.apps.cell_images import Pixels, analysed, cells
from penstock.apps.images import Lines, answers, in_order, messages_of
from penstock.apps.inputs import SIDE_SETTING
from penstock.apps.recent import GRID, LAST, POSITIONS, REGIONS, Recent, by_region, owner, position, sampled
from penstock.core.errors import BadInput
from penstock.pipeline.session import session

IMAGES = APPS["images"]


def numbered(first: int, count: int) -> tuple[Any, Pixels]:
    """Images whose red, everywhere, is their number modulo 256; green is twice that, blue always 9."""
    numbers = np.arange(first, first + count)
    colours = np.stack([numbers % 256, 2 * numbers % 256, np.full(count, 9)], axis=1).astype(np.uint8)
    return numbers, np.repeat(colours[:, None], POSITIONS, axis=1)


class TestTheWindow:
    def test_keeps_exactly_the_last_thousand(self) -> None:
        recent = Recent.none()
        for first in range(0, 2500, 500):
            recent = recent.after(numbered(first, 500)[1])
            assert len(recent.values) == min(first + 500, LAST)
        assert recent.values[:, 0, 0].tolist() == [number % 256 for number in range(1500, 2500)]
        assert len(recent.after(numbered(0, 5000)[1]).values) == LAST
        assert np.array_equal(recent.after(numbered(0, 0)[1]).values, recent.values)

    def test_is_the_same_when_it_was_stored(self) -> None:
        recent = Recent.none().after(numbered(0, 7)[1])
        assert np.array_equal(Recent.restored(recent.values.tobytes()).values, recent.values)
        assert len(Recent.restored(b"").values) == 0

    def test_a_query_sees_the_thousand_images_before_it_and_none_after(self) -> None:
        recent = Recent.none().after(numbered(0, 990)[1])
        # Images 990 … 1029 come with queries 995 and 1020: 995 images before the one, 1,000 of 1,020 before the other.
        early, late = recent.answers(numbered(990, 40), [(995, 3), (1020, 3)])
        assert early[:, 0].tolist() == [number % 256 for number in range(995)]
        assert late[:, 0].tolist() == [number % 256 for number in range(20, 1020)]

    def test_nothing_came_before_the_first_query(self) -> None:
        [row] = answers(Recent.none(), numbered(5, 0), 0, [[0, 0, 0]])
        assert row == {"kind": "answer", "number": 0, "x": 0, "y": 0, "images": 0, "red": [], "green": [], "blue": []}


def test_an_answer_has_the_colours_their_mean_and_their_deviation() -> None:
    [row] = answers(Recent.none(), numbered(1, 4), 6, [[99, 6, 9]])
    # Region 6 is the second row of blocks, third column; place 9 is 1 to the right and 2 down in it.
    assert (row["number"], row["x"], row["y"], row["images"]) == (99, 2 * 4 + 1, 1 * 4 + 2, 4)
    assert (row["red"], row["green"], row["blue"]) == ([1, 2, 3, 4], [2, 4, 6, 8], [9, 9, 9, 9])
    assert row["mean"] == [2.5, 5.0, 9.0]
    # The squares of -1.5, -0.5, 0.5, 1.5 have a mean of 1.25.
    assert row["deviation"] == pytest.approx([1.25**0.5, 2 * 1.25**0.5, 0.0])


def test_every_position_has_one_owner() -> None:
    owners = {owner(x, y) for x in range(GRID) for y in range(GRID)}
    assert owners == {(region, place) for region in range(REGIONS) for place in range(POSITIONS)}
    assert all(position(*owner(x, y)) == (x, y) for x in range(GRID) for y in range(GRID))


def test_an_owner_has_the_colours_of_its_positions() -> None:
    samples = np.zeros((2, GRID, GRID, 3), np.uint8)
    samples[1, 11, 6] = (10, 20, 30)  # y 11, x 6
    region, place = owner(6, 11)
    cut = by_region(samples)
    assert cut.shape == (REGIONS, 2, POSITIONS, 3)
    assert cut[region, 1, place].tolist() == [10, 20, 30]
    assert int(cut.sum()) == 60


def test_positions_are_the_middles_of_a_grid_on_an_image_of_any_size() -> None:
    for side in (16, 128, 130):
        image = np.zeros((side, side, 3), np.float32)
        image[:, :, 0] = np.arange(side)[None]
        assert sampled(image)[0, :, 0].tolist() == [(2 * at + 1) * side // 32 for at in range(16)]


def test_images_take_the_order_of_their_numbers() -> None:
    numbers, values = numbered(0, 4)
    mixed = [3, 0, 2, 1]
    back, ordered = in_order(numbers[mixed], [values[at].tobytes() for at in mixed])
    assert back.tolist() == [0, 1, 2, 3]
    assert np.array_equal(ordered, values)


BAD = [
    "", "image", "image 1 128 3", "image 1 8 3 4", "image 1 128 -3 4", "image 1 128 3 4 5", "query 1 16 0", "query 1 2",
    "query 1 ² 3", "image 9999999999999999999 128 3 4", "photo 1 2 3", None,
]  # fmt: skip


def test_lines_that_are_no_rows_are_counted() -> None:
    lines = Lines.of([*BAD, "image 7 128 12 99", "query 8 0 15"])
    assert (lines.images, lines.queries, lines.skipped) == ([(7, 128, 12, 99)], [(8, 0, 15)], len(BAD))
    told = messages_of(Lines.of(BAD))
    assert [message["skipped"] for message in told] == [len(BAD)] + [0] * (REGIONS - 1)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", "tests", {"spark.sql.shuffle.partitions": "2"}) as running:
        yield running


def alone(lines: list[str]) -> list[dict[str, Any]]:
    """What the stream should say, image by image, in the plainest way."""
    seen: list[Pixels] = []
    said: list[dict[str, Any]] = []
    for line in lines:
        kind, *rest = line.split()
        if kind == "image":
            number, side, count, seed = map(int, rest)
            found, smooth = analysed(cells(side, count, seed))
            seen.append(sampled(smooth))
            said.append({"kind": "image", "number": number, "objects": list(found)})
        else:
            number, x, y = map(int, rest)
            colours = np.array([image[y, x] for image in seen[-LAST:]])
            red, green, blue = colours.T.tolist()
            answer = {"kind": "answer", "number": number, "x": x, "y": y, "images": len(colours)}
            told = {"mean": colours.mean(axis=0).tolist(), "deviation": colours.std(axis=0).tolist()}
            said.append({**answer, **told, "red": red, "green": green, "blue": blue})
    return said


@pytest.mark.spark
def test_the_stream_says_what_one_process_says_over_batches_and_restarts(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(SIDE_SETTING, "32")
    lines = [row["value"] for row in IMAGES.generate(spark, 1414, 1).collect()]
    spark.conf.unset(SIDE_SETTING)
    assert sum(line.startswith("query") for line in lines) == 14  # 1414 = 14 · 101
    (tmp_path / "in").mkdir()
    found = []
    for begin, end in ((0, 500), (500, 1000), (1000, 1414)):  # a restart after each
        # Two files and a line that is none: Spark reads them in two tasks, in any order.
        for half in (0, 1):
            path = tmp_path / "in" / f"{begin}-{half}.txt"
            path.write_text("\n".join([*lines[begin + half : end : 2], "no row"]) + "\n")
            os.utime(path, (1.7e9 + end, 1.7e9 + end))
        found += streamed(spark, tmp_path)
    assert sum(row["skipped"] for row in found if row["kind"] == "skipped") == 6
    rows = [row for row in found if row["kind"] != "skipped"]
    by_number = sorted(rows, key=lambda row: row["number"])
    assert [{key: value for key, value in row.items() if value is not None} for row in by_number] == alone(lines)
    assert by_number[-1]["images"] == LAST


def streamed(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    """What is said of the files that have come since the last time."""
    rows = spark.readStream.text(str(folder / "in")).withColumn("timestamp", F.current_timestamp())
    found: list[dict[str, Any]] = []
    writer = IMAGES.transform(rows).writeStream.outputMode(IMAGES.output_mode).trigger(availableNow=True)
    query = writer.foreachBatch(lambda batch, _: found.extend(row.asDict(recursive=True) for row in batch.collect()))
    query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return found


@pytest.mark.spark
def test_what_cannot_work_is_refused_in_one_line(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match="images remembers what a stream brought"):
        IMAGES.transform(spark.range(1).select(F.lit("x").alias("value")))
    spark.conf.set(SIDE_SETTING, "huge")
    try:
        with pytest.raises(
            BadInput, match=f"{SIDE_SETTING} is 'huge': give the side of an image in pixels, 16 to 4096"
        ):
            IMAGES.generate(spark, 1, 1)
    finally:
        spark.conf.unset(SIDE_SETTING)


@pytest.mark.spark
def test_generated_rows_are_the_same_for_a_seed_however_they_are_cut(spark: SparkSession) -> None:
    lines = [row["value"] for row in IMAGES.generate(spark, 303, 3).collect()]
    assert lines == [row["value"] for row in IMAGES.generate(spark, 303, 3).coalesce(1).collect()]
    assert set(lines).isdisjoint(row["value"] for row in IMAGES.generate(spark, 303, 4).collect())
    read = Lines.of(lines)
    assert (len(read.images), [number for number, _, _ in read.queries], read.skipped) == (300, [100, 201, 302], 0)
    counts = [count for _, _, count, _ in read.images]
    # Evenly 0 … 24: mean 12, deviation √((25² − 1) / 12) = 7.2; of 300 images 0.42, and six of those are 2.5.
    assert np.mean(counts) == pytest.approx(12, abs=2.5)
    assert len({seed for _, _, _, seed in read.images}) == 300


def test_every_other_pixel_finds_fewer_cells_and_remembers_in_the_same_form() -> None:
    lines = Lines.of([f"image {number} 128 12 {number}" for number in range(4)])
    full, coarse = messages_of(lines), messages_of(lines, every=2)
    for one, other in zip(full, coarse, strict=True):
        # The state goes on over a switch: the same images, as many positions of as many bytes.
        assert (one["region"], one["numbers"], len(one["values"])) == (
            other["region"],
            other["numbers"],
            len(other["values"]),
        )

    def cells_in(messages: list[dict[str, Any]]) -> int:
        rows = np.concatenate([np.frombuffer(each["counts"], np.int64).reshape(-1, 4) for each in messages])
        return int(rows[:, 1:].sum())

    assert 0.7 * cells_in(full) < cells_in(coarse) < cells_in(full)
