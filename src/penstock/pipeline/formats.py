"""The formats that `penstock trace` reads: detection, help, reading and messages all go by this table.

A new format is one entry in `FORMATS` and the module with its reader.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import BadInput
from penstock.pipeline.head import PARQUET, Head
from penstock.pipeline.patterns import LOG_LINE

_WC98_NAME = re.compile(r"wc_day\d+_\d+(\.gz)?$")
_WC98_TIMES = (893_000_000, 903_000_000)  # 1998-04-19 … 1998-08-13: the site's log runs from 30 April to 26 July
_WC98_RECORD = struct.Struct(">IIIIBBBB")
_TABLE_NAME = re.compile(r"\.(csv|tsv)(\.gz)?$", re.IGNORECASE)
_RESULT = re.compile(r'"resultType"\s*:\s*"(\w+)"')
_REPORT = re.compile(r'"runId"\s*:')

Holds = Literal["events", "counts", "spans"]
"""Single arrivals, numbers of them per interval, or numbers of them between two times."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What `--kind` may say of a source of some format."""

    name: str
    holds: Holds
    about: str


@dataclass(frozen=True, slots=True)
class Format:
    """One format: how it is told from the others, and what reads it."""

    name: str
    kinds: tuple[Kind, ...]
    is_seen: Callable[[Head], bool]
    reader: str
    """`module:function` in this package; loaded when it is needed, because PySpark takes 0.3 s."""
    is_text: bool = True


def _is_event_log(begin: Head) -> bool:
    first = _first_object(begin)
    return begin.codec in ("lz4", "snappy", "lzf") or ('"Event"' in first and "SparkListener" in first)


def _is_progress(begin: Head) -> bool:
    first = _first_object(begin)
    return _REPORT.search(first) is not None and '"sources"' in first


def _is_prometheus(begin: Head) -> bool:
    result = _RESULT.search(begin.text) if _first_object(begin) else None
    if result is not None and result[1] != "matrix":
        raise BadInput(f"{begin.path}: is a Prometheus {result[1]}, not a matrix: dump a query_range, not a query")
    return result is not None


def _first_object(begin: Head) -> str:
    """The first line of JSON text, else nothing."""
    is_json = begin.start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    return begin.lines[0] if is_json and not begin.is_binary else ""


def _is_wc98(begin: Head) -> bool:
    """By its name, or at least three records, all in the summer of 1998, in order, each with a known method."""
    if _WC98_NAME.search(begin.path.name):
        return True
    whole = len(begin.start) // _WC98_RECORD.size * _WC98_RECORD.size
    records = list(_WC98_RECORD.iter_unpack(begin.start[:whole]))[:200]
    times = [record[0] for record in records]
    in_season = all(_WC98_TIMES[0] <= time <= _WC98_TIMES[1] for time in times)
    return len(records) >= 3 and in_season and times == sorted(times) and all(record[4] < 16 for record in records)


def _is_log(begin: Head) -> bool:
    """At least half of the lines seen: a log may begin with a damaged line."""
    lines = [] if begin.is_binary else begin.lines[:200]
    return 2 * sum(LOG_LINE.fullmatch(line) is not None for line in lines) >= len(lines) > 0


def _is_table(begin: Head) -> bool:
    is_parquet = begin.start.startswith(PARQUET)
    return is_parquet or (not begin.is_binary and _TABLE_NAME.search(begin.path.name) is not None)


_TABLE_KINDS = (
    Kind("counts", "counts", "counts per interval: CSV or Parquet"),
    Kind("rates", "counts", "events per second, or the period that the column's name says: CSV or Parquet"),
    Kind("times", "events", "one arrival a row: CSV or Parquet"),
    Kind("iat", "events", "inter-arrival times: CSV or Parquet"),
)

# In the order in which a source is compared with them. Tables are last: any text may be named .csv.
FORMATS = (
    Format("eventlog", (Kind("eventlog", "spans", "Spark event logs"),), _is_event_log, "reports:read_reports"),
    Format("wc98", (Kind("wc98", "events", "World Cup 98 binary logs"),), _is_wc98, "wc98:read_wc98", is_text=False),
    Format(
        "progress",
        (Kind("progress", "spans", "streaming progress reports: JSON lines"),),
        _is_progress,
        "reports:read_reports",
    ),
    Format(
        "prometheus",
        (Kind("prometheus", "spans", "Prometheus query_range dumps: JSON"),),
        _is_prometheus,
        "prometheus:read_prometheus",
    ),
    Format("log", (Kind("log", "events", "access logs, common and combined"),), _is_log, "logs:read_log"),
    Format("table", _TABLE_KINDS, _is_table, "column_tables:read_table"),
)
KINDS = {kind.name: kind for form in FORMATS for kind in form.kinds}


def format_of(begin: Head, kind: str | None) -> Format:
    """The format of a file: that of the kind that was named, else the first that it looks like."""
    if kind is None:
        found = next((form for form in FORMATS if form.is_seen(begin)), None)
        if found is None:
            kinds = " | ".join(KINDS)
            raise BadInput(f"{begin.path}: its kind is not certain; it begins with {begin.seen}: pass --kind {kinds}")
        return found
    named = next(form for form in FORMATS if any(known.name == kind for known in form.kinds))
    is_parquet = named.name == "table" and begin.start.startswith(PARQUET)
    if named.is_text and not is_parquet and begin.codec in (None, "gzip") and begin.is_binary:
        raise BadInput(f"{begin.path}: is binary ({begin.seen}), not a source of kind {kind}")
    return named


def about_kinds(holds: Holds | None = None) -> str:
    """The kinds, for the help text: a line each, or the names of those that hold one thing."""
    if holds is not None:
        return ", ".join(kind.name for kind in KINDS.values() if kind.holds == holds)
    return "\n".join(f"  {kind.name:<12}{kind.about}" for kind in KINDS.values())
