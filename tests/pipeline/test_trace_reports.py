"""Streaming progress reports and Spark event logs."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.core.errors import BadInput
from penstock.pipeline.request import TraceSummary

pytestmark = pytest.mark.spark
Trace = Callable[..., TraceSummary]
START = 1_577_836_800  # 2020-01-01 00:00 UTC


def report(second: int, rows: int, run: str = "run-1", latest: object = None, done: object = None) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(START + second))
    source = {"description": "KafkaV2[Subscribe[events]]", "startOffset": None, "endOffset": done}
    source |= {"latestOffset": latest, "numInputRows": rows, "inputRowsPerSecond": 9e9}
    return json.dumps({"id": "q", "runId": run, "timestamp": stamp, "batchId": second, "sources": [source]})


def kafka(*offsets: int) -> dict[str, dict[str, int]]:
    return {"events": {str(partition): offset for partition, offset in enumerate(offsets)}}


def test_arrivals_are_the_growth_of_the_latest_offset_and_not_what_was_processed(
    trace: Trace, rates: Any, tmp_path: Path
) -> None:
    source = tmp_path / "progress.jsonl"
    latest = {0: kafka(100, 50), 10: kafka(150, 60), 30: kafka(250, 80)}
    lines = [report(second, 1, latest=offset, done=kafka(1, 1)) for second, offset in latest.items()]
    source.write_text("\n".join(reversed(lines)))
    summary = trace(source, every_s=10)
    # 210 − 150 = 60 in ten seconds, then 330 − 210 = 120 in twenty, evenly.
    assert rates() == {START: 60, START + 10: 60, START + 20: 60}
    assert (summary.kind, summary.rows, summary.gaps) == ("progress", 3, 0)


def test_a_span_across_interval_borders_is_shared_by_time(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = tmp_path / "progress.jsonl"
    source.write_text("\n".join([report(5, 0, latest=kafka(0)), report(25, 0, latest=kafka(200))]))
    trace(source, every_s=10)
    assert rates() == pytest.approx({START: 50, START + 10: 100, START + 20: 50})


def test_runs_and_queries_add_up_and_the_time_between_runs_is_a_gap(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = tmp_path / "progress.jsonl"
    lines = [report(0, 0, "a", kafka(0)), report(10, 0, "a", kafka(10)), report(10, 0, "a", kafka(10))]
    lines += [report(40, 0, "b", kafka(900)), report(50, 0, "b", kafka(1000))]
    lines += [report(0, 0, "c", kafka(7)), report(10, 0, "c", kafka(8))]
    source.write_text("\n".join(lines))
    summary = trace(source, every_s=10)
    assert rates() == {START: 10 + 1, START + 40: 100}
    assert (summary.gaps, summary.gap_s) == (1, 30)


def test_without_a_latest_offset_the_end_offset_counts_and_else_the_rows(
    trace: Trace, rates: Any, tmp_path: Path
) -> None:
    source = tmp_path / "progress.jsonl"
    lines = [report(0, 5, "kafka", done=kafka(100)), report(10, 5, "kafka", done=kafka(130))]
    # The rate source's offsets are seconds: 2 − 1 = 1 is not the 70 rows of the batch.
    lines += [report(0, 50, "rate", latest=1, done=1), report(10, 70, "rate", latest=2, done=2)]
    lines += ["{damaged"]
    source.write_text("\n".join(lines))
    summary = trace(source, every_s=10)
    assert rates() == {START: 30 + 70}
    assert summary.bad == {"not a progress report": 1}


def test_a_source_whose_offsets_start_again_counts_from_zero(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = tmp_path / "progress.jsonl"
    lines = [report(0, 0, latest=kafka(500)), report(10, 0, latest=kafka(20)), report(20, 0, latest=kafka(25))]
    source.write_text("\n".join(lines))
    trace(source, every_s=10)
    assert rates() == {START: 20, START + 10: 5}


def test_counts_cannot_give_statistics_of_inter_arrival_times(trace: Trace, tmp_path: Path) -> None:
    source = tmp_path / "progress.jsonl"
    source.write_text("\n".join([report(0, 0, latest=kafka(0)), report(10, 0, latest=kafka(10))]))
    with pytest.raises(BadInput, match="--stats needs single arrivals"):
        trace(source, stats=True)


@pytest.fixture
def event_log(spark: SparkSession, tmp_path: Path) -> Path:
    """A real event log: the listener that Spark itself uses, fed by a real streaming query."""
    folder = tmp_path / "plain"
    folder.mkdir()
    context = spark.sparkContext._jsc.sc()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    conf = context.conf().clone().set("spark.eventLog.compress", "false").set("spark.eventLog.rolling.enabled", "false")
    nothing = jvm.scala.Option.empty()
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "local-1", nothing, jvm.java.net.URI(folder.as_uri()), conf, context.hadoopConfiguration()
    )
    listener.start()
    context.addSparkListener(listener)
    stream = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    query = stream.writeStream.format("noop").trigger(processingTime="500 milliseconds").start()
    deadline = time.monotonic() + 60
    while len([seen for seen in query.recentProgress if seen["numInputRows"]]) < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    query.stop()
    context.listenerBus().waitUntilEmpty()
    context.removeSparkListener(listener)
    listener.stop()
    rows = [seen["numInputRows"] for seen in query.recentProgress]
    (tmp_path / "rows.json").write_text(json.dumps(rows[1:]))
    return folder / "local-1"


def test_a_real_event_log_is_read_in_every_form_that_spark_writes(
    trace: Trace, spark: SparkSession, event_log: Path, tmp_path: Path
) -> None:
    arrived = sum(json.loads((tmp_path / "rows.json").read_text()))
    assert arrived > 0
    summary = trace(event_log, every_s=1)
    assert (summary.kind, summary.bad) == ("eventlog", {})
    assert summary.arrivals == pytest.approx(arrived)
    for codec in ("zstd", "lz4", "snappy"):
        rolling = tmp_path / codec / "eventlog_v2_local-1"
        rolling.mkdir(parents=True)
        (rolling / "appstatus_local-1").touch()
        pack(spark, event_log, rolling / f"events_1_local-1.{codec}", codec)
        assert trace(tmp_path / codec, every_s=1).arrivals == pytest.approx(arrived)


def test_an_event_log_still_being_written_is_read_up_to_its_cut_line(
    trace: Trace, event_log: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "local-1.inprogress"
    shutil.copy(event_log, cut)
    with cut.open("a") as file:
        file.write('{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","prog')
    assert trace(cut, every_s=1).bad == {"not a progress report": 1}


def pack(spark: SparkSession, plain: Path, packed: Path, codec: str) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    conf = spark.sparkContext._jsc.sc().conf()
    raw = jvm.java.io.FileOutputStream(str(packed))
    out = jvm.org.apache.spark.io.CompressionCodec.createCodec(conf, codec).compressedOutputStream(raw)
    jvm.java.nio.file.Files.copy(jvm.java.io.File(str(plain)).toPath(), out)
    out.close()
