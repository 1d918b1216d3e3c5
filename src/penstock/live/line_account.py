"""What became of lines at an operator that serves them in their order: who waits, who was answered when, who was late.

Times are Unix seconds, in arrays that rise. No JVM in here.
"""

from __future__ import annotations

import numpy as np

from penstock.core.responses import Responses, bin_of
from penstock.models.markov.chains import Floats

NONE = np.zeros(0)


class LineAccount:
    """Lines on the way from one topic to another, known by the time at which each was sent.

    >>> lines = LineAccount(unit_s=1.0)
    >>> lines.sent(np.array([10.0, 11.0, 12.0]))
    >>> lines.answered(np.array([10.0, 11.0]), np.array([10.5, 13.0]))
    >>> lines.waiting, lines.oldest_s, lines.processed, lines.take_responses().mean
    (1, 12.0, 2, 1.25)
    """

    def __init__(self, unit_s: float) -> None:
        self._unit_s = unit_s
        self._waits = NONE
        self._fresh: list[tuple[Floats, Floats]] = []
        self.arrived = self.processed = 0

    def sent(self, sent_s: Floats) -> None:
        """Lines that came in, later than all before."""
        self._waits = np.concatenate([self._waits, sent_s])
        self.arrived += len(sent_s)

    def answered(self, sent_s: Floats, time_s: Floats) -> None:
        """Lines that came out, and when; those before them that did not were dropped, and are done, too."""
        if not len(sent_s):
            return
        self._fresh.append((sent_s, np.maximum(time_s, sent_s)))
        self.done_until(float(sent_s.max()))

    def done_until(self, sent_s: float) -> None:
        """All that were sent up to then are done."""
        done = int(np.searchsorted(self._waits, sent_s, side="right"))
        self._waits = self._waits[done:]
        self.processed += done

    def answered_in_batches(self, latest_s: Floats, time_s: Floats) -> None:
        """Lines that were counted: each of these records has seen all that were sent up to `latest_s`."""
        if not len(latest_s):
            return
        seen_s = np.maximum.accumulate(latest_s)
        done = self._waits[: int(np.searchsorted(self._waits, seen_s[-1], side="right"))]
        # Lines of two senders may stand out of order: one above the last record that has seen it waits for no other.
        first = np.minimum(np.searchsorted(seen_s, done, side="left"), len(seen_s) - 1)
        self.answered(done, time_s[first])

    @property
    def waiting(self) -> int:
        return len(self._waits)

    @property
    def oldest_s(self) -> float | None:
        """When the oldest line that waits was sent."""
        return float(self._waits[0]) if len(self._waits) else None

    def take_responses(self) -> Responses:
        """Of the lines that were answered since the last call."""
        times = np.concatenate([time_s - sent_s for sent_s, time_s in self._fresh]) if self._fresh else NONE
        self._fresh = []
        return responses_of(times, self._unit_s)

    def late_s(self, bound_s: float, begin_s: float, now_s: float) -> float:
        """Seconds of an interval in which the oldest line was older than the bound. Ask before responses are taken."""
        sent_s = np.concatenate([*(sent for sent, _ in self._fresh), self._waits])
        until_s = np.concatenate([*(time for _, time in self._fresh), np.full(self.waiting, now_s)])
        low, high = np.clip(sent_s + bound_s, begin_s, now_s), np.clip(until_s, begin_s, now_s)
        order = np.argsort(low, kind="stable")
        # What a line is late beyond all that were late before it.
        low, high = low[order], np.maximum.accumulate(high[order])
        before = np.concatenate([[begin_s], high[:-1]])[: len(low)]
        return float(np.maximum(0.0, high - np.maximum(low, before)).sum())


def responses_of(times_s: Floats, unit_s: float) -> Responses:
    """Response times as a histogram."""
    if not len(times_s):
        return Responses(unit_s=unit_s)
    numbers, counts = np.unique([bin_of(float(time) / unit_s) for time in times_s], return_counts=True)
    bins = {int(number): float(count) for number, count in zip(numbers, counts, strict=True)}
    return Responses(float(len(times_s)), float(times_s.sum()), bins, unit_s)
