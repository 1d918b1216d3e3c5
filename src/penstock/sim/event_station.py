"""One operator that serves event by event: who waits, what each needs, what became of them."""

from __future__ import annotations

import numpy as np

from penstock.models.markov.chains import Floats
from penstock.sim.event_kernel import (
    FREE,
    WORKED,
    Numbers,
    Terms,
    at_speed,
    bin_counts,
    bin_responses,
    bin_table,
    by_bin,
    in_quota,
)

NOBODY = np.empty(0, dtype=np.int64)
NO_TIMES = np.empty(0)
Stream = tuple[Numbers, Floats]
"""Events on their way: which of the source's each is, and when it comes."""


class EventStation:
    """A server with a queue. What an event needs does not depend on who else is served, or how fast."""

    def __init__(self, cost_s: float, phases: int, rng: np.random.Generator, recorded_s: Floats | None = None) -> None:
        """`phases`: of the Erlang service, 0: all alike. `recorded_s`: what each event needs, in their order."""
        self._cost_s, self._phases, self._recorded_s = cost_s, phases, recorded_s
        # Two streams: how many go on must not change what each needs.
        self._work_rng, self._out_rng = rng.spawn(2)
        self.state = np.zeros(5)
        self._waiting: tuple[Numbers, Floats, Floats] = (NOBODY, NO_TIMES, NO_TIMES)
        self.arrived = self.processed = 0
        self._counts, self._sum_s, self._count = bin_counts(), 0.0, 0

    @property
    def backlog(self) -> int:
        return self.arrived - self.processed

    @property
    def oldest(self) -> int | None:
        """Which of the source's events is the first in line."""
        return int(self._waiting[0][0]) if len(self._waiting[0]) else None

    def serve(self, came: Stream, share: float, until_s: float, period_s: float | None, speed: float) -> Stream:
        """Serve until a time at a share of a core: as a slower core, or as a quota of each period."""
        if share * speed == 0:
            self._wait(came, until_s)
            return NOBODY, NO_TIMES
        first, then = self._waiting, (*came, self._drawn(len(came[0])))
        self.arrived += len(came[0])
        ends_s = np.empty(len(first[0]) + len(came[0]))
        terms = (share * speed, until_s, 0.0, 0.0)
        if period_s is not None:
            terms = (speed, until_s, share * period_s, period_s)
        done = self._serve(first, terms, ends_s)
        if done < len(first[0]):
            self._waiting = _joined(_rest(first, done), then)
            return self._served((first[0][:done], ends_s[:done]))
        more = self._serve(then, terms, ends_s[done:])
        self._waiting = _rest(then, more)
        who = then[0][:more] if not done else np.concatenate([first[0], then[0][:more]])
        return self._served((who, ends_s[: done + more]))

    def sent(self, done: Stream, selectivity: float) -> Stream:
        """What goes on: each event once, dropped, or copied, so that the mean is the selectivity."""
        if selectivity == 1:
            return done
        copies = np.floor(selectivity + self._out_rng.random(len(done[0]))).astype(np.int64)
        return np.repeat(done[0], copies), np.repeat(done[1], copies)

    def note(self, done: Stream, times_s: Floats, unit_s: float) -> None:
        """Keep the response times of events that leave the job here."""
        self._sum_s += bin_responses(done[1], (done[0], times_s, unit_s), bin_table(), self._counts)
        self._count += len(done[0])

    def take_responses(self) -> tuple[float, float, dict[int, float]]:
        """Since the last time: how many, their sum in seconds, and by bin."""
        taken = float(self._count), self._sum_s, by_bin(self._counts)
        self._counts[:] = 0
        self._count, self._sum_s = 0, 0.0
        return taken

    def take_worked(self) -> float:
        """Core-seconds since the last time."""
        worked, self.state[WORKED] = float(self.state[WORKED]), 0.0
        return worked

    def _serve(self, queue: tuple[Numbers, Floats, Floats], terms: Terms, ends_s: Floats) -> int:
        if not len(queue[0]):
            return 0
        kernel = in_quota if terms[3] else at_speed
        return int(kernel(queue[1], queue[2], self.state, terms, ends_s))

    def _served(self, done: Stream) -> Stream:
        self.processed += len(done[0])
        return done

    def _wait(self, came: Stream, until_s: float) -> None:
        self.state[FREE] = max(self.state[FREE], until_s)
        self._waiting = _joined(self._waiting, (*came, self._drawn(len(came[0]))))
        self.arrived += len(came[0])

    def _drawn(self, count: int) -> Floats:
        """Core-seconds that the next events need."""
        if self._recorded_s is not None:
            return self._recorded_s[self.arrived : self.arrived + count]
        if not self._phases:
            return np.full(count, self._cost_s)
        # A row an event: however time is cut, an event meets the same draws.
        drawn = self._work_rng.standard_exponential((count, self._phases))
        # Column by column: a sum along short rows takes three times as long.
        total = drawn[:, 0] * (self._cost_s / self._phases)
        for phase in range(1, self._phases):
            total += drawn[:, phase] * (self._cost_s / self._phases)
        return total


def _rest(queue: tuple[Numbers, Floats, Floats], done: int) -> tuple[Numbers, Floats, Floats]:
    return queue[0][done:], queue[1][done:], queue[2][done:]


def _joined(
    first: tuple[Numbers, Floats, Floats], then: tuple[Numbers, Floats, Floats]
) -> tuple[Numbers, Floats, Floats]:
    if not len(first[0]):
        return then
    return (
        np.concatenate([first[0], then[0]]),
        np.concatenate([first[1], then[1]]),
        np.concatenate([first[2], then[2]]),
    )
