"""World Cup 98 binary logs."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import BadInput
from penstock.pipeline.request import TraceSummary

pytestmark = pytest.mark.spark
Trace = Callable[..., TraceSummary]

START = 897_000_000  # 1998-06-04 22:40 UTC
UNKNOWN = 0xFFFFFFFF


def record(second: int, size: int) -> bytes:
    return struct.pack(">IIIIBBBB", START + second, 17, 42, size, 0, 200, 1, 3)


def test_records_are_counted_and_an_unknown_size_is_no_bytes(trace: Trace, rates: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "wc_day40_1").write_bytes(record(0, 100) + record(0, UNKNOWN) + record(61, 3_000_000_000))
    (folder / "wc_day40_2.gz").write_bytes(gzip.compress(record(62, 7)))
    summary = trace(folder)
    assert rates() == {START: 2, START + 60: 2}
    assert rates("bytes") == {START: 100, START + 60: 3_000_000_007}
    assert (summary.kind, summary.rows) == ("wc98", 4)


def test_truncated_logs_are_refused(trace: Trace, tmp_path: Path) -> None:
    flat, packed = tmp_path / "wc_day1_1", tmp_path / "wc_day1_2.gz"
    flat.write_bytes(record(0, 1) * 3 + b"half")
    with pytest.raises(BadInput, match="64 bytes are not a whole number of 20-byte records"):
        trace(flat)
    packed.write_bytes(gzip.compress(b"".join(record(i, i * 7919 % 10_000) for i in range(2_000)))[:-400])
    with pytest.raises(BadInput, match="truncated or damaged"):
        trace(packed)
