"""A foreign job's own output, counted without Penstock: tables on a console, or a line for each batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

OUT, ANSWERED = "out.log", "answered.txt"


def last_table(folder: Path) -> int:
    """The sum of `count` in the last table: the output mode `complete` prints all there is."""
    return ([0] + [sum(table) for table in _tables(folder)])[-1]


def all_tables(folder: Path) -> int:
    """The sum of `count` over all tables: the output mode `update` prints what is new."""
    return sum(sum(table) for table in _tables(folder))


def listed(folder: Path) -> int:
    """Rows by batch; a batch that ran again is listed again, and counts once."""
    path = folder / ANSWERED
    words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return sum({batch: int(rows) for batch, rows in (each for each in words if len(each) == 2)}.values())


def _tables(folder: Path) -> Iterator[list[int]]:
    """Of each table on the console, its column `count`. Lines of the job's log may stand between."""
    rules, column, counts = 0, 0, list[int]()
    for line in (folder / OUT).read_text(errors="replace").splitlines():
        if line.startswith("+--") or line == "++":
            rules += 1
            if rules == 3:
                yield counts
                rules, counts = 0, []
        elif rules and line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if rules == 1:
                column = cells.index("count")
            else:
                counts.append(int(cells[column]))
