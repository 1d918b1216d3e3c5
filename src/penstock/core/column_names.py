"""What the name of a column says: a time and its unit, counts, a rate and its period, inter-arrival times."""

from __future__ import annotations

import re

UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SPELLINGS = {
    "s": "s sec secs second seconds",
    "ms": "ms msec millis millisecond milliseconds",
    "us": "us µs usec micros microsecond microseconds",
    "ns": "ns nsec nanos nanosecond nanoseconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
}
_UNIT_WORDS = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
_TIME_WORDS = frozenset({"t", "ts", "time", "times", "timestamp", "epoch", "unix", "unixtime", "date", "datetime"})
_COUNTED = "arrivals calls clicks count counts events hits items messages n num number packets queries records requests"
_COUNT_WORDS = frozenset(f"{_COUNTED} rows transactions tweets views visits".split())
_PERIOD = re.compile(r"(?:(?:^|[^a-z])per[ _]?|/ ?)([0-9]*)[ _]?([a-zµ]+)[)\]]?$")
_PER_SECOND = re.compile(r"rate$|(?:^|[^a-z])i?rate(?:\(|_?[0-9]+[smhd]$)|(?:^|[^a-z])(?:[rqte]|req|io|op)ps$")
_PER_MINUTE = re.compile(r"(?:^|[^a-z])[rqte]pm$")
_IAT = re.compile(r"(^|[^a-z])(iat|inter[ _-]?arrivals?)([^a-z]|$)")
UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""What pandas calls the column of an index that has no name."""


def words(name: str) -> list[str]:
    """The words of a name, in lower case.

    >>> words("eventTime_ms"), words("Time (s)")
    (['event', 'time', 'ms'], ['time', 's'])
    """
    return [word for word in re.split(r"[\W_]+", _apart(name).lower()) if word]


def _apart(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def unit_of(name: str) -> str | None:
    """The unit that a name ends in, or that stands before `since`.

    >>> unit_of("iat_us"), unit_of("ms_since_midnight"), unit_of("minute"), unit_of("requests")
    ('us', 'ms', 'min', None)
    """
    parts = words(name)
    if len(parts) > 2 and parts[1] == "since":
        return _UNIT_WORDS.get(parts[0])
    return _UNIT_WORDS.get(parts[-1]) if parts else None


def is_time_name(name: str) -> bool:
    """A name that begins as a time does: `timestamp`, `t_s`, `date_utc`, `ms_since_midnight`."""
    parts = words(name)
    return bool(parts) and (parts[0] in _TIME_WORDS or (len(parts) > 2 and parts[1] == "since"))


def ends_as_time(name: str) -> bool:
    """`event_time`: a time if its numbers are; a `response_time` is none."""
    parts = words(name)
    return bool(parts) and parts[-1] in _TIME_WORDS


def is_unit_name(name: str) -> bool:
    """A name that is a unit and nothing else: `minute`, `hour`."""
    parts = words(name)
    return len(parts) == 1 and len(parts[0]) > 2 and parts[0] in _UNIT_WORDS


def is_iat_name(name: str) -> bool:
    return _IAT.search(name.lower()) is not None


def is_count_name(name: str) -> bool:
    """A name that says how many: `requests`, `num_calls`, `hit_count`."""
    parts = words(name)
    return bool(parts) and (parts[-1] in _COUNT_WORDS or parts[0] in ("num", "count", "n", "number"))


def is_total_name(name: str) -> bool:
    """A name that counters have: `http_requests_total`, `cumulative_hits`."""
    parts = words(name)
    return bool(parts) and (parts[-1] == "total" or parts[0].startswith("cumul"))


def rate_period_s(name: str) -> float | None:
    """Over how long a rate counts, by its name; None for a name that says no rate.

    >>> rate_period_s("rate"), rate_period_s("requests_per_minute"), rate_period_s("req/s"), rate_period_s("hits")
    (1.0, 60.0, 1.0, None)
    >>> rate_period_s("packets_per_100ms"), rate_period_s("sum(rate(http_requests_total[5m]))")
    (0.1, 1.0)
    """
    low = _apart(name.strip()).lower()
    if _PER_SECOND.search(low):
        return 1.0
    if _PER_MINUTE.search(low):
        return 60.0
    period = _PERIOD.search(low)
    unit = _UNIT_WORDS.get(period[2]) if period else None
    if period is None or unit is None:
        return None
    return float(period[1] or 1) * UNITS_S[unit] or None
