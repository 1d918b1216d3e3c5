"""Spark's reports as numbers; the reports are as PySpark 4.2 gave them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.errors import PlantError
from penstock.live.query_progress import Report

KAFKA: dict[str, Any] = {
    "id": "349246fc",
    "name": "counts",
    "timestamp": "2026-11-15T14:00:24.240Z",
    "batchId": 3,
    "durationMs": {"addBatch": 2133, "commitOffsets": 96, "getBatch": 105, "triggerExecution": 3619, "walCommit": 122},
    "stateOperators": [{"operatorName": "stateStoreSave", "memoryUsedBytes": 62576, "numShufflePartitions": 2}],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[clicks]]",
            "startOffset": "null",
            "endOffset": '{"clicks": {"0": 0, "1": 10, "2": 300}}',
            "latestOffset": '{"clicks": {"0": 0, "1": 10, "2": 500}}',
            "numInputRows": 300,
        }
    ],
    "sink": {"description": "NoopTable", "numOutputRows": 300},
    "numInputRows": 300,
}


def test_a_report_of_kafka_tells_what_was_there_when_the_batch_began() -> None:
    report = Report.of(KAFKA)
    (source,) = report.sources
    assert (report.batch, report.rows, report.results, report.execution_s) == (3, 300, 300, 3.619)
    # 3.619 s in all, 2.133 s of them work
    assert report.fixed_s == pytest.approx(1.486)
    assert (source.kind, source.end, source.latest) == ("KafkaV2", 310, 510)
    assert report.ended_s - report.begun_s == pytest.approx(3.619)
    assert report.state_mb == pytest.approx(0.062576)


def test_a_folder_counts_batches_not_events_and_a_sink_need_not_tell() -> None:
    folder = KAFKA["sources"][0] | {"description": "FileStreamSource[file:/in]", "endOffset": '{"logOffset": 7}'}
    report = Report.of(KAFKA | {"sources": [folder | {"latestOffset": "null"}], "sink": {"numOutputRows": -1}})
    (source,) = report.sources
    assert (source.kind, source.end, source.latest, report.results) == ("FileStreamSource", None, None, None)


@pytest.mark.parametrize("missing", ["durationMs", "sources", "batchId", "timestamp", "numInputRows"])
def test_a_report_with_missing_fields_is_one_line(missing: str) -> None:
    broken = {key: value for key, value in KAFKA.items() if key != missing}
    with pytest.raises(PlantError, match=rf"^a progress report of query counts cannot be read: KeyError '{missing}'$"):
        Report.of(broken)


def kafka(begin: object, end: object, rows: int) -> Report:
    source = KAFKA["sources"][0] | {"startOffset": begin, "endOffset": end, "latestOffset": end, "numInputRows": rows}
    return Report.of(KAFKA | {"sources": [source], "numInputRows": rows})


def test_rows_are_counted_by_offsets_and_not_twice_where_a_stage_ran_again() -> None:
    # 12,061 rows were read by tasks that ran twice: an executor was lost with what they had written.
    again = kafka('{"clicks": {"0": 100, "1": 50}}', '{"clicks": {"0": 10100, "1": 2111}}', rows=24_122)
    assert again.rows == again.sources[0].rows == 10_000 + 2061
    # The first batch of a checkpoint has no begin: the report tells, up to the end.
    assert kafka("null", '{"clicks": {"0": 500}}', rows=300).rows == 300
    assert kafka(None, {"clicks": {"0": 500}}, rows=1000).rows == 500
    # A partition that is new to the query is read from its beginning.
    assert kafka('{"clicks": {"0": 100}}', '{"clicks": {"0": 110, "1": 7}}', rows=17).rows == 17


def test_a_socket_counts_rows_and_the_source_rate_seconds() -> None:
    socket: dict[str, Any] = {
        "description": "TextSocketV2[host: localhost, port: 9999]",
        "startOffset": -1,
        "endOffset": 41,
    }
    rate: dict[str, Any] = {"description": "RateStreamV2[rowsPerSecond=10, rampUpTimeSeconds=0, numPartitions=default"}
    told = [socket | {"numInputRows": 84}, rate | {"startOffset": 3, "endOffset": 7, "numInputRows": 80}]
    report = Report.of(KAFKA | {"sources": told, "numInputRows": 164})
    assert [source.rows for source in report.sources] == [42, 40]
    assert [source.end for source in report.sources] == [42, 70]
    assert report.sources[1].shown == f"{rate['description']}]"  # Spark forgets to close it
    ramp = {"description": "RateStreamV2[rowsPerSecond=10, rampUpTimeSeconds=5, numPartitions=default"}
    assert Report.of(KAFKA | {"sources": [{**told[1], **ramp}]}).sources[0].end is None
