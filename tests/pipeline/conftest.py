"""One Spark session for all tests of the pipeline, and a short way to make a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.pipeline.request import TraceRequest, TraceSummary
from penstock.pipeline.session import session
from penstock.pipeline.trace_job import make_trace

Trace = Callable[..., TraceSummary]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session("local[2]", "tests") as running:
        yield running


@pytest.fixture
def trace(spark: SparkSession, tmp_path: Path) -> Trace:
    """Makes `out/rates.parquet` in the test's folder."""
    out = tmp_path / "out"
    out.mkdir()

    def make(source: Path, every_s: float = 60.0, **options: Any) -> TraceSummary:
        return make_trace(TraceRequest(source, out / "rates.parquet", every_s, **options))

    return make


@pytest.fixture
def rates(tmp_path: Path) -> Any:
    """Reads back what was written: {second since 1970: arrivals}, in the order of the file."""

    def read(column: str = "arrivals") -> dict[float, float]:
        table = pq.read_table(tmp_path / "out" / "rates.parquet")
        times = [time.timestamp() for time in table["time"].to_pylist()]
        return dict(zip(times, table[column].to_pylist(), strict=True))

    return read
