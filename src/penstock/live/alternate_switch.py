"""One query with several implementations: ended between two batches, and started again from where it stopped.

Implementations that share their state go on in the same checkpoint. One with another state begins a checkpoint of its
own at the offsets at which the one before stopped: no event is lost or counted twice, and what was remembered is left
behind. Spark refuses most changes of a state when the first batch begins: then the implementation before goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PenstockError, PlantError
from penstock.live.handover import Handover

log = logging.getLogger("penstock")

# A query that cannot be started again is tried so often, each time after twice as long, before the job fails.
STARTS_MOST = 6

Start = Callable[[str, Handover], StreamingQuery]
"""Starts an implementation, from where its handover says."""


class AlternateRefused(PlantError):
    """Spark did not take this implementation; another goes on."""


@dataclass
class _Down:
    """An implementation that is to run and does not: it could not be started again."""

    name: str
    place: Handover
    why: str
    tries: int = 0
    next_s: float = 0.0


@dataclass
class _Trial:
    """An implementation that has not ended a batch yet."""

    before: str
    place: Handover
    begun_s: float


class AlternateSwitch:
    """Like a query to those who only ask whether it runs; `tend` is called several times a second."""

    def __init__(self, operator: str, states: dict[str, str], start: Start, handover: Handover) -> None:
        self.operator, self._states, self._start = operator, states, start
        self._place = handover
        self.active = handover.alternate if handover.alternate in states else next(iter(states))
        self.wanted = self.active
        self.refused: dict[str, str] = {}
        """Implementations that Spark did not take, and what it said."""
        self._trial: _Trial | None = None
        self._down: _Down | None = None
        self._failure: str | None = None
        self._busy = threading.Lock()
        self._notes: list[str] = []
        self.query = start(self.active, handover)

    @property
    def isActive(self) -> bool:  # noqa: N802  as PySpark names it
        """Between two implementations it is still the same job."""
        if self.query.isActive:
            return True
        between = self._busy.locked() or self._trial is not None or self._down is not None
        return between or bool(self.query.isActive)  # asked again: a switch may have begun and ended since

    def exception(self) -> object:
        return self._failure or self.query.exception()

    @property
    def allocated(self) -> dict[str, str]:
        return {self.operator: self.active}

    def ask(self, name: str | None) -> None:
        """From the end of the batch in work on, this implementation; PlantError for one that cannot be had."""
        name = name or next(iter(self._states))
        if name not in self._states:
            raise PlantError(f"{self.operator} has no alternate '{name}': there are {', '.join(self._states)}")
        if name in self.refused:
            raise AlternateRefused(f"alternate {name} was refused: {self.refused[name]}")
        self.wanted = name

    def tend(self, rests: Callable[[], bool], look: Callable[[], None]) -> None:
        """Switch if that was asked for and no batch is in work; `look` takes in what the query has told until then."""
        with self._busy:
            if not self._mended() and self.wanted != self.active and self.query.isActive and rests():
                self._switch(self.wanted, look)

    def mend(self) -> None:
        """What is begun is brought to its end, also in a pause and without a controller: a query that is down runs."""
        with self._busy:
            self._mended()

    def settle(self) -> None:
        """The job ends: a trial that has committed a batch stands, or a restart would do its rows again."""
        with self._busy, suppress(PenstockError, OSError):
            if self._trial is not None and _has_committed(self.query):
                self._place.keep()

    def _mended(self) -> bool:
        """Was there something to mend?"""
        if self._down is not None:
            if time.monotonic() >= self._down.next_s:
                self._restart(self._down)
            return True
        if self._trial is not None:
            self._judge(self._trial)
            return True
        return False

    def take_notes(self) -> list[str]:
        notes, self._notes = self._notes, []
        return notes

    def _switch(self, name: str, look: Callable[[], None]) -> None:
        begun_s, before, place = time.monotonic(), self.active, self._place
        self.query.stop()
        shares = self._states[name] == self._states[before]
        try:
            look()
            after = place.same(name) if shares else place.apart(name, self.query)
            self._begin(name, after)
        except Exception as error:  # py4j raises what PySpark does not know, and what ran must run again
            self._go_back(name, before, place, _first_line(error))
            return
        self._trial = _Trial(before, place, begun_s)
        how = "" if shares else ", with a state of its own: what was remembered is left behind"
        log.info("alternate %s->%s: stopped and started in %.1f s%s", before, name, time.monotonic() - begun_s, how)

    def _begin(self, name: str, place: Handover) -> None:
        self.query = self._start(name, place)
        self.active, self._place = name, place

    def _judge(self, trial: _Trial) -> None:
        """Its first batch has ended, or Spark has refused it. What fails after that is the job's own failure."""
        if _has_committed(self.query):
            self._place.keep()
            self._trial = None
            took_s = time.monotonic() - trial.begun_s
            self._notes.append(
                f"alternate {self.active} in place of {trial.before}: its first batch after {took_s:.0f} s"
            )
        elif not self.query.isActive:
            self._go_back(self.active, trial.before, trial.place, _first_line(self.query.exception()))

    def _go_back(self, name: str, before: str, place: Handover, why: str) -> None:
        """What ran before runs again; what was refused is not asked for a second time."""
        self.refused[name] = why
        self._notes.append(f"alternate {name} was refused, {before} goes on: {why}")
        self._trial, self.wanted = None, before if self.wanted == name else self.wanted
        self._restart(_Down(before, place, why))

    def _restart(self, down: _Down) -> None:
        """Start it; where that fails it is down, and tried again by whoever tends or mends."""
        self._down = down
        try:
            self._begin(down.name, down.place)
        except Exception as error:
            down.why, down.tries = _first_line(error), down.tries + 1
            down.next_s = time.monotonic() + 2.0**down.tries
            if down.tries >= STARTS_MOST:
                self._down, self._failure = None, f"alternate {down.name} cannot be started again: {down.why}"
        else:
            self._down = None


def _has_committed(query: StreamingQuery) -> bool:
    return any("addBatch" in each["durationMs"] for each in query.recentProgress)


def _first_line(error: object) -> str:
    text = str(error or "no reason given")
    telling = [line for line in text.splitlines() if "STATE" in line or "Error" in line] or text.splitlines() or [""]
    return telling[0].strip()[:200]
