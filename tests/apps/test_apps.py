"""The apps do what they say, on rows small enough to count by hand; found by name, or as one's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from penstock.apps.app import App, find_app
from penstock.apps.catalogue import APPS
from penstock.core.errors import BadInput
from penstock.pipeline.session import session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", "tests") as running:
        yield running


def result(spark: SparkSession, app: App, lines: list[str], folder: Path) -> list[dict[str, Any]]:
    """What the app puts out for some lines, as a stream that ends when they are read."""
    source = folder / "in"
    source.mkdir()
    (source / "lines.txt").write_text("\n".join(lines) + "\n")
    rows = spark.readStream.text(str(source)).withColumn("timestamp", F.current_timestamp())
    found: list[dict[str, Any]] = []
    writer = app.transform(rows).writeStream.outputMode(app.output_mode).trigger(availableNow=True)
    query = writer.foreachBatch(lambda batch, _: found.extend(row.asDict() for row in batch.collect()))
    query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return found


@pytest.mark.spark
@pytest.mark.parametrize("app", {app.generate: app for app in APPS.values()}.values(), ids=lambda app: app.name)
def test_rows_are_as_long_as_it_says(spark: SparkSession, app: App) -> None:
    ((mean,),) = app.generate(spark, 20_000, 0).select(F.avg(F.octet_length("value"))).collect()
    assert app.bytes_per_row == pytest.approx(mean, abs=0.8)


LOG = ["a.example\tv1\t200\t10", "a.example\tv2\t404\t20", "a.example\tv1\t200\t30", "b.example\tv3\t200\t40"]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["wordcount", "rolling-count", "rolling-count-skewed"])
def test_words_are_counted(spark: SparkSession, tmp_path: Path, name: str) -> None:
    rows = result(spark, APPS[name], ["to be or not", "to be"], tmp_path)
    assert {row["word"]: row["count"] for row in rows} == {"to": 2, "be": 2, "or": 1, "not": 1}


@pytest.mark.spark
@pytest.mark.parametrize("name", ["grep", "grep-single"])
def test_matching_lines_are_counted(spark: SparkSession, tmp_path: Path, name: str) -> None:
    rows = result(spark, APPS[name], ["w123 w5", "w5 w6", "w7 w199", "w1999"], tmp_path)
    assert [row["count"] for row in rows] == [2]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["data-clean", "data-clean-single"])
def test_only_accesses_that_ended_well_are_kept(spark: SparkSession, tmp_path: Path, name: str) -> None:
    rows = result(spark, APPS[name], LOG, tmp_path)
    assert sorted(row["bytes"] for row in rows) == ["10", "30", "40"]


@pytest.mark.spark
def test_pages_and_visitors_are_counted_by_site(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "visitors").mkdir()
    pages = result(spark, APPS["page-view"], LOG, tmp_path / "pages")
    assert {row["site"]: row["count"] for row in pages} == {"a.example": 3, "b.example": 1}
    visitors = result(spark, APPS["unique-visitor"], LOG, tmp_path / "visitors")
    assert {row["site"]: row["visitors"] for row in visitors} == {"a.example": 2, "b.example": 1}


@pytest.mark.spark
def test_rows_pass_through_and_rings_are_sorted(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "sol").mkdir()
    (tmp_path / "sort").mkdir()
    passed = result(spark, APPS["sol"], ["b", "a"], tmp_path / "sol")
    assert sorted(row["value"] for row in passed) == ["a", "b"]
    rings = result(spark, APPS["rolling-sort"], ["c", "a", "b"] * 5, tmp_path / "sort")
    assert sum(row["rows"] for row in rings) == 15
    assert min(row["first"] for row in rings) == "a"


def in_batches(spark: SparkSession, app: App, folder: Path, batches: list[list[str]]) -> StreamingQuery:
    """The app over one file a batch, ended."""
    source = folder / "in"
    source.mkdir()
    for number, lines in enumerate(batches):
        path = source / f"{number}.txt"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (number + 1, number + 1))
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
    # A second of the rows' time for each batch, whatever the machine does.
    timed = rows.withColumn("timestamp", F.timestamp_seconds(F.split("value", " ")[0].cast("int")))
    writer = app.transform(timed).writeStream.outputMode(app.output_mode).trigger(availableNow=True)
    query = writer.format("memory").queryName("found").option("checkpointLocation", str(folder / "c")).start()
    query.awaitTermination()
    return query


@pytest.mark.spark
def test_rings_hold_the_last_rows_alone_and_their_state_stays_flat(spark: SparkSession, tmp_path: Path) -> None:
    batches = [[f"{second:03} {line:05}" for line in range(20_000)] for second in range(8)]
    query = in_batches(spark, APPS["rolling-sort"], tmp_path, batches)
    sizes = [
        int(report["stateOperators"][0]["customMetrics"]["stateOnCurrentVersionSizeBytes"])
        for report in query.recentProgress
        if report["numInputRows"]
    ]
    assert len(sizes) == 8
    # Each batch fills 16 rings of 1,000: the first one holds as much as the last.
    assert max(sizes) < 1.05 * min(sizes)
    found = spark.table("found").collect()
    # Sorted at second 0 and, five seconds on, at second 5.
    assert len(found) == 2 * 16
    assert all(row["rows"] == 1000 for row in found)
    assert {row["first"][:3] for row in found} == {"000", "005"}


@pytest.mark.spark
def test_the_speed_of_light_crosses_the_network(spark: SparkSession, tmp_path: Path) -> None:
    query = in_batches(spark, APPS["sol"], tmp_path, [["1 a", "2 b"]])
    plan = query._jsq.streamingQuery().lastExecution().executedPlan().toString()
    assert "Exchange hashpartitioning(value" in plan


def test_unique_visitors_are_said_to_be_approximate() -> None:
    assert "within 2 %" in APPS["unique-visitor"].about


@pytest.mark.spark
def test_inputs_are_the_same_for_a_seed_and_words_follow_a_zipf_law(spark: SparkSession) -> None:
    lines = APPS["wordcount"].generate(spark, 2000, 1)
    assert lines.collect() == APPS["wordcount"].generate(spark, 2000, 1).collect()
    assert lines.collect() != APPS["wordcount"].generate(spark, 2000, 2).collect()
    words = lines.select(F.explode(F.split("value", " ")).alias("word")).groupBy("word").count()
    counts = {row["word"]: row["count"] for row in words.collect()}
    # P(rank ≤ r) = ln(r + 1) / ln(20,000): the first word has 7.0 %, ranks 10 to 19 together 7.0 %, too.
    assert counts["w1"] / 20_000 == pytest.approx(0.070, abs=0.01)
    assert sum(counts.get(f"w{rank}", 0) for rank in range(10, 20)) / 20_000 == pytest.approx(0.070, abs=0.01)


@pytest.mark.spark
def test_web_logs_have_100_sites_and_two_thirds_end_well(spark: SparkSession) -> None:
    parts = F.split("value", "\t")
    rows = APPS["page-view"].generate(spark, 5000, 1).select(parts[0].alias("site"), parts[2].alias("status"))
    assert rows.select("site").distinct().count() == 100
    assert rows.where("status = '200'").count() / 5000 == pytest.approx(2 / 3, abs=0.03)


def test_an_app_is_found_by_name_or_as_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_streaming_job.py").write_text('def upper(rows):\n    """All in capitals."""\n    return rows\n')
    monkeypatch.chdir(tmp_path)
    assert find_app("wordcount", APPS) is APPS["wordcount"]
    assert find_app("my_streaming_job:upper", APPS).about == "All in capitals."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wordcont", "did you mean 'wordcount'"),
        ("no_such_module:f", "cannot be imported"),
        ("json:lods", "did you mean 'loads'"),
    ],
)
def test_an_app_that_is_not_there_is_one_line(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        find_app(name, APPS)
