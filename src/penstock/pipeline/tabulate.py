"""From what was read to intervals: events are counted, counts added up, spans spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from penstock.core.errors import BadInput
from penstock.pipeline.head import shortened
from penstock.pipeline.intervals import per_interval, spread
from penstock.pipeline.reading import Reading
from penstock.pipeline.recognise import Source
from penstock.pipeline.request import TraceRequest
from penstock.pipeline.spacing import fit, spacing
from penstock.pipeline.store import stored

BAD_SHARE_MAX = 0.5


@dataclass(frozen=True, slots=True)
class Tabulated:
    """Intervals that hold something, how many lines were read, and how many were bad for which reason."""

    intervals: DataFrame
    rows: int
    bad: Mapping[str, int]
    phase_us: int = 0
    gap_us: int = 0
    notes: tuple[str, ...] = ()


def tabulated(source: Source, reading: Reading, request: TraceRequest, scratch: Path) -> Tabulated:
    """The intervals of a source. The source is read here, once."""
    if source.kind.holds == "events":
        kept = stored(per_interval(reading.rows, request.every_us), scratch / "intervals")
        rows, bad = _tally(kept, reading, request)
        return Tabulated(_good(kept), rows, bad, gap_us=request.gap_us, notes=reading.notes)
    if source.kind.holds == "counts":
        kept = stored(per_interval(reading.rows, 1), scratch / "counts")
        rows, bad = _tally(kept, reading, request)
        per_s = source.layout[1].per_s if source.layout else None
        return _summed(_good(kept), per_s, request, Tabulated(kept, rows, bad, notes=reading.notes))
    kept = stored(reading.rows, scratch / "spans")
    rows, bad = _tally(kept, reading, request)
    spans = kept.where(fn.col("begin").isNotNull())
    return Tabulated(spread(spans, request.every_us), rows, bad, notes=reading.notes)


def _good(kept: DataFrame) -> DataFrame:
    return kept.where(fn.col("reason").isNull())


def _summed(points: DataFrame, per_s: float | None, request: TraceRequest, seen: Tabulated) -> Tabulated:
    """Counts of longer intervals; a rate over `per_s` seconds counts for as long as its own interval is."""
    found = spacing(points, request)
    fit(found.step_us, request)
    if per_s is not None:
        points = points.withColumn("arrivals", fn.col("arrivals") * (found.step_us / 1e6 / per_s))
    pieces = points.withColumn("at", fn.col("start")).withColumn("lines", fn.lit(1))
    intervals = per_interval(pieces, request.every_us, found.phase_us)
    whole = request.every_us // found.step_us
    short = intervals.where(fn.col("lines") < whole).count() if whole > 1 else 0
    note = f"intervals that lack some of their {whole} counts, so that their arrivals are a lower bound: {short}"
    return Tabulated(intervals, seen.rows, seen.bad, found.phase_us, notes=(*seen.notes, *([note] if short else ())))


def _tally(kept: DataFrame, reading: Reading, request: TraceRequest) -> tuple[int, dict[str, int]]:
    """Lines read, and bad ones by reason; a source that is mostly bad is refused."""
    counted = {
        line["reason"]: line["lines"] for line in kept.groupBy("reason").agg(fn.sum("lines").alias("lines")).collect()
    }
    rows = sum(counted.values())
    good = counted.pop(None, 0)
    if rows == 0:
        raise BadInput(f"{request.source}: holds no rows")
    if rows - good > BAD_SHARE_MAX * rows:
        worst = reading.bad.first()
        said = f"{worst['reason']}: {shortened(worst['line'])}" if worst else ""
        raise BadInput(f"{request.source}: {rows - good} of {rows} lines cannot be used; the first because {said}")
    return rows, dict(sorted(counted.items()))
