"""From a raw source to a rate series: the order of the steps."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import Row, SparkSession

from penstock.core.errors import BadInput
from penstock.core.files import reads, same_place, writable
from penstock.pipeline.failures import plain
from penstock.pipeline.head import files
from penstock.pipeline.intervals import filled, totals, with_missing
from penstock.pipeline.reading import Reading
from penstock.pipeline.recognise import Source, recognise
from penstock.pipeline.request import ArrivalStats, TraceRequest, TraceSummary
from penstock.pipeline.session import session
from penstock.pipeline.stats import arrival_stats, dispersion_of_counts
from penstock.pipeline.store import stored, write_lines, write_series
from penstock.pipeline.tabulate import Tabulated, tabulated
from penstock.pipeline.watch import watched

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def make_trace(request: TraceRequest, done: Callable[[float], None] | None = None) -> TraceSummary:
    """Read a source, write its rate series, and say what was found; `done` is told the share done so far."""
    for path in files(request.source):
        reads(path)
    writable(request.output)
    writable(request.quarantine_path)
    if same_place(request.output, request.quarantine_path):
        raise BadInput(f"--quarantine {request.quarantine_path}: it is also the output; name another file")
    _spare(request)
    source = recognise(request)
    if request.stats and source.kind.holds != "events":
        raise BadInput(
            f"{request.source}: --stats needs single arrivals, and {source.kind.name} only give their number: "
            "inter-arrival times cannot be had from it"
        )
    # The scratch outlives the session: tasks of an interrupted job go on writing to it until the JVM has ended.
    with (
        _scratch(request) as scratch,
        session(request.master, "penstock trace") as spark,
        watched(spark, done),
        plain(request.source),
    ):
        return _made(spark, source, request, scratch)


def _spare(request: TraceRequest) -> None:
    """A file beside the output that nobody named is replaced only if an earlier run wrote it."""
    path = request.quarantine_path
    if request.quarantine is None and path.exists():
        with path.open("rb") as file:
            is_ours = request.output.exists() and file.readline(100_000).count(b"\t") >= 2
        if not is_ours:
            raise BadInput(f"{path} exists, and bad lines would go there: name another file with --quarantine")


@contextlib.contextmanager
def _scratch(request: TraceRequest) -> Iterator[Path]:
    """A folder beside the output: what is there can be renamed to it, and a cluster that sees one sees the other."""
    output = request.output.resolve()
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".scratch", dir=output.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _made(spark: SparkSession, source: Source, request: TraceRequest, scratch: Path) -> TraceSummary:
    reading = _read(spark, source, request, scratch)
    table = tabulated(source, reading, request, scratch)
    known = stored(with_missing(table.intervals, request.every_us, table.gap_us, table.phase_us), scratch / "known")
    found = totals(known).first()
    if found is None or not found["intervals"]:
        raise BadInput(f"{request.source}: {table.rows} lines, but no arrivals between two points in time")
    series = filled(known, request.every_us)
    stats = arrival_stats(reading, request, scratch) if request.stats else None
    if stats is not None:
        stats = dataclasses.replace(stats, dispersion_of_counts=dispersion_of_counts(series))
    write_series(series, request.output, scratch)
    if table.bad:
        write_lines(reading.bad, request.quarantine_path, scratch)
    return dataclasses.replace(
        _summary(source, request, table, found), stats=stats, notes=_notes(table, reading, stats)
    )


def _read(spark: SparkSession, source: Source, request: TraceRequest, scratch: Path) -> Reading:
    module, _, function = source.format.reader.partition(":")
    read = getattr(importlib.import_module(f"penstock.pipeline.{module}"), function)
    reading = read(spark, source, request, scratch)
    assert isinstance(reading, Reading)
    return reading


def _notes(table: Tabulated, reading: Reading, stats: ArrivalStats | None) -> tuple[str, ...]:
    if stats is None or reading.ties_s is None:
        return table.notes
    tie = f"times have a resolution of {reading.ties_s:g} s: arrivals within it are ties, with inter-arrival times of 0"
    return (*table.notes, tie)


def _summary(source: Source, request: TraceRequest, table: Tabulated, found: Row) -> TraceSummary:
    return TraceSummary(
        source=request.source,
        kind=source.kind.name,
        output=request.output,
        every_s=request.every_s,
        rows=table.rows,
        bad=table.bad,
        quarantine=request.quarantine_path if table.bad else None,
        intervals=found["intervals"],
        gaps=found["gaps"],
        gap_s=found["missing"] * request.every_s,
        first=_EPOCH + timedelta(microseconds=found["first"]),
        last=_EPOCH + timedelta(microseconds=found["last"]),
        arrivals=found["arrivals"],
        mean_rate=found["arrivals"] / (found["intervals"] * request.every_s),
        peak_rate=found["peak"] / request.every_s,
        bytes=found["bytes"],
    )
