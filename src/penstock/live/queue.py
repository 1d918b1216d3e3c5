"""One streaming query as a queue: what arrived, what was answered and when, from its reports. No JVM in here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.core.observation import Batch, OperatorStats
from penstock.core.responses import Responses
from penstock.live.progress import Report
from penstock.sim.fifo import Fifo

JUST_BEFORE_S = 1e-3


class QueryQueue:
    """Events of one query, first come, first served; a batch answers its rows all at once, when it ends.

    The simulator's own queue keeps the account, so that latency means the same in both worlds.
    """

    def __init__(self, begun_s: float, unit_s: float, window_s: float) -> None:
        self._fifo = Fifo(unit_s)
        self._now_s = begun_s
        self._window_s = window_s
        self._past: deque[tuple[float, float, float]] = deque([(begun_s, 0.0, 0.0)])
        self._rates = (0.0, 0.0)
        self.last: Report | None = None

    def go_on(self, arrived: float, processed: float, oldest_s: float) -> None:
        """Counters of an earlier controller of the same job; what waited has waited since `oldest_s`."""
        self._fifo.arrived = self._fifo.processed = processed
        self._fifo.arrive(min(oldest_s, self._now_s - JUST_BEFORE_S), self._now_s, arrived - processed)
        self._past = deque([(self._now_s, arrived, processed)])

    def advance(self, now_s: float, reports: Sequence[Report], behind: Callable[[Report], float]) -> None:
        """Take note of batches that ended since, and of what waits now."""
        is_first = self.last is None and bool(reports)
        for report in reports:
            self._read(report)
        if self.last is not None:
            self._correct(now_s, self._fifo.processed + behind(self.last))
        if is_first:
            # What the first report shows came at times that nobody knows: it is no rate.
            self._past = deque([(now_s - JUST_BEFORE_S, self._fifo.arrived, self._fifo.processed)])
        self._now_s = max(self._now_s, now_s)
        self._past.append((now_s, self._fifo.arrived, self._fifo.processed))
        while len(self._past) > 2 and self._past[1][0] <= now_s - self._window_s:
            self._past.popleft()
        then_s, arrived, processed = self._past[0]
        span_s = max(1e-9, now_s - then_s)
        # Arrivals that were overestimated are taken back, which is no rate below 0.
        come, answered = max(0.0, self._fifo.arrived - arrived), self._fifo.processed - processed
        self._rates = (come / span_s, answered / span_s)

    def _read(self, report: Report) -> None:
        """What a batch read was there when it began; all of it is answered when it ends."""
        told = [source.latest - source.end for source in report.sources if source.latest is not None and source.end]
        self._arrive(report.begun_s, self._fifo.processed + report.rows + sum(told))
        self._fifo.serve(report.rows, report.ended_s, report.ended_s)
        self._now_s = max(self._now_s, report.begun_s)
        self.last = report

    def _correct(self, now_s: float, total: float) -> None:
        """As many arrived as the source says now. It may be fewer than were thought: files differ in length, and
        Kafka's offsets count markers, too."""
        self._arrive(now_s, total)
        self._fifo.forget(self._fifo.arrived - total)

    def _arrive(self, until_s: float, total: float) -> None:
        new = total - self._fifo.arrived
        if new > 0:
            begin_s = min(self._now_s, until_s - JUST_BEFORE_S)
            self._fifo.arrive(begin_s, until_s, new)

    @property
    def arrived(self) -> float:
        return self._fifo.arrived

    @property
    def processed(self) -> float:
        return self._fifo.processed

    @property
    def backlog(self) -> float:
        return self._fifo.waiting

    @property
    def input_rate(self) -> float:
        return self._rates[0]

    def latency_s(self, now_s: float) -> float:
        oldest_s = self._fifo.oldest_s()
        return max(0.0, now_s - oldest_s) if oldest_s is not None else 0.0

    def take_responses(self) -> Responses:
        return self._fifo.take_responses()

    def stats(self, now_s: float) -> OperatorStats:
        return OperatorStats(
            input_rate=round(self._rates[0], 3),
            output_rate=round(self._rates[1], 3),
            backlog=round(self.backlog, 3),
            latency_s=self.latency_s(now_s),
            state_mb=self.last.state_mb if self.last else 0.0,
        )

    def batch(self, now_s: float, trigger_s: float) -> Batch | None:
        if self.last is None:
            return None
        last = self.last
        return Batch(last.rows, trigger_s, last.execution_s, last.fixed_s, max(0.0, now_s - last.ended_s))
