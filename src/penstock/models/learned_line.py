"""A line through the batches of one query: launches, and seconds a row. Learnt where nobody measured them."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

FORGET = 0.2
# Batches of one size on the same workers differ by this much, and by this many seconds whatever their size.
NOISE, NOISE_S = 0.15, 0.05
# Sizes within this factor are one.
WIDTH = 1.25
# With each batch, what was seen of other sizes weighs this much less, and never less than KEPT of one batch.
STALE, KEPT = 0.93, 0.1
# One that takes longer than this many times the usual (a collection, a neighbour) counts as that many; one that takes
# as much less is right, and those before it were cold: nothing makes a batch shorter than its work.
ODD = 1.5
# A smaller batch that took this many times as long as a larger one since was cold, and tells nothing of warm ones.
COLD = 1 + 2 * NOISE
# Of a first batch nobody knows what was work on rows.
UNSURE = 1.0
# A line is drawn through no fewer batches than BATCHES, and trusted if this share of a batch's work is in doubt.
BATCHES, SURE = 3, 0.25
# Rows take at least this share of a batch's work.
ROWS_LEAST = 0.02


@dataclass(slots=True)
class _Size:
    """What batches of about one size took, in worker-seconds, and how many of them that tells."""

    rows: float
    total_s: float
    count: float = 1.0

    def take(self, rows: float, total_s: float) -> None:
        if total_s < self.total_s / ODD:
            self.rows, self.total_s, self.count = rows, total_s, 1.0
            return
        self.count = min(1 / FORGET, self.count + 1)
        self.rows += (rows - self.rows) / self.count
        self.total_s += (min(total_s, ODD * self.total_s) - self.total_s) / self.count


def _line(sizes: Collection[_Size]) -> tuple[float, float, float]:
    """Launch, seconds a row and the standard error of these: least squares of relative errors.

    A weak wish for no launches decides where sizes do not.
    """
    first, *others = sizes
    if not others:
        return 0.0, first.total_s / first.rows, math.inf
    ones = 1 / (UNSURE * min(size.total_s for size in sizes)) ** 2
    at = squares = took = both = 0.0
    for size in sizes:
        weight = size.count / ((NOISE * size.total_s) ** 2 + NOISE_S**2)
        ones, at, squares = ones + weight, at + weight * size.rows, squares + weight * size.rows**2
        took, both = took + weight * size.total_s, both + weight * size.rows * size.total_s
    spread = ones * squares - at * at
    launch_s, doubt = (took * squares - both * at) / spread, math.sqrt(ones / spread)
    return (launch_s, (ones * both - at * took) / spread, doubt) if launch_s > 0 else (0.0, both / squares, doubt)


class LearnedLine:
    """What a query's batches take, in worker-seconds: `launching its tasks + rows · seconds a row`.

    Live, 120 rows took 6 s, 2,800 rows 20 s. The line goes through what batches of each size took lately. More rows
    never take less: so what is new corrects what was seen of other sizes while executors were cold; what nothing
    corrects is not forgotten.

    >>> line = LearnedLine()
    >>> line.note(rows=8000.0, work_s=4.0, fixed_s=1.0, crew=("w1", "w2"))
    >>> line.row_s, line.base_s
    (0.001, 1.0)

    A batch that waits for a new worker's first task tells nothing of its workers:

    >>> line.note(rows=8000.0, work_s=40.0, fixed_s=1.0, crew=("w1", "w2", "w3"))
    >>> line.row_s
    0.001
    """

    def __init__(self) -> None:
        self.base_s = 0.0
        """Planning and commits of a batch, whatever its workers."""
        self.launch_s = 0.0
        """Worker-seconds to launch a batch's tasks."""
        self.row_s = 0.0
        """Worker-seconds of a row; 0 before the first batch."""
        self._sizes: dict[int, _Size] = {}
        self.batches = 0
        """How many were taken in."""
        self._crew: frozenset[str] = frozenset()
        self._is_sure = False

    def note(self, rows: float, work_s: float, fixed_s: float, crew: Collection[str]) -> None:
        """Take in a batch that ended on these workers."""
        is_cold = self.row_s > 0 and not self._crew.issuperset(crew)
        self._crew = frozenset(crew)
        if is_cold or not crew or work_s <= 0 or rows <= 0:
            return
        self.base_s = self.base_s + FORGET * (fixed_s - self.base_s) if self.batches else fixed_s
        self.batches += 1
        self._take(rows, work_s * len(crew))
        self._draw(rows, work_s * len(crew))

    def _take(self, rows: float, total_s: float) -> None:
        for size in self._sizes.values():
            size.count = max(min(KEPT, size.count), STALE * size.count)
        key = round(math.log(rows, WIDTH))
        if key in self._sizes:
            self._sizes[key].take(rows, total_s)
        else:
            self._sizes[key] = _Size(rows, total_s)
        new_s = self._sizes[key].total_s
        # At what the larger one took it would say that all of it was launches: 16,000 rows/s a worker became 84,000.
        for other in [each for each in self._sizes if each < key and self._sizes[each].total_s > COLD * new_s]:
            del self._sizes[other]
        for other, size in self._sizes.items():
            if (size.total_s - new_s) * (key - other) > 0:  # it took more with fewer rows, or less with more
                size.total_s, size.count = new_s, min(KEPT, size.count)

    def _draw(self, rows: float, total_s: float) -> None:
        self.launch_s, row_s, doubt = _line(self._sizes.values())
        self.row_s = max(ROWS_LEAST * total_s / rows, row_s)
        # Have batches of different sizes told what of this one was work on rows?
        self._is_sure = self.batches >= BATCHES and doubt * rows < SURE * total_s

    def needed(self, rate: float, batch_s: float) -> float | None:
        """Workers, in parts too, that keep up with a rate in batches of this length; None before that is known.

        They do rows · seconds a row, and once a batch its launches, while the fixed time leaves them nothing to do.
        """
        if not self._is_sure or self.base_s >= batch_s:
            return None
        return (rate * self.row_s + self.launch_s / batch_s) / (1 - self.base_s / batch_s)
