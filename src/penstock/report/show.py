"""Numbers as people read them: $12.30, 1.2k, 3.4 %."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from penstock.core.units import show_duration

NOTHING = "–"
_THOUSANDS = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))


def count(number: float | None) -> str:
    """A count or a rate in four characters or so.

    >>> count(0), count(7), count(12.345), count(999.6), count(1234), count(1_999_999), count(None)
    ('0', '7', '12.3', '1k', '1.23k', '2M', '–')
    """
    if number is None or not math.isfinite(number):
        return NOTHING
    for unit, size in _THOUSANDS:
        if abs(number) < 999.5 * size or unit == "T":
            return f"{float(f'{number / size:.3g}'):.10g}{unit}"
    return NOTHING


def money(amount: float | None) -> str:
    """An amount; more digits where a cent would hide it.

    >>> money(12.3), money(1234.5), money(12345.6), money(0.0042), money(0), money(None)
    ('$12.30', '$1,234.50', '$12,346', '$0.0042', '$0.00', '–')
    """
    if amount is None or not math.isfinite(amount):
        return NOTHING
    if 0 < abs(amount) < 0.1:
        return f"${float(f'{amount:.2g}'):.10f}".rstrip("0")
    return f"${amount:,.0f}" if abs(amount) >= 10_000 else f"${amount:,.2f}"


def share(part: float) -> str:
    """A share in percent.

    >>> share(0), share(0.0341), share(0.000116), share(0.00004), share(1)
    ('0 %', '3.41 %', '0.012 %', '<0.01 %', '100 %')
    """
    if not math.isfinite(part):
        return NOTHING
    if 0 < part < 0.0001:
        return "<0.01 %"
    return f"{float(f'{100 * part:.{2 if part < 0.001 else 3}g}'):g} %"


UNDERCUT = "*"
UNDERCUT_MEANS = f"{UNDERCUT} less than the bound, for it missed the objective: the bound holds for plans that keep it"


def multiple(ratio: float | None) -> str:
    """A ratio.

    >>> multiple(1.2345), multiple(12.3), multiple(None)
    ('1.23×', '12.3×', '–')
    """
    if ratio is None or not math.isfinite(ratio):
        return NOTHING
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.3g}×"


def objective(text: str) -> str:
    """An objective as a person writes it.

    >>> objective("latency<=120s"), objective("rate"), objective("throughput>=0.8")
    ('latency ≤ 120 s', 'rate ≤ capacity', 'relative throughput ≥ 0.8')
    """
    if text == "rate":
        return "rate ≤ capacity"
    if text.startswith("throughput>="):
        return text.replace("throughput>=", "relative throughput ≥ ")
    name, _, bound = text.partition("<=")
    return f"{name} ≤ {bound.removesuffix('s')} s" if bound else text


def duration(seconds: float | None) -> str:
    return show_duration(seconds) if seconds is not None and math.isfinite(seconds) else NOTHING


def verdict(missed: bool | None) -> str:
    """Whether an objective held.

    >>> verdict(True), verdict(False), verdict(None)
    ('missed', 'kept', 'unknown')
    """
    return "unknown" if missed is None else "missed" if missed else "kept"


def several(number: float, noun: str) -> str:
    """A number of things.

    >>> several(1, "worker"), several(0, "action"), several(12_345, "stretch")
    ('1 worker', '0 actions', '12.3k stretches')
    """
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count(number)} {noun}{ending}"


def fact(name: str, value: object) -> tuple[str, str]:
    """A header's fact in words: the unit moves from the name to the value.

    >>> fact("capacity_per_s", 50.0), fact("start_s", 90), fact("trace", "nasa")
    (('capacity', '50/s'), ('start', '90 s'), ('trace', 'nasa'))
    """
    number = float(value) if isinstance(value, (int, float)) else None
    if number is not None and name.endswith("_per_s"):
        return name.removesuffix("_per_s").replace("_", " "), f"{count(number)}/s"
    if number is not None and name.endswith("_s"):
        return name.removesuffix("_s").replace("_", " "), duration(number)
    return name.replace("_", " "), str(value)


def moment(time_s: float, origin_s: float | None) -> str:
    """A time of a run: the date in UTC where it is known, else the time since the beginning.

    >>> moment(90.0, None), moment(90061.0, None), moment(60.0, 0.0)
    ('0:01:30', '1 d 1:01:01', '1970-01-01 00:01:00')
    """
    if origin_s is not None:
        return datetime.fromtimestamp(origin_s + time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    days, seconds = divmod(round(time_s), 86400)
    clock = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{days} d {clock}" if days else clock
