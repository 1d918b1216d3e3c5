"""A queue of events that were never events: arrivals as a curve, served first come, first served."""

from __future__ import annotations

from collections import deque

from penstock.core.responses import Responses, bin_of, binned


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
        self._count = self._sum_s = 0.0
        self._bins: dict[int, float] = {}

    def oldest_s(self) -> float | None:
        """When the oldest waiting event arrived."""
        return self._stretches[0][0] if self._stretches else None

    def arrive(self, begin_s: float, end_s: float, events: float) -> None:
        if events > 0 and end_s > begin_s:
            self.arrived += events
            self.waiting += events
            self._stretches.append([begin_s, events / (end_s - begin_s), events])

    def serve(self, events: float, begin_s: float, end_s: float, service_s: float = 0.0) -> None:
        """Serve evenly between two times; `begin_s == end_s` answers all of them at once, as a batch does."""
        pace_s = (end_s - begin_s) / events if events > 0 else 0.0
        crumb = 1e-9 * events
        now_s = begin_s
        while events > crumb and self._stretches:
            stretch = self._stretches[0]
            taken = min(events, stretch[2])
            last_s = stretch[0] + taken / stretch[1]
            then_s = now_s + taken * pace_s
            self._note(now_s - stretch[0] + service_s, then_s - last_s + service_s, taken)
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
        self._note(service_s, service_s, events)

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

    def take_responses(self) -> Responses:
        """Response times since the last call."""
        responses = Responses(self._count, self._sum_s, self._bins, self._unit_s)
        self._count = self._sum_s = 0.0
        self._bins = {}
        return responses

    def _note(self, low_s: float, high_s: float, events: float) -> None:
        self._count += events
        self._sum_s += events * (low_s + high_s) / 2
        bins = self._bins
        if low_s == high_s:
            number = bin_of(low_s / self._unit_s)
            bins[number] = bins.get(number, 0.0) + events
            return
        for number, part in binned(low_s / self._unit_s, high_s / self._unit_s, events):
            bins[number] = bins.get(number, 0.0) + part
