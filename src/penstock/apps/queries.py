"""Paper 2's three query templates (§5, Listing 1) as Structured Streaming SQL, and its workloads of many instances.

Listing 1 groups hashtags by a company's name, which a tweet has not: by hashtag is meant. It orders them by how often
they came, which Spark can only do where it puts out all of them again after each batch: whoever reads them sorts them.
First and last are those of the earliest and latest tick: Spark's own `first` depends on how a batch was cut up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from penstock.apps.query_inputs import SECTORS
from penstock.core.bounds import between
from penstock.core.errors import unknown

LATE = "1 minute"

CANDLESTICKS = """
SELECT window.start AS begin, sector, symbol, max(price) AS high, min(price) AS low, avg(price) AS mean,
       min_by(price, struct(at, price)) AS first, max_by(price, struct(at, price)) AS last, count(*) AS events
FROM {ticks} WHERE :sector IN ('%%', sector) GROUP BY window(at, '%d seconds'), sector, symbol
"""
HASHTAGS = """
SELECT window.start AS begin, hashtag, count(*) AS events
FROM {tags} WHERE startswith(hashtag, :prefix) GROUP BY window(at, '%d seconds'), hashtag
"""
METERS = """
SELECT window.start AS begin, house, meter, median(watts) AS median, count(*) AS events
FROM {loads} WHERE :house IN ('%%', house) GROUP BY window(at, '%d seconds'), house, meter
"""
AT = "try_cast(get(parts, 0) AS timestamp) AS at"
TICK = (AT, "get(parts, 1) AS symbol", "get(parts, 2) AS sector", "try_cast(get(parts, 3) AS double) AS price")
TAG = (AT, "explode(regexp_extract_all(lower(get(parts, 1)), '#([a-z0-9_]+)', 1)) AS hashtag")
LOAD = (AT, "get(parts, 1) AS house", "get(parts, 2) AS meter", "try_cast(get(parts, 3) AS double) AS watts")


def candlesticks(rows: DataFrame, sector: str = "%", window_s: int = 60) -> DataFrame:
    """Highest, lowest, mean, first and last price of each symbol of a sector; % is all of them."""
    return _asked(CANDLESTICKS, window_s, {"sector": sector}, ticks=_events(rows, TICK))


def hashtags(rows: DataFrame, prefix: str = "", window_s: int = 60) -> DataFrame:
    """How often each hashtag that begins so was used."""
    return _asked(HASHTAGS, window_s, {"prefix": prefix.lower()}, tags=_events(rows, TAG))


def meter_loads(rows: DataFrame, house: str = "%", window_s: int = 60) -> DataFrame:
    """The median load of each meter of a household; % is all of them."""
    return _asked(METERS, window_s, {"house": house}, loads=_events(rows, LOAD))


def _events(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """What a line says; one that says nothing of the kind has no time, and is in no window."""
    split = rows.selectExpr("split(value, '\t') AS parts")
    return split.selectExpr(*columns).where("at IS NOT NULL").withWatermark("at", LATE)


def _asked(template: str, window_s: int, given: Mapping[str, str], **rows: DataFrame) -> DataFrame:
    between("window_s", window_s, 1, 86_400)
    spark = next(iter(rows.values())).sparkSession
    return spark.sql(template % window_s, args=dict(given), **rows)


@dataclass(frozen=True, slots=True)
class Instance:
    """One query of a workload."""

    name: str
    app: str
    parameters: Mapping[str, str | int] = field(default_factory=dict)


PREFIXES = tuple("abcdefghijklmnopqrst")
HOUSES = tuple(f"house{number}" for number in range(10))
WINDOWS_S = (10, 20, 30, 60, 120)
WORKLOADS: Mapping[str, int] = {"financial": 35, "twitter": 20, "energy": 10}


def instances(workload: str) -> list[Instance]:
    """The queries of one of the paper's workloads: the same in all experiments (§5.1).

    >>> len(instances("financial")), instances("energy")[1]
    (35, Instance(name='energy-house1-20s', app='meter-loads', parameters={'house': 'house1', 'window_s': 20}))
    """
    if workload not in WORKLOADS:
        raise unknown("workload", workload, WORKLOADS)
    app, key, values = {
        "financial": ("candlesticks", "sector", SECTORS),
        "twitter": ("hashtags", "prefix", PREFIXES),
        "energy": ("meter-loads", "house", HOUSES),
    }[workload]
    found = []
    for number in range(WORKLOADS[workload]):
        # Seven sectors, five windows: their product is 35. Elsewhere there are as many values as queries.
        value = values[number % len(values)]
        window_s = WINDOWS_S[(number // len(values) if workload == "financial" else number) % len(WINDOWS_S)]
        found.append(Instance(f"{workload}-{value}-{window_s}s", app, {key: value, "window_s": window_s}))
    return found
