"""The cells of a rate series as numbers and times; the first that is neither is named by its line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.column_names import UNITS_S
from penstock.core.columns import Columns
from penstock.core.dates import REWRITES
from penstock.core.errors import BadInput
from penstock.core.first_cells import is_number
from penstock.core.text import one_line
from penstock.sim.workloads import Floats

TIME_MOST = 1e19  # nanoseconds since 1970 have 19 digits
_GROUP = re.compile(r"\\g(\d)")


@dataclass(frozen=True, slots=True)
class Where:
    """Names the first bad row of a file."""

    path: Path
    lines: npt.NDArray[np.int64]

    def refuse(self, bad: npt.NDArray[np.bool_], what: str, right: str) -> None:
        if bad.any():
            raise self.error(int(np.argmax(bad)), what, right)

    def error(self, row: int, what: str, right: str) -> BadInput:
        return BadInput(f"{self.path}, line {self.lines[row]}: {what}; it should be {right}")


def is_known(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    known = pc.is_valid(column)
    if pa.types.is_string(column.type):
        known = pc.and_(known, pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return np.asarray(known.to_numpy(zero_copy_only=False), dtype=np.bool_)


def numbers(column: pa.ChunkedArray, name: str, where: Where) -> Floats:
    kind = column.type
    if not (_is_numeric(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise BadInput(f"{where.path}: {name} is a column of {one_line(str(kind), 60)}; it should be one of numbers")
    try:
        return _floats(pc.cast(column, pa.float64()))
    except pa.ArrowInvalid:
        for row, value in enumerate(column.to_pylist()):
            if value is None or not _is_float(str(value)):
                raise where.error(row, f"{name} is '{one_line(str(value or ''), 60)}'", "a number") from None
        return np.array([float(value) for value in column.to_pylist()])


def _is_float(text: str) -> bool:
    return is_number(text) or text.strip().lower().lstrip("+-") in ("nan", "inf", "infinity")


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def seconds(column: pa.ChunkedArray, found: Columns, where: Where) -> Floats:
    """Seconds: since 1970 where the times are dates (without a zone: UTC)."""
    name = found.time or ""
    if found.time_unit is not None:
        values = numbers(column, name, where)
        where.refuse(
            ~(np.abs(values) < TIME_MOST), f"{name} is not a time", "a number of seconds, milliseconds or such"
        )
        return values * UNITS_S[found.time_unit]
    column = _as_iso(column, found.dates)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            micros = _floats(pc.cast(pc.cast(column, kind, safe=False), pa.int64()))
            where.refuse(~np.isfinite(micros), f"{name} is empty", "a time")
            return micros * 1e-6
        except pa.ArrowException:
            continue
    for row, value in enumerate(column.to_pylist()):
        try:
            pc.cast(pa.array([value]), pa.timestamp("us"))
        except (pa.ArrowException, OverflowError):
            said = f"{name} is '{one_line(str(value), 60)}'"
            raise where.error(row, said, "a time such as 2024-05-01 13:45:00") from None
    raise BadInput(f"{where.path}: the times in {name} mix zones, or have one that is not known; write them in UTC")


def _as_iso(column: pa.ChunkedArray, order: str) -> pa.ChunkedArray:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    for pattern, new in REWRITES[order]:
        column = pc.replace_substring_regex(column, pattern, _GROUP.sub(r"\\\1", new))
    return column


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
