"""Alternates that share a state go on in each other's checkpoint; what they tell then is of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.apps.alternating import ONE_IN
from penstock.apps.app import Transform
from penstock.apps.catalogue import APPS
from penstock.pipeline.session import session

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("local[1]", settings={"spark.sql.shuffle.partitions": "1"}) as found:
        yield found


def ran(spark: SparkSession, transform: Transform, folder: Path, lines: list[str]) -> dict[Any, Any]:
    """What the query tells last of each key, with these lines added to what its checkpoint has read."""
    incoming, told = folder / "incoming", {}
    incoming.mkdir(parents=True, exist_ok=True)
    (incoming / f"{len(list(incoming.iterdir()))}.txt").write_text("\n".join(lines) + "\n")
    # One minute for all rows, whenever they are read: a window is cut by the switch.
    rows = spark.readStream.text(str(incoming)).withColumn("timestamp", F.lit("2026-01-01 00:00:30").cast("timestamp"))

    def keep(batch: DataFrame, _: int) -> None:
        told.update({row[1] if "site" in batch.columns else row[0]: row for row in batch.collect()})

    writer = transform(rows).writeStream.foreachBatch(keep).outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return told


def variant(app: str, name: str) -> Transform:
    return next(each.transform for each in APPS[app].variants if each.name == name)


def test_counts_go_on_over_a_switch_to_the_hot_patterns_and_back(spark: SparkSession, tmp_path: Path) -> None:
    every, hot = variant("patterns", "all"), variant("patterns", "hot")
    first = ran(spark, every, tmp_path, ["w10 w11", "w47 w470", "w471"])
    assert {key: row["count"] for key, row in first.items()} == {"w1?": 1, "w4?": 1, "w47?": 2}
    second = ran(spark, hot, tmp_path, ["w12", "w10 w205", "w205", "w470"])
    # w20? and w47? are not among the hot six.
    assert {key: row["count"] for key, row in second.items()} == {"w1?": 3}
    third = ran(spark, every, tmp_path, ["w13", "w405 w40"])
    assert {key: row["count"] for key, row in third.items()} == {"w1?": 4, "w4?": 2, "w40?": 1}


def test_a_minute_that_was_cut_by_a_switch_counts_no_visitor_twice(spark: SparkSession, tmp_path: Path) -> None:
    every, sampled = variant("visitors", "every"), variant("visitors", "sampled")
    names = [f"v{number}" for number in range(3200)]
    accesses = [f"site.example\t{name}\t200\t7" for name in names]
    whole = ran(spark, every, tmp_path, accesses[:2000])["site.example"]
    assert (whole["visitors"], whole["is_estimate"]) == (2000, False)
    # The same visitors come again, and some that are new, while one in 16 is kept.
    cut = ran(spark, sampled, tmp_path, accesses[1000:])["site.example"]
    chosen = spark.createDataFrame([(name,) for name in names], "name string")
    kept = chosen.where(F.pmod(F.xxhash64("name"), F.lit(ONE_IN)) == 0).count()
    assert (cut["visitors"], cut["is_estimate"]) == (ONE_IN * kept, True)
    again = ran(spark, every, tmp_path, accesses[:10])["site.example"]
    # Of this minute not all are known any more: it stays an estimate.
    assert (again["visitors"], again["is_estimate"]) == (ONE_IN * kept, True)
