"""Dhalion's rules on back-pressure (Floratou et al., VLDB 2017), as ESPA re-implemented them for a source."""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import up

MORE_MOST = 50


class Dhalion:
    """Lag that grows faster than `lag_rate` is back-pressure: workers in proportion; with little lag, a fifth fewer."""

    source: ClassVar[str] = "Floratou et al., VLDB 2017"
    is_peer: ClassVar[bool] = True
    counts_events: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})
    needs_lag = True

    def __init__(  # noqa: PLR0913  what can be set is what it sets
        self,
        job: Job,
        lag_rate: float = 1000.0,
        lag_low: float = 10000.0,
        scale_down: float = 0.8,
        metrics_window_s: float = 60.0,
        cooling_s: float = 120.0,
    ) -> None:
        between("dhalion:lag_rate", lag_rate, 0)
        between("dhalion:lag_low", lag_low, 0)
        between("dhalion:scale_down", scale_down, 0, 1)
        self._limits, self._rate, self._low, self._down = job.limits, lag_rate, lag_low, scale_down
        self._window_s, self._cooling_s = metrics_window_s, cooling_s
        self.memory_s = metrics_window_s + cooling_s
        self._past: deque[Observation] = deque()
        self._changed_s: float | None = None

    def decide(self, seen: Observation) -> Decision:
        self._past.append(seen)
        while len(self._past) > 2 and self._past[1].time_s <= seen.time_s - self._window_s + 1e-6:
            self._past.popleft()
        first, lag, asked = self._past[0], seen.backlog or 0.0, len(seen.target.workers)
        span_s = seen.time_s - first.time_s
        if span_s <= 0:
            return Decision(seen.target, "one reading tells no rate")
        pending, consumed = (lag - (first.backlog or 0.0)) / span_s, (seen.processed - first.processed) / span_s
        signals = {"lag": lag, "lag rate": pending}
        if self._changed_s is not None and seen.time_s < self._changed_s + self._cooling_s - 1e-6:
            return Decision(seen.target, f"cooling down after a change, for {self._cooling_s:g} s", signals)
        wanted, why = self._wanted(asked, lag, pending, consumed)
        if wanted != asked:
            self._changed_s = seen.time_s
        return Decision(seen.target.resized(wanted), f"lag {lag:.4g} grows by {pending:.4g}/s: {why}", signals)

    def _wanted(self, asked: int, lag: float, pending: float, consumed: float) -> tuple[int, str]:
        if pending > self._rate:
            ratio = 1 + pending / consumed if consumed > 0 else math.inf
            wanted = asked + MORE_MOST if ratio == math.inf else min(asked + MORE_MOST, up(asked * ratio))
            wanted = self._limits.clamp(wanted)
            return wanted, f"back-pressure, {wanted} workers"
        if lag < self._low:
            wanted = self._limits.clamp(max(1, math.floor(self._down * asked + 1e-9)))
            return wanted, f"no back-pressure and little lag, {wanted} workers"
        return asked, f"no back-pressure, much lag, {asked} workers"
