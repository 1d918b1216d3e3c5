"""Prometheus range dumps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import BadInput
from penstock.pipeline.request import TraceSummary

pytestmark = pytest.mark.spark
Trace = Callable[..., TraceSummary]


def dump(path: Path, *series: tuple[Mapping[str, str], Mapping[int, str]]) -> Path:
    result = [{"metric": metric, "values": [[at, value] for at, value in values.items()]} for metric, values in series]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    path.write_text(json.dumps(document, indent=1))
    return path


def test_a_counter_gives_its_increases_across_a_reset_and_series_add_up(
    trace: Trace, rates: Any, tmp_path: Path
) -> None:
    one = ({"__name__": "requests_total", "pod": "a"}, {0: "100", 15: "130", 30: "20", 45: "25"})
    two = ({"__name__": "requests_total", "pod": "b"}, {0: "0", 15: "1", 30: "2", 45: "3"})
    summary = trace(dump(tmp_path / "up.json", one, two), every_s=15)
    assert rates() == {0: 30 + 1, 15: 20 + 1, 30: 5 + 1}
    assert (summary.kind, summary.rows) == ("prometheus", 8)


def test_a_missing_sample_is_a_gap(trace: Trace, rates: Any, tmp_path: Path) -> None:
    values = {0: "0", 15: "10", 30: "NaN", 45: "30", 60: "45"}
    summary = trace(dump(tmp_path / "up.json", ({"__name__": "x_count"}, values)), every_s=15)
    assert rates() == {0: 10, 45: 15}
    assert (summary.gaps, summary.gap_s, summary.bad) == (1, 30, {"the value is not finite": 1})


def test_the_result_of_rate_is_events_per_second_of_the_step_before(trace: Trace, rates: Any, tmp_path: Path) -> None:
    summary = trace(dump(tmp_path / "up.json", ({"job": "web"}, {60: "2", 120: "0.5"})), every_s=60)
    assert rates() == {0: 2 * 60, 60: 0.5 * 60}
    assert "taken for the result of rate()" in summary.notes[0]


def test_what_a_gauge_means_is_asked_and_not_guessed(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = dump(tmp_path / "up.json", ({"__name__": "in_flight"}, {0: "2", 60: "3", 120: "4"}))
    with pytest.raises(BadInput, match=r"'in_flight' is a counter or a rate is not certain: pass --values counter"):
        trace(source)
    trace(source, values="counter")
    assert rates() == {0: 1, 60: 1}


def test_a_step_coarser_than_the_interval_is_refused(trace: Trace, tmp_path: Path) -> None:
    source = dump(tmp_path / "up.json", ({"__name__": "x_total"}, {0: "2", 60: "3"}))
    with pytest.raises(BadInput, match="the samples come every 60 s, which is coarser than --every 15 s"):
        trace(source, every_s=15)
