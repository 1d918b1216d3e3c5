"""Quantities as people write them: `90s`, `50/s`, `0.10/h`."""

from __future__ import annotations

import math
import re

from penstock.core.errors import BadInput

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER_UNIT = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def duration_s(text: str, what: str = "duration") -> float:
    """Seconds in a duration with a unit.

    >>> duration_s("90s"), duration_s("1.5h"), duration_s("250ms")
    (90.0, 5400.0, 0.25)
    """
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2] not in SECONDS:
        raise BadInput(f"{what} '{text}' is not a duration: write a number and a unit, such as 90s, 5m or 1h")
    seconds = float(match[1]) * SECONDS[match[2]]
    if not math.isfinite(seconds):
        raise BadInput(f"{what} '{text}' is too large")
    return seconds


def per_second(text: str, what: str = "rate") -> float:
    """Events per second in a rate such as `50/s` or `3000/m`.

    >>> per_second("50/s"), per_second("3000/m")
    (50.0, 50.0)
    """
    amount, slash, unit = (part.strip() for part in text.partition("/"))
    match = _NUMBER_UNIT.fullmatch(amount)
    if not slash or match is None or match[2] or unit not in SECONDS or float(match[1]) <= 0:
        raise BadInput(f"{what} '{text}' is not a rate: write events per time, such as 50/s or 3000/m")
    return float(match[1]) / SECONDS[unit]


def show_duration(seconds: float) -> str:
    """A duration for a person.

    >>> show_duration(90), show_duration(0.25), show_duration(7200), show_duration(200_000)
    ('90 s', '250 ms', '2 h', '2.31 d')
    """
    if seconds == 0:
        return "0 s"
    for unit, size, least in (("d", 86400.0, 2), ("h", 3600.0, 2), ("min", 60.0, 2), ("s", 1.0, 1), ("ms", 1e-3, 1)):
        if seconds >= least * size:
            return f"{seconds / size:.3g} {unit}"
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
    return float(match[1]) * _BYTES[match[2]] / SECONDS[unit] / bytes_per_row
