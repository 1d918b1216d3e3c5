"""What the columns of a table mean, for every command that reads one: certain, or asked for in one line.

A table holds counts per interval, rates, single arrivals (one time a row) or inter-arrival times.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.column_names import (
    UNITS_S,
    ends_as_time,
    is_count_name,
    is_iat_name,
    is_time_name,
    is_total_name,
    is_unit_name,
    rate_period_s,
    unit_of,
)
from penstock.core.dates import ORDERS, order_of
from penstock.core.errors import BadInput, unknown
from penstock.core.first_cells import Sample, epoch_unit, is_evenly_spaced, moments_s, mostly_whole, only_grows
from penstock.core.text import one_line, some_of

KINDS = ("counts", "rates", "times", "iat")
"""Counts per interval, events per second (or the period that the name says), one arrival a row, times between them."""
_UNITS = "s, ms, us, ns, min, h or d"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person said about a table; `source` is how messages name it."""

    source: str
    kind: str | None = None
    column: str | None = None
    time: str | None = None
    unit: str | None = None
    dates: str | None = None
    step_s: float | None = None
    """How long the interval of each row is, where no times show it."""
    step_option: str = "--step"
    """The option that says so: `--every` in a replay."""

    def __post_init__(self) -> None:
        for what, given, known in (
            ("kind of table", self.kind, KINDS),
            ("unit", self.unit, tuple(UNITS_S)),
            ("order of dates", self.dates, ORDERS),
        ):
            if given is not None and given not in known:
                raise unknown(what, given, known)


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table to read, and as what."""

    kind: str
    value: str | None = None
    time: str | None = None
    time_unit: str | None = None
    """The unit of times that are numbers; None for dates."""
    dates: str = "iso"
    """How dates are written, a key of `REWRITES`: iso, loose, ymd, dmy or mdy."""
    value_unit: str | None = None
    """The unit of inter-arrival times."""
    per_s: float | None = None
    """What a rate is counted over, in seconds."""
    bytes: str | None = None


def columns_of(sample: Sample, asked: Asked) -> Columns:
    """What the table holds, or a BadInput that names the option to pass."""
    for name in (asked.column, asked.time):
        if name is not None and name not in sample.names:
            raise unknown(f"column of {asked.source}", name, sample.names)
    if not any(sample.columns):
        raise BadInput(f"{asked.source} is empty: a series has at least one row")
    if asked.kind == "iat":
        return _iat(asked, _value_column(sample, asked, None))
    time = _time_column(sample, asked)
    if asked.kind == "times":
        return _times(sample, asked, time or asked.column or _only(sample, asked))
    if time is None:
        return _untimed(sample, asked)
    if len(sample.names) == 1 and asked.kind is None:
        return _times(sample, asked, time)
    return _timed(sample, asked, time)


def _timed(sample: Sample, asked: Asked, time: str) -> Columns:
    found = _clock(sample, asked, time)
    value = _value_column(sample, asked, time)
    kind, per_s = _counted(sample, asked, value)
    if asked.kind is None and kind == "counts" and not is_count_name(value):
        times = moments_s(sample.values(time), found.time_unit, found.dates)
        if not is_evenly_spaced(times):
            raise BadInput(
                f"{asked.source}: '{one_line(value, 60)}' could be counts of an interval (--kind counts) or belong to "
                "one arrival a row (penstock trace --kind times): the times are not evenly spaced"
            )
    size = "bytes" if "bytes" in sample.numbers and value != "bytes" else None
    return Columns(kind, value, time, found.time_unit, found.dates, per_s=per_s, bytes=size)


def _untimed(sample: Sample, asked: Asked) -> Columns:
    value = _value_column(sample, asked, None)
    if asked.kind is None and value not in sample.numbers:
        raise BadInput(f"{asked.source}: no column of numbers among {some_of(sample.names)}")
    if asked.kind is None and is_iat_name(value):
        return _iat(asked, value)
    if asked.kind is None and (asked.step_s is None or unit_of(value)):
        raise BadInput(
            f"{asked.source}: no column of times, and what the numbers in '{one_line(value, 60)}' mean is not certain: "
            f"pass --kind counts {asked.step_option} 60s (counts, one an interval){_also(asked)}"
        )
    if asked.step_s is None:
        raise BadInput(
            f"{asked.source} has no column of times: pass {asked.step_option}, the interval of each row "
            f"({asked.step_option} 60s), or --time with the column that holds them"
        )
    kind, per_s = _counted(sample, asked, value)
    return Columns(kind, value, per_s=per_s)


def _also(asked: Asked) -> str:
    command = "" if asked.step_option == "--step" else "; `penstock trace` also reads "
    both = "--kind iat (inter-arrival times), --kind times (points in time)"
    return f"{command or ', '}{both}"


def _counted(sample: Sample, asked: Asked, value: str) -> tuple[str, float | None]:
    """Counts, or rates and their period."""
    named = rate_period_s(value)
    if asked.kind == "counts":
        return "counts", None
    if asked.kind == "rates" or named is not None:
        return "rates", named or 1.0
    shown = one_line(value, 60)
    if is_total_name(value) and only_grows(sample.values(value)):
        raise BadInput(
            f"{asked.source}: '{shown}' only grows, as a counter does: a series has what is new in each interval "
            "(increase() in Prometheus); pass --kind counts if it is that"
        )
    if not is_count_name(value) and not mostly_whole(sample.values(value)):
        raise BadInput(
            f"{asked.source}: whether '{shown}' counts events or is a rate is not certain, as it is not whole: "
            "pass --kind counts (per interval) or --kind rates (events per second)"
        )
    return "counts", None


def _times(sample: Sample, asked: Asked, time: str) -> Columns:
    found = _clock(sample, asked, time)
    return Columns("times", time=time, time_unit=found.time_unit, dates=found.dates)


def _iat(asked: Asked, value: str) -> Columns:
    unit = asked.unit or unit_of(value)
    if unit is None:
        raise BadInput(f"{asked.source}: the name '{value}' has no unit (as in iat_us): pass --unit {_UNITS}")
    return Columns("iat", value, value_unit=unit)


def _clock(sample: Sample, asked: Asked, time: str) -> Columns:
    """How the times are written: in which unit, or in which order."""
    if time in sample.numbers:
        return Columns("times", time=time, time_unit=asked.unit or _unit(sample, asked, time))
    first = one_line(next(iter(sample.values(time)), ""), 60)
    if time not in sample.dates and first:
        raise BadInput(f"{asked.source}: {time} is '{first}'; it should be a time such as 2024-05-01 13:45:00")
    order = order_of(sample.values(time))
    if order is None and asked.dates is None and first:
        raise BadInput(
            f"{asked.source}: whether '{first}' in '{one_line(time, 60)}' begins with the day or the month is not "
            "certain: pass --dates dmy or --dates mdy"
        )
    return Columns(
        "times", time=time, dates=order if order in ("iso", "loose", "ymd") else asked.dates or order or "iso"
    )


def _unit(sample: Sample, asked: Asked, time: str) -> str:
    named, seen = unit_of(time), epoch_unit(sample.values(time))
    # Seconds up to the year 2286 have ten digits: more digits than the name's unit allows are another unit.
    if named is not None and (seen is None or UNITS_S[seen] >= UNITS_S[named]):
        return named
    if named is None and seen is not None:
        return seen
    why = "its name has no unit (as in time_ms)" if named is None else f"they have the digits of {seen}, not of {named}"
    raise BadInput(f"{asked.source}: the times in '{one_line(time, 60)}' are numbers, and {why}: pass --unit {_UNITS}")


def _time_column(sample: Sample, asked: Asked) -> str | None:
    if asked.time is not None:
        return asked.time
    if asked.kind == "times" and asked.column is not None:
        return asked.column
    free = [name for name in sample.names if name != asked.column]
    dates = [name for name in free if name in sample.dates]
    numbers = [name for name in free if name in sample.numbers and _is_clock(sample, name)]
    # A name without a unit is the last choice: `time` may be how long something took.
    named = [name for name in free if name in sample.numbers and is_time_name(name)]
    found = dates or numbers or named or [name for name in free if is_time_name(name)]
    if len(found) > 1:
        raise BadInput(f"{asked.source}: several columns of times: pass --time with one of {some_of(found)}")
    return found[0] if found else None


def _is_clock(sample: Sample, name: str) -> bool:
    """Numbers that are surely times: `t_s`, `epoch_ms`, `timestamp` since 1970, a `minute` that only grows."""
    if is_iat_name(name):
        return False
    if is_time_name(name):
        return unit_of(name) is not None or epoch_unit(sample.values(name)) is not None
    if is_unit_name(name):
        return only_grows(sample.values(name))
    return ends_as_time(name) and epoch_unit(sample.values(name)) is not None


def _value_column(sample: Sample, asked: Asked, time: str | None) -> str:
    if asked.column is not None:
        return asked.column
    rest = [name for name in sample.named if name != time]
    found = [name for name in rest if name in sample.numbers and not _is_clock(sample, name)]
    if "arrivals" in found:  # what `penstock trace` writes, beside the bytes
        return "arrivals"
    found = [name for name in found if name != "bytes"] or found
    if len(found) > 1:
        several = "several columns of numbers" + ("" if sample.has_header else " (it has no header)")
        raise BadInput(f"{asked.source}: {several}: choose one with --column ({some_of(found)})")
    if not found and not rest:
        raise BadInput(f"{asked.source} has only a column of times: a series also has one of counts")
    if not found and len(rest) > 1:
        raise BadInput(f"{asked.source}: no column of numbers among {some_of(sample.names)}")
    return (found or rest)[0]  # where it holds no numbers, the cells are named when they are read


def _only(sample: Sample, asked: Asked) -> str:
    if len(sample.names) == 1:
        return sample.names[0]
    raise BadInput(f"{asked.source}: no column of times among {some_of(sample.names)}: pass --time")
