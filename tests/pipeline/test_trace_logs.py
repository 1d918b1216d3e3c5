"""Access logs."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import BadInput
from penstock.pipeline.request import TraceSummary

pytestmark = pytest.mark.spark
Trace = Callable[..., TraceSummary]


def at(text: str) -> float:
    """Seconds since 1970 of a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


COMMON = '10.0.0.1 - frank [10/Oct/2000:13:55:{second:02} -0700] "GET /a HTTP/1.0" 200 {size}'
COMBINED = COMMON + ' "http://example.org/\\"q\\"" "Mozilla/5.0 (X11; [en])"'


def test_requests_and_bytes_are_counted_in_utc(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = tmp_path / "access.log"
    lines = [COMMON.format(second=1, size=100), COMBINED.format(second=9, size=50), COMMON.format(second=11, size="-")]
    random.Random(3).shuffle(lines)
    source.write_text("\n".join(lines) + "\n\n")
    summary = trace(source, every_s=10)
    start = at("2000-10-10 20:55:00")  # 13:55 at −07:00
    assert rates() == {start: 2, start + 10: 1}
    assert rates("bytes") == {start: 150, start + 10: 0}
    assert (summary.kind, summary.rows, summary.bytes, summary.bad) == ("log", 3, 150, {})


def test_bad_lines_of_a_gzipped_log_are_set_aside(trace: Trace, rates: Any, tmp_path: Path) -> None:
    source = tmp_path / "access.log.gz"
    bad = ["what is this", COMMON.format(second=1, size=1).replace("10/Oct", "31/Feb"), 'x - - [] "GET" 200 1']
    lines = [COMMON.format(second=i, size=1) for i in range(4)]
    source.write_bytes(gzip.compress("\r\n".join([bad[0], *lines, *bad[1:]]).encode()))
    summary = trace(source)
    assert summary.bad == {"not a line of the common or combined log format": 2, "the time is not a date": 1}
    assert summary.quarantine is not None
    assert sorted(line.split("\t")[2] for line in summary.quarantine.read_text().splitlines()) == sorted(bad)
    assert sum(rates().values()) == 4


def test_a_line_with_very_many_escapes_is_a_line(trace: Trace, tmp_path: Path) -> None:
    long = COMMON.format(second=1, size=1).replace("/a", "/" + '\\"' * 50_000)
    source = tmp_path / "access.log"
    source.write_text("\n".join([COMMON.format(second=1, size=1), long]))
    assert (trace(source).rows, trace(source).bad) == (2, {})


def test_a_truncated_gzip_is_one_line_of_error(trace: Trace, tmp_path: Path) -> None:
    rng = random.Random(1)
    lines = (COMMON.format(second=rng.randrange(60), size=rng.randrange(10**9)) for _ in range(50_000))
    packed = gzip.compress("\n".join(lines).encode())
    source = tmp_path / "access.log.gz"
    source.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(BadInput, match=r"access.log.gz: the file is truncated"):
        trace(source)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_log_of_other_lines_is_refused_with_the_first(trace: Trace, tmp_path: Path) -> None:
    source = tmp_path / "app.log"
    source.write_text("INFO started\n" * 3)
    with pytest.raises(BadInput, match=r"3 of 3 lines cannot be used.*'INFO started'"):
        trace(source, kind="log")
