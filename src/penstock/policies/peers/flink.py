"""The autoscaler of Flink's Kubernetes operator, for a job of one vertex that is a source."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import Measured, Meter, up

# Defaults of the operator that nobody tunes first.
BACKLOG_S = 300.0
"""`backlog-processing.lag-threshold`: with more to catch up on, utilisation bounds no more."""
OBSERVE_LAG_S = 30.0
OBSERVED_TRUST = 1.15
DOWN_MOST = 0.6


@dataclass(frozen=True, slots=True)
class _Rates:
    """What the window tells: events per second, and what waits."""

    arrival: float
    lag: float
    lag_s: float
    true_rate: float

    def capacity(self, utilisation: float, catch_up_s: float, restart_s: float) -> float:
        """What must be processed to catch up in time, also with what comes during a restart."""
        if utilisation <= 0:
            return math.inf
        more = (self.lag + self.arrival * restart_s) / catch_up_s if catch_up_s else 0.0
        return math.floor(more + self.arrival / min(1.0, utilisation) + 0.5)  # Java rounds halves up


class Flink:
    """Rates over 15 minutes; catches up in 30, minds a restart of 5, scales in after an hour."""

    source: ClassVar[str] = "Flink Kubernetes operator, autoscaler"
    is_peer: ClassVar[bool] = True
    counts_events: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})

    def __init__(  # noqa: PLR0913  what can be set is what its users set
        self,
        job: Job,
        utilization_target: float = 0.7,
        utilization_boundary: float = 0.3,
        metrics_window_s: float = 900.0,
        stabilization_interval_s: float = 300.0,
        catch_up_duration_s: float = 1800.0,
        restart_time_s: float = 300.0,
        scale_down_interval_s: float = 3600.0,
    ) -> None:
        between("flink:utilization_target", utilization_target, 0.01, 1)
        between("flink:utilization_boundary", utilization_boundary, 0, 1)
        between("flink:metrics_window_s", metrics_window_s, 0.01)
        self._limits, self._goal, self._margin = job.limits, utilization_target, utilization_boundary
        self._window_s, self._settle_s = metrics_window_s, stabilization_interval_s
        self._catch_up_s, self._restart_s = catch_up_duration_s, restart_time_s
        self._down_s = scale_down_interval_s
        self.memory_s = metrics_window_s + stabilization_interval_s + scale_down_interval_s
        self._meter = Meter()
        self._settled_s = self._held_s = 0.0
        self._window: deque[tuple[Measured, float]] = deque()
        self._downs: list[tuple[float, int, bool]] = []

    def decide(self, seen: Observation) -> Decision:
        measured, asked = self._meter.note(seen), len(seen.target.workers)
        if len(seen.running.workers) != asked or not asked:
            self._restart()
            return Decision(seen.target, "the job restarts")
        self._settled_s += seen.span_s
        if self._settled_s <= self._settle_s or measured is None:
            return Decision(seen.target, f"stabilising for {self._settle_s:g} s")
        self._window.append((measured, seen.backlog or 0.0))
        self._held_s += measured.span_s
        while self._held_s - self._window[0][0].span_s >= self._window_s - 1e-6:
            self._held_s -= self._window.popleft()[0].span_s
        if self._held_s < self._window_s - 1e-6:
            return Decision(seen.target, f"the window of {self._window_s:g} s is not full")
        return self._judged(seen, asked, self._rates())

    def _restart(self) -> None:
        """A job that restarts begins its metrics, and what it wanted to give up, anew."""
        self._settled_s = self._held_s = 0.0
        self._window.clear()
        self._downs.clear()

    def _rates(self) -> _Rates:
        span_s = sum(each.span_s for each, _ in self._window)
        arrival, rate_in = (
            sum(getattr(m, name) for m, _ in self._window) / span_s for name in ("arrived", "processed")
        )
        busy = sum(each.busy * each.span_s for each, _ in self._window) / span_s
        # Who has nothing to do could do anything: what idles is given up.
        true_rate = rate_in / busy if busy > 0 and rate_in > 0 else math.inf
        # While much waits, what is processed is all that can be: busy time may say more than that (FLINK-33306).
        per_s = [(each.processed / each.span_s, lag) for each, lag in self._window]
        observed = [rate for rate, lag in per_s if rate > 0 and lag >= OBSERVE_LAG_S * rate]
        if len(observed) >= 2 and true_rate > OBSERVED_TRUST * (mean := sum(observed) / len(observed)):
            true_rate = mean
        lag = self._window[-1][1]
        lag_s = lag / rate_in if rate_in > 0 else math.inf if lag > 0 else 0.0
        return _Rates(arrival, lag, lag_s, true_rate)

    def _judged(self, seen: Observation, asked: int, rates: _Rates) -> Decision:
        most, least = min(1.0, self._goal + self._margin), self._goal - self._margin
        if rates.lag_s > BACKLOG_S:
            most, least = 1.0, 0.0
        needed = rates.capacity(self._goal, self._catch_up_s, self._restart_s)
        low = rates.capacity(most, self._catch_up_s, 0.0)
        high = rates.capacity(least, self._catch_up_s, self._restart_s)
        is_outside = rates.true_rate < low or rates.true_rate > high
        wanted = self._limits.clamp(max(1, up(asked * max(1 - DOWN_MOST, needed / rates.true_rate))))
        reason = f"{rates.true_rate:.4g}/s can be done by {asked}, {needed:.4g}/s is needed: {wanted}"
        signals = {"needed": needed, "lag": rates.lag}
        signals |= {"true rate": rates.true_rate} if math.isfinite(rates.true_rate) else {}
        wanted, is_outside = self._delayed(seen.time_s, asked, wanted, is_outside)
        if wanted == asked or not is_outside:
            return Decision(seen.target, f"{reason}; {asked} stay", signals)
        self._restart()
        return Decision(seen.target.resized(wanted), reason, signals)

    def _delayed(self, now_s: float, asked: int, wanted: int, is_outside: bool) -> tuple[int, bool]:
        """Fewer only when fewer were wanted for an hour, and then the most of those; of equals the last counts."""
        if wanted >= asked:
            self._downs.clear()
            return wanted, is_outside
        self._downs.append((now_s, wanted, is_outside))
        if now_s - self._downs[0][0] < self._down_s - 1e-6:
            return asked, False
        late = [down for down in self._downs if down[0] >= now_s - self._down_s - 1e-6]
        _, most, was_outside = max(late, key=lambda down: (down[1], down[0]))
        return most, was_outside
