"""How much workers can do where nobody measured it: a line for each query, and the mix in which their rows come."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.models.learned_line import LearnedLine

# Of a job whose first batch has not ended nobody knows anything: one worker is taken to be enough for it.
UNKNOWN = 1e6
# What an interval counts in the mix of the queries' rows.
FORGET = 0.2


class Learned:
    """A capacity model that follows the job. Queries share its workers, so a row costs what it does in their mix.

    >>> model = Learned()
    >>> model.note("clicks", rows=8000.0, work_s=4.0, fixed_s=1.0, crew=("w1", "w2"))
    >>> model.capacity(4), model.sustainable(4, trigger_s=10.0)
    (4000.0, 3600.0)

    A second query whose rows take three times as long, and of which as many come:

    >>> model.note("joins", rows=8000.0, work_s=12.0, fixed_s=1.0, crew=("w1", "w2"))
    >>> model.capacity(4)
    2000.0
    """

    def __init__(self) -> None:
        self.lines: dict[str, LearnedLine] = {}
        self._rates: dict[str, float] = {}

    def line(self, query: str) -> LearnedLine:
        """What was learnt of this query alone."""
        return self.lines.setdefault(query, LearnedLine())

    def note(self, query: str, rows: float, work_s: float, fixed_s: float, crew: Collection[str]) -> None:
        """Take in a batch of a query that ended on these workers."""
        self.line(query).note(rows, work_s, fixed_s, crew)

    def mix(self, rates: Mapping[str, float]) -> None:
        """Take in how many rows of each query come."""
        for query, rate in rates.items():
            before = self._rates.get(query, rate)
            self._rates[query] = before + FORGET * (rate - before)

    @property
    def is_known(self) -> bool:
        """Has a batch with rows ended?"""
        return any(line.row_s for line in self.lines.values())

    @property
    def batches(self) -> int:
        """How many it was learnt from, of the query with the most."""
        return max((line.batches for line in self.lines.values()), default=0)

    def capacity(self, workers: float) -> float:
        return workers / self._row_s()

    def fixed_s(self, workers: float) -> float:
        """Planning and commits, beside those of other queries, and the launch of tasks, which workers share."""
        base_s = max((line.base_s for line in self.lines.values()), default=0.0)
        return base_s + sum(line.launch_s for line in self.lines.values()) / max(1.0, workers)

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        share = 1.0 if trigger_s is None else max(0.0, 1.0 - self.fixed_s(workers) / trigger_s)
        return self.capacity(workers) * share

    def _row_s(self) -> float:
        """Worker-seconds of a row of the mix; of queries that read nothing lately, and where no mix is known, alike."""
        known = {query: line.row_s for query, line in self.lines.items() if line.row_s}
        if not known:
            return 1 / UNKNOWN
        rates = {query: self._rates.get(query, 0.0) for query in known}
        total = sum(rates.values())
        if total <= 0:
            return sum(known.values()) / len(known)
        return sum(known[query] * rate for query, rate in rates.items()) / total
