"""Paper 2's queries say what can be worked out by hand; their generators follow a rate trace to one event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.apps.app import Transform
from penstock.apps.catalogue import APPS
from penstock.apps.queries import WORKLOADS, candlesticks, hashtags, instances, meter_loads
from penstock.apps.query_inputs import following, tick_row
from penstock.core.errors import BadInput
from penstock.pipeline.session import session

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", "tests", {"spark.sql.shuffle.partitions": "2"}) as running:
        yield running


def answer(
    spark: SparkSession, folder: Path, query: Transform, lines: list[str], given: Mapping[str, Any]
) -> list[dict[str, Any]]:
    (folder / "in").mkdir()
    (folder / "in" / "lines.txt").write_text("\n".join(lines) + "\n")
    rows = spark.readStream.text(str(folder / "in")).withColumn("timestamp", F.current_timestamp())
    found: list[dict[str, Any]] = []
    writer = query(rows, **given).writeStream.outputMode("update").trigger(availableNow=True)
    each = writer.foreachBatch(lambda batch, _: found.extend(row.asDict() for row in batch.collect()))
    each.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return found


TICKS = [
    "2026-01-05 10:00:09.000\tAAA\ttech\t12.0",  # the first by its time, not by its place
    "2026-01-05 10:00:01.000\tAAA\ttech\t10.0",
    "2026-01-05 10:00:05.000\tAAA\ttech\t17.0",
    "2026-01-05 10:00:11.000\tAAA\ttech\t99.0",  # the next window of ten seconds
    "2026-01-05 10:00:02.000\tBBB\tretail\t3.0",
    "no tick at all",
]


def test_a_candlestick_is_highest_lowest_mean_first_and_last_of_a_window(spark: SparkSession, tmp_path: Path) -> None:
    rows = answer(spark, tmp_path, candlesticks, TICKS, {"sector": "tech", "window_s": 10})
    assert {row["symbol"] for row in rows} == {"AAA"}
    first = min(rows, key=lambda row: row["begin"])
    shown = {key: first[key] for key in ("high", "low", "mean", "first", "last", "events")}
    assert shown == {"high": 17.0, "low": 10.0, "mean": 13.0, "first": 10.0, "last": 12.0, "events": 3}
    assert len(rows) == 2


def test_a_sector_is_the_one_that_is_named_whatever_its_letters_are(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"2026-01-05 10:00:01\t{sector}\t{sector}\t1.0" for sector in ("a_b", "axb", "a%")]
    for sector, found in (("a_b", {"a_b"}), ("a%", {"a%"}), ("%", {"a_b", "axb", "a%"})):
        (folder := tmp_path / str(len(found)) / sector).mkdir(parents=True)
        rows = answer(spark, folder, candlesticks, lines, {"sector": sector})
        assert {row["sector"] for row in rows} == found


def test_hashtags_are_grouped_by_hashtag_and_chosen_by_their_beginning(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["2026-01-05 10:00:01\tgo #Spark and #spaces", "2026-01-05 10:00:02\t#spark #other", "2026-01-05\tno tag"]
    rows = answer(spark, tmp_path, hashtags, lines, {"prefix": "SPA"})
    assert {row["hashtag"]: row["events"] for row in rows} == {"spark": 2, "spaces": 1}


def test_the_median_load_is_that_of_each_meter_of_the_house(spark: SparkSession, tmp_path: Path) -> None:
    loads = [("a", 5), ("a", 100), ("a", 7), ("b", 2), ("b", 4)]
    lines = [f"2026-01-05 10:00:0{place}\thouse1\t{meter}\t{watts}" for place, (meter, watts) in enumerate(loads)]
    lines.append("2026-01-05 10:00:01\thouse2\ta\t1")
    rows = answer(spark, tmp_path, meter_loads, lines, {"house": "house1"})
    assert {row["meter"]: row["median"] for row in rows} == {"a": 7.0, "b": 3.0}


def test_generated_events_follow_the_rates_to_one_event(spark: SparkSession) -> None:
    rows = following(spark, tick_row, [10.0, 0.0, 2.5, 2.5], 1.0, seed=1)
    counts = {row["tick"]: row["count"] for row in rows.groupBy("tick").count().collect()}
    assert counts == {0: 10, 2: 2, 3: 3}  # the half of an event is carried over
    assert sorted(rows.collect()) == sorted(following(spark, tick_row, [10.0, 0.0, 2.5, 2.5], 1.0, seed=1).collect())
    with pytest.raises(BadInput, match="a rate is negative"):
        following(spark, tick_row, [1.0, -1.0], 1.0, seed=1)


def test_every_instance_of_a_workload_has_something_to_answer(spark: SparkSession, tmp_path: Path) -> None:
    found = {workload: instances(workload) for workload in WORKLOADS}
    assert {workload: len(each) for workload, each in found.items()} == {"financial": 35, "twitter": 20, "energy": 10}
    everybody = [each for workload in found.values() for each in workload]
    assert len({each.name for each in everybody}) == len(everybody)
    for number, each in enumerate((found["financial"][20], found["twitter"][19], found["energy"][9])):
        app = APPS[each.app]
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = [row["value"] for row in app.generate(spark, 2000, 3).collect()]
        assert answer(spark, folder, app.transform, lines, each.parameters), each.name
