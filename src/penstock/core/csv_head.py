"""How a CSV file begins: what separates its fields, its header, its first rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.dates import is_date
from penstock.core.errors import BadInput
from penstock.core.first_cells import ROWS, Sample, is_number
from penstock.core.text import one_line

DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True)
class CsvHead:
    """How to read a CSV file."""

    delimiter: str
    sample: Sample
    before: tuple[str, ...]
    """The lines before the first row: the header, and before it the `sep=;` that Excel and Grafana write."""


def csv_head(lines: Sequence[str], source: str) -> CsvHead:
    """The delimiter, the columns and the first rows, of the first lines of a file."""
    lines = lines[: ROWS + 2]
    before, delimiter = _declared(lines[0])
    rest = lines[len(before) :]
    if not rest:
        raise BadInput(f"{source} is empty: a series has a header and at least one row")
    delimiter = delimiter or max(DELIMITERS, key=lambda mark: len(_row(rest[0], mark)))
    first, rows = _row(rest[0], delimiter), [_row(line, delimiter) for line in rest[1 : ROWS + 1]]
    if is_header(first, rows):
        names, before = first, (*before, rest[0])
    else:
        names, rows = [f"column{i + 1}" for i in range(len(first))], [first, *rows]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadInput(f"{source} has several columns named '{one_line(twice[0], 60)}': each needs a name of its own")
    columns = [tuple(row[i] if i < len(row) else "" for row in rows) for i in range(len(names))]
    return CsvHead(delimiter, Sample.of(names, columns, has_header=names is first), before)


def is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Names stand where values are below: nothing in the line is a value, or a name is above one.

    >>> is_header(["date", "2023"], [["2024-01-01", "7"]]), is_header(["2024-01-01", "7"], [["2024-01-02", "8"]])
    (True, False)
    """
    if not any(map(_is_value, first)):
        return True
    below = rows[0] if rows else []
    return any(name and not _is_value(name) and _is_value(cell) for name, cell in zip(first, below, strict=False))


def _is_value(text: str) -> bool:
    return is_number(text) or is_date(text)


def _declared(line: str) -> tuple[tuple[str, ...], str | None]:
    text = line.strip().strip('"').lower()
    is_declared = text.startswith("sep=") and len(text) <= 5
    return ((line,), text[4:] or None) if is_declared else ((), None)


def _row(line: str, delimiter: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error:  # a field of more than 128 kB
        return [line]
