"""Batches as a journal shows them, each with its workers; and those that hide between two ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.core.observation import Batch, Observation
from penstock.models.worker_starts import Crew, Joins

SAME_S = 1e-3
# Spark begins a batch within milliseconds of its trigger's clock; a part of the trigger further off it was late.
ON_CLOCK = 0.02


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """A batch whose workers are known."""

    begun_s: float
    rows: float
    execution_s: float
    fixed_s: float
    """Its fixed part as the engine tells it: at least so much."""
    crew: Crew
    waited: bool
    """Did it begin with the trigger's clock, and not late, when the batch before had ended?"""

    @property
    def workers(self) -> int:
        """Those that had served before."""
        return len(self.crew.ages_s)

    @property
    def ended_s(self) -> float:
        return self.begun_s + self.execution_s


class Served:
    """Takes note of each batch once. A tick shows the last one only: what was processed beyond it was another's."""

    def __init__(self, joins: Joins, origin_s: float | None) -> None:
        self._joins, self._origin_s = joins, origin_s
        self.batches: list[SeenBatch] = []
        self.trigger_s: float | None = None
        self._begun_s = self._ended_s = self._gone_s = -math.inf
        self._processed: float | None = None
        self._is_hidden = False

    def add(self, seen: Observation) -> None:
        batch = seen.batch
        if batch is None:
            return
        self.trigger_s = batch.trigger_s
        ended_s = seen.time_s - batch.age_s
        if ended_s <= self._ended_s + SAME_S or batch.rows <= 0 or batch.execution_s <= 0:
            return
        begun_s = ended_s - batch.execution_s
        before = seen.processed - batch.rows if self._processed is None else self._processed
        hidden = seen.processed - before - batch.rows
        # Of several queries, the counters are of all and the batch of one.
        if hidden > 1e-6 * max(1.0, batch.rows) and (self._origin_s is None or len(seen.operators) < 2):
            self._note_hidden(hidden, begun_s, batch)
        self._note(begun_s, batch.rows, batch.execution_s, batch.fixed_s)
        self._processed = seen.processed

    def _note(self, begun_s: float, rows: float, execution_s: float, fixed_s: float) -> None:
        ended_s = begun_s + execution_s
        crew = self._joins.crew(self._gone_s, begun_s, ended_s)
        # Where one is hidden, it may have been the first, or this one.
        if crew is not None and not (crew.fresh_s and self._is_hidden):
            waited = begun_s > self._ended_s + ON_CLOCK * max(self.trigger_s or 0.0, 1.0)
            self.batches.append(SeenBatch(begun_s, rows, execution_s, fixed_s, crew, waited))
        self._begun_s, self._ended_s, self._is_hidden = begun_s, ended_s, False
        self._gone_s = self._joins.gone_s(begun_s, ended_s)

    def _note_hidden(self, rows: float, until_s: float, batch: Batch) -> None:
        """One that ran late makes the next begin at once: its end is known, and Spark's clock tells its begin.

        Without it the slowest would be lost: a first batch of 12 s, and the next one, ended within the same tick.
        """
        begun_s = self._follower_s(batch.trigger_s)
        if begun_s is None or self._is_on_clock(until_s, batch.trigger_s) or until_s - begun_s <= batch.fixed_s:
            self._is_hidden = True
        else:
            self._note(begun_s, rows, until_s - begun_s, batch.fixed_s)

    def _follower_s(self, trigger_s: float) -> float | None:
        """When the batch after the last one began: when the clock struck next, or when the last one ended."""
        if self._origin_s is None or not trigger_s or math.isinf(self._begun_s):
            return None
        strikes = math.floor((self._begun_s + self._origin_s) / trigger_s + ON_CLOCK) + 1
        return max(self._ended_s, strikes * trigger_s - self._origin_s)

    def _is_on_clock(self, time_s: float, trigger_s: float) -> bool:
        turns = (time_s + (self._origin_s or 0.0)) / trigger_s
        return abs(turns - round(turns)) <= ON_CLOCK
