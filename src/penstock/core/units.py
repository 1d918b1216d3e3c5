"""Quantities as people write them: `90s`, `50/s`, `0.10/h`."""

from __future__ import annotations

import re

from penstock.core.bounds import EVENTS_LEAST, EVENTS_MOST, SPAN_MOST_S
from penstock.core.errors import BadInput

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER_UNIT = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def duration_s(text: str, what: str = "duration", least_s: float = 0.0, most_s: float = SPAN_MOST_S) -> float:
    """Seconds in a duration with a unit.

    >>> duration_s("90s"), duration_s("1.5h"), duration_s("250ms")
    (90.0, 5400.0, 0.25)
    >>> duration_s("0s", "--every", least_s=0.01)
    Traceback (most recent call last):
    penstock.core.errors.BadInput: --every '0s' is out of range: it must be from 10 ms to 11574 d
    """
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2] not in SECONDS:
        raise BadInput(f"{what} '{text}' is not a duration: write a number and a unit, such as 90s, 5m or 1h")
    seconds = float(match[1]) * SECONDS[match[2]]
    if not least_s <= seconds <= most_s:
        allowed = f"from {show_duration(least_s)} to {show_duration(most_s)}"
        raise BadInput(f"{what} '{text}' is out of range: it must be {allowed}")
    return seconds


def per_second(text: str, what: str = "rate") -> float:
    """Events per second in a rate such as `50/s` or `3000/m`.

    >>> per_second("50/s"), per_second("3000/m")
    (50.0, 50.0)
    """
    amount, slash, unit = (part.strip() for part in text.partition("/"))
    match = _NUMBER_UNIT.fullmatch(amount)
    if not slash or match is None or match[2] or unit not in SECONDS:
        raise BadInput(f"{what} '{text}' is not a rate: write events per time, such as 50/s or 3000/m")
    return _possible(float(match[1]) / SECONDS[unit], text, what)


def show_duration(seconds: float) -> str:
    """A duration for a person.

    >>> show_duration(90), show_duration(0.25), show_duration(7200), show_duration(200_000)
    ('90 s', '250 ms', '2 h', '2.31 d')
    """
    if seconds == 0:
        return "0 s"
    for unit, size, least in (("d", 86400.0, 2), ("h", 3600.0, 2), ("min", 60.0, 2), ("s", 1.0, 1), ("ms", 1e-3, 1)):
        if seconds >= least * size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e6:.3g} µs"


_BYTES = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}


def rows_per_second(text: str, bytes_per_row: float | None, what: str = "rate") -> float:
    """Rows per second in `40MB/s` (MB = 10⁶ bytes) or `5000/s`.

    >>> rows_per_second("40MB/s", bytes_per_row=100.0), rows_per_second("5000/s", None)
    (400000.0, 5000.0)
    """
    amount, _, unit = (part.strip() for part in text.partition("/"))
    match = _NUMBER_UNIT.fullmatch(amount)
    if match is None or match[2] not in _BYTES:
        if match is None or match[2] not in ("", "rows") or unit not in SECONDS:
            raise BadInput(f"{what} '{text}' is not a rate: write it with its unit, such as 40MB/s or 5000/s")
        return per_second(f"{match[1]}/{unit}", what)
    if unit not in SECONDS:
        raise BadInput(f"{what} '{text}' is not a rate: write it with its unit, such as 40MB/s or 5000/s")
    if not bytes_per_row:
        raise BadInput(
            f"{what} '{text}' is in bytes, and the model does not say how long a row is: give rows, as in 5000/s"
        )
    return _possible(float(match[1]) * _BYTES[match[2]] / SECONDS[unit] / bytes_per_row, text, what)


def _possible(rate: float, text: str, what: str) -> float:
    if not EVENTS_LEAST <= rate <= EVENTS_MOST:
        raise BadInput(f"{what} '{text}' is out of range: it must be from {EVENTS_LEAST:g} to {EVENTS_MOST:g} a second")
    return rate
