"""Which columns of a table mean what: recognised where it is certain, asked for where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import BadInput, unknown
from penstock.core.text import some_of
from penstock.pipeline.request import UNITS_US, TraceRequest
from penstock.pipeline.tables import Table, is_iat_name, is_number, is_time_name, spacing_us, time_us, unit_of


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns to read. A unit of None means that the column holds dates."""

    kind: str
    table: Table
    time: str | None = None
    time_unit_us: float | None = None
    value: str | None = None
    value_unit_us: float | None = None
    bytes: str | None = None


def layout(seen: Table, request: TraceRequest) -> Layout:
    """What the table holds, or a BadInput that names what to pass."""
    for name in (request.column, request.time_column):
        if name is not None and name not in seen.names:
            raise unknown(f"column of {request.source}", name, seen.names)
    match request.kind:
        case "times":
            return _times(seen, request, _time_column(seen, request))
        case "iat":
            return _iat(seen, request, _value_column(seen, request, None))
        case "counts":
            return _counts(seen, request, _time_column(seen, request, needed=False))
        case _:
            return _certain(seen, request)


def _certain(seen: Table, request: TraceRequest) -> Layout:
    time = _time_column(seen, request, needed=False)
    if time is None:
        return _lone_numbers(seen, request)
    if len(seen.names) == 1:
        return _times(seen, request, time)
    found = _counts(seen, request, time)
    if not _surely_counts(found):
        raise BadInput(
            f"{request.source}: '{time}' and '{found.value}' could be counts of an interval (--kind counts) or "
            "one arrival a row (--kind times): the times are not evenly spaced, or the values are not whole"
        )
    return found


def _surely_counts(found: Layout) -> bool:
    if found.table.names[:2] == ("time", "arrivals"):  # what this command writes itself
        return True
    assert found.time is not None
    assert found.value is not None
    moments = [_moment(text, found.time_unit_us) for text in found.table.sample(found.time)]
    numbers = [float(text) for text in found.table.sample(found.value) if is_number(text)]
    whole = sum(number.is_integer() for number in numbers)
    evenly = spacing_us([moment for moment in moments if moment is not None]) is not None
    return evenly and 2 * whole > len(numbers)


def _moment(text: str, unit_us: float | None) -> int | None:
    try:
        return time_us(text, unit_us)
    except ValueError:
        return None


def _lone_numbers(seen: Table, request: TraceRequest) -> Layout:
    value = _value_column(seen, request, None)
    if len(seen.names) == 1 and is_iat_name(value) and (request.unit or unit_of(value)):
        return _iat(seen, request, value)
    raise BadInput(
        f"{request.source}: no column of times, and what the numbers in '{value}' mean is not certain: "
        "pass --kind iat (inter-arrival times), --kind times (points in time) or --kind counts --step 1s"
    )


def _times(seen: Table, request: TraceRequest, time: str | None) -> Layout:
    assert time is not None
    return Layout("times", seen, time, _clock_unit(seen, request, time))


def _iat(seen: Table, request: TraceRequest, value: str) -> Layout:
    unit = request.unit or unit_of(value)
    if unit is None:
        raise BadInput(f"{request.source}: the name '{value}' has no unit (as in iat_us): pass --unit s, ms, us or ns")
    return Layout("iat", seen, value=value, value_unit_us=UNITS_US[unit])


def _counts(seen: Table, request: TraceRequest, time: str | None) -> Layout:
    value = _value_column(seen, request, time)
    size = "bytes" if "bytes" in seen.numbers and value != "bytes" else None
    if time is None and request.step_s is None:
        raise BadInput(f"{request.source}: has no column of times: pass --step, the interval of each row (--step 1s)")
    unit = None if time is None else _clock_unit(seen, request, time)
    return Layout("counts", seen, time, unit, value, bytes=size)


def _clock_unit(seen: Table, request: TraceRequest, time: str) -> float | None:
    if seen.is_iso(time):
        return None
    unit = request.unit or unit_of(time)
    if unit is None:
        raise BadInput(
            f"{request.source}: the times in '{time}' are numbers, and its name has no unit (as in time_ms): "
            "pass --unit s, ms, us or ns"
        )
    return UNITS_US[unit]


def _time_column(seen: Table, request: TraceRequest, needed: bool = True) -> str | None:
    if request.time_column is not None:
        return request.time_column
    if request.kind == "times" and request.column is not None:
        return request.column
    iso = [name for name in seen.times if seen.is_iso(name)]
    named = [name for name in seen.numbers if is_time_name(name) and name != request.column]
    found = iso or seen.times or named or (list(seen.names) if request.kind == "times" else [])
    if len(found) > 1:
        raise BadInput(f"{request.source}: several columns of times: pass --time with one of {some_of(found)}")
    if needed and not found:
        raise BadInput(f"{request.source}: no column of times among {some_of(seen.names)}: pass --time")
    return found[0] if found else None


def _value_column(seen: Table, request: TraceRequest, time: str | None) -> str:
    if request.column is not None:
        return request.column
    found = [name for name in seen.numbers if name != time]
    found = [name for name in found if name != "bytes"] or found
    if len(found) == 1:
        return found[0]
    if not found:
        rest = [name for name in seen.names if name != time]
        if request.kind is not None and len(rest) == 1:
            return rest[0]
        raise BadInput(f"{request.source}: no column of numbers among {some_of(seen.names)}")
    raise BadInput(f"{request.source}: several columns of numbers: pass --column with one of {some_of(found)}")


def same_table(first: Table, other: Table, path: Path) -> None:
    """Refuse a directory whose tables do not have the same columns."""
    if (first.format, first.names) != (other.format, other.names):
        raise BadInput(f"{path}: its columns ({some_of(other.names)}) are not those of the first file")
