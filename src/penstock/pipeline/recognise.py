"""What kind of source is this? Known from its first bytes, shape, header or name; never guessed."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import BadInput
from penstock.pipeline.head import PARQUET, Head, files, head
from penstock.pipeline.layout import Layout, layout, same_table
from penstock.pipeline.patterns import LOG_LINE
from penstock.pipeline.request import TABLE_KINDS, TraceRequest
from penstock.pipeline.tables import table

_WC98_NAME = re.compile(r"wc_day\d+_\d+(\.gz)?$")
_WC98_TIMES = (893_000_000, 903_000_000)  # 1998-04-19 … 1998-08-13: the site's log runs from 30 April to 26 July
_WC98_RECORD = struct.Struct(">IIIIBBBB")
_TABLE_NAME = re.compile(r"\.(csv|tsv)(\.gz)?$", re.IGNORECASE)
_MATRIX = re.compile(r'"resultType"\s*:\s*"(\w+)"')
_REPORT = re.compile(r'"runId"\s*:')


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a source, their kind, and for tables the columns to read."""

    kind: str
    heads: tuple[Head, ...]
    layout: Layout | None = None

    @property
    def paths(self) -> list[Path]:
        return [begin.path for begin in self.heads]


def recognise(request: TraceRequest) -> Source:
    """The kind of a source, or a BadInput that says what was seen and what to pass."""
    heads = tuple(head(path) for path in files(request.source))
    kinds = {_kind(begin, request) for begin in heads}
    if len(kinds) > 1:
        raise BadInput(f"{request.source}: holds different kinds ({', '.join(sorted(kinds))}): give one at a time")
    kind = kinds.pop()
    if kind != "table":
        return Source(kind, heads)
    tables = [table(begin) for begin in heads]
    for begin, other in zip(heads, tables, strict=True):
        same_table(tables[0], other, begin.path)
    found = layout(tables[0], request)
    return Source(found.kind, heads, found)


def _kind(begin: Head, request: TraceRequest) -> str:
    if request.kind is None:
        return _seen(begin)
    if request.kind in TABLE_KINDS:
        return "table"
    if request.kind != "wc98" and begin.codec in (None, "gzip") and begin.is_binary:
        raise BadInput(f"{begin.path}: is binary ({begin.seen}), not a source of kind {request.kind}")
    return request.kind


def _seen(begin: Head) -> str:
    if begin.start.startswith(PARQUET):
        return "table"
    if begin.codec in ("lz4", "snappy", "lzf"):
        return "eventlog"
    if _WC98_NAME.search(begin.path.name) or _is_wc98(begin.start):
        return "wc98"
    if begin.is_binary:
        raise _unrecognised(begin)
    found = _json(begin) if begin.text.lstrip().startswith("{") else None
    if found is None and _is_log(begin):
        found = "log"
    if found is None and _TABLE_NAME.search(begin.path.name):
        found = "table"
    if found is None:
        raise _unrecognised(begin)
    return found


def _json(begin: Head) -> str | None:
    first = begin.lines[0]
    if '"Event"' in first and "SparkListener" in first:
        return "eventlog"
    if _REPORT.search(first) and '"sources"' in first:
        return "progress"
    result = _MATRIX.search(begin.text)
    if result is None:
        return None
    if result[1] != "matrix":
        raise BadInput(f"{begin.path}: is a Prometheus {result[1]}, not a matrix: dump a query_range, not a query")
    return "prometheus"


def _is_log(begin: Head) -> bool:
    """At least half of the lines seen: a log may begin with a damaged line."""
    lines = begin.lines[:200]
    return 2 * sum(LOG_LINE.fullmatch(line) is not None for line in lines) >= len(lines) > 0


def _is_wc98(start: bytes) -> bool:
    """At least three records, all in the summer of 1998, in order, each with a known method."""
    whole = len(start) // _WC98_RECORD.size * _WC98_RECORD.size
    records = list(_WC98_RECORD.iter_unpack(start[:whole]))[:200]
    times = [record[0] for record in records]
    in_season = all(_WC98_TIMES[0] <= time <= _WC98_TIMES[1] for time in times)
    return len(records) >= 3 and in_season and times == sorted(times) and all(record[4] < 16 for record in records)


def _unrecognised(begin: Head) -> BadInput:
    kinds = "counts, times, iat (tables), log, wc98, progress, eventlog or prometheus"
    return BadInput(f"{begin.path}: its kind is not certain; it begins with {begin.seen}: pass --kind {kinds}")
