"""A queue of events that were never events: arrivals as a curve, served first come, first served."""

from __future__ import annotations

import math
from collections import deque

from penstock.core.responses import Collected, Responses

Chunk = tuple[float, float, float, float, float]
"""Events on their way: from when to when they pass, from when to when they arrived at the source, how many."""


class Fifo:
    """Events that wait, as stretches of even arrival; serving them yields their response times."""

    def __init__(self, unit_s: float = 1.0) -> None:
        self._unit_s = unit_s
        self.arrived = 0.0
        self.processed = 0.0
        # Not `arrived - processed`: after 10⁹ events that difference is known to 10⁻⁷ only, and a queue
        # that never gets quite empty would look as old as its last crumb.
        self.waiting = 0.0
        self._stretches: deque[list[float]] = deque()  # [begin, arrivals per second, events left]
        self._responses = Collected(unit_s)
        # A time of exactly the bound is within it, whatever sums of floats make of its last digit.
        self._late_from_s = unit_s * (1 + 1e-9)
        self._late_s = 0.0
        self._late_until_s = -math.inf

    def oldest_s(self) -> float | None:
        """When the oldest waiting event arrived."""
        return self._stretches[0][0] if self._stretches else None

    def arrive(self, begin_s: float, end_s: float, events: float) -> None:
        if events > 0 and end_s > begin_s:
            self.arrived += events
            self.waiting += events
            self._stretches.append([begin_s, events / (end_s - begin_s), events])

    def serve(
        self, events: float, begin_s: float, end_s: float, service_s: float = 0.0, out: list[Chunk] | None = None
    ) -> None:
        """Serve evenly between two times; `begin_s == end_s` answers all of them at once, as a batch does.

        `out` gets what was served, for whoever comes next.
        """
        pace_s = (end_s - begin_s) / events if events > 0 else 0.0
        crumb = 1e-9 * events
        now_s = begin_s
        while events > crumb and self._stretches:
            stretch = self._stretches[0]
            taken = stretch[2] if stretch[2] < events else events
            last_s = stretch[0] + taken / stretch[1]
            then_s = now_s + taken * pace_s
            first_s, final_s = now_s - stretch[0] + service_s, then_s - last_s + service_s
            self._responses.add(first_s, final_s, taken)
            if out is not None:
                out.append((now_s, then_s, stretch[0], last_s, taken))
            if first_s > self._late_from_s or final_s > self._late_from_s:
                self._note_late(now_s, then_s, first_s, final_s)
            if stretch[2] - taken <= crumb:
                self._stretches.popleft()
            else:
                stretch[0], stretch[2] = last_s, stretch[2] - taken
            events -= taken
            self.processed = min(self.processed + taken, self.arrived)
            self.waiting -= taken
            now_s = then_s
        if not self._stretches:
            self.waiting, self.processed = 0.0, self.arrived

    def pass_through(self, events: float, service_s: float) -> None:
        """Events served as they come; nothing waits."""
        self.arrived += events
        self.processed = self.arrived
        self._responses.add(service_s, service_s, events)

    def forget(self, events: float) -> None:
        """Take back arrivals that were not: the youngest, and without an answer."""
        while events > 0 and self._stretches:
            stretch = self._stretches[-1]
            taken = min(events, stretch[2])
            stretch[2] -= taken
            self.arrived -= taken
            self.waiting -= taken
            events -= taken
            if stretch[2] <= 0:
                self._stretches.pop()

    def take_late_s(self, now_s: float, service_s: float = 0.0) -> float:
        """Seconds since the last call in which the oldest event was older than the unit."""
        if self._stretches:
            self.late_between(self._stretches[0][0] + self._late_from_s - service_s, now_s)
        late_s, self._late_s = self._late_s, 0.0
        return late_s

    def take_responses(self) -> Responses:
        """Response times since the last call."""
        return self._responses.taken()

    def _note_late(self, begin_s: float, end_s: float, first_s: float, last_s: float) -> None:
        """Events served between two times, of an age that changes evenly: when was the oldest of them too old?"""
        bound_s = self._late_from_s
        cross_s = begin_s + (bound_s - first_s) / (last_s - first_s) * (end_s - begin_s) if last_s != first_s else end_s
        # One that is too old when its turn comes was so from its own bound on.
        since_s = begin_s - (first_s - self._unit_s) if first_s > bound_s else cross_s
        self.late_between(since_s, end_s if last_s > bound_s or begin_s == end_s else cross_s)

    def late_between(self, begin_s: float, end_s: float) -> None:
        """Count a time in which some event was too old; what is counted already is not counted again."""
        begin_s = max(begin_s, self._late_until_s)
        if end_s > begin_s:
            self._late_s += end_s - begin_s
            self._late_until_s = end_s
