"""One streaming query as a queue: what arrived, what was answered and when, from its reports. No JVM in here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.core.observation import Batch, OperatorStats
from penstock.core.responses import Responses
from penstock.live.query_progress import Report
from penstock.sim.fifo import Fifo

JUST_BEFORE_S = 1e-3
BEGINS = 1000  # batches of a tenth of a second fill a window of 15 s with 150


class QueryQueue:
    """Events of one query, first come, first served; a batch answers its rows all at once, when it ends.

    The simulator's own queue keeps the account, so that latency means the same in both worlds.
    """

    def __init__(self, begun_s: float, unit_s: float, window_s: float) -> None:
        self._fifo = Fifo(unit_s)
        self._now_s = begun_s
        self._window_s = window_s
        self._past: deque[tuple[float, float, float]] = deque([(begun_s, 0.0, 0.0)])
        self._begins: deque[tuple[float, float]] = deque(maxlen=BEGINS)
        """When batches began, and what they read."""
        self._rates = (0.0, 0.0)
        self._goes_on = False
        self.arrived = 0.0
        """Never falls: arrivals that were overestimated are made up for by those to come."""
        self.knows_lag = True
        """Is it known what waits?"""
        self.last: Report | None = None

    def go_on(self, arrived: float, processed: float, oldest_s: float | None) -> None:
        """Counters of an earlier controller of the same job; what waited has waited since `oldest_s`."""
        before_s = self._now_s - JUST_BEFORE_S
        self._fifo.arrived = self._fifo.processed = processed
        self._fifo.arrive(min(oldest_s or before_s, before_s), self._now_s, arrived - processed)
        self.arrived, self._goes_on = arrived, True
        self._past = deque([(self._now_s, arrived, processed)])

    def advance(
        self, now_s: float, reports: Sequence[Report], behind: Callable[[Report], float | None], is_busy: bool = False
    ) -> None:
        """Take note of batches that ended since, and of what waits now; `is_busy`: a batch is in work."""
        is_first = self.last is None and bool(reports)
        for report in reports:
            self._read(report)
        waits = behind(self.last) if self.last is not None else 0.0
        self.knows_lag = waits is not None
        if waits is not None:
            self._correct(now_s, waits)
            self._now_s = max(self._now_s, now_s)
        self.arrived = max(self.arrived, self._fifo.arrived)
        if is_first:
            # What the first report shows came at times that nobody knows: it is no rate.
            self._past = deque([(now_s - JUST_BEFORE_S, self.arrived, self._fifo.processed)])
        self._past.append((now_s, self.arrived, self._fifo.processed))
        while len(self._past) > 2 and self._past[1][0] <= now_s - self._window_s:
            self._past.popleft()
        then_s, arrived, processed = self._past[0]
        span_s = max(1e-9, now_s - then_s)
        come = (self.arrived - arrived) / span_s if self.knows_lag else self._batch_rate(now_s, is_busy)
        self._rates = (come, (self._fifo.processed - processed) / span_s)

    def _batch_rate(self, now_s: float, is_busy: bool) -> float:
        """Where nobody tells what waits: what batches read came between the begin of the one before and their own.

        While a batch is in work this stays as it is; without one for two windows, nothing comes.
        """
        begins = self._begins
        if len(begins) < 2:
            return 0.0
        last_s = begins[-1][0]
        if not is_busy and now_s - last_s > 2 * self._window_s:
            return 0.0
        while len(begins) > 2 and begins[1][0] <= last_s - self._window_s:
            begins.popleft()
        read = sum(rows for _, rows in begins) - begins[0][1]
        return read / max(1e-9, last_s - begins[0][0])

    def _read(self, report: Report) -> None:
        """What a batch read was there when it began; all of it is answered when it ends."""
        told = [source.latest - source.end for source in report.sources if source.latest is not None and source.end]
        read = report.rows + report.unseen
        self._arrive(report.begun_s, self._fifo.processed + read + sum(told))
        self._fifo.serve(read, report.ended_s, report.ended_s)
        self._begins.append((report.begun_s, read))
        self._now_s = max(self._now_s, report.begun_s)
        self.last = report

    def _correct(self, now_s: float, waits: float) -> None:
        """As many arrived as the source says now. It may be fewer than were thought: files differ in length."""
        total = self._fifo.processed + waits
        is_counted = self.last is not None and all(source.ends for source in self.last.sources)
        if self._goes_on and is_counted and total < self._fifo.arrived:
            # Offsets never fall: batches that ended while no controller looked have read the difference.
            self._fifo.serve(self._fifo.arrived - total, now_s, now_s)
            total = self._fifo.arrived
        self._goes_on = self._goes_on and self.last is None
        self._arrive(now_s, total)
        self._fifo.forget(self._fifo.arrived - total)

    def _arrive(self, until_s: float, total: float) -> None:
        new = total - self._fifo.arrived
        if new > 0:
            begin_s = min(self._now_s, until_s - JUST_BEFORE_S)
            self._fifo.arrive(begin_s, until_s, new)

    @property
    def processed(self) -> float:
        return self._fifo.processed

    @property
    def backlog(self) -> float | None:
        return self._fifo.waiting if self.knows_lag else None

    @property
    def input_rate(self) -> float:
        return self._rates[0]

    def latency_s(self, now_s: float) -> float | None:
        if not self.knows_lag:
            return None
        oldest_s = self._fifo.oldest_s()
        return max(0.0, now_s - oldest_s) if oldest_s is not None else 0.0

    def take_responses(self) -> Responses | None:
        """Response times since the last call; None where nobody knows when events came."""
        responses = self._fifo.take_responses()
        return responses if self.knows_lag else None

    def take_late_s(self, now_s: float) -> float | None:
        """Seconds since the last call in which the oldest event was too old; None where nobody knows."""
        late_s = self._fifo.take_late_s(now_s)
        return late_s if self.knows_lag else None

    def stats(self, now_s: float, trigger_s: float = 0.0) -> OperatorStats:
        return OperatorStats(
            input_rate=round(self._rates[0], 3),
            output_rate=round(self._rates[1], 3),
            backlog=None if self.backlog is None else round(self.backlog, 3),
            latency_s=self.latency_s(now_s),
            state_mb=self.last.state_mb if self.last else 0.0,
            arrived=self.arrived,
            processed=self.processed,
            batch=self.batch(now_s, trigger_s),
        )

    def batch(self, now_s: float, trigger_s: float) -> Batch | None:
        if self.last is None:
            return None
        last = self.last
        age_s = max(0.0, now_s - last.ended_s)
        return Batch(last.rows, trigger_s, last.execution_s, last.fixed_s, age_s, last.batch)
