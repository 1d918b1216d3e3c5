"""Log analysis of three queries over Kafka (paper 4 §VI): a parser, then a counter and a matcher.

Each reads one topic and writes another. A line keeps the header `us`, the microseconds at which it was sent:
Kafka's own timestamps are milliseconds, of which a bursty stream has many alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.core.dataflow import Dataflow, Operator

SENT = "us"
LINE = r'^(\S+) - (\S+) \[([^\]]+)\] "([A-Z]+) (\S+) HTTP/[\d.]+" (\d{3}) (\d+)$'
MALFORMED = 0.02
# Queries of a request are as long as Erlang-2 draws, and so is what the operators do with a line.
QUERY_CHARS = 500
REPEATS = 16
_WORDS = ("select", "union", "script", "passwd", "admin", "login", "cart", "page", "item", "search", "token", "lang")


@dataclass(frozen=True, slots=True)
class LogOperator:
    """One query: what it reads and writes (topics by their role), and how much of a core its whole share is."""

    name: str
    reads: str
    writes: str
    cores: float
    transform: Callable[[DataFrame], DataFrame]
    trigger_s: float | None = None
    """None: rows one by one, as they come. Spark's real-time mode keeps no state, so what counts has micro-batches."""

    @property
    def is_real_time(self) -> bool:
        return self.trigger_s is None


def sent_us() -> Column:
    """When a line was sent, of the headers of its record."""
    header = F.element_at(F.filter("headers", lambda each: each["key"] == SENT), 1)
    return header["value"].cast("string").cast("long")


def parse(rows: DataFrame) -> DataFrame:
    """Host, method, path, status and bytes of each line; malformed lines are dropped."""
    line = F.col("value").cast("string")
    fields = [F.regexp_extract(line, LINE, group) for group in (1, 4, 5, 6, 7)]
    return rows.where(line.rlike(LINE)).select(F.concat_ws("\t", *fields).alias("value"), "headers")


def count(rows: DataFrame) -> DataFrame:
    """Lines by status, and when the latest of them was sent: so much is known to be counted."""
    status = F.split(F.col("value").cast("string"), "\t")[3].alias("status")
    counted = rows.select(status, sent_us().alias("sent")).groupBy("status")
    latest = counted.agg(F.count("*").alias("lines"), F.max("sent").alias("sent"))
    header = F.struct(F.lit(SENT).alias("key"), F.col("sent").cast("string").cast("binary").alias("value"))
    return latest.select(F.concat_ws("\t", "status", "lines").alias("value"), F.array(header).alias("headers"))


def match(rows: DataFrame) -> DataFrame:
    """How often each pattern of an attack occurs in a request: regular expressions that go over it again and again."""
    path = F.split(F.col("value").cast("string"), "\t")[2]
    found = [F.regexp_count(path, F.lit(pattern)).cast("string") for pattern in PATTERNS]
    return rows.select(F.concat_ws(" ", *found).alias("value"), "headers")


def _patterns() -> Iterator[str]:
    """Words that follow each other, and names that come again, within some parameters: work grows with the line."""
    for word, other in zip(_WORDS, (*_WORDS[3:], *_WORDS[:3]), strict=True):
        yield rf"(?i){word}=\d+&(?:[a-z]+=\d+&){{0,6}}{other}="
    for between in range(1, REPEATS + 1):
        yield rf"(?i)([a-z]{{4,}})=\d+&(?:[a-z]+=\d+&){{{between}}}\1="


PATTERNS = tuple(_patterns())
LINES, PARSED, COUNTED, MATCHED = "lines", "parsed", "counted", "matched"
OPERATORS: Mapping[str, LogOperator] = {
    each.name: each
    for each in (
        LogOperator("parser", LINES, PARSED, 0.25, parse),
        LogOperator("counter", PARSED, COUNTED, 0.25, count, trigger_s=5.0),
        LogOperator("matcher", PARSED, MATCHED, 0.5, match),
    )
}
ROLES = (LINES, PARSED, COUNTED, MATCHED)


def topic_names(lines: str, mark: str) -> dict[str, str]:
    """Each role's topic; those that a run makes carry its mark.

    >>> topic_names("access", "1f")["parsed"]
    'access-1f-parsed'
    """
    return {role: lines if role == LINES else f"{lines}-{mark}-{role}" for role in ROLES}


def flow(costs_s: Mapping[str, float]) -> Dataflow:
    """The job as policies see it. `costs_s` are seconds of a line at an operator that has its whole share."""
    return Dataflow(
        (
            Operator("parser", costs_s.get("parser", 0.0), selectivity=1 - MALFORMED),
            Operator("counter", costs_s.get("counter", 0.0), after=("parser",)),
            Operator("matcher", costs_s.get("matcher", 0.0), after=("parser",)),
        )
    )


def log_lines(lines: int, seed: int = 0) -> list[str]:
    """Lines of a web server's log; two of a hundred are cut short."""
    rng = np.random.default_rng(seed)
    lengths = (rng.standard_gamma(2.0, lines) * QUERY_CHARS / 2).astype(int)
    return [
        _line(rng, length, is_cut=draw < MALFORMED) for length, draw in zip(lengths, rng.random(lines), strict=True)
    ]


def _line(rng: np.random.Generator, length: int, is_cut: bool) -> str:
    words = rng.choice(_WORDS, length // 12 + 2)
    numbers = rng.integers(0, 9999, len(words))
    query = "&".join(f"{word}={number}" for word, number in zip(words, numbers, strict=True))[: length + 8]
    host, status = f"10.0.{rng.integers(256)}.{rng.integers(256)}", rng.choice(("200", "200", "200", "304", "404"))
    line = f'{host} - - [18/Nov/2026:12:00:00 +0000] "GET /{words[0]}?{query} HTTP/1.1" {status} {rng.integers(9999)}'
    return line[: len(line) // 2] if is_cut else line
