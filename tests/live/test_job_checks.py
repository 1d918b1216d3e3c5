"""Problems of a configuration are said before a job runs into them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.cli.main import main
from penstock.live.job_checks import Finding, examine, examine_trigger, examine_width
from penstock.pipeline.session import session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = {"spark.dynamicAllocation.enabled": "true", "spark.sql.shuffle.partitions": "3"}
    with session("local[1]", "doctor", settings) as running:
        yield running


def said(found: list[Finding]) -> dict[str, bool]:
    """What was found, and whether it keeps the job from being scaled at all."""
    return {finding.what: finding.is_fatal for finding in found}


def writer(spark: SparkSession) -> DataStreamWriter:
    rows = spark.readStream.format("rate").load().groupBy("value").count()
    return rows.writeStream.format("noop").outputMode("update")


@pytest.mark.spark
def test_a_session_that_cannot_be_scaled(spark: SparkSession) -> None:
    assert said(examine(spark)) == {"master": True, "dynamic allocation": True, "decommissioning": False}
    assert not said(examine(spark, is_dry=True))["dynamic allocation"]  # who only looks on fights nobody


@pytest.mark.spark
def test_a_query_that_ends_by_itself_and_one_with_few_partitions(spark: SparkSession) -> None:
    now = writer(spark).trigger(availableNow=True).start()
    wide = writer(spark).trigger(processingTime="1 hour").start()
    try:
        assert said(examine(spark, [now], 3))["trigger"]
        found = said(examine(spark, [wide], 4))
        assert "trigger" not in found
        assert not found["partitions"]
        assert "partitions" not in said(examine(spark, [wide], 3))
    finally:
        now.stop()
        wide.stop()


def test_a_session_without_a_scheduler() -> None:
    (finding,) = examine(object())
    assert finding.is_fatal
    assert "Spark Connect" in finding.says


@pytest.mark.parametrize("trigger", ["AvailableNowTrigger", "once", "OneTimeTrigger$", "RealTimeTrigger", "continuous"])
def test_triggers_that_leave_nothing_to_scale(trigger: str) -> None:
    (finding,) = examine_trigger(trigger)
    assert finding.is_fatal


def test_a_trigger_with_batches_and_partitions_enough_are_fine() -> None:
    assert examine_trigger("ProcessingTimeTrigger") == []
    assert examine_width(4, 2, 8) == []


BROKEN = """
def fixed(rows): return rows.sparkSession.range(3)
def sorts(rows): return rows.orderBy("value")
def works(rows): return rows.groupBy("value").count()
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["doctored:fixed"], "doctored:fixed is not streaming"),
        (["doctored:sorts"], "doctored:sorts cannot be started"),
        (["doctored:works", "--trigger", "availableNow"], "ends by itself"),
        (["doctored:works", "--max", "8", "--partitions", "4"], "8 executors x 1 cores for 4 partitions"),
    ],
)
def test_an_app_is_looked_at(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "doctored.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", *words]) == (0 if "--max" in words else 1)
    assert message in capsys.readouterr().out


def test_a_trigger_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--trigger", "soon"]) == 2
    assert "is not a duration" in capsys.readouterr().err
