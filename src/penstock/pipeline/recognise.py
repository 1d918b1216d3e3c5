"""What kind of source is this? Known from its first bytes, shape, header or name; never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.core.columns import Columns, columns_of
from penstock.core.errors import BadInput
from penstock.core.text import some_of
from penstock.pipeline.formats import KINDS, Format, Kind, format_of
from penstock.pipeline.head import Head, files, head
from penstock.pipeline.request import TraceRequest
from penstock.pipeline.table_head import Table, table


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a source, their format and kind, and for tables the columns to read."""

    format: Format
    kind: Kind
    heads: tuple[Head, ...]
    layout: tuple[Table, Columns] | None = None

    @property
    def paths(self) -> list[Path]:
        return [begin.path for begin in self.heads]


def recognise(request: TraceRequest) -> Source:
    """The kind of a source, or a BadInput that says what was seen and what to pass."""
    heads = tuple(head(path) for path in files(request.source))
    found = {form.name: form for form in (format_of(begin, request.kind) for begin in heads)}
    if len(found) > 1:
        raise BadInput(f"{request.source}: holds different kinds ({', '.join(sorted(found))}): give one at a time")
    form = next(iter(found.values()))
    if form.name != "table":
        return Source(form, form.kinds[0], heads)
    tables = [table(begin) for begin in heads]
    for begin, other in zip(heads, tables, strict=True):
        _need_same(tables[0], other, begin.path)
    columns = columns_of(tables[0].sample, request.asked)
    return Source(form, KINDS[columns.kind], heads, (tables[0], columns))


def _need_same(first: Table, other: Table, path: Path) -> None:
    """Refuse a directory whose tables do not have the same columns."""
    if (first.format, first.sample.names) != (other.format, other.sample.names):
        raise BadInput(f"{path}: its columns ({some_of(other.sample.names)}) are not those of the first file")
