"""Dates as tables have them: ISO, or the day, the month and the year in another order."""

from __future__ import annotations

import re
from collections.abc import Sequence

ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?")
_TIME = r"(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?"
_YEAR_FIRST = re.compile(rf"\d{{4}}/\d{{1,2}}/\d{{1,2}}{_TIME}")
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([/.-])(\d{{1,2}})[/.-]\d{{4}}{_TIME}")
_LOOSE = re.compile(r",|\.\d{7}|UTC|\s[+-]")  # ISO as logs have it, which not every reader takes
ORDERS = ("dmy", "mdy")
"""What `--dates` takes: the day first, or the month."""

_PAD = (r"\b([0-9])([/.:-])", r"0\g1\g2")
# What each order is rewritten with, one after the other, until it is ISO. `\g1` stands for the first group: Arrow
# writes it \1 and Spark $1; both know this much of regular expressions (no look-around).
REWRITES: dict[str, tuple[tuple[str, str], ...]] = {
    "iso": (),
    "loose": ((r"([0-9])[.,]([0-9]{1,6})[0-9]*", r"\g1.\g2"), (r"\s*(?:UTC|Z)$", "Z"), (r"\s+([+-])", r"\g1")),
    "ymd": (_PAD, (r"/([0-9])\b", r"/0\g1"), (r"^([0-9]{4})/([0-9]{2})/", r"\g1-\g2-")),
    "dmy": (_PAD, (r"^([0-9]{2}).([0-9]{2}).([0-9]{4})", r"\g3-\g2-\g1")),
    "mdy": (_PAD, (r"^([0-9]{2}).([0-9]{2}).([0-9]{4})", r"\g3-\g1-\g2")),
}


def is_iso(text: str) -> bool:
    return ISO.fullmatch(text) is not None


def is_date(text: str) -> bool:
    return any(form.fullmatch(text) for form in (ISO, _YEAR_FIRST, _YEAR_LAST))


def order_of(dates: Sequence[str]) -> str | None:
    """In which order day, month and year stand; None where 01/02/2024 may be in January or in February.

    >>> order_of(["2024-02-01 10:00"]), order_of(["1/13/2024 9:05"]), order_of(["01.02.2024"]), order_of(["01/02/2024"])
    ('iso', 'mdy', 'dmy', None)
    >>> order_of(["2024-02-01 10:00:00,123"]), order_of(["2024-02-01 10:00 UTC"])
    ('loose', 'loose')
    """
    if sum(map(is_iso, dates)) * 2 >= len(dates) > 0:
        return "loose" if any(map(_LOOSE.search, dates)) else "iso"
    if any(_YEAR_FIRST.fullmatch(text) for text in dates):
        return "ymd"
    found = [match for match in map(_YEAR_LAST.fullmatch, dates) if match]
    # Points are written in countries that begin with the day; slashes and hyphens in both kinds.
    if any(int(match[1]) > 12 or match[2] == "." for match in found):
        return "dmy"
    return "mdy" if any(int(match[3]) > 12 for match in found) else None


def iso_text(text: str, order: str) -> str:
    """A date of some order as ISO.

    >>> iso_text("1/2/2024 9:05", "mdy"), iso_text("01.02.2024", "dmy"), iso_text("2024/2/1 9:05", "ymd")
    ('2024-01-02 09:05', '2024-02-01', '2024-02-01 09:05')
    """
    for pattern, new in REWRITES[order]:
        text = re.sub(pattern, re.sub(r"\\g(\d)", r"\\g<\1>", new), text)
    return text
