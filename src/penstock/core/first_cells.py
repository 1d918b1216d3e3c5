"""What the first cells of a table show: which columns hold dates or numbers, how times are spaced."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.core.column_names import UNITS_S, UNNAMED
from penstock.core.dates import is_date, iso_text

ROWS = 200
"""Rows that are looked at: one column takes 0.1 ms, and 200 tell as much as 2,000."""
JITTER = 0.1
"""The part of an interval by which a collector is early or late; more is another interval."""
_EPOCH = {"s": (9, 10), "ms": (12, 13), "us": (15, 16), "ns": (18, 19)}  # digits since 1970, from 1973 to 2286


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of a table as text, and which of its columns are mostly dates or numbers."""

    names: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    dates: frozenset[str]
    numbers: frozenset[str]
    has_header: bool = True

    @classmethod
    def of(cls, names: Sequence[str], columns: Sequence[Sequence[str]], has_header: bool = True) -> Sample:
        known = [tuple(text for text in column if text) for column in columns]
        pairs = list(zip(names, known, strict=True))
        dates = frozenset(name for name, cells in pairs if _mostly(is_date, cells))
        numbers = frozenset(name for name, cells in pairs if name not in dates and _mostly(is_number, cells))
        return cls(tuple(names), tuple(known), dates, numbers, has_header)

    def values(self, name: str) -> tuple[str, ...]:
        """The cells of a column that hold something."""
        return self.columns[self.names.index(name)]

    @property
    def named(self) -> list[str]:
        """The columns but for an index that pandas wrote without a name."""
        return [name for name in self.names if not UNNAMED.fullmatch(name)] or list(self.names)


def _mostly(is_such: Callable[[str], bool], cells: Sequence[str]) -> bool:
    """At least half: some bad cells must not hide what a column is."""
    found = sum(map(is_such, cells))
    return found > 0 and 2 * found >= len(cells)


def is_number(text: str) -> bool:
    """A finite number as every reader takes it; `nan` may stand in a column of any kind."""
    try:
        return math.isfinite(float(text)) and text.isascii() and "_" not in text
    except ValueError:
        return False


def epoch_unit(cells: Sequence[str]) -> str | None:
    """The unit of numbers that count from 1970, by their digits; None where they may count from anywhere.

    >>> epoch_unit(["1714521600"]), epoch_unit(["1714521600000"]), epoch_unit(["34200014"])
    ('s', 'ms', None)
    """
    digits = {len(str(int(abs(float(text))))) for text in cells if is_number(text)}
    return next((unit for unit, known in _EPOCH.items() if digits and digits <= set(known)), None)


def moments_s(cells: Sequence[str], unit: str | None, order: str = "iso") -> list[float]:
    """The times in some cells, in seconds; what is none is left out."""
    if unit is not None:
        return [float(text) * UNITS_S[unit] for text in cells if is_number(text)]
    found = []
    for text in cells:
        try:
            moment = datetime.fromisoformat(iso_text(text, order))
        except ValueError:
            continue
        found.append((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return found


def is_evenly_spaced(times_s: Sequence[float]) -> bool:
    """Do times come at equal distances, but for holes? One distance alone is equal to itself.

    >>> is_evenly_spaced([0, 60, 120, 300]), is_evenly_spaced([0, 7, 12, 300]), is_evenly_spaced([0, 60])
    (True, False, True)
    """
    ordered = sorted(times_s)
    steps = sorted(after - before for before, after in itertools.pairwise(ordered))
    if len(steps) < 2:
        return not steps or steps[0] > 0
    step = steps[(len(steps) - 1) // 2]
    if steps[0] <= 0 or any(abs(other / step - round(other / step)) > JITTER or other < step / 2 for other in steps):
        return False
    # Whole seconds between random events are all multiples of one second too, but less than half of them are exactly
    # one unless the events come at about that rate.
    return sum(other < 1.5 * step for other in steps) >= max(2, len(steps) / 2)


def mostly_whole(cells: Sequence[str]) -> bool:
    numbers = [float(text) for text in cells if is_number(text)]
    return 2 * sum(number.is_integer() for number in numbers) > len(numbers) or not numbers


def only_grows(cells: Sequence[str]) -> bool:
    """Numbers that never fall, and rise."""
    numbers = [float(text) for text in cells if is_number(text)]
    return all(a <= b for a, b in itertools.pairwise(numbers)) and len(numbers) > 1 and numbers[0] < numbers[-1]
